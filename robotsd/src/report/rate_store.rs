//! The report about the store in which processes count crawlers together.

use serde::{Deserialize, Serialize};

use super::KindCount;

/// The store in which processes share what they count of crawlers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RateStoreReport {
    /// Its URL, without user and password.
    pub(crate) place: String,
    /// `used`, `out` while each process counts for itself, or `partly` while it does so for the buckets of some nodes of a cluster.
    pub(crate) state: String,
    /// Why no request asks it, where that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unasked: Option<String>,
    /// What failed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trouble: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trouble_at: Option<String>,
    /// How often it was lost.
    #[serde(default)]
    pub(crate) outages: u64,
    /// Questions to it: `answered`, `late` or `failed`.
    #[serde(default)]
    pub(crate) calls: Vec<KindCount>,
    /// Limited requests: `allowed` or `denied` by it, `known-allowed` or `known-denied` by what it said before, or counted by this
    /// process `alone`.
    #[serde(default)]
    pub(crate) requests: Vec<KindCount>,
}
