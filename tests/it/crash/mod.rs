//! Tests every crash point of a state directory. A recording of file operations is cut after each
//! operation, and unsynced changes are lost in every allowed combination, up to a limit. The next
//! start finds each value in its old or its new state, never a mixture. An operator's decision is
//! durable once the call has returned, and no kill switch changes by itself.
//!
//! `CRASH_STATES=4096` tries that many states at every point, and `ROBOTSD_LONG` a few at every
//! point. By default only some points are tried.

mod errors;
mod failing;
mod file_system;
mod recording;
mod states;

use std::fs;
use std::path::Path;
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use tempfile::TempDir;
use tower_robots::agent::Registry;
use tower_robots::live::{Gate, LiveRobots, StateDir, VersionHash, WhenMissing};

use self::file_system::{Files, make_files};
use self::recording::{Operation, folder_inside, record};
use self::states::{Tried, Values, begin, end, most};

const BROKEN: &str = "<html>";
/// Number of states that are tried at each point by default.
const USUAL: usize = 4;

/// By default, one in this many points is tried, and each point at which a step is complete. A
/// planted bug is visible at only a few points, so more points are tried to find it.
const EVERY: usize = 20;
const EVERY_WITH_FAULT: usize = 5;

/// A registry with only two crawlers, so that comparing two versions is fast.
static REGISTRY: LazyLock<Arc<Registry>> = LazyLock::new(|| {
    let crawlers = ["Googlebot", "GPTBot"].map(|name| Registry::builtin().crawler(name).unwrap().clone());
    Arc::new(Registry::default().extended_with(crawlers).unwrap())
});

const STAGING: &str = "User-agent: *\nDisallow: /\n";

/// The values that depend on an operator's decisions about versions.
const VERSION: [&str; 3] = ["live", "pending", "with_source"];

/// The values that survive a kill, because each step ends with a flush.
const EVERYTHING: [&str; 6] = ["all", "shop", "closed", "live", "pending", "with_source"];

/// Returns the file with this number; each has a rule of its own.
fn text(number: usize) -> String {
    match number {
        1 => STAGING.to_owned(),
        _ => format!("User-agent: *\nDisallow: /{number}\n"),
    }
}

/// Creates a folder on a disk that syncs immediately, if there is one.
fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

fn open_site(state: &StateDir, text: &str) -> LiveRobots {
    let live = LiveRobots::text(text).registry(REGISTRY.clone()).when_missing(WhenMissing::Unavailable);
    live.gate(Gate::new()).state(state, "shop").open().unwrap()
}

/// Opens the site with a source that contains nothing usable.
fn open_broken(state: &StateDir, folder: &Path) -> LiveRobots {
    let path = folder.join("robots.txt");
    fs::write(&path, BROKEN).unwrap();
    let live = LiveRobots::file(path).poll_every(Duration::from_secs(3600)).registry(REGISTRY.clone());
    let live = live.when_missing(WhenMissing::Unavailable);
    live.gate(Gate::new()).state(state, "shop").open().unwrap()
}

fn values(state: &StateDir, live: &LiveRobots) -> Values {
    let status = live.status();
    let short = |hash: Option<VersionHash>| hash.map_or("none".to_owned(), |hash| hash.short().to_string());
    let pending = status.pending.as_ref().map(|pending| pending.hash());
    let values = [
        ("all", state.enforcement().to_string()),
        ("shop", status.switch.to_string()),
        ("closed", state.enforcement_of("closed").to_string()),
        ("live", short(status.live)),
        ("pending", short(pending)),
    ];
    values.map(|(key, value)| (key.to_owned(), value)).into()
}

/// Runs the actions of a site and the decisions of an operator, one per step.
fn publish_accept_roll_back_and_switch(folder: &Path) {
    let path = folder.join("state");
    let mut source = 2;
    begin();
    // Before the first start, there is no state.
    let on = ["all", "shop", "closed"].map(|key| (key, "on"));
    let none = ["live", "pending", "with_source"].map(|key| (key, "none"));
    let nothing = on.into_iter().chain(none).map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    end(&nothing, &EVERYTHING, &[]);
    begin();
    let step = |state: &StateDir, live: &LiveRobots, source: usize, synced: &[&str]| {
        let mut values = values(state, live);
        values.insert("source".to_owned(), source.to_string());
        values.insert("with_source".to_owned(), values["live"].clone());
        end(&values, &EVERYTHING, synced);
    };
    let mut state = StateDir::open(&path).unwrap();
    let mut live = open_site(&state, &text(source));
    assert!(state.flush());
    step(&state, &live, source, &[]);
    let everything = "publish 3,back,publish 4,all off,publish 1,accept,shop off,publish 5,accept,all off,all on,back,restart,\
                      closed off,publish 6,publish 7,shop on,publish 8,publish 9,publish 10,publish 11,publish 12,all off,publish 13,all on,\
                      publish 1,publish 14,closed on,history,shop off,shop on,hand over,publish 2,restart";
    for what in everything.split(',') {
        begin();
        let synced: &[&str] = match what.split_once(' ').unwrap_or((what, "")) {
            ("publish", number) => {
                source = number.parse().unwrap();
                let _ = live.publish_blocking(text(source));
                assert!(state.flush());
                // A pending version is synced, so that it does not go live at a restart.
                if live.status().pending.is_some() { &VERSION } else { &[] }
            }
            ("accept", _) => {
                let pending = live.status().pending.unwrap().hash();
                live.accept(&pending.into()).unwrap();
                &VERSION
            }
            ("back", _) => {
                live.rollback().unwrap();
                &VERSION
            }
            ("all", position) => {
                state.set_enforcement(position.parse().unwrap()).unwrap();
                &["all"]
            }
            ("shop", position) => {
                live.set_enforcement(position.parse().unwrap()).unwrap();
                &["shop"]
            }
            ("closed", position) => {
                state.set_enforcement_of("closed", position.parse().unwrap()).unwrap();
                &["closed"]
            }
            ("restart", _) => {
                drop((live, state));
                state = StateDir::open(&path).unwrap();
                live = open_site(&state, &text(source));
                assert!(state.flush());
                &[]
            }
            // The history is rewritten once it has grown.
            ("history", _) => {
                let history = fs::OpenOptions::new().append(true).open(path.join("sites/shop/history.jsonl"));
                std::io::Write::write_all(&mut history.unwrap(), &[b'\n'; 128 << 10]).unwrap();
                &[]
            }
            ("hand", _) => {
                assert!(state.hand_over(Duration::from_secs(60)));
                let new = StateDir::open(&path).unwrap();
                live = open_site(&new, &text(source));
                state = new;
                assert!(state.flush());
                &[]
            }
            _ => panic!("{what}"),
        };
        step(&state, &live, source, synced);
    }
}

/// Returns what the next start finds with a broken source and with the last source. Checks that a
/// second start finds the same.
fn start(files: &Files, last: &Values) -> Values {
    let opened = |folder: &Path, source: Option<&str>| {
        let state = StateDir::open(folder.join("state")).unwrap();
        let live = source.map_or_else(|| open_broken(&state, folder), |source| open_site(&state, source));
        assert!(state.flush(), "{:?}", live.status().state_problems);
        values(&state, &live)
    };
    let made = || {
        let folder = folder();
        make_files(files, folder.path());
        folder
    };
    let mut found = opened(made().path(), None);
    let folder = made();
    let source = text(last["source"].parse().unwrap());
    let whole = opened(folder.path(), Some(&source));
    let again = opened(folder.path(), None);
    assert_eq!(whole["live"], again["live"], "a second start has what the first had");
    for key in ["all", "shop", "closed"] {
        assert!(found[key] == whole[key] && whole[key] == again[key], "{key} turns by itself");
    }
    found.insert("with_source".to_owned(), whole["live"].clone());
    found
}

/// Returns the operations of the scenario, recorded once for all tests.
fn recorded() -> Option<&'static [Operation]> {
    static RECORDED: OnceLock<Option<Vec<Operation>>> = OnceLock::new();
    let record = || {
        let folder = folder();
        let root = folder.path().join("root");
        fs::create_dir(&root).unwrap();
        record("crash::every_value_is_old_or_new_after_a_crash_at_any_point", &root)
    };
    RECORDED.get_or_init(record).as_deref()
}

fn every() -> usize {
    if crate::is_long() || most(USUAL) != USUAL { 1 } else { EVERY }
}

/// Fails unless the crash states of a scenario with this planted bug reveal the bug.
#[track_caller]
fn expect_found(fault: &str, operations: &[Operation]) {
    assert_ne!(Some(operations), recorded(), "the fault is not planted");
    let tried = Tried::until(1, operations, most(USUAL), EVERY_WITH_FAULT, start);
    println!("{fault}: found after {} crash states: {:?}", tried.states, tried.violations.first());
    assert!(!tried.violations.is_empty(), "{fault} is not found");
}

#[test]
fn every_value_is_old_or_new_after_a_crash_at_any_point() {
    if let Some(folder) = folder_inside() {
        return publish_accept_roll_back_and_switch(&folder);
    }
    let Some(operations) = recorded() else { return };
    Tried::all(operations, most(USUAL), every(), start).expect_none("a state directory");
}

#[test]
fn a_missing_sync_of_a_folder_is_detected() {
    let Some(operations) = recorded() else { return };
    let is_folder = |path: &Path| operations.contains(&Operation::MakeFolder(path.to_owned()));
    let with_fault =
        operations.iter().filter(|operation| !matches!(operation, Operation::Sync(path) if is_folder(path)));
    expect_found("a folder that is not synced", &with_fault.cloned().collect::<Vec<_>>());
}

#[test]
fn a_rename_before_the_sync_of_the_file_is_detected() {
    let Some(operations) = recorded() else { return };
    let mut operations = operations.to_vec();
    for at in 1..operations.len() {
        if let [Operation::Sync(synced), Operation::Rename { from, to }] = &operations[at - 1..=at]
            && synced == from
        {
            operations[at - 1] = Operation::Sync(to.clone());
            operations.swap(at - 1, at);
        }
    }
    expect_found("a rename before its bytes are synced", &operations);
}

#[test]
fn a_kill_switch_that_is_reported_as_set_before_it_is_written_is_detected() {
    let Some(operations) = recorded() else { return };
    let mut operations = operations.to_vec();
    let mut begun = 0;
    for at in 0..operations.len() {
        match &operations[at] {
            Operation::Mark(mark) if mark == "begin" => begun = at,
            Operation::Mark(mark) if mark.contains("all!=") => operations[begun + 1..=at].rotate_right(1),
            _ => {}
        }
    }
    expect_found("a switch that is written after it was announced", &operations);
}
