//! Reads regular files, and rejects all others. Also detects that a file may be incomplete, because
//! another process is still writing it.

use std::fs::Metadata;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::file_system::reach;
use crate::live::state::disk::open;
use crate::live::{LiveRobots, Loaded, Rejection, RejectionKind, Version};

/// How long a file must stay unmodified until it counts as complete, unless an event has reported
/// that the writer closed the file.
pub(super) const QUIET: Duration = Duration::from_millis(400);

/// How far the clock of a file server may be ahead of the local clock. A modification time that is
/// further in the future was probably set by a program.
const MAX_CLOCK_LEAD: Duration = Duration::from_secs(2);

/// Reads a whole regular file. Blocks until the file system responds, but does not wait for the
/// writer of a FIFO.
pub(super) fn load(path: &Path, origin: &Arc<str>) -> Loaded {
    let failed = |error| Rejection::io(error, origin);
    let mut file = open(reach(path)).map_err(failed)?;
    let before = file.metadata().map_err(failed)?;
    if !before.is_file() {
        return Err(Rejection::new(RejectionKind::NotAFile, origin));
    }
    if before.len() > LiveRobots::MAX_FILE {
        return Err(Rejection::new(RejectionKind::TooLarge, origin));
    }
    let mut bytes = Vec::new();
    // Reads one byte more than the limit, to find out whether the file has exceeded the limit since
    // its length was checked.
    Read::by_ref(&mut file).take(LiveRobots::MAX_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
    let after = file.metadata().map_err(failed)?;
    if bytes.len() as u64 != after.len() || changed(&before, &after) {
        return Err(Rejection::new(RejectionKind::Unstable, origin));
    }
    Ok(Version::new(bytes, origin, after.modified().ok()))
}

/// Reads the bytes of a regular file. Blocks like [`load`].
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open(reach(path))?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the time until a file with this modification time counts as complete; `None` if it
/// already does.
pub(super) fn time_until_complete(modified: SystemTime) -> Option<Duration> {
    time_until_complete_at(SystemTime::now(), modified)
}

pub(super) fn time_until_complete_at(now: SystemTime, modified: SystemTime) -> Option<Duration> {
    match now.duration_since(modified) {
        Ok(age) => QUIET.checked_sub(age),
        Err(ahead) => Some(ahead.duration() + QUIET).filter(|_| ahead.duration() <= MAX_CLOCK_LEAD),
    }
}

fn changed(before: &Metadata, after: &Metadata) -> bool {
    before.len() != after.len() || before.modified().ok() != after.modified().ok()
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::live::VersionHash;

    fn kind(path: &Path) -> RejectionKind {
        load(path, &"it".into()).expect_err("a rejection").kind
    }

    #[test]
    fn only_a_regular_file_of_limited_size_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("robots.txt");
        assert_eq!(kind(&path), RejectionKind::Missing);
        assert_eq!(kind(folder.path()), RejectionKind::NotAFile);
        std::fs::write(&path, "# x\n").expect("written");
        assert_eq!(load(&path, &"it".into()).expect("read").hash(), VersionHash::of(b"# x\n"));
        File::create(&path).and_then(|file| file.set_len(2 << 30)).expect("a sparse file");
        assert_eq!(kind(&path), RejectionKind::TooLarge);
    }

    #[test]
    fn a_recently_modified_file_counts_as_complete_only_after_a_quiet_period() {
        let (now, second) = (SystemTime::now(), Duration::from_secs(1));
        assert_eq!(time_until_complete_at(now, now), Some(QUIET));
        assert_eq!(time_until_complete_at(now, now - QUIET / 4), Some(QUIET * 3 / 4));
        assert_eq!(time_until_complete_at(now, now - second), None);
        assert_eq!(time_until_complete_at(now, now + second), Some(second + QUIET), "a clock that is ahead");
        assert_eq!(time_until_complete_at(now, now + 3600 * second), None, "it would never rest");
        assert_eq!(time_until_complete(now - second), None);
    }

    #[cfg(unix)]
    #[test]
    fn reading_a_fifo_or_a_loop_of_links_does_not_block() {
        let folder = tempfile::tempdir().expect("a folder");
        let fifo = folder.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo runs");
        assert!(made.success());
        assert_eq!(kind(&fifo), RejectionKind::NotAFile);
        #[cfg(feature = "verify")]
        assert_eq!(read(&fifo).expect_err("no file").kind(), io::ErrorKind::InvalidInput);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("link", &link).expect("a link");
        assert_eq!(kind(&link), RejectionKind::Unreadable);
    }
}
