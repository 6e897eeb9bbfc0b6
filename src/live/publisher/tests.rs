use super::*;
use crate::live::rejection::RejectionKind;
use crate::rules::{Reading, RuleSet};

const OPEN: &str = "User-agent: *\nDisallow: /cart\n";
const OTHER: &str = "User-agent: *\nDisallow: /cart\nDisallow: /account\n";
const SHUT: &str = "User-agent: *\nDisallow: /\n";
const DAY: Duration = Duration::from_secs(86400);

fn day(number: u32) -> SystemTime {
    SystemTime::UNIX_EPOCH + DAY * number
}

fn version(text: &str) -> Version {
    Version::new(text.as_bytes(), &"it".into(), None)
}

fn hash(text: &str) -> VersionHash {
    VersionHash::of(text.as_bytes())
}

fn holds(text: &str) -> Candidate {
    Candidate::Version(version(text))
}

fn broken(kind: RejectionKind) -> Candidate {
    Candidate::Rejected(Rejection::new(kind, &"it".into()))
}

fn publisher_with(gate: Gate, grace: Duration, versions: AcceptedVersions, was_live: WasLive) -> Publisher {
    let settings = CompileSettings {
        reading: Reading::default(),
        registry: Registry::builtin().clone(),
        check: check::Options::default(),
    };
    Publisher::new(settings, CompileCache::default(), gate, grace, (versions, None, was_live))
}

fn publisher() -> Publisher {
    publisher_with(Gate::new(), Duration::ZERO, AcceptedVersions::default(), WasLive::Unknown)
}

/// Creates a publisher whose live version is `OPEN`, published on day 1.
fn with_open() -> Publisher {
    let mut publisher = publisher();
    let _ = publisher.consider(holds(OPEN), day(1));
    publisher
}

/// Returns accepted versions, each accepted a day after the previous version.
fn accepted(texts: &[&str]) -> AcceptedVersions {
    let mut versions = AcceptedVersions::default();
    for (number, text) in (1..).zip(texts) {
        let accepted =
            AcceptedVersion { version: version(text), since: day(number), standing: AcceptedState::Accepted };
        versions.accept(accepted, Duration::ZERO, day(number));
    }
    versions
}

fn rules(publisher: &Publisher) -> *const RuleSet {
    publisher.content.as_ref().map_or(std::ptr::null(), |content| std::ptr::from_ref(content.rules()))
}

#[track_caller]
fn assert_published(outcome: &ReloadOutcome, text: &str) {
    assert!(matches!(outcome, ReloadOutcome::Published { hash: now, .. } if *now == hash(text)), "{outcome:?}");
}

#[track_caller]
fn assert_gated(outcome: &ReloadOutcome, text: &str, stays: Option<&str>) {
    let ReloadOutcome::Gated { pending, live } = outcome else { panic!("{outcome:?}") };
    assert_eq!((pending.hash(), *live), (hash(text), stays.map(hash)));
}

#[test]
fn a_version_that_an_earlier_process_accepted_is_not_written_again() {
    for (text, unsaved) in [(OPEN, None), (OTHER, Some(Durability::Process))] {
        let mut publisher = publisher_with(Gate::open(), Duration::ZERO, accepted(&[OPEN]), WasLive::Current);
        assert_published(&publisher.consider(holds(text), day(2)), text);
        assert_eq!(publisher.take_unsaved(), unsaved, "{text}");
    }
}

#[test]
fn a_candidate_is_published_once_and_reported_as_unchanged_afterwards() {
    let mut publisher = publisher();
    assert_eq!((publisher.live(), publisher.take_unsaved()), (None, None));
    assert_published(&publisher.consider(holds(OPEN), day(1)), OPEN);
    assert_eq!((publisher.live(), publisher.take_unsaved()), (Some(hash(OPEN)), Some(Durability::Process)));
    let before = rules(&publisher);
    let outcome = publisher.consider(holds(OPEN), day(2));
    assert!(matches!(outcome, ReloadOutcome::Unchanged { hash: now, .. } if now == hash(OPEN)), "{outcome:?}");
    assert_eq!((rules(&publisher), publisher.take_unsaved()), (before, None), "nothing is made, nothing is written");
}

#[test]
fn an_unusable_candidate_keeps_the_live_version() {
    let mut publisher = publisher();
    let outcome = publisher.consider(broken(RejectionKind::Missing), day(1));
    assert!(matches!(outcome, ReloadOutcome::Kept { live: None, .. }), "{outcome:?}");
    let _ = publisher.consider(holds(OPEN), day(1));
    let _ = publisher.take_unsaved();
    for (candidate, kind) in [
        (broken(RejectionKind::Unreadable), RejectionKind::Unreadable),
        (holds("<html>"), RejectionKind::Html),
        (holds(" \n"), RejectionKind::Empty),
    ] {
        let ReloadOutcome::Kept { rejection, live } = publisher.consider(candidate, day(2)) else { panic!("{kind:?}") };
        assert_eq!((rejection.kind, live, publisher.live()), (kind, Some(hash(OPEN)), Some(hash(OPEN))));
    }
    assert_eq!(publisher.take_unsaved(), None);
}

#[test]
fn an_absent_robots_txt_leaves_nothing_live_and_keeps_the_accepted_versions() {
    let mut publisher = with_open();
    let _ = publisher.take_unsaved();
    let outcome = publisher.consider(Candidate::Absent { status: 404 }, day(2));
    assert!(matches!(outcome, ReloadOutcome::Absent { status: 404 }), "{outcome:?}");
    assert!(publisher.content.as_ref().is_none() && publisher.grace.running.as_ref().is_none());
    assert_eq!(publisher.versions.current().map(AcceptedVersion::hash), Some(hash(OPEN)));
    assert_eq!(publisher.take_unsaved(), Some(Durability::Process));
    let _ = publisher.consider(Candidate::Absent { status: 404 }, day(3));
    assert_eq!(publisher.take_unsaved(), None);
    assert_published(&publisher.consider(holds(OPEN), day(4)), OPEN);
    assert_eq!(publisher.take_unsaved(), Some(Durability::Process));
}

#[test]
fn a_version_removed_before_a_restart_is_not_restored_before_the_first_fetch() {
    for (kind, restored) in [(RejectionKind::NotFetched, None), (RejectionKind::Missing, Some(hash(OPEN)))] {
        let versions = AcceptedVersions { is_absent: true, ..accepted(&[OPEN]) };
        let mut publisher = publisher_with(Gate::new(), Duration::ZERO, versions, WasLive::Current);
        let (_, last) = publisher.start(broken(kind), day(9));
        assert_eq!((last.map(|last| last.hash()), publisher.live()), (restored, restored));
        assert_eq!(publisher.versions.is_absent, restored.is_none());
    }
}

#[test]
fn a_version_that_the_gate_refuses_is_pending_until_accepted_by_its_hash() {
    let mut publisher = with_open();
    for _ in 0..2 {
        assert_gated(&publisher.consider(holds(SHUT), day(2)), SHUT, Some(OPEN));
    }
    assert_eq!(publisher.take_unsaved(), Some(Durability::Machine));
    let error = publisher.accept(&hash(OTHER).into(), day(3)).expect_err("another waits");
    assert!(matches!(error, NoSuchVersion::Waiting { pending: Some(pending), .. } if pending == hash(SHUT)));
    let compiled = publisher.compiled_pending().expect("it waits");
    assert_published(&publisher.accept(&hash(SHUT).into(), day(3)).expect("it waits"), SHUT);
    let content = publisher.content.as_ref().expect("it is live");
    assert!(std::ptr::eq(content.report(), &compiled.report), "what was compiled to be examined is what goes live");
    assert_eq!((publisher.pending.as_ref().is_none(), publisher.take_unsaved()), (true, Some(Durability::Machine)));
    let error = publisher.accept(&hash(SHUT).into(), day(4)).expect_err("none waits");
    assert!(matches!(error, NoSuchVersion::Waiting { pending: None, .. }));
}

#[test]
fn a_pending_version_is_checked_by_a_new_gate_and_dropped_if_the_live_version_is_offered() {
    let mut publisher = with_open();
    let _ = publisher.consider(holds(SHUT), day(1));
    let _ = publisher.take_unsaved();
    let _ = publisher.consider(holds(OPEN), day(1));
    assert!(publisher.pending.as_ref().is_none());
    assert_eq!(publisher.take_unsaved(), Some(Durability::Machine), "that nothing waits is written down");
    assert_gated(&publisher.consider(holds(SHUT), day(2)), SHUT, Some(OPEN));
    publisher.set_gate(Gate::open());
    assert!(publisher.pending.as_ref().is_some(), "it is not examined before it is offered again");
    assert_published(&publisher.consider(holds(SHUT), day(3)), SHUT);
}

#[test]
fn a_rolled_back_version_is_pending_until_it_is_accepted_or_the_source_changes() {
    let mut publisher = publisher();
    assert_eq!(publisher.roll_back(day(1)).err(), Some(NoSuchVersion::Before));
    let _ = publisher.consider(holds(OPEN), day(1));
    assert_eq!(publisher.roll_back(day(1)).err(), Some(NoSuchVersion::Before), "nothing was before the first");
    let _ = publisher.consider(holds(OTHER), day(2));
    let left = rules(&publisher);
    assert_published(&publisher.roll_back(day(3)).expect("one was before"), OPEN);
    assert_gated(&publisher.consider(holds(OTHER), day(4)), OTHER, Some(OPEN));
    publisher.set_gate(Gate::open());
    assert_gated(&publisher.consider(holds(OTHER), day(4)), OTHER, Some(OPEN));
    assert_published(&publisher.accept(&hash(OTHER).into(), day(5)).expect("it waits"), OTHER);
    assert_eq!(rules(&publisher), left, "it was not compiled again");
    let _ = publisher.roll_back(day(6));
    let _ = publisher.consider(holds(OPEN), day(7));
    assert_published(&publisher.consider(holds(OTHER), day(8)), OTHER);
}

#[test]
fn unchanged_settings_publish_nothing() {
    let mut publisher = with_open();
    let before = rules(&publisher);
    assert!(!publisher.set_check(check::Options::default(), day(2)));
    assert!(!publisher.set_registry(Registry::builtin().clone(), day(2)));
    assert_eq!(rules(&publisher), before);
    let strict = check::Options::default().exempt_paths(["/cart"]).expect("a pattern");
    assert!(publisher.set_check(strict.clone(), day(2)));
    assert_ne!(rules(&publisher), before);
    assert!(!publisher.set_check(strict.clone(), day(2)));
    let mut nothing = self::publisher();
    assert!(!nothing.set_check(strict, day(1)), "nothing is live");
}

#[test]
fn a_restart_falls_back_on_the_last_accepted_version() {
    for candidate in [broken(RejectionKind::Missing), holds(SHUT)] {
        let versions = accepted(&[OTHER, OPEN]);
        let mut publisher = publisher_with(Gate::new(), Duration::ZERO, versions, WasLive::Current);
        let (outcome, restored) = publisher.start(candidate, day(9));
        assert_eq!(restored.map(|last| (last.hash(), last.since)), Some((hash(OPEN), day(2))));
        let (ReloadOutcome::Kept { live, .. } | ReloadOutcome::Gated { live, .. }) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!((live, publisher.live()), (Some(hash(OPEN)), Some(hash(OPEN))));
        assert_eq!(publisher.versions.before().map(AcceptedVersion::hash), Some(hash(OTHER)));
    }
    let mut publisher = publisher();
    let (outcome, restored) = publisher.start(broken(RejectionKind::Missing), day(9));
    assert!(matches!(outcome, ReloadOutcome::Kept { live: None, .. }) && restored.is_none());
}

#[test]
fn a_first_start_falls_back_on_the_baseline_of_the_gate() {
    for candidate in [broken(RejectionKind::Missing), holds(SHUT)] {
        let gate = Gate::new().baseline(RobotsTxt::parse(OPEN.as_bytes()));
        let mut publisher = publisher_with(gate, Duration::ZERO, AcceptedVersions::default(), WasLive::Current);
        let (outcome, restored) = publisher.start(candidate, day(9));
        assert_eq!(restored.map(|last| (last.hash(), last.since)), Some((hash(OPEN), day(9))));
        let (ReloadOutcome::Kept { live, .. } | ReloadOutcome::Gated { live, .. }) = &outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!((*live, publisher.live()), (Some(hash(OPEN)), Some(hash(OPEN))));
        assert_eq!(publisher.pending.as_ref().is_some(), matches!(outcome, ReloadOutcome::Gated { .. }));
        assert!(publisher.take_unsaved().is_some());
        // A pending version goes live when it is accepted.
        if let Some(pending) = publisher.pending.as_ref().map(Pending::hash) {
            let prefix = pending.to_string().parse().expect("a hash");
            assert_published(&publisher.accept(&prefix, day(9)).expect("it waits"), SHUT);
        }
    }
}

#[test]
fn a_version_that_was_live_before_a_restart_passes_the_gate_without_its_saved_bytes() {
    let was_live = WasLive::Other(hash(SHUT), day(3));
    let mut publisher = publisher_with(Gate::new(), Duration::ZERO, accepted(&[OPEN]), was_live);
    assert_published(&publisher.start(holds(SHUT), day(9)).0, SHUT);
    assert_eq!(publisher.was_live, WasLive::Current);
}

#[test]
fn the_grace_period_ends_exactly_when_the_newest_rule_is_old_enough() {
    let nanosecond = Duration::from_nanos(1);
    for (now, is_running) in [(day(6) - nanosecond, true), (day(6), false), (day(6) + nanosecond, false)] {
        let versions = accepted(&[OPEN, OTHER]);
        let mut publisher = publisher_with(Gate::open(), 4 * DAY, versions, WasLive::Current);
        let _ = publisher.start(holds(OTHER), now);
        assert_eq!(publisher.grace.running.as_ref().map(|grace| grace.end()), is_running.then(|| day(6)));
    }
    let mut publisher = with_open();
    let _ = publisher.consider(holds(OTHER), day(1));
    assert!(publisher.grace.running.as_ref().is_none(), "no grace is set");
}

#[test]
fn a_version_is_compiled_only_once_for_the_grace_period() {
    let mut publisher = publisher_with(Gate::open(), 9 * DAY, AcceptedVersions::default(), WasLive::Unknown);
    let texts: Vec<String> = (1..=4).map(|number| format!("User-agent: *\nDisallow: /{number}\n")).collect();
    let mut before: Vec<(VersionHash, Arc<RuleSet>)> = Vec::new();
    for (number, text) in (1..).zip(&texts) {
        let _ = publisher.consider(holds(text), day(number));
        for (hash, rules) in &before {
            let again =
                publisher.grace.earlier.iter().find(|(again, _)| again == hash).expect("it is compared with still");
            assert!(Arc::ptr_eq(&again.1, rules));
        }
        before.clone_from(&publisher.grace.earlier);
    }
    assert_eq!(before.len(), 3);
}

fn dated(text: &str, modified: SystemTime) -> Candidate {
    Candidate::Version(Version::new(text.as_bytes(), &"it".into(), Some(modified)))
}

fn modified(publisher: &Publisher) -> Option<SystemTime> {
    publisher.content.as_ref().and_then(|content| content.modified)
}

#[test]
fn last_modified_advances_for_a_file_with_the_same_date_and_is_never_in_the_future() {
    let mut publisher = publisher();
    let _ = publisher.consider(dated(OPEN, day(5)), day(6));
    assert_eq!(modified(&publisher), Some(day(5)));
    let _ = publisher.consider(dated(OTHER, day(5)), day(7));
    assert_eq!(modified(&publisher), Some(day(7)), "a client that has the other by this date would keep it");
    let _ = publisher.consider(dated(OPEN, day(99)), day(8));
    assert_eq!(modified(&publisher), Some(day(8)));
}

#[test]
fn a_version_served_after_a_restart_has_no_earlier_last_modified_date() {
    let restarted = |before: &Publisher, candidate| {
        let mut publisher = publisher_with(Gate::open(), Duration::ZERO, before.versions.clone(), WasLive::Current);
        let _ = publisher.start(candidate, day(9));
        (publisher.live(), modified(&publisher))
    };
    let mut publisher = publisher();
    let _ = publisher.consider(dated(OPEN, day(5)), day(6));
    let _ = publisher.consider(dated(OTHER, day(4)), day(7));
    assert_eq!(restarted(&publisher, dated(OTHER, day(4))), (Some(hash(OTHER)), Some(day(7))));
    // If the file was touched since then, its version gets the later date.
    assert_eq!(restarted(&publisher, dated(OTHER, day(8))), (Some(hash(OTHER)), Some(day(8))));
    let _ = publisher.roll_back(day(8)).expect("one was before");
    assert_eq!(restarted(&publisher, dated(OTHER, day(4))), (Some(hash(OPEN)), Some(day(8))));
}
