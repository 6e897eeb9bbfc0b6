//! Opens what a config names, in this order: signal handlers, admin interface, sites, workers, listeners.

use std::path::Path;
use std::sync::{Arc, Mutex};

use tokio::task::JoinSet;

use super::admin_places::AdminPlaces;
use super::board_keeper::BoardKeeper;
use super::certificate_watch::CertificateWatch;
use super::connection_log;
use super::control_loop::ControlLoop;
use super::descriptors::{self, Descriptors, Shortage};
use super::listeners::{ListenerPlan, Listeners};
use super::reconfigure::{ActiveConfig, PendingChange, log_warnings};
use super::signals::{Signal, Signals};
use super::socket_activation::InheritedSockets;
use super::supervisor::Supervisor;
use super::upgrade::Predecessor;
use super::watched_files::WatchedFiles;
use super::workers::Workers;
use crate::admin::{ConfigRequests, ConfigState, ServerState, Serving, UpgradeRequests};
use crate::config::Config;
use crate::date;
use crate::edge::{Edge, EdgeLimits};
use crate::log::{AccessLog, Log, LogEvent, LogLevel, LogPrivacy};
use crate::sites::Sites;

/// hyper writes the date of an HTTP/1 response whether that is sent or not, and has no form for such a time.
const CLOCK: &str = "the clock is before 1970 or after 9999: responses bear a wrong date or none, and until it is set right \
     neither the admin interface nor HTTP/1 requests that are not plain (with a body, with `Connection: close`) are answered";

/// Serves a config until the process is to end.
pub(super) async fn serve(
    path: &Path,
    strict: bool,
    config: &Arc<Config>,
    mut inherited: InheritedSockets,
    predecessor: Option<&Arc<Predecessor>>,
    log: &Log,
    access: Option<&AccessLog>,
) -> Result<(), String> {
    // Handlers first: a signal that comes while starting must not end the process half-way.
    let mut signals = Signals::listen().map_err(|error| format!("signals cannot be handled: {error}"))?;
    let supervisor = Supervisor::new(log.clone());
    if let Err(message) = descriptors::raise() {
        log.say(LogEvent::Descriptors, message);
    }
    if !date::is_clock_set() {
        log.say(LogEvent::Clock, CLOCK);
    }
    log_warnings(config, log);
    let (requests, requested) = ConfigRequests::new();
    let (upgrades, upgrades_requested) = UpgradeRequests::new();
    let state = Arc::new(ServerState::new(
        requests,
        upgrades,
        ConfigState::new(path.to_owned()),
        log.clone(),
        access.map(AccessLog::lost),
    ));
    if let Some(predecessor) = predecessor {
        ListenerPlan::rehearse(config, &inherited)?;
        let asking = Arc::clone(predecessor);
        let taken = tokio::task::spawn_blocking(move || asking.take());
        tokio::select! {
            taken = taken => if !taken.unwrap_or(false) {
                let message = format!("process {}, whose place this one takes, has ended before", predecessor.id());
                log.say_at(LogLevel::Warn, LogEvent::Upgrade, message);
            },
            () = stop_signal(&mut signals) => {
                log.say(LogEvent::Stopped, "a signal came before anything was served");
                return Err("a signal ended it".to_owned());
            }
        }
    }
    // Held for its drop, which closes what is open.
    let mut background = JoinSet::new();
    let mut admin = AdminPlaces::default();
    if let Some(settings) = &config.admin {
        match admin.open(settings, &mut inherited, &state, log) {
            Ok(()) => {}
            // The default socket, which the config does not name: sites are served without it.
            Err(error) if settings.is_usual => {
                let message = format!(
                    "{error}; commands cannot reach this process: write [admin] with socket = \"…\", or mode = \"off\""
                );
                log.say_at(LogLevel::Warn, LogEvent::AdminListening, message);
            }
            Err(error) => return Err(error),
        }
        let followed = admin.follow_addresses(Some(settings), &state, log);
        if let Some(error) = followed.failures.into_iter().next() {
            return Err(error);
        }
    }

    ListenerPlan::rehearse(config, &inherited)?;
    let opening = {
        let (path, config, log) = (path.to_owned(), Arc::clone(config), log.clone());
        tokio::task::spawn_blocking(move || {
            let sites = Arc::new(Sites::open(&config, strict, &log)?);
            let watches = WatchedFiles::of(&path, &config, &sites.watcher());
            Ok::<_, String>((sites, watches))
        })
    };
    let (sites, watches) = tokio::select! {
        opened = opening => opened.map_err(|error| format!("the sites cannot be opened: {error}"))??,
        () = stop_signal(&mut signals) => {
            log.say(LogEvent::Stopped, "a signal came before anything was served");
            return Ok(());
        }
    };
    if let Some(engines) = sites.spared_engines() {
        log.say(LogEvent::SearchEngines, engines);
    }
    let mut workers = Workers::start(config.workers, &sites)
        .map_err(|error| format!("{} workers cannot be started: {error}", config.workers))?;
    let plan = ListenerPlan::first(config, &mut inherited, workers.count(), log)?;
    inherited.finish()?;

    let descriptors = Descriptors::count();
    let bound = descriptors.bound(config)?;
    let event = match bound.shortage {
        Shortage::No => LogEvent::Connections,
        Shortage::Yes => LogEvent::ConnectionsBounded,
    };
    log.say(event, bound.reason);
    let edge = Edge::new(
        EdgeLimits { connections: bound.connections, ..config.edge.clone() },
        connection_log::trouble(log.clone(), LogPrivacy::new(&config.log)),
        access.map(AccessLog::observer),
    );
    let mut listeners = Listeners::default();
    // Logged when all are open: a reader of the first line may connect to another listener.
    for address in listeners.apply(plan, &mut workers, &edge, log)? {
        log.say(LogEvent::Listening, address);
    }
    let serving = Serving::new(&sites, listeners.reports(), listeners.certificates(), workers.agent_lookups(), &edge);
    let summary = serving.summary();
    state.is_serving(serving);
    let served = Arc::clone(&sites);
    tokio::task::spawn_blocking(move || served.announce());
    supervisor.ready(&summary);
    if let Some(predecessor) = predecessor {
        predecessor.serves(&summary);
        #[cfg(unix)]
        admin.own();
    }

    let board = BoardKeeper::new(config, &sites, log);
    if let Some(keeper) = &board {
        state.has_board(Arc::clone(keeper.board()));
    }
    let certificates = CertificateWatch::introduce(listeners.certificates(), log);
    background.spawn(certificates.clone().watch());
    let active = ActiveConfig {
        path: path.to_owned(),
        config: Arc::clone(config),
        sites,
        listeners: Arc::new(Mutex::new(listeners)),
        edge,
        descriptors,
        certificates,
        watches,
        state: Arc::clone(&state),
        admin,
        started: Arc::clone(&config.text),
        log: log.clone(),
        change: PendingChange::default(),
    };
    let requested = (requested, upgrades_requested);
    ControlLoop::new(active, workers, signals, requested, supervisor, access, background).with_board(board).run().await
}

/// Waits for a signal to stop; while starting, everything is being read anyway.
async fn stop_signal(signals: &mut Signals) {
    while signals.next().await != Signal::Stop {}
}
