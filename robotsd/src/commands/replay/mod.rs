//! `robotsd replay LOG…`: shows the effect that a robots.txt, or a change of it, would have had on
//! the requests in a log.
//!
//! Logs are read in chunks on every core, in bounded memory ([`chunks`], [`counts`]). The counts do
//! not depend on the number of cores. Agents are identified and requests are judged as in `robotsd
//! serve` ([`headers`]). The requests of a crawler are split by sender ([`identity`]): a crawler's
//! counts do not include requests of impostors ([`FailedClaims`](crawler_rows::FailedClaims)). By
//! default, query values are removed from reports, and addresses are shortened ([`redaction`]). A
//! report does not show which requests were sent before the `Crawl-delay` had passed. Only a server
//! counts these requests, with the rate mode `observe`.
//!
//! Exit status:
//!
//! - 0 if neither 1 nor 2 applies;
//! - 1 if a change blocks a search engine from a path that it requested, or if an expectation is
//!   not met;
//! - 2 if an input could not be read (the other inputs are still read), or if no request names an
//!   agent.

mod chunks;
mod counts;
mod crawler_rows;
mod format;
mod headers;
mod history;
mod identity;
mod redaction;
mod report;
mod rule_paths;
mod selection;
mod source;
mod tally;

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::Args;
use indicatif::ProgressBar;
use tower_robots::rules::Reading;

use self::counts::{ReplayCounts, ReplayPlan};
pub(super) use self::counts::{RequestedTargets, SearchRequests};
use self::format::has_object;
#[cfg(any(test, fuzzing))]
pub(crate) use self::format::test_any_input;
pub(super) use self::format::{JsonKey, JsonKeys, ReplayLogFormat};
use self::headers::HeaderCache;
use self::history::VersionHistory;
use self::identity::{LogEvidence, NameAnswers, NameQuestions};
use self::redaction::ReportPrivacy;
use self::report::Report;
pub(super) use self::selection::LogSelection;
use super::arguments::site::{OtherFiles, RobotsFile, SelectedSite, SiteArgs};
use super::test::EvaluatedExpectations;
use crate::config::resolver_address;
use crate::date;
use crate::exit::{self, FAILED, complain, fail};
use crate::expectations::ExpectationsFile;
use crate::input::{self, named, stdin_once};
use crate::render::{printable, printable_path, stderr, stdout, write_json};

const NO_LINE: &str = "no line of the logs could be read as a request. robotsd reads access logs in the common or \
                       combined format, JSON lines, W3C logs (with the line \"#Fields:\") and logs of AWS load \
                       balancers, as the server wrote them or as Docker, Kubernetes, filebeat, journald and syslog \
                       forward them; if the format is not detected, set it with --log-format";

const NO_AGENT: &str = "no request in the logs has a User-Agent, so crawlers cannot be recognised";

const ERROR_LOG: &str = "these are error logs, which contain few requests and no User-Agent: specify the server's \
                         access logs, such as access.log";

const EVENT_LOG: &str = "this is robotsd's log of events, which contains only disallowed requests: specify its log of \
                         requests (`access` in [log]), or the access log of the proxy that asks robotsd";

/// Show what a robots.txt would have done to the requests of a log
#[derive(Args, Debug)]
pub(crate) struct ReplayArgs {
    /// Access logs, plain, gzip or zstd; - for standard input
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,

    /// The robots.txt, instead of the site's: a file or a URL [default: robots.txt, without
    /// --config, --site or --history]
    #[arg(long, value_name = "FILE")]
    robots: Option<PathBuf>,

    #[command(flatten)]
    site: SiteArgs,

    /// The host of requests whose log line does not contain a host; only requests for hosts of the
    /// site count
    #[arg(long, value_name = "HOST")]
    host: Option<String>,

    /// A second robots.txt, a file or a URL: show what changes from the first to this one
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,

    /// Judge each request by the version of robots.txt that its crawler had fetched before, as the
    /// board does
    ///
    /// PATH is a file in a git repository, or a directory of the repository with a robots.txt in
    /// it. A version counts as served from its commit on, on the branch that is checked out. PATH
    /// may also be a directory of files with a date in their names (2026-11-01, 20261101T1230, in
    /// UTC). The date is the time when the version was first served. PATH may also be a single
    /// file; --history may then be repeated. If the name of this file contains no date, the time of
    /// its last change is used. Unless --robots is given, the newest version is the robots.txt.
    /// Crawlers are not accused of ignoring robots.txt in periods without a line in the logs.
    #[arg(long, value_name = "PATH", conflicts_with = "against")]
    history: Vec<PathBuf>,

    /// Time after the date of a version during which the previous version may still be served
    /// [default: 15m with git, 0s with dated files]
    #[arg(long, value_name = "TIME", requires = "history", value_parser = humantime::parse_duration)]
    deployed_within: Option<Duration>,

    /// Format of the logs
    #[arg(long, value_enum, default_value_t = ReplayLogFormat::Auto)]
    log_format: ReplayLogFormat,

    /// The keys of JSON lines, if they differ from those of common servers, such as
    /// ua=userAgent,path=http.path
    ///
    /// The values are ua (the User-Agent), request (the request line), method, path, host, address,
    /// time, status and referer. A dot in a key stands for a nested object. If a key is given for a
    /// value, no other key is tried.
    #[arg(long, value_name = "VALUE=KEY", value_delimiter = ',')]
    json_keys: Vec<JsonKey>,

    /// Count requests before this day or time separately, because the rules did not apply yet; in UTC,
    /// such as 2026-11-01 or 2026-11-01T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    effective_from: Option<i64>,

    /// Expectations that the robots.txt must meet, as for robotsd test
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,

    /// Output format
    #[arg(long, value_enum, default_value_t = ReportForm::Text)]
    format: ReportForm,

    /// Write the report to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Look up the reverse DNS names of addresses if no published list shows who sent a request
    ///
    /// This discloses the addresses of such requests to the system's resolvers, or to those of
    /// --resolver. At most 50 queries per second are sent, and the names of at most 10,000
    /// addresses are looked up, those with the most requests. Ctrl-C ends the look-ups; the
    /// remaining requests count as unverified. The logs are read twice, so they must be files.
    #[arg(long)]
    rdns: bool,

    /// Use this resolver instead of the system's: an address, with a port unless it is 53
    #[arg(long, value_name = "ADDRESS", requires = "rdns", value_parser = parse_resolver)]
    resolver: Vec<SocketAddr>,

    /// Show the values in query strings, which the report otherwise hides
    #[arg(long)]
    keep_queries: bool,

    /// Show whole addresses of clients, which the report otherwise shortens
    #[arg(long)]
    keep_addresses: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ReportForm {
    /// Bars in the terminal
    Text,
    /// One JSON object
    Json,
    /// One HTML page that loads no other files
    Html,
}

/// Parses a day or a time, and returns it in seconds since 1970. For a day, returns the time when
/// the day begins.
fn parse_moment(text: &str) -> Result<i64, String> {
    let fault = || "write a day or a time in UTC, such as 2026-11-01 or 2026-11-01T12:00:00Z".to_owned();
    date::parse_time(text.trim()).ok_or_else(fault)
}

fn parse_resolver(text: &str) -> Result<SocketAddr, String> {
    resolver_address(text).ok_or_else(|| "write an address, such as 192.0.2.53 or [2001:db8::53]:5353".to_owned())
}

pub(crate) fn run(args: &ReplayArgs) -> io::Result<ExitCode> {
    stdin_once(args.logs.iter().chain(&args.robots).chain(&args.against).chain(&args.expect))?;
    let files: Vec<_> = args.robots.iter().chain(&args.history).map(PathBuf::as_path).collect();
    let site = args.site.select_for(&files, &[])?;
    let deploy = args.deployed_within.map(|time| time.as_secs());
    let read = || VersionHistory::read(&args.history, deploy, &site.settings);
    let history = (!args.history.is_empty()).then(read).transpose()?;
    let newest = || history.as_ref().and_then(VersionHistory::newest).filter(|_| args.robots.is_none());
    let robots = match newest().filter(|_| !site.is_configured()) {
        Some(newest) => newest,
        None => site.robots(args.robots.as_deref()).or_else(|error| {
            let Some(newest) = newest() else { return Err(error) };
            let name = printable(&newest.name);
            complain(&format_args!("{error}; using the newest version of --history instead: {name}"));
            Ok(newest)
        })?,
    };
    let against = args.against.as_deref().map(|name| site.named(name)).transpose()?;
    let mut plan = ReplayPlan { history, ..args.plan(&site, robots, against)? };
    if args.rdns {
        plan.evidence.answers = Some(args.look_names_up(&plan, &site.evidence.resolvers)?);
    }
    let mut all = ReplayCounts::default();
    let errors = args.read_logs(
        source::open,
        |headers, chunk| ReplayCounts::count_chunk(&plan, headers, chunk),
        |counts| all.merge(counts),
    );
    all.clear_suspect_claims(&plan);
    let report = Report::new(&plan, &all);
    match &args.output {
        None => emit(&report, args.format, stdout())?,
        Some(path) => {
            let file = File::create(path).map_err(|error| named(path, &error))?;
            emit(&report, args.format, file).map_err(|error| named(path, &error))?;
        }
    }
    // The errors are printed after the report. The report covers the logs that could be read.
    errors.iter().for_each(|error| complain(error));
    plan.selection.complain_of_missing_keys();
    let has_none = report.requests == 0 && all.hosts == Default::default();
    if has_none && all.events > 0 {
        return Ok(fail(&EVENT_LOG));
    }
    if has_none && report.unread_lines > 0 {
        if all.samples.iter().all(|line| format::is_of_error_log(line)) {
            return Ok(fail(&ERROR_LOG));
        }
        return Ok(match all.samples.iter().any(|line| has_object(line)) {
            true => fail(&format_args!("{NO_LINE}; {}", plan.selection.json_keys)),
            false => fail(&NO_LINE),
        });
    }
    if !errors.is_empty() {
        return Ok(ExitCode::from(FAILED));
    }
    if let Some(why) = plan.selection.explain_empty_selection(all.hosts).filter(|_| report.requests == 0) {
        return Ok(fail(&why));
    }
    if !report.has_others() {
        return Ok(match all.has_nameless_json {
            true => fail(&format_args!("{NO_AGENT}; {}", plan.selection.json_keys)),
            false => fail(&NO_AGENT),
        });
    }
    let met = args.meets_expectations(&site, &plan, &report)?;
    Ok(exit::exit_code_for(met && report.search_engines_shut_out.is_empty()))
}

fn emit(report: &Report, form: ReportForm, out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    match form {
        ReportForm::Text => writeln!(out, "{}", report::text::TextReport { report })?,
        ReportForm::Json => write_json(&mut out, report)?,
        ReportForm::Html => out.write_all(report::html::page(report).as_bytes())?,
    }
    out.flush()
}

impl ReplayArgs {
    fn plan(&self, site: &SelectedSite, robots: RobotsFile, against: Option<RobotsFile>) -> io::Result<ReplayPlan> {
        let evaluator = |file: RobotsFile| file.evaluator(Reading::Standard, &site.settings, OtherFiles::Refuse);
        let (evidence, problems) = LogEvidence::read(&site.settings.registry, &site.evidence);
        problems.iter().for_each(|problem| complain(problem));
        Ok(ReplayPlan {
            logs: self.logs.iter().map(|path| path.to_string_lossy().into_owned()).collect(),
            robots: robots.name.clone(),
            against: against.as_ref().map(|file| file.name.clone()),
            evaluators: std::iter::once(robots).chain(against).map(evaluator).collect::<io::Result<_>>()?,
            selection: LogSelection::of(
                site,
                self.log_format,
                JsonKeys::with_operator_keys(&self.json_keys),
                self.host.as_deref(),
            )?,
            effective_from: self.effective_from,
            privacy: ReportPrivacy { keep_queries: self.keep_queries, keep_addresses: self.keep_addresses },
            evidence,
            history: None,
            sees_all: site.sees_all,
        })
    }

    fn read_logs<C: Send>(
        &self,
        open: impl Fn(&Path, &ProgressBar) -> io::Result<Box<dyn Read + Send>>,
        work: impl Fn(&mut HeaderCache, &[u8]) -> C + Sync,
        join: impl FnMut(C),
    ) -> Vec<io::Error> {
        let progress = source::reading_bar(&self.logs);
        let inputs = self.logs.iter().map(|path| open(path, &progress));
        let workers = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        chunks::for_each(inputs, workers, HeaderCache::default, work, join)
    }

    /// Looks up the reverse DNS names of the addresses in the logs. Leaves out the addresses whose
    /// requests can be verified or refuted with address lists.
    fn look_names_up(&self, plan: &ReplayPlan, configured: &[SocketAddr]) -> io::Result<NameAnswers> {
        if let Some(log) = self.logs.iter().find(|log| log.exists() && !log.is_file() || *log == Path::new("-")) {
            return Err(io::Error::other(format!(
                "--rdns reads the logs twice, but {log} can be read only once: save this log as a file",
                log = printable_path(log)
            )));
        }
        let mut questions = NameQuestions::default();
        // Read errors are ignored here, because they are reported later, when the requests are
        // counted.
        self.read_logs(
            source::open_unchecked,
            |headers, chunk| counts::name_questions(plan, headers, chunk),
            |next| questions.merge(next),
        );
        let resolvers = if self.resolver.is_empty() { configured } else { &self.resolver };
        identity::look_up(questions, &plan.evidence.patterns, resolvers)
    }

    /// Reports whether the last robots.txt meets the expectations. Prints failed expectations to
    /// stderr.
    fn meets_expectations(&self, site: &SelectedSite, plan: &ReplayPlan, report: &Report) -> io::Result<bool> {
        let (Some(path), Some(evaluator)) = (&self.expect, plan.evaluators.last()) else { return Ok(true) };
        let file = ExpectationsFile::read(path, input::read, &site.settings.registry).map_err(io::Error::other)?;
        let outcome = file.expectations.evaluate(evaluator.robots());
        let robots = report.against.as_ref().unwrap_or(&report.robots);
        let evaluated = EvaluatedExpectations { path, file: &file, robots, outcome: &outcome };
        let has_slips = evaluated.complain_of_slips(evaluator);
        write!(stderr(), "{evaluated}")?;
        Ok(outcome.is_met() && !has_slips)
    }
}
