//! The state that is kept across restarts, and sites whose state is damaged or read-only.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use tower_robots::internals::Condition;
use tower_robots::live::{Cause, Enforcement, Gate, KillSwitch, LiveRobots, ProblemKind, ReloadOutcomeKind, StateDir};
use tower_robots::policy::{Action, Mode, Policy, Reason, RequestFacts};
use tower_robots::rules::RequestPath;
use tower_robots::source::LiveBuilder;

use crate::waiting::{replace_dated, served};

const GPTBOT: &[u8] = b"Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)";
const OPEN: &str = "User-agent: *\nDisallow: /cart\n";
const STAGING: &str = "User-agent: *\nDisallow: /\n";

struct Site {
    folder: TempDir,
    /// Seconds since a day in 2026.
    now: Arc<AtomicU64>,
}

impl Site {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), now: Arc::default() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// Returns the site's own folder.
    fn own(&self) -> PathBuf {
        self.path().join("sites/shop")
    }

    fn state(&self) -> StateDir {
        StateDir::open(self.path()).unwrap()
    }

    fn builder(&self, text: &str) -> LiveBuilder<Arc<[u8]>> {
        let now = self.now.clone();
        LiveRobots::text(text)
            .gate(Gate::new())
            .policy(Policy::builder().mode(Mode::Refuse).build())
            .clock(move || start() + Duration::from_secs(now.load(Ordering::SeqCst)))
    }

    fn open(&self, text: &str) -> LiveRobots {
        self.builder(text).state(&self.state(), "shop").open().unwrap()
    }

    fn pass(&self, hours: u64) {
        self.now.fetch_add(3600 * hours, Ordering::SeqCst);
    }
}

fn start() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000)
}

fn decide(live: &LiveRobots, target: &str) -> (Action, Reason) {
    live.with(|snapshot| {
        let agents = snapshot.content.as_ref().unwrap().agents(GPTBOT);
        let path = RequestPath::new(target.as_bytes());
        let decision = snapshot.decide(&agents, RequestFacts::new("GET", &path));
        (decision.action, decision.reason)
    })
}

/// The end of a file's name, and a function that damages the file.
type Damage = (&'static str, fn(&Path));

const REFUSED: (Action, Reason) = (Action::Refuse, Reason::Disallowed);
const IN_GRACE: (Action, Reason) = (Action::Pass, Reason::Grace);
const SWITCHED_OFF: (Action, Reason) = (Action::Pass, Reason::KillSwitch);

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn the_kill_switch_allows_every_request_immediately_and_survives_a_restart() {
    let site = Site::new();
    let state = site.state();
    let live = site.builder(OPEN).state(&state, "shop").open().unwrap();
    let other = site.builder(OPEN).state(&state, "other").open().unwrap();
    assert_eq!(decide(&live, "/cart"), REFUSED);
    live.set_enforcement(Enforcement::Off).unwrap();
    assert_eq!((decide(&live, "/cart"), decide(&other, "/cart")), (SWITCHED_OFF, REFUSED));
    assert_eq!(live.status().enforcement, Enforcement::Off);
    assert_eq!(served(&live), OPEN, "the file is served all the same");
    drop((live, other, state));

    let state = site.state();
    let live = site.builder(OPEN).state(&state, "shop").open().unwrap();
    let other = site.builder(OPEN).state(&state, "other").open().unwrap();
    assert_eq!((decide(&live, "/cart"), decide(&other, "/cart")), (SWITCHED_OFF, REFUSED));
    live.set_enforcement(Enforcement::On).unwrap();
    state.set_enforcement(Enforcement::Off).unwrap();
    assert_eq!((decide(&live, "/cart"), decide(&other, "/cart")), (SWITCHED_OFF, SWITCHED_OFF));
    let late = site.builder(OPEN).state(&state, "late").open().unwrap();
    assert_eq!(decide(&late, "/cart"), SWITCHED_OFF);
    drop((live, other, late, state));

    let state = site.state();
    assert_eq!(state.enforcement(), Enforcement::Off);
    let live = site.builder(OPEN).state(&state, "shop").open().unwrap();
    assert_eq!(decide(&live, "/cart"), SWITCHED_OFF);
    state.set_enforcement(Enforcement::On).unwrap();
    assert_eq!(decide(&live, "/cart"), REFUSED);
}

#[test]
fn the_kill_switch_takes_effect_during_a_reload() {
    let (started, has_started) = std::sync::mpsc::channel();
    let (finish, may_finish) = std::sync::mpsc::channel::<()>();
    let may_finish = std::sync::Mutex::new(may_finish);
    let live = LiveRobots::text(OPEN)
        .policy(Policy::builder().mode(Mode::Refuse).build())
        .on_reload(move |reload, _| {
            if reload.outcome.kind() == ReloadOutcomeKind::Unchanged {
                started.send(()).unwrap();
                let _ = may_finish.lock().unwrap().recv();
            }
        })
        .open()
        .unwrap();
    let reloading = std::thread::spawn({
        let live = live.clone();
        move || live.reload_blocking()
    });
    has_started.recv().unwrap();
    live.set_enforcement(Enforcement::Off).unwrap();
    assert_eq!(decide(&live, "/cart"), SWITCHED_OFF);
    assert_eq!(live.status().enforcement, Enforcement::Off);
    finish.send(()).unwrap();
    let _ = reloading.join().unwrap();
}

#[test]
fn newly_disallowed_requests_are_only_observed_until_the_grace_period_ends() {
    let day = Duration::from_secs(86400);
    let site = Site::new();
    let open = |text: &str| site.builder(text).grace(day).state(&site.state(), "shop").open().unwrap();
    let live = open("User-agent: *\nDisallow: /old\nDisallow: /shop/\nAllow: /shop/open\n");
    assert_eq!(decide(&live, "/old"), IN_GRACE, "the age of the first rules is unknown");
    assert_eq!(live.status().grace_end, Some(start() + day));
    site.pass(24);
    assert_eq!(decide(&live, "/old"), REFUSED);
    assert_eq!(live.status().grace_end, None);
    drop(live);

    let tightened = "User-agent: *\nDisallow: /old\nDisallow: /shop/\nDisallow: /new\n";
    let live = open(tightened);
    for (target, now) in [("/old", REFUSED), ("/shop/x", REFUSED), ("/new", IN_GRACE), ("/shop/open", IN_GRACE)] {
        assert_eq!(decide(&live, target), now, "{target}");
    }
    assert_eq!(decide(&live, "/x"), (Action::Pass, Reason::Allowed));
    drop(live);

    // The new rules are removed and restored, but their first version is still known.
    site.pass(10);
    drop(open("User-agent: *\nDisallow: /old\n"));
    site.pass(13);
    let live = open(tightened);
    assert_eq!(decide(&live, "/new"), IN_GRACE);
    assert_eq!(live.status().grace_end, Some(start() + 2 * day));
    site.pass(1);
    assert_eq!(decide(&live, "/new"), REFUSED);
    live.set_policy(Policy::builder().mode(Mode::Observe).build());
    assert_eq!(decide(&live, "/new"), (Action::Pass, Reason::Observed));
}

#[test]
fn damaged_state_is_reported_and_ignored() {
    let damages: [Damage; 6] = [
        ("state.json", |path| fs::write(path, "{\"format\":1,").unwrap()),
        ("state.json", |path| fs::write(path, "{\"format\":99,\"versions\":[],\"pending\":null}").unwrap()),
        ("state.json", |path| fs::write(path, vec![0; 10_000]).unwrap()),
        ("state.json", |path| {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        }),
        ("txt", |path| fs::write(path, STAGING).unwrap()),
        ("txt", |path| fs::remove_file(path).unwrap()),
    ];
    for (name, damage) in damages {
        let site = Site::new();
        drop(site.open(OPEN));
        let file = files(&site.own()).into_iter().find(|file| file.to_string_lossy().ends_with(name)).unwrap();
        damage(&file);
        fs::write(site.own().join("history.jsonl"), "no json\n{}\n[1]\n").unwrap();
        fs::write(site.own().join("foreign"), "not ours").unwrap();
        let live = site.open(OPEN);
        let problem = live.status().state_problems[0].text.clone();
        assert!(problem.contains(site.own().to_str().unwrap()), "{problem}");
        assert_eq!((served(&live).as_str(), live.status().condition()), (OPEN, Condition::Live));
        assert_eq!(live.history().len(), 1, "its own start");
        assert!(site.own().join("foreign").exists());
    }
}

#[test]
fn a_saved_version_with_damaged_bytes_is_reported_and_an_older_one_is_served() {
    let newer = "User-agent: *\nDisallow: /cart\nDisallow: /account\n";
    let hash = tower_robots::live::VersionHash::of(newer.as_bytes());
    for with_record in [true, false] {
        let site = Site::new();
        drop(site.open(OPEN));
        drop(site.open(newer));
        let digits = hash.to_string();
        // The file is truncated, as on a full disk.
        fs::write(site.own().join(format!("{}.txt", digits.trim_start_matches("sha256:"))), &newer[..20]).unwrap();
        if !with_record {
            fs::remove_file(site.own().join("live")).unwrap();
        }
        let live = site.open("<html>");
        assert_eq!((served(&live).as_str(), live.status().condition()), (OPEN, Condition::LastGood));
        let older = format!("; the later version {} (accepted ", hash.short());
        assert!(live.status().state_problem(ProblemKind::Behind).unwrap().contains(&older), "{:?}", live.status());
    }
    // Old releases wrote a state without the record `live`.
    let site = Site::new();
    drop(site.open(OPEN));
    fs::remove_file(site.own().join("live")).unwrap();
    let live = site.open("<html>");
    let problem = live.status().state_problem(ProblemKind::Behind).unwrap().to_owned();
    assert!(problem.ends_with(" is missing from the state directory, and may have been a later one"), "{problem}");
    drop(live);
    assert_eq!(site.open("<html>").status().state_problem(ProblemKind::Behind), None, "there is one now");
}

#[test]
fn a_version_that_replaces_another_at_a_restart_has_a_later_date() {
    let site = Site::new();
    let path = site.folder.path().join("robots.txt");
    let open = |text: &str, age: u64| {
        let modified = SystemTime::now() - Duration::from_secs(age);
        replace_dated(&path, text, modified);
        let live = LiveRobots::file(&path).state(&site.state(), "shop").open().unwrap();
        (modified, live.with(|snapshot| snapshot.content.as_ref().unwrap().modified.unwrap()))
    };
    let (newer, shown) = open(OPEN, 100);
    assert_eq!(shown, newer);
    let (same, shown) = open(OPEN, 100);
    assert_eq!(shown, same, "the same version keeps its date");
    let (_, shown) = open("User-agent: *\nDisallow: /account\n", 9000);
    assert!(shown > newer, "an older file that was put back");
}

#[test]
fn a_flush_writes_the_state_of_many_sites() {
    let site = Site::new();
    let state = site.state();
    let lives: Vec<_> =
        (0..50).map(|number| site.builder(OPEN).state(&state, format!("shop{number}")).open().unwrap()).collect();
    state.flush();
    for number in 0..50 {
        let own = site.path().join(format!("sites/shop{number}"));
        assert!(own.join("state.json").is_file() && own.join("history.jsonl").is_file(), "{number}");
    }
    drop(lives);
}

#[test]
fn a_truncated_history_file_is_continued_after_its_last_complete_entry() {
    let site = Site::new();
    drop(site.open(OPEN));
    drop(site.open(OPEN));
    let path = site.own().join("history.jsonl");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 20]).unwrap();
    assert_eq!(site.open(OPEN).history().len(), 2);
    assert_eq!(site.open(OPEN).history().len(), 3);
}

#[test]
fn a_site_and_its_switches_work_with_an_unwritable_state_directory() {
    let site = Site::new();
    // Root may write anywhere, but not even root can create a folder inside a file.
    fs::write(site.path(), "a file").unwrap();
    let state = site.state();
    assert!(state.problems()[0].contains("the state directory cannot be written: "));
    let live = site.builder(OPEN).state(&state, "shop").open().unwrap();
    state.flush();
    assert!(!live.status().state_problems.is_empty());
    assert_eq!(state.enforcement(), Enforcement::On, "there is no switch, turned or not");
    live.set_enforcement(Enforcement::Off).unwrap_err();
    assert_eq!(decide(&live, "/cart"), SWITCHED_OFF, "done all the same");
    live.set_enforcement(Enforcement::On).unwrap_err();
    state.set_enforcement(Enforcement::Off).unwrap_err();
    assert_eq!(decide(&live, "/cart"), SWITCHED_OFF);
}

#[test]
fn the_history_is_bounded_in_memory_and_on_disk() {
    let site = Site::new();
    let path = site.folder.path().join("robots.txt");
    let rules = |round: usize| format!("User-agent: *\nDisallow: /cart\nDisallow: /{round}/{}\n", "x".repeat(400));
    // The file has an old date, so that reloads do not wait for the file to be complete.
    let write = |text: String| replace_dated(&path, text, start());
    write(rules(0));
    let live =
        LiveRobots::file(&path).state(&site.state(), "shop").poll_every(Duration::from_secs(3600)).open().unwrap();
    for round in 1..300 {
        write(if round % 2 == 0 { rules(round) } else { "<html>".to_owned() });
        let _ = live.reload_blocking();
    }
    assert_eq!(live.history().len(), LiveRobots::MAX_HISTORY);
    drop(live);
    assert!(fs::metadata(site.own().join("history.jsonl")).unwrap().len() < 140 << 10);
    assert!(files(&site.own()).len() < 16, "{:?}", files(&site.own()));
    let live = LiveRobots::file(&path).state(&site.state(), "shop").open().unwrap();
    assert_eq!(live.history().len(), LiveRobots::MAX_HISTORY);
    assert!(live.rollback().is_ok(), "and the version before is known");
}

#[test]
fn the_last_accepted_version_is_live_after_a_restart_if_the_source_fails() {
    let site = Site::new();
    let path = site.folder.path().join("robots.txt");
    fs::write(&path, OPEN).unwrap();
    let open = || LiveRobots::file(&path).state(&site.state(), "shop").open();
    drop(open().unwrap());
    fs::write(&path, "").unwrap();
    let live = open().unwrap();
    assert_eq!((served(&live).as_str(), live.status().condition()), (OPEN, Condition::LastGood));
    drop(live);
    fs::remove_file(&path).unwrap();
    assert_eq!(served(&open().unwrap()), OPEN);
    let elsewhere = LiveRobots::file(&path).state(&site.state(), "another site").open();
    assert!(elsewhere.is_err(), "what one site accepted is no other's");
}

#[test]
fn kill_switch_changes_are_recorded_and_the_status_shows_which_switch_is_off() {
    let site = Site::new();
    let state = site.state();
    let live = site.builder(OPEN).state(&state, "shop").open().unwrap();
    live.set_enforcement(Enforcement::Off).unwrap();
    live.set_enforcement(Enforcement::Off).unwrap();
    assert_eq!((live.status().switch, live.status().enforcement), (Enforcement::Off, Enforcement::Off));
    state.set_enforcement(Enforcement::Off).unwrap();
    live.set_enforcement(Enforcement::On).unwrap();
    assert_eq!((live.status().switch, live.status().enforcement), (Enforcement::On, Enforcement::Off));
    state.set_enforcement(Enforcement::On).unwrap();
    drop((live, state));
    let live = site.open(OPEN);
    let turns: Vec<_> = live
        .history()
        .iter()
        .filter(|entry| entry.cause == Cause::Switch)
        .map(|entry| (entry.outcome, entry.hash == live.status().live, entry.detail.to_owned()))
        .collect();
    let (own, all) = ("enforcement of this site is switched", "enforcement of every site is switched");
    let want = [
        (ReloadOutcomeKind::SwitchedOff, true, format!("{own} off")),
        (ReloadOutcomeKind::SwitchedOff, true, format!("{all} off")),
        (ReloadOutcomeKind::SwitchedOn, true, format!("{own} on")),
        (ReloadOutcomeKind::SwitchedOn, true, format!("{all} on")),
    ];
    assert_eq!(turns, want);
}

/// Returns the switch changes in the history.
fn turns(live: &LiveRobots) -> Vec<(ReloadOutcomeKind, String)> {
    let turns = live.history().into_iter().filter(|entry| entry.cause == Cause::Switch);
    turns.map(|entry| (entry.outcome, entry.detail)).collect()
}

#[test]
fn an_unreadable_switch_is_recorded_once_with_the_reason_and_the_later_repair() {
    for (file, of) in [("enforcement", "every site"), ("sites/shop/enforcement", "this site")] {
        let site = Site::new();
        let path = site.path().join(file);
        fs::create_dir_all(site.own()).unwrap();
        fs::write(&path, "offf").unwrap();
        let why = format!(
            "{}: the file contains neither \"on\" nor \"off\"; enforcement is treated as \"off\"",
            path.display()
        );
        let off = (ReloadOutcomeKind::SwitchedOff, format!("enforcement of {of} is switched off: {why}"));
        // At the second start, the change is already in the history.
        for _ in 0..2 {
            let live = site.open(OPEN);
            assert_eq!((turns(&live), live.status().enforcement), (vec![off.clone()], Enforcement::Off));
        }
        // The file is repaired manually while no process runs.
        fs::write(&path, "on\n").unwrap();
        let found_on = (ReloadOutcomeKind::SwitchedOn, "enforcement of this site is switched on".to_owned());
        assert_eq!(turns(&site.open(OPEN)), [off.clone(), found_on.clone()]);
        // An operator turns the switch on.
        fs::write(&path, "offf").unwrap();
        let state = site.state();
        let live = site.builder(OPEN).state(&state, "shop").open().unwrap();
        state.set_enforcement(Enforcement::On).unwrap();
        live.set_enforcement(Enforcement::On).unwrap();
        let on = (ReloadOutcomeKind::SwitchedOn, format!("enforcement of {of} is switched on"));
        assert_eq!(turns(&live), [off.clone(), found_on, off, on]);
    }
}

#[test]
fn a_site_records_the_reason_of_a_switch_until_an_operator_sets_the_switch() {
    let (switch, why) = (KillSwitch::default(), "nothing is known");
    switch.set_enforcement_because(Enforcement::Off, Some(why.to_owned()));
    let live = LiveRobots::text(OPEN).additional_kill_switch(&switch).open().unwrap();
    switch.set_enforcement(Enforcement::On);
    switch.set_enforcement_because(Enforcement::Off, Some(why.to_owned()));
    let off = (ReloadOutcomeKind::SwitchedOff, format!("enforcement of every site is switched off: {why}"));
    let on = (ReloadOutcomeKind::SwitchedOn, "enforcement of every site is switched on".to_owned());
    assert_eq!(turns(&live), [off.clone(), on, off]);
    // An operator turns the switch off again. The history does not change, but a site that is
    // opened later gets no reason.
    switch.set_enforcement(Enforcement::Off);
    assert_eq!(turns(&live).len(), 3);
    let late = LiveRobots::text(OPEN).additional_kill_switch(&switch).open().unwrap();
    let by_operator = (ReloadOutcomeKind::SwitchedOff, "enforcement of every site is switched off".to_owned());
    assert_eq!(turns(&late), [by_operator]);
}

#[test]
fn each_of_many_additional_kill_switches_turns_enforcement_off() {
    let site = Site::new();
    let switches: Vec<_> = (0..62).map(|_| KillSwitch::default()).collect();
    let builder = site.builder(OPEN).state(&site.state(), "shop").kill_switch(&KillSwitch::default());
    let live = switches.iter().fold(builder, |builder, switch| builder.additional_kill_switch(switch)).open().unwrap();
    for switch in switches {
        switch.set_enforcement(Enforcement::Off);
        assert_eq!(live.status().enforcement, Enforcement::Off);
        switch.set_enforcement(Enforcement::On);
        assert_eq!(live.status().enforcement, Enforcement::On);
    }
}

#[test]
fn history_entries_dated_in_the_future_are_kept_and_reported() {
    for (ahead, is_problem) in [(Duration::from_secs(1800), false), (Duration::from_secs(86400), true)] {
        let site = Site::new();
        let later = SystemTime::now() + ahead;
        drop(LiveRobots::text(OPEN).clock(move || later).state(&site.state(), "shop").open().unwrap());
        // At the second start, the last entry is from the first start.
        for is_problem in [is_problem, false] {
            let state = site.state();
            assert_eq!(state.clock_problem(), None, "no site is open");
            let live = LiveRobots::text(OPEN).state(&state, "shop").open().unwrap();
            let shown = live.history()[0].when;
            assert!(later.duration_since(shown).unwrap() < Duration::from_millis(1), "{shown:?} {later:?}");
            let problems = state.problems();
            assert_eq!(problems.len(), usize::from(is_problem), "{problems:?}");
            for problem in problems {
                assert!(
                    problem.starts_with("the clock shows ")
                        && problem.contains(", but the state directory contains entries of ")
                );
                assert!(
                    problem.ends_with(": the clock is wrong now, or was wrong when these entries were written"),
                    "{problem}"
                );
            }
        }
    }
}

#[test]
fn a_switch_changed_while_no_process_runs_takes_effect_at_the_start() {
    let site = Site::new();
    site.state().set_enforcement_of("shop", Enforcement::Off).unwrap();
    assert_eq!(site.state().site_names(), ["shop"]);
    let of = |name: &str| site.state().enforcement_of(name);
    assert_eq!((of("shop"), of("other")), (Enforcement::Off, Enforcement::On));
    let live = site.open(OPEN);
    assert_eq!(live.status().switch, Enforcement::Off);
    let found = (ReloadOutcomeKind::SwitchedOff, "enforcement of this site is switched off".to_owned());
    assert_eq!(turns(&live), [found]);
    drop(live);
    assert_eq!(site.state().enforcement(), Enforcement::On, "that of all sites is another");
}

#[test]
fn state_is_saved_and_restored_with_a_clock_before_1970() {
    let site = Site::new();
    let day = Duration::from_secs(86400);
    let now = SystemTime::UNIX_EPOCH - 1000 * day;
    let open = |text: &str| {
        let builder = site.builder(text).clock(move || now).grace(day);
        builder.state(&site.state(), "shop").open().unwrap()
    };
    drop(open(OPEN));
    let live = open("User-agent: *\nDisallow: /cart\nDisallow: /account\n");
    assert_eq!(live.status().since, now);
    assert_eq!(live.status().grace_end, Some(now + day));
    live.rollback().unwrap();
    drop(live);
    let live = open(OPEN);
    assert_eq!((live.status().since, live.status().state_problems), (now, vec![]));
    assert!(live.history().iter().all(|entry| entry.when == now), "{:?}", live.history());
    drop(live);
    let live = open("<html>");
    let said = live.status().last_reload.to_string();
    let want = "this version was accepted at a time before 1970, and according to the state directory, it was live before the restart";
    assert!(said.ends_with(want), "{said}");
}

#[test]
fn a_file_dated_before_1970_or_long_from_now_is_served() {
    let site = Site::new();
    let path = site.folder.path().join("robots.txt");
    let day = Duration::from_secs(86400);
    for moment in [SystemTime::UNIX_EPOCH - 3653 * day, SystemTime::UNIX_EPOCH + 4_000_000 * day] {
        fs::write(&path, OPEN).unwrap();
        // Some file systems do not support such dates. On all others, such dates used to cause a
        // panic.
        let _ = fs::File::options().write(true).open(&path).unwrap().set_modified(moment);
        let live = LiveRobots::file(&path).open().unwrap();
        assert_eq!(served(&live), OPEN);
        let dated = live.with(|snapshot| snapshot.content.as_ref().unwrap().modified);
        assert!(dated.is_none_or(|dated| dated >= SystemTime::UNIX_EPOCH && dated <= SystemTime::now()), "{dated:?}");
    }
}

#[test]
fn a_rollback_by_an_older_release_without_stamps_is_not_undone() {
    let newer = "User-agent: *\nDisallow: /cart\nDisallow: /account\n";
    let site = Site::new();
    drop(site.open(OPEN));
    drop(site.open(newer));
    // Simulates the state that a release without stamps wrote: the same versions, but no stamp.
    let path = site.own().join("state.json");
    let mut document: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let stamp = document["stamp"].as_u64().unwrap();
    document.as_object_mut().unwrap().remove("stamp");
    assert_eq!(document["versions"][1]["fate"], "accepted");
    document["versions"][1]["fate"] = "held".into();
    let millis = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    while millis(SystemTime::now()) <= u128::from(stamp) {
        std::thread::yield_now();
    }
    replace_dated(&path, document.to_string(), SystemTime::now());

    let live = site.open(newer);
    assert_eq!((served(&live).as_str(), live.status().condition()), (OPEN, Condition::Gated));
    assert_eq!(live.status().pending.as_ref().unwrap().to_string(), "this version was rolled back before");
    drop(live);
    assert_eq!(served(&site.open("<html>")), OPEN, "nor by the start after it");
}

#[test]
fn an_unwritable_live_record_is_reported_without_rewriting_the_state_file() {
    let site = Site::new();
    let state = site.state();
    let path = site.folder.path().join("robots.txt");
    // The file has an old date, so that the reload does not wait for the file to be complete.
    let write = |text: &str| replace_dated(&path, text, start());
    write(OPEN);
    let poll = Duration::from_secs(3600);
    let live = LiveRobots::file(&path).state(&state, "shop").poll_every(poll).open().unwrap();
    assert!(state.flush());
    let record = site.own().join("live");
    fs::remove_file(&record).unwrap();
    fs::create_dir(&record).unwrap();
    write("User-agent: *\nDisallow: /account\n");
    // The outcome is `Unchanged` if the watcher has read the file first.
    let outcome = live.reload_blocking().outcome.kind();
    assert!(matches!(outcome, ReloadOutcomeKind::Published | ReloadOutcomeKind::Unchanged), "{outcome:?}");
    assert!(!state.flush());
    let problem = live.status().state_problem(ProblemKind::Save).unwrap().to_owned();
    let want = format!("{}: the file cannot be written: ", record.display());
    assert!(problem.starts_with(&want), "{problem}");
    let effect = "; a restart needs this file if a later version cannot be saved; the write is retried";
    assert!(problem.ends_with(effect), "{problem}");
    let written = || fs::read_to_string(site.own().join("state.json")).unwrap();
    let before = written();
    assert!(before.contains(&live.status().live.unwrap().to_string()), "{before}");
    assert!(!state.flush());
    assert_eq!(written(), before, "its stamp is another each time it is written");
    assert_eq!(live.status().state_problem(ProblemKind::Save), Some(&*problem));
    fs::remove_dir(&record).unwrap();
    assert!(state.flush());
    assert_eq!(live.status().state_problems, []);
    assert!(record.is_file());
}

#[test]
fn a_read_only_state_directory_reads_the_saved_state_and_changes_no_file() {
    let site = Site::new();
    let state = site.state();
    let live = site.builder(OPEN).state(&state, "shop").open().unwrap();
    live.set_enforcement(Enforcement::Off).unwrap();
    assert!(state.flush());
    let files = || {
        let read =
            |folder: &Path| fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()).collect::<Vec<_>>();
        let files = [read(&site.path()), read(&site.own())].concat();
        files
            .into_iter()
            .filter(|path| path.is_file())
            .map(|path| (fs::read(&path).unwrap(), path))
            .collect::<BTreeSet<_>>()
    };
    let before = files();
    // Another handle has the directory open.
    let read_only = StateDir::read_only(site.path());
    assert_eq!((read_only.enforcement(), read_only.problems()), (Enforcement::On, Vec::new()));
    let shut = site.builder("User-agent: *\nDisallow: /\n").gate(Gate::new()).state(&read_only, "shop").open().unwrap();
    assert_eq!((shut.status().live, shut.status().switch), (live.status().live, Enforcement::Off));
    assert!(shut.status().pending.as_ref().is_some(), "{}", shut.status().last_reload);
    shut.set_enforcement(Enforcement::On).unwrap();
    read_only.set_enforcement(Enforcement::Off).unwrap();
    assert!(read_only.flush());
    drop((shut, read_only));
    assert_eq!(files(), before);
    // If the directory does not exist, it is not created.
    let nowhere = site.path().join("nowhere");
    let nothing = StateDir::read_only(&nowhere);
    drop(site.builder(OPEN).state(&nothing, "shop").open().unwrap());
    assert!(nothing.flush() && !nowhere.exists());
}

#[test]
fn an_unreadable_switch_is_reported_until_it_is_set() {
    let site = Site::new();
    fs::create_dir_all(site.path()).unwrap();
    fs::write(site.path().join("enforcement"), "offf").unwrap();
    let state = site.state();
    let problem = state.switch_problem().unwrap();
    assert!(
        problem.ends_with("the file contains neither \"on\" nor \"off\"; enforcement is treated as \"off\""),
        "{problem}"
    );
    assert_eq!((state.enforcement(), state.problems()), (Enforcement::Off, vec![problem]));
    state.set_enforcement(Enforcement::On).unwrap();
    assert_eq!((state.switch_problem(), state.problems()), (None, Vec::new()));
}
