//! `robotsd serve`: sites behind listeners, with the robots layer between edge and upstream.

mod backend;
mod certificates;
mod descriptors;
mod front;
mod report;
mod robots;
mod signals;
mod sites;
mod sockets;
mod workers;

pub(crate) use self::robots::rehearse;

use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;

use self::certificates::Certificates;
use self::descriptors::{Descriptors, Shortage};
use self::signals::Signals;
use self::sites::Sites;
use self::workers::Workers;
use crate::cli::{ServeArgs, fail};
use crate::config::{self, Config};
use crate::edge::{Edge, Entrance, Limits, Tls};
use crate::log::{AccessLog, Log};

pub(crate) fn run(args: &ServeArgs) -> ExitCode {
    let config = match Config::load(&args.config) {
        Ok(config) => config,
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
    let code = match runtime.block_on(serve(&config, args.strict, &log, access.as_ref())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => fail(&message),
    };
    if let Some(access) = &access {
        access.flush();
    }
    log.flush();
    code
}

async fn serve(config: &Config, strict: bool, log: &Log, access: Option<&AccessLog>) -> Result<(), String> {
    // Handlers first: a signal that comes while starting must not end the process half-way.
    let mut signals = Signals::listen().map_err(|error| format!("signals cannot be handled: {error}"))?;
    if let Err(message) = descriptors::raise() {
        log.say("descriptors", message);
    }
    let sites = Sites::open(config, strict, log)?;
    let edge = Edge::new(
        Limits { connections: connections(config, log)?, ..config.edge.clone() },
        report::trouble(log.clone(), config.log.privacy),
        access.map(AccessLog::observer),
    );
    let mut workers = Workers::start(config.workers, &sites)
        .map_err(|error| format!("{} workers cannot be started: {error}", config.workers))?;
    for config::Listener { address, kind, certificates, trusted } in &config.listeners {
        let config::ListenerKind::Proxy = kind;
        let cannot = |error| format!("{address}: cannot listen here: {error}");
        let sockets = sockets::bind(*address, workers.count()).map_err(cannot)?;
        let local = sockets.first().map_or(Ok(*address), TcpListener::local_addr).map_err(cannot)?;
        let limits = &config.edge;
        let tls = certificates.clone().map(|live| Tls::new(live, limits.handshakes, limits.tls_handshake));
        let scheme = if tls.is_some() { "https" } else { "http" };
        workers.open(sockets, &edge, &Entrance { tls, trusted: Arc::clone(trusted) }).map_err(cannot)?;
        log.say("listening", format!("{scheme}://{local}"));
    }
    let certificates = config.listeners.iter().filter_map(|listener| listener.certificates.clone()).collect();
    let certificates = Certificates::introduce(certificates, log);
    tokio::spawn(certificates.clone().watch());
    let mut stopping = false;
    loop {
        tokio::select! {
            signal = signals.next() => match signal {
                signals::Signal::Reload => {
                    log.say("reload", "asked for by a signal");
                    sites.reload();
                    certificates.reload();
                    if let Some(access) = access {
                        access.reopen();
                    }
                }
                signals::Signal::Stop if stopping => {
                    log.say("stopped", "a second signal: requests under way are cut off");
                    return Ok(());
                }
                signals::Signal::Stop => {
                    log.say("stopping", "no new connections; requests under way are finished");
                    stopping = true;
                    workers.drain();
                }
            },
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

/// How many connections there may be, which the log is told.
fn connections(config: &Config, log: &Log) -> Result<usize, String> {
    let proxied = config.sites.iter().filter(|site| matches!(site.backend, config::Backend::Upstreams(..))).count();
    let idle = proxied.saturating_mul(config.upstream.idle_connections);
    let places = Descriptors::count().places(config.connections, config.edge.connections, idle)?;
    let event = match places.shortage {
        Shortage::No => "connections",
        Shortage::Yes => "connections-bounded",
    };
    log.say(event, places.reason);
    Ok(places.connections)
}

/// Shared by everything that logs about one site.
type SiteName = Arc<str>;
