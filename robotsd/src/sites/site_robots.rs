//! Holds the live robots.txt of a site, or its directory with one robots.txt per host, and counts
//! reloads.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tower_robots::agent::Registry;
use tower_robots::check;
use tower_robots::internals::Remembered;
use tower_robots::layer::RobotsLayer;
use tower_robots::live::{Enforcement, Gate, LiveRobots, Reload, Snapshot};
use tower_robots::policy::Policy;
use tower_robots::source::Directory;

use super::appended_parts::AppendedParts;
use super::site_pages::SitePages;
use crate::report::ReloadCount;

#[derive(Debug)]
pub(super) struct SiteRobots {
    kind: RobotsKind,
    pub(super) parts: Option<AppendedParts>,
    /// The lock is held during a reload, so that reloads of the same site run one after another.
    pub(super) order: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug)]
pub(super) enum RobotsKind {
    One(LiveRobots, ReloadCounts),
    Directory {
        directory: Directory,
        /// Settings for files that are added later.
        settings: Arc<Mutex<SiteSettings>>,
        counts: Arc<HostCounts>,
    },
}

#[derive(Debug, Default)]
pub(super) struct HostCounts(Mutex<HashMap<String, ReloadCounts>>);

/// The live robots.txt of a site. A site with a directory has one `LiveSite` per host.
#[derive(Clone, Debug)]
pub(crate) struct LiveSite {
    /// Name of the robots.txt: `SITE`, or `SITE/HOST` if the site has a directory.
    pub(crate) name: String,
    /// Host patterns; empty for all hosts.
    pub(crate) hosts: Vec<String>,
    pub(crate) robots: LiveRobots,
    pub(super) counts: ReloadCounts,
    pub(super) pages: Option<Arc<SitePages>>,
}

/// State of every robots.txt of a previous site. The key is the name of the robots.txt without the
/// name of the site.
pub(super) type FormerSite = HashMap<String, Remembered>;

impl SiteRobots {
    pub(super) fn new(kind: RobotsKind, parts: Option<AppendedParts>) -> Arc<Self> {
        Arc::new(Self { kind, parts, order: Arc::default() })
    }

    /// Returns the lock for reading the robots.txt again. Returns `None` for a directory, because
    /// its files may be read concurrently.
    pub(super) fn reload_order(&self) -> Option<Arc<tokio::sync::Mutex<()>>> {
        self.single_robots().map(|_| Arc::clone(&self.order))
    }

    pub(super) fn live_sites(&self, site: &str, hosts: &[String]) -> Vec<LiveSite> {
        match &self.kind {
            RobotsKind::One(robots, counts) => {
                let (robots, counts) = (robots.clone(), counts.clone());
                vec![LiveSite { name: site.to_owned(), hosts: hosts.to_vec(), robots, counts, pages: None }]
            }
            RobotsKind::Directory { directory, counts, .. } => {
                let live = |(host, robots): (String, LiveRobots)| {
                    let counts = counts.of(&host);
                    LiveSite { name: host_name(site, &host), hosts: vec![host], robots, counts, pages: None }
                };
                directory.hosts().into_iter().map(live).collect()
            }
        }
    }

    pub(super) fn single_robots(&self) -> Option<&LiveRobots> {
        match &self.kind {
            RobotsKind::One(robots, _) => Some(robots),
            RobotsKind::Directory { .. } => None,
        }
    }

    /// Returns a layer for one worker. All layers of a site use the same snapshots of robots.txt.
    pub(super) fn layer(&self) -> RobotsLayer {
        match &self.kind {
            RobotsKind::One(live, _) => RobotsLayer::new(live.clone()),
            RobotsKind::Directory { directory, .. } => RobotsLayer::new(directory),
        }
    }

    pub(super) fn former(&self) -> FormerSite {
        self.live_sites("", &[]).into_iter().map(|live| (live.name, live.robots.remembered())).collect()
    }

    /// Copies the states of kill switches, and the times when live versions were published, from
    /// the robots.txt that this robots.txt replaces. For a new host, enforcement is switched off if
    /// enforcement is off for all previous hosts. Blocks while it writes to the state directory.
    pub(super) fn copy_state_from(&self, before: &Self) {
        let before: HashMap<_, _> = before
            .live_sites("", &[])
            .into_iter()
            .map(|live| (live.name, (live.robots.status().switch, live.robots)))
            .collect();
        let was_off = !before.is_empty() && before.values().all(|(switch, _)| *switch == Enforcement::Off);
        for LiveSite { name, robots, .. } in self.live_sites("", &[]) {
            let own = robots.status().switch;
            let switch = match before.get(&name) {
                Some((switch, before)) => {
                    robots.count_age_from(before);
                    *switch
                }
                None if was_off => Enforcement::Off,
                None => own,
            };
            if own != switch {
                // The result is ignored, because the status reports that the switch could not be
                // written.
                let _ = robots.set_enforcement(switch);
            }
        }
    }

    /// Describes the ignored files of a directory: the first file, and the number of the other
    /// files.
    pub(super) fn ignored(&self) -> Option<String> {
        let RobotsKind::Directory { directory, .. } = &self.kind else { return None };
        let ignored = directory.ignored();
        let first = ignored.first()?;
        Some(match ignored.len() - 1 {
            0 => first.clone(),
            others => format!("{first}; other ignored files: {others}"),
        })
    }

    /// Returns the reason why changes are found only by polling. Returns `None` if the system
    /// reports changes.
    pub(super) fn watch_problem(&self) -> Option<String> {
        match &self.kind {
            RobotsKind::One(live, _) => live.status().watch_problem,
            RobotsKind::Directory { directory, .. } => directory.watch_problem(),
        }
    }

    /// Looks for added and removed files in a directory. The listener of the directory logs errors.
    /// Blocks.
    pub(super) fn rescan(&self) {
        if let RobotsKind::Directory { directory, .. } = &self.kind {
            let _ = directory.rescan();
        }
    }

    /// Applies new settings. If the registry or the check options have changed, blocks while the
    /// live version is compiled or checked again.
    pub(super) fn apply(&self, settings: &SiteSettings) {
        self.change(
            |held| held.clone_from(settings),
            |live| {
                live.set_policy(settings.policy.clone());
                live.set_registry(settings.registry.clone());
                live.set_check(settings.check.clone());
                live.set_gate(settings.gate.clone());
            },
        );
    }

    /// Applies a registry. The check options contain the crawlers that the site refuses, and the
    /// registry helps to determine these crawlers.
    pub(super) fn set_registry(&self, registry: &Arc<Registry>, check: &check::Options) {
        self.change(
            |held| {
                held.registry.clone_from(registry);
                held.check.clone_from(check);
            },
            |live| {
                live.set_registry(registry.clone());
                live.set_check(check.clone());
            },
        );
    }

    pub(super) fn set_gate(&self, gate: &Gate) {
        self.change(|held| held.gate.clone_from(gate), |live| live.set_gate(gate.clone()));
    }

    /// Changes the settings. In a directory, the settings for files that are added later are
    /// changed first, so that no file is missed. A file that is added in the meantime gets its
    /// settings twice.
    fn change(&self, settings: impl FnOnce(&mut SiteSettings), live: impl Fn(&LiveRobots)) {
        match &self.kind {
            RobotsKind::One(robots, _) => live(robots),
            RobotsKind::Directory { directory, settings: held, .. } => {
                settings(&mut held.lock());
                directory.hosts().iter().for_each(|(_, robots)| live(robots));
            }
        }
    }
}

impl HostCounts {
    /// Returns the counts of a host. The counts are kept if the file of the host is removed and
    /// added again.
    pub(super) fn of(&self, host: &str) -> ReloadCounts {
        self.0.lock().entry(host.to_owned()).or_default().clone()
    }
}

pub(super) fn host_name(site: &str, host: &str) -> String {
    format!("{site}/{host}")
}

/// Number of reloads of a robots.txt since the process started, by cause and outcome.
#[derive(Clone, Debug, Default)]
pub(super) struct ReloadCounts(Arc<Mutex<BTreeMap<(&'static str, &'static str), u64>>>);

impl ReloadCounts {
    pub(super) fn listener(&self) -> impl Fn(&Reload, &Snapshot) + Send + Sync + 'static {
        let this = self.clone();
        move |reload, _| {
            let mut counts = this.0.lock();
            *counts.entry((reload.cause.as_str(), reload.outcome.kind().as_str())).or_default() += 1;
        }
    }

    pub(super) fn report(&self) -> Vec<ReloadCount> {
        let counts = self.0.lock();
        let count = |((cause, outcome), count): (&(&str, &str), &u64)| ReloadCount {
            cause: (*cause).to_owned(),
            outcome: (*outcome).to_owned(),
            count: *count,
        };
        counts.iter().map(count).collect()
    }
}

/// Settings of a robots.txt that do not depend on its source.
#[derive(Clone, Debug)]
pub(super) struct SiteSettings {
    pub(super) policy: Policy,
    pub(super) registry: Arc<Registry>,
    pub(super) check: check::Options,
    pub(super) gate: Gate,
}
