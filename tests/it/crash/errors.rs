//! Every operation on a state directory fails with every error that a disk can report, either once
//! or permanently. A site keeps running, reports which state is not written, and writes it later.
//!
//! `strace` makes the calls of a process fail. Partial writes are tested in `full_disk`, whose disk
//! really is full.

use std::cell::Cell;
use std::path::Path;
use std::process::Command;

use tower_robots::live::{Enforcement, LiveRobots, StateDir, VersionHash};

use super::failing::{Failing, can_attach};
use super::{folder, open_broken, open_site, text};
use crate::crash::recording::folder_inside;

/// Environment variable of a process whose system calls fail: which call, and with which error.
const FAULT: &str = "CRASH_FAULT";

/// Environment variable to try every fault, not only some of them.
const ALL: &str = "CRASH_ERRORS";

/// Message of a faulty process if something could not be written immediately.
const UNWRITTEN: &str = "something had to wait";

/// The system calls, with their possible errors.
const FAULTS: [(&str, &[&str]); 8] = [
    ("openat", &["ENOSPC", "EIO", "EDQUOT", "EROFS", "EMFILE"]),
    ("write", &["ENOSPC", "EIO", "EDQUOT"]),
    ("fsync", &["ENOSPC", "EIO", "EDQUOT"]),
    ("fdatasync", &["ENOSPC", "EIO", "EDQUOT"]),
    ("rename", &["ENOSPC", "EIO", "EDQUOT", "EROFS"]),
    ("unlink", &["EIO", "EROFS"]),
    ("read", &["EIO"]),
    ("lseek", &["EIO"]),
];

/// How often a thread of the scenario makes each call, rounded up.
const CALLS: usize = 24;

/// Number of faulty processes that run at the same time.
const AT_ONCE: usize = 4;

/// Publishes versions and makes an operator's decisions while calls fail. The live version and the
/// switches take effect in any case. State that could not be written is reported, and is written
/// later.
fn go_on(folder: &Path, fault: &str) {
    let path = folder.join("state");
    let state = StateDir::open(&path).unwrap();
    let live = open_site(&state, &text(2));
    live.publish_blocking(text(3)).unwrap();
    assert!(state.flush());
    let hash = |number: usize| Some(VersionHash::of(text(number).as_bytes()));
    let unwritten = Cell::new(0);
    let check = |number: usize, what: &str| {
        let is_written = state.flush();
        unwritten.set(unwritten.get() + usize::from(!is_written));
        let status = live.status();
        assert_eq!(status.live, hash(number), "{what}: it is live whatever the disk does");
        let is_reported = !state.problems().is_empty() || !status.state_problems.is_empty();
        assert!(is_written || is_reported, "{what}: what is not written is said");
    };
    let failing = Failing::begin(std::process::id(), fault, &[]);
    live.publish_blocking(text(4)).unwrap();
    check(4, "published");
    if state.set_enforcement(Enforcement::Off).is_err() {
        assert!(!state.is_writable(), "{:?}", state.problems());
    }
    assert_eq!((state.enforcement(), live.status().enforcement), (Enforcement::Off, Enforcement::Off));
    live.rollback().unwrap();
    check(3, "rolled back");
    if live.set_enforcement(Enforcement::Off).is_err() {
        assert!(!live.status().state_problems.is_empty());
    }
    live.publish_blocking(text(1)).unwrap_err();
    check(3, "waits");
    live.accept(&hash(1).unwrap().into()).unwrap();
    check(1, "accepted");
    drop(failing);
    state.probe();
    assert!(state.flush(), "{:?} {:?}", state.problems(), live.status().state_problems);
    assert_eq!((state.problems(), live.status().state_problems), (vec![], vec![]), "it is over");
    drop((live, state));
    let state = StateDir::open(&path).unwrap();
    let live: LiveRobots = open_broken(&state, folder);
    let status = live.status();
    assert_eq!((status.live, status.switch, state.enforcement()), (hash(1), Enforcement::Off, Enforcement::Off));
    assert_eq!((state.problems(), status.state_problems), (vec![], vec![]));
    if unwritten.get() > 0 {
        println!("{UNWRITTEN}");
    }
}

/// Runs this test again with a fault. Returns whether something was not written immediately.
fn is_met(fault: &str) -> Result<bool, String> {
    const NAME: &str = "crash::errors::a_site_keeps_running_despite_disk_errors_and_saves_its_state_later";
    let folder = folder();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", NAME, "--nocapture", "--test-threads=1"]);
    let output = command.env(super::recording::INSIDE, folder.path()).env(FAULT, fault).output().unwrap();
    let said = |bytes| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(said(&output.stdout).contains(UNWRITTEN))
    } else {
        Err(format!("{fault}: {}", said(&output.stderr)))
    }
}

#[test]
fn a_site_keeps_running_despite_disk_errors_and_saves_its_state_later() {
    if let (Some(folder), Ok(fault)) = (folder_inside(), std::env::var(FAULT)) {
        return go_on(&folder, &fault);
    }
    if !can_attach() {
        println!("skipped: strace is not here, or may not look at the process that starts it");
        return;
    }
    let faults = FAULTS.iter().flat_map(|(call, errors)| errors.iter().map(move |error| (call, error)));
    let faults = faults.flat_map(|(call, error)| {
        (1..=CALLS).flat_map(move |at| ["", "+"].map(|then| format!("{call}:error={error}:when={at}{then}")))
    });
    // The faults are spread over the whole list, so that the default run tries each call and each
    // error.
    let every = if std::env::var_os(ALL).is_some() { 1 } else { 41 };
    let tried: Vec<String> = faults.step_by(every).collect();
    // The processes run in parallel, because each mostly waits for `strace`.
    let tried_at_once = std::thread::scope(|scope| {
        let some = tried.chunks(tried.len().div_ceil(AT_ONCE));
        let threads = some.map(|some| scope.spawn(|| some.iter().map(|fault| is_met(fault)).collect::<Vec<_>>()));
        let threads: Vec<_> = threads.collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let (met, failures): (Vec<_>, Vec<_>) = tried_at_once.into_iter().partition(Result::is_ok);
    let met = met.into_iter().filter(|met| *met == Ok(true)).count();
    let failures: Vec<String> = failures.into_iter().filter_map(Result::err).collect();
    println!(
        "{} errors of operations, of which {met} left something unwritten; {} failures",
        tried.len(),
        failures.len()
    );
    assert!(met > 2, "most errors of writing are met");
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), tried.len(), failures.join("\n"));
}
