//! The report about the config file.

use serde::{Deserialize, Serialize};

use super::NextStep;

/// The config file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ConfigReport {
    pub(crate) path: String,
    /// `accepted`: the file is what is served; `rejected`: it cannot be used, and the config before is served.
    pub(crate) state: String,
    /// When the config that is served was accepted.
    pub(crate) accepted: String,
    #[serde(default)]
    pub(crate) rejected: Option<RejectedConfigReport>,
    /// The settings of the config that is served which have another value until robotsd starts again.
    #[serde(default)]
    pub(crate) next_start: Vec<HeldBackSetting>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RejectedConfigReport {
    /// Since when the file cannot be used, and when it was last tried.
    pub(crate) since: String,
    pub(crate) tried: String,
    /// The first error, with path, line and column, and how many more there are.
    pub(crate) why: String,
    /// The settings that are served with another value than the file has; none where the file cannot be read so far.
    #[serde(default)]
    pub(crate) held_back: Option<Vec<HeldBackSetting>>,
    /// What to do next.
    #[serde(default)]
    pub(crate) next: Vec<NextStep>,
}

/// A setting that has another value in the file than in the process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HeldBackSetting {
    #[serde(default)]
    pub(crate) site: Option<String>,
    pub(crate) setting: String,
    /// The value that is served; none where it is not set.
    #[serde(default)]
    pub(crate) running: Option<String>,
    /// The value in the file, likewise.
    #[serde(default)]
    pub(crate) file: Option<String>,
}
