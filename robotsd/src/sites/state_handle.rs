//! The state that survives a reload, when sites are replaced: the state directory and the kill
//! switches.
//!
//! **A kill switch belongs to the name of a site**, not to an object in memory. While a new
//! robots.txt replaces an old one, both are registered under the same site name. The switch affects
//! both until the old robots.txt is dropped. Registering a robots.txt and changing the switch use
//! the same lock.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tower_robots::live::{Enforcement, KillSwitch, StateDir, StateError};
use tower_robots::source::LiveBuilder;

use super::inheritance::Inheritance;
use super::log_events;
use super::site_robots::SiteRobots;
use crate::config::Config;
use crate::fleet::Fleet;
use crate::log::{Log, LogEvent};
use crate::report::is_of;

#[derive(Clone, Debug)]
pub(crate) struct StateHandle {
    pub(crate) directory: Option<StateDir>,
    /// Kill switch for all sites if there is no state directory. Otherwise unused, because the
    /// state directory contains the switch.
    all: KillSwitch,
    /// The fleet of this process, whose kill switches also disable enforcement.
    pub(crate) fleet: Option<Arc<Fleet>>,
    /// For each site name, every robots.txt that the kill switch of that name affects.
    sites: Arc<Mutex<HashMap<String, Arc<RegisteredRobots>>>>,
}

impl StateHandle {
    /// Opens the state directory of a config, if it has one.
    ///
    /// # Errors
    ///
    /// Returns an error if another process has the state directory open.
    pub(super) fn open(config: &Config) -> Result<Self, StateError> {
        let directory = config.state_dir.as_ref().map(StateDir::open).transpose()?;
        Ok(Self { directory, ..Self::in_memory() })
    }

    pub(super) fn log_problems(&self, log: &Log) {
        if let Some(directory) = &self.directory {
            directory.problems().into_iter().for_each(|problem| log.write_message(LogEvent::State, problem));
            directory.on_event(log_events::problem_observer(log.clone(), LogEvent::State));
        }
    }

    /// Opens the state directory of a config for a dry run: read-only, and without locking it.
    pub(super) fn read_only(config: &Config) -> Self {
        Self { directory: config.state_dir.as_ref().map(StateDir::read_only), ..Self::in_memory() }
    }

    /// Returns a handle without a state directory. The switches of such a handle are lost when the
    /// process ends.
    pub(super) fn in_memory() -> Self {
        Self { directory: None, all: KillSwitch::default(), fleet: None, sites: Arc::default() }
    }

    /// Adds the stored state of the robots.txt `name` and the kill switch for all sites to a
    /// builder.
    pub(super) fn attach<S>(&self, builder: LiveBuilder<S>, name: &str) -> LiveBuilder<S> {
        let builder = match &self.directory {
            Some(state) => builder.state(state, name),
            None => builder.kill_switch(&self.all),
        };
        self.fleet.iter().fold(builder, |builder, fleet| fleet.add_kill_switches(builder, name))
    }

    /// Connects a robots.txt to the kill switch of its site. If the previous robots.txt of the site
    /// still exists, copies its state with [`SiteRobots::copy_state_from`]. Blocks.
    pub(super) fn register(&self, site: &str, robots: &Arc<SiteRobots>) {
        let registered = self.registered(site);
        let mut registered = registered.lock();
        registered.retain(|other| other.strong_count() > 0);
        if let Some(before) = registered.last().and_then(Weak::upgrade) {
            robots.copy_state_from(&before);
        }
        registered.push(Arc::downgrade(robots));
    }

    pub(super) fn switch(&self) -> Enforcement {
        self.directory.as_ref().map_or_else(|| self.all.enforcement(), StateDir::enforcement)
    }

    /// Returns the sites whose off switch in the state directory has no effect, because the config
    /// does not contain them and no new site inherits from them. Reads the state directory.
    pub(super) fn unused_switches(&self, config: &Config, inheritance: &Inheritance) -> Vec<String> {
        let Some(directory) = &self.directory else { return Vec::new() };
        // `is_of` also matches the hosts of a site with a folder (`SITE/HOST`).
        let is_known =
            |name: &str| inheritance.has_heir(name) || config.sites.iter().any(|site| is_of(&site.name, name));
        let mut names = directory.site_names();
        names.retain(|name| !is_known(name) && directory.enforcement_of(name) == Enforcement::Off);
        names
    }

    /// Sets the switch for all sites. Blocks.
    ///
    /// # Errors
    ///
    /// Returns an error if the state directory could not be written. Even then, the switch has
    /// changed.
    pub(super) fn set_switch(&self, to: Enforcement) -> Result<(), StateError> {
        match &self.directory {
            Some(state) => state.set_enforcement(to),
            None => {
                self.all.set_enforcement(to);
                Ok(())
            }
        }
    }

    /// Sets the switch of the robots.txt `name` (`SITE` or `SITE/HOST`). Blocks.
    ///
    /// # Errors
    ///
    /// Returns an error if the state directory could not be written. Even then, the switch has
    /// changed.
    pub(super) fn set_site_switch(&self, site: &str, name: &str, to: Enforcement) -> Result<(), StateError> {
        let registered = self.registered(site);
        let registered = registered.lock();
        let live_sites = registered.iter().filter_map(Weak::upgrade).flat_map(|robots| robots.live_sites(site, &[]));
        let turned = live_sites.filter(|live| live.name == name).map(|live| live.robots.set_enforcement(to));
        turned.fold(Ok(()), Result::and)
    }

    fn registered(&self, site: &str) -> Arc<RegisteredRobots> {
        let mut sites = self.sites.lock();
        sites.entry(site.to_owned()).or_default().clone()
    }
}

/// Every robots.txt in memory that the kill switch of one site name affects. The list stays locked
/// while the switch changes.
///
/// If a new config changes the source of a site, the list has two entries until the sites are
/// swapped. So a change to the switch is not lost during the swap.
type RegisteredRobots = Mutex<Vec<Weak<SiteRobots>>>;
