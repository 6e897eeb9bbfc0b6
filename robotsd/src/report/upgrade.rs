//! The report about an upgrade in place.

use serde::{Deserialize, Serialize};

/// An upgrade in place: what `POST /upgrade` answers, and what the status has of the last one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct UpgradeReport {
    /// `under-way`; `done`: the new process serves; `failed`: the process goes on as before.
    pub(crate) state: String,
    /// When that was.
    pub(crate) at: String,
    /// The number of the new process; none where none was started.
    #[serde(default)]
    pub(crate) process: Option<u32>,
    pub(crate) message: String,
}
