//! What a site knows from an earlier process, and how long what it decides has to last.

use std::time::SystemTime;

use super::accepted_versions::AcceptedVersions;
use super::enforcement::Enforcement;
use super::gate::Pending;
use super::history::History;
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

/// What a write must outlive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Durability {
    /// The process: what a source holds can be read again, and ten thousand files that change at once must not wait for
    /// the disk.
    Process,
    /// The machine: what an operator decided, and what waits for a decision.
    Machine,
}
