//! The state of the process, from which the answers are made. The control thread keeps it up to date.

use std::fmt;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use arc_swap::ArcSwapOption;
use tokio::sync::watch;

use super::config_requests::ConfigRequests;
use super::config_state::ConfigState;
use crate::date;
use crate::edge::{Edge, EdgeTraffic};
use crate::log::Log;
use crate::report::{KindCount, ListenerReport, StatusReport, TrafficReport};
use crate::sites::Sites;

/// The state of the process. The control thread sets the sites and the phase; routes read them.
#[derive(Debug)]
pub(crate) struct ServerState {
    started: (SystemTime, Instant),
    phase: watch::Sender<Phase>,
    serving: ArcSwapOption<Serving>,
    requests: ConfigRequests,
    config: ConfigState,
    log: Log,
}

/// The sites and listeners that are served.
#[derive(Debug)]
pub(crate) struct Serving {
    pub(crate) sites: Arc<Sites>,
    listeners: Vec<ListenerReport>,
    edge: Edge,
}

/// How far the process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Sites are read and listeners opened.
    Starting,
    /// Every listener listens.
    Serving,
    /// Listeners are closed; requests under way are finished.
    Draining,
}

impl ServerState {
    pub(crate) fn new(requests: ConfigRequests, config: ConfigState, log: Log) -> Self {
        Self {
            started: (SystemTime::now(), Instant::now()),
            phase: watch::Sender::new(Phase::Starting),
            serving: ArcSwapOption::empty(),
            requests,
            config,
            log,
        }
    }

    /// Every listener listens, for these sites; also when others take their place.
    pub(crate) fn is_serving(&self, serving: Serving) {
        self.serving.store(Some(Arc::new(serving)));
        self.phase.send_if_modified(|phase| {
            let starting = *phase == Phase::Starting;
            if starting {
                *phase = Phase::Serving;
            }
            starting
        });
    }

    /// The listeners are closed.
    pub(crate) fn is_draining(&self) {
        self.phase.send_replace(Phase::Draining);
    }

    pub(crate) fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// The sites and listeners that are served; none while starting.
    pub(crate) fn serving(&self) -> Option<Arc<Serving>> {
        self.serving.load_full()
    }

    /// Requests to read the config file again.
    pub(crate) fn requests(&self) -> &ConfigRequests {
        &self.requests
    }

    /// Whether the config file is what is served.
    pub(crate) const fn config(&self) -> &ConfigState {
        &self.config
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    pub(crate) fn report(&self) -> StatusReport {
        let serving = self.serving();
        let (since, clock) = self.started;
        StatusReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            state: self.phase().as_str().to_owned(),
            started: date::rfc3339(since),
            uptime_seconds: clock.elapsed().as_secs(),
            config: Some(self.config.report()),
            registry: serving.as_ref().map(|serving| serving.sites.registry_report()),
            traffic: serving.as_ref().map(|serving| serving.traffic()),
            connections: serving.as_ref().map(|serving| serving.edge.connections()),
            enforcement: serving.as_ref().map_or("", |serving| serving.sites.enforcement().as_str()).to_owned(),
            next: serving.as_ref().map(|serving| serving.sites.advice()).unwrap_or_default(),
            troubles: serving.as_ref().map(|serving| serving.sites.troubles()).unwrap_or_default(),
            listeners: serving.as_ref().map(|serving| serving.listeners.clone()).unwrap_or_default(),
            sites: serving.as_ref().map(|serving| serving.sites.report()).unwrap_or_default(),
        }
    }
}

impl Serving {
    pub(crate) fn new(sites: &Arc<Sites>, listeners: Vec<ListenerReport>, edge: &Edge) -> Self {
        Self { sites: Arc::clone(sites), listeners, edge: edge.clone() }
    }

    fn traffic(&self) -> TrafficReport {
        let EdgeTraffic { open, accepted, responses, errors } = self.edge.traffic();
        let classes = ["1xx", "2xx", "3xx", "4xx", "5xx"].into_iter().zip(responses.by_class);
        TrafficReport {
            open_connections: open,
            accepted_connections: accepted,
            responses: classes.map(|(class, count)| KindCount::new(class, count)).collect(),
            unanswered: responses.unanswered,
            connection_errors: errors.into_iter().map(|(kind, count)| KindCount::new(kind.as_str(), count)).collect(),
            sites: self.sites.traffic(),
        }
    }

    /// In one line, for a supervisor.
    pub(crate) fn summary(&self) -> String {
        let number = |count: usize, of: &str| format!("{count} {of}{}", if count == 1 { "" } else { "s" });
        let (sites, listeners) = (self.sites.count(), self.listeners.len());
        format!("serving {} on {}", number(sites, "site"), number(listeners, "listener"))
    }
}

impl Phase {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Serving => "serving",
            Self::Draining => "draining",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
