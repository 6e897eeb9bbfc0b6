//! `robotsd config`: checks a config file as serving it would, or shows it with all its defaults.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::config::Config;
use crate::exit::fail;
use crate::sites;

/// Check a config file, or show it with its defaults
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Check a config file and every robots.txt it names, as serving them would
    ///
    /// Exit status: 0 if all is well, 1 if a robots.txt cannot be served or has errors, 2 if the config has a fault.
    Check {
        /// The config file
        #[arg(value_name = "FILE")]
        config: PathBuf,
    },
    /// Write a config file with every default that it leaves out
    Show {
        /// The config file
        #[arg(value_name = "FILE")]
        config: PathBuf,
    },
}

pub(crate) fn run(args: &ConfigArgs) -> ExitCode {
    match &args.command {
        ConfigCommand::Check { config: path } => {
            let config = match Config::load(path) {
                Ok(config) => config,
                Err(error) => return fail(&error),
            };
            let problems = sites::rehearse(&config);
            for problem in &problems {
                fail(problem);
            }
            let (listeners, sites) = (config.listeners.len(), config.sites.len());
            let verdict =
                if problems.is_empty() { "can be served" } else { "has sites that cannot be served as they are" };
            let code = ExitCode::from(u8::from(!problems.is_empty()));
            write(&format!("{}: {verdict}; listeners: {listeners}, sites: {sites}\n", path.display()), code)
        }
        ConfigCommand::Show { config: path } => match Config::show(path) {
            Ok(text) => write(&text, ExitCode::SUCCESS),
            Err(error) => fail(&error),
        },
    }
}

fn write(text: &str, code: ExitCode) -> ExitCode {
    // A closed pipe is ignored.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
    code
}
