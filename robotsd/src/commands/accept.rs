//! `robotsd accept`: publishes the version of a site that waits.

use std::process::ExitCode;

use http::Method;
use tower_robots::live::{VersionHashError, VersionHashPrefix};

use super::arguments::running::{Running, asked, query};
use super::operator_decision::decide;
use super::output::page::Page;
use super::output::standard_output::{plain, say, say_json};
use crate::admin::client::ask;
use crate::exit::{FAILED, complain, fail};
use crate::report::{HistoryReport, StatusReport};
use crate::sites::{accept_at_rest, unknown};

#[derive(Debug, clap::Args)]
pub(crate) struct AcceptArgs {
    #[command(flatten)]
    running: Running,

    /// The site, by its name
    site: String,

    /// The hash of the version that waits, or at least its first 12 hex digits; without it, the version that waits is shown
    hash: Option<String>,
}

pub(crate) fn run(args: &AcceptArgs) -> ExitCode {
    let Some(hash) = &args.hash else { return show_waiting(args) };
    let hash: VersionHashPrefix = match hash.parse() {
        Ok(hash) => hash,
        Err(error) => return fail(&plain(&VersionHashError::to_string(&error))),
    };
    let target = query("/accept", &[("site", &args.site), ("hash", &hash.to_string())]);
    decide(&args.running, &target, &|config| accept_at_rest(config, &args.site, &hash))
}

/// Shows what waits. Nothing is accepted: exit status 2, as for every decision that is not carried out.
fn show_waiting(args: &AcceptArgs) -> ExitCode {
    let report: StatusReport = match asked(&args.running, &Method::GET, "/status") {
        Ok(report) => report,
        Err(code) => return code,
    };
    let Some(site) = report.sites.iter().find(|site| site.name == args.site) else {
        return fail(&plain(&unknown(&args.site, report.sites.iter().map(|site| &site.name))));
    };
    if args.running.json {
        return say_json(&site.pending).unwrap_or(ExitCode::from(FAILED));
    }
    let mut page = Page::default();
    match &site.pending {
        None => page.title(&format!("site {}: no version waits", site.name)),
        Some(pending) => {
            let hash = pending.hash.get(..23).unwrap_or(&pending.hash);
            page.title(&format!("site {}: a version waits since {}", site.name, pending.since));
            page.line("version", hash);
            page.line("from", &pending.origin);
            for (number, objection) in pending.objections.iter().enumerate() {
                page.line(if number == 0 { "because" } else { "" }, objection);
            }
            if let Some(effect) = effect(args, &pending.hash) {
                page.line("effect", &effect);
            }
            page.line("next", "to publish it:");
            page.command(&args.running.command(["robotsd", "accept", &site.name, hash]));
        }
    }
    say(&page.into_string());
    ExitCode::from(FAILED)
}

/// What the version changes, as the history has it.
fn effect(args: &AcceptArgs, hash: &str) -> Option<String> {
    let place = args.running.place().ok()?;
    let history: HistoryReport =
        ask(&place, &Method::GET, &query("/history", &[("site", &args.site)]), complain).ok()?;
    history.entries.into_iter().rev().find(|entry| entry.hash.as_deref() == Some(hash))?.effect
}
