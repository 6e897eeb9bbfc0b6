//! The open sites of a config, with their store of rates, and the hosts that moved between sites.

use std::collections::{BTreeSet, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tower_robots::agent::Registry;
use tower_robots::live::{Enforcement, StateDir};
use tower_robots::source::Watcher;

use super::appended_parts::FollowedRegistry;
use super::inheritance::{self, HostsBySite, HostsOfSite, Inheritance, patterns};
use super::log_events::{self, CommandFlags};
use super::robots_opener::{PublishListener, RobotsOpener};
use super::sender_evidence::SenderEvidence;
use super::served_site::ServedSite;
use super::site_opener::{SiteOpener, robots_of};
use super::site_robots::LiveSite;
use super::state_handle::StateHandle;
use crate::board::{Second, SiteMoment};
use crate::config::{Config, RegistrySources, load_registry, owners};
use crate::date::rfc3339;
use crate::fleet::Fleet;
use crate::log::{Log, LogEvent, LogLevel, LogPrivacy};
use crate::report::{IdentityReport, KindCount, RateStoreReport, RegistryReport};
use crate::shared_rate::{SharedRate, StoreCount, StoreReport, StoreUsage};
use crate::webhooks::{PublishHooks, RetryPlan, SiteHooks, Turns};

/// Name of the folder in the state directory that records what was sent.
const PUBLISH_FOLDER: &str = "on_publish";

/// All sites of a config, in its order.
#[derive(Debug)]
pub(crate) struct Sites {
    sites: Vec<ServedSite>,
    /// The sources of the registry in addition to the built-in rows.
    pub(super) registry: RegistrySources,
    /// Why the registry of the config could not be read again; a restart would fail.
    pub(super) registry_problem: Mutex<Option<String>>,
    pub(crate) state: StateHandle,
    /// The evidence that checks the senders of requests, if the config has `[identity]`.
    pub(super) evidence: Option<SenderEvidence>,
    /// The store that processes share to count the requests of crawlers; `None` if each process
    /// counts for itself.
    pub(crate) rate_store: Option<SharedRate>,
    /// Why the store is never asked; `None` if it is asked.
    unasked: Option<&'static str>,
    /// Whether the config names the replicas that commands ask.
    has_replicas: bool,
    /// Locked only briefly, never while a file is read.
    opener: Mutex<RobotsOpener>,
    /// The sites that replace these.
    successor: Mutex<Weak<Self>>,
    pub(super) log: Log,
    /// The privacy settings of the log at the start: a new config does not change the log.
    pub(super) privacy: LogPrivacy,
}

impl Sites {
    /// Opens every site. A robots.txt that cannot be used prevents the start only with `strict` or
    /// if the config requires it. Blocks.
    pub(crate) fn open(config: &Config, strict: bool, log: &Log) -> Result<Self, String> {
        let mut state = StateHandle::open(config).map_err(|error| error.to_string())?;
        state.log_problems(log);
        state.fleet = config.fleet.as_ref().map(|settings| Fleet::open(settings, config.state_dir.as_deref(), log));
        state.fleet.iter().for_each(Fleet::make_contact);
        let registry = load_registry(&config.registry).map_err(|error| error.to_string())?;
        let inheritance = Arc::new(Inheritance::kept(state.directory.as_ref(), config));
        let mut opener = RobotsOpener::new(config, registry, state, log).inheriting(&inheritance);
        let folder = config.state_dir.as_ref().map(|state| state.join(PUBLISH_FOLDER));
        let turns = opener.state.fleet.clone().map(|fleet| fleet as Arc<dyn Turns>);
        let on_event = log_events::publish_hook(log.clone());
        let hooks = PublishHooks::new(config.replica(), folder, RetryPlan::default(), turns, on_event);
        hooks.set(hooks_of(config));
        opener.publish = Some(PublishListener::new(hooks));
        opener.followed = opener.follow_registry(config)?;
        if opener.state.switch() == Enforcement::Off {
            let why = opener.state.directory.as_ref().and_then(StateDir::switch_problem);
            let why = why.map(|why| format!(" because the kill switch could not be read ({why})")).unwrap_or_default();
            let message = format!("OFF for every site{why}: `robotsd enforce on` turns it on");
            log.say_at(LogLevel::Warn, LogEvent::Enforcement, message);
        }
        for name in opener.state.switches_of_others(config, &inheritance) {
            log.say_at(LogLevel::Warn, LogEvent::Enforcement, switch_of_other(&name));
        }
        let evidence = SenderEvidence::start(config, &opener.registry, log)?;
        let rate_store = renewed_rate_store(None, config, log)?;
        let sites = SiteOpener::new(config, evidence.as_ref(), log, LogPrivacy::new(&config.log));
        sites.rehearse(&opener, strict)?;
        let backends = config.sites.iter().map(|site| sites.backend(site, None)).collect::<Result<Vec<_>, _>>()?;
        let open = |(site, backend)| Ok(sites.around(site, robots_of(site, &opener, strict)?, backend, None));
        let sites = config.sites.iter().zip(backends).map(open).collect::<Result<Vec<_>, String>>()?;
        for site in sites.iter().filter(|site| inheritance.predecessor(&site.name).is_some()) {
            log.say(LogEvent::Config, inheritance.arrival(site));
        }
        let of_clock = opener.state.directory.as_ref().and_then(StateDir::clock_problem);
        of_clock.into_iter().for_each(|why| log.say_at(LogLevel::Warn, LogEvent::Clock, why));
        Ok(Self::new(sites, config, opener, (evidence, rate_store), log, LogPrivacy::new(&config.log)))
    }

    /// Combines open sites and the opener that opened them.
    pub(super) fn new(
        sites: Vec<ServedSite>,
        config: &Config,
        opener: RobotsOpener,
        (evidence, rate_store): (Option<SenderEvidence>, Option<SharedRate>),
        log: &Log,
        privacy: LogPrivacy,
    ) -> Self {
        let (registry, state) = (config.registry.clone(), opener.state.clone());
        let (opener, successor) = (Mutex::new(opener), Mutex::default());
        let (unasked, has_replicas) = (config.rate_store_unasked, config.has_replicas);
        let log = log.clone();
        Self {
            sites,
            registry,
            registry_problem: Mutex::default(),
            state,
            evidence,
            rate_store,
            unasked,
            has_replicas,
            opener,
            successor,
            log,
            privacy,
        }
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &ServedSite> {
        self.sites.iter()
    }

    /// Returns the hooks that are sent when a version goes live.
    pub(super) fn hooks(&self) -> Option<Arc<PublishHooks>> {
        self.opener.lock().publish.as_ref().map(|publish| publish.hooks.clone())
    }

    /// Returns the hosts of each site.
    pub(super) fn hosts(&self) -> HostsBySite {
        self.iter().map(|site| (site.name.to_string(), HostsOfSite::of(&site.settings))).collect()
    }

    /// Notes that these sites are served from now on, also for the next start, and announces live
    /// versions that were not announced. Blocks.
    pub(crate) fn announce(&self) {
        if let Some(publish) = self.opener().publish {
            publish.serves(
                self.iter().flat_map(|site| site.lives().into_iter().map(|live| (site.name.to_string(), live))),
            );
        }
        self.state.directory.iter().for_each(|state| inheritance::keep(state, &self.hosts()));
    }

    /// Prevents hooks from being sent to these addresses, which belong to the admin interface.
    pub(crate) fn keep_hooks_from(&self, admin: Vec<SocketAddr>) {
        self.hooks().iter().for_each(|hooks| hooks.keep_from(admin.clone()));
    }

    /// Stops announcing versions, because another process does so, until these sites are renewed.
    pub(crate) fn stop_announcing(&self) {
        self.hooks().iter().for_each(|hooks| hooks.set(std::iter::empty()));
    }

    /// Waits briefly for requests being sent, because the process ends.
    pub(crate) async fn finish_hooks(&self) {
        if let Some(hooks) = self.hooks() {
            hooks.finish().await;
        }
    }

    /// Returns the counts of crawlers until now, by site. Does not wait for files.
    pub(crate) fn board_moments(&self, now: Second) -> impl Iterator<Item = SiteMoment> {
        let registry = Arc::clone(&self.opener.lock().registry);
        self.iter().filter_map(move |site| site.board_moment(now, &registry))
    }

    /// Reports whether commands with `--fleet` reach other replicas, too.
    pub(crate) const fn is_of_fleet(&self) -> bool {
        self.state.fleet.is_some() || self.has_replicas
    }

    /// Returns the extra flags of commands that decide about versions, and of commands that switch
    /// enforcement. With `--fleet` these commands reach every replica, so that all of them keep
    /// serving the same. If the fleet has a name, its off switches are separate from those of the
    /// replicas, so commands that switch get no flag.
    pub(super) fn fleet_flags(&self) -> [CommandFlags; 2] {
        let is_for_all = [self.is_of_fleet(), self.has_replicas && self.state.fleet.is_none()];
        is_for_all.map(|is_for_all| -> CommandFlags {
            if is_for_all { &["--fleet"] } else { &[] }
        })
    }

    /// Returns every robots.txt, in the order of the config; for sites with a directory, one for
    /// each host.
    pub(crate) fn lives(&self) -> impl Iterator<Item = LiveSite> {
        self.iter().flat_map(ServedSite::lives)
    }

    /// Returns the robots.txt of this name, `SITE` or `SITE/HOST`, and its site.
    pub(super) fn live(&self, name: &str) -> Option<(&ServedSite, LiveSite)> {
        self.iter().find_map(|site| Some((site, site.live(name)?)))
    }

    /// Returns the current opener of sites.
    pub(super) fn opener(&self) -> RobotsOpener {
        self.opener.lock().clone()
    }

    /// Sets the registry for sites that are opened from now on.
    pub(super) fn set_registry(&self, registry: &Arc<Registry>) {
        self.opener.lock().registry.clone_from(registry);
    }

    /// Hands over to the sites that replace these. The registry may have changed since they were
    /// opened. A registry that is set from now on must be set for the successor, too.
    pub(super) fn hand_over(&self, next: &Arc<Self>) {
        let opener = self.opener.lock();
        *self.successor.lock() = Arc::downgrade(next);
        if next.registry == self.registry {
            next.set_registry(&opener.registry);
            next.registry_problem.lock().clone_from(&self.registry_problem.lock());
        }
    }

    /// Returns the sites that replace these, if they have the same registry.
    pub(super) fn successor_with_registry(&self) -> Option<Arc<Self>> {
        self.successor.lock().upgrade().filter(|next| next.registry == self.registry)
    }

    /// Reports the store of rates, for the status.
    pub(crate) fn rate_store_report(&self) -> Option<RateStoreReport> {
        use StoreCount::{Allowed, Alone, Answered, Denied, Failed, KnownDenied, Late, Outages};
        let StoreReport { place, usage, problem, counts } = self.rate_store.as_ref()?.report();
        let kind = |outcome: &StoreCount| KindCount::new(outcome.as_str(), counts.of(*outcome));
        let (problem_at, problem) = problem.map(|(at, why)| (rfc3339(at), why)).unzip();
        Some(RateStoreReport {
            place,
            state: usage.as_str().to_owned(),
            unasked: self.unasked.map(str::to_owned),
            problem,
            problem_at,
            outages: counts.of(Outages),
            calls: [Answered, Late, Failed].iter().map(kind).collect(),
            requests: [Allowed, Denied, Alone, KnownDenied].iter().map(kind).collect(),
        })
    }

    /// Reports the known crawlers.
    pub(crate) fn registry_report(&self) -> RegistryReport {
        let RobotsOpener { registry, followed, .. } = self.opener();
        let published = followed.map(|followed| followed.report());
        let days: Vec<&str> = registry.crawlers().filter_map(|crawler| crawler.checked_on.as_deref()).collect();
        let last_checked = days.iter().max().map(|day| (*day).to_owned());
        RegistryReport { crawlers: registry.crawlers().len(), checked: days.len(), last_checked, published }
    }

    /// Reports the evidence that checks the senders of requests.
    pub(crate) fn identity_report(&self) -> Option<IdentityReport> {
        self.evidence.as_ref().map(SenderEvidence::report)
    }

    /// Returns the problems that concern every site: those of the state directory, the registry,
    /// the evidence and the store of rates.
    pub(crate) fn problems(&self) -> Vec<String> {
        let directory = self.state.directory.iter().flat_map(StateDir::problems);
        let is_strict = self.iter().any(|site| site.settings.is_strict(SystemTime::now()));
        let evidence = self.evidence.as_ref().filter(|_| is_strict).and_then(SenderEvidence::problem);
        let rates = self.rate_store.as_ref().map(SharedRate::report).filter(|report| report.usage != StoreUsage::Used);
        let of_rates = rates.as_ref().and_then(store_message);
        directory.chain(self.registry_problems()).chain(evidence).chain(of_rates).collect()
    }

    /// Returns the files of directories that belong to no host.
    pub(crate) fn ignored_files(&self) -> impl Iterator<Item = String> {
        self.iter().filter_map(|site| Some(format!("site {:?}: {}", site.name, site.robots.ignored()?)))
    }

    /// Returns why the registry in use is not the one that the config names.
    pub(super) fn registry_problems(&self) -> impl Iterator<Item = String> {
        let of_url = |followed: FollowedRegistry| Some(format!("{}: {}", followed.report().url, followed.problem()?));
        self.registry_problem.lock().clone().into_iter().chain(self.opener().followed.and_then(of_url))
    }

    /// Reports whether the state directory can be written; `None` if there is none.
    pub(crate) fn is_state_writable(&self) -> Option<bool> {
        self.state.directory.as_ref().map(StateDir::is_writable)
    }

    /// Returns why the switch of every site counts as off although nobody switched it off.
    pub(crate) fn switch_problem(&self) -> Option<String> {
        let directory = self.state.directory.as_ref().filter(|_| self.enforcement() == Enforcement::Off);
        directory.and_then(StateDir::switch_problem)
    }

    /// Returns the watcher of all files.
    pub(crate) fn watcher(&self) -> Watcher {
        self.opener().watcher
    }

    /// Notes for the board which of these sites serve other hosts than before. To be called when
    /// they replace the previous sites.
    pub(crate) fn note_moved_hosts(&self, before: &Self) {
        let changed = changed(&before.hosts(), &self.hosts());
        self.iter().filter(|site| changed.contains(&*site.name)).for_each(ServedSite::has_other_hosts);
    }

    /// Returns the notification of changes of the published registry.
    pub(crate) fn registry_changed(&self) -> Arc<Notify> {
        self.opener.lock().registry_changed.clone()
    }
}

/// Returns the hooks of every site, and those for events, which have no site.
pub(super) fn hooks_of(config: &Config) -> impl Iterator<Item = (String, SiteHooks)> {
    let notify = (String::new(), SiteHooks { hosts: Vec::new(), hooks: config.notify.clone() });
    let of_sites = config.sites.iter().map(|site| {
        let hosts = site.hosts.iter().filter(|host| !host.contains('*')).cloned().collect();
        (site.name.clone(), SiteHooks { hosts, hooks: site.on_publish.clone() })
    });
    of_sites.chain([notify])
}

/// Returns the message about a switch that is off in the state directory for a site that is not in
/// the config.
pub(super) fn switch_of_other(name: &str) -> String {
    format!(
        "{name:?} is switched off in the state directory, but no site has this name, so nothing is off \
         because of it; `robotsd enforce off --site NAME` switches off a site that was renamed"
    )
}

impl Drop for Sites {
    /// Drops the sites on a blocking thread. A dropped site writes its state, and the file system
    /// may hang.
    fn drop(&mut self) {
        let sites = std::mem::take(&mut self.sites);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            drop(runtime.spawn_blocking(move || drop(sites)));
        }
    }
}

/// Returns the sites whose patterns differ, and those whose patterns now match hosts that another
/// site gave up.
fn changed(were: &HostsBySite, are: &HostsBySite) -> HashSet<String> {
    let set = |hosts: &HostsOfSite| -> BTreeSet<String> { hosts.patterns().map(str::to_owned).collect() };
    let is_other = |(name, hosts): &(&String, &HostsOfSite)| were.get(*name).map(set) != Some(set(hosts));
    let owners = owners(patterns(are));
    let next = patterns(were).filter_map(|(pattern, name)| owners.get(pattern).copied().filter(|owner| *owner != name));
    are.iter().filter(is_other).map(|(name, _)| name).chain(next).cloned().collect()
}

/// Starts to use the config's store for counts of crawlers' requests, which processes share. If the
/// store is the same as before, it stays in use.
pub(super) fn renewed_rate_store(
    before: Option<&SharedRate>,
    config: &Config,
    log: &Log,
) -> Result<Option<SharedRate>, String> {
    let Some(settings) = &config.rate_store else { return Ok(None) };
    if let Some(same) = before.filter(|before| before.settings() == settings) {
        return Ok(Some(same.clone()));
    }
    let log = log.clone();
    let changed = move |report: StoreReport| {
        let level = if report.usage == StoreUsage::Used { LogEvent::RateStore.level() } else { LogLevel::Warn };
        store_message(&report).into_iter().for_each(|message| log.say_at(level, LogEvent::RateStore, message));
    };
    let store = SharedRate::start(settings.clone(), changed);
    store.map(Some).map_err(|error| format!("the store of rates: no thread can be started: {error}"))
}

/// Reports whether the store of rates is asked, in the words of log and status; `None` before it
/// has answered or failed.
fn store_message(report: &StoreReport) -> Option<String> {
    let (place, why) = (&report.place, report.problem.as_ref().map(|(_, why)| why));
    Some(match report.usage {
        StoreUsage::Used => format!("{place} answers: crawlers are counted there"),
        StoreUsage::Out => format!("{place} is not asked: {}; each process counts crawlers for itself", why?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_that_answer_for_other_hosts_are_found() {
        type Hosts = &'static [(&'static str, &'static [&'static str])];
        const CASES: &[(Hosts, Hosts, &str)] = &[
            (&[("a", &["a.test", "b.test"])], &[("a", &["b.test", "a.test"])], ""),
            (&[("a", &["a.test"])], &[("a", &["a.test", "b.test"])], "a"),
            (&[("a", &["a.test", "b.test"])], &[("a", &["a.test"])], "a"),
            // A host that moves, and a new site.
            (&[("a", &["a.test", "b.test"])], &[("a", &["a.test"]), ("b", &["b.test"])], "a b"),
            // A site for every host, or for all hosts below a name, serves hosts that no other site
            // has any more.
            (&[("a", &["a.test"]), ("b", &["*"])], &[("b", &["*"])], "b"),
            (&[("a", &["a.x.test"]), ("b", &["*.x.test"]), ("c", &["*"])], &[("b", &["*.x.test"]), ("c", &["*"])], "b"),
            (&[("a", &["*.x.test"]), ("b", &["*"])], &[("a", &["y.test"]), ("b", &["*"])], "a b"),
            // A host taken from it is no longer its own.
            (&[("b", &["*"])], &[("a", &["a.test"]), ("b", &["*"])], "a"),
        ];
        for (were, are, want) in CASES {
            let sites = |sites: Hosts| -> HostsBySite {
                let hosts = |hosts: &[&str]| {
                    let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
                    HostsOfSite { hosts, robots: None }
                };
                sites.iter().map(|(name, of)| ((*name).to_owned(), hosts(of))).collect()
            };
            let changed = changed(&sites(were), &sites(are));
            let mut changed: Vec<&str> = changed.iter().map(String::as_str).collect();
            changed.sort_unstable();
            assert_eq!(changed.join(" "), *want, "{were:?} {are:?}");
        }
    }
}
