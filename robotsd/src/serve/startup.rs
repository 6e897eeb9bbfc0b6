//! The command `robotsd serve`. It opens what a config names, in this order: signal handlers, admin interface, sites,
//! workers, listeners.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use super::admin_places::AdminPlaces;
use super::board_keeper::BoardKeeper;
use super::control_loop::ControlLoop;
use super::descriptors::{self, Descriptors};
use super::listeners::{ListenerPlan, Listeners};
use super::preparation::read_once_quiet;
use super::reconfigure::{ActiveConfig, PendingChange, follow_included, log_warnings, serving};
use super::socket_activation::InheritedSockets;
use super::supervisor::{Signal, Signals, Supervisor};
use super::upgrade::Predecessor;
use super::watched_files::{CertificateWatch, WatchedFiles};
use super::workers::Workers;
use crate::admin::ServerState;
use crate::config::{Config, ConfigArgument, connect_now, local_token_files};
use crate::date;
use crate::edge::{ConnectionError, ConnectionErrorKind, Edge, EdgeLimits};
use crate::exit::{FAILED, fail};
use crate::log::{AccessLog, Log, LogEntry, LogEvent, LogLevel, LogPrivacy};
use crate::sites::Sites;

/// hyper writes the date of an HTTP/1 response whether that is sent or not, and has no form for such a time.
const CLOCK: &str = "the clock is before 1970 or after 9999: responses bear a wrong date or none, and until it is set right \
     neither the admin interface nor HTTP/1 requests that are not plain (with a body, with `Connection: close`) are answered";

/// How long a process that was killed is waited for, which answers on the admin socket until the system has taken it down: as the lock of the
/// state directory is.
const PATIENCE: Duration = Duration::from_secs(2);

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
    let (state, requests) = ServerState::new(path, log.clone(), access.map(|access| access.lost.clone()));
    let state = Arc::new(state);
    state.audit.keep_in(config.audit_place(), config.replica());
    state.config.accept(false, Vec::new(), &config.included.refused);
    state.watchdog.report_panics(log);
    if let Some(predecessor) = predecessor {
        ListenerPlan::rehearse(config, &inherited)?;
        let asking = Arc::clone(predecessor);
        let taken = tokio::task::spawn_blocking(move || asking.take());
        tokio::select! {
            taken = taken => if !taken.unwrap_or(false) {
                let message = format!("process {}, whose place this one takes, has ended before", predecessor.process);
                log.say_at(LogLevel::Warn, LogEvent::Upgrade, message);
            },
            () = stop_signal(&mut signals) => {
                log.say(LogEvent::Stopped, "a signal came before anything was served");
                return Err("a signal ended it".to_owned());
            }
        }
    }
    let mut admin = AdminPlaces::new(&state, log);
    let token_files = local_token_files(path, config.state_dir.as_deref());
    if let Some(settings) = &config.admin {
        if let Some(socket) = settings.socket.as_deref().filter(|_| predecessor.is_none() && inherited.is_empty()) {
            let ended = async {
                while connect_now(socket).is_ok() {
                    sleep(Duration::from_millis(20)).await;
                }
            };
            // A process that goes on is reported by the attempt to listen there.
            let _ = timeout(PATIENCE, ended).await;
        }
        admin.open(settings, &token_files, &mut inherited)?;
    }
    if predecessor.is_none() {
        // So that `status` shows the start. The state directory may still be another process's.
        let _ = admin.leave_place(path, None);
    }

    ListenerPlan::rehearse(config, &inherited)?;
    let opening = {
        let (path, config, log) = (path.to_owned(), Arc::clone(config), log.clone());
        tokio::task::spawn_blocking(move || {
            config.misplaced_state().map_or(Ok(()), Err)?;
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
    admin.keep_token(&token_files);
    if let Some(engines) = sites.spared_engines() {
        log.say(LogEvent::SearchEngines, engines);
    }
    let mut workers = Workers::start(config.workers, &sites)
        .map_err(|error| format!("{} workers cannot be started: {error}", config.workers))?;
    let loops = workers.event_loops().chain([("control".to_owned(), Handle::current())]);
    let watch = state.watchdog.watch(loops, log).map_err(|error| format!("the watchdog cannot be started: {error}"))?;
    let plan = ListenerPlan::first(config, &mut inherited, workers.count(), log)?;
    let unused_files = inherited.unused_files();
    inherited.finish()?;

    let descriptors = Descriptors::count();
    let bound = descriptors.bound(config)?;
    log.say(if bound.is_short { LogEvent::ConnectionsBounded } else { LogEvent::Connections }, bound.reason);
    let edge = Edge::new(
        EdgeLimits { connections: bound.connections, ..config.edge.clone() },
        trouble(log.clone(), LogPrivacy::new(&config.log)),
        access.map(AccessLog::observer),
    );
    let mut listeners = Listeners::default();
    // Logged when all are open: a reader of the first line may connect to another listener.
    for address in listeners.apply(plan, &mut workers, &edge, log)? {
        log.say(LogEvent::Listening, address);
    }
    let serving = serving(&sites, &listeners, &admin, &workers, &edge);
    let (summary, certificates) = (serving.summary(), serving.certificates.clone());
    // The process before would not know of a change that is made before it hears that this one serves.
    let changes = state.changes.write().await;
    if let Err(message) = admin.leave_place(path, sites.state.directory.as_ref()) {
        log.say_at(LogLevel::Warn, LogEvent::AdminListening, message);
    }
    // An answer of the admin interface says that there is no board if it is not there yet.
    let board = BoardKeeper::new(config, &sites, log);
    if let Some(keeper) = &board {
        let _ = state.board.set(Arc::clone(&keeper.board));
    }
    state.is_serving(serving);
    if let Some(fleet) = &sites.state.fleet {
        let sites: Arc<ServerState> = Arc::clone(&state);
        fleet.start(sites).map_err(|error| format!("the thread of the fleet cannot be started: {error}"))?;
    }
    follow_included(&[], config, log);
    let served = Arc::clone(&sites);
    tokio::task::spawn_blocking(move || served.announce());
    supervisor.ready(&summary);
    if let Some(predecessor) = predecessor {
        predecessor.serves(&summary);
        for file in unused_files {
            // One that is left behind leads nowhere.
            let _ = std::fs::remove_file(file);
        }
    }
    drop(changes);

    let certificates = CertificateWatch::introduce(certificates, log);
    let active = ActiveConfig {
        path: path.to_owned(),
        config: Arc::clone(config),
        sites,
        listeners: Arc::new(Mutex::new(listeners)),
        workers,
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
    ControlLoop::new(active, signals, requests, supervisor, access, board, watch).run().await
}

/// Waits for a signal to stop; while starting, everything is being read anyway.
async fn stop_signal(signals: &mut Signals) {
    while signals.next().await != Signal::Stop {}
}

/// One line for trouble with connections, which the edge reports at most once a second and kind.
pub(super) fn trouble(log: Log, privacy: LogPrivacy) -> impl Fn(&ConnectionError) + Send + Sync + 'static {
    move |trouble| {
        // Errors may quote what a client sent; the log escapes it.
        let detail = &trouble.detail;
        log.write(&LogEntry {
            level: level(trouble.kind),
            reason: Some(trouble.kind.as_str()),
            address: trouble.peer.and_then(|peer| privacy.address(peer.ip())),
            message: Some(match trouble.count {
                1 => detail.clone(),
                count => format!("{detail} ({count} times)"),
            }),
            ..LogEntry::now(LogEvent::Trouble)
        });
    }
}

/// The level of an error: behaviour of a client is ordinary, a fault that holds clients up is not.
const fn level(kind: ConnectionErrorKind) -> LogLevel {
    use ConnectionErrorKind::{
        Aborted, Accept, Broken, Flood, Full, Handshake, Protocol, ProxyHeader, Recycled, Slow, Untrusted,
    };
    match kind {
        Accept => LogLevel::Error,
        // Those that are not trusted, or send no PROXY header, are the operator's own proxies, most likely: all of their connections may be
        // refused.
        Full | Recycled | Flood | Untrusted | ProxyHeader | Aborted => LogLevel::Warn,
        Slow | Handshake | Protocol | Broken => LogLevel::Info,
    }
}

/// Serve and enforce robots.txt in front of sites
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    config: ConfigArgument,

    /// Refuse to start where a robots.txt is missing or unusable
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(args: &ServeArgs) -> ExitCode {
    // Before any thread starts: it changes the environment.
    let (inherited, predecessor) = match inherit() {
        Ok(inherited) => inherited,
        Err(message) => return fail(&message),
    };
    let path = args.config.path();
    let is_failed = |why: &str| predecessor.iter().for_each(|predecessor| predecessor.failed(why));
    let config = if predecessor.is_some() { read_once_quiet(&path) } else { Config::load(&path) };
    let config = match config {
        Ok(config) => Arc::new(config),
        Err(error) => {
            is_failed(&error.to_string());
            error.complain();
            return ExitCode::from(FAILED);
        }
    };
    let log = Log::start(config.log.format);
    let served = || {
        let start = |settings| AccessLog::start(settings, LogPrivacy::new(&config.log), log.clone());
        let access = config.log.access.as_ref().map(start).transpose()?;
        // Only for signals and the admin interface; requests have threads of their own.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("the runtime cannot be started: {error}"))?;
        let serving = serve(&path, args.strict, &config, inherited, predecessor.as_ref(), &log, access.as_ref());
        let served = runtime.block_on(serving);
        // The process does not wait for a file that is still being read.
        runtime.shutdown_background();
        access.iter().for_each(AccessLog::flush);
        served
    };
    let code = served().map_or_else(
        |message: String| {
            is_failed(&message);
            fail(&message)
        },
        |()| ExitCode::SUCCESS,
    );
    log.flush();
    code
}

/// The sockets that were open before this process, and the process whose place it takes.
fn inherit() -> Result<(InheritedSockets, Option<Arc<Predecessor>>), String> {
    if let Some((predecessor, sockets)) = Predecessor::find()? {
        return Ok((InheritedSockets::of_predecessor(sockets)?, Some(Arc::new(predecessor))));
    }
    Ok((InheritedSockets::take()?, None))
}
