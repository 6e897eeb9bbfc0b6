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
    rejected: Option<RejectedConfigReport>,
    /// The settings that are served with another value until the next start.
    next_start: Vec<HeldBackSetting>,
}

impl ConfigState {
    /// The config of a process that starts.
    pub(crate) fn new(path: PathBuf) -> Self {
        let state = ConfigRecord { accepted: SystemTime::now(), rejected: None, next_start: Vec::new() };
        Self { path, state: Mutex::new(state) }
    }

    /// The file is what is served, but for the settings that have effect from the next start on; `is_new` says whether it differs
    /// from what was served before.
    pub(crate) fn accept(&self, is_new: bool, next_start: Vec<SettingChange>) {
        let mut state = self.state.lock();
        state.rejected = None;
        state.next_start = next_start.into_iter().map(held_back).collect();
        if is_new {
            state.accepted = SystemTime::now();
        }
    }

    /// The file cannot be used. `changes` are the settings that it would change, where it can be read.
    pub(crate) fn reject(&self, why: &str, changes: Option<Vec<SettingChange>>) {
        let mut state = self.state.lock();
        let tried = rfc3339(SystemTime::now());
        state.rejected = Some(RejectedConfigReport {
            since: state.rejected.take().map_or_else(|| tried.clone(), |rejected| rejected.since),
            tried,
            why: why.to_owned(),
            held_back: changes.map(|changes| changes.into_iter().map(held_back).collect()),
            next: vec![NextStep::command("to see every error", ["robotsd", "config", "check", &self.path()])],
        });
    }

    /// Whether the file cannot be used, as far as it was read.
    pub(crate) fn is_rejected(&self) -> bool {
        self.state.lock().rejected.is_some()
    }

    /// Since when and why the file is not what is served, in one line; none where it is.
    pub(super) fn trouble(&self) -> Option<String> {
        let state = self.state.lock();
        let RejectedConfigReport { since, why, .. } = state.rejected.as_ref()?;
        Some(format!("the config is rejected since {since}: {why}"))
    }

    /// When the config that is served was accepted.
    pub(super) fn accepted(&self) -> SystemTime {
        self.state.lock().accepted
    }

    pub(super) fn report(&self) -> ConfigReport {
        let state = self.state.lock();
        ConfigReport {
            path: self.path(),
            state: if state.rejected.is_some() { "rejected" } else { "accepted" }.to_owned(),
            accepted: rfc3339(state.accepted),
            rejected: state.rejected.clone(),
            next_start: state.next_start.clone(),
        }
    }

    /// The path as it is typed from anywhere.
    fn path(&self) -> String {
        absolute(&self.path).unwrap_or_else(|_| self.path.clone()).display().to_string()
    }
}

fn held_back(change: SettingChange) -> HeldBackSetting {
    let SettingChange { site, setting, before, after } = change;
    HeldBackSetting { site, setting, running: before, file: after }
}
