//! Waiting for a condition with a deadline, and replacing a file as editors do. Every test about files and time uses it.

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

/// A file that is written in place, in parts, and the pauses between them. A part that is left alone for long enough counts as a
/// whole file, so a test that finds half a file live has to know whether it was itself held up for that long.
#[cfg(feature = "watch")]
pub(crate) struct WrittenInPlace {
    file: File,
    /// When the last write began, and the longest time from the begin of a write to the end of the next one.
    paused: Mutex<(Instant, Duration)>,
}

#[cfg(feature = "watch")]
impl WrittenInPlace {
    pub(crate) fn new(file: File) -> Self {
        Self { file, paused: Mutex::new((Instant::now(), Duration::ZERO)) }
    }

    /// Writes a part, or does something else with the file.
    pub(crate) fn write(&self, write: impl FnOnce(&File)) {
        let begun = Instant::now();
        write(&self.file);
        let mut paused = self.paused.lock().unwrap();
        *paused = (begun, paused.1.max(paused.0.elapsed()));
    }

    /// The longest pause, that since the last write included.
    pub(crate) fn longest_pause(&self) -> Duration {
        let (begun, longest) = *self.paused.lock().unwrap();
        longest.max(begun.elapsed())
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
