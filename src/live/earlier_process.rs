//! What a site knows from an earlier process: the state directory holds it, and the site begins with it.

use std::time::SystemTime;

use super::accepted_versions::AcceptedVersions;
use super::enforcement::Enforcement;
use super::gate::Pending;
use super::reload_history::History;
use super::version_hash::VersionHash;

/// What a site knows from an earlier process.
#[derive(Default)]
pub(super) struct Remembered {
    pub(super) versions: AcceptedVersions,
    pub(super) pending: Option<Pending>,
    pub(super) history: History,
    pub(super) enforcement: Enforcement,
    /// What was live last, as far as that is known.
    pub(super) was_live: WasLive,
}

/// What was live when the process before ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum WasLive {
    /// The current one of the versions that are remembered.
    Current,
    /// Nothing says what.
    #[default]
    Unknown,
    /// Another one, accepted then, whose bytes are missing.
    Other(VersionHash, SystemTime),
}
