//! `robotsd accept`, `rollback` and `enforce`: an operator's decisions.
//!
//! They are sent to the running robotsd. Where none runs, they are written to the state directory, which the next one starts
//! with.

use std::process::ExitCode;

use http::Method;
use tower_robots::live::{Enforcement, StateDir, VersionHashError, VersionHashPrefix};

use super::running::{Running, plain, query, say, say_json};
use super::wrap::Page;
use crate::admin::client::{AskError, ask};
use crate::config::{Config, StatePlace};
use crate::exit::fail;
use crate::report::ChangeReport;
use crate::sites::{ChangeError, accept_at_rest, roll_back_at_rest, unknown};

#[derive(Debug, clap::Args)]
pub(crate) struct AcceptArgs {
    #[command(flatten)]
    running: Running,

    /// The site, by its name
    site: String,

    /// The hash of the version that waits, or at least its first 12 hex digits
    hash: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RollbackArgs {
    #[command(flatten)]
    running: Running,

    /// The site, by its name
    site: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct EnforceArgs {
    #[command(flatten)]
    running: Running,

    /// Whether disallowed requests are refused, tagged and logged
    to: To,

    /// Switch this site only
    #[arg(long, value_name = "NAME")]
    site: Option<String>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum To {
    /// The mode of each site decides
    On,
    /// Every request passes; /robots.txt is served as before
    Off,
}

/// Exit status of each: 0 when it is done, 1 when it is done but could not be written to the state directory, 2 when it could
/// not be done.
pub(crate) fn accept(args: &AcceptArgs) -> ExitCode {
    let hash: VersionHashPrefix = match args.hash.parse() {
        Ok(hash) => hash,
        Err(error) => return fail(&plain(&VersionHashError::to_string(&error))),
    };
    let target = query("/accept", &[("site", &args.site), ("hash", &hash.to_string())]);
    decide(&args.running, &target, &|config| accept_at_rest(config, &args.site, &hash))
}

pub(crate) fn roll_back(args: &RollbackArgs) -> ExitCode {
    let target = query("/rollback", &[("site", &args.site)]);
    decide(&args.running, &target, &|config| roll_back_at_rest(config, &args.site))
}

pub(crate) fn enforce(args: &EnforceArgs) -> ExitCode {
    let to = match args.to {
        To::On => Enforcement::On,
        To::Off => Enforcement::Off,
    };
    let mut pairs = vec![("to", to.as_str())];
    pairs.extend(args.site.as_deref().map(|site| ("site", site)));
    send(&args.running, &query("/enforce", &pairs), &|running| {
        // Read by itself: the switch has to work while the rest of the config does not.
        let path = running.config.as_deref().ok_or_else(without_config)?;
        let StatePlace { folder, sites } = StatePlace::load(path).map_err(|error| error.to_string())?;
        let folder = folder.ok_or_else(|| without_state(path))?;
        let state = StateDir::open(&folder);
        let (of, written) = match &args.site {
            Some(name) if !sites.contains(name) => return Err(unknown(name, &sites)),
            Some(name) => (format!("site {name:?}"), state.set_enforcement_of(name, to)),
            None => ("every site".to_owned(), state.set_enforcement(to)),
        };
        written.map_err(|error| error.to_string())?;
        Ok(ChangeReport {
            site: args.site.clone(),
            enforcement: Some(to.as_str().to_owned()),
            kept: true,
            ..ChangeReport::new(format!("enforcement of {of} is switched {to} in {}", folder.display()))
        })
    })
}

type AtRest<'a> = &'a dyn Fn(&Running) -> Result<ChangeReport, String>;

fn decide(running: &Running, target: &str, at_rest: &dyn Fn(&Config) -> Result<ChangeReport, ChangeError>) -> ExitCode {
    send(running, target, &|running| {
        let path = running.config.as_deref().ok_or_else(without_config)?;
        let config = Config::load(path).map_err(|error| error.to_string())?;
        if config.state_dir.is_none() {
            return Err(without_state(path));
        }
        at_rest(&config).map_err(|(ChangeError::Unknown(message) | ChangeError::Conflict(message))| message)
    })
}

/// Sends a decision to the running robotsd, or applies it to the state directory where none runs.
fn send(running: &Running, target: &str, at_rest: AtRest<'_>) -> ExitCode {
    let place = match running.place() {
        Ok(place) => place,
        Err(message) => return fail(&plain(&message)),
    };
    let (report, note) = match ask::<ChangeReport>(&place, &Method::POST, target) {
        Ok(report) => (report, None),
        Err(error @ AskError::NotRunning(_)) => {
            let unreachable = error.to_string();
            match at_rest(running) {
                Ok(report) => match ask(&place, &Method::POST, target) {
                    // It started meanwhile, and may have read what was there before.
                    Ok(report) => (report, None),
                    Err(_) => (report, Some(format!("{unreachable}; this holds from the next start"))),
                },
                Err(message) => return fail(&plain(&format!("{unreachable}; {message}"))),
            }
        }
        Err(error) => return fail(&plain(&error.to_string())),
    };
    if running.json {
        if let Some(code) = say_json(&report) {
            return code;
        }
    } else {
        say(&text(&report, note.as_deref(), running));
    }
    ExitCode::from(u8::from(report.trouble.is_some()))
}

fn text(report: &ChangeReport, note: Option<&str>, running: &Running) -> String {
    let mut page = Page::default();
    page.text(&report.message);
    if let Some(note) = note {
        page.text(note);
    }
    match (&report.trouble, report.kept) {
        (Some(trouble), _) => page.text(&format!("it holds until robotsd ends: {trouble}")),
        (None, false) => page.text("it holds until robotsd ends: its config has no state_dir"),
        (None, true) => {}
    }
    if let (Some(site), Some(waiting)) = (&report.site, &report.waiting) {
        page.text("to publish that version again:");
        let hash = waiting.get(..23).unwrap_or(waiting);
        page.command(&running.command(&["robotsd", "accept", site, hash]));
    }
    page.into_string()
}

fn without_config() -> String {
    "with --config FILE it is written to the state directory, for the next start".to_owned()
}

fn without_state(path: &std::path::Path) -> String {
    format!("{}: there is no state_dir, so it cannot be written down for the next start", path.display())
}
