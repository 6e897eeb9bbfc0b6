//! New processes that die: while they open everything, right after they serve, and while the process before drains.

use std::net::{SocketAddr, TcpStream};

use super::{ASK, LONG_DRAIN, ROBOTS, Upgraded, disallowed};
use crate::harness::*;

/// A connection that the process before keeps for half the time of its drain, because it has served a request.
pub(super) fn held(upgraded: &Upgraded) -> Kept {
    let mut held = Kept::open(upgraded.running.address, "a");
    assert_eq!(held.get("/a.html", GPTBOT).0, 200);
    held
}

/// A request that has been sent.
pub(super) fn sent(address: SocketAddr) -> TcpStream {
    crate::harness::sent(address, ASK)
}

/// Waits until the process before serves again.
fn serves_again(upgraded: &Upgraded) {
    let is_it = |line: &Value| line["level"] == "error" && message(line).ends_with("serves again");
    upgraded.running.wait_for_event("upgrade", is_it);
}

fn causes(upgraded: &Upgraded) -> Vec<String> {
    let history = upgraded.json(&["history", "shop"]);
    history["entries"].as_array().unwrap().iter().map(|entry| entry["cause"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn connections_that_wait_for_a_process_that_dies_are_answered_by_the_one_before() {
    let upgraded = Upgraded::start(LONG_DRAIN);
    let before = upgraded.process();
    let held = held(&upgraded);
    upgraded.upgraded();
    let new = upgraded.process();
    assert_ne!(new, before);
    // It accepts nothing more, so what connects from now on waits in the queue of the kernel.
    stop(new);
    let waiting: Vec<_> = (0..32).map(|_| sent(upgraded.running.address)).collect();
    signal("KILL", new);
    for stream in waiting {
        assert_eq!(Answer::parse(&rest(stream)).status, 200);
    }
    serves_again(&upgraded);
    assert_eq!(upgraded.process(), before);
    let status = upgraded.json(&["status"]);
    assert_eq!((&status["state"], &status["upgrade"]["state"]), (&"serving".into(), &"failed".into()), "{status}");
    assert_eq!(status["troubles"], json!([]));
    drop(held);
    // It goes on as any process does: by another upgrade, and to the end.
    upgraded.upgraded();
    wait_until("the end of the process before", || !is_alive(before));
    let last = upgraded.process();
    signal("TERM", last);
    wait_until("the end of the last process", || !is_alive(last));
    assert!(!upgraded.path("admin.sock").exists());
}

#[test]
fn what_the_new_process_wrote_before_it_died_holds() {
    let upgraded = Upgraded::start(LONG_DRAIN);
    let before = upgraded.process();
    assert_eq!(upgraded.get("/private/x"), 403);
    let _held = held(&upgraded);
    upgraded.upgraded();
    let new = upgraded.process();
    // The operator rolls a version back, and turns enforcement off.
    upgraded.folder.replace("robots.txt", format!("{ROBOTS}Disallow: /more/\n"));
    upgraded.command(&["reload"]);
    assert_eq!(upgraded.get("/more/"), 403);
    upgraded.command(&["rollback", "shop"]).succeeded();
    upgraded.command(&["enforce", "off", "--site", "shop"]).succeeded();
    let disallowed_before = disallowed(&upgraded);
    signal("KILL", new);
    serves_again(&upgraded);
    assert_eq!(upgraded.process(), before);
    assert_eq!(upgraded.get("/private/x"), 200, "enforcement is off");
    assert_eq!(upgraded.folder.read("state/sites/shop/enforcement").trim(), "off");
    upgraded.command(&["enforce", "on", "--site", "shop"]).succeeded();
    assert_eq!((upgraded.get("/private/x"), upgraded.get("/more/")), (403, 404), "the version before is live");
    let causes = causes(&upgraded);
    for cause in ["rollback", "switch"] {
        assert!(causes.iter().any(|found| found == cause), "no {cause} in {causes:?}");
    }
    // It publishes and counts again.
    upgraded.folder.replace("robots.txt", format!("{ROBOTS}Disallow: /other/\n"));
    wait_until("the version to go live", || upgraded.get("/other/") == 403);
    wait_until("the board", || disallowed(&upgraded) > disallowed_before);
    assert_eq!(upgraded.process(), before);
}

#[test]
fn a_process_that_serves_and_exits_at_once_is_followed_whatever_it_says() {
    let upgraded = Upgraded::start(LONG_DRAIN);
    let before = upgraded.process();
    for (then, status) in [("exit 1", "exit status: 1"), ("kill -ABRT $$", "signal: 6")] {
        let _held = held(&upgraded);
        upgraded.replace_program_by_one_that_only_says_so(then);
        upgraded.upgraded();
        upgraded.running.wait_for_event("upgrade", |line| {
            let message = message(line);
            line["level"] == "error" && message.contains(status) && message.ends_with("this process serves again")
        });
        assert_eq!(upgraded.process(), before);
        assert_eq!(upgraded.get("/private/x"), 403);
    }
    upgraded.restore_program();
    upgraded.upgraded();
}

#[test]
fn a_process_that_ends_as_it_should_is_not_followed() {
    let upgraded = Upgraded::start(LONG_DRAIN);
    let (before, address) = (upgraded.process(), upgraded.running.address);
    let mut held = held(&upgraded);
    upgraded.upgraded();
    let new = upgraded.process();
    signal("TERM", new);
    wait_until("the end of the new process", || !is_alive(new));
    // The one before is still there for its client, and neither its port nor its admin interface takes anybody in.
    wait_until("a closed port", || TcpStream::connect(address).is_err());
    assert!(is_alive(before));
    assert!(!upgraded.path("admin.sock").exists());
    assert_eq!(upgraded.command(&["status"]).code, Some(2));
    assert_eq!(held.get("/a.html", GPTBOT).0, 200);
    wait_until("the end of the process before", || !is_alive(before));
}

#[test]
fn a_process_that_another_has_followed_is_not_followed_by_the_first() {
    let upgraded = Upgraded::start(LONG_DRAIN);
    let (first, _held) = (upgraded.process(), held(&upgraded));
    upgraded.upgraded();
    let (second, _held_too) = (upgraded.process(), held(&upgraded));
    upgraded.upgraded();
    let third = upgraded.process();
    signal("KILL", second);
    wait_until("the death of the second", || !is_alive(second));
    assert!(is_alive(first));
    for _ in 0..20 {
        assert_eq!((upgraded.get("/private/x"), upgraded.process()), (403, third));
    }
    // Now no process is left that watches: the first lets go as well.
    signal("KILL", third);
    let address = upgraded.running.address;
    wait_until("a closed port", || TcpStream::connect(address).is_err());
    assert_eq!(upgraded.command(&["status"]).code, Some(2));
    assert!(!upgraded.running.has_event("upgrade", |line| line["level"] == "error"));
}
