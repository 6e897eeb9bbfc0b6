//! `robotsd check`: findings in robots.txt files, before they are published.
//!
//! Exit status: 0 where nothing at or over the threshold was found, 1 where something was, 2 where a file could not be
//! read. A file that cannot be read does not keep the others from being checked.

mod explain_lint;

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use tower_robots::check::Severity;
use tower_robots::rules::Reading;

use super::site::{RobotsFile, SelectedSite, SiteArgs};
use crate::evaluator::{Evaluator, EvaluatorSettings};
use crate::exit::{FAILED, NEGATIVE, complain, fail};
use crate::input::InputSource;
use crate::render::{self, Checked, Colour, FindingFormat, printable};

/// Check robots.txt files before they are published
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// Files, directories, or - for standard input
    ///
    /// A directory stands for every robots.txt below it; where there is none, for the .txt files in it. With --config,
    /// the default is the robots.txt of the site.
    #[arg(required_unless_present_any = ["explain", "config"], value_name = "FILE")]
    paths: Vec<PathBuf>,

    #[command(flatten)]
    site: SiteArgs,

    /// Explain a code, with examples; without a code, list all of them
    #[arg(long, value_name = "CODE", num_args = 0..=1, conflicts_with_all = ["paths", "format", "deny", "config"])]
    explain: Option<Option<String>>,

    /// Output format
    #[arg(long, value_enum, default_value_t = CheckFormat::Text)]
    format: CheckFormat,

    /// The lowest severity that fails the check
    #[arg(long, value_enum, default_value_t = Deny::Errors)]
    deny: Deny,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CheckFormat {
    /// Snippets of the file, for people
    Text,
    /// A JSON object a line for each finding
    Json,
    /// Annotations for GitHub Actions
    Github,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Deny {
    Errors,
    Warnings,
    Notes,
}

/// Counts over all files.
#[derive(Debug, Default)]
struct CheckCounts {
    files: usize,
    unread: usize,
    /// Findings by severity, in the order of [`Severity::ALL`].
    found: [usize; 3],
}

/// Checks the files and writes what it finds to standard output.
pub(crate) fn run(args: &CheckArgs) -> ExitCode {
    if let Some(code) = &args.explain {
        return explain_lint::run(code.as_deref());
    }
    let mut out = BufWriter::new(io::stdout().lock());
    let mut counts = CheckCounts::default();
    let site = match args.site.select() {
        Ok(site) => site,
        Err(error) => return fail(&error),
    };
    match write(args, &site, &mut out, &mut counts).and_then(|()| out.flush()) {
        Ok(()) => counts.exit_code(args.deny.threshold()),
        Err(error) => {
            // A closed pipe: the reader has enough.
            if error.kind() != io::ErrorKind::BrokenPipe {
                complain(&format_args!("standard output: {error}"));
            }
            ExitCode::from(FAILED)
        }
    }
}

fn write(args: &CheckArgs, site: &SelectedSite, out: &mut impl Write, counts: &mut CheckCounts) -> io::Result<()> {
    let form = args.format.form();
    let settings = &site.settings;
    if args.paths.is_empty() {
        match site.robots(None) {
            Ok(RobotsFile { name, bytes }) => one(out, form, &name, bytes, settings, counts)?,
            Err(error) => counts.unread(&error),
        }
    }
    for source in args.paths.iter().flat_map(|path| expand(path)) {
        let read = source.and_then(|source| match source.read() {
            Ok(bytes) => Ok((source.name(), bytes)),
            Err(error) => Err((source.name().into(), error)),
        });
        match read {
            Ok((name, bytes)) => one(out, form, &name, bytes, settings, counts)?,
            Err((path, error)) => {
                counts.unread(&format_args!("{}: {error}", printable(path.as_os_str().as_encoded_bytes())));
            }
        }
    }
    if matches!(form, FindingFormat::Text(_)) { counts.summarize(out) } else { Ok(()) }
}

fn one(
    out: &mut impl Write,
    form: FindingFormat,
    name: &str,
    bytes: Vec<u8>,
    settings: &EvaluatorSettings,
    counts: &mut CheckCounts,
) -> io::Result<()> {
    let evaluator = Evaluator::new(bytes, Reading::Standard, settings);
    let report = evaluator.check();
    counts.files += 1;
    for (count, severity) in counts.found.iter_mut().zip(Severity::ALL) {
        *count += report.count(severity);
    }
    render::findings(out, form, Checked { name, robots: evaluator.robots(), report: &report })
}

impl CheckFormat {
    fn form(self) -> FindingFormat {
        match self {
            Self::Text
                if io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty()) =>
            {
                FindingFormat::Text(Colour::Styled)
            }
            Self::Text => FindingFormat::Text(Colour::Plain),
            Self::Json => FindingFormat::Json,
            Self::Github => FindingFormat::Github,
        }
    }
}

impl Deny {
    const fn threshold(self) -> Severity {
        match self {
            Self::Errors => Severity::Error,
            Self::Warnings => Severity::Warning,
            Self::Notes => Severity::Note,
        }
    }
}

impl CheckCounts {
    fn unread(&mut self, reason: &dyn std::fmt::Display) {
        self.unread += 1;
        complain(reason);
    }

    fn exit_code(&self, threshold: Severity) -> ExitCode {
        let failed = self.found.iter().zip(Severity::ALL).any(|(count, severity)| *count > 0 && severity >= threshold);
        match (self.unread, failed) {
            (0, false) => ExitCode::SUCCESS,
            (0, true) => ExitCode::from(NEGATIVE),
            _ => ExitCode::from(FAILED),
        }
    }

    fn summarize(&self, out: &mut impl Write) -> io::Result<()> {
        let found: Vec<String> = self
            .found
            .iter()
            .zip(Severity::ALL)
            .filter(|(count, _)| **count > 0)
            .map(|(count, severity)| counted(*count, severity.as_str()))
            .collect();
        let found = if found.is_empty() { "nothing found".to_owned() } else { found.join(", ") };
        writeln!(out, "{} checked: {found}", counted(self.files, "file"))
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The files of an argument, and the directories that could not be read.
fn expand(path: &Path) -> Vec<Result<InputSource, (PathBuf, io::Error)>> {
    if path == Path::new("-") {
        return vec![Ok(InputSource::Stdin)];
    }
    if !path.is_dir() {
        return vec![Ok(InputSource::File(path.to_owned()))];
    }
    let mut listing = Listing::default();
    listing.walk(path);
    let mut files = if listing.robots.is_empty() { listing.texts } else { listing.robots };
    files.sort();
    if files.is_empty() && listing.failed.is_empty() {
        let error = io::Error::new(io::ErrorKind::NotFound, "the directory holds neither a robots.txt nor a .txt file");
        return vec![Err((path.to_owned(), error))];
    }
    files.into_iter().map(|file| Ok(InputSource::File(file))).chain(listing.failed.into_iter().map(Err)).collect()
}

/// The robots.txt files of a directory.
#[derive(Default)]
struct Listing {
    /// Every robots.txt, however deep.
    robots: Vec<PathBuf>,
    /// The .txt files of the directory itself.
    texts: Vec<PathBuf>,
    failed: Vec<(PathBuf, io::Error)>,
}

impl Listing {
    fn walk(&mut self, top: &Path) {
        let mut waiting = vec![top.to_owned()];
        while let Some(directory) = waiting.pop() {
            let entries = match fs::read_dir(&directory) {
                Ok(entries) => entries,
                Err(error) => {
                    self.failed.push((directory, error));
                    continue;
                }
            };
            for entry in entries {
                match entry.and_then(|entry| Ok((entry.file_type()?, entry.path()))) {
                    // A link to a directory is not followed: it may lead back up. A link to a file is read.
                    Ok((kind, path)) if kind.is_dir() => waiting.push(path),
                    Ok((_, path)) if path.is_dir() => {}
                    Ok((_, path)) if path.file_name() == Some(OsStr::new("robots.txt")) => self.robots.push(path),
                    Ok((_, path)) if directory == top && path.extension() == Some(OsStr::new("txt")) => {
                        self.texts.push(path);
                    }
                    Ok(_) => {}
                    Err(error) => self.failed.push((directory.clone(), error)),
                }
            }
        }
    }
}
