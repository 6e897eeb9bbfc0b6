//! What outlives a version of a site and a config: the state directory, and every kill switch.

use tower_robots::live::{Enforcement, KillSwitch, StateDir, StateDirInUse, StateError};
use tower_robots::source::LiveBuilder;

use super::site_robots::{SiteRobots, host_name};
use super::site_switches::SiteSwitches;
use crate::config::Config;

/// The state directory, if there is one, the switch of every site, and that of each site. Cheap to clone; clones are the
/// same.
#[derive(Clone, Debug)]
pub(crate) struct StateHandle {
    directory: Option<StateDir>,
    /// Without a state directory; with one it has the switch of every site.
    all: KillSwitch,
    sites: SiteSwitches,
}

impl StateHandle {
    /// Opens the state directory of a config, if it names one.
    ///
    /// # Errors
    ///
    /// If another process has it open.
    pub(super) fn open(config: &Config) -> Result<Self, StateDirInUse> {
        let directory = config.state_dir.as_ref().map(StateDir::open).transpose()?;
        Ok(Self { directory, ..Self::in_memory() })
    }

    /// What the state directory of a config holds, for a dry run: it is not locked, and nothing is written.
    pub(super) fn read_only(config: &Config) -> Self {
        Self { directory: config.state_dir.as_ref().map(StateDir::read_only), ..Self::in_memory() }
    }

    /// Keeps nothing beyond the process.
    pub(super) fn in_memory() -> Self {
        Self { directory: None, all: KillSwitch::new(), sites: SiteSwitches::default() }
    }

    pub(crate) const fn directory(&self) -> Option<&StateDir> {
        self.directory.as_ref()
    }

    /// A builder with the state of the robots.txt of this name, and the switch of every site.
    pub(super) fn attach<S>(&self, builder: LiveBuilder<S>, name: &str) -> LiveBuilder<S> {
        match &self.directory {
            Some(state) => builder.state(state, name),
            None => builder.kill_switch(&self.all),
        }
    }

    /// Joins what was opened to the switch of its site. Blocks.
    pub(super) fn join(&self, site: &str, robots: &SiteRobots) {
        self.sites.join(site, robots);
    }

    /// The switch of every site.
    pub(super) fn switch(&self) -> Enforcement {
        self.directory.as_ref().map_or_else(|| self.all.enforcement(), StateDir::enforcement)
    }

    /// The sites that a config does not have and whose switch is off in the state directory: they were renamed, or are gone. It
    /// reads the directory.
    pub(super) fn switches_of_others(&self, config: &Config) -> Vec<String> {
        let Some(directory) = &self.directory else { return Vec::new() };
        // `SITE/HOST`, where a site has a folder.
        let is_of = |name: &str, site: &str| name == site || name.starts_with(&host_name(site, ""));
        let is_known = |name: &str| config.sites.iter().any(|site| is_of(name, &site.name));
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

    /// Turns the switch of one robots.txt of a site, as [`SiteSwitches::turn`] does. Blocks.
    pub(super) fn turn_site(&self, site: &str, name: &str, to: Enforcement) -> Result<(), StateError> {
        self.sites.turn(site, name, to)
    }
}
