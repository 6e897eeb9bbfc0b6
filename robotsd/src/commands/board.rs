//! `robotsd board`: shows per site what crawlers did, according to a running robotsd, or to the
//! board files of several robotsd processes.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use askama::Template;
use http::Method;

use super::fleet::{self, FleetArg};
use super::output::{Page, print_report, print_text};
use super::running::{Running, query_running};
use super::status::{needs_an_operator, summary};
use crate::board::{BoardQuery, BoardReport, BoardSpan, SiteBoard, csv, merge, seconds};
use crate::exit::{FAILED, complain};
use crate::html::{filters, percent};
use crate::report::StatusReport;

/// Maximum number of robots.txt lines without matching requests that are listed per site. The
/// output of `--json` contains more of them.
const MAX_LINES: usize = 10;

#[derive(Debug, clap::Args)]
pub(crate) struct BoardArgs {
    #[command(flatten)]
    running: Running,

    /// Show only the site with this name
    site: Option<String>,

    /// Same as the argument, for consistency with other commands
    #[arg(long = "site", value_name = "NAME", conflicts_with = "site", hide = true)]
    named: Option<String>,

    /// The period to show
    #[arg(long, value_enum, default_value_t)]
    period: BoardSpan,

    /// Combine the board files of several robotsd, given their state directories, instead of
    /// querying a running one
    #[arg(long, value_name = "DIR", num_args = 1.., conflicts_with_all = ["config", "admin", "fleet"])]
    merge: Vec<PathBuf>,

    #[command(flatten)]
    fleet: FleetArg,

    /// Write comma-separated values
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

pub(crate) fn run(args: &BoardArgs) -> io::Result<ExitCode> {
    let query =
        BoardQuery { site: args.site.clone().or_else(|| args.named.clone()), span: args.period, is_of_fleet: false };
    let report: BoardReport = if !args.merge.is_empty() {
        merge(&args.merge, &query, seconds(SystemTime::now())).map_err(io::Error::other)?
    } else if args.fleet.fleet {
        fleet::board(&args.running, &query)?
    } else {
        query_running(&args.running, (&Method::GET, &query.at("/board.json")))?
    };
    let is_whole = !args.fleet.fleet || report.counted_replicas >= report.replicas;
    let code = if is_whole { ExitCode::SUCCESS } else { ExitCode::from(FAILED) };
    let has_status = args.merge.is_empty() && !args.fleet.fleet && !args.csv && !args.running.json;
    let status =
        has_status.then(|| query_running::<StatusReport>(&args.running, (&Method::GET, "/status"))).transpose()?;
    if args.csv && !args.running.json {
        report.notes.iter().filter(|_| args.fleet.fleet).for_each(|note| complain(note));
        print_text(&csv(&report));
        return Ok(code);
    }
    let status = status.as_ref().map(|of| (of, &args.running));
    print_report(&report, args.running.json, |page| text(page, &report, status), code)
}

fn text(page: &mut Page, report: &BoardReport, running: Option<(&StatusReport, &Running)>) {
    if let Some((status, running)) = running {
        page.title(&summary(status));
        if needs_an_operator(status) {
            page.line("next", &running.command(["robotsd", "status", "--problems"]).join(" "));
        }
        page.blank();
    }
    page.title(&format!("from {} to {}", report.from, report.to));
    report.notes.iter().for_each(|note| page.text(note));
    for site in &report.sites {
        page.blank();
        page.append_template(&SiteText { site });
    }
}

#[derive(Template)]
#[template(path = "commands/board.txt", whitespace = "preserve")]
struct SiteText<'a> {
    site: &'a SiteBoard,
}
