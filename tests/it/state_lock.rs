//! Tests the lock of a state directory: which handles are refused, for how long, and which state
//! the next holder of the lock finds.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use tempfile::TempDir;
use tower_robots::live::{Enforcement, LiveRobots, StateDir};
use tower_robots::source::{HostMap, SiteMap};

use crate::waiting::wait_for;

const FIRST: &str = "User-agent: *\nDisallow: /cart\n";
const SECOND: &str = "User-agent: *\nDisallow: /cart\nDisallow: /drafts/\n";

/// Environment variable: the folder that the other process opens.
const FOLDER: &str = "TOWER_ROBOTS_TEST_STATE_DIR";

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    (folder, path)
}

fn open(path: &Path, text: &str) -> LiveRobots {
    LiveRobots::text(text).state(&StateDir::open(path).unwrap(), "shop").open().unwrap()
}

/// Another process that has opened a state directory.
struct Other {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Other {
    fn open(folder: &Path) -> Self {
        let test = "state_lock::a_helper_process_opens_a_state_directory_and_waits";
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(FOLDER, folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("it is open") {
            line.clear();
            assert_ne!(output.read_line(&mut line).unwrap(), 0, "the other process ended");
        }
        Self { process, output }
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Makes the process end by itself.
    fn end(mut self) {
        self.process.stdin.take().unwrap().write_all(b"\n").unwrap();
        let mut rest = String::new();
        while self.output.read_line(&mut rest).unwrap() > 0 {}
        assert!(self.process.wait().unwrap().success(), "{rest}");
    }
}

/// Runs as the other process if the environment variable contains a folder.
#[test]
fn a_helper_process_opens_a_state_directory_and_waits() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let live = open(Path::new(&folder), SECOND);
    println!("it is open");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    drop(live);
}

/// Runs parts concurrently, because each refused handle waits for two seconds.
fn at_once(parts: &[&(dyn Fn() + Sync)]) {
    std::thread::scope(|scope| parts.iter().for_each(|part| drop(scope.spawn(part))));
}

#[test]
fn a_second_handle_in_one_process_is_refused_until_the_last_clone_and_site_are_dropped() {
    at_once(&[&a_second_handle_is_refused, &a_site_keeps_the_lock]);
}

fn a_second_handle_is_refused() {
    let (_folder, path) = folder();
    let _state = StateDir::open(&path).unwrap();
    let error = StateDir::open(&path).unwrap_err();
    let want = format!(
        "{}: this process already has the state directory open: use a clone of its StateDir, or drop every clone and \
         every site that was opened with it",
        path.display()
    );
    assert_eq!(error.to_string(), want);
    assert_eq!((&*error.path, error.process()), (&*path, Some(std::process::id())));
}

fn a_site_keeps_the_lock() {
    let (_folder, path) = folder();
    let state = StateDir::open(&path).unwrap();
    let live = LiveRobots::text(FIRST).state(&state.clone(), "shop").open().unwrap();
    drop(state);
    let clone = live.clone();
    drop(live);
    assert!(StateDir::open(&path).is_err(), "the site goes on writing");
    clone.publish_blocking(SECOND).unwrap();
    drop(clone);
    // The next handle finds the version that was written last, although nothing was flushed.
    let live = open(&path, SECOND);
    assert_eq!(live.rollback().unwrap().outcome.hash(), Some(tower_robots::live::VersionHash::of(FIRST.as_bytes())));
}

#[test]
fn a_process_is_refused_with_the_holders_process_id_until_the_holder_ends() {
    let refused = |is_killed: bool| {
        let (_folder, path) = folder();
        let other = Other::open(&path);
        let error = StateDir::open(&path).unwrap_err();
        assert_eq!(error.process(), Some(other.process.id()));
        let want = format!(
            "{}: process {} has the state directory open: stop that process, or give each process its own state directory",
            path.display(),
            other.process.id()
        );
        assert_eq!(error.to_string(), want);
        if is_killed {
            other.kill()
        } else {
            other.end()
        }
        let live = open(&path, FIRST);
        let was_live = |entry: &tower_robots::live::HistoryEntry| &*entry.origin == "inline";
        assert!(live.history().iter().all(was_live) && !live.history().is_empty(), "{:?}", live.history());
        drop(live);
        // A process ID that is left in the file does not lock the folder.
        let left = fs::read_to_string(path.join("lock")).unwrap();
        assert!(left.starts_with(&format!("{} ", std::process::id())), "{left}");
        fs::write(path.join("lock"), "4711 1\n").unwrap();
        drop(StateDir::open(&path).unwrap());
    };
    at_once(&[&|| refused(true), &|| refused(false)]);
}

#[test]
fn a_lock_without_a_valid_process_id_is_reported_as_another_process() {
    let refused = |text: &str| {
        let (_folder, path) = folder();
        let _state = StateDir::open(&path).unwrap();
        fs::write(path.join("lock"), text).unwrap();
        let error = StateDir::open(&path).unwrap_err();
        assert_eq!(error.process(), None, "{text:?}");
        let want =
            format!("{}: another process has the state directory open: stop that process, or give", path.display());
        assert!(error.to_string().starts_with(&want), "{error}");
    };
    at_once(&[&|| refused(""), &|| refused("99999999999999999999 1\n")]);
}

#[test]
fn a_site_replaced_in_the_same_process_keeps_its_unwritten_history() {
    let (_folder, path) = folder();
    let state = StateDir::open(&path).unwrap();
    let open = |text: &str| LiveRobots::text(text).state(&state, "shop").open().unwrap();
    let mut hosts = HostMap::new();
    hosts.insert("shop.example", open(FIRST)).unwrap();
    let sites = SiteMap::new(hosts);
    // The new site is opened before the old one is dropped, as when a config is reloaded.
    let mut hosts = HostMap::new();
    hosts.insert("shop.example", open(SECOND)).unwrap();
    sites.replace(hosts);
    drop(sites);
    let live = open(SECOND);
    assert_eq!(live.history().len(), 3, "{:?}", live.history());
    assert!(live.rollback().is_ok());
    // After a flush, another process would find the whole state.
    assert!(state.flush());
    state.set_enforcement(Enforcement::Off).unwrap();
    drop((live, state));
    let state = StateDir::open(&path).unwrap();
    assert_eq!(state.enforcement(), Enforcement::Off);
}

#[test]
fn a_watched_file_does_not_keep_the_lock_after_its_site_is_dropped() {
    let (folder, path) = folder();
    let robots = folder.path().join("robots.txt");
    for round in 0..20 {
        fs::write(&robots, format!("{FIRST}# {round}\n")).unwrap();
        // On a busy machine, the watcher may keep the site for longer than a new handle waits for
        // the lock.
        let state = std::cell::OnceCell::new();
        wait_for("the lock", || StateDir::open(&path).map(|opened| state.set(opened)).is_ok());
        let live = LiveRobots::file(&robots).state(state.get().unwrap(), "shop").open().unwrap();
        drop(state);
        // The watcher is about to read the file when the last handle is dropped.
        fs::write(&robots, format!("{FIRST}# {round} again\n")).unwrap();
        drop(live);
    }
}

#[cfg(unix)]
#[test]
fn a_folder_without_lock_support_is_used_and_reported() {
    let (_folder, path) = folder();
    fs::create_dir(&path).unwrap();
    // If the lock file is a symbolic link, it is not locked, because its target may belong to
    // someone else.
    std::os::unix::fs::symlink("elsewhere", path.join("lock")).unwrap();
    let state = StateDir::open(&path).unwrap();
    let problem = state.problems().remove(0);
    let want = format!(
        "{}: the file cannot be locked, so another process could write to the state directory, too: ",
        path.join("lock").display()
    );
    assert!(problem.starts_with(&want), "{problem}");
    let live = LiveRobots::text(FIRST).state(&state, "shop").open().unwrap();
    assert!(state.flush());
    assert_eq!(live.status().state_problems, []);
    assert!(path.join("sites/shop/state.json").is_file());
    assert!(StateDir::open(&path).is_ok(), "nothing tells of the first");
}
