//! What the file system says of a file without reading it.

use std::fs::Metadata;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::source::file_system::{self, FileSystemId};

/// How coarse the clock of a file system may be: what was changed within it may be changed again without a trace.
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
        let metadata = file_system::metadata(path).ok();
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
