//! What outlives a version of a site: the state directory, and the switch of every site.

use tower_robots::live::{Enforcement, KillSwitch, StateDir, StateError};
use tower_robots::source::LiveBuilder;

use crate::config::Config;

/// What is known of every site whatever its version: the state directory, or without one the switch of all. Cheap to clone;
/// clones are the same.
#[derive(Clone, Debug)]
pub(super) struct StateHandle {
    pub(super) state: Option<StateDir>,
    switch: KillSwitch,
}

impl StateHandle {
    /// Opens the state directory of a config, if it names one.
    pub(super) fn open(config: &Config) -> Self {
        Self { state: config.state_dir.as_ref().map(StateDir::open), ..Self::in_memory() }
    }

    /// Keeps nothing beyond the process.
    pub(super) fn in_memory() -> Self {
        Self { state: None, switch: KillSwitch::new() }
    }

    /// Adds to a builder where the site of this name keeps its state, and the switch of every site.
    pub(super) fn finish(&self, builder: LiveBuilder, name: &str) -> LiveBuilder {
        match &self.state {
            Some(state) => builder.state(state, name),
            None => builder.kill_switch(&self.switch),
        }
    }

    /// The switch of every site.
    pub(super) fn switch(&self) -> Enforcement {
        self.state.as_ref().map_or_else(|| self.switch.enforcement(), StateDir::enforcement)
    }

    /// Turns the switch of every site; fails where that could not be written down.
    pub(super) fn set_switch(&self, to: Enforcement) -> Result<(), StateError> {
        match &self.state {
            Some(state) => state.set_enforcement(to),
            None => {
                self.switch.set_enforcement(to);
                Ok(())
            }
        }
    }
}
