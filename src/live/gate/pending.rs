//! A version that waits to be accepted.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use super::objection::{Objection, ObjectionKind};
use crate::live::version::Version;
use crate::live::version_hash::VersionHash;

/// A version that the gate refused, or that was rolled back, with the reasons. Cheap to clone.
#[derive(Clone)]
pub struct Pending {
    waiting: Arc<Waiting>,
}

struct Waiting {
    version: Version,
    since: SystemTime,
    objections: Vec<Objection>,
}

impl Pending {
    pub(in crate::live) fn new(version: Version, since: SystemTime, objections: Vec<Objection>) -> Self {
        Self { waiting: Arc::new(Waiting { version, since, objections }) }
    }

    /// Its hash, by which it is accepted.
    #[must_use]
    pub fn hash(&self) -> VersionHash {
        self.waiting.version.hash()
    }

    /// The file.
    #[must_use]
    pub fn bytes(&self) -> &Arc<[u8]> {
        self.waiting.version.bytes()
    }

    /// Where the bytes came from.
    #[must_use]
    pub fn origin(&self) -> &str {
        self.waiting.version.origin()
    }

    /// Since when it waits.
    #[must_use]
    pub fn since(&self) -> SystemTime {
        self.waiting.since
    }

    /// Why it waits; never empty.
    #[must_use]
    pub fn objections(&self) -> &[Objection] {
        &self.waiting.objections
    }

    pub(in crate::live) fn version(&self) -> &Version {
        &self.waiting.version
    }

    pub(in crate::live) fn is_rolled_back(&self) -> bool {
        self.objections().iter().any(|objection| objection.kind() == ObjectionKind::RolledBack)
    }
}

/// The reasons, in one line.
impl fmt::Display for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, objection) in self.objections().iter().enumerate() {
            write!(f, "{}{objection}", if at == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending")
            .field("hash", &self.hash())
            .field("origin", &self.origin())
            .field("objections", &self.objections())
            .finish_non_exhaustive()
    }
}
