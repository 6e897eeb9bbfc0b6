//! What is watched: how it is read, and what is done once it has changed.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use crate::live::{Cause, Loaded, Rejection, RejectionKind, Shared, VersionHash};
use crate::source::file;

/// What a look found.
pub(in crate::source) type ReadResult = Result<Loaded, Rejection>;

/// What a look found, to be compared: equal sights call for nothing.
pub(super) type Fingerprint = Result<VersionHash, RejectionKind>;

/// How coarse the clock of a file system may be: what was changed within it may be changed again without a trace.
const COARSEST_CLOCK: Duration = Duration::from_secs(3);

/// A thing that is watched.
pub(in crate::source) trait Target: Send + Sync {
    /// Reads it. May block for as long as the file system does.
    fn read(&self) -> ReadResult;

    /// What was taken last: `None` if that has to be taken again.
    fn known(&self) -> Option<Fingerprint>;

    /// Takes what was read; after how long it has to be looked at again, if not all of it could be taken.
    fn take(&self, cause: Cause, held: ReadResult) -> Option<Duration>;
}

pub(super) fn fingerprint(held: &ReadResult) -> Fingerprint {
    held.as_ref().map(|loaded| VersionHash::of(&loaded.bytes)).map_err(Rejection::kind)
}

/// What the file system says of a file without its being read: equal stamps mean equal contents, nearly always.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    found: Option<FileFacts>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FileFacts {
    length: u64,
    modified: Option<SystemTime>,
    /// Device, inode, and when the inode was changed: a rename changes that too, and nobody can set it back.
    identity: (u64, u64, i64, i64),
}

impl FileStamp {
    pub(super) fn of(path: &Path) -> Self {
        Self { found: std::fs::metadata(path).ok().map(|metadata| FileFacts::of(&metadata)) }
    }

    /// Whether a change that came right after this stamp was taken would show in the next one.
    pub(super) fn is_telling(&self) -> bool {
        let modified = self.found.as_ref().and_then(|found| found.modified);
        modified.is_none_or(|modified| modified.elapsed().is_ok_and(|age| age > COARSEST_CLOCK))
    }
}

impl FileFacts {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let identity = {
            use std::os::unix::fs::MetadataExt;
            (metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
        };
        #[cfg(not(unix))]
        let identity = Default::default();
        Self { length: metadata.len(), modified: metadata.modified().ok(), identity }
    }
}

/// A robots.txt. Whoever holds it may let it go at any time; then there is nothing left to do.
pub(in crate::source) struct SiteTarget(pub(in crate::source) Weak<Shared>);

impl SiteTarget {
    fn gone() -> Rejection {
        Rejection::new(RejectionKind::Missing, &"".into())
    }
}

impl Target for SiteTarget {
    fn read(&self) -> ReadResult {
        self.0.upgrade().ok_or_else(Self::gone)?.load()
    }

    fn known(&self) -> Option<Fingerprint> {
        self.0.upgrade().map(|shared| shared.live().ok_or(RejectionKind::Missing))
    }

    fn take(&self, cause: Cause, held: ReadResult) -> Option<Duration> {
        self.0.upgrade()?.take(cause, held);
        None
    }
}

/// Anything else that is kept in a file or a folder, and whoever wants to know of its changes.
pub(super) struct CallbackTarget<R, C> {
    read: R,
    changed: C,
    /// Nothing where the last was not taken whole.
    known: Mutex<Option<Fingerprint>>,
}

impl<R, C> CallbackTarget<R, C>
where
    R: Fn() -> ReadResult + Send + Sync,
    C: Fn() -> Option<Duration> + Send + Sync,
{
    /// What it holds when this is called is no change.
    pub(super) fn new(read: R, changed: C) -> Self {
        let known = Mutex::new(Some(fingerprint(&read())));
        Self { read, changed, known }
    }
}

impl<R, C> Target for CallbackTarget<R, C>
where
    R: Fn() -> ReadResult + Send + Sync,
    C: Fn() -> Option<Duration> + Send + Sync,
{
    fn read(&self) -> ReadResult {
        (self.read)()
    }

    fn known(&self) -> Option<Fingerprint> {
        *self.known()
    }

    fn take(&self, _: Cause, held: ReadResult) -> Option<Duration> {
        let now = Some(fingerprint(&held));
        let before = std::mem::replace(&mut *self.known(), now);
        let again = if before == now { None } else { (self.changed)() };
        if again.is_some() {
            *self.known() = None;
        }
        again
    }
}

impl<R, C> CallbackTarget<R, C> {
    fn known(&self) -> MutexGuard<'_, Option<Fingerprint>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the whole of a file.
pub(super) fn contents(path: PathBuf) -> impl Fn() -> ReadResult + Send + Sync {
    let origin: Arc<str> = path.to_string_lossy().into();
    move || {
        let read = file::read(&path, &origin)?;
        Ok(Loaded { bytes: read.bytes.into(), modified: read.modified })
    }
}

/// Reads the names in a folder: they are what its contents are.
pub(super) fn names(
    path: PathBuf,
    counts: impl Fn(&str) -> bool + Send + Sync,
) -> impl Fn() -> ReadResult + Send + Sync {
    let origin: Arc<str> = path.to_string_lossy().into();
    move || {
        let failed = |error| Rejection::io(error, &origin);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&path).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let name = name.to_string_lossy();
            if counts(&name) {
                names.push(name.into_owned());
            }
        }
        names.sort_unstable();
        Ok(Loaded { bytes: names.join("\0").into_bytes().into(), modified: None })
    }
}
