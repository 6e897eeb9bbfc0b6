#[path = "../../../tests/simulation/mod.rs"]
mod harness;
mod real_store;
mod simulation;

use super::document::{Accept, Document, EVERY_SITE, OffSwitch, Stamp, Write, WriteAnswer, WriteCall};
use super::member::{DocumentState, Member, ReadOutcome};
use super::replica_status::Heartbeat;
use super::test_store::PlayedStore;
use crate::report::ReplicaState;

impl Member {
    /// Reports whether nothing is enforced for a site, or for a host given as `SITE/HOST`.
    pub(crate) fn is_off(&self, site: &str) -> bool {
        self.is_every_site_off() || self.is_site_off(site)
    }

    pub(crate) fn accepted(&self, site: &str, hash: &str) -> bool {
        self.accepts().get(site).is_some_and(|accept| accept.is_for_hash(hash))
    }
}

fn store() -> PlayedStore {
    let mut store = PlayedStore::default();
    let begin = WriteCall { epoch: "e".to_owned(), floor: 0, tag: "0".to_owned(), write: Write::Begin };
    assert_eq!(store.write(&begin), WriteAnswer::Written(1));
    store
}

fn by(name: &str) -> Stamp {
    Stamp { by: name.to_owned(), ..Stamp::default() }
}

/// Lets a member read the store and write lost entries back.
fn read(member: &mut Member, store: &mut PlayedStore) -> ReadOutcome {
    let seen = member.seen(store.0.as_ref());
    for write in &seen.write_back {
        store.write(&member.call(write.clone(), "w").unwrap());
    }
    seen
}

fn send(member: &Member, store: &mut PlayedStore, write: Write) -> WriteAnswer {
    store.write(&member.call(write, "t").unwrap())
}

#[test]
fn a_hash_prefix_of_12_or_more_digits_accepts_a_version() {
    let hash = format!("sha256:{}", "ab".repeat(32));
    for (digits, is_for_hash) in [(10, false), (12, true), (16, true), (64, true)] {
        let accept = Accept { id: String::new(), hash: "ab".repeat(digits / 2), stamp: Stamp::default() };
        assert_eq!(accept.is_for_hash(&hash), is_for_hash, "{digits}");
    }
}

#[test]
fn a_replica_that_has_never_read_the_document_enforces_nothing() {
    let mut member = Member::default();
    assert!(member.is_off("shop"));
    assert_eq!(member.seen(None), ReadOutcome::default());
    assert!(member.is_off("shop"));
    read(&mut member, &mut store());
    assert!(!member.is_off("shop"));
}

#[test]
fn a_lost_off_switch_is_written_back_and_a_lifted_off_switch_does_not_return() {
    let (mut store, mut a, mut b) = (store(), Member::default(), Member::default());
    read(&mut a, &mut store);
    read(&mut b, &mut store);
    let backup = store.clone();
    let mark = a.turn_off("m", "shop", by("alice")).unwrap();
    assert!(a.is_off("shop") && a.is_off("shop/www.example") && !a.is_off("shopping"));
    send(&a, &mut store, mark);
    assert!(read(&mut b, &mut store).changes[0].contains("site \"shop\" off"));
    let with_mark = store.clone();
    // The store is reset to an older backup, and then loses the whole document.
    for lost in [backup, PlayedStore::default()] {
        store = lost;
        read(&mut b, &mut store);
        assert!(b.is_off("shop") && store.0.as_ref().unwrap().marks.contains_key("shop:m"));
        assert_eq!(read(&mut b, &mut store).document_state, DocumentState::Current);
    }
    let lift = b.lift("shop:m", by("bob"));
    send(&b, &mut store, lift);
    read(&mut a, &mut store);
    assert!(!a.is_off("shop") && a.digest() == b.digest() && a.digest() == store.0.as_ref().unwrap().digest());
    // A lifted off switch must not come back, neither from a backup nor through a delayed request.
    store = with_mark;
    read(&mut a, &mut store);
    let error = a.turn_off("m", "shop", by("alice")).unwrap_err();
    assert_eq!(error, "bob has already removed the off switch m, so its id cannot be used again: choose a new id");
    assert!(!a.is_off("shop") && store.0.as_ref().unwrap().marks.is_empty());
}

#[test]
fn a_replica_keeps_an_accept_that_the_store_lost_and_an_operator_can_restore_it() {
    let (mut store, mut a, mut b) = (store(), Member::default(), Member::default());
    read(&mut a, &mut store);
    read(&mut b, &mut store);
    let first = a.accept("shop", "1", "one", by("alice"));
    assert!(matches!(send(&a, &mut store, first), WriteAnswer::Written(2)));
    let late = b.accept("shop", "2", "two", by("bob"));
    assert_eq!(send(&b, &mut store, late), WriteAnswer::Conflict(2));
    read(&mut a, &mut store);
    let backup = store.clone();
    let next = a.accept("shop", "3", "three", by("alice"));
    send(&a, &mut store, next);
    read(&mut a, &mut store);
    // A replica that has not read the third accepted version accepts another version with the same
    // rev.
    store = backup;
    read(&mut b, &mut store);
    let other = b.accept("shop", "4", "four", by("bob"));
    assert_eq!(send(&b, &mut store, other), WriteAnswer::Written(3));
    read(&mut b, &mut store);
    let went_back = DocumentState::WentBack(vec!["accept of site \"shop\"".to_owned()]);
    assert_eq!(read(&mut a, &mut store).document_state, went_back);
    assert!(a.accepted("shop", "three") && b.accepted("shop", "four"));
    for write in a.restore(store.0.as_ref()) {
        send(&a, &mut store, write);
    }
    for member in [&mut a, &mut b] {
        assert_eq!(read(member, &mut store).document_state, DocumentState::Current);
        assert!(member.accepted("shop", "three"));
    }
    // No lost entry is left to restore, and the stored state contains all entries.
    assert_eq!(a.restore(store.0.as_ref()), [Write::Begin]);
    let kept = serde_json::to_string(&a).unwrap();
    assert_eq!(serde_json::from_str::<Member>(&kept).unwrap(), a);
}

#[test]
fn a_document_of_another_epoch_is_ignored() {
    let (mut own, mut member) = (store(), Member::default());
    read(&mut member, &mut own);
    let mut other = store();
    let document = other.0.as_mut().unwrap();
    document.epoch = "f".to_owned();
    let mark = OffSwitch { scope: "*".to_owned(), id: "m".to_owned(), stamp: by("eve") };
    document.marks.insert(mark.name(), mark);
    assert_eq!(read(&mut member, &mut other).document_state, DocumentState::Foreign("f".to_owned()));
    assert!(!member.is_off("shop"));
    let mark = member.turn_off("n", "*", by("alice")).unwrap();
    assert_eq!(send(&member, &mut other, mark), WriteAnswer::Foreign("f".to_owned()));
}

#[test]
fn a_replica_state_of_a_later_version_is_read_as_unknown() {
    for (word, state) in [("went-back", ReplicaState::WentBack), ("resting", ReplicaState::Unknown)] {
        let beat: Heartbeat = serde_json::from_value(serde_json::json!({ "state": word })).unwrap();
        assert_eq!(beat.state, state, "{word}");
    }
    for state in ReplicaState::ALL {
        assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
    }
}

fn document(fields: &[(&str, &[u8])]) -> Result<Option<Document>, String> {
    Document::read(fields.iter().map(|(name, value)| (name.as_bytes().to_owned(), value.to_vec())))
}

const KNOWN: [(&str, &[u8]); 6] = [
    ("epoch", b"e"),
    ("rev", b"7"),
    ("tag", b"t"),
    ("format", b"1"),
    ("off:*:m", br#"{"rev":3,"by":"alice"}"#),
    ("accept:shop", br#"{"rev":4,"id":"1","hash":"one"}"#),
];

#[test]
fn unknown_fields_of_a_document_are_ignored_and_a_later_format_is_an_error() {
    assert_eq!(document(&[]), Ok(None));
    let of_later: [(&str, &[u8]); 2] = [("shape", b"x"), ("off:a:b:n", br#"{"rev":2,"by":"a","new":1}"#)];
    let whole = document(&[&KNOWN[..], &of_later].concat()).unwrap().unwrap();
    assert_eq!((whole.rev, &*whole.marks["*:m"].scope, &*whole.marks["a:b:n"].scope), (7, "*", "a:b"));
    assert!(whole.damaged.is_empty() && document(&[("format", b"2")]).unwrap_err().contains("update robotsd"));
}

/// Tries every kind of damage with every field. In each case, the off switches must take effect,
/// only the damaged field may be reported, and no damaged number may be used.
#[test]
fn a_damaged_field_does_not_affect_other_fields() {
    let mut before = Member::default();
    before.seen(document(&KNOWN).unwrap().as_ref());
    let far: &[u8] = b"18446744073709551614";
    let values = [b"\xff", far, b"-1", b"1.5", b"{", b"", br#"{"rev":18446744073709551614,"id":"1","hash":"one"}"#];
    let fields =
        KNOWN.iter().map(|(field, _)| *field).chain(["lifted:x", "off:shop:n", "off:*", "off::", "accept:news"]);
    // The value `far` is not damaged: it is a valid epoch of another fleet.
    let is_damage = |case: &(&str, &[u8])| *case != ("epoch", far);
    for (field, value) in fields.flat_map(|field| values.map(|value| (field, value))).filter(is_damage) {
        let others = KNOWN.into_iter().filter(|(other, _)| *other != field);
        let fields: Vec<(&str, &[u8])> = others.chain([("off:blog:late", &b"{}"[..]), (field, value)]).collect();
        let read = document(&fields).unwrap().unwrap();
        let mut member = before.clone();
        let seen = member.seen(Some(&read));
        assert!(member.is_off("blog") && member.is_off("any"), "{field} {value:?}");
        assert!(field != "off:shop:n" || member.is_off("shop"), "{field} {value:?}");
        assert!(member.accepted("shop", "one"), "{field} {value:?}");
        // Each value is damage for every field except the tag, because every string is a valid tag.
        match seen.document_state {
            DocumentState::Damaged(fields) => assert!(fields.len() == 1 && fields[0].contains(field), "{fields:?}"),
            document_state => assert_eq!((document_state, field), (DocumentState::Current, "tag"), "{value:?}"),
        }
        assert!(member.call(Write::Begin, "t").unwrap().floor <= 7, "{field} {value:?}");
    }
}

/// A client with rights for one site may know the ID of another site's off switch. The client may
/// use that ID on a replica that has not read the off switch.
#[test]
fn an_off_switch_id_used_in_one_scope_does_not_affect_another_scope() {
    for other in [EVERY_SITE, "news"] {
        let (mut store, mut a, mut b) = (store(), Member::default(), Member::default());
        read(&mut a, &mut store);
        read(&mut b, &mut store);
        let mark = a.turn_off("m", other, by("alice")).unwrap();
        send(&a, &mut store, mark);
        let own = b.turn_off("m", "shop", by("mallory")).unwrap();
        send(&b, &mut store, own);
        let lift = b.lift("shop:m", by("mallory"));
        send(&b, &mut store, lift);
        for member in [&mut a, &mut b] {
            assert_eq!(read(member, &mut store).document_state, DocumentState::Current);
            assert!(member.is_off("news"), "{other}");
            assert_eq!(member.is_off("shop"), other == EVERY_SITE);
        }
    }
}
