//! Opens the robots.txt and the backend of each site.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tower_robots::live::{Enforcement, Gate, WhenMissing};

use super::backend::BackendSource;
use super::gate_settings::GateSettings;
use super::log_events::{self, SiteName};
use super::refusal_server::RefusalServer;
use super::robots_opener::RobotsOpener;
use super::sender_evidence::SenderEvidence;
use super::served_site::ServedSite;
use super::site_robots::{LiveSite, SiteRobots};
use super::state_handle::StateHandle;
use crate::config::{Backend, Config, RobotsSource, SiteConfig};
use crate::log::{Log, LogEvent, LogPrivacy};
use crate::upstream::{SharedResources, UpstreamLimits};

#[derive(Debug)]
pub(super) struct SiteBackends {
    /// The backend for allowed requests; `None` if no listener forwards requests.
    own: Option<BackendSource>,
    /// The servers for refused requests, indexed by refusal case. An entry is `None` if the case
    /// has no server.
    refusals: Vec<Option<RefusalServer<BackendSource>>>,
}

pub(super) struct SiteOpener<'a> {
    config: &'a Config,
    resources: SharedResources,
    evidence: Option<&'a SenderEvidence>,
    log: &'a Log,
    privacy: LogPrivacy,
}

impl<'a> SiteOpener<'a> {
    pub(super) fn new(
        config: &'a Config,
        evidence: Option<&'a SenderEvidence>,
        log: &'a Log,
        privacy: LogPrivacy,
    ) -> Self {
        Self { config, resources: SharedResources::system(), evidence, log, privacy }
    }

    /// Opens the backends of a site. The backends are opened before any robots.txt is published, so
    /// that an error changes nothing. If `before` has the same upstreams, the new backends share
    /// the state of these upstreams.
    pub(super) fn backends(&self, site: &SiteConfig, before: Option<&ServedSite>) -> Result<SiteBackends, String> {
        let name: SiteName = Arc::from(&*site.name);
        let open = |settings: &Backend, limits: &UpstreamLimits, before: Option<&BackendSource>| {
            BackendSource::open(&name, settings, limits, &self.resources, before, self.log)
        };
        let limits = &self.config.upstream;
        let known = before.and_then(|before| before.backend.as_ref());
        let own = site.backend.as_ref().map(|settings| open(settings, limits, known)).transpose()?;
        let cases = site.refusal.iter().flat_map(|refusals| &refusals.cases.0).enumerate();
        let refusals = cases.map(|(at, (_, answer))| -> Result<_, String> {
            let Some(settings) = &answer.server else { return Ok(None) };
            let known = before.and_then(|before| before.refusals.get(at)?.as_ref());
            let max = settings.max_connections;
            let limits = UpstreamLimits { connections: max, address_connections: max, ..limits.clone() };
            let settings = Backend::Upstreams(settings.origins.clone());
            let server = open(&settings, &limits, known.map(|known| &known.server))?;
            let places = match known.filter(|known| known.server.has_same_servers(&server)) {
                Some(known) => Arc::clone(&known.places),
                None => Arc::new(Semaphore::new(max.get())),
            };
            Ok(Some(RefusalServer { server, places }))
        });
        let refusals = refusals.collect::<Result<_, String>>()?;
        Ok(SiteBackends { own, refusals })
    }

    /// Checks that all sites can be opened. The check comes before anything is logged or saved, so
    /// that a failed start changes nothing. As a consequence of the check, required sources are
    /// read twice, and directories are listed twice.
    pub(super) fn check_sites(&self, opener: &RobotsOpener, strict: bool) -> Result<(), String> {
        let sites = &self.config.sites;
        let is_required = |site: &SiteConfig| strict || site.when_missing == WhenMissing::Fail;
        // A single site needs no check: if opening it fails, no other site has been published.
        if sites.len() < 2 {
            return Ok(());
        }
        let reading = opener.for_dry_run(StateHandle::read_only(self.config));
        sites.iter().try_for_each(|site| {
            let is_listed = matches!(site.robots, RobotsSource::Directory { .. });
            if is_listed || is_required(site) {
                open_robots(site, &reading, strict).map(drop)
            } else {
                open_gate(site, &reading).map(drop)
            }
        })
    }

    /// Creates a site from its open robots.txt and backends. The site shares the counters of
    /// `before`. If the site is new, its problems are logged.
    pub(super) fn assemble(
        &self,
        site: &SiteConfig,
        (gate, robots): (GateSettings, Arc<SiteRobots>),
        SiteBackends { own: backend, refusals }: SiteBackends,
        before: Option<&ServedSite>,
    ) -> ServedSite {
        let log = self.log;
        let name: SiteName = Arc::from(&*site.name);
        if before.is_none() {
            if let Some(problem) = robots.watch_problem() {
                log.write_site_message(&name, LogEvent::Watch.level(), LogEvent::Watch, format!("{name}: {problem}"));
            }
            for LiveSite { name, robots, .. } in robots.live_sites(&name, &[]) {
                if robots.status().switch == Enforcement::Off {
                    log_events::switched_off(log, &name);
                }
            }
        }
        let outcomes = before.map(|before| before.outcomes.clone()).unwrap_or_default();
        let recorders =
            before.map_or_else(|| self.config.board.map(|_| Arc::default()), |before| before.recorders.clone());
        let (hosts, settings, log) = (site.hosts.clone(), site.clone(), log.clone());
        let evidence = self.evidence.cloned();
        let privacy = self.privacy;
        ServedSite {
            name,
            hosts,
            robots,
            gate,
            settings,
            evidence,
            outcomes,
            recorders,
            backend,
            refusals,
            log,
            privacy,
        }
    }
}

/// Opens the robots.txt and the gate of a site when the process starts. If `strict` is set, an
/// unusable robots.txt is an error.
pub(super) fn open_robots(
    site: &SiteConfig,
    opener: &RobotsOpener,
    strict: bool,
) -> Result<(GateSettings, Arc<SiteRobots>), String> {
    let when_missing = if strict { WhenMissing::Fail } else { site.when_missing };
    let (settings, gate) = open_gate(site, opener)?;
    let robots = opener.open(site, opener.site_settings(site, gate), when_missing);
    let robots = robots.map_err(|message| format!("site {:?}: {message}", site.name))?;
    if strict {
        // Opening a directory succeeds even if its files are unusable.
        let live_sites = robots.live_sites(&site.name, &[]);
        if let Some(live) = live_sites.iter().find(|live| live.robots.snapshot().content.is_none()) {
            return Err(format!("site {:?}: {}", live.name, live.robots.status().last_reload));
        }
    }
    Ok((settings, robots))
}

fn open_gate(site: &SiteConfig, opener: &RobotsOpener) -> Result<(GateSettings, Gate), String> {
    let settings = opener.gate_settings(site, None);
    let gate = settings.gate(&opener.registry).map_err(|message| format!("site {:?}: {message}", site.name))?;
    Ok((settings, gate))
}
