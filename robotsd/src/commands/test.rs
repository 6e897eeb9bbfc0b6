//! `robotsd test [FILE]`: holds a robots.txt against a file of expectations.
//!
//! Exit status: 0 where all expectations are met, 1 where one is not, 2 where a file could not be read or is invalid, or names an
//! agent that is nearly a crawler.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde::Serialize;
use tower_robots::check::{ExpectationOutcome, Unmet};
use tower_robots::rules::Reading;

use super::arguments::site::SiteArgs;
use super::arguments::within::WithinArgs;
use super::output::unmet::{EvaluatedExpectations, Spelling};
use crate::exit::{self, FAILED};
use crate::expectations::ExpectationsFile;
use crate::input::stdin_once;
use crate::retrieval::is_url;

/// Test a robots.txt against a file of expectations
#[derive(Args, Debug)]
pub(crate) struct TestArgs {
    /// The expectations, as TOML: tables named allow and disallow, with agents and paths [default: those of the site]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// The robots.txt, in place of the one the file names, or else of the site's: a file, a URL, or - for standard input
    #[arg(long, value_name = "FILE")]
    robots: Option<PathBuf>,

    #[command(flatten)]
    site: SiteArgs,

    #[command(flatten)]
    within: WithinArgs,

    /// Output format
    #[arg(long, value_enum, default_value_t = TestFormat::Text)]
    format: TestFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TestFormat {
    /// A line each, for people
    Text,
    /// A JSON object a line
    Json,
}

#[derive(Serialize)]
struct UnmetRecord<'a> {
    file: &'a str,
    /// The line of the expectation.
    line: usize,
    #[serde(flatten)]
    unmet: &'a Unmet,
}

pub(crate) fn run(args: &TestArgs) -> ExitCode {
    exit::written(test(args))
}

fn test(args: &TestArgs) -> io::Result<ExitCode> {
    stdin_once(args.file.iter().chain(&args.robots))?;
    args.file
        .iter()
        .map(PathBuf::as_path)
        .chain(args.site.named_config())
        .try_for_each(|path| args.within.refuse_named(path))?;
    let site = args.site.select()?;
    let path = args.file.clone().map_or_else(|| site.expectations(), Ok)?;
    let file = match ExpectationsFile::read(&path, &site.settings.registry) {
        Ok(file) => file,
        Err(error) => {
            error.complain();
            return Ok(ExitCode::from(FAILED));
        }
    };
    let beside = |robots: &PathBuf| match robots.to_str() {
        Some(url) if is_url(url) => robots.clone(),
        _ => path.parent().unwrap_or(Path::new("")).join(robots),
    };
    let robots = args.robots.clone().or_else(|| file.robots.as_ref().map(beside));
    if robots.is_none() && !args.site.has_config() {
        let message = format!("{}: no robots.txt: write robots = \"…\", or give --robots or --config", path.display());
        return Err(io::Error::other(message));
    }
    robots.iter().try_for_each(|path| args.within.refuse_named(path))?;
    let robots = site.robots(robots.as_deref())?;
    let name = robots.name.clone();
    let evaluator = robots.evaluator(Reading::Standard, &site.settings)?;
    let outcome = evaluator.evaluate(&file.expectations);
    let evaluated = EvaluatedExpectations { path: &path, file: &file, robots: &name, outcome: &outcome };
    let spelling = evaluated.complain_of_slips(&evaluator);
    let mut out = BufWriter::new(io::stdout().lock());
    match args.format {
        TestFormat::Text => {
            evaluated.write_text(&mut out)?;
            summarize(&mut out, &outcome)?;
        }
        TestFormat::Json => {
            for (line, unmet) in evaluated.unmet() {
                serde_json::to_writer(&mut out, &UnmetRecord { file: &path.to_string_lossy(), line, unmet })?;
                out.write_all(b"\n")?;
            }
        }
    }
    out.flush()?;
    Ok(match spelling {
        Spelling::Right => exit::answer(outcome.is_met()),
        Spelling::Slip => ExitCode::from(FAILED),
    })
}

fn summarize(out: &mut impl Write, outcome: &ExpectationOutcome) -> io::Result<()> {
    let count = outcome.evaluated();
    match outcome.unmet().len() {
        0 => writeln!(out, "{count} expected, all met"),
        unmet => writeln!(out, "{count} expected, {unmet} not met"),
    }
}
