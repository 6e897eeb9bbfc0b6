//! `robotsd replay LOG…`: what a robots.txt, or a change of it, would have done to the traffic of a log.
//!
//! Logs are read once, in chunks, by every core, in bounded memory ([`chunks`], [`counts`]); the counts do not depend on the
//! number of cores, and what cannot be read is counted. Paths are grouped by rule and pattern ([`rule_paths`]). Agents are identified and judged as a server does it ([`judgement`]); [`visitors`] suspects people behind crawlers'
//! names. Reports hold no values of queries and no whole addresses unless options ask for them ([`privacy`]).
//!
//! Exit status: 0, 1 where a suspected person would be refused, a change shuts a search engine out of a path that it
//! requested, or an expectation is not met, 2 where an input could not be read; the others are read all the same.

mod chunks;
mod counts;
mod format;
pub(crate) mod fuzzing;
mod headers;
mod hours;
mod judgement;
mod path_tree;
mod privacy;
mod progress;
mod report;
mod rows;
mod rule_paths;
mod source;
mod visitors;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use tower_robots::rules::Reading;

use self::counts::{ReplayCounts, ReplayPlan};
use self::format::ReplayLogFormat;
use self::headers::HeaderCache;
use self::privacy::ReportPrivacy;
use self::progress::ProgressDrawer;
use self::report::{Report, ReportForm, ReportNames};
use self::source::Meter;
use super::arguments::site::{RobotsFile, SelectedSite, SiteArgs};
use super::output::unmet::EvaluatedExpectations;
use crate::evaluator::EvaluatorSettings;
use crate::exit::{self, FAILED, complain, fail};
use crate::expectations::ExpectationsFile;

/// What to do about logs of which no line is a request.
const NO_LINE: &str = "no line of the logs could be read as a request: they are access logs in the common or combined format, \
                       JSON lines, W3C (with its line \"#Fields:\") or those of AWS load balancers; name the format with \
                       --log-format where it is not found";

/// Show what a robots.txt would have done to the requests of a log
#[derive(Args, Debug)]
pub(crate) struct ReplayArgs {
    /// Access logs, plain, gzip or zstd; - for standard input
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,

    /// The robots.txt, in place of that of the site
    #[arg(long, value_name = "FILE")]
    robots: Option<PathBuf>,

    #[command(flatten)]
    site: SiteArgs,

    /// A second robots.txt: show what changes from the first to this
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,

    /// The format of the logs
    #[arg(long, value_enum, default_value_t = ReplayLogFormat::Auto)]
    log_format: ReplayLogFormat,

    /// Requests before this day or moment (UTC), such as 2026-11-01 or 2026-11-01T12:00:00Z, are counted apart: the rules did
    /// not hold yet
    #[arg(long, value_name = "TIME", value_parser = moment)]
    effective_from: Option<SystemTime>,

    /// Expectations that the robots.txt must meet, as for the command test
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,

    /// The format of the report
    #[arg(long, value_enum, default_value_t = ReportForm::Text)]
    format: ReportForm,

    /// Write the report to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Show the values of queries
    #[arg(long)]
    keep_queries: bool,

    /// Show whole addresses
    #[arg(long)]
    keep_addresses: bool,
}

/// A moment, or the beginning of a day.
fn moment(text: &str) -> Result<SystemTime, String> {
    let text = text.trim();
    let is_day = text.len() == "2026-11-01".len();
    let moment = if is_day { format!("{text}T00:00:00Z") } else { text.to_owned() };
    humantime::parse_rfc3339_weak(&moment)
        .map_err(|_| "write a day or a moment of UTC, such as 2026-11-01 or 2026-11-01T12:00:00Z".to_owned())
}

pub(crate) fn run(args: &ReplayArgs) -> ExitCode {
    exit::written(replay(args))
}

fn replay(args: &ReplayArgs) -> io::Result<ExitCode> {
    let site = args.site.select()?;
    let robots = site.robots(args.robots.as_deref())?;
    let against = args.against.as_deref().map(RobotsFile::read).transpose()?;
    let names = args.names(&robots, against.as_ref());
    let plan = args.plan(&site.settings, robots, against)?;
    let meter = Meter::default();
    let progress = ProgressDrawer::start(&meter, source::total(&args.logs));
    let inputs = args.logs.iter().map(|path| source::open(path, &meter));
    let workers = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let mut all = ReplayCounts::default();
    let errors = chunks::for_each(
        inputs,
        workers,
        HeaderCache::default,
        |headers, chunk| ReplayCounts::of_chunk(&plan, headers, chunk),
        |counts| all.merge(counts),
    );
    drop(progress);
    let report = Report::new(names, &plan, &all);
    match &args.output {
        None => emit(&report, args.format, io::stdout().lock())?,
        Some(path) => {
            let file = File::create(path).map_err(|error| named(path, &error))?;
            emit(&report, args.format, file).map_err(|error| named(path, &error))?;
        }
    }
    // The report holds what could be read.
    errors.iter().for_each(|error| complain(error));
    if report.requests == 0 && report.unread_lines > 0 {
        return Ok(fail(&NO_LINE));
    }
    if !errors.is_empty() {
        return Ok(ExitCode::from(FAILED));
    }
    let met = args.meets_expectations(&site, &plan, &report)?;
    Ok(exit::answer(met && report.suspect_human_count == 0 && report.search_engines_shut_out.is_empty()))
}

fn emit(report: &Report, form: ReportForm, out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    report::write(report, &mut out, form)?;
    out.flush()
}

impl ReplayArgs {
    fn plan(
        &self,
        settings: &EvaluatorSettings,
        robots: RobotsFile,
        against: Option<RobotsFile>,
    ) -> io::Result<ReplayPlan> {
        let evaluator = |file: RobotsFile| file.evaluator(Reading::Standard, settings);
        let since =
            |time: SystemTime| time.duration_since(UNIX_EPOCH).ok().and_then(|since| since.as_secs().try_into().ok());
        Ok(ReplayPlan {
            evaluators: std::iter::once(robots).chain(against).map(evaluator).collect::<io::Result<_>>()?,
            format: self.log_format,
            effective_from: self.effective_from.and_then(since),
            privacy: ReportPrivacy { keep_queries: self.keep_queries, keep_addresses: self.keep_addresses },
        })
    }

    fn names(&self, robots: &RobotsFile, against: Option<&RobotsFile>) -> ReportNames {
        ReportNames {
            logs: self.logs.iter().map(|path| path.to_string_lossy().into_owned()).collect(),
            robots: robots.name.clone(),
            against: against.map(|file| file.name.clone()),
        }
    }

    /// Whether the last robots.txt meets the expectations; writes to standard error what it does not meet.
    fn meets_expectations(&self, site: &SelectedSite, plan: &ReplayPlan, report: &Report) -> io::Result<bool> {
        let (Some(path), Some(evaluator)) = (&self.expect, plan.evaluators.last()) else { return Ok(true) };
        let file = ExpectationsFile::read(path, &site.settings.registry).map_err(io::Error::other)?;
        let outcome = evaluator.evaluate(&file.expectations);
        let robots = report.against.as_ref().unwrap_or(&report.robots);
        let evaluated = EvaluatedExpectations { path, file: &file, robots, outcome: &outcome };
        evaluated.complain_of_unknown_names(evaluator);
        evaluated.write_text(&mut io::stderr().lock())?;
        Ok(outcome.is_met())
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", crate::render::printable(path.as_os_str().as_encoded_bytes())))
}
