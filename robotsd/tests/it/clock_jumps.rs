//! Changes the clock while robotsd runs: forwards, backwards, even to before 1970. robotsd must not
//! panic, hang or turn enforcement on by itself.
//!
//! Requires libfaketime (Debian: `faketime`), and is skipped without it.

use super::board_week::Clock;
use super::programs::skip;
use super::start::faketime;
use crate::harness::*;

const DAY: i64 = 86400;

/// How far ahead the clock is in each step: days, years, before 1970, and correct again.
const JUMPS: [i64; 9] =
    [DAY, 10 * DAY, -10 * DAY, 300 * DAY, -1095 * DAY, 700 * DAY, -40 * 365 * DAY, -60 * 365 * DAY, 0];

#[test]
fn a_clock_jump_does_not_turn_enforcement_on_or_prolong_a_grace_period() {
    let Some(library) = faketime() else { return skip("libfaketime") };
    let config = Config::refusing().keys("state_dir = \"state\"\ngrace = \"48h\"").admin_socket();
    let site = "root = \"pages\"\nrobots.path = \"robots.txt\"\nmodes = { \"agent:bingbot\" = { mode = \"off\", until = 2199-12-31 } }";
    let tables = "[board]\nsees_all = true\n[log]\naccess = \"combined\"\naccess_path = \"access.log\"";
    let config = config.site("shop", site).tables(tables).file("pages/a.html", "a page");
    let old = "User-agent: GPTBot\nDisallow: /private/\n";
    let folder = config.robots(old).folder();
    let clock = Clock { library, file: folder.at("clock") };
    clock.set(0);
    let mut running = clock.start(&folder);
    let status = |key: &str| folder.with_config(&["status", "--json"]).json()["sites"][0][key].clone();
    let is_served = |running: &Running| {
        assert_eq!(running.get("/a.html", FIREFOX).status, 200);
        assert_eq!(running.get("/robots.txt", GPTBOT).status, 200);
    };
    let now = |ahead: i64| {
        let time = Duration::from_secs(ahead.unsigned_abs());
        if ahead < 0 { SystemTime::now() - time } else { SystemTime::now() + time }
    };

    // The grace period of the first version has ended, and the switch is off.
    clock.set(3 * DAY);
    wait_until("the end of the grace", || running.get("/private/x", GPTBOT).status == 403);
    folder.with_config(&["enforce", "off"]).succeeded();
    for ahead in JUMPS {
        clock.set(ahead);
        is_served(&running);
        assert_eq!(running.get("/private/x", GPTBOT).status, 404, "{ahead}: the switch is off");
        assert_eq!(status("enforcement"), "off", "{ahead}");
    }
    running.kill();
    clock.set(-400 * DAY);
    let mut running = clock.start(&folder);
    assert_eq!(status("enforcement"), "off", "after a restart too");
    folder.with_config(&["enforce", "on"]).succeeded();

    // A version goes live while the clock is years ahead. Its grace period must have the configured
    // length.
    clock.set(9 * 365 * DAY);
    let new = "User-agent: GPTBot\nDisallow: /private/\nDisallow: /new/\n";
    folder.replace("robots.txt", new);
    wait_until("the new version", || running.get("/robots.txt", FIREFOX).body == new);
    for ahead in [0, -10 * DAY, 4000 * DAY, -4000 * DAY, 0] {
        clock.set(ahead);
        is_served(&running);
        let end = status("grace_end");
        let end = end.as_str().and_then(|end| humantime::parse_rfc3339(end).ok());
        let latest = now(ahead) + Duration::from_secs(48 * 3600 + 60);
        assert!(end.is_none_or(|end| end <= latest), "{ahead}: {end:?} is after {latest:?}");
        assert_eq!(status("enforcement"), "on", "{ahead}");
    }
    let history = folder.with_config(&["history", "shop"]).succeeded();
    assert!(history.contains("switched-off") || history.contains("off"), "{history}");
    assert_eq!(running.count("panic", |_| true), 0);
    running.end();
    // The counts must survive a restart.
    let mut running = clock.start(&folder);
    is_served(&running);
    assert_eq!(status("enforcement"), "on");
    wait_until("the board", || folder.with_config(&["board", "--json"]).json()["sites"][0]["site"] == "shop");
    running.end();
    assert_eq!(running.count("panic", |_| true), 0);
}
