//! Defines a served site: its live robots.txt, its backend, and the counts of its requests.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use tower_robots::agent::Registry;
use tower_robots::internals::AgentLookups;
use tower_robots::layer::RobotsLayer;
use tower_robots::live::{Enforcement, Snapshot};
use tower_robots::parts::VerifyLayer;

use super::backend::{BackendSource, SiteBackend};
use super::gate_settings::GateSettings;
use super::log_events::{self, SiteName};
use super::refusal_server::{RefusalServer, RefusalServers};
use super::sender_evidence::SenderEvidence;
use super::site_robots::{LiveSite, SiteRobots};
use crate::board::{Second, Sight, SiteRecorders, SiteUpdate, TrafficTotals};
use crate::config::{RobotsSource, SiteConfig, host_patterns};
use crate::counting::{CrawlerCombinations, OutcomeCounts, PageTotals, SiteTotals, VisitorTotals};
use crate::http_common::ClientRequest;
use crate::log::{Log, LogPrivacy};
use crate::report::{RequestsReport, is_of};
use crate::request::{PaceStore, SiteJudge};
use crate::shared_rate::SharedRate;

/// An open site. Each worker gets its own layer and backend from this value.
#[derive(Debug)]
pub(crate) struct ServedSite {
    pub(crate) name: SiteName,
    pub(super) hosts: Vec<String>,
    pub(super) robots: Arc<SiteRobots>,
    pub(super) gate: GateSettings,
    /// Settings of the site. If the source in a new config cannot be used, the settings contain the
    /// previous source, which is still open.
    pub(super) settings: SiteConfig,
    pub(super) evidence: Option<SenderEvidence>,
    /// Request counts of the site, which a new config does not reset.
    pub(super) outcomes: SiteOutcomes,
    /// Recorders for the board; `None` if the config disables the board.
    pub(super) recorders: Option<Arc<SiteRecorders>>,
    /// The backend; `None` if no listener forwards requests.
    pub(super) backend: Option<BackendSource>,
    /// Servers that answer refused requests, indexed by refusal case.
    pub(super) refusals: Vec<Option<RefusalServer<BackendSource>>>,
    pub(super) log: Log,
    pub(super) privacy: LogPrivacy,
}

impl ServedSite {
    pub(super) fn has_name(&self, name: &str) -> bool {
        *self.name == *name
    }

    /// Returns the robots.txt with this name, if it belongs to the site. The name is `SITE`, or
    /// `SITE/HOST` if each host has its own robots.txt.
    pub(super) fn live(&self, name: &str) -> Option<LiveSite> {
        let live_sites = if is_of(&self.name, name) { self.live_sites() } else { Vec::new() };
        live_sites.into_iter().find(|live| live.name == name)
    }

    pub(super) fn live_sites(&self) -> Vec<LiveSite> {
        let pages = || self.gate.is_on().then(|| self.gate.pages.clone());
        let live_sites = self.robots.live_sites(&self.name, &self.hosts).into_iter();
        live_sites.map(|live| LiveSite { pages: pages(), ..live }).collect()
    }

    pub(super) fn is_off(&self) -> bool {
        self.live_sites().iter().any(|live| live.robots.status().switch == Enforcement::Off)
    }

    /// Returns the host patterns of the site; `*` if the config lists no hosts.
    pub(crate) fn host_patterns(&self) -> impl Iterator<Item = &str> {
        host_patterns(&self.hosts)
    }

    /// Returns the layer that allows or refuses requests to the site on one worker. A request waits
    /// at most `wait` for evidence about its sender.
    pub(crate) fn judge(&self, counts: &Arc<OutcomeCounts>, store: Option<&SharedRate>, wait: Duration) -> SiteJudge {
        let layer = self.observed_layer().with_crawler_records();
        let layer = if store.is_some() { layer.counted_in_store() } else { layer };
        let store = store.map(|store| PaceStore {
            store: store.clone(),
            site: self.name.clone(),
            has_directory: self.has_directory(),
        });
        let counting = layer.clone().count_agent_lookups(Arc::clone(counts.agent_lookups()));
        let evidence = VerifyLayer::new(&counting, wait);
        // A request passes `evidence` and `layer`, but its agent must be counted only once: by
        // `layer` if requests do not wait for evidence, otherwise by `evidence`.
        let layer = if wait.is_zero() { counting } else { layer };
        let services = self.recorders.as_ref().map(|recorders| Arc::clone(&recorders.services));
        let name = self.name.clone();
        SiteJudge { name, counts: Arc::clone(counts), layer, evidence, store, services }
    }

    pub(crate) fn wait(&self) -> Duration {
        self.evidence.as_ref().map_or(Duration::ZERO, |evidence| evidence.settings.wait)
    }

    fn observed_layer(&self) -> RobotsLayer {
        let observer = log_events::request_observer(
            self.name.clone(),
            self.settings.policy.clone(),
            self.log.clone(),
            self.privacy,
        );
        let layer = match self.evidence {
            Some(_) => self.quiet_layer().on_crawler(observer),
            // Without evidence, nothing is logged about allowed requests, so only disallowed
            // requests need an observer.
            None => self.quiet_layer().on_disallowed(observer),
        };
        let Some(recorder) = self.recorders.as_deref().map(SiteRecorders::recorder) else { return layer };
        layer.on_crawler(move |event| recorder.observe(event))
    }

    pub(super) const fn has_directory(&self) -> bool {
        matches!(self.settings.robots, RobotsSource::Directory { .. })
    }

    /// Returns the state of the site for the board, and the counts of crawlers since the last call.
    pub(super) fn board_moment(&self, now: Second, registry: &Arc<Registry>) -> Option<SiteUpdate> {
        let recorders = self.recorders.as_ref()?;
        recorders.services.follow(registry);
        // If each host has its own robots.txt, the board cannot show whether crawlers obey, because
        // the site has no single version.
        let robots = self.robots.single_robots();
        if let Some(robots) = robots {
            recorders.update_versions(robots, now);
        }
        let content = robots.and_then(|robots| robots.with(|snapshot| snapshot.content.clone()));
        // Enforcement may have been off for a while since the last call, even if it is on now.
        let was_off = recorders.has_missed.swap(false, Ordering::AcqRel);
        let is_off = robots.is_some_and(|robots| robots.with(Snapshot::enforcement) == Enforcement::Off);
        // Without a live version, crawlers are not recognised. They get a 404 for robots.txt, so
        // they may request everything (RFC 9309, section 2.3.1.3).
        let is_missing = robots.is_some() && content.is_none();
        let sight = if is_off || was_off || is_missing { Sight::Blind } else { Sight::Clear };
        let has_new_hosts = recorders.has_new_hosts.swap(false, Ordering::AcqRel);
        let ((visitors, pages), registry) = (self.outcomes.visitors_and_pages(), Some(Arc::clone(registry)));
        let moment = SiteUpdate::new(&self.name, recorders.take(), content, sight);
        let moment = SiteUpdate { has_new_hosts, visitors, pages, registry, ..moment };
        Some(moment.with_traffic(now, || self.outcomes.traffic()))
    }

    /// Informs the board that enforcement was switched off. While enforcement is off, crawlers are
    /// not recognised, so the board's counts of crawlers may be too low.
    pub(super) fn record_switch_off(&self) {
        self.recorders.iter().for_each(|recorders| recorders.has_missed.store(true, Ordering::Release));
    }

    /// Informs the board that the hosts of the site have changed.
    pub(super) fn record_new_hosts(&self) {
        self.recorders.iter().for_each(|recorders| recorders.has_new_hosts.store(true, Ordering::Release));
    }

    pub(crate) fn outcome_counts(&self, agent_lookups: &Arc<AgentLookups>) -> Arc<OutcomeCounts> {
        self.outcomes.worker_counts(agent_lookups)
    }

    pub(crate) fn quiet_layer(&self) -> RobotsLayer {
        let layer = self
            .robots
            .layer()
            .address_from(|extensions| ClientRequest::peer_of(extensions).map(|peer| peer.address.ip()))
            .agent_from(|extensions| ClientRequest::of(extensions)?.agent.as_deref());
        let layer = match &self.evidence {
            Some(evidence) => evidence.checked(layer, &self.name),
            None => layer,
        };
        let layer = layer.signals(self.settings.signals.clone());
        match self.settings.refusal.clone() {
            Some(refusals) => {
                let policy = self.settings.policy.clone();
                layer.refuse_with(move |event| refusals.respond(event, &policy))
            }
            None => layer,
        }
    }

    pub(crate) fn backend(&self, workers: NonZeroUsize, before: Option<&SiteBackend>) -> Option<SiteBackend> {
        self.backend.as_ref().map(|source| source.backend(workers, before))
    }

    /// Returns one worker's clients for the servers that answer refused requests. `before` contains
    /// the previous clients of this worker, whose connections are kept if the servers are
    /// unchanged.
    pub(crate) fn refusal_servers(&self, workers: NonZeroUsize, before: Option<&RefusalServers>) -> RefusalServers {
        let client = |(at, source): (usize, &Option<RefusalServer<BackendSource>>)| {
            let RefusalServer { server, places } = source.as_ref()?;
            let before = before.and_then(|before| before.get(at)?.as_ref());
            let server = server.backend(workers, before.map(|before| &before.server));
            Some(RefusalServer { server, places: Arc::clone(places) })
        };
        self.refusals.iter().enumerate().map(client).collect()
    }

    /// Replaces the source in the settings of this site with the source of the previous site,
    /// because the new source cannot be used. The next config must be compared with the source that
    /// is in use.
    pub(super) fn keep_source_of(&mut self, before: &Self) {
        let SiteConfig { robots, append, max_age, grace, when_missing, .. } = before.settings.clone();
        self.settings = SiteConfig { robots, append, max_age, grace, when_missing, ..self.settings.clone() };
    }

    /// Applies a registry to the robots.txt. The check options also change, because they contain
    /// the search engines in the registry that the site refuses.
    pub(super) fn set_registry(&self, registry: &Arc<Registry>) {
        self.robots.set_registry(registry, &self.settings.checks(registry));
    }

    pub(super) fn has_source_of(&self, site: &SiteConfig) -> bool {
        let of = |site: &SiteConfig| (site.robots.clone(), site.max_age, site.grace, site.when_missing);
        of(&self.settings) == of(site) && self.settings.append == site.append
    }

    pub(super) fn has_backend_of(&self, other: &Self) -> bool {
        match (&self.backend, &other.backend) {
            (Some(ours), Some(theirs)) => ours.has_same_servers(theirs),
            (ours, theirs) => ours.is_none() && theirs.is_none(),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct SiteOutcomes(Arc<Mutex<OutcomeParts>>);

#[derive(Debug, Default)]
struct OutcomeParts {
    workers: Vec<Arc<OutcomeCounts>>,
    /// Sums of the counts of workers that no longer serve the site.
    ended: SiteTotals,
    combinations: Arc<CrawlerCombinations>,
}

impl SiteOutcomes {
    /// Creates counters for one worker. `agent_lookups` counts this worker's lookups of agents for
    /// all sites together.
    pub(crate) fn worker_counts(&self, agent_lookups: &Arc<AgentLookups>) -> Arc<OutcomeCounts> {
        let mut parts = self.0.lock();
        let OutcomeParts { workers, ended, combinations } = &mut *parts;
        workers.retain(|counts| {
            let is_used = Arc::strong_count(counts) > 1;
            if !is_used {
                counts.add_to(ended);
            }
            is_used
        });
        let counts = Arc::new(OutcomeCounts::of_site(Arc::clone(combinations), agent_lookups));
        workers.push(Arc::clone(&counts));
        counts
    }

    pub(super) fn total(&self) -> RequestsReport {
        self.totals().report()
    }

    /// Returns how many visitors were referred to the site, and how many pages crawlers received,
    /// since the process started.
    fn visitors_and_pages(&self) -> (VisitorTotals, PageTotals) {
        let parts = self.0.lock();
        let (mut visitors, mut pages) = (parts.ended.visitors.clone(), parts.ended.pages.clone());
        parts.workers.iter().for_each(|counts| counts.add_visitors_and_pages(&mut visitors, &mut pages));
        (visitors, pages)
    }

    pub(super) fn traffic(&self) -> TrafficTotals {
        let totals = self.totals();
        let RequestsReport { total, refused, .. } = totals.report();
        TrafficTotals { requests: total, refused, decision_p99: totals.decision_durations.quantile(0.99) }
    }

    pub(super) fn totals(&self) -> SiteTotals {
        let parts = self.0.lock();
        let mut totals = parts.ended.clone();
        parts.workers.iter().for_each(|counts| counts.add_to(&mut totals));
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_a_worker_are_kept_after_the_worker_ends() {
        let outcomes = SiteOutcomes::default();
        let counts = outcomes.worker_counts(&Arc::default());
        let _ = counts.request(b"/a", (&http::Method::GET).into(), 0);
        drop(counts);
        for _ in 0..100 {
            let _ = outcomes.worker_counts(&Arc::default()).request(b"/b", (&http::Method::GET).into(), 0);
        }
        assert_eq!(outcomes.total().total, 101);
        assert!(outcomes.0.lock().workers.len() <= 2);
    }
}
