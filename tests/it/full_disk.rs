//! Tests a state directory on a full disk. A version that goes live is reported as unwritten, and
//! is written when there is room. If the process is restarted earlier, the next process reports
//! which state is missing.
//!
//! Each test has its own file system of 68 KiB.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tower_robots::internals::Condition;
use tower_robots::internals::FileSource;
use tower_robots::live::{Enforcement, Gate, LiveRobots, ProblemKind, ReloadOutcomeKind, StateDir, VersionHash};
use tower_robots::source::LiveBuilder;

use crate::small_disk::SmallDisk;
use crate::waiting::{PATIENCE, replace_dated, served, wait_for, wait_or_explain};

const FIRST: &str = "User-agent: *\nDisallow: /cart\n";
const SECOND: &str = "User-agent: *\nDisallow: /cart\nDisallow: /account\n";
const THIRD: &str = "User-agent: *\nDisallow: /cart\nDisallow: /account\nDisallow: /search\n";
const STAGING: &str = "User-agent: *\nDisallow: /\n";
const BAD: &str = "<html>";

/// Remounts a disk. On a read-only disk, existing files cannot be overwritten. A full copy-on-write
/// disk has the same limit.
fn remount(disk: &Path, how: &str) {
    let mut mount = Command::new("mount");
    mount.args(["-o", &format!("remount,{how}")]).arg(disk);
    assert!(mount.status().unwrap().success(), "{mount:?}");
}

/// A site whose robots.txt is on another disk.
struct Site<'d> {
    disk: &'d SmallDisk,
    folder: TempDir,
    reported: Arc<Mutex<Vec<String>>>,
}

impl<'d> Site<'d> {
    fn new(disk: &'d SmallDisk, text: &str) -> Self {
        let site = Self { disk, folder: tempfile::tempdir().unwrap(), reported: Arc::default() };
        site.write(text);
        site
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("robots.txt")
    }

    fn write(&self, text: &str) {
        write(self.folder.path(), text);
    }

    fn state(&self) -> StateDir {
        let state = StateDir::open(self.disk.path().join("state")).unwrap();
        let reported = self.reported.clone();
        state.on_event(move |event| reported.lock().unwrap().push(event.to_string()));
        state
    }

    /// Simulates a kill: open handles are never dropped, but the lock of the process is gone.
    fn is_killed(&self) {
        fs::remove_file(self.disk.path().join("state/lock")).unwrap();
    }

    /// Returns a builder for a site that is not polled during a test.
    fn builder(&self) -> LiveBuilder<FileSource> {
        LiveRobots::file(self.path()).gate(Gate::new()).poll_every(PATIENCE * 100)
    }

    fn open(&self, state: &StateDir) -> LiveRobots {
        self.builder().state(state, "shop").open().unwrap()
    }

    /// Opens the site with its state directory, and writes the whole state.
    fn start(&self) -> (StateDir, LiveRobots) {
        let state = self.state();
        let live = self.open(&state);
        assert!(state.flush());
        (state, live)
    }

    /// Makes the site reload another version, and returns the outcome.
    fn replace(&self, live: &LiveRobots, text: &str) -> ReloadOutcomeKind {
        self.write(text);
        match live.reload_blocking().outcome.kind() {
            // If the watcher has reloaded the file first, its reload is the last entry of the
            // history.
            ReloadOutcomeKind::Unchanged => {
                let history = live.history();
                let mut outcomes = history.iter().map(|entry| entry.outcome);
                outcomes.rfind(|outcome| *outcome != ReloadOutcomeKind::Unchanged).unwrap()
            }
            outcome => outcome,
        }
    }

    /// Waits for an event, which is sent shortly after the status has changed.
    fn wait_for_report(&self, what: &str) {
        self.wait_for_one_of([what]);
    }

    fn wait_for_one_of<const N: usize>(&self, events: [&str; N]) {
        let is_one = |reported: &String| events.iter().any(|event| reported.contains(event));
        let is_reported = || self.reported.lock().unwrap().iter().any(is_one);
        wait_or_explain(is_reported, || format!("{events:?}; {:?}", self.reported.lock().unwrap()));
    }

    /// Fills the last block of the history file with empty lines, which readers ignore.
    fn fill_history(&self) {
        let mut history = File::options().append(true).open(self.own().join("history.jsonl")).unwrap();
        while history.write_all(b"\n").is_ok() {}
    }

    fn own(&self) -> PathBuf {
        self.disk.path().join("state/sites/shop")
    }
}

/// Writes the robots.txt with an old date, so that reloads do not wait for the file to be complete.
fn write(folder: &Path, text: &str) {
    let past = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
    replace_dated(&folder.join("robots.txt"), text, past);
}

fn short(text: &str) -> String {
    VersionHash::of(text.as_bytes()).short().to_string()
}

#[test]
fn a_full_disk_is_detected_before_anything_has_to_be_written() {
    SmallDisk::with("full_disk::a_full_disk_is_detected_before_anything_has_to_be_written", |disk| {
        let site = Site::new(disk, FIRST);
        let (state, _live) = site.start();
        disk.fill();
        state.probe();
        wait_for("the probe", || !state.is_writable());
        site.wait_for_report("the state directory cannot be written: No space left on device");
        disk.free();
        state.probe();
        wait_for("room", || state.is_writable());
    });
}

#[test]
fn state_that_a_full_disk_rejects_is_reported_and_written_once_there_is_room() {
    SmallDisk::with("full_disk::state_that_a_full_disk_rejects_is_reported_and_written_once_there_is_room", |disk| {
        let site = Site::new(disk, FIRST);
        let (state, live) = site.start();
        disk.fill();
        assert_eq!(site.replace(&live, SECOND), ReloadOutcomeKind::Published);
        assert!(!state.flush());
        let status = live.status();
        // The last block of the history has room for one more line. Writing it does not end the
        // problem `Save`.
        assert!(status.state_problem(ProblemKind::Save).is_some(), "{status:?}");
        assert!(status.state_problem(ProblemKind::History).is_none(), "{status:?}");
        site.fill_history();
        assert_eq!(site.replace(&live, THIRD), ReloadOutcomeKind::Published);
        assert_eq!(served(&live), THIRD, "it is live all the same");
        assert!(!state.flush());
        let status = live.status();
        let (save, history) =
            (status.state_problem(ProblemKind::Save).unwrap(), status.state_problem(ProblemKind::History).unwrap());
        let want = "cannot be written, so a restart forgets the live version: No space left on device";
        assert!(save.contains(want), "{save}");
        // Two entries are unwritten if the watcher published the version before this test requested
        // it.
        let waits =
            |entries: &str| history.contains(&format!("cannot be written, so {entries}: No space left on device"));
        assert!(
            waits("1 entry of the history is not saved yet") || waits("2 entries of the history are not saved yet"),
            "{history}"
        );
        assert_eq!(status.state_problems.iter().map(|problem| &*problem.text).collect::<Vec<_>>(), [save, history]);
        // The events have the same wording, but the history's event may mention only one entry.
        site.wait_for_report(&format!("shop: {save}"));
        let of_first = history.replace("2 entries of the history are", "1 entry of the history is");
        site.wait_for_one_of([history, &of_first].map(|text| format!("shop: {text}")).each_ref().map(String::as_str));
        let written = fs::read_to_string(site.own().join("state.json")).unwrap();
        assert!(!written.contains(&VersionHash::of(THIRD.as_bytes()).to_string()));

        disk.free();
        wait_for("written without another edit", || live.status().state_problems.is_empty());
        site.wait_for_report("shop: the live version is now saved in the state directory");
        site.wait_for_report("shop: the history is now saved in the state directory");
        assert!(state.flush());
        site.write(BAD);
        site.is_killed();
        let again = site.open(&site.state());
        assert_eq!((served(&again).as_str(), again.status().condition()), (THIRD, Condition::LastGood));
        assert_eq!(again.status().state_problem(ProblemKind::Behind), None);
        let said = again.status().last_reload.to_string();
        assert!(said.contains("stays live; this version was accepted "), "{said}");
        assert!(said.ends_with("and according to the state directory, it was live before the restart"), "{said}");
        let mut outcomes: Vec<_> = again.history().iter().map(|entry| entry.outcome).collect();
        outcomes.retain(|outcome| *outcome != ReloadOutcomeKind::Unchanged);
        // The handle that simulates the killed process may see the broken file, too.
        let (published, rest) = outcomes.split_at(3);
        assert!(published.iter().all(|outcome| *outcome == ReloadOutcomeKind::Published), "{outcomes:?}");
        assert!(!rest.is_empty() && rest.iter().all(|outcome| *outcome == ReloadOutcomeKind::Kept), "{outcomes:?}");
        assert_eq!(again.status().before, Some(VersionHash::of(SECOND.as_bytes())));
    });
}

#[test]
fn pending_changes_are_written_at_a_reload_at_a_flush_and_at_the_end() {
    SmallDisk::with("full_disk::pending_changes_are_written_at_a_reload_at_a_flush_and_at_the_end", |disk| {
        let site = Site::new(disk, FIRST);
        for way in ["reload", "flush", "end"] {
            site.write(FIRST);
            let (state, live) = site.start();
            disk.fill();
            assert_eq!(site.replace(&live, SECOND), ReloadOutcomeKind::Published);
            assert!(!state.flush(), "{way}");
            disk.free();
            match way {
                "reload" => {
                    let _ = live.reload_blocking();
                    wait_for(way, || live.status().state_problems.is_empty());
                }
                "flush" => assert!(state.flush_within(PATIENCE)),
                _ => drop((live, state)),
            }
            site.is_killed();
            site.write(BAD);
            assert_eq!(served(&site.open(&site.state())), SECOND, "{way}");
        }
    });
}

#[test]
fn a_restart_that_serves_an_older_version_reports_the_later_version() {
    SmallDisk::with("full_disk::a_restart_that_serves_an_older_version_reports_the_later_version", |disk| {
        let site = Site::new(disk, FIRST);
        let (state, live) = site.start();
        disk.fill();
        // A version that an operator accepted must not be forgotten at a restart, either.
        assert_eq!(site.replace(&live, STAGING), ReloadOutcomeKind::Gated);
        live.accept(&VersionHash::of(STAGING.as_bytes()).into()).unwrap();
        assert_eq!(served(&live), STAGING);
        assert!(live.status().state_problem(ProblemKind::Save).is_some(), "it was tried before the answer");
        // A process that ends normally cannot write more than a killed process.
        drop((live, state));

        site.write(BAD);
        for start in 1..=2 {
            let live = site.open(&site.state());
            let status = live.status();
            assert_eq!((served(&live).as_str(), status.condition()), (FIRST, Condition::LastGood));
            let problem = status.state_problem(ProblemKind::Behind).unwrap();
            let older = format!("; the later version {} (accepted ", short(STAGING));
            assert!(
                problem.starts_with(&format!("version {} is served; this version was accepted ", short(FIRST))),
                "{problem}"
            );
            assert!(problem.contains(&older), "{problem}");
            let said = status.last_reload.to_string();
            assert!(said.contains(&older), "start {start}: {said}");
            assert!(live.history().last().unwrap().detail.contains(&older));
            site.wait_for_report(&format!("shop: {problem}"));
        }
        // The version that was live does not have to be accepted again.
        let live = site.open(&site.state());
        assert_eq!(site.replace(&live, STAGING), ReloadOutcomeKind::Published);
        assert_eq!(live.status().state_problem(ProblemKind::Behind), None);
    });
}

#[test]
fn a_rollback_on_a_full_disk_is_not_undone_by_a_restart() {
    SmallDisk::with("full_disk::a_rollback_on_a_full_disk_is_not_undone_by_a_restart", |disk| {
        let site = Site::new(disk, FIRST);
        let state = site.state();
        let live = site.open(&state);
        assert_eq!(site.replace(&live, SECOND), ReloadOutcomeKind::Published);
        assert!(state.flush());
        disk.fill();
        live.rollback().unwrap();
        assert_eq!(served(&live), FIRST);
        drop((live, state));
        let live = site.open(&site.state());
        assert_eq!((served(&live).as_str(), live.status().condition()), (FIRST, Condition::Gated));
        assert_eq!(live.status().pending.as_ref().unwrap().to_string(), "this version was rolled back before");
        drop(live);
        disk.free();
        let live = site.open(&site.state());
        assert_eq!((served(&live).as_str(), live.status().condition()), (FIRST, Condition::Gated));
    });
}

#[test]
fn a_reopened_site_finds_the_state_that_could_not_be_written() {
    SmallDisk::with("full_disk::a_reopened_site_finds_the_state_that_could_not_be_written", |disk| {
        let site = Site::new(disk, FIRST);
        let (state, live) = site.start();
        disk.fill();
        assert_eq!(site.replace(&live, SECOND), ReloadOutcomeKind::Published);
        // The file of the switch for all sites exists from the start, and is overwritten in place.
        state.set_enforcement(Enforcement::Off).unwrap();
        assert_eq!(fs::read(disk.path().join("state/enforcement")).unwrap(), b"off\n");
        live.set_enforcement(Enforcement::Off).unwrap();
        assert_eq!(fs::read(site.own().join("enforcement")).unwrap(), b"off\n", "that of a site is as well");
        fs::remove_file(site.own().join("enforcement")).unwrap();
        disk.fill();
        live.set_enforcement(Enforcement::Off).unwrap_err();
        let problem = live.status().state_problem(ProblemKind::Switch).unwrap().to_owned();
        assert!(problem.contains("so a restart forgets the kill switch: No space left on device"), "{problem}");
        drop(live);
        // The site is opened again, as when a config is reloaded.
        site.write(BAD);
        let live = site.open(&state);
        assert_eq!((served(&live).as_str(), live.status().state_problem(ProblemKind::Behind)), (SECOND, None));
        assert_eq!(live.status().switch, Enforcement::Off);
        assert_eq!(live.history().iter().filter(|entry| entry.outcome == ReloadOutcomeKind::Published).count(), 2);
        disk.free();
        wait_for("the switches", || {
            let switches = [disk.path().join("state/enforcement"), site.own().join("enforcement")];
            switches.iter().all(|path| fs::read(path).is_ok_and(|bytes| bytes == b"off\n"))
        });
        wait_for("no problem", || live.status().state_problems.is_empty() && state.problems().is_empty());
    });
}

#[test]
fn pending_history_entries_are_bounded_and_lost_entries_are_counted() {
    SmallDisk::with("full_disk::pending_history_entries_are_bounded_and_lost_entries_are_counted", |disk| {
        let site = Site::new(disk, FIRST);
        let (state, live) = site.start();
        disk.fill();
        site.fill_history();
        let turns = LiveRobots::MAX_HISTORY + 10;
        for turn in 0..turns {
            let _ = live.set_enforcement(if turn % 2 == 0 { Enforcement::Off } else { Enforcement::On });
        }
        let problem = live.status().state_problem(ProblemKind::History).unwrap().to_owned();
        let want = format!(
            "so {} entries of the history are not saved yet and 10 earlier ones are lost: ",
            LiveRobots::MAX_HISTORY
        );
        assert!(problem.contains(&want), "{problem}");
        disk.free();
        assert!(state.flush());
        assert_eq!(live.status().state_problems, []);
        drop((live, state));
        assert_eq!(site.open(&site.state()).history().len(), LiveRobots::MAX_HISTORY);
    });
}

#[test]
fn a_state_directory_on_a_full_disk_is_written_once_there_is_room() {
    SmallDisk::with("full_disk::a_state_directory_on_a_full_disk_is_written_once_there_is_room", |disk| {
        let site = Site::new(disk, FIRST);
        disk.fill();
        let state = site.state();
        let live = site.open(&state);
        assert!(!state.flush());
        assert!(live.status().state_problem(ProblemKind::Save).is_some());
        disk.free();
        wait_for("written", || live.status().state_problems.is_empty() && state.problems().is_empty());
        site.write(BAD);
        site.is_killed();
        assert_eq!(served(&site.open(&site.state())), FIRST);
    });
}

#[test]
fn a_version_accepted_on_a_full_disk_is_not_held_after_a_restart() {
    SmallDisk::with("full_disk::a_version_accepted_on_a_full_disk_is_not_held_after_a_restart", |disk| {
        // Tests a version that was rolled back while its source still contains it, and a pending
        // version whose source is broken in the meantime.
        for (text, is_rolled_back) in [(SECOND, true), (STAGING, false)] {
            let site = Site::new(disk, FIRST);
            let state = site.state();
            let live = site.open(&state);
            if is_rolled_back {
                assert_eq!(site.replace(&live, text), ReloadOutcomeKind::Published);
                live.rollback().unwrap();
            } else {
                assert_eq!(site.replace(&live, text), ReloadOutcomeKind::Gated);
            }
            assert!(state.flush());
            disk.fill();
            live.accept(&VersionHash::of(text.as_bytes()).into()).unwrap();
            assert!(live.status().state_problem(ProblemKind::Save).is_some());
            drop((live, state));

            let condition = if is_rolled_back {
                Condition::Live
            } else {
                site.write(BAD);
                Condition::LastGood
            };
            for is_freed in [false, true] {
                if is_freed {
                    disk.free();
                }
                let live = site.open(&site.state());
                assert_eq!((served(&live).as_str(), live.status().condition()), (text, condition));
                assert!(live.status().pending.as_ref().is_none(), "{:?}", live.status());
            }
            fs::remove_dir_all(disk.path().join("state")).unwrap();
        }
    });
}

#[test]
fn a_restart_with_a_read_only_disk_serves_the_last_saved_version() {
    SmallDisk::with("full_disk::a_restart_with_a_read_only_disk_serves_the_last_saved_version", |disk| {
        let site = Site::new(disk, FIRST);
        let (state, live) = site.start();
        remount(disk.path(), "ro");
        assert_eq!(site.replace(&live, SECOND), ReloadOutcomeKind::Published);
        assert!(!state.flush());
        let problem = live.status().state_problem(ProblemKind::Save).unwrap().to_owned();
        assert!(problem.contains("so a restart forgets the live version: Read-only file system"), "{problem}");
        drop((live, state));
        site.write(BAD);
        let state = site.state();
        assert!(state.problems()[0].contains("Read-only file system"), "{:?}", state.problems());
        let live = site.open(&state);
        assert_eq!((served(&live).as_str(), live.status().condition()), (FIRST, Condition::LastGood));
        let said = live.status().last_reload.to_string();
        assert!(said.ends_with("and according to the state directory, it was live before the restart"), "{said}");
    });
}

#[test]
fn a_version_published_while_its_site_is_reopened_is_kept() {
    let path = |site: &Site, name: &str| site.own().join(name);
    SmallDisk::with("full_disk::a_version_published_while_its_site_is_reopened_is_kept", |disk| {
        let site = Arc::new(Site::new(disk, FIRST));
        let (state, live) = site.start();
        let before = fs::read(path(&site, "state.json")).unwrap();
        assert_eq!(site.replace(&live, SECOND), ReloadOutcomeKind::Published);
        assert!(state.flush());
        // Simulates that the second version was recorded but not saved, and that the bytes of the
        // first were lost.
        fs::write(path(&site, "state.json"), before).unwrap();
        let hash = VersionHash::of(FIRST.as_bytes()).to_string();
        fs::remove_file(path(&site, &format!("{}.txt", hash.trim_start_matches("sha256:")))).unwrap();
        // While the state is read, the open site publishes another version, which cannot be
        // written. Its source breaks afterwards.
        let (folder, publishing) = (site.folder.path().to_owned(), Mutex::new(Some(live)));
        let mounted = disk.path().to_owned();
        state.on_event(move |event| {
            let live = publishing.lock().unwrap().take().filter(|_| event.to_string().ends_with("the file is missing"));
            if let Some(live) = live {
                remount(&mounted, "ro");
                write(&folder, THIRD);
                let _ = live.reload_blocking();
                write(&folder, BAD);
                // If the handle were dropped, it would write the state itself.
                std::mem::forget(live);
            }
        });
        let live = site.open(&state);
        site.wait_for_report("the file is missing");
        assert_eq!((served(&live).as_str(), live.status().condition()), (THIRD, Condition::LastGood));
        remount(disk.path(), "rw");
        assert!(state.flush());
        let written = fs::read_to_string(path(&site, "state.json")).unwrap();
        assert!(written.contains(&VersionHash::of(THIRD.as_bytes()).to_string()), "{written}");
    });
}
