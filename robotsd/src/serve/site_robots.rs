//! The robots.txt of a site, live: one, or a directory with one for each host.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tower_robots::agent::Registry;
use tower_robots::layer::RobotsLayer;
use tower_robots::live::{Enforcement, Gate, LiveRobots};
use tower_robots::source::Directory;

use super::reload_counts::ReloadCounts;
use super::site_settings::SiteSettings;

/// A site's robots.txt, or a folder of them. Cheap to clone; clones are the same.
#[derive(Clone)]
pub(super) enum SiteRobots {
    One(LiveRobots, ReloadCounts),
    Directory(RobotsDirectory),
}

/// A folder with a robots.txt for each host.
#[derive(Clone)]
pub(super) struct RobotsDirectory {
    pub(super) directory: Directory,
    /// For files that are yet to come.
    pub(super) terms: Arc<Mutex<SiteSettings>>,
    /// By host.
    pub(super) tallies: Arc<Mutex<HashMap<String, ReloadCounts>>>,
}

/// One live robots.txt: that of a site, or of a host of a site that has a folder of them.
#[derive(Clone, Debug)]
pub(crate) struct LiveSite {
    /// The site's name, and the host's behind a slash where the site has a folder.
    pub(crate) name: String,
    /// Host patterns; none for every host.
    pub(crate) hosts: Vec<String>,
    pub(crate) robots: LiveRobots,
    /// What came of which cause.
    pub(super) tally: ReloadCounts,
}

impl SiteRobots {
    /// What is live of it now.
    pub(super) fn lives(&self, site: &str, hosts: &[String]) -> Vec<LiveSite> {
        match self {
            Self::One(robots, tally) => {
                let (robots, tally) = (robots.clone(), tally.clone());
                vec![LiveSite { name: site.to_owned(), hosts: hosts.to_vec(), robots, tally }]
            }
            Self::Directory(folder) => {
                let tallies = folder.tallies.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let live = |(host, robots): (String, LiveRobots)| {
                    let tally = tallies.get(&host).cloned().unwrap_or_default();
                    LiveSite { name: within(site, &host), hosts: vec![host], robots, tally }
                };
                folder.directory.hosts().into_iter().map(live).collect()
            }
        }
    }

    /// A layer of one worker's own. All layers of a site read the same snapshots.
    pub(super) fn layer(&self) -> RobotsLayer {
        match self {
            Self::One(live, _) => RobotsLayer::new(live.clone()),
            Self::Directory(folder) => RobotsLayer::new(&folder.directory),
        }
    }

    /// Has the switches stand as in what this takes the place of; off for whatever is new where all of that was off.
    pub(super) fn take_switches(&self, before: &Self) {
        let before: HashMap<_, _> =
            before.lives("", &[]).into_iter().map(|live| (live.name, live.robots.status().switch())).collect();
        let was_off = !before.is_empty() && before.values().all(|switch| *switch == Enforcement::Off);
        for LiveSite { name, robots, .. } in self.lives("", &[]) {
            let own = robots.status().switch();
            let switch = before.get(&name).copied().unwrap_or(if was_off { Enforcement::Off } else { own });
            if own != switch {
                // What could not be written down stands in the status.
                let _ = robots.set_enforcement(switch);
            }
        }
    }

    /// What does not work as it should with all of it; troubles of one robots.txt stand in its status.
    pub(super) fn watch_trouble(&self) -> Option<String> {
        match self {
            Self::One(live, _) => live.status().watch_trouble().map(str::to_owned),
            Self::Directory(folder) => folder.directory.watch_trouble(),
        }
    }

    /// Looks for names that have come and gone. Blocks; what is wrong has been told.
    pub(super) fn rescan(&self) {
        if let Self::Directory(folder) = self {
            let _ = folder.directory.rescan();
        }
    }

    /// Takes it by other terms from now on. Blocks while what is live is made anew, which a registry or checks that are
    /// others call for.
    pub(super) fn take_by(&self, terms: &SiteSettings) {
        self.change(
            |held| held.clone_from(terms),
            |live| {
                live.set_policy(terms.policy.clone());
                live.set_registry(terms.registry.clone());
                live.set_check(terms.check.clone());
                live.set_gate(terms.gate.clone());
            },
        );
    }

    pub(super) fn set_registry(&self, registry: &Arc<Registry>) {
        self.change(|held| held.registry.clone_from(registry), |live| live.set_registry(registry.clone()));
    }

    pub(super) fn set_gate(&self, gate: &Gate) {
        self.change(|held| held.gate.clone_from(gate), |live| live.set_gate(gate.clone()));
    }

    /// Files that are yet to come first: one that is opened meanwhile is changed again, and none is left out.
    fn change(&self, terms: impl FnOnce(&mut SiteSettings), live: impl Fn(&LiveRobots)) {
        match self {
            Self::One(robots, _) => live(robots),
            Self::Directory(folder) => {
                terms(&mut folder.terms.lock().unwrap_or_else(PoisonError::into_inner));
                folder.directory.hosts().iter().for_each(|(_, robots)| live(robots));
            }
        }
    }
}

impl fmt::Debug for SiteRobots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(live, _) => f.debug_tuple("One").field(live).finish(),
            Self::Directory(folder) => f.debug_tuple("Directory").field(&folder.directory).finish(),
        }
    }
}

/// What a host of a site with a folder is called.
pub(super) fn within(site: &str, host: &str) -> String {
    format!("{site}/{host}")
}
