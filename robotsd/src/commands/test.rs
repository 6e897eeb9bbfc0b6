//! `robotsd test [FILE]`: tests a robots.txt against a file of expectations.
//!
//! Exit status: 0 if all expectations are met, 1 if an expectation is not met, 2 if a file could
//! not be read, is invalid, or misspells the name of a crawler.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use askama::Template;
use clap::{Args, ValueEnum};
use serde::Serialize;
use tower_robots::check::{ExpectationOutcome, Unmet};
use tower_robots::rules::{Access, Reading};

use super::arguments::WithinArgs;
use super::arguments::site::{OtherFiles, SiteArgs};
use crate::evaluator::Evaluator;
use crate::exit::{self, FAILED, complain};
use crate::expectations::{ExpectationsFile, WrittenWord};
use crate::fetch::is_url;
use crate::input::{self, ReadInput, stdin_once};
use crate::render::{printable, printable_path, stdout, write_json};

/// Default file of expectations, if the command line names no file and no site.
const DEFAULT_FILE: &str = "robots.test.toml";

/// Test a robots.txt against a file of expectations
#[derive(Args, Debug)]
pub(crate) struct TestArgs {
    /// The expectations, as TOML: tables named allow and disallow, with agents and paths [default:
    /// those of the site, or robots.test.toml for the robots.txt next to it]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// The robots.txt to test: a file, a URL, or - for standard input [default: the one in the file
    /// of expectations, or else the site's]
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
    /// One line per unmet expectation
    Text,
    /// One JSON object per line
    Json,
}

#[derive(Serialize)]
struct UnmetRecord<'a> {
    file: &'a str,
    /// Position of the path in the file of expectations.
    line: usize,
    column: usize,
    #[serde(flatten)]
    unmet: &'a Unmet,
}

pub(crate) fn run(args: &TestArgs) -> io::Result<ExitCode> {
    stdin_once(args.file.iter().chain(&args.robots))?;
    let mut named = args.file.iter().chain(&args.site.config);
    named.try_for_each(|path| args.within.check_path_named(path))?;
    let site = args.site.select()?;
    let is_usual = args.file.is_none() && !args.site.has_config();
    let path = match &args.file {
        Some(file) => file.clone(),
        None if !is_usual => site.expectations()?,
        None if Path::new(DEFAULT_FILE).exists() => PathBuf::from(DEFAULT_FILE),
        None => {
            let fault = format!(
                "there is no {DEFAULT_FILE} in this folder: give a file of expectations, or use --config FILE with a \
                 site that has expectations"
            );
            return Err(io::Error::other(fault));
        }
    };
    if is_usual {
        args.within.check_path_named(&path)?;
    }
    let read: ReadInput = if args.file.is_some() || is_usual { input::read } else { input::read_configured };
    let file = match ExpectationsFile::read(&path, read, &site.settings.registry) {
        Ok(file) => file,
        Err(error) => {
            error.complain();
            return Ok(ExitCode::from(FAILED));
        }
    };
    let next_to_file = |robots: &PathBuf| match robots.to_str() {
        Some(url) if is_url(url) => robots.clone(),
        _ => path.parent().unwrap_or(Path::new("")).join(robots),
    };
    let usual = || is_usual.then(|| PathBuf::from("robots.txt"));
    let robots = args.robots.clone().or_else(|| file.robots.as_ref().map(next_to_file)).or_else(usual);
    if robots.is_none() && !args.site.has_config() {
        let message = format!(
            "{}: the file does not say which robots.txt to test: add robots = \"…\" to it, or use --robots or --config",
            path.display()
        );
        return Err(io::Error::other(message));
    }
    robots.iter().try_for_each(|path| args.within.check_path_named(path))?;
    let robots = site.robots(robots.as_deref())?;
    let name = robots.name.clone();
    let evaluator = robots.evaluator(Reading::Standard, &site.settings, OtherFiles::Refuse)?;
    let outcome = file.expectations.evaluate(evaluator.robots());
    let evaluated = EvaluatedExpectations { path: &path, file: &file, robots: &name, outcome: &outcome };
    let has_slips = evaluated.complain_of_slips(&evaluator);
    let mut out = stdout();
    match args.format {
        TestFormat::Text => {
            write!(out, "{evaluated}")?;
            let met = match outcome.unmet.len() {
                0 => "all met".to_owned(),
                unmet => format!("{unmet} not met"),
            };
            let slip = "; the name of a crawler is misspelled, so the expectations for it test nothing";
            writeln!(out, "{} expected, {met}{}", outcome.evaluated, if has_slips { slip } else { "" })?;
        }
        TestFormat::Json => {
            for ((line, column), unmet) in evaluated.unmet() {
                write_json(&mut out, &UnmetRecord { file: &path.to_string_lossy(), line, column, unmet })?;
            }
        }
    }
    out.flush()?;
    Ok(if has_slips { ExitCode::from(FAILED) } else { exit::exit_code_for(outcome.is_met()) })
}

/// Result of testing a robots.txt against a file of expectations. The `Display` form lists the
/// unmet expectations.
#[derive(Debug, Template)]
#[template(path = "commands/unmet.txt", whitespace = "preserve")]
pub(in crate::commands) struct EvaluatedExpectations<'a> {
    pub(in crate::commands) path: &'a Path,
    pub(in crate::commands) file: &'a ExpectationsFile,
    pub(in crate::commands) robots: &'a str,
    pub(in crate::commands) outcome: &'a ExpectationOutcome,
}

impl EvaluatedExpectations<'_> {
    /// Prints likely mistakes in the expectations to stderr: agents that are not crawlers, and
    /// paths that look like patterns. Returns `true` if a crawler name is misspelled, because an
    /// expectation with a misspelled name would test nothing.
    pub(in crate::commands) fn complain_of_slips(&self, evaluator: &Evaluator) -> bool {
        let path = printable_path(self.path);
        let mut has_slips = false;
        for WrittenWord { text, place: (line, column) } in &self.file.agents {
            if let Some(unknown) = evaluator.unknown_name(text, None) {
                let is_slip = unknown.hint().is_some();
                let severity = if is_slip { "error" } else { "warning" };
                complain(&format_args!("{path}:{line}:{column}: {severity}: {unknown}"));
                has_slips |= is_slip;
            } else if evaluator.is_non_crawler_word(text) {
                complain(&format_args!(
                    "{path}:{line}:{column}: {text:?} is not a crawler's name and is read as a User-Agent header, so \
                     no group applies: write the name of a crawler, or \"*\" for a crawler that is not named in any \
                     group",
                    text = text.trim()
                ));
            }
        }
        if !has_slips {
            // The loop above does not report misspelled names that are only part of a header.
            for misspelled in &self.outcome.misspelled {
                complain(&format_args!("{path}: error: {}", printable(misspelled)));
                has_slips = true;
            }
        }
        for WrittenWord { text, place: (line, column) } in &self.file.paths {
            let without_query = text.split('?').next().unwrap_or(text);
            if without_query.contains('*') || text.ends_with('$') {
                let text = printable(text);
                complain(&format_args!(
                    "{path}:{line}:{column}: \"{text}\" is read as a path, so \"*\" and \"$\" are ordinary \
                     characters: write a path that crawlers request"
                ));
            }
        }
        has_slips
    }

    /// Returns the unmet expectations, each with the line and column of its path.
    pub(in crate::commands) fn unmet(&self) -> impl Iterator<Item = ((usize, usize), &Unmet)> {
        self.outcome.unmet.iter().map(|unmet| (self.file.place(unmet.expectation, &unmet.path), unmet))
    }
}
