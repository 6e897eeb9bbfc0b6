//! What the formats of lists have in common.

use crate::agent::Network;

/// Five times the longest list of addresses that is published, and 50 times the longest of prefixes.
pub(super) const MOST_PREFIXES: usize = 50_000;

/// What is read of a list, in any of its formats.
#[derive(Debug, Default)]
pub(super) struct Entries {
    pub(super) prefixes: Vec<Network>,
    pub(super) skipped: usize,
    pub(super) created: Option<String>,
}
