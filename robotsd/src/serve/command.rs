//! The command `robotsd serve`: its arguments, and what the process needs before anything is opened.

use std::process::ExitCode;
use std::sync::Arc;

use super::socket_activation::InheritedSockets;
use super::startup;
use super::upgrade::Predecessor;
use crate::config::{Config, ConfigArgument};
use crate::exit::{FAILED, fail};
use crate::log::{AccessLog, Log, LogPrivacy};

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
    let config = match Config::load(&path) {
        Ok(config) => Arc::new(config),
        Err(error) => {
            predecessor.iter().for_each(|predecessor| predecessor.failed(&error.to_string()));
            error.complain();
            return ExitCode::from(FAILED);
        }
    };
    // Only for signals and the admin interface; requests have threads of their own.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format_args!("the runtime cannot be started: {error}")),
    };
    let log = Log::start(config.log.format);
    let start = |settings| AccessLog::start(settings, LogPrivacy::new(&config.log), log.clone());
    let access = match config.log.access.as_ref().map(start).transpose() {
        Ok(access) => access,
        Err(message) => {
            predecessor.iter().for_each(|predecessor| predecessor.failed(&message));
            return fail(&message);
        }
    };
    let serving = startup::serve(&path, args.strict, &config, inherited, predecessor.as_ref(), &log, access.as_ref());
    let code = match runtime.block_on(serving) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            predecessor.iter().for_each(|predecessor| predecessor.failed(&message));
            fail(&message)
        }
    };
    // The process does not wait for a file that is still being read.
    runtime.shutdown_background();
    if let Some(access) = &access {
        access.flush();
    }
    log.flush();
    code
}

/// The sockets that were open before this process, and the process whose place it takes.
fn inherit() -> Result<(InheritedSockets, Option<Arc<Predecessor>>), String> {
    #[cfg(target_os = "linux")]
    if let Some((predecessor, sockets)) = Predecessor::find()? {
        return Ok((InheritedSockets::of_predecessor(sockets)?, Some(Arc::new(predecessor))));
    }
    Ok((InheritedSockets::take()?, None))
}
