//! The report about crawlers that are known, and about the evidence that they are checked by.

use serde::{Deserialize, Serialize};

/// The registry of crawlers, with the rows of a published one and of an extra file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RegistryReport {
    pub(crate) crawlers: usize,
    /// Rows for which the documentation of their operator was read.
    pub(crate) checked: usize,
    /// The last day on which that was done.
    #[serde(default)]
    pub(crate) last_checked: Option<String>,
    /// The one that is published at a URL, where one is followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) published: Option<PublishedRegistryReport>,
}

/// A registry that is published at a URL.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PublishedRegistryReport {
    pub(crate) url: String,
    /// `fetched` or `saved`; none where there is none yet.
    #[serde(default)]
    pub(crate) origin: Option<String>,
    #[serde(default)]
    pub(crate) hash: Option<String>,
    /// When its server last said that it is right.
    #[serde(default)]
    pub(crate) confirmed: Option<String>,
    /// The version that waits to be accepted.
    #[serde(default)]
    pub(crate) waiting: Option<WaitingRegistryReport>,
    /// Why the last fetch brought nothing.
    #[serde(default)]
    pub(crate) trouble: Option<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WaitingRegistryReport {
    pub(crate) hash: String,
    pub(crate) why: String,
}

/// The evidence about who sends requests.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct IdentityReport {
    #[serde(default)]
    pub(crate) lists: Vec<ListReport>,
    #[serde(default)]
    pub(crate) directories: Vec<DirectoryReport>,
    /// Addresses whose names are known, and those that wait to be looked up.
    #[serde(default)]
    pub(crate) names_known: usize,
    #[serde(default)]
    pub(crate) names_waiting: usize,
    /// Where claims fail and are not refuted.
    #[serde(default)]
    pub(crate) suspects: Vec<SuspectReport>,
    /// Why what is known of paths does not outlive the process.
    #[serde(default)]
    pub(crate) paths_trouble: Option<String>,
}

/// A published list of addresses.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ListReport {
    pub(crate) url: String,
    /// `fetched`, `saved`, `file` or `embedded`; none where there is no list.
    #[serde(default)]
    pub(crate) origin: Option<String>,
    #[serde(default)]
    pub(crate) prefixes: usize,
    /// When its operator made it, as it says itself.
    #[serde(default)]
    pub(crate) created: Option<String>,
    /// When its server last said that it is right, and how long ago that was.
    #[serde(default)]
    pub(crate) confirmed: Option<String>,
    #[serde(default)]
    pub(crate) age_seconds: Option<u64>,
    /// Why the last fetch brought nothing.
    #[serde(default)]
    pub(crate) trouble: Option<String>,
}

/// A directory of keys; one that no request has needed has neither keys nor trouble.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DirectoryReport {
    pub(crate) url: String,
    #[serde(default)]
    pub(crate) keys: Option<usize>,
    #[serde(default)]
    pub(crate) confirmed: Option<String>,
    #[serde(default)]
    pub(crate) trouble: Option<String>,
}

/// A path of requests on which no claim is refuted, because its addresses may be those of a proxy.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SuspectReport {
    pub(crate) site: String,
    pub(crate) listener: String,
    /// Empty for those whose signature names no crawler that is registered.
    pub(crate) crawler: String,
    /// What fails: `range`, `rdns` or `signature`.
    #[serde(default)]
    pub(crate) method: String,
    /// The networks of most of its addresses: what may be missing in `trusted_proxies`.
    #[serde(default)]
    pub(crate) networks: Vec<String>,
    /// When the crawler was last verified on it.
    #[serde(default)]
    pub(crate) last_verified: Option<String>,
}
