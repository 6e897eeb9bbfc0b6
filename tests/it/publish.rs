//! Tests text that a caller publishes. The text is checked, is examined by the gate, and is
//! recorded like a changed file.

use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use tower_robots::internals::Condition;
use tower_robots::live::{Cause, Gate, LiveRobots, RejectionKind, ReloadOutcomeKind, StateDir, VersionHash};

use crate::waiting::{PATIENCE, body};

const OPEN: &str = "User-agent: *\nDisallow: /cart\n";
const MORE: &str = "User-agent: *\nDisallow: /cart\nDisallow: /drafts/\n";
const STAGING: &str = "User-agent: *\nDisallow: /\n";

fn hash(text: &str) -> VersionHash {
    VersionHash::of(text.as_bytes())
}

#[test]
fn published_text_stays_live_when_the_source_is_read_again() {
    let notices: Arc<Mutex<Vec<String>>> = Arc::default();
    let listener = notices.clone();
    let live = LiveRobots::text(OPEN)
        .on_reload(move |reload, _| listener.lock().unwrap().push(reload.to_string()))
        .open()
        .unwrap();
    let reload = live.publish_blocking(MORE).unwrap();
    assert_eq!((reload.cause, reload.outcome.kind()), (Cause::Publish, ReloadOutcomeKind::Published));
    assert_eq!(body(&live).as_deref(), Some(MORE));
    assert_eq!(live.publish_blocking(MORE).unwrap().outcome.kind(), ReloadOutcomeKind::Unchanged);
    assert_eq!(live.reload_blocking().outcome.kind(), ReloadOutcomeKind::Unchanged, "the source holds the new text");
    assert_eq!(body(&live).as_deref(), Some(MORE));
    let history: Vec<_> = live.history().iter().map(|entry| (entry.cause, entry.outcome)).collect();
    let want = [(Cause::Start, ReloadOutcomeKind::Published), (Cause::Publish, ReloadOutcomeKind::Published)];
    assert_eq!(history[..2], want);
    assert!(live.history()[1].effect.is_some(), "{:?}", live.history()[1]);
    assert_eq!(notices.lock().unwrap()[1], format!("inline: version {} is live", hash(MORE).short()));
    assert_eq!(live.rollback().unwrap().outcome.hash(), Some(hash(OPEN)));
    assert_eq!(body(&live).as_deref(), Some(OPEN));
}

#[test]
fn publishing_an_invalid_file_changes_nothing() {
    let live = LiveRobots::text(OPEN).open().unwrap();
    for (text, kind) in [
        (&b""[..], RejectionKind::Empty),
        (b"<!doctype html>", RejectionKind::Html),
        (b"Not Found", RejectionKind::NoField),
        (b"\xFF\xFEU\0s\0", RejectionKind::Binary),
        (&vec![b'#'; LiveRobots::MAX_FILE as usize + 1], RejectionKind::TooLarge),
    ] {
        let rejection = live.publish_blocking(text).unwrap_err();
        assert_eq!(rejection.kind, kind);
        assert_eq!(body(&live).as_deref(), Some(OPEN));
        assert_eq!(live.status().condition(), Condition::LastGood, "the status reports it");
        assert_eq!(live.history().last().unwrap().cause, Cause::Publish);
    }
    assert_eq!(live.reload_blocking().outcome.kind(), ReloadOutcomeKind::Unchanged, "the source holds what it held");
    assert_eq!(live.status().condition(), Condition::Live);
}

#[test]
fn a_refused_version_is_pending_and_accepted_by_its_hash() {
    let live = LiveRobots::text(OPEN).gate(Gate::new()).open().unwrap();
    let rejection = live.publish_blocking(STAGING).unwrap_err();
    assert_eq!(rejection.kind, RejectionKind::Gated);
    let waiting = rejection.pending.as_ref().unwrap().hash();
    assert_eq!(waiting, hash(STAGING));
    assert!(rejection.to_string().contains("is held until accepted: everyone is blocked"), "{rejection}");
    assert_eq!((body(&live).as_deref(), live.status().condition()), (Some(OPEN), Condition::Gated));
    assert_eq!(live.reload_blocking().outcome.kind(), ReloadOutcomeKind::Gated, "it goes on waiting");
    live.accept(&waiting.into()).unwrap();
    assert_eq!(body(&live).as_deref(), Some(STAGING));
    // A pending version is forgotten when the live version is published again.
    assert_eq!(live.publish_blocking(OPEN).unwrap_err().kind, RejectionKind::Gated, "it opens the site");
    live.publish_blocking(STAGING).unwrap();
    assert_eq!(live.status().pending.as_ref().map(|pending| pending.hash()), None);
}

#[test]
fn a_site_with_a_file_source_refuses_published_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("robots.txt");
    std::fs::write(&path, OPEN).unwrap();
    let live = LiveRobots::file(&path).open().unwrap();
    let rejection = live.publish_blocking(MORE).unwrap_err();
    assert_eq!(rejection.kind, RejectionKind::NotInline);
    let want = format!(
        "{}: this robots.txt is read from a source, so published text cannot replace it: change the source, or open the site with LiveRobots::text to publish text",
        path.display()
    );
    assert_eq!(rejection.to_string(), want);
    assert_eq!((body(&live).as_deref(), live.history().len()), (Some(OPEN), 1));
}

#[test]
fn a_listener_may_publish_and_concurrent_publishing_ends_with_one_version() {
    let folder = tempfile::tempdir().unwrap();
    let state = StateDir::open(folder.path()).unwrap();
    let (sender, receiver) = mpsc::channel();
    let (handle, listening) = mpsc::channel::<LiveRobots>();
    let listening = Mutex::new(Some(listening));
    let live = LiveRobots::text(OPEN)
        .state(&state, "shop")
        .on_reload(move |reload, _| {
            let first = (reload.cause == Cause::Publish).then(|| listening.lock().unwrap().take()).flatten();
            if let Some(live) = first.and_then(|handles| handles.recv().ok()) {
                sender.send(live.publish_blocking(MORE).map(|reload| reload.outcome.kind())).unwrap();
            }
        })
        .open()
        .unwrap();
    handle.send(live.clone()).unwrap();
    let publishing = live.clone();
    thread::spawn(move || publishing.publish_blocking(format!("{OPEN}# 1\n")).unwrap());
    let from_listener = receiver.recv_timeout(PATIENCE).expect("the listener waits for no lock");
    assert_eq!(from_listener.unwrap(), ReloadOutcomeKind::Published);
    thread::scope(|scope| {
        for number in 0..8 {
            let live = &live;
            scope.spawn(move || live.publish_blocking(format!("{OPEN}# {number}\n")).unwrap());
        }
    });
    let last = body(&live).unwrap();
    assert_eq!(live.reload_blocking().outcome.hash(), Some(hash(&last)), "the source holds what is live");
    assert!(state.flush());
    drop(live);
    let live = LiveRobots::text(OPEN).state(&state, "shop").open().unwrap();
    assert_eq!(live.rollback().unwrap().outcome.hash(), Some(hash(&last)), "what was published is remembered");
}
