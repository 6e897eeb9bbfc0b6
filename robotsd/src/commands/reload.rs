//! `robotsd reload`: the config and every robots.txt are read again, or one robots.txt.

use std::fmt::Write as _;
use std::io;
use std::process::ExitCode;

use http::Method;

use super::fleet::{self, FleetArg};
use super::output::say_report;
use super::running::{Reason, Running, asked};
use crate::exit::answer;
use crate::render::{plural, printable};
use crate::report::{ReloadOutcome, ReloadReport};

#[derive(Debug, clap::Args)]
pub(crate) struct ReloadArgs {
    #[command(flatten)]
    running: Running,

    /// Reload this site only
    #[arg(long, value_name = "NAME")]
    site: Option<String>,

    #[command(flatten)]
    reason: Reason,

    #[command(flatten)]
    fleet: FleetArg,
}

/// Exit status: 0 when everything was accepted, 1 when something was not, 2 when robotsd, or with `--fleet` one of them, could not be
/// reached.
pub(crate) fn reload(args: &ReloadArgs) -> io::Result<ExitCode> {
    let target = args.reason.target("/reload", args.site.as_deref().map(|site| ("site", site)));
    if args.fleet.fleet {
        return fleet::report(&args.running, &Method::POST, &target, is_accepted, reload_line);
    }
    let report: ReloadReport = asked(&args.running, &Method::POST, &target)?;
    say_report(&report, args.running.json, || reload_text(&report), answer(is_accepted(&report)))
}

fn is_accepted(report: &ReloadReport) -> bool {
    let others = report.config.iter().chain(&report.registry).map(|other| &other.outcome);
    let mut outcomes = report.sites.iter().map(|site| &site.outcome).chain(others);
    outcomes.all(|outcome| matches!(&**outcome, "published" | "unchanged"))
}

/// What was not accepted, or that all was.
fn reload_line(report: &ReloadReport) -> String {
    let text = reload_text(report);
    let is_refused = |line: &&str| !["published", "unchanged"].iter().any(|ok| line.contains(&format!(": {ok}: ")));
    let refused: Vec<_> = text.lines().filter(is_refused).collect();
    if refused.is_empty() { format!("reloaded {}", plural(report.sites.len(), "site")) } else { refused.join("; ") }
}

fn reload_text(report: &ReloadReport) -> String {
    let mut out = String::new();
    for (what, reload) in [("config", &report.config), ("registry", &report.registry)] {
        if let Some(ReloadOutcome { outcome, message }) = reload {
            let _ = writeln!(out, "{what}: {}: {}", printable(outcome), printable(message));
        }
    }
    for site in &report.sites {
        let grace = site.grace_end.as_ref().map(|end| {
            format!("; newly disallowed requests are only observed, until {} at the latest", printable(end))
        });
        let grace = grace.unwrap_or_default();
        let [name, outcome, message] = [&site.name, &site.outcome, &site.message].map(printable);
        let _ = writeln!(out, "{name}: {outcome}: {message}{grace}");
    }
    out
}
