//! Decides whether the result of a poll is new, by comparing the stamp and the contents. Also finds
//! the symbolic links on the path of a file. If one of these links changes, the path may lead to
//! another file.
//!
//! **Most polls read only the stamp**: length, times and inode. A poll also reads the contents if
//! the stamp has changed, or if the file was modified within the last few seconds. Every thirtieth
//! poll reads the contents even if the stamp is unchanged.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::target::Fingerprint;
use crate::source::file_system::{self, FileSystemId, reach};

/// Number of polls after which the contents are read even if the stamp is unchanged.
const POLLS_PER_FULL_READ: u32 = 30;

#[derive(Debug)]
pub(super) struct PolledChanges {
    polls: u32,
    stamp: Option<FileStamp>,
    /// The result of the last poll, if it differed from the published version.
    seen: Option<Fingerprint>,
    /// A result that the site did not publish, for example an invalid file. This result is passed
    /// to the site again only after the next poll that ignores the stamp ([`POLLS_PER_FULL_READ`]).
    refused: Option<Fingerprint>,
}

impl PolledChanges {
    pub(super) const fn new(stamp: FileStamp) -> Self {
        Self { polls: 0, stamp: Some(stamp), seen: None, refused: None }
    }

    pub(super) fn must_be_read(&mut self, stamp: &FileStamp) -> bool {
        self.polls = self.polls.wrapping_add(1);
        if self.polls.is_multiple_of(POLLS_PER_FULL_READ) {
            self.refused = None;
            return true;
        }
        self.seen.is_some() || self.stamp.as_ref() != Some(stamp)
    }

    /// Stores the result of a poll, and reports whether to publish it. A new result is published
    /// when two successive polls have found it.
    pub(super) fn record_poll(
        &mut self,
        fingerprint: Fingerprint,
        known: Option<Fingerprint>,
        stamp: FileStamp,
    ) -> bool {
        self.stamp = stamp.is_reliable().then_some(stamp);
        if Some(fingerprint) == known || Some(fingerprint) == self.refused {
            self.seen = None;
            return false;
        }
        if self.seen.replace(fingerprint) != Some(fingerprint) {
            return false;
        }
        self.seen = None;
        true
    }

    /// Records that a result was passed to the site. `known` is the result that is live afterwards.
    /// If `known` differs from the passed result, the site has refused the passed result, which is
    /// stored in `refused`.
    pub(super) fn record_result(&mut self, fingerprint: Fingerprint, known: Option<Fingerprint>) {
        self.seen = None;
        self.refused = (known != Some(fingerprint)).then_some(fingerprint);
    }
}

/// The coarsest resolution of file times in any file system. Two changes of a file within this time
/// may result in the same stamp.
const COARSEST_CLOCK: Duration = Duration::from_secs(3);

/// Length, times and identity of a file. Equal stamps almost always mean equal contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    facts: Option<FileFacts>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FileFacts {
    system: FileSystemId,
    length: u64,
    modified: Option<SystemTime>,
    /// Inode number and change time of the inode. Programs can set the modification time, but not
    /// the change time. A rename also updates the change time.
    inode: (u64, i64, i64),
}

impl FileStamp {
    pub(super) fn of(path: &Path) -> Self {
        let metadata = fs::metadata(reach(path)).ok();
        Self { facts: metadata.map(|metadata| FileFacts::of(path, &metadata)) }
    }

    /// Reports whether any later change of the file is certain to change the stamp. Returns `false`
    /// for a file that was modified within [`COARSEST_CLOCK`], because file systems may round
    /// times.
    pub(super) fn is_reliable(&self) -> bool {
        let modified = self.facts.as_ref().and_then(|facts| facts.modified);
        modified.is_none_or(|modified| modified.elapsed().is_ok_and(|age| age > COARSEST_CLOCK))
    }

    pub(super) fn system(&self) -> Option<FileSystemId> {
        self.facts.as_ref().map(|facts| facts.system)
    }
}

impl FileFacts {
    fn of(path: &Path, metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let inode = {
            use std::os::unix::fs::MetadataExt;
            (metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
        };
        #[cfg(not(unix))]
        let inode = Default::default();
        let system = file_system::id(path, metadata);
        Self { system, length: metadata.len(), modified: metadata.modified().ok(), inode }
    }
}

/// Maximum number of symbolic links that are followed on the path of a file, as on Linux.
const MAX_LINKS: usize = 40;

/// Returns the path itself, the symbolic links on it, and the path of the file that the links lead
/// to. In all returned paths except the path itself, no folder is a symbolic link.
pub(super) fn links_to(path: &Path) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    let mut pending = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // The path itself is included, because the watcher needs the events for its file name.
    files.insert(pending.clone());
    for _ in 0..MAX_LINKS {
        let Some((link, target)) = first_link(&pending) else { break };
        files.insert(link.clone());
        pending = target;
    }
    files.insert(pending);
    files
}

/// Returns the first component of a path that is a symbolic link, and the path after replacing this
/// link by its target.
fn first_link(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut walked = PathBuf::new();
    let mut components = path.components();
    while let Some(component) = components.next() {
        match component {
            Component::ParentDir => {
                walked.pop();
                continue;
            }
            Component::CurDir => continue,
            _ => walked.push(component),
        }
        if let Ok(target) = fs::read_link(reach(&walked)) {
            let folder = walked.parent().unwrap_or(Path::new("/")).to_owned();
            let rest: &OsStr = components.as_path().as_os_str();
            let followed = folder.join(target);
            return Some((walked, if rest.is_empty() { followed } else { followed.join(rest) }));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::{RejectionKind, VersionHash};

    fn fingerprint(text: &str) -> Fingerprint {
        Ok(VersionHash::of(text.as_bytes()))
    }

    #[test]
    fn a_poll_result_is_offered_after_two_equal_polls_and_not_again_after_a_refusal() {
        let nowhere = FileStamp::of("/nowhere/at/all".as_ref());
        let mut changes = PolledChanges::new(nowhere.clone());
        assert!(!changes.must_be_read(&nowhere), "the stamp is what it was");
        let known = Some(Err(RejectionKind::Missing));
        assert!(!changes.record_poll(fingerprint("a"), known, nowhere.clone()));
        assert!(changes.must_be_read(&nowhere), "the second look");
        assert!(!changes.record_poll(fingerprint("b"), known, nowhere.clone()), "it changed between the polls");
        assert!(changes.record_poll(fingerprint("b"), known, nowhere.clone()));
        changes.record_result(fingerprint("b"), known);
        assert!(!changes.record_poll(fingerprint("b"), known, nowhere.clone()), "refused already");
        let mut reads = 0;
        for _ in 0..POLLS_PER_FULL_READ {
            reads += u32::from(changes.must_be_read(&nowhere));
        }
        assert_eq!(reads, 1, "now and then whatever the stamp says");
    }
}
