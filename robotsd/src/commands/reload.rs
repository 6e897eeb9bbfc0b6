//! `robotsd reload`: makes a running robotsd read the config and every robots.txt again, or only
//! the robots.txt of one site.

use std::io;
use std::process::ExitCode;

use http::Method;

use super::fleet::{self, FleetArg};
use super::output::{Page, print_report};
use super::running::{Reason, Running, query_running};
use crate::exit::exit_code_for;
use crate::render::{grace_summary, plural, short_hash};
use crate::report::{AppendReport, ReloadOutcome, ReloadReport, SiteReload};

#[derive(Debug, clap::Args)]
pub(crate) struct ReloadArgs {
    #[command(flatten)]
    running: Running,

    /// Reload only this site
    #[arg(long, value_name = "NAME")]
    site: Option<String>,

    #[command(flatten)]
    reason: Reason,

    #[command(flatten)]
    fleet: FleetArg,
}

pub(crate) fn reload(args: &ReloadArgs) -> io::Result<ExitCode> {
    let target = args.reason.target("/reload", args.site.as_deref().map(|site| ("site", site)));
    if args.fleet.fleet {
        let judge = |report: &ReloadReport| (is_accepted(report), reload_line(report));
        return fleet::report(&args.running, (&Method::POST, &target), judge);
    }
    let report: ReloadReport = query_running(&args.running, (&Method::POST, &target))?;
    let text = |page: &mut Page| outcomes(&report).for_each(|(_, line)| page.title(&line));
    print_report(&report, args.running.json, text, exit_code_for(is_accepted(&report)))
}

/// Returns the outcome for each file, with a line of text for the output.
fn outcomes(report: &ReloadReport) -> impl Iterator<Item = (&str, String)> {
    let others = [("config", &report.config), ("registry", &report.registry)].into_iter();
    let others = others.filter_map(|(what, reload)| Some((what, reload.as_ref()?)));
    let others = others.flat_map(|(what, ReloadOutcome { outcome, message })| {
        message.lines().map(move |line| (&**outcome, format!("{what}: {outcome}: {line}")))
    });
    let sites = report.sites.iter().flat_map(
        |SiteReload { name, outcome, message, grace_end, grace_rules, append, .. }| {
            let grace = grace_end.as_ref().map(|end| format!("; {}", grace_summary(*grace_rules, end)));
            let site = (&**outcome, format!("{name}: {outcome}: {message}{}", grace.unwrap_or_default()));
            [site].into_iter().chain(append.iter().map(move |part| (&*part.state, part_line(name, part))))
        },
    );
    others.chain(sites)
}

fn part_line(site: &str, AppendReport { source, state, hash, problem, left_out, .. }: &AppendReport) -> String {
    let version = hash.as_ref().map(|hash| format!("version {}", short_hash(hash)));
    let details: Vec<_> = [&version, problem, left_out].into_iter().flatten().map(String::as_str).collect();
    format!("{site}: {state}: {source}: {}", details.join("; "))
}

fn is_taken((outcome, _): &(&str, String)) -> bool {
    matches!(*outcome, "published" | "unchanged" | "appended")
}

fn is_accepted(report: &ReloadReport) -> bool {
    outcomes(report).all(|outcome| is_taken(&outcome))
}

/// Lists the files that were not accepted. If all files were accepted, states the number of
/// reloaded sites.
fn reload_line(report: &ReloadReport) -> String {
    let refused: Vec<_> = outcomes(report).filter(|of| !is_taken(of)).map(|(_, line)| line).collect();
    if refused.is_empty() { format!("reloaded {}", plural(report.sites.len(), "site")) } else { refused.join("; ") }
}
