//! Whether the config file is what is served, for the status.

use std::path::{PathBuf, absolute};
use std::time::SystemTime;

use tower_robots::internals::Mutex;

use crate::config::SettingChange;
use crate::date::rfc3339;
use crate::report::{ConfigReport, HeldBackSetting, NextStep, RejectedConfigReport};

/// The config that is served, and the file if that holds another which cannot be used.
#[derive(Debug)]
pub(crate) struct ConfigState {
    path: PathBuf,
    state: Mutex<ConfigRecord>,
}

#[derive(Debug)]
struct ConfigRecord {
    accepted: SystemTime,
    rejected: Option<RejectionRecord>,
    /// The settings that are served with another value until the next start.
    next_start: Vec<SettingChange>,
}

#[derive(Debug)]
struct RejectionRecord {
    since: SystemTime,
    tried: SystemTime,
    why: String,
    changes: Option<Vec<SettingChange>>,
}

impl ConfigState {
    /// The config of a process that starts.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            state: Mutex::new(ConfigRecord { accepted: SystemTime::now(), rejected: None, next_start: Vec::new() }),
        }
    }

    /// The file is what is served, but for the settings that have effect from the next start on; `is_new` says whether it differs
    /// from what was served before.
    pub(crate) fn accept(&self, is_new: bool, next_start: Vec<SettingChange>) {
        let mut state = self.state.lock();
        state.rejected = None;
        state.next_start = next_start;
        if is_new {
            state.accepted = SystemTime::now();
        }
    }

    /// The file cannot be used. `changes` are the settings that it would change, where it can be read.
    pub(crate) fn reject(&self, why: &str, changes: Option<Vec<SettingChange>>) {
        let mut state = self.state.lock();
        let tried = SystemTime::now();
        let since = state.rejected.as_ref().map_or(tried, |rejected| rejected.since);
        state.rejected = Some(RejectionRecord { since, tried, why: why.to_owned(), changes });
    }

    /// Whether the file cannot be used, as far as it was read.
    pub(crate) fn is_rejected(&self) -> bool {
        self.state.lock().rejected.is_some()
    }

    /// Since when and why the file is not what is served, in one line; none where it is.
    pub(super) fn trouble(&self) -> Option<String> {
        let state = self.state.lock();
        let RejectionRecord { since, why, .. } = state.rejected.as_ref()?;
        Some(format!("the config is rejected since {}: {why}", rfc3339(*since)))
    }

    /// When the config that is served was accepted.
    pub(super) fn accepted(&self) -> SystemTime {
        self.state.lock().accepted
    }

    pub(super) fn report(&self) -> ConfigReport {
        let state = self.state.lock();
        // As it is typed from anywhere.
        let path = absolute(&self.path).unwrap_or_else(|_| self.path.clone()).display().to_string();
        let rejected = state.rejected.as_ref().map(|rejected| RejectedConfigReport {
            since: rfc3339(rejected.since),
            tried: rfc3339(rejected.tried),
            why: rejected.why.clone(),
            held_back: rejected.changes.as_deref().map(|changes| changes.iter().map(held_back).collect()),
            next: vec![NextStep::command("to see every error", ["robotsd", "config", "check", &path])],
        });
        ConfigReport {
            path,
            state: if rejected.is_some() { "rejected" } else { "accepted" }.to_owned(),
            accepted: rfc3339(state.accepted),
            rejected,
            next_start: state.next_start.iter().map(held_back).collect(),
        }
    }
}

fn held_back(change: &SettingChange) -> HeldBackSetting {
    let SettingChange { site, setting, before, after } = change.clone();
    HeldBackSetting { site, setting, running: before, file: after }
}
