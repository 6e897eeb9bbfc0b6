//! An operator's decision: `accept`, `rollback` and `enforce`.
//!
//! It is sent to the running robotsd. Where none runs, it is written to the state directory, which the next one starts with.
//!
//! Exit status: 0 when it is done, 1 when it is done but could not be written to the state directory, 2 when it could not be
//! done.

use std::process::ExitCode;

use http::Method;

use super::arguments::running::Running;
use super::output::page::Page;
use super::output::standard_output::{plain, say, say_json};
use crate::admin::client::{AskError, ask};
use crate::config::Config;
use crate::exit::{complain, fail};
use crate::report::ChangeReport;
use crate::sites::ChangeError;

type AtRest<'a> = &'a dyn Fn(&Running) -> Result<ChangeReport, String>;

/// Sends what `at_rest` does with the config where no robotsd runs.
pub(super) fn decide(
    running: &Running,
    target: &str,
    at_rest: &dyn Fn(&Config) -> Result<ChangeReport, ChangeError>,
) -> ExitCode {
    send(running, target, &|running| {
        let path = running.config_path().ok_or_else(without_config)?;
        let config = Config::load(&path).map_err(|error| error.to_string())?;
        if config.state_dir.is_none() {
            return Err(without_state(&path));
        }
        at_rest(&config).map_err(|(ChangeError::Unknown(message) | ChangeError::Conflict(message))| message)
    })
}

/// Sends a decision to the running robotsd, or applies it to the state directory where none runs.
pub(super) fn send(running: &Running, target: &str, at_rest: AtRest<'_>) -> ExitCode {
    let place = match running.place() {
        Ok(place) => place,
        Err(message) => return fail(&plain(&message)),
    };
    let (report, note) = match ask::<ChangeReport>(&place, &Method::POST, target, complain) {
        Ok(report) => (report, None),
        Err(error @ AskError::NotRunning(_)) => {
            let unreachable = error.to_string();
            let rested = at_rest(running);
            match (ask(&place, &Method::POST, target, complain), rested) {
                // It started meanwhile, and may have read what was there before, or have the state directory open.
                (Ok(report), _) => (report, None),
                (Err(_), Ok(report)) => (report, Some(format!("{unreachable}; this holds from the next start"))),
                (Err(_), Err(message)) => return fail(&plain(&format!("{unreachable}; {message}"))),
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
    for step in &report.next {
        if step.command.is_empty() {
            page.text(&step.what);
        } else {
            page.text(&format!("{}:", step.what));
            page.command(&step.command);
        }
    }
    page.into_string()
}

pub(super) fn without_config() -> String {
    "with --config FILE it is written to the state directory, for the next start".to_owned()
}

pub(super) fn without_state(path: &std::path::Path) -> String {
    format!("{}: there is no state_dir, so it cannot be written down for the next start", path.display())
}
