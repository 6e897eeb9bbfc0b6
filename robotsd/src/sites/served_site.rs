//! One site: its robots.txt, live, the backend behind it, and the outcomes of its requests.

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
use super::sender_evidence::SenderEvidence;
use super::site_robots::{LiveSite, SiteRobots};
use crate::board::{Second, Sight, SiteMoment, SiteRecorders, TrafficTotals};
use crate::config::{RobotsSource, SiteConfig, host_patterns};
use crate::counting::{CrawlerCombinations, OutcomeCounts, PageTotals, SiteTotals, VisitorTotals};
use crate::exchange::ClientRequest;
use crate::log::{Log, LogPrivacy};
use crate::report::{RequestsReport, is_of};
use crate::request::{PaceStore, SiteJudge};
use crate::shared_rate::SharedRate;

/// One site of a config, open.
#[derive(Debug)]
pub(crate) struct ServedSite {
    pub(crate) name: SiteName,
    pub(super) hosts: Vec<String>,
    pub(super) robots: Arc<SiteRobots>,
    pub(super) gate: GateSettings,
    /// The settings it was opened with; their source is that of `robots`.
    pub(super) settings: SiteConfig,
    /// The evidence by which its requests' senders are checked.
    pub(super) evidence: Option<SenderEvidence>,
    /// The decisions about its requests, also under earlier configs.
    pub(super) outcomes: SiteOutcomes,
    /// None where the config wants no board.
    pub(super) recorders: Option<Arc<SiteRecorders>>,
    /// None where no listener forwards requests.
    pub(super) backend: Option<BackendSource>,
    pub(super) log: Log,
    pub(super) privacy: LogPrivacy,
}

impl ServedSite {
    pub(super) fn is_called(&self, name: &str) -> bool {
        *self.name == *name
    }

    /// The robots.txt of this name, if it is one of the site's: `SITE`, or `SITE/HOST` with a directory.
    pub(super) fn live(&self, name: &str) -> Option<LiveSite> {
        let lives = if is_of(&self.name, name) { self.lives() } else { Vec::new() };
        lives.into_iter().find(|live| live.name == name)
    }

    pub(super) fn lives(&self) -> Vec<LiveSite> {
        let pages = || self.gate.is_on().then(|| self.gate.pages.clone());
        let lives = self.robots.lives(&self.name, &self.hosts).into_iter();
        lives.map(|live| LiveSite { pages: pages(), ..live }).collect()
    }

    /// Whether a switch of its own is off, of any robots.txt of it.
    pub(super) fn is_off(&self) -> bool {
        self.lives().iter().any(|live| live.robots.status().switch == Enforcement::Off)
    }

    /// The host patterns for a map of hosts: `*` where the site names none.
    pub(crate) fn host_patterns(&self) -> impl Iterator<Item = &str> {
        host_patterns(&self.hosts)
    }

    /// The layer that decides about its requests on one worker, which wait for evidence as long as this. All layers of a site
    /// read the same snapshots.
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
        // Both look up the agents of a request, which counts once, where they are looked up first.
        let layer = if wait.is_zero() { counting } else { layer };
        let services = self.recorders.as_ref().map(|recorders| Arc::clone(&recorders.services));
        let name = self.name.clone();
        SiteJudge { name, counts: Arc::clone(counts), layer, evidence, store, services }
    }

    /// How long a request waits for evidence about its sender.
    pub(crate) fn wait(&self) -> Duration {
        self.evidence.as_ref().map_or(Duration::ZERO, |evidence| evidence.settings.wait)
    }

    fn observed_layer(&self) -> RobotsLayer {
        let observer =
            log_events::request(self.name.clone(), self.settings.policy.clone(), self.log.clone(), self.privacy);
        let layer = match self.evidence {
            Some(_) => self.quiet_layer().on_crawler(observer),
            // Without evidence there is nothing to say about what robots.txt allows.
            None => self.quiet_layer().on_disallowed(observer),
        };
        let Some(recorder) = self.recorders.as_deref().map(SiteRecorders::recorder) else { return layer };
        layer.on_crawler(move |event| recorder.observe(event))
    }

    /// Whether it has a robots.txt for each host, named for it in a directory.
    pub(super) const fn has_directory(&self) -> bool {
        matches!(self.settings.robots, RobotsSource::Directory { .. })
    }

    /// The counts of its crawlers until now, for the board.
    pub(super) fn board_moment(&self, now: Second, registry: &Arc<Registry>) -> Option<SiteMoment> {
        let recorders = self.recorders.as_ref()?;
        recorders.services.follow(registry);
        // A site with a robots.txt for each host has no one version by which crawlers could be judged.
        let robots = self.robots.only();
        if let Some(robots) = robots {
            recorders.follow(robots, now);
        }
        let content = robots.and_then(|robots| robots.with(|snapshot| snapshot.content.clone()));
        // It may have been turned on again since.
        let was_off = recorders.has_missed.swap(false, Ordering::AcqRel);
        let is_off = robots.is_some_and(|robots| robots.with(Snapshot::enforcement) == Enforcement::Off);
        let sight = if is_off || was_off { Sight::Blind } else { Sight::Clear };
        let has_new_hosts = recorders.has_new_hosts.swap(false, Ordering::AcqRel);
        let ((visitors, pages), registry) = (self.outcomes.given_and_taken(), Some(Arc::clone(registry)));
        let moment = SiteMoment::new(&self.name, recorders.take(), content, sight);
        let moment = SiteMoment { has_new_hosts, visitors, pages, registry, ..moment };
        Some(moment.with_traffic(now, || self.outcomes.traffic()))
    }

    /// Notes for the board that enforcement was switched off, and with it the recognition of crawlers.
    pub(super) fn was_switched_off(&self) {
        self.recorders.iter().for_each(|recorders| recorders.has_missed.store(true, Ordering::Release));
    }

    /// Notes for the board that it answers for other hosts from now on.
    pub(super) fn has_other_hosts(&self) {
        self.recorders.iter().for_each(|recorders| recorders.has_new_hosts.store(true, Ordering::Release));
    }

    /// Counters of one worker's own.
    pub(crate) fn outcome_counts(&self, agent_lookups: &Arc<AgentLookups>) -> Arc<OutcomeCounts> {
        self.outcomes.of_worker(agent_lookups)
    }

    /// A layer that logs nothing.
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
        match self.settings.refusal.clone() {
            Some(page) => layer.refuse_with(move |event| page.respond(event)),
            None => layer,
        }
    }

    /// A backend of one worker's own; see [`BackendSource::backend`].
    pub(crate) fn backend(&self, workers: NonZeroUsize, before: Option<&SiteBackend>) -> Option<SiteBackend> {
        self.backend.as_ref().map(|source| source.backend(workers, before))
    }

    /// Keeps the source of the site before in its settings, because the new one cannot be used: the next config is compared
    /// with what is open.
    pub(super) fn keep_source_of(&mut self, before: &Self) {
        let SiteConfig { robots, append, max_age, grace, when_missing, .. } = before.settings.clone();
        self.settings = SiteConfig { robots, append, max_age, grace, when_missing, ..self.settings.clone() };
    }

    /// Its checks go with the registry: they know which of the crawlers it refuses.
    pub(super) fn set_registry(&self, registry: &Arc<Registry>) {
        self.robots.set_registry(registry, &self.settings.checks(registry));
    }

    /// Whether its robots.txt is what these settings would open.
    pub(super) fn has_source_of(&self, site: &SiteConfig) -> bool {
        let of = |site: &SiteConfig| (site.robots.clone(), site.max_age, site.grace, site.when_missing);
        of(&self.settings) == of(site) && self.settings.append == site.append
    }

    pub(super) fn has_backend_of(&self, other: &Self) -> bool {
        match (&self.backend, &other.backend) {
            (Some(ours), Some(theirs)) => ours.is(theirs),
            (ours, theirs) => ours.is_none() && theirs.is_none(),
        }
    }
}

/// The counts of a site. Cheap to clone; clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct SiteOutcomes(Arc<Mutex<OutcomeParts>>);

#[derive(Debug, Default)]
struct OutcomeParts {
    workers: Vec<Arc<OutcomeCounts>>,
    /// The sums of workers that do not count for the site any more.
    ended: SiteTotals,
    combinations: Arc<CrawlerCombinations>,
}

impl SiteOutcomes {
    /// Counters for one worker, which counts lookups of agents for all sites together.
    pub(crate) fn of_worker(&self, agent_lookups: &Arc<AgentLookups>) -> Arc<OutcomeCounts> {
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

    /// Visitors sent by services, and pages that crawlers got, since the process began.
    fn given_and_taken(&self) -> (VisitorTotals, PageTotals) {
        let parts = self.0.lock();
        let (mut visitors, mut pages) = (parts.ended.visitors.clone(), parts.ended.pages.clone());
        parts.workers.iter().for_each(|counts| counts.add_visitors_and_pages(&mut visitors, &mut pages));
        (visitors, pages)
    }

    /// Its traffic on the board.
    pub(super) fn traffic(&self) -> TrafficTotals {
        let totals = self.totals();
        let RequestsReport { total, refused, .. } = totals.report();
        TrafficTotals { requests: total, refused, decision_p99: totals.decision_durations.quantile(0.99) }
    }

    /// All that is counted.
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
    fn what_a_worker_has_counted_stays_when_it_counts_no_more() {
        let outcomes = SiteOutcomes::default();
        let counts = outcomes.of_worker(&Arc::default());
        let _ = counts.request(b"/a", (&http::Method::GET).into(), 0);
        drop(counts);
        for _ in 0..100 {
            let _ = outcomes.of_worker(&Arc::default()).request(b"/b", (&http::Method::GET).into(), 0);
        }
        assert_eq!(outcomes.total().total, 101);
        assert!(outcomes.0.lock().workers.len() <= 2);
    }
}
