//! `robotsd status`: shows the state of a running robotsd. A single site is described in full. If
//! there are several sites, sites that need attention are described in full, and every other site
//! gets one line.
//!
//! `status.txt` is the template; this module computes the values for it.

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use askama::Template;
use http::Method;

use super::agents::checked_share;
use super::fleet::{self, FleetArg, WaitArg};
use super::output::print_report;
use super::running::{Running, query_running, refusal};
use crate::config::{host_patterns, owners};
use crate::exit;
use crate::render::{grace_summary, plural, shell_line, short_hash};
use crate::report::{
    NextStep, ReplicaState, RequestsReport, SiteReport, SiteTraffic, StatusReport, TrafficReport, UpstreamReport, is_of,
};
use crate::sites::unknown;

/// Maximum number of settings of a rejected config that are shown.
const MAX_HELD_BACK: usize = 8;

/// Maximum number of sites that the output describes in full.
const MAX_DESCRIBED: usize = 12;

#[derive(Debug, clap::Args)]
#[command(mut_arg("wait", |wait| wait.requires("fleet")))]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    running: Running,

    /// Show only the site with this name or host, in full detail
    #[arg(long, value_name = "HOST")]
    site: Option<String>,

    /// Show only the sites that need attention, in full detail
    #[arg(long, conflicts_with_all = ["site", "json"])]
    problems: bool,

    /// Print nothing, and exit with status 0 if robotsd serves, even if sites need attention: for
    /// health checks that restart robotsd or take it out of rotation
    #[arg(long, conflicts_with_all = ["site", "problems", "json"])]
    ready: bool,

    #[command(flatten)]
    fleet: FleetArg,

    #[command(flatten)]
    wait: WaitArg,
}

/// Exit status:
///
/// - 0 if robotsd serves the sites as configured;
/// - 1 if one of these conditions is true:
///   - robotsd is starting or draining;
///   - the config or an included file was rejected;
///   - a site is switched off, or counts as off because its switch cannot be read;
///   - a site does not serve the version in its source, because that version is pending, was
///     rejected or is missing;
///   - the state directory is not writable, or a thread has stalled;
///   - sites exist, but the client may not see any of them;
/// - with `--problems`, also 1 if anything else needs attention;
/// - 2 if robotsd cannot be reached or refuses the request.
pub(crate) fn run(args: &StatusArgs) -> io::Result<ExitCode> {
    let running = &args.running;
    if args.fleet.fleet {
        if args.site.is_some() || args.problems || args.ready {
            return Err(refusal(
                "--fleet shows one line per replica and cannot be combined with --site, --problems or --ready",
            ));
        }
        return fleet::status(running, |report| (is_healthy(report), summary(report)), args.wait);
    }
    let mut report: StatusReport = query_running(running, (&Method::GET, "/status"))?;
    if args.ready {
        return Ok(exit::exit_code_for(report.state == "serving"));
    }
    if let Some(wanted) = &args.site {
        select(&mut report, wanted).map_err(refusal)?;
    }
    let code = exit::exit_code_for(if args.problems { !needs_an_operator(&report) } else { is_healthy(&report) });
    print_report(&report, running.json, |page| page.append_template(&StatusText::new(&report, args)), code)
}

fn is_healthy(report: &StatusReport) -> bool {
    let is_taken = report.config.rejected.is_none() && report.config.refused.is_empty();
    let of_sites = report.sites.iter().map(|site| &site.switch_problem);
    let is_switch_unread = of_sites.chain([&report.switch_problem]).any(Option::is_some);
    let are_well = report.sites.iter().all(|site| is_current(site) && site.enforcement != "off");
    let is_served = report.state == "serving" && report.state_writable != Some(false) && report.stalled.is_empty();
    is_served && !report.is_blind && are_well && !is_switch_unread && is_taken
}

/// Reports whether a site serves the current version of its source.
fn is_current(site: &SiteReport) -> bool {
    site.state == "live" && site.pending.is_none()
}

#[derive(Template)]
#[template(path = "commands/status_line.txt", whitespace = "preserve")]
struct StatusLine<'a> {
    report: &'a StatusReport,
}

pub(super) fn summary(report: &StatusReport) -> String {
    StatusLine { report }.to_string()
}

/// Keeps only the reports of the site with this name or host. If the site has a folder of
/// robots.txt files, the reports of all files are kept.
fn select(report: &mut StatusReport, wanted: &str) -> Result<(), String> {
    let of_site = |site: &SiteReport| (site.hosts.clone(), site.name.clone());
    let all: Vec<_> = report.sites.iter().map(of_site).collect();
    let hosts = owners(all.iter().flat_map(|(hosts, name)| host_patterns(hosts).map(move |pattern| (pattern, name))));
    let is_name = report.sites.iter().any(|site| is_of(wanted, &site.name));
    // A value without a dot or colon is probably a misspelled site name, unless a site lists it as
    // a host. A misspelled name must not be looked up as a host, because a site for all hosts would
    // match it.
    let is_listed = || all.iter().any(|(hosts, _)| hosts.iter().any(|host| host.eq_ignore_ascii_case(wanted)));
    let host = hosts.get(wanted).filter(|_| !is_name && (wanted.contains(['.', ':']) || is_listed()));
    if !is_name && host.is_none() {
        return Err(unknown(wanted, report.sites.iter().map(|site| &site.name)));
    }
    report.sites.retain(|site| host.map_or_else(|| is_of(wanted, &site.name), |name| **name == site.name));
    Ok(())
}

pub(super) fn needs_an_operator(report: &StatusReport) -> bool {
    !is_healthy(report) || !report.problems.is_empty() || report.sites.iter().any(|site| needs_attention(report, site))
}

fn needs_attention(report: &StatusReport, site: &SiteReport) -> bool {
    let is_out = |upstream: &UpstreamReport| upstream.state != "up";
    let is_failing = site.fetch.as_ref().is_some_and(|fetch| fetch.failing_since.is_some());
    let has_ended = site.overrides.iter().any(|exception| exception.ended);
    let of_site = !site.next.is_empty() || !site.problems.is_empty() || site.state != "live" || is_failing || has_ended;
    let is_off = site.enforcement == "off";
    of_site || is_off || traffic_of(report, site).is_some_and(|traffic| traffic.upstreams.iter().any(is_out))
}

#[derive(Template)]
#[template(path = "commands/status.txt", whitespace = "preserve")]
struct StatusText<'a> {
    report: &'a StatusReport,
    running: &'a Running,
    /// Number of sites that need attention; `None` if there is only one site.
    attention_count: Option<usize>,
    described: Vec<&'a SiteReport>,
    others: Vec<&'a SiteReport>,
}

impl<'a> StatusText<'a> {
    fn new(report: &'a StatusReport, args: &'a StatusArgs) -> Self {
        let sites = &report.sites;
        let (mut described, mut others): (Vec<_>, Vec<_>) =
            sites.iter().partition(|site| needs_attention(report, site));
        let attention_count = (sites.len() > 1 || args.problems).then_some(described.len());
        if args.problems {
            others.clear();
        } else if args.site.is_some() || sites.len() == 1 {
            described.append(&mut others);
        } else {
            others = [described.split_off(described.len().min(MAX_DESCRIBED)), others].concat();
        }
        Self { report, running: &args.running, attention_count, described, others }
    }

    fn command(&self, step: &NextStep) -> String {
        shell_line(self.running.step(step))
    }

    /// Reports whether this is the first described site whose gate does not watch any pages. The
    /// advice to configure pages is the same for every site, so it is printed only once.
    fn explains_pages(&self, site: &SiteReport) -> bool {
        let first = self.described.iter().find(|site| site.watched_pages.as_ref().is_some_and(Vec::is_empty));
        first.is_some_and(|first| first.name == site.name)
    }

    /// Returns the command that shows the notes about the site's file.
    fn check_of(&self, site: &SiteReport) -> Option<String> {
        let command = ["robotsd", "check", "--config", &self.report.config.path, "--site", &site.name];
        Path::new(&site.origin).is_absolute().then(|| shell_line(command))
    }
}

/// Returns the traffic of a site. If the site has a directory of files, the traffic is shown with
/// the first file.
fn traffic_of<'r>(report: &'r StatusReport, site: &SiteReport) -> Option<&'r SiteTraffic> {
    let traffic = report.traffic.as_ref()?.sites.iter().find(|traffic| is_of(&traffic.name, &site.name))?;
    let first = report.sites.iter().find(|other| is_of(&traffic.name, &other.name))?;
    (first.name == site.name).then_some(traffic)
}

/// Formats counts, such as `7 2xx, 1 5xx`. Counts of zero are left out.
fn counts<'c>(counts: impl IntoIterator<Item = (&'c str, u64)>) -> String {
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let counts: Vec<_> = counts.map(|(kind, count)| format!("{count} {kind}")).collect();
    if counts.is_empty() { "none".to_owned() } else { counts.join(", ") }
}

fn responses(traffic: &TrafficReport) -> String {
    let classes = traffic.responses.iter().map(|class| (&*class.kind, class.count));
    counts(classes.chain([("not sent, because the client closed the connection", traffic.unanswered)]))
}

fn request_counts(requests: &RequestsReport) -> String {
    counts([
        ("for robots.txt", requests.robots_txt),
        ("allowed", requests.allowed),
        ("refused", requests.refused),
        ("tagged", requests.tagged),
        ("observed", requests.observed),
        ("passed although disallowed", requests.passed),
        ("limited", requests.limited),
    ])
}

fn human_duration(seconds: u64) -> String {
    humantime::format_duration(Duration::from_secs(seconds)).to_string()
}
