//! Contains the open sites of a config, and the rate store that they share.

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
use super::site_opener::{SiteOpener, open_robots};
use super::site_robots::LiveSite;
use super::state_handle::StateHandle;
use crate::board::{Second, SiteUpdate};
use crate::config::{Config, RegistrySources, load_registry, owners};
use crate::date::rfc3339;
use crate::fleet::Fleet;
use crate::log::{Log, LogEvent, LogLevel, LogPrivacy};
use crate::report::{IdentityReport, KindCount, RateStoreReport, RegistryReport};
use crate::shared_rate::{SharedRate, StoreCount, StoreReport, StoreUsage};
use crate::webhooks::{PublishHooks, RetryPlan, SiteHooks, Turns};

/// Folder in the state directory that records which versions webhooks have delivered.
const PUBLISH_FOLDER: &str = "on_publish";

#[derive(Debug)]
pub(crate) struct Sites {
    sites: Vec<ServedSite>,
    /// Sources of registry rows, in addition to the built-in registry.
    pub(super) registry: RegistrySources,
    /// Reason why the registry of the config could not be read again. A restart would fail for the
    /// same reason.
    pub(super) registry_problem: Mutex<Option<String>>,
    pub(crate) state: StateHandle,
    pub(super) evidence: Option<SenderEvidence>,
    /// The rate store; `None` if each process counts the requests of crawlers separately.
    pub(crate) rate_store: Option<SharedRate>,
    /// Reason why the rate store is never used. `None` if it is used, or if there is no rate store.
    unasked: Option<&'static str>,
    /// Whether `fleet.replicas` in the config lists the replicas that commands with `--fleet`
    /// reach.
    has_replicas: bool,
    /// The opener of the sites. The lock is held only briefly, and never while a file is read.
    opener: Mutex<RobotsOpener>,
    successor: Mutex<Weak<Self>>,
    pub(super) log: Log,
    /// A reload changes neither `log` nor `privacy`.
    pub(super) privacy: LogPrivacy,
}

impl Sites {
    /// Opens every site. An unusable robots.txt is an error only if `strict` is set, or if the
    /// config requires the robots.txt. Blocks.
    pub(crate) fn open(config: &Config, strict: bool, log: &Log) -> Result<Self, String> {
        let mut state = StateHandle::open(config).map_err(|error| error.to_string())?;
        state.log_problems(log);
        state.fleet = config.fleet.as_ref().map(|settings| Fleet::open(settings, config.state_dir.as_deref(), log));
        state.fleet.iter().for_each(Fleet::read_at_start);
        let registry = load_registry(&config.registry).map_err(|error| error.to_string())?;
        let inheritance = Arc::new(Inheritance::from_state_dir(state.directory.as_ref(), config));
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
            let message = format!("enforcement is OFF for every site{why}: to switch it on, run `robotsd enforce on`");
            log.write_message_at(LogLevel::Warn, LogEvent::Enforcement, message);
        }
        for name in opener.state.unused_switches(config, &inheritance) {
            log.write_message_at(LogLevel::Warn, LogEvent::Enforcement, unused_switch_message(&name));
        }
        let evidence = SenderEvidence::start(config, &opener.registry, log)?;
        let rate_store = renewed_rate_store(None, config, log)?;
        let sites = SiteOpener::new(config, evidence.as_ref(), log, LogPrivacy::new(&config.log));
        sites.check_sites(&opener, strict)?;
        let backends = config.sites.iter().map(|site| sites.backends(site, None)).collect::<Result<Vec<_>, _>>()?;
        let open = |(site, backends)| Ok(sites.assemble(site, open_robots(site, &opener, strict)?, backends, None));
        let sites = config.sites.iter().zip(backends).map(open).collect::<Result<Vec<_>, String>>()?;
        for site in sites.iter().filter(|site| inheritance.predecessor(&site.name).is_some()) {
            log.write_message(LogEvent::Config, inheritance.new_site_message(site));
        }
        let of_clock = opener.state.directory.as_ref().and_then(StateDir::clock_problem);
        of_clock.into_iter().for_each(|why| log.write_message_at(LogLevel::Warn, LogEvent::Clock, why));
        Ok(Self::new(sites, config, opener, (evidence, rate_store), log, LogPrivacy::new(&config.log)))
    }

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
        let (unasked, has_replicas) = (config.unused_rate_store, config.has_replicas);
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

    pub(super) fn hooks(&self) -> Option<Arc<PublishHooks>> {
        self.opener.lock().publish.as_ref().map(|publish| publish.hooks.clone())
    }

    pub(super) fn hosts(&self) -> HostsBySite {
        self.iter().map(|site| (site.name.to_string(), HostsOfSite::of(&site.settings))).collect()
    }

    /// Records that these sites are served: passes live versions to webhooks that have not received
    /// them yet, and stores the hosts for the next start. Blocks.
    pub(crate) fn announce(&self) {
        if let Some(publish) = self.opener().publish {
            publish.mark_served(
                self.iter().flat_map(|site| site.live_sites().into_iter().map(|live| (site.name.to_string(), live))),
            );
        }
        self.state.directory.iter().for_each(|state| inheritance::save_hosts(state, &self.hosts()));
    }

    /// Prevents webhooks from sending requests to these addresses of the admin interface.
    pub(crate) fn forbid_hook_addresses(&self, admin: Vec<SocketAddr>) {
        self.hooks().iter().for_each(|hooks| hooks.set_admin_addresses(admin.clone()));
    }

    /// Stops passing new versions to webhooks, because another process passes them from now on.
    /// After this call, no new config may be applied to the sites: it would set the webhooks again.
    pub(crate) fn stop_announcing(&self) {
        self.hooks().iter().for_each(|hooks| hooks.set(std::iter::empty()));
    }

    /// Waits briefly for webhook requests in progress.
    pub(crate) async fn finish_hooks(&self) {
        if let Some(hooks) = self.hooks() {
            hooks.finish().await;
        }
    }

    /// Returns the state of each site for the board, and the counts of crawlers since the last
    /// call. Does not wait for files.
    pub(crate) fn board_moments(&self, now: Second) -> impl Iterator<Item = SiteUpdate> {
        let registry = Arc::clone(&self.opener.lock().registry);
        self.iter().filter_map(move |site| site.board_moment(now, &registry))
    }

    pub(crate) const fn is_of_fleet(&self) -> bool {
        self.state.fleet.is_some() || self.has_replicas
    }

    /// Returns options for suggested commands: the first element is for commands that accept or
    /// roll back a version, the second for commands that switch enforcement. With `--fleet`, a
    /// command reaches every replica. A fleet with a name has its own off switches, so in such a
    /// fleet, commands that switch enforcement need no option.
    pub(super) fn fleet_flags(&self) -> [CommandFlags; 2] {
        let is_for_all = [self.is_of_fleet(), self.has_replicas && self.state.fleet.is_none()];
        is_for_all.map(|is_for_all| -> CommandFlags {
            if is_for_all { &["--fleet"] } else { &[] }
        })
    }

    /// Returns every robots.txt, in the order of the config. If the source of a site is a
    /// directory, the site has one robots.txt per host.
    pub(crate) fn live_sites(&self) -> impl Iterator<Item = LiveSite> {
        self.iter().flat_map(ServedSite::live_sites)
    }

    /// Returns the robots.txt with this name (`SITE` or `SITE/HOST`), and its site.
    pub(super) fn live(&self, name: &str) -> Option<(&ServedSite, LiveSite)> {
        self.iter().find_map(|site| Some((site, site.live(name)?)))
    }

    pub(super) fn opener(&self) -> RobotsOpener {
        self.opener.lock().clone()
    }

    pub(super) fn set_registry(&self, registry: &Arc<Registry>) {
        self.opener.lock().registry.clone_from(registry);
    }

    /// Makes `next` the successor of these sites, and gives it the current registry, which may have
    /// changed since the sites of `next` were opened. From now on, a new registry must also be
    /// applied to `next`.
    pub(super) fn hand_over(&self, next: &Arc<Self>) {
        let opener = self.opener.lock();
        *self.successor.lock() = Arc::downgrade(next);
        if next.registry == self.registry {
            next.set_registry(&opener.registry);
            next.registry_problem.lock().clone_from(&self.registry_problem.lock());
        }
    }

    /// Returns the sites that have replaced these sites, if both have the same sources for the
    /// registry.
    pub(super) fn successor_with_registry(&self) -> Option<Arc<Self>> {
        self.successor.lock().upgrade().filter(|next| next.registry == self.registry)
    }

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

    pub(crate) fn registry_report(&self) -> RegistryReport {
        let RobotsOpener { registry, followed, .. } = self.opener();
        let published = followed.map(|followed| followed.report());
        let days: Vec<&str> = registry.crawlers().filter_map(|crawler| crawler.checked_on.as_deref()).collect();
        let last_checked = days.iter().max().map(|day| (*day).to_owned());
        RegistryReport { crawlers: registry.crawlers().len(), checked: days.len(), last_checked, published }
    }

    pub(crate) fn identity_report(&self) -> Option<IdentityReport> {
        self.evidence.as_ref().map(SenderEvidence::report)
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        let directory = self.state.directory.iter().flat_map(StateDir::problems);
        let is_strict = self.iter().any(|site| site.settings.is_strict(SystemTime::now()));
        let evidence = self.evidence.as_ref().filter(|_| is_strict).and_then(SenderEvidence::problem);
        let rates = self.rate_store.as_ref().map(SharedRate::report).filter(|report| report.usage != StoreUsage::Used);
        let of_rates = rates.as_ref().and_then(store_message);
        let followed = self.opener().followed;
        let unsaved = followed.and_then(|followed| Some(format!("{}: {}", followed.report().url, followed.unsaved()?)));
        directory.chain(self.registry_problems()).chain(unsaved).chain(evidence).chain(of_rates).collect()
    }

    pub(crate) fn ignored_files(&self) -> impl Iterator<Item = String> {
        self.iter().filter_map(|site| Some(format!("site {:?}: {}", site.name, site.robots.ignored()?)))
    }

    pub(super) fn registry_problems(&self) -> impl Iterator<Item = String> {
        let of_url = |followed: FollowedRegistry| Some(format!("{}: {}", followed.report().url, followed.problem()?));
        self.registry_problem.lock().clone().into_iter().chain(self.opener().followed.and_then(of_url))
    }

    /// Reports whether the state directory is writable; `None` if there is no state directory.
    pub(crate) fn is_state_writable(&self) -> Option<bool> {
        self.state.directory.as_ref().map(StateDir::is_writable)
    }

    /// Returns the reason why enforcement is off for all sites although no operator has switched it
    /// off.
    pub(crate) fn switch_problem(&self) -> Option<String> {
        let directory = self.state.directory.as_ref().filter(|_| self.enforcement() == Enforcement::Off);
        directory.and_then(StateDir::switch_problem)
    }

    pub(crate) fn watcher(&self) -> Watcher {
        self.opener().watcher
    }

    /// Informs the board which of these sites have other hosts than in `before`. Must be called
    /// when these sites replace `before`.
    pub(crate) fn note_moved_hosts(&self, before: &Self) {
        let changed = changed(&before.hosts(), &self.hosts());
        self.iter().filter(|site| changed.contains(&*site.name)).for_each(ServedSite::record_new_hosts);
    }

    pub(crate) fn registry_changed(&self) -> Arc<Notify> {
        self.opener.lock().registry_changed.clone()
    }
}

/// Returns the webhooks of every site, with the site's name. The name is empty for the hooks of
/// `[[notify]]`.
pub(super) fn hooks_of(config: &Config) -> impl Iterator<Item = (String, SiteHooks)> {
    let notify = (String::new(), SiteHooks { hosts: Vec::new(), hooks: config.notify.clone() });
    let of_sites = config.sites.iter().map(|site| {
        let hosts = site.hosts.iter().filter(|host| !host.contains('*')).cloned().collect();
        (site.name.clone(), SiteHooks { hosts, hooks: site.on_publish.clone() })
    });
    of_sites.chain([notify])
}

pub(super) fn unused_switch_message(name: &str) -> String {
    format!(
        "the state directory contains an off switch for {name:?}, but no site has this name, so the switch has no \
         effect (if the site was renamed, run `robotsd enforce off --site NAME` with its new name)"
    )
}

impl Drop for Sites {
    /// Drops the sites on a blocking thread, because dropping them writes state, and a file system
    /// may hang.
    fn drop(&mut self) {
        let sites = std::mem::take(&mut self.sites);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            drop(runtime.spawn_blocking(move || drop(sites)));
        }
    }
}

/// Returns the sites with other host patterns than before, and the sites that now serve a host that
/// belonged to another site.
fn changed(were: &HostsBySite, are: &HostsBySite) -> HashSet<String> {
    let set = |hosts: &HostsOfSite| -> BTreeSet<String> { hosts.patterns().map(str::to_owned).collect() };
    let is_other = |(name, hosts): &(&String, &HostsOfSite)| were.get(*name).map(set) != Some(set(hosts));
    let owners = owners(patterns(are));
    let next = patterns(were).filter_map(|(pattern, name)| owners.get(pattern).copied().filter(|owner| *owner != name));
    are.iter().filter(is_other).map(|(name, _)| name).chain(next).cloned().collect()
}

/// Starts to use the rate store of a config. If the settings of the store have not changed, keeps
/// the existing connection.
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
        store_message(&report)
            .into_iter()
            .for_each(|message| log.write_message_at(level, LogEvent::RateStore, message));
    };
    let store = SharedRate::start(settings.clone(), changed);
    store
        .map(Some)
        .map_err(|error| format!("the rate store cannot be used, because a thread cannot be started: {error}"))
}

/// Describes whether the rate store is used, for the log and the status. Returns `None` until the
/// store has responded or failed.
fn store_message(report: &StoreReport) -> Option<String> {
    let (place, why) = (&report.place, report.problem.as_ref().map(|(_, why)| why));
    Some(match report.usage {
        StoreUsage::Used => format!("{place} responds: requests of crawlers are counted there for all processes"),
        StoreUsage::Out => {
            format!("{place} is not used: {why}; each process counts the requests of crawlers on its own", why = why?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_that_serve_other_hosts_after_a_config_change_are_found() {
        type Hosts = &'static [(&'static str, &'static [&'static str])];
        const CASES: &[(Hosts, Hosts, &str)] = &[
            (&[("a", &["a.test", "b.test"])], &[("a", &["b.test", "a.test"])], ""),
            (&[("a", &["a.test"])], &[("a", &["a.test", "b.test"])], "a"),
            (&[("a", &["a.test", "b.test"])], &[("a", &["a.test"])], "a"),
            (&[("a", &["a.test", "b.test"])], &[("a", &["a.test"]), ("b", &["b.test"])], "a b"),
            // If another site loses a host, that host may now match the wildcard pattern of this
            // site.
            (&[("a", &["a.test"]), ("b", &["*"])], &[("b", &["*"])], "b"),
            (&[("a", &["a.x.test"]), ("b", &["*.x.test"]), ("c", &["*"])], &[("b", &["*.x.test"]), ("c", &["*"])], "b"),
            (&[("a", &["*.x.test"]), ("b", &["*"])], &[("a", &["y.test"]), ("b", &["*"])], "a b"),
            // The site for all hosts loses a host to a new site, and gets no other host.
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
