//! The running robotsd that a command queries, `--config FILE` or `--admin PLACE`, and the commands that do little
//! more: `history`, the reloads of a site and their results; `upgrade`, which has a new process of the program take the place of the
//! running one.

use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use askama::Template;
use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;

use super::output::{Page, say_report};
use crate::admin::client::{AdminQuestion, ask};
use crate::config::{AdminPlace, AdminSettings, USUAL_CONFIG, config_if_any};
use crate::exit::{answer, complain};
use crate::render::{plural, printable, short_hash};
use crate::report::{HistoryReport, NextStep, RecordedReload, UpgradeReport};

/// For a connection on this machine.
const CONNECT: Duration = Duration::from_secs(5);

/// How to reach a running robotsd.
#[derive(Debug, clap::Args)]
pub(crate) struct Running {
    /// The config file it runs with; `[admin]` has the address [default: $ROBOTSD_CONFIG, else /etc/robotsd/robotsd.toml if
    /// there is one]
    #[arg(long, short, value_name = "FILE", conflicts_with = "admin")]
    pub(in crate::commands) config: Option<PathBuf>,

    /// The admin interface: an address, a name, or the path of a socket [default: from the config]
    #[arg(long, value_name = "PLACE")]
    admin: Option<AdminPlace>,

    /// Write JSON
    #[arg(long)]
    pub(in crate::commands) json: bool,
}

impl Running {
    pub(in crate::commands) fn place(&self) -> Result<AdminPlace, String> {
        if let Some(place) = &self.admin {
            return Ok(place.clone());
        }
        let Some(path) = self.config_path() else { return without_config() };
        let unread = |error| {
            let usual = AdminSettings::usual(&path).and_then(|usual| usual.socket);
            let usual = usual.map(|socket| format!(", and no process listens at the default, {}", socket.display()));
            let usual = usual.unwrap_or_default();
            format!("{error}; so where robotsd can be reached cannot be read{usual}: name its place with --admin PLACE")
        };
        match AdminSettings::load(&path).map_err(unread)? {
            Some(settings) => Ok(AdminPlace::of(&settings)),
            None => Err(format!(
                "{}: [admin] has enabled = false, so a robotsd with this config cannot be reached; one that runs with another is named with --admin PLACE",
                path.display()
            )),
        }
    }

    /// The config that is named, by the environment too, or the usual one where there is one.
    pub(in crate::commands) fn config_path(&self) -> Option<PathBuf> {
        // Where the place is named, the config may be another's.
        if self.admin.is_some() { None } else { config_if_any(self.config.as_deref()) }
    }

    /// A command for the same robotsd, as it is typed in the same place.
    pub(in crate::commands) fn command<'a>(
        &self,
        words: impl IntoIterator<Item = &'a (impl AsRef<str> + ?Sized + 'a)>,
    ) -> Vec<String> {
        let mut command: Vec<String> = words.into_iter().map(|word| word.as_ref().to_owned()).collect();
        if let Some(config) = &self.config {
            command.extend(["--config".to_owned(), config.display().to_string()]);
        }
        // Every replica is one that a config names.
        if let Some(place) = self.admin.as_ref().filter(|_| !command.iter().any(|word| word == "--fleet")) {
            command.extend(["--admin".to_owned(), place.to_string()]);
        }
        command
    }

    /// The command of a step that an answer names, likewise.
    pub(in crate::commands) fn step(&self, step: &NextStep) -> Vec<String> {
        if step.is_for_running() { self.command(&step.command) } else { step.command.clone() }
    }
}

/// The only robotsd that runs with a default socket, else the usual address.
fn without_config() -> Result<AdminPlace, String> {
    let sockets = AdminSettings::usual_sockets();
    match &*sockets {
        [] => at_usual_address(AdminSettings::usual_address()),
        [socket] => Ok(AdminPlace::Socket(socket.clone())),
        several => {
            let several: Vec<_> = several.iter().map(|socket| socket.display().to_string()).collect();
            Err(format!("several robotsd run: name one with --config FILE, or with --admin: {}", several.join(", ")))
        }
    }
}

/// The address, if a process listens there.
fn at_usual_address(address: SocketAddr) -> Result<AdminPlace, String> {
    match TcpStream::connect_timeout(&address, CONNECT) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Err(format!(
            "there is no config {USUAL_CONFIG}, and no robotsd runs with a default socket or listens on {address}: name its \
             config with --config FILE, or its admin interface with --admin PLACE"
        )),
        // Any other error is met again, and described, by the command.
        _ => Ok(AdminPlace::Address(address)),
    }
}

/// Queries the running robotsd.
pub(in crate::commands) fn asked<T: DeserializeOwned>(running: &Running, of: AdminQuestion<'_>) -> io::Result<T> {
    let place = running.place().map_err(refusal)?;
    ask(&place, of, complain).map_err(refusal)
}

/// The reason for which a command ends. It may hold any character: names come from a config, messages quote files.
pub(in crate::commands) fn refusal(reason: impl Display) -> io::Error {
    io::Error::other(printable(reason.to_string()))
}

/// A path with a query.
pub(in crate::commands) fn query(path: &str, pairs: &[(&str, &str)]) -> String {
    let pair = |(name, value): &(&str, &str)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC));
    format!("{path}?{}", pairs.iter().map(pair).collect::<Vec<_>>().join("&"))
}

/// Why something is changed.
#[derive(Debug, clap::Args)]
pub(crate) struct Reason {
    /// Why, for the audit
    #[arg(long, value_name = "TEXT")]
    pub(in crate::commands) reason: Option<String>,
}

impl Reason {
    /// A path with a query, and the reason in it.
    pub(in crate::commands) fn target<'a>(
        &'a self,
        path: &str,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> String {
        let reason = self.reason.as_deref().map(|reason| ("reason", reason));
        let pairs: Vec<_> = pairs.into_iter().chain(reason).collect();
        if pairs.is_empty() { path.to_owned() } else { query(path, &pairs) }
    }
}

/// A site of it.
#[derive(Debug, clap::Args)]
pub(crate) struct RunningSite {
    #[command(flatten)]
    pub(in crate::commands) running: Running,

    /// The site, by its name
    pub(in crate::commands) site: String,
}

/// Exit status: 0, or 2 where robotsd could not be reached.
pub(crate) fn history(args: &RunningSite) -> io::Result<ExitCode> {
    let target = query("/history", &[("site", &args.site)]);
    let report: HistoryReport = asked(&args.running, (&Method::GET, &target))?;
    let text = |page: &mut Page| {
        if report.entries.is_empty() {
            page.title(&format!("site {}: there was no reload yet", report.site));
        }
        report.entries.iter().for_each(|entry| page.lay_out(&ReloadText { entry }));
    };
    say_report(&report, args.running.json, text, ExitCode::SUCCESS)
}

#[derive(Template)]
#[template(path = "commands/history.txt", whitespace = "preserve")]
struct ReloadText<'a> {
    entry: &'a RecordedReload,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UpgradeArgs {
    #[command(flatten)]
    running: Running,

    #[command(flatten)]
    reason: Reason,
}

/// Exit status: 0 when the new process serves, 1 when the one before goes on, 2 when robotsd could not be reached.
pub(crate) fn upgrade(UpgradeArgs { running, reason }: &UpgradeArgs) -> io::Result<ExitCode> {
    let report: UpgradeReport = asked(running, (&Method::POST, &reason.target("/upgrade", [])))?;
    let text = |page: &mut Page| page.title(&format!("{}: {}", report.state, report.message));
    say_report(&report, running.json, text, answer(report.state == "done"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::test_peer::refusing;

    #[test]
    fn without_any_config_the_message_names_the_one_that_is_missing() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(at_usual_address(address), Ok(AdminPlace::Address(address)));
        let (_refusing, address) = refusing();
        let error = at_usual_address(address).unwrap_err();
        assert!(error.starts_with("there is no config /etc/robotsd/robotsd.toml, and no robotsd runs"), "{error}");
        assert!(error.ends_with("with --config FILE, or its admin interface with --admin PLACE"), "{error}");
    }
}
