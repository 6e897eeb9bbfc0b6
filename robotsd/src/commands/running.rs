//! Selects the running robotsd that a command queries (`--config FILE` or `--admin PLACE`), and
//! implements two simple commands. `history` shows the reloads of a site and their results;
//! `upgrade` replaces the running process with a new one.

use std::fmt::Display;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use askama::Template;
use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;

use super::output::{Page, print_report};
use crate::admin::client::{AdminCall, ask};
use crate::admin::find_place;
use crate::config::{AdminPlace, DEFAULT_CONFIG, config_if_any};
use crate::exit::{complain, exit_code_for};
use crate::render::{plural, printable, short_hash};
use crate::report::{HistoryReport, NextStep, RecordedReload, UpgradeReport};

/// Environment variable with the address of the admin interface, in the form that `--admin`
/// accepts.
const ADMIN_VARIABLE: &str = "ROBOTSD_ADMIN";

/// Options that select the running robotsd of a command.
#[derive(Debug, clap::Args)]
pub(crate) struct Running {
    /// The config file of the running robotsd [default: $ROBOTSD_CONFIG, else
    /// /etc/robotsd/robotsd.toml if it exists]
    #[arg(long, short, value_name = "FILE", conflicts_with = "admin")]
    pub(in crate::commands) config: Option<PathBuf>,

    /// The admin interface to use: an address, a name, or the path of a socket [default: that of the
    /// robotsd that runs with --config, else $ROBOTSD_ADMIN, else that of the robotsd that runs with
    /// the default config]
    #[arg(long, value_name = "PLACE")]
    admin: Option<AdminPlace>,

    /// Print the result as JSON
    #[arg(long)]
    pub(in crate::commands) json: bool,
}

impl Running {
    pub(in crate::commands) fn place(&self) -> Result<AdminPlace, String> {
        if let Some(place) = &self.admin {
            return Ok(place.clone());
        }
        if self.config.is_none()
            && let Some(place) = place_from_environment()?
        {
            return Ok(place);
        }
        find_place(&self.config_path().unwrap_or_else(|| DEFAULT_CONFIG.into()))
    }

    /// Returns the path of the config: from an option, from the environment, or the default path if
    /// a file exists there.
    pub(in crate::commands) fn config_path(&self) -> Option<PathBuf> {
        // With `--admin`, the config is unknown: the process may use another config than the
        // default one.
        if self.admin.is_some() { None } else { config_if_any(self.config.as_deref()) }
    }

    /// Returns a robotsd command with the options `--config` and `--admin` of this command, so that
    /// both commands query the same process.
    pub(in crate::commands) fn command<'a>(
        &self,
        words: impl IntoIterator<Item = &'a (impl AsRef<str> + ?Sized + 'a)>,
    ) -> Vec<String> {
        let mut command: Vec<String> = words.into_iter().map(|word| word.as_ref().to_owned()).collect();
        if let Some(config) = &self.config {
            command.extend(["--config".to_owned(), config.display().to_string()]);
        }
        // With `--fleet`, the command queries the replicas in the config, so it does not need
        // `--admin`.
        if let Some(place) = self.admin.as_ref().filter(|_| !command.iter().any(|word| word == "--fleet")) {
            command.extend(["--admin".to_owned(), place.to_string()]);
        }
        command
    }

    /// Returns the command that the user should run next. If that command acts on a running
    /// robotsd, adds the options that select the same robotsd.
    pub(in crate::commands) fn step(&self, step: &NextStep) -> Vec<String> {
        if step.is_for_running() { self.command(&step.command) } else { step.command.clone() }
    }
}

fn place_from_environment() -> Result<Option<AdminPlace>, String> {
    let named = std::env::var(ADMIN_VARIABLE).ok().filter(|place| !place.is_empty());
    named.map(|place| place.parse().map_err(|why| format!("{ADMIN_VARIABLE}: {why}"))).transpose()
}

pub(in crate::commands) fn query_running<T: DeserializeOwned>(running: &Running, of: AdminCall<'_>) -> io::Result<T> {
    let place = running.place().map_err(refusal)?;
    ask(&place, of, complain).map_err(refusal)
}

/// Returns an error with the reason why a command failed. Escapes the reason, because it may quote
/// configs and files, which can contain any character.
pub(in crate::commands) fn refusal(reason: impl Display) -> io::Error {
    io::Error::other(printable(reason.to_string()))
}

pub(in crate::commands) fn query(path: &str, pairs: &[(&str, &str)]) -> String {
    let pair = |(name, value): &(&str, &str)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC));
    format!("{path}?{}", pairs.iter().map(pair).collect::<Vec<_>>().join("&"))
}

/// Reason for a change.
#[derive(Debug, clap::Args)]
pub(crate) struct Reason {
    /// The reason for the change, which is written to the audit file
    #[arg(long, value_name = "TEXT")]
    pub(in crate::commands) reason: Option<String>,
}

impl Reason {
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

/// A site of a running robotsd.
#[derive(Debug, clap::Args)]
pub(crate) struct RunningSite {
    #[command(flatten)]
    pub(in crate::commands) running: Running,

    /// The name of the site
    pub(in crate::commands) site: String,
}

pub(crate) fn history(args: &RunningSite) -> io::Result<ExitCode> {
    let target = query("/history", &[("site", &args.site)]);
    let report: HistoryReport = query_running(&args.running, (&Method::GET, &target))?;
    let text = |page: &mut Page| {
        if report.entries.is_empty() {
            page.title(&format!("site {site}: the robots.txt has not been reloaded yet", site = report.site));
        }
        report.entries.iter().for_each(|entry| page.append_template(&ReloadText { entry }));
    };
    print_report(&report, args.running.json, text, ExitCode::SUCCESS)
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

pub(crate) fn upgrade(UpgradeArgs { running, reason }: &UpgradeArgs) -> io::Result<ExitCode> {
    let report: UpgradeReport = query_running(running, (&Method::POST, &reason.target("/upgrade", [])))?;
    let text = |page: &mut Page| page.title(&format!("{}: {}", report.state, report.message));
    print_report(&report, running.json, text, exit_code_for(report.state == "done"))
}
