//! `robotsd serve`: sites behind listeners, with the robots layer between edge and upstream.

mod backend;
mod front;
mod report;
mod signals;
mod sites;

use std::process::ExitCode;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::front::Front;
use self::signals::Signals;
use self::sites::Sites;
use crate::cli::{ServeArgs, fail};
use crate::config::{self, Config};
use crate::edge;
use crate::log::{AccessLog, Log};

pub(crate) fn run(args: &ServeArgs) -> ExitCode {
    let config = match Config::load(&args.config) {
        Ok(config) => config,
        Err(error) => return fail(&error),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
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
    let sites = Sites::open(config, strict, log)?;
    let mut listeners = Vec::new();
    for config::Listener { address, kind } in &config.listeners {
        let config::ListenerKind::Proxy = kind;
        let listener =
            TcpListener::bind(address).await.map_err(|error| format!("{address}: cannot listen here: {error}"))?;
        let local = listener.local_addr().map_err(|error| format!("{address}: {error}"))?;
        log.say("listening", format!("http://{local}"));
        listeners.push(listener);
    }
    let front = Front::new(&sites);
    let on_visit = access.map(AccessLog::observer);
    let (stop, stopped) = watch::channel(false);
    let mut serving = JoinSet::new();
    for listener in listeners {
        let mut stopped = stopped.clone();
        let shutdown = async move {
            // The sender outlives the listeners; if it were gone, stopping would be right too.
            let _ = stopped.wait_for(|stop| *stop).await;
        };
        let on_error = report::trouble(log.clone(), config.log.privacy);
        serving.spawn(edge::serve(listener, front.clone(), config.edge.clone(), on_error, on_visit.clone(), shutdown));
    }
    loop {
        tokio::select! {
            signal = signals.next() => match signal {
                signals::Signal::Reload => {
                    log.say("reload", "asked for by a signal");
                    sites.reload();
                    if let Some(access) = access {
                        access.reopen();
                    }
                }
                signals::Signal::Stop if *stopped.borrow() => {
                    log.say("stopped", "a second signal: requests under way are cut off");
                    return Ok(());
                }
                signals::Signal::Stop => {
                    log.say("stopping", "no new connections; requests under way are finished");
                    // Nobody listens only where every listener has ended already.
                    let _ = stop.send(true);
                }
            },
            ended = serving.join_next() => match ended {
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

/// Shared by everything that logs about one site.
type SiteName = Arc<str>;
