//! The state that outlives a version of a site and a config: the state directory, and every kill switch.
//!
//! **A kill switch belongs to the name of a site**, not to an object: a robots.txt that takes the place of another
//! joins the switch, under the lock under which it is turned. A turn reaches both until they are swapped.

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

/// The state directory, if there is one, the switch of every site, and that of each site. Cheap to clone; clones are the
/// same.
#[derive(Clone, Debug)]
pub(crate) struct StateHandle {
    pub(crate) directory: Option<StateDir>,
    /// Without a state directory; with one it has the switch of every site.
    all: KillSwitch,
    /// Whose marks turn enforcement off too, where the process is of one.
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

    /// Logs what is wrong with the state directory, now and later.
    pub(super) fn log_troubles(&self, log: &Log) {
        if let Some(directory) = &self.directory {
            directory.troubles().into_iter().for_each(|trouble| log.say(LogEvent::State, trouble));
            directory.on_event(log_events::trouble(log.clone(), LogEvent::State));
        }
    }

    /// The content of a config's state directory, for a dry run: it is not locked, and nothing is written.
    pub(super) fn read_only(config: &Config) -> Self {
        Self { directory: config.state_dir.as_ref().map(StateDir::read_only), ..Self::in_memory() }
    }

    /// Keeps nothing beyond the process.
    pub(super) fn in_memory() -> Self {
        Self { directory: None, all: KillSwitch::default(), fleet: None, sites: Arc::default() }
    }

    /// A builder with the state of the robots.txt of this name, and the switch of every site.
    pub(super) fn attach<S>(&self, builder: LiveBuilder<S>, name: &str) -> LiveBuilder<S> {
        let builder = match &self.directory {
            Some(state) => builder.state(state, name),
            None => builder.kill_switch(&self.all),
        };
        self.fleet.iter().fold(builder, |builder, fleet| fleet.join(builder, name))
    }

    /// Joins a robots.txt to the switch of its site. It goes on from the one that joined before it, if that is still there. Blocks.
    pub(super) fn join(&self, site: &str, robots: &Arc<SiteRobots>) {
        let joined = self.joined(site);
        let mut joined = joined.lock();
        joined.retain(|other| other.strong_count() > 0);
        if let Some(before) = joined.last().and_then(Weak::upgrade) {
            robots.go_on_from(&before);
        }
        joined.push(Arc::downgrade(robots));
    }

    /// The switch of every site.
    pub(super) fn switch(&self) -> Enforcement {
        self.directory.as_ref().map_or_else(|| self.all.enforcement(), StateDir::enforcement)
    }

    /// The sites that a config does not have, from which no new one goes on, and whose switch is off in the state directory. It reads
    /// the directory.
    pub(super) fn switches_of_others(&self, config: &Config, inheritance: &Inheritance) -> Vec<String> {
        let Some(directory) = &self.directory else { return Vec::new() };
        // `SITE/HOST`, where a site has a folder.
        let is_known =
            |name: &str| inheritance.has_heir(name) || config.sites.iter().any(|site| is_of(&site.name, name));
        let mut names = directory.site_names();
        names.retain(|name| !is_known(name) && directory.enforcement_of(name) == Enforcement::Off);
        names
    }

    /// Turns the switch of every site. Blocks.
    ///
    /// # Errors
    ///
    /// If it could not be written to the state directory; it is turned then, too.
    pub(super) fn turn(&self, to: Enforcement) -> Result<(), StateError> {
        match &self.directory {
            Some(state) => state.set_enforcement(to),
            None => {
                self.all.set_enforcement(to);
                Ok(())
            }
        }
    }

    /// Turns the switch of one robots.txt of a site, by its name, which is the site's or `SITE/HOST`. Blocks.
    ///
    /// # Errors
    ///
    /// If it could not be written to the state directory; it is turned then, too.
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

/// Every robots.txt of one name. Locked while one joins or the switch is turned: they wait for each other only where they are of one
/// site.
///
/// A config that gives a site another source opens a second robots.txt of the same name beside the one that is served, until
/// the sites are swapped. Both have joined the switch of the name, so a turn reaches both and none is lost in between.
type Joined = Mutex<Vec<Weak<SiteRobots>>>;
