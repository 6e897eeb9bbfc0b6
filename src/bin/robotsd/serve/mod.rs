//! `robotsd serve`: sites behind listeners, with the robots layer between edge and upstream.

mod descriptors;
mod passed;
mod signals;
mod supervisor;

mod advice;
mod backend;
mod certificates;
mod front;
mod operate;
mod reload;
mod report;
mod robots;
mod sites;
mod sockets;
mod status;
mod tally;
mod workers;

use std::future::pending;
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::task::JoinSet;
use tokio::time::{Interval, MissedTickBehavior, interval};

use self::certificates::Certificates;
use self::descriptors::{Descriptors, Shortage};
use self::passed::Passed;
use self::signals::{Signal, Signals};
use self::supervisor::Supervisor;
use self::workers::Workers;
use crate::admin::{self, Desk, ListenerReport, Listening, Phase, Serving};
use crate::cli::{ServeArgs, fail};
use crate::config::{self, Config, ListenerKind};
use crate::decision::{self, Doubts};
use crate::edge::{Edge, Entrance, Limits, Tls};
use crate::log::{AccessLog, Log};

pub(crate) use self::operate::{Refusal, accept_at_rest, roll_back_at_rest, unknown};
pub(crate) use self::reload::UnknownSite;
pub(crate) use self::robots::rehearse;
pub(crate) use self::sites::Sites;

pub(crate) fn run(args: &ServeArgs) -> ExitCode {
    // Before there are threads.
    let passed = match Passed::take() {
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
    let code = match runtime.block_on(serve(&config, args.strict, passed, &log, access.as_ref())) {
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
    config: &Arc<Config>,
    strict: bool,
    mut passed: Passed,
    log: &Log,
    access: Option<&AccessLog>,
) -> Result<(), String> {
    // Handlers first: a signal that comes while starting must not end the process half-way.
    let mut signals = Signals::listen().map_err(|error| format!("signals cannot be handled: {error}"))?;
    let supervisor = Supervisor::new(log.clone());
    if let Err(message) = descriptors::raise() {
        log.say("descriptors", message);
    }
    let desk = Arc::new(Desk::new(log.clone()));
    // Held for its drop, which closes what is open.
    let mut asking = JoinSet::new();
    if let Some(settings) = &config.admin {
        let listening = Listening::open(settings, passed.for_admin(settings))?;
        listening.places().iter().for_each(|place| log.say("admin-listening", place));
        asking.spawn(admin::serve(listening, Arc::clone(&desk)));
    }

    let opening = {
        let (config, log) = (Arc::clone(config), log.clone());
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
    let mut listeners = Vec::new();
    let mut opened = Vec::new();
    let any_passed = !passed.is_empty();
    for listener in &config.listeners {
        let cannot = |error| format!("{}: cannot listen here: {error}", listener.address);
        let mut sockets = Vec::new();
        for socket in passed.for_listener(listener) {
            sockets.push(sockets::share(socket, workers.count()).map_err(cannot)?);
        }
        let origin = if sockets.is_empty() { "bound" } else { "passed" };
        if sockets.is_empty() {
            if any_passed {
                let address = listener.address;
                log.say("supervisor", format!("{address}: no socket was passed for this listener: it is opened here"));
            }
            sockets.push(sockets::bind(listener.address, workers.count()).map_err(cannot)?);
        }
        let first = sockets.iter().flatten().next();
        let local = first.map_or(Ok(listener.address), TcpListener::local_addr).map_err(cannot)?;
        let limits = &config.edge;
        let tls = listener.certificates.clone().map(|live| Tls::new(live, limits.handshakes, limits.tls_handshake));
        listeners.push(ListenerReport {
            name: listener.name.clone(),
            address: local.to_string(),
            kind: listener.kind.as_str().to_owned(),
            scheme: if tls.is_some() { "https" } else { "http" }.to_owned(),
            socket: origin.to_owned(),
        });
        let entrance = Entrance { tls, trusted: Arc::clone(&listener.trusted) };
        opened.push((local, listener, sockets, entrance));
    }
    passed.finish()?;

    let edge = Edge::new(
        Limits { connections: connections(config, log)?, ..config.edge.clone() },
        report::trouble(log.clone(), config.log.privacy),
        access.map(AccessLog::observer),
    );
    let serving = Serving { sites: Arc::clone(&sites), listeners, connections: edge.connections() };
    for (local, listener, sockets, entrance) in opened {
        let doubts = Arc::new(Doubts::new(log.clone(), listener.on_error));
        for sockets in sockets {
            let cannot = |error| format!("{local}: cannot listen here: {error}");
            match listener.kind {
                ListenerKind::Proxy => workers.open(sockets, &edge, &entrance),
                ListenerKind::Decision => {
                    workers.open_for_decisions(sockets, &edge.with_limits(decision::limits), &entrance, &doubts)
                }
            }
            .map_err(cannot)?;
        }
    }
    // Said when all are open: whoever reads the first of them may go on to another.
    for listener in &serving.listeners {
        log.say("listening", format!("{}://{}", listener.scheme, listener.address));
    }
    let status =
        format!("serving {} on {}", number(sites.iter().len(), "site"), number(serving.listeners.len(), "listener"));
    desk.is_serving(serving);
    supervisor.ready(&status);

    let certificates = config.listeners.iter().filter_map(|listener| listener.certificates.clone()).collect();
    let certificates = Certificates::introduce(certificates, log);
    asking.spawn(certificates.clone().watch());

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
                    certificates.reload();
                    if let Some(access) = access {
                        access.reopen();
                    }
                    asking.spawn(reload(Arc::clone(&sites), Arc::clone(&desk), supervisor.clone(), status.clone()));
                }
                Signal::Stop if desk.phase() == Phase::Draining => {
                    log.say("stopped", "a second signal: requests under way are cut off");
                    return Ok(());
                }
                Signal::Stop => {
                    log.say("stopping", "no new connections; requests under way are finished");
                    desk.is_draining();
                    supervisor.stopping("no new connections; requests under way are finished");
                    workers.drain();
                }
            },
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

/// Reads everything again and tells the supervisor when that is done: it waits for it.
async fn reload(sites: Arc<Sites>, desk: Arc<Desk>, supervisor: Supervisor, status: String) {
    supervisor.reloading();
    // No site is named, so none is unknown.
    let _ = sites.reload(None).await;
    if desk.phase() == Phase::Serving {
        supervisor.ready(&status);
    }
}

/// How many connections there may be, which the log is told.
fn connections(config: &Config, log: &Log) -> Result<usize, String> {
    let proxied =
        config.sites.iter().filter(|site| matches!(site.backend, Some(config::Backend::Upstreams(..)))).count();
    let idle = proxied.saturating_mul(config.upstream.idle_connections);
    let places = Descriptors::count().places(config.connections, config.edge.connections, idle)?;
    let event = match places.shortage {
        Shortage::No => "connections",
        Shortage::Yes => "connections-bounded",
    };
    log.say(event, places.reason);
    Ok(places.connections)
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
