//! The command `robotsd serve`: its arguments, and what the process needs before anything is opened.

use std::process::ExitCode;
use std::sync::Arc;

use super::socket_activation::InheritedSockets;
use super::startup;
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
    let inherited = match InheritedSockets::take() {
        Ok(inherited) => inherited,
        Err(message) => return fail(&message),
    };
    let path = args.config.path();
    let config = match Config::load(&path) {
        Ok(config) => Arc::new(config),
        Err(error) => {
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
        Err(message) => return fail(&message),
    };
    let serving = startup::serve(&path, args.strict, &config, inherited, &log, access.as_ref());
    let code = match runtime.block_on(serving) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => fail(&message),
    };
    // The process does not wait for a file that is still being read.
    runtime.shutdown_background();
    if let Some(access) = &access {
        access.flush();
    }
    log.flush();
    code
}
