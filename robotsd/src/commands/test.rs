//! `robotsd test FILE`: whether a robots.txt says what is expected of it.
//!
//! Exit status: 0 where everything is as expected, 1 where something is not, 2 where a file could not be read or makes
//! no sense.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde::Serialize;
use tower_robots::agent::Registry;
use tower_robots::check::{ExpectationOutcome, Unmet};
use tower_robots::rules::{Access, RobotsTxt};

use crate::exit;
use crate::expectations::ExpectationsFile;
use crate::input;
use crate::render::printable;

/// Say whether a robots.txt allows and disallows what it is expected to
#[derive(Args, Debug)]
pub(crate) struct TestArgs {
    /// The expectations, as TOML: tables named allow and disallow, with agents and paths
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The robots.txt, in place of the one the file names; - for standard input
    #[arg(long, value_name = "FILE")]
    robots: Option<PathBuf>,

    /// How failures are written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A line each, for people
    Text,
    /// A JSON object a line
    Json,
}

#[derive(Serialize)]
struct Record<'a> {
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
    let file = ExpectationsFile::read(&args.file, Registry::builtin())?;
    let beside = |path: &PathBuf| args.file.parent().unwrap_or(Path::new("")).join(path);
    let Some(path) = args.robots.clone().or_else(|| file.robots.as_ref().map(beside)) else {
        let message = format!("{}: no robots.txt: write robots = \"…\", or give --robots", args.file.display());
        return Err(io::Error::other(message));
    };
    let outcome = file.expectations.evaluate(&RobotsTxt::parse(input::read(&path)?));
    let mut out = BufWriter::new(io::stdout().lock());
    let name = args.file.to_string_lossy();
    for unmet in outcome.unmet() {
        let line = file.lines.get(unmet.expectation()).copied().unwrap_or(1);
        match args.format {
            Format::Text => write_text(&mut out, &name, line, &path.to_string_lossy(), unmet)?,
            Format::Json => {
                serde_json::to_writer(&mut out, &Record { file: &name, line, unmet })?;
                out.write_all(b"\n")?;
            }
        }
    }
    if matches!(args.format, Format::Text) {
        summarize(&mut out, &outcome)?;
    }
    out.flush()?;
    Ok(exit::answer(outcome.is_met()))
}

/// Whether a robots.txt is as a file expects it; writes what is not.
pub(crate) fn is_met(file: &Path, robots: &Path, mut out: impl Write) -> io::Result<bool> {
    let expected = ExpectationsFile::read(file, Registry::builtin())?;
    let outcome = expected.expectations.evaluate(&RobotsTxt::parse(input::read(robots)?));
    for unmet in outcome.unmet() {
        let line = expected.lines.get(unmet.expectation()).copied().unwrap_or(1);
        write_text(&mut out, &file.to_string_lossy(), line, &robots.to_string_lossy(), unmet)?;
    }
    Ok(outcome.is_met())
}

fn write_text(out: &mut impl Write, file: &str, line: usize, robots: &str, unmet: &Unmet) -> io::Result<()> {
    let said = match unmet.access() {
        Access::Allow => "may fetch",
        Access::Disallow => "may not fetch",
    };
    let shown = |text: &str| printable(text.as_bytes());
    let (agent, path) = (shown(unmet.agent()), shown(unmet.path()));
    write!(out, "{}:{line}: {agent} {said} {path}: ", shown(file))?;
    match unmet.rule() {
        Some(rule) => {
            writeln!(out, "{}:{}: {} {}", shown(robots), rule.line(), rule.access(), shown(rule.pattern()))
        }
        None => writeln!(out, "no rule of {} matches", shown(robots)),
    }
}

fn summarize(out: &mut impl Write, outcome: &ExpectationOutcome) -> io::Result<()> {
    let asked = outcome.evaluated();
    match outcome.unmet().len() {
        0 => writeln!(out, "{asked} expected, all met"),
        unmet => writeln!(out, "{asked} expected, {unmet} not met"),
    }
}
