//! The commands for a robotsd that runs: `status` and `reload`.

mod reload;
mod status;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::admin::client::Place;
use crate::cli::fail;
use crate::config::AdminSettings;
use crate::render::printable;

pub(crate) use self::reload::{ReloadArgs, run as run_reload};
pub(crate) use self::status::{StatusArgs, run as run_status};

/// Which robotsd is meant.
#[derive(Debug, clap::Args)]
pub(crate) struct Running {
    /// The config file it runs with; its `[admin]` says where to ask
    #[arg(long, short, value_name = "FILE", conflicts_with = "admin")]
    config: Option<PathBuf>,

    /// Where to ask: an address or the path of a socket [default: 127.0.0.1:9145]
    #[arg(long, value_name = "PLACE")]
    admin: Option<Place>,

    /// As JSON
    #[arg(long)]
    json: bool,
}

impl Running {
    fn place(&self) -> Result<Place, String> {
        if let Some(place) = &self.admin {
            return Ok(place.clone());
        }
        let Some(path) = &self.config else { return Ok(Place::Address(AdminSettings::usual_address())) };
        match AdminSettings::load(path).map_err(|error| error.to_string())? {
            Some(settings) => Ok(Place::of(&settings)),
            None => Err(format!(
                "{}: there is no [admin], so a robotsd that runs with this config cannot be asked",
                path.display()
            )),
        }
    }
}

/// Writes an answer to standard output; a reader that has gone is told nothing more.
fn say(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// Writes an answer as JSON.
fn say_json(value: &impl serde::Serialize) -> Option<ExitCode> {
    match serde_json::to_string_pretty(value) {
        Ok(text) => {
            say(&(text + "\n"));
            None
        }
        Err(error) => Some(fail(&error)),
    }
}

/// What was answered may hold anything: names come from a config, messages quote files.
fn plain(text: &str) -> String {
    printable(text.as_bytes())
}
