//! The robots.txt of a site, live: one, or a directory with one for each host; and how often it was reloaded.

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

/// A site's robots.txt, or a directory of them.
#[derive(Debug)]
pub(super) struct SiteRobots {
    kind: RobotsKind,
    /// The parts that are appended to each robots.txt of it.
    pub(super) parts: Option<AppendedParts>,
    /// Held by those who read its files on request, one at a time.
    pub(super) order: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug)]
pub(super) enum RobotsKind {
    One(LiveRobots, ReloadCounts),
    /// A directory with a robots.txt for each host.
    Directory {
        directory: Directory,
        /// For files that are yet to come.
        settings: Arc<Mutex<SiteSettings>>,
        counts: Arc<HostCounts>,
    },
}

/// The reload counts of a directory, by host.
#[derive(Debug, Default)]
pub(super) struct HostCounts(Mutex<HashMap<String, ReloadCounts>>);

/// One live robots.txt: that of a site, or of a host of a site that has a directory of them.
#[derive(Clone, Debug)]
pub(crate) struct LiveSite {
    /// The site's name; with a directory `SITE/HOST`.
    pub(crate) name: String,
    /// Host patterns; none for every host.
    pub(crate) hosts: Vec<String>,
    pub(crate) robots: LiveRobots,
    pub(super) counts: ReloadCounts,
    /// The pages that its gate watches, if it is that of a site.
    pub(super) pages: Option<Arc<SitePages>>,
}

/// Every robots.txt of a site before, by what its name has behind that of the site.
pub(super) type FormerSite = HashMap<String, Remembered>;

impl SiteRobots {
    pub(super) fn new(kind: RobotsKind, parts: Option<AppendedParts>) -> Arc<Self> {
        Arc::new(Self { kind, parts, order: Arc::default() })
    }

    /// [`SiteRobots::order`] where it is one robots.txt; the files of a directory are read side by side.
    pub(super) fn reload_order(&self) -> Option<Arc<tokio::sync::Mutex<()>>> {
        self.only().map(|_| Arc::clone(&self.order))
    }

    /// Every robots.txt of it, by the name of the site.
    pub(super) fn lives(&self, site: &str, hosts: &[String]) -> Vec<LiveSite> {
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

    /// The robots.txt, where there is one for the whole site.
    pub(super) fn only(&self) -> Option<&LiveRobots> {
        match &self.kind {
            RobotsKind::One(robots, _) => Some(robots),
            RobotsKind::Directory { .. } => None,
        }
    }

    /// A layer of one worker's own. All layers of a site read the same snapshots.
    pub(super) fn layer(&self) -> RobotsLayer {
        match &self.kind {
            RobotsKind::One(live, _) => RobotsLayer::new(live.clone()),
            RobotsKind::Directory { directory, .. } => RobotsLayer::new(directory),
        }
    }

    /// What is remembered of it, for one that takes its place.
    pub(super) fn former(&self) -> FormerSite {
        self.lives("", &[]).into_iter().map(|live| (live.name, live.robots.remembered())).collect()
    }

    /// Turns the switches as in the robots.txt that this one replaces, and counts the age of what is live on from there; a host that is
    /// new is off where all of them are. Blocks: it writes to the state directory.
    pub(super) fn go_on_from(&self, before: &Self) {
        let before: HashMap<_, _> = before
            .lives("", &[])
            .into_iter()
            .map(|live| (live.name, (live.robots.status().switch, live.robots)))
            .collect();
        let was_off = !before.is_empty() && before.values().all(|(switch, _)| *switch == Enforcement::Off);
        for LiveSite { name, robots, .. } in self.lives("", &[]) {
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
                // A failure to write it stands in the status.
                let _ = robots.set_enforcement(switch);
            }
        }
    }

    /// The files of a directory that are passed over: the first with the reason, and how many there are besides.
    pub(super) fn ignored(&self) -> Option<String> {
        let RobotsKind::Directory { directory, .. } = &self.kind else { return None };
        let ignored = directory.ignored();
        let first = ignored.first()?;
        Some(match ignored.len() - 1 {
            0 => first.clone(),
            others => format!("{first}; files that are passed over besides: {others}"),
        })
    }

    /// Why changes are found only by polling, of the directory or the file.
    pub(super) fn watch_trouble(&self) -> Option<String> {
        match &self.kind {
            RobotsKind::One(live, _) => live.status().watch_trouble,
            RobotsKind::Directory { directory, .. } => directory.watch_trouble(),
        }
    }

    /// Looks for files that have come and gone. Blocks; errors are logged by the directory's listener.
    pub(super) fn rescan(&self) {
        if let RobotsKind::Directory { directory, .. } = &self.kind {
            let _ = directory.rescan();
        }
    }

    /// Applies other settings. Blocks while the live version is compiled or checked again, which another registry or other
    /// checks require.
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

    /// The checks go with a registry: they know which of its crawlers the site refuses.
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

    /// The settings of files that are yet to come change first: a file that is opened meanwhile is changed again, and none is
    /// left out.
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
    /// The counts of a host. They stay when its file goes and comes again.
    pub(super) fn of(&self, host: &str) -> ReloadCounts {
        self.0.lock().entry(host.to_owned()).or_default().clone()
    }
}

/// The name of a host's robots.txt in a site with a directory.
pub(super) fn host_name(site: &str, host: &str) -> String {
    format!("{site}/{host}")
}

/// Counts the reloads of a site that are logged, since the process started. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct ReloadCounts(Arc<Mutex<BTreeMap<(&'static str, &'static str), u64>>>);

impl ReloadCounts {
    /// A listener that counts every reload.
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

/// The settings that apply to a robots.txt, whatever its source.
#[derive(Clone, Debug)]
pub(super) struct SiteSettings {
    pub(super) policy: Policy,
    pub(super) registry: Arc<Registry>,
    pub(super) check: check::Options,
    pub(super) gate: Gate,
}
