#[path = "../../../tests/simulation/mod.rs"]
mod harness;
mod real_store;
mod simulation;

use super::document::{Accept, Document, Mark, Stamp, Write, WriteAnswer, WriteCall};
use super::member::{Member, Seen, Standing};
use super::standing::Heartbeat;
use super::test_store::PlayedStore;
use crate::report::ReplicaState;

impl Member {
    /// Whether nothing is enforced for a site, or for a host of it as `SITE/HOST`.
    pub(crate) fn is_off(&self, site: &str) -> bool {
        self.is_every_site_off() || self.is_marked(site)
    }

    /// Whether the fleet has accepted this version of a site.
    pub(crate) fn accepted(&self, site: &str, hash: &str) -> bool {
        self.accepts().get(site).is_some_and(|accept| accept.is_of(hash))
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

/// Reads the store, and writes back what it has lost.
fn read(member: &mut Member, store: &mut PlayedStore) -> Seen {
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
fn a_version_is_accepted_by_as_many_digits_as_an_operator_may_write() {
    let hash = format!("sha256:{}", "ab".repeat(32));
    for (digits, is_of) in [(10, false), (12, true), (16, true), (64, true)] {
        let accept = Accept { id: String::new(), hash: "ab".repeat(digits / 2), stamp: Stamp::default() };
        assert_eq!(accept.is_of(&hash), is_of, "{digits}");
    }
}

#[test]
fn one_that_never_saw_a_document_enforces_nothing() {
    let mut member = Member::default();
    assert!(member.is_off("shop"));
    assert_eq!(member.seen(None), Seen::default());
    assert!(member.is_off("shop"));
    read(&mut member, &mut store());
    assert!(!member.is_off("shop"));
}

#[test]
fn a_mark_that_the_store_lost_is_written_back_and_a_lifted_one_does_not_come_back() {
    let (mut store, mut a, mut b) = (store(), Member::default(), Member::default());
    read(&mut a, &mut store);
    read(&mut b, &mut store);
    let backup = store.clone();
    let mark = a.turn_off("m", "shop", by("alice")).unwrap();
    assert!(a.is_off("shop") && a.is_off("shop/www.example") && !a.is_off("shopping"));
    send(&a, &mut store, mark);
    assert!(read(&mut b, &mut store).changes[0].contains("site \"shop\" off"));
    let with_mark = store.clone();
    // An older backup, and no document at all.
    for lost in [backup, PlayedStore::default()] {
        store = lost;
        read(&mut b, &mut store);
        assert!(b.is_off("shop") && store.0.as_ref().unwrap().marks.contains_key("shop:m"));
        assert_eq!(read(&mut b, &mut store).standing, Standing::Current);
    }
    let lift = b.lift("shop:m", by("bob"));
    send(&b, &mut store, lift);
    read(&mut a, &mut store);
    assert!(!a.is_off("shop") && a.digest() == b.digest() && a.digest() == store.0.as_ref().unwrap().digest());
    // The mark comes with a backup, and with a direct call that is late.
    store = with_mark;
    read(&mut a, &mut store);
    assert_eq!(a.turn_off("m", "shop", by("alice")), None);
    assert!(!a.is_off("shop") && store.0.as_ref().unwrap().marks.is_empty());
}

/// Whoever may switch one site only may know the id of any mark, and ask a replica that has not read that mark.
#[test]
fn the_id_of_a_mark_changes_and_lifts_no_mark_of_another_scope() {
    for other in ["*", "news"] {
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
            assert_eq!(read(member, &mut store).standing, Standing::Current);
            assert!(member.is_off("news"), "{other}");
            assert_eq!(member.is_off("shop"), other == "*");
        }
    }
}

#[test]
fn no_accept_goes_back_and_a_person_restores_it() {
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
    // One that had not seen the third writes another with the same rev.
    store = backup;
    read(&mut b, &mut store);
    let other = b.accept("shop", "4", "four", by("bob"));
    assert_eq!(send(&b, &mut store, other), WriteAnswer::Written(3));
    read(&mut b, &mut store);
    let went_back = Standing::WentBack(vec!["accept of site \"shop\"".to_owned()]);
    assert_eq!(read(&mut a, &mut store).standing, went_back);
    assert!(a.accepted("shop", "three") && b.accepted("shop", "four"));
    for write in a.restore(store.0.as_ref()) {
        send(&a, &mut store, write);
    }
    for member in [&mut a, &mut b] {
        assert_eq!(read(member, &mut store).standing, Standing::Current);
        assert!(member.accepted("shop", "three"));
    }
    // Nothing is left to restore, and a restart knows all of it.
    assert_eq!(a.restore(store.0.as_ref()), [Write::Begin]);
    let kept = serde_json::to_string(&a).unwrap();
    assert_eq!(serde_json::from_str::<Member>(&kept).unwrap(), a);
}

#[test]
fn nothing_is_taken_from_another_epoch() {
    let (mut own, mut member) = (store(), Member::default());
    read(&mut member, &mut own);
    let mut other = store();
    let document = other.0.as_mut().unwrap();
    document.epoch = "f".to_owned();
    document.marks.insert("*:m".to_owned(), Mark { scope: "*".to_owned(), stamp: by("eve") });
    assert_eq!(read(&mut member, &mut other).standing, Standing::Foreign("f".to_owned()));
    assert!(!member.is_off("shop"));
    let mark = member.turn_off("n", "*", by("alice")).unwrap();
    assert_eq!(send(&member, &mut other, mark), WriteAnswer::Foreign("f".to_owned()));
}

#[test]
fn a_state_that_a_later_version_has_is_unknown() {
    for (word, state) in [("went-back", ReplicaState::WentBack), ("resting", ReplicaState::Unknown)] {
        let beat: Heartbeat = serde_json::from_value(serde_json::json!({ "state": word })).unwrap();
        assert_eq!(beat.state, state, "{word}");
    }
    for state in ReplicaState::ALL {
        assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
    }
}

#[test]
fn a_document_is_read_field_by_field() {
    let fields =
        |of: &[(&str, &str)]| of.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect::<Vec<_>>();
    assert_eq!(Document::read(fields(&[])), Ok(None));
    let known = [("epoch", "e"), ("rev", "7"), ("tag", "t"), ("format", "1")];
    let of_later = [("shape", "x"), ("off:*:m", "{damaged"), ("off:a:b:n", r#"{"rev":2,"by":"a","new":1}"#)];
    let document = Document::read(fields(&[&known[..], &of_later].concat())).unwrap().unwrap();
    assert_eq!((document.rev, &*document.marks["*:m"].scope, &*document.marks["a:b:n"].scope), (7, "*", "a:b"));
    for (wrong, why) in
        [(("format", "2"), "update it"), (("rev", "x"), "no number"), (("accept:shop", "{}"), "no accept")]
    {
        let error = Document::read(fields(&[&known[..], &[wrong]].concat())).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}
