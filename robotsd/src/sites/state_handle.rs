//! State that outlives versions of sites and configs: the state directory, and every kill switch.
//!
//! **A kill switch belongs to the name of a site**, not to an object. A robots.txt that replaces
//! another joins the switch of the name, under the lock that switching takes. While one robots.txt
//! is being replaced by another, switching enforcement affects both.

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

/// The state directory, if there is one, the switch of every site, and that of each site. Cheap to
/// clone; clones share the state.
#[derive(Clone, Debug)]
pub(crate) struct StateHandle {
    pub(crate) directory: Option<StateDir>,
    /// The switch of every site if there is no state directory. Otherwise the directory contains
    /// it.
    all: KillSwitch,
    /// The fleet that the process belongs to, if any. Its off switches disable enforcement, too.
    pub(crate) fleet: Option<Arc<Fleet>>,
    /// Every robots.txt, by the name of its site.
    sites: Arc<Mutex<HashMap<String, Arc<Joined>>>>,
}

impl StateHandle {
    /// Opens the state directory of a config, if it names one.
    ///
    /// # Errors
    ///
    /// If another process has it open.
    pub(super) fn open(config: &Config) -> Result<Self, StateError> {
        let directory = config.state_dir.as_ref().map(StateDir::open).transpose()?;
        Ok(Self { directory, ..Self::in_memory() })
    }

    /// Logs the problems of the state directory, now and later.
    pub(super) fn log_problems(&self, log: &Log) {
        if let Some(directory) = &self.directory {
            directory.problems().into_iter().for_each(|problem| log.say(LogEvent::State, problem));
            directory.on_event(log_events::problem(log.clone(), LogEvent::State));
        }
    }

    /// Opens the state directory of a config for a dry run: without a lock, and read-only.
    pub(super) fn read_only(config: &Config) -> Self {
        Self { directory: config.state_dir.as_ref().map(StateDir::read_only), ..Self::in_memory() }
    }

    /// Returns a state that is lost when the process ends.
    pub(super) fn in_memory() -> Self {
        Self { directory: None, all: KillSwitch::default(), fleet: None, sites: Arc::default() }
    }

    /// Adds the state of the robots.txt of this name, and the switch of every site, to a builder.
    pub(super) fn attach<S>(&self, builder: LiveBuilder<S>, name: &str) -> LiveBuilder<S> {
        let builder = match &self.directory {
            Some(state) => builder.state(state, name),
            None => builder.kill_switch(&self.all),
        };
        self.fleet.iter().fold(builder, |builder, fleet| fleet.join(builder, name))
    }

    /// Joins a robots.txt to the switch of its site. It takes over the state of the one that joined
    /// before it, if that still exists. Blocks.
    pub(super) fn join(&self, site: &str, robots: &Arc<SiteRobots>) {
        let joined = self.joined(site);
        let mut joined = joined.lock();
        joined.retain(|other| other.strong_count() > 0);
        if let Some(before) = joined.last().and_then(Weak::upgrade) {
            robots.go_on_from(&before);
        }
        joined.push(Arc::downgrade(robots));
    }

    /// Returns the switch of every site.
    pub(super) fn switch(&self) -> Enforcement {
        self.directory.as_ref().map_or_else(|| self.all.enforcement(), StateDir::enforcement)
    }

    /// Returns the sites whose switch is off in the state directory, but that are not in the
    /// config, and whose state no new site inherits. Reads the directory.
    pub(super) fn switches_of_others(&self, config: &Config, inheritance: &Inheritance) -> Vec<String> {
        let Some(directory) = &self.directory else { return Vec::new() };
        // Also matches `SITE/HOST`, for a site with a folder.
        let is_known =
            |name: &str| inheritance.has_heir(name) || config.sites.iter().any(|site| is_of(&site.name, name));
        let mut names = directory.site_names();
        names.retain(|name| !is_known(name) && directory.enforcement_of(name) == Enforcement::Off);
        names
    }

    /// Switches enforcement of every site. Blocks.
    ///
    /// # Errors
    ///
    /// If the state directory could not be written. The switch has changed in this case, too.
    pub(super) fn turn(&self, to: Enforcement) -> Result<(), StateError> {
        match &self.directory {
            Some(state) => state.set_enforcement(to),
            None => {
                self.all.set_enforcement(to);
                Ok(())
            }
        }
    }

    /// Switches enforcement of one robots.txt by its name, `SITE` or `SITE/HOST`. Blocks.
    ///
    /// # Errors
    ///
    /// If the state directory could not be written. The switch has changed in this case, too.
    pub(super) fn turn_site(&self, site: &str, name: &str, to: Enforcement) -> Result<(), StateError> {
        let joined = self.joined(site);
        let joined = joined.lock();
        let lives = joined.iter().filter_map(Weak::upgrade).flat_map(|robots| robots.lives(site, &[]));
        let turned = lives.filter(|live| live.name == name).map(|live| live.robots.set_enforcement(to));
        turned.fold(Ok(()), Result::and)
    }

    fn joined(&self, site: &str) -> Arc<Joined> {
        let mut sites = self.sites.lock();
        sites.entry(site.to_owned()).or_default().clone()
    }
}

/// Every robots.txt of one name. Locked while one joins or the switch changes, so only those of the
/// same site wait for each other.
///
/// A config that gives a site another source opens a second robots.txt of the same name next to the
/// served one, until the sites are swapped. Both have joined the switch of the name, so a change
/// reaches both, and none is lost in between.
type Joined = Mutex<Vec<Weak<SiteRobots>>>;
