//! Starts `robotsd serve`. A start sets up, in this order: signal handlers, admin interface, sites,
//! workers, listeners.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use super::admin_places::AdminSockets;
use super::board_keeper::BoardKeeper;
use super::control_loop::ControlLoop;
use super::descriptors::{self, Descriptors};
use super::listeners::{ListenerPlan, Listeners};
use super::preparation::load_when_quiet;
use super::reconfigure::{ActiveConfig, PendingChange, follow_included, log_warnings, serving};
use super::socket_activation::InheritedSockets;
use super::supervisor::{Signal, Signals, Supervisor};
use super::upgrade::Predecessor;
use super::watched_files::{CertificateWatch, WatchedFiles};
use super::workers::Workers;
use crate::admin::{ServerState, Serving};
use crate::config::{Config, ConfigArgument, connect_now, local_token_files};
use crate::date;
use crate::edge::{ConnectionError, ConnectionErrorKind, Edge, EdgeLimits};
use crate::exit::{FAILED, fail};
use crate::log::{AccessLog, Log, LogEntry, LogEvent, LogLevel, LogPrivacy};
use crate::sites::Sites;

/// Warning that the system's clock shows a time that cannot be formatted as an HTTP date. hyper
/// needs a date for every HTTP/1 response.
const CLOCK: &str = "the clock of this machine is before 1970 or after 9999, so responses have a wrong date or no \
    date, the admin interface does not answer, and some HTTP/1 requests (with a body, or with `Connection: close`) get \
    no answer: correct the clock";

/// Maximum time to wait until the admin socket of a killed process accepts no more connections.
const PATIENCE: Duration = Duration::from_secs(2);

const STOPPED: &str = "a signal stopped robotsd before it served any request";

struct Start<'a> {
    path: &'a Path,
    strict: bool,
    config: &'a Arc<Config>,
    predecessor: Option<&'a Arc<Predecessor>>,
    log: &'a Log,
    access: Option<&'a AccessLog>,
}

impl Start<'_> {
    async fn serve(&self, mut inherited: InheritedSockets) -> Result<(), String> {
        let Self { path, config, log, access, .. } = *self;
        // Signals are handled first, so that a signal cannot kill the process in the middle of the
        // start.
        let mut signals = Signals::listen().map_err(|error| format!("signals cannot be handled: {error}"))?;
        let supervisor = Supervisor::new(log.clone());
        self.prepare_process();
        let (state, requests) = ServerState::new(path, log.clone(), access.map(|access| access.lost.clone()));
        let state = Arc::new(state);
        state.audit.set_destination(config.audit_place(), config.replica());
        state.config.accept(false, Vec::new(), &config.included.refused);
        state.watchdog.report_panics(log);
        if let Some(predecessor) = self.predecessor {
            ListenerPlan::check_bind(config, &inherited)?;
            self.take_over(predecessor, &mut signals).await?;
        }
        let token_files = local_token_files(path, config.state_dir.as_deref());
        let mut admin = self.open_admin(&state, &token_files, &mut inherited).await?;
        ListenerPlan::check_bind(config, &inherited)?;
        let Some((sites, watches)) = self.open_sites(&mut signals).await? else { return Ok(()) };
        admin.ensure_token(&token_files);

        let mut workers = Workers::start(config.workers, &sites)
            .map_err(|error| format!("{count} workers cannot be started: {error}", count = config.workers))?;
        let loops = workers.event_loops().chain([("control".to_owned(), Handle::current())]);
        let watch =
            state.watchdog.watch(loops, log).map_err(|error| format!("the watchdog cannot be started: {error}"))?;
        let plan = ListenerPlan::first(config, &mut inherited, workers.count(), log)?;
        let unused_files = inherited.unused_files();
        inherited.finish()?;
        let (edge, descriptors) = self.edge()?;
        let mut listeners = Listeners::default();
        // The addresses are logged only when all listeners are open, because a program that reads
        // the first address in the log may immediately connect to another listener.
        for address in listeners.apply(plan, &mut workers, &edge, log)? {
            log.write_message(LogEvent::Listening, address);
        }
        let serving = serving(&sites, &listeners, &admin, &workers, &edge);
        let mut active = ActiveConfig {
            path: path.to_owned(),
            config: Arc::clone(config),
            sites,
            listeners: Arc::new(Mutex::new(listeners)),
            workers,
            edge,
            descriptors,
            certificates: CertificateWatch::introduce(serving.certificates.clone(), log),
            watches,
            state,
            admin,
            started: Arc::clone(&config.text),
            log: log.clone(),
            change: PendingChange::default(),
        };
        let board = BoardKeeper::new(config, &active.sites, log);
        self.announce(&mut active, board.as_ref(), serving, &supervisor, unused_files).await?;
        ControlLoop::new(active, signals, requests, supervisor, access, board, watch).run().await
    }

    /// Raises the limit on open file descriptors, and logs problems with the machine and the
    /// config.
    fn prepare_process(&self) {
        if let Err(message) = descriptors::raise() {
            self.log.write_message(LogEvent::Descriptors, message);
        }
        if !date::is_clock_set() {
            self.log.write_message(LogEvent::Clock, CLOCK);
        }
        log_warnings(self.config, self.log);
    }

    async fn take_over(&self, predecessor: &Arc<Predecessor>, signals: &mut Signals) -> Result<(), String> {
        let asking = Arc::clone(predecessor);
        let taken = tokio::task::spawn_blocking(move || asking.take());
        tokio::select! {
            taken = taken => if !taken.unwrap_or(false) {
                let message = format!("process {process}, which this process was started to replace, has already \
                    ended", process = predecessor.process);
                self.log.write_message_at(LogLevel::Warn, LogEvent::Upgrade, message);
            },
            () = stop_signal(signals) => {
                self.log.write_message(LogEvent::Stopped, STOPPED);
                return Err("the new process was stopped by a signal".to_owned());
            }
        }
        Ok(())
    }

    /// Opens the admin interface and writes its address to the place files, so that `robotsd
    /// status` works during the start.
    async fn open_admin(
        &self,
        state: &Arc<ServerState>,
        token_files: &[PathBuf],
        inherited: &mut InheritedSockets,
    ) -> Result<AdminSockets, String> {
        let mut admin = AdminSockets::new(state, self.log);
        if let Some(settings) = &self.config.admin {
            let is_first = self.predecessor.is_none() && inherited.is_empty();
            if let Some(socket) = settings.socket.as_deref().filter(|_| is_first) {
                wait_for_end(socket).await;
            }
            admin.open(settings, token_files, inherited)?;
        }
        if self.predecessor.is_none() {
            // No place file is written to the state directory yet, because the directory may still
            // belong to another process.
            let _ = admin.write_place_files(self.path, None);
        }
        Ok(admin)
    }

    /// Opens the sites and watches their files; `None` if a signal ends the start.
    async fn open_sites(&self, signals: &mut Signals) -> Result<Option<(Arc<Sites>, WatchedFiles)>, String> {
        let (path, config, strict, log) =
            (self.path.to_owned(), Arc::clone(self.config), self.strict, self.log.clone());
        let opening = tokio::task::spawn_blocking(move || {
            config.state_dir_problem().map_or(Ok(()), Err)?;
            let sites = Arc::new(Sites::open(&config, strict, &log)?);
            let watches = WatchedFiles::of(&path, &config, &sites.watcher());
            Ok::<_, String>((sites, watches))
        });
        tokio::select! {
            opened = opening => {
                let opened = opened.map_err(|error| format!("the sites cannot be opened: {error}"))??;
                if let Some(engines) = opened.0.spared_engines() {
                    self.log.write_message(LogEvent::SearchEngines, engines);
                }
                Ok(Some(opened))
            }
            () = stop_signal(signals) => {
                self.log.write_message(LogEvent::Stopped, STOPPED);
                Ok(None)
            }
        }
    }

    fn edge(&self) -> Result<(Edge, Descriptors), String> {
        let Self { config, log, access, .. } = *self;
        let descriptors = Descriptors::count();
        let bound = descriptors.bound(config)?;
        log.write_message(
            if bound.is_reduced { LogEvent::ConnectionsBounded } else { LogEvent::Connections },
            bound.reason,
        );
        let limits = EdgeLimits { connections: bound.connections, ..config.edge.clone() };
        let edge = Edge::new(
            limits,
            problem_logger(log.clone(), LogPrivacy::new(&config.log)),
            access.map(AccessLog::observer),
        );
        Ok((edge, descriptors))
    }

    async fn announce(
        &self,
        active: &mut ActiveConfig,
        board: Option<&BoardKeeper>,
        serving: Serving,
        supervisor: &Supervisor,
        unused_files: Vec<PathBuf>,
    ) -> Result<(), String> {
        let ActiveConfig { sites, state, admin, .. } = active;
        let summary = serving.summary();
        // Operators' changes wait until the previous process knows that this process serves: until
        // then, the previous process may take over again without knowing about the changes.
        let _changes = state.changes.write().await;
        if let Err(message) = admin.write_place_files(self.path, sites.state.directory.as_ref()) {
            self.log.write_message_at(LogLevel::Warn, LogEvent::AdminListening, message);
        }
        // The board is set before the sites: otherwise, the admin interface would report for a
        // moment that the board is disabled.
        if let Some(keeper) = board {
            let _ = state.board.set(Arc::clone(&keeper.board));
        }
        state.set_serving(serving);
        if let Some(fleet) = &sites.state.fleet {
            let state: Arc<ServerState> = Arc::clone(state);
            fleet.start(state).map_err(|error| format!("the thread of the fleet cannot be started: {error}"))?;
        }
        follow_included(&[], self.config, self.log);
        let served = Arc::clone(sites);
        tokio::task::spawn_blocking(move || served.announce());
        supervisor.ready(&summary);
        if let Some(predecessor) = self.predecessor {
            predecessor.report_serving(&summary);
            for file in unused_files {
                // No process accepts connections on the Unix socket of this file any more.
                let _ = std::fs::remove_file(file);
            }
        }
        Ok(())
    }
}

/// Waits until the admin socket no longer accepts connections. If robotsd was killed and restarted
/// immediately, the socket of the killed process may still accept connections for a moment.
async fn wait_for_end(socket: &Path) {
    let ended = async {
        while connect_now(socket).is_ok() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    // The result is ignored: if a process still listens, opening the socket later returns an error.
    let _ = timeout(PATIENCE, ended).await;
}

/// Waits for a signal to stop. Ignores signals to reload, because a process that is starting reads
/// the config and all robots.txt files anyway.
async fn stop_signal(signals: &mut Signals) {
    while signals.next().await != Signal::Stop {}
}

/// Returns a function that logs problems with connections. The edge calls this function at most
/// once per second for each kind of problem.
pub(super) fn problem_logger(log: Log, privacy: LogPrivacy) -> impl Fn(&ConnectionError) + Send + Sync + 'static {
    move |problem| {
        // The detail may contain bytes from a client, which the log escapes.
        let detail = &problem.detail;
        log.write(&LogEntry {
            level: level(problem.kind),
            reason: Some(problem.kind.as_str()),
            address: problem.peer.and_then(|peer| privacy.address(peer.ip())),
            message: Some(match problem.count {
                1 => detail.clone(),
                count => format!("{detail} ({count} times)"),
            }),
            ..LogEntry::now(LogEvent::Problem)
        });
    }
}

/// Returns the log level of a problem. Problems that affect only the client that causes them have
/// the level `Info`.
const fn level(kind: ConnectionErrorKind) -> LogLevel {
    use ConnectionErrorKind::{
        Aborted, Accept, Broken, Flood, Full, Handshake, Protocol, ProxyHeader, Recycled, Slow, Untrusted,
    };
    match kind {
        Accept => LogLevel::Error,
        // A client that is not trusted, or that sends no PROXY header, is probably the operator's
        // own proxy. The config must then be corrected, because robotsd refuses all connections of
        // that proxy.
        Full | Recycled | Flood | Untrusted | ProxyHeader | Aborted => LogLevel::Warn,
        Slow | Handshake | Protocol | Broken => LogLevel::Info,
    }
}

/// Serve and enforce robots.txt in front of sites
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    config: ConfigArgument,

    /// Refuse to start if a robots.txt is missing or unusable
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(args: &ServeArgs) -> ExitCode {
    // `inherit` must run before any thread starts, because it removes environment variables.
    let (inherited, predecessor) = match inherit() {
        Ok(inherited) => inherited,
        Err(message) => return fail(&message),
    };
    let path = args.config.path();
    let report_failure = |why: &str| predecessor.iter().for_each(|predecessor| predecessor.report_failure(why));
    let config = if predecessor.is_some() { load_when_quiet(&path) } else { Config::load(&path) };
    let config = match config {
        Ok(config) => Arc::new(config),
        Err(error) => {
            report_failure(&error.to_string());
            error.complain();
            return ExitCode::from(FAILED);
        }
    };
    let log = Log::start(config.log.format);
    let served = || {
        let start = |settings| AccessLog::start(settings, LogPrivacy::new(&config.log), log.clone());
        let access = config.log.access.as_ref().map(start).transpose()?;
        // This runtime serves only the control loop and the admin interface; worker threads serve
        // the sites.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("the runtime cannot be started: {error}"))?;
        let start = Start {
            path: &path,
            strict: args.strict,
            config: &config,
            predecessor: predecessor.as_ref(),
            log: &log,
            access: access.as_ref(),
        };
        let served = runtime.block_on(start.serve(inherited));
        // Shutting down in the background does not wait for blocking threads, which may still be
        // reading a file.
        runtime.shutdown_background();
        access.iter().for_each(AccessLog::flush);
        served
    };
    let code = served().map_or_else(
        |message: String| {
            report_failure(&message);
            fail(&message)
        },
        |()| ExitCode::SUCCESS,
    );
    log.flush();
    code
}

fn inherit() -> Result<(InheritedSockets, Option<Arc<Predecessor>>), String> {
    if let Some((predecessor, sockets)) = Predecessor::find()? {
        return Ok((InheritedSockets::from_predecessor(sockets)?, Some(Arc::new(predecessor))));
    }
    Ok((InheritedSockets::take()?, None))
}
