//! Waits for a condition with a deadline, and replaces a file as editors do. Every test about files
//! and time uses this module.

#[cfg(feature = "watch")]
use std::fs::{self, File};
#[cfg(feature = "watch")]
use std::path::Path;
#[cfg(feature = "watch")]
use std::sync::Mutex;
#[cfg(feature = "watch")]
use std::time::SystemTime;
use std::time::{Duration, Instant};

use tower_robots::live::LiveRobots;

/// Maximum time to wait for a condition. It is much longer than necessary, because the machine may
/// be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the robots.txt that a site serves, if any.
pub(crate) fn body(live: &LiveRobots) -> Option<String> {
    live.snapshot().content.as_ref().map(|content| String::from_utf8(content.body().to_vec()).unwrap())
}

/// Like [`body`], for a site that serves a robots.txt.
#[cfg(feature = "watch")]
pub(crate) fn served(live: &LiveRobots) -> String {
    body(live).unwrap()
}

/// Waits until a condition holds. If it takes too long, the test fails and names the condition.
pub(crate) fn wait_for(what: &str, condition: impl Fn() -> bool) {
    wait_or_explain(condition, || what.to_owned());
}

/// Like [`wait_for`], with a message that is only created on failure.
pub(crate) fn wait_or_explain(condition: impl Fn() -> bool, what: impl FnOnce() -> String) {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > PATIENCE {
            panic!("{}: not within {PATIENCE:?}", what());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A file that is written in place, in parts, and the pauses between the parts. A part that is
/// unchanged for long enough counts as a whole file. So a test that finds half a file live must
/// know whether its own writes were delayed that long.
#[cfg(feature = "watch")]
pub(crate) struct WrittenInPlace {
    file: File,
    /// When the last write began, and the longest time from the beginning of a write to the end of
    /// the next write.
    paused: Mutex<(Instant, Duration)>,
}

#[cfg(feature = "watch")]
impl WrittenInPlace {
    pub(crate) fn new(file: File) -> Self {
        Self { file, paused: Mutex::new((Instant::now(), Duration::ZERO)) }
    }

    pub(crate) fn write(&self, write: impl FnOnce(&File)) {
        let begun = Instant::now();
        write(&self.file);
        let mut paused = self.paused.lock().unwrap();
        *paused = (begun, paused.1.max(paused.0.elapsed()));
    }

    /// Returns the longest pause, including the one since the last write.
    pub(crate) fn longest_pause(&self) -> Duration {
        let (begun, longest) = *self.paused.lock().unwrap();
        longest.max(begun.elapsed())
    }
}

/// Replaces a file atomically: writes another file, then renames it.
#[cfg(feature = "watch")]
pub(crate) fn replace(path: &Path, bytes: impl AsRef<[u8]>) {
    let aside = path.with_extension("new");
    fs::write(&aside, bytes).unwrap();
    fs::rename(aside, path).unwrap();
}

/// Like [`replace`], with the given modification time.
#[cfg(feature = "watch")]
pub(crate) fn replace_dated(path: &Path, bytes: impl AsRef<[u8]>, modified: SystemTime) {
    let aside = path.with_extension("new");
    fs::write(&aside, bytes).unwrap();
    File::options().write(true).open(&aside).unwrap().set_modified(modified).unwrap();
    fs::rename(aside, path).unwrap();
}
