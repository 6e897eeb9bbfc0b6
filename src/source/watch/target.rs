//! The kinds of watched files and folders. Each kind defines how a target is read, and how a change
//! is processed.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::live::{Cause, Loaded, Mutex, Rejection, RejectionKind, Site, Version, VersionHash};
use crate::source::file;
use crate::source::file_system::reach;

pub(super) type ReadResult = Loaded;

/// Identifies the result of a read. Equal fingerprints mean that nothing has changed between two
/// reads.
pub(super) type Fingerprint = Result<VersionHash, RejectionKind>;

pub(super) trait Target: Send + Sync {
    /// Reads the target. Blocks until the file system responds.
    fn read(&self) -> ReadResult;

    /// Returns the fingerprint of the result that was processed last; `None` if the result must be
    /// processed again.
    fn known(&self) -> Option<Fingerprint>;

    /// Processes the result of a read, for example by publishing it. If a part of the result could
    /// not be processed yet, returns the time until the next read.
    fn take(&self, cause: Cause, read: ReadResult) -> Option<Duration>;
}

pub(super) fn fingerprint(read: &ReadResult) -> Fingerprint {
    read.as_ref().map(Version::hash).map_err(|rejection| rejection.kind)
}

/// The robots.txt of a site, as a watched target. If the site was dropped, `read` returns an error,
/// and the other methods do nothing.
pub(super) struct SiteTarget(pub(super) Weak<Site>);

impl Target for SiteTarget {
    fn read(&self) -> ReadResult {
        self.0.upgrade().ok_or_else(|| Rejection::new(RejectionKind::Missing, &"".into()))?.load()
    }

    fn known(&self) -> Option<Fingerprint> {
        self.0.upgrade().map(|site| site.live_source().ok_or(RejectionKind::Missing))
    }

    fn take(&self, cause: Cause, read: ReadResult) -> Option<Duration> {
        self.0.upgrade()?.offer(cause, read.into());
        None
    }
}

pub(super) struct CallbackTarget {
    read: Box<dyn Fn() -> ReadResult + Send + Sync>,
    changed: Box<dyn Fn() -> Option<Duration> + Send + Sync>,
    known: Mutex<Option<Fingerprint>>,
}

impl CallbackTarget {
    /// Creates a target. The content at the time of this call is not reported as a change.
    pub(super) fn new(
        read: impl Fn() -> ReadResult + Send + Sync + 'static,
        changed: impl Fn() -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        let known = Mutex::new(Some(fingerprint(&read())));
        Self { read: Box::new(read), changed: Box::new(changed), known }
    }
}

impl Target for CallbackTarget {
    fn read(&self) -> ReadResult {
        (self.read)()
    }

    fn known(&self) -> Option<Fingerprint> {
        *self.known.lock()
    }

    fn take(&self, _: Cause, read: ReadResult) -> Option<Duration> {
        let now = Some(fingerprint(&read));
        let before = std::mem::replace(&mut *self.known.lock(), now);
        let again = if before == now { None } else { (self.changed)() };
        if again.is_some() {
            *self.known.lock() = None;
        }
        again
    }
}

pub(super) fn contents(path: PathBuf) -> impl Fn() -> ReadResult + Send + Sync {
    let origin: Arc<str> = path.to_string_lossy().into();
    move || file::load(&path, &origin)
}

/// Returns a function that lists the names in a folder. The function returns the joined names
/// instead of the contents of a file. Names that `counts` rejects are omitted.
pub(super) fn names(
    path: PathBuf,
    counts: impl Fn(&str) -> bool + Send + Sync,
) -> impl Fn() -> ReadResult + Send + Sync {
    let origin: Arc<str> = path.to_string_lossy().into();
    move || {
        let failed = |error| Rejection::io(error, &origin);
        let mut names = Vec::new();
        for entry in fs::read_dir(reach(&path)).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let name = name.to_string_lossy();
            if counts(&name) {
                names.push(name.into_owned());
            }
        }
        names.sort_unstable();
        Ok(Version::new(names.join("\0").into_bytes(), &origin, None))
    }
}
