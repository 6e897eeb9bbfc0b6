//! Whether what a poll sees is new: where no event comes, a change is found by the stamp and by the contents; and the
//! links on the way to a file, each of which may be changed to bring another version.
//!
//! **Polling reads stamps**: length, times and inode. The contents are read when those changed, while they are fresh,
//! and every thirtieth time.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::target::Fingerprint;
use crate::source::file_system::{self, FileSystemId, reach};

/// Every so many polls the contents are read whatever the file system says of them.
const WHOLE_LOOKS: u32 = 30;

/// The results of the polls of one watched thing.
#[derive(Debug)]
pub(super) struct PolledChanges {
    looks: u32,
    stamp: Option<FileStamp>,
    /// The result of the last poll, if it was new.
    seen: Option<Fingerprint>,
    /// The result that was taken without becoming the known one: a broken file, reported once.
    refused: Option<Fingerprint>,
}

impl PolledChanges {
    pub(super) const fn new(stamp: FileStamp) -> Self {
        Self { looks: 0, stamp: Some(stamp), seen: None, refused: None }
    }

    /// Whether the contents have to be read, now that the stamp is this.
    pub(super) fn has_to_be_read(&mut self, stamp: &FileStamp) -> bool {
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(WHOLE_LOOKS) {
            self.refused = None;
            return true;
        }
        self.seen.is_some() || self.stamp.as_ref() != Some(stamp)
    }

    /// Remembers what a poll found, and returns whether to take it: two polls have to agree on what is new.
    pub(super) fn saw(&mut self, fingerprint: Fingerprint, known: Option<Fingerprint>, stamp: FileStamp) -> bool {
        self.stamp = stamp.is_telling().then_some(stamp);
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

    /// It was taken, and this is known now: a refused file is not offered again at every poll.
    pub(super) fn took(&mut self, fingerprint: Fingerprint, known: Option<Fingerprint>) {
        self.seen = None;
        self.refused = (known != Some(fingerprint)).then_some(fingerprint);
    }
}

/// How coarse the clock of a file system may be: a file that was changed within it may be changed again without a trace.
const COARSEST_CLOCK: Duration = Duration::from_secs(3);

/// Length, times and identity of a file: equal stamps mean equal contents, nearly always.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    facts: Option<FileFacts>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FileFacts {
    system: FileSystemId,
    length: u64,
    modified: Option<SystemTime>,
    /// Inode, and when the inode was changed: a rename changes that too, and no call can set it back.
    inode: (u64, i64, i64),
}

impl FileStamp {
    pub(super) fn of(path: &Path) -> Self {
        let metadata = fs::metadata(reach(path)).ok();
        Self { facts: metadata.map(|metadata| FileFacts::of(path, &metadata)) }
    }

    /// Whether a change right after this stamp was taken shows in the next one.
    pub(super) fn is_telling(&self) -> bool {
        let modified = self.facts.as_ref().and_then(|facts| facts.modified);
        modified.is_none_or(|modified| modified.elapsed().is_ok_and(|age| age > COARSEST_CLOCK))
    }

    /// The file system of the file, if it is there.
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

/// Links followed on the way to a file, as many as Linux does.
const MAX_LINKS: usize = 40;

/// The path itself and every link that is followed on the way to the file, each in its resolved folder.
pub(super) fn links_to(path: &Path) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    let mut pending = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // The name of the file in events: its name in the folder as it was given.
    files.insert(pending.clone());
    for _ in 0..MAX_LINKS {
        let Some((link, target)) = first_link(&pending) else { break };
        files.insert(link.clone());
        pending = target;
    }
    files.insert(pending);
    files
}

/// The first component of a path that is a link, and the path with that link followed.
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
    fn polling_takes_what_is_the_same_twice_and_offers_what_was_refused_once() {
        let nowhere = FileStamp::of("/nowhere/at/all".as_ref());
        let mut changes = PolledChanges::new(nowhere.clone());
        assert!(!changes.has_to_be_read(&nowhere), "the stamp is what it was");
        let known = Some(Err(RejectionKind::Missing));
        assert!(!changes.saw(fingerprint("a"), known, nowhere.clone()));
        assert!(changes.has_to_be_read(&nowhere), "the second look");
        assert!(!changes.saw(fingerprint("b"), known, nowhere.clone()), "it changed between the looks");
        assert!(changes.saw(fingerprint("b"), known, nowhere.clone()));
        changes.took(fingerprint("b"), known);
        assert!(!changes.saw(fingerprint("b"), known, nowhere.clone()), "refused already");
        let mut reads = 0;
        for _ in 0..WHOLE_LOOKS {
            reads += u32::from(changes.has_to_be_read(&nowhere));
        }
        assert_eq!(reads, 1, "now and then whatever the stamp says");
    }
}
