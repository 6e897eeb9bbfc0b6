//! `robotsd replay LOG…`: what a robots.txt, or a change of it, would have done to the traffic of a log.
//!
//! Logs are read once, in chunks, by every core, in bounded memory ([`chunks`], [`tally`]); what cannot be read is
//! counted. Who asks is recognised and judged as when it is enforced ([`judge`]); who may be a person is told by other
//! means ([`visitors`]). Reports hold no values of queries and no whole addresses unless asked to ([`privacy`]).
//!
//! Exit status: 0, 1 where somebody who may be a person would be refused or an expectation is not met, 2 where
//! something could not be read.

mod chunks;
mod format;
mod judge;
mod privacy;
mod progress;
mod report;
mod source;
mod tally;
mod top;
mod visitors;

use std::fs::File;
use std::hash::RandomState;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use tower_robots::policy::Policy;

use self::format::LogFormat;
use self::judge::Book;
use self::privacy::Privacy;
use self::progress::Progress;
use self::report::{Form, Names, Report};
use self::source::Meter;
use self::tally::{Plan, Tally};
use crate::commands::test;
use crate::config::Config;
use crate::exit::{self, fail};
use crate::input;

/// Say what a robots.txt would have done to the traffic of a log
#[derive(Args, Debug)]
pub(crate) struct ReplayArgs {
    /// Access logs, plain, gzip or zstd; - for standard input
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,

    /// The robots.txt
    #[arg(long, value_name = "FILE")]
    robots: PathBuf,

    /// Another robots.txt: say what changes from the one to this
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,

    /// How lines of the logs are written
    #[arg(long, value_enum, default_value_t = LogFormat::Auto)]
    log_format: LogFormat,

    /// Requests before this moment, such as 2026-11-01T12:00:00Z, are not blamed
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_rfc3339_weak)]
    effective_from: Option<SystemTime>,

    /// Judge under the policy of this config file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Which site of the config; by default the first
    #[arg(long, value_name = "NAME", requires = "config")]
    site: Option<String>,

    /// Expectations that the robots.txt must meet, as for the command test
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,

    /// How the report is written
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,

    /// Where the report goes, in place of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Show the values of queries
    #[arg(long)]
    keep_queries: bool,

    /// Show whole addresses
    #[arg(long)]
    keep_addresses: bool,
}

pub(crate) fn run(args: &ReplayArgs) -> ExitCode {
    exit::written(replay(args))
}

fn replay(args: &ReplayArgs) -> io::Result<ExitCode> {
    let plan = args.plan()?;
    let meter = Meter::default();
    let progress = Progress::start(&meter, source::total(&args.logs));
    let inputs = args.logs.iter().map(|path| source::open(path, &meter).map_err(|error| named(path, &error)));
    let workers = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let (tallies, read) =
        chunks::for_each(inputs, workers, || Tally::new(plan.hasher.clone()), |tally, chunk| tally.chunk(&plan, chunk));
    drop(progress);
    let mut all = Tally::new(plan.hasher.clone());
    tallies.into_iter().for_each(|tally| all.merge(tally));
    let report = Report::new(args.names(), &plan, &all);
    match &args.output {
        None => emit(&report, args.format, io::stdout().lock())?,
        Some(path) => {
            let file = File::create(path).map_err(|error| named(path, &error))?;
            emit(&report, args.format, file).map_err(|error| named(path, &error))?;
        }
    }
    // What was read until then is shown all the same.
    if let Err(error) = read {
        return Ok(fail(&error));
    }
    if report.requests == 0 && report.unread_lines > 0 {
        return Ok(fail(&"no line of the logs could be read: name their format with --log-format"));
    }
    let met = args.expectations()?;
    Ok(exit::answer(met && report.suspect_human_count == 0))
}

fn emit(report: &Report, form: Form, out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    report.write(&mut out, form)?;
    out.flush()
}

impl ReplayArgs {
    fn plan(&self) -> io::Result<Plan> {
        let policy = self.policy()?;
        let book = |path: &PathBuf| Ok(Book::new(input::read(path)?, policy.clone()));
        let books = std::iter::once(&self.robots).chain(&self.against).map(book).collect::<io::Result<_>>()?;
        let since =
            |time: SystemTime| time.duration_since(UNIX_EPOCH).ok().and_then(|since| since.as_secs().try_into().ok());
        Ok(Plan {
            books,
            format: self.log_format,
            effective_from: self.effective_from.and_then(since),
            privacy: Privacy { keep_queries: self.keep_queries, keep_addresses: self.keep_addresses },
            hasher: RandomState::new(),
        })
    }

    fn policy(&self) -> io::Result<Policy> {
        let Some(path) = &self.config else { return Ok(Policy::default()) };
        let config = Config::load(path).map_err(|error| io::Error::other(error.to_string()))?;
        let site = config.sites.into_iter().find(|site| self.site.as_ref().is_none_or(|name| site.name == *name));
        site.map(|site| site.policy).ok_or_else(|| {
            io::Error::other(format!("the config has no site {:?}", self.site.as_deref().unwrap_or_default()))
        })
    }

    fn names(&self) -> Names {
        let name = |path: &PathBuf| path.to_string_lossy().into_owned();
        Names {
            logs: self.logs.iter().map(name).collect(),
            robots: name(&self.robots),
            against: self.against.as_ref().map(name),
        }
    }

    /// Whether the robots.txt that is to be meets what is expected; says on standard error what it does not.
    fn expectations(&self) -> io::Result<bool> {
        match &self.expect {
            None => Ok(true),
            Some(file) => test::is_met(file, self.against.as_ref().unwrap_or(&self.robots), io::stderr().lock()),
        }
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", crate::render::printable(path.as_os_str().as_encoded_bytes())))
}
