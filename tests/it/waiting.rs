//! Waiting for a condition with a deadline, and replacing a file as editors do. Every test about files and time uses it.

#[cfg(feature = "watch")]
use std::fs::{self, File};
#[cfg(feature = "watch")]
use std::path::Path;
#[cfg(feature = "watch")]
use std::time::SystemTime;
use std::time::{Duration, Instant};

use tower_robots::live::LiveRobots;

/// Far more than any condition takes; a machine may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The robots.txt that a site serves, if it serves one.
pub(crate) fn body(live: &LiveRobots) -> Option<String> {
    live.snapshot().content.as_ref().map(|content| String::from_utf8(content.body().to_vec()).unwrap())
}

/// The same of a site that serves one.
#[cfg(feature = "watch")]
pub(crate) fn served(live: &LiveRobots) -> String {
    body(live).unwrap()
}

/// Waits until a condition holds; a test that has to wait too long says for what.
pub(crate) fn wait_for(what: &str, condition: impl Fn() -> bool) {
    wait_or_explain(condition, || what.to_owned());
}

/// As [`wait_for`], with a reason that is made when the wait has failed.
pub(crate) fn wait_or_explain(condition: impl Fn() -> bool, what: impl FnOnce() -> String) {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > PATIENCE {
            panic!("{}: not within {PATIENCE:?}", what());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Replaces a file atomically: written aside, then renamed.
#[cfg(feature = "watch")]
pub(crate) fn replace(path: &Path, bytes: impl AsRef<[u8]>) {
    let aside = path.with_extension("new");
    fs::write(&aside, bytes).unwrap();
    fs::rename(aside, path).unwrap();
}

/// As [`replace`], with a time of its own as the last modification.
#[cfg(feature = "watch")]
pub(crate) fn replace_dated(path: &Path, bytes: impl AsRef<[u8]>, modified: SystemTime) {
    let aside = path.with_extension("new");
    fs::write(&aside, bytes).unwrap();
    File::options().write(true).open(&aside).unwrap().set_modified(modified).unwrap();
    fs::rename(aside, path).unwrap();
}
