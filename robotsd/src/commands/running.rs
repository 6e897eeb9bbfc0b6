//! The running robotsd that a command queries, and writing its answer.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;

use crate::admin::client::{AdminEndpoint, ask};
use crate::config::AdminSettings;
use crate::exit::fail;
use crate::render::printable;

/// How to reach a running robotsd.
#[derive(Debug, clap::Args)]
pub(super) struct Running {
    /// The config file it runs with; `[admin]` has the address
    #[arg(long, short, value_name = "FILE", conflicts_with = "admin")]
    pub(super) config: Option<PathBuf>,

    /// The admin interface: an address, or the path of a socket [default: 127.0.0.1:9145]
    #[arg(long, value_name = "PLACE")]
    admin: Option<AdminEndpoint>,

    /// Write JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Running {
    pub(super) fn place(&self) -> Result<AdminEndpoint, String> {
        if let Some(place) = &self.admin {
            return Ok(place.clone());
        }
        let Some(path) = &self.config else { return Ok(AdminEndpoint::Address(AdminSettings::usual_address())) };
        match AdminSettings::load(path).map_err(|error| error.to_string())? {
            Some(settings) => Ok(AdminEndpoint::of(&settings)),
            None => {
                Err(format!("{}: there is no [admin], so a robotsd with this config cannot be reached", path.display()))
            }
        }
    }

    /// A command for the same robotsd, as it is typed in the same place.
    pub(super) fn command<'a>(
        &self,
        words: impl IntoIterator<Item = &'a (impl AsRef<str> + ?Sized + 'a)>,
    ) -> Vec<String> {
        let mut command: Vec<String> = words.into_iter().map(|word| word.as_ref().to_owned()).collect();
        if let Some(config) = &self.config {
            command.extend(["--config".to_owned(), config.display().to_string()]);
        }
        if let Some(place) = &self.admin {
            command.extend(["--admin".to_owned(), place.to_string()]);
        }
        command
    }
}

/// Queries the running robotsd; on failure the reason is on standard error.
pub(super) fn asked<T: DeserializeOwned>(running: &Running, method: &Method, target: &str) -> Result<T, ExitCode> {
    let place = running.place().map_err(|message| fail(&plain(&message)))?;
    ask(&place, method, target).map_err(|error| fail(&plain(&error.to_string())))
}

/// A path with a query.
pub(super) fn query(path: &str, pairs: &[(&str, &str)]) -> String {
    let pair = |(name, value): &(&str, &str)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC));
    format!("{path}?{}", pairs.iter().map(pair).collect::<Vec<_>>().join("&"))
}

/// Writes an answer to standard output. A closed pipe is ignored.
pub(super) fn say(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// Writes an answer as JSON.
pub(super) fn say_json(value: &impl serde::Serialize) -> Option<ExitCode> {
    match serde_json::to_string_pretty(value) {
        Ok(text) => {
            say(&(text + "\n"));
            None
        }
        Err(error) => Some(fail(&error)),
    }
}

/// Escapes an answer, which may hold any character: names come from a config, messages quote files.
pub(super) fn plain(text: &str) -> String {
    printable(text.as_bytes())
}
