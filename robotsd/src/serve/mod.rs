//! `robotsd serve`: sites behind listeners, with the robots layer between edge and upstream.

mod descriptors;
mod signals;
mod socket_activation;
mod supervisor;

mod backend;
mod certificate_watch;
mod dry_run;
mod listeners;
mod log_events;
mod next_steps;
mod operate;
mod reconfigure;
mod reload;
mod reload_counts;
mod renewal;
mod router;
mod site_report;
mod site_robots;
mod sites;
mod sockets;
mod static_files;
mod watched_files;
mod workers;

use std::future::pending;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Interval, MissedTickBehavior, interval};
use tower_robots::live::StateDir;

use self::certificate_watch::CertificateWatch;
use self::descriptors::{ConnectionBound, Descriptors, Shortage};
use self::listeners::{ListenerPlan, Listeners};
use self::reconfigure::{ActiveConfig, PendingChange};
use self::signals::{Signal, Signals};
use self::socket_activation::InheritedSockets;
use self::supervisor::Supervisor;
use self::watched_files::WatchedFiles;
use self::workers::Workers;
use crate::admin::{self, AdminListeners, ListenerReport, Phase, ServerState, Serving};
use crate::config::{self, Config};
use crate::date;
use crate::edge::{Edge, EdgeLimits};
use crate::exit::fail;
use crate::log::{AccessLog, Log};

pub(crate) use self::dry_run::rehearse;
pub(crate) use self::operate::{ChangeError, accept_at_rest, roll_back_at_rest, unknown};
pub(crate) use self::reconfigure::ConfigRequests;
pub(crate) use self::reload::UnknownSite;
pub(crate) use self::sites::Sites;

/// hyper writes the date of an HTTP/1 response whether that is sent or not, and has no words for such a time.
const CLOCK: &str = "the clock is before 1970 or after 9999: responses bear a wrong date or none, and until it is set right \
     neither the admin interface nor HTTP/1 requests that are not plain (with a body, with `Connection: close`) are answered";

/// How long the end waits for the state directory: a file system may hang.
const FLUSH: Duration = Duration::from_secs(5);

/// Serve and enforce robots.txt in front of sites
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// The config file
    #[arg(long, short, value_name = "FILE")]
    config: PathBuf,

    /// Refuse to start where a robots.txt is missing or unusable
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(args: &ServeArgs) -> ExitCode {
    // Before there are threads.
    let passed = match InheritedSockets::take() {
        Ok(passed) => passed,
        Err(message) => return fail(&message),
    };
    let config = match Config::load(&args.config) {
        Ok(config) => Arc::new(config),
        Err(error) => return fail(&error),
    };
    // Only for signals and for what is asked of the process; requests have threads of their own.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format_args!("the runtime cannot be started: {error}")),
    };
    let log = Log::start(config.log.format);
    let start = |settings| AccessLog::start(settings, config.log.privacy, log.clone());
    let access = match config.log.access.as_ref().map(start).transpose() {
        Ok(access) => access,
        Err(message) => return fail(&message),
    };
    let code = match runtime.block_on(serve(args, &config, passed, &log, access.as_ref())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => fail(&message),
    };
    // Nobody waits for a file that is still being read.
    runtime.shutdown_background();
    if let Some(access) = &access {
        access.flush();
    }
    log.flush();
    code
}

async fn serve(
    args: &ServeArgs,
    config: &Arc<Config>,
    mut passed: InheritedSockets,
    log: &Log,
    access: Option<&AccessLog>,
) -> Result<(), String> {
    // Handlers first: a signal that comes while starting must not end the process half-way.
    let mut signals = Signals::listen().map_err(|error| format!("signals cannot be handled: {error}"))?;
    let supervisor = Supervisor::new(log.clone());
    if let Err(message) = descriptors::raise() {
        log.say("descriptors", message);
    }
    if !date::is_clock_set() {
        log.say("clock", CLOCK);
    }
    let (orders, mut ordered) = ConfigRequests::new();
    let state = Arc::new(ServerState::new(orders, log.clone()));
    // Held for its drop, which closes what is open.
    let mut asking = JoinSet::new();
    if let Some(settings) = &config.admin {
        let listening = AdminListeners::open(settings, passed.for_admin(settings))?;
        listening.addresses().iter().for_each(|place| log.say("admin-listening", place));
        asking.spawn(admin::serve(listening, Arc::clone(&state)));
    }

    let opening = {
        let (config, log, strict) = (Arc::clone(config), log.clone(), args.strict);
        tokio::task::spawn_blocking(move || Sites::open(&config, strict, &log))
    };
    let sites = tokio::select! {
        opened = opening => Arc::new(opened.map_err(|error| format!("the sites cannot be opened: {error}"))??),
        () = asked_to_stop(&mut signals) => {
            log.say("stopped", "a signal came before anything was served");
            return Ok(());
        }
    };
    let mut workers = Workers::start(config.workers, &sites)
        .map_err(|error| format!("{} workers cannot be started: {error}", config.workers))?;
    let plan = ListenerPlan::first(config, &mut passed, workers.count(), log)?;
    passed.finish()?;

    let descriptors = Descriptors::count();
    let connections = places(config, descriptors)?;
    let event = match connections.shortage {
        Shortage::No => "connections",
        Shortage::Yes => "connections-bounded",
    };
    log.say(event, connections.reason);
    let edge = Edge::new(
        EdgeLimits { connections: connections.connections, ..config.edge.clone() },
        log_events::trouble(log.clone(), config.log.privacy),
        access.map(AccessLog::observer),
    );
    let mut listeners = Listeners::default();
    // Said when all are open: whoever reads the first of them may go on to another.
    for place in listeners.apply(plan, &mut workers, &edge, log)? {
        log.say("listening", place);
    }
    let served = serving(&sites, listeners.reports(), &edge);
    let status = status(&served);
    state.is_serving(served);
    supervisor.ready(&status);

    let certificates = CertificateWatch::introduce(listeners.certificates(), log);
    asking.spawn(certificates.clone().watch());
    let watches = WatchedFiles::of(&args.config, &sites);
    let (config_changed, others_changed) = (watches.config(), watches.demands());
    let mut configuration = ActiveConfig {
        path: args.config.clone(),
        config: Arc::clone(config),
        sites,
        listeners: Arc::new(Mutex::new(listeners)),
        edge,
        descriptors,
        certificates,
        watches,
        state: Arc::clone(&state),
        log: log.clone(),
        change: PendingChange::default(),
    };

    // Dropped before the sites are.
    let _at_end = FlushAtEnd { state: configuration.sites.state().cloned(), log: log.clone() };
    let mut pulse = Supervisor::pulse().map(|every| {
        let mut pulse = interval(every);
        pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pulse
    });
    loop {
        tokio::select! {
            signal = signals.next() => match signal {
                Signal::Reload => {
                    log.say("reload", "asked for by a signal");
                    configuration.certificates.reload();
                    if let Some(access) = access {
                        access.reopen();
                    }
                    asking.spawn(reload(Arc::clone(&state), supervisor.clone()));
                }
                Signal::Stop if state.phase() == Phase::Draining => {
                    log.say("stopped", "a second signal: requests under way are cut off");
                    return Ok(());
                }
                Signal::Stop => {
                    log.say("stopping", "no new connections; requests under way are finished");
                    state.is_draining();
                    supervisor.stopping("no new connections; requests under way are finished");
                    configuration.let_go();
                    workers.drain();
                }
            },
            // At the end there is no other config: who asks is told so by the answer that never comes.
            Some(asker) = ordered.recv() => if state.phase() == Phase::Serving {
                configuration.ask(Some(asker), &workers);
            },
            () = config_changed.notified(), if state.phase() == Phase::Serving => configuration.ask(None, &workers),
            ready = configuration.changed(), if state.phase() == Phase::Serving => configuration.make(ready, &mut workers),
            () = others_changed.notified() => {
                asking.spawn(Arc::clone(&configuration.sites).follow(configuration.watches.changed()));
            }
            // It says that every thread that serves still takes up work.
            () = next_beat(&mut pulse) => {
                let answered = workers.answer();
                let supervisor = supervisor.clone();
                asking.spawn(async move {
                    answered.await;
                    supervisor.alive();
                });
            }
            Some(_) = asking.join_next() => {}
            ended = workers.ended() => match ended {
                None => {
                    log.say("stopped", "every connection is closed");
                    return Ok(());
                }
                Some(Ok(())) => {}
                Some(Err(error)) => return Err(format!("a listener ended: {error}")),
            },
        }
    }
}

/// Has the state directory written at the end, however that comes.
struct FlushAtEnd {
    state: Option<StateDir>,
    log: Log,
}

impl Drop for FlushAtEnd {
    fn drop(&mut self) {
        if self.state.as_ref().is_some_and(|state| !state.flush_within(FLUSH)) {
            self.log.say("state", "what could not be written to the state directory until now is forgotten");
        }
    }
}

/// Reads everything again and tells the supervisor when that is done: it waits for it.
async fn reload(state: Arc<ServerState>, supervisor: Supervisor) {
    supervisor.reloading();
    // What came of it is logged. Sites are those of the config as it is then.
    let _ = state.orders().reconfigure().await;
    let Some(served) = state.serving() else { return };
    // No site is named, so none is unknown.
    let _ = served.sites.reload(None).await;
    if let Some(served) = state.serving().filter(|_| state.phase() == Phase::Serving) {
        supervisor.ready(&status(&served));
    }
}

/// How many connections there may be.
fn places(config: &Config, descriptors: Descriptors) -> Result<ConnectionBound, String> {
    let proxied =
        config.sites.iter().filter(|site| matches!(site.backend, Some(config::Backend::Upstreams(..)))).count();
    let idle = proxied.saturating_mul(config.upstream.idle_connections);
    descriptors.places(config.connections, config.edge.connections, idle)
}

/// What is served, for whoever asks.
fn serving(sites: &Arc<Sites>, listeners: Vec<ListenerReport>, edge: &Edge) -> Serving {
    Serving { sites: Arc::clone(sites), listeners, connections: edge.connections() }
}

fn status(served: &Serving) -> String {
    let (sites, listeners) = (served.sites.iter().len(), served.listeners.len());
    format!("serving {} on {}", number(sites, "site"), number(listeners, "listener"))
}

/// Waits for a signal to stop; while starting, everything is being read anyway.
async fn asked_to_stop(signals: &mut Signals) {
    while signals.next().await != Signal::Stop {}
}

async fn next_beat(pulse: &mut Option<Interval>) {
    match pulse {
        Some(pulse) => {
            pulse.tick().await;
        }
        None => pending().await,
    }
}

fn number(count: usize, of: &str) -> String {
    format!("{count} {of}{}", if count == 1 { "" } else { "s" })
}

/// Shared by everything that logs about one site.
type SiteName = Arc<str>;
