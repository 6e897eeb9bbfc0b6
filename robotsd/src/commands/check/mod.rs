//! `robotsd check`: finds problems in robots.txt files, before they are published and on the sites
//! that serve them ([`live`]).
//!
//! In the text format, findings are grouped by code, and errors come first. Notes are only counted.
//! If several files are checked, each group is one line, and a table shows the totals.
//!
//! Exit status:
//!
//! - 0 if no finding is severe enough to fail the check. By default, only errors fail the check.
//!   With SARIF, no finding fails the check by default, because the program that reads the output
//!   decides whether the check fails;
//! - 1 if a finding is severe enough to fail the check, or if `--diff` shows a change;
//! - 2 if a file could not be read (the other files are still checked), or if correcting a file
//!   took too long.

mod check_args;
mod check_settings;
mod fixing;
mod front_page;
mod live;
mod summary;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tower_robots::check::{Lint, Severity};
use tower_robots::internals::first_few;
use tower_robots::rules::{Directive, Reading};
use walkdir::WalkDir;

use self::check_settings::{Deny, is_enabled};
use self::fixing::FixRun;
use self::front_page::FrontPage;
use self::live::LiveCheck;
use self::summary::{CheckSummary, FindingGroups, ShownNotes};
use super::arguments::site::{RobotsFile, SelectedSite, missing_file_hint};
use crate::evaluator::{Evaluator, EvaluatorSettings};
use crate::exit::{FAILED, NEGATIVE, complain};
use crate::fetch::{is_url, shown_url};
use crate::input::{InputSource, stdin_once};
use crate::pages::OwnHosts;
use crate::render::{self, Checked, FindingFormat, SarifLog, printable, printable_path, stderr, stdout, styled_stdout};

pub(crate) use self::check_args::CheckArgs;
pub(in crate::commands) use self::check_settings::CheckFile;
pub(in crate::commands) use self::fixing::{replace, write_difference};

/// Maximum number of findings per lint with `--verbose`. Files that people write have fewer
/// findings.
const MAX_SHOWN: usize = 100_000;

/// Note that is printed after a check without a config, because the settings of a site can lead to
/// more findings.
const WITHOUT_SITE: &str =
    "checked without --config, so the mode, overrides, exemptions and crawlers of a site were not considered";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    /// Every finding, in the order of the file.
    All,
    /// Findings grouped by code, with snippets of the file.
    Snippets,
    Lines,
}

pub(crate) fn run(args: &CheckArgs) -> io::Result<ExitCode> {
    if let Some(code) = &args.explain {
        return check_args::explain_codes(code.as_deref());
    }
    if let Some(reason) = args.fixing.refusal(&args.paths) {
        return Err(io::Error::other(reason));
    }
    stdin_once(&args.paths)?;
    let mut out = if args.fixing.writes_lines(&args.paths) { stdout() } else { styled_stdout() };
    let mut summary = CheckSummary::default();
    args.site.config.as_deref().map_or(Ok(()), |config| args.within.check_path_named(config))?;
    let paths: Vec<_> = args.paths.iter().map(PathBuf::as_path).collect();
    let mut site = args.site.select_for(&paths, &[])?;
    for lint in Lint::all().iter().filter(|lint| !args.looks_for(lint.code)) {
        site.settings.checks = site.settings.checks.allow(lint);
    }
    if args.verbose {
        site.settings.checks = site.settings.checks.findings_per_lint(MAX_SHOWN);
    }
    let written = match args.format {
        FindingFormat::Markdown => {
            let mut tables = Vec::new();
            write(args, &site, &mut tables, &mut summary)
                .and_then(|()| summary.write_verdict(&mut out, is_denied(&summary, args)))
                .and_then(|()| out.write_all(&tables))
        }
        _ => write(args, &site, &mut out, &mut summary),
    };
    Ok(match written.and_then(|()| out.flush()) {
        Ok(()) => exit_code(&summary, args),
        Err(error) => {
            // A closed pipe is not reported, because its reader wants no more output.
            if error.kind() != io::ErrorKind::BrokenPipe {
                complain(&format_args!("standard output: {error}"));
            }
            ExitCode::from(FAILED)
        }
    })
}

fn write(args: &CheckArgs, site: &SelectedSite, out: &mut impl Write, summary: &mut CheckSummary) -> io::Result<()> {
    let mut fixing = FixRun::new(args);
    let settings = &site.settings;
    let (urls, paths): (Vec<_>, Vec<_>) = args.paths.iter().partition(|path| path.to_str().is_some_and(is_url));
    let expanded = |path: &&PathBuf| {
        expand(path).into_iter().map(|source| fixing.check_permitted(path, source?)).collect::<Vec<_>>()
    };
    let sources: Vec<_> = paths.iter().flat_map(expanded).collect();
    let detail = args.detail(sources.len() + urls.len());
    let is_only_file = sources.len() + urls.len() <= 1;
    let has_notes = detail == Detail::All || args.notes || matches!(args.deny, Some(Deny::Notes));
    let notes = if has_notes { ShownNotes::Each } else { ShownNotes::Counted };
    let (sarif, faults) = (SarifLog::default(), BTreeSet::new());
    let mut output = CheckOutput { form: args.format, detail, is_only_file, notes, settings, summary, sarif, faults };
    if !urls.is_empty() {
        match site.retriever() {
            Ok(retriever) => {
                let live = LiveCheck { retriever, settings, fetches_sitemaps: args.sitemap };
                for url in urls {
                    if let Err(error) = args.within.check_path(url) {
                        let name = shown_url(&url.to_string_lossy());
                        output.report_unread(&name, &format_args!("{name}: {error}"));
                        continue;
                    }
                    output.site(out, &live, &url.to_string_lossy(), |code| args.looks_for(code))?;
                }
            }
            Err(error) => output.report_unread(&shown_url(&urls[0].to_string_lossy()), &error),
        }
    }
    if args.paths.is_empty() {
        match site.robots(None) {
            Ok(RobotsFile { name, bytes }) => {
                let evaluator = Evaluator::new(bytes, Reading::Standard, settings);
                let report = evaluator.check_with_fixes();
                let elsewhere =
                    site.hosts().and_then(|(_, hosts)| OwnHosts::of(hosts).foreign_sitemap_message(evaluator.robots()));
                elsewhere.iter().for_each(|text| complain(&format_args!("{}: {text}", printable(&name))));
                output.checked(out, Checked { name: &name, robots: evaluator.robots(), report: &report })?;
                output.usage(out, &name, &evaluator)?;
                output.front_page(out, &name, &evaluator)?;
            }
            Err(error) => output.report_unread("robots.txt", &error),
        }
    }
    for source in sources {
        let name = |source: &InputSource| match (source, &args.stdin_filename) {
            (InputSource::Stdin, Some(name)) => name.to_string_lossy().into_owned(),
            _ => source.name(),
        };
        let check_permitted = |source: &InputSource| source.path().map_or(Ok(()), |path| args.within.check_path(path));
        let read = source.and_then(|source| match check_permitted(&source).and_then(|()| source.read()) {
            Ok(bytes) => Ok((name(&source), source, bytes)),
            Err(error) => Err((name(&source).into(), error)),
        });
        match read {
            Ok((name, source, bytes)) => output.source(out, &mut fixing, &name, &source, bytes)?,
            Err((path, error)) => {
                let name = path.to_string_lossy();
                let hint = missing_file_hint(&path, &error);
                output.report_unread(&name, &format_args!("{}: {error}{hint}", printable_path(&path)));
            }
        }
    }
    output.summary.is_cut |= fixing.is_cut;
    output.summary.is_denied |= args.fixing.diff && fixing.corrected > 0;
    if fixing.finish(out)? {
        return Ok(());
    }
    match args.format {
        FindingFormat::Text => output.summary.write(out, notes)?,
        FindingFormat::Sarif => return output.sarif.write(out),
        _ => return Ok(()),
    }
    if site.is_configured() || !args.verbose { Ok(()) } else { writeln!(out, "{WITHOUT_SITE}") }
}

/// Writes the findings of each file, and collects the totals that are written after the last file.
struct CheckOutput<'a> {
    form: FindingFormat,
    detail: Detail,
    is_only_file: bool,
    notes: ShownNotes,
    settings: &'a EvaluatorSettings,
    summary: &'a mut CheckSummary,
    sarif: SarifLog,
    /// Errors of settings files that have been printed. Each error is printed once, even if the
    /// settings file applies to several checked files.
    faults: BTreeSet<String>,
}

impl CheckOutput<'_> {
    fn checked(&mut self, out: &mut impl Write, checked: Checked<'_>) -> io::Result<()> {
        let groups = FindingGroups::of(checked.report);
        self.summary.add(checked.name, checked.report, &groups);
        match self.detail {
            Detail::All => render::findings(out, self.form, &mut self.sarif, checked),
            Detail::Snippets => groups.write_snippets(out, checked, self.notes),
            Detail::Lines => groups.write_lines(out, checked.name, self.notes),
        }
    }

    fn report_unread(&mut self, name: &str, reason: &dyn std::fmt::Display) {
        self.summary.unread += 1;
        self.sarif.add_unread(name, &reason.to_string());
        complain(reason);
    }

    fn source(
        &mut self,
        out: &mut impl Write,
        fixing: &mut FixRun<'_>,
        name: &str,
        source: &InputSource,
        bytes: Vec<u8>,
    ) -> io::Result<()> {
        let args = fixing.args;
        let file = match args.fixing.isolated {
            true => Ok(CheckFile::default()),
            false => CheckFile::find(source, args.stdin_filename.as_deref(), &args.within),
        };
        let file = match file {
            Ok(file) => file,
            Err(error) => {
                let error = error.to_string();
                match self.faults.insert(error.clone()) {
                    true => self.report_unread(name, &error),
                    false => self.summary.unread += 1,
                }
                return Ok(());
            }
        };
        let settings = file.settings(self.settings, &args.select, &args.ignore);
        let threshold = file.deny.map(Deny::threshold).filter(|_| args.deny.is_none() && !args.exit_zero);
        let bytes = match fixing.correct(out, name, source, bytes, &settings) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Err(error),
            Err(error) => {
                self.report_unread(name, &format_args!("{}: {error}", printable(name)));
                return Ok(());
            }
        };
        let evaluator = Evaluator::new(bytes, Reading::Standard, &settings);
        let report = evaluator.check_with_fixes();
        self.summary.is_denied |= threshold.is_some() && report.worst() >= threshold;
        let checked = Checked { name, robots: evaluator.robots(), report: &report };
        if fixing.writes_to_stdout() {
            self.summary.add(name, &report, &FindingGroups::of(&report));
            return render::findings(&mut stderr(), FindingFormat::Concise, &mut self.sarif, checked);
        }
        self.checked(out, checked)?;
        self.usage(out, name, &evaluator)?;
        self.front_page(out, name, &evaluator)
    }

    /// Writes the usage preferences, content signals and licences in the file. Writes nothing if
    /// several files are checked.
    fn usage(&self, out: &mut impl Write, name: &str, evaluator: &Evaluator) -> io::Result<()> {
        let usage = usage_line(evaluator).filter(|_| self.is_only_file && self.form == FindingFormat::Text);
        usage.map_or(Ok(()), |line| writeln!(out, "{}: {line}\n", printable(name)))
    }

    /// Writes which crawlers may fetch the front page. Writes nothing if several files are checked.
    fn front_page(&self, out: &mut impl Write, name: &str, evaluator: &Evaluator) -> io::Result<()> {
        if !self.is_only_file {
            return Ok(());
        }
        let page = FrontPage::by_rules(evaluator, self.settings);
        page.write(out, self.form, &format!("according to {}", printable(name)))
    }
}

/// Describes usage preferences, content signals and licences. Returns `None` if the file contains
/// no such lines.
fn usage_line(evaluator: &Evaluator) -> Option<String> {
    let rules = &evaluator.rules;
    let front_page = evaluator.path(b"/");
    let usage = rules.has_usage().then(|| match rules.unanimous_usage(&front_page) {
        Some(preferences) => format!("usage preferences for all crawlers on the front page: {preferences}"),
        None => "usage preferences for the front page: they differ between crawlers, or there are none".to_owned(),
    });
    let signals = evaluator.robots().extensions().filter(|line| line.field.directive == Directive::ContentSignal);
    let signals: BTreeSet<_> = signals.map(|line| printable(line.field.value)).collect();
    let licenses: BTreeSet<_> = rules.licenses().map(printable).collect();
    let lists = [("content signals", signals), ("licences", licenses)].into_iter().filter(|(_, list)| !list.is_empty());
    let lists = lists.map(|(name, list)| format!("{name}: {}", first_few(list.into_iter(), 3)));
    let parts: Vec<_> = usage.into_iter().chain(lists).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn is_denied(summary: &CheckSummary, args: &CheckArgs) -> bool {
    !args.exit_zero && (summary.is_denied || args.threshold().is_some_and(|threshold| summary.reaches(threshold)))
}

fn exit_code(summary: &CheckSummary, args: &CheckArgs) -> ExitCode {
    match (summary.unread + usize::from(summary.is_cut), is_denied(summary, args)) {
        (0, false) => ExitCode::SUCCESS,
        (0, true) => ExitCode::from(NEGATIVE),
        _ => ExitCode::from(FAILED),
    }
}

impl CheckArgs {
    fn looks_for(&self, code: &str) -> bool {
        is_enabled(code, &self.select, &self.ignore)
    }

    fn detail(&self, files: usize) -> Detail {
        match files {
            _ if self.verbose || self.format != FindingFormat::Text => Detail::All,
            0 | 1 => Detail::Snippets,
            _ => Detail::Lines,
        }
    }

    /// Returns the lowest severity that fails the check; `None` if no finding fails it.
    fn threshold(&self) -> Option<Severity> {
        match (self.deny, self.format) {
            _ if self.exit_zero => None,
            (Some(deny), _) => Some(deny.threshold()),
            (None, FindingFormat::Sarif) => None,
            (None, _) => Some(Deny::Errors.threshold()),
        }
    }
}

/// Returns the files to check, and errors for directories that could not be read.
fn expand(path: &Path) -> Vec<Result<InputSource, (PathBuf, io::Error)>> {
    if path == Path::new("-") {
        return vec![Ok(InputSource::Stdin)];
    }
    if !path.is_dir() {
        return vec![Ok(InputSource::File(path.to_owned()))];
    }
    let (mut robots, mut texts, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    // Links to directories are not followed, because they may form a loop.
    for entry in WalkDir::new(path) {
        match entry {
            Ok(entry) if entry.path().is_dir() => {}
            Ok(entry) if entry.file_name() == "robots.txt" => robots.push(entry.into_path()),
            Ok(entry) if entry.depth() == 1 && entry.path().extension() == Some(OsStr::new("txt")) => {
                texts.push(entry.into_path());
            }
            Ok(_) => {}
            Err(error) => {
                let place = error.path().unwrap_or(path).to_owned();
                failed.push((place, error.into_io_error().unwrap_or(io::ErrorKind::Other.into())));
            }
        }
    }
    // Without any robots.txt, the .txt files in the directory itself are checked.
    let mut files = if robots.is_empty() { texts } else { robots };
    files.sort();
    if files.is_empty() && failed.is_empty() {
        let error = io::Error::new(
            io::ErrorKind::NotFound,
            "the folder contains no file to check: neither a robots.txt nor another .txt file",
        );
        return vec![Err((path.to_owned(), error))];
    }
    files.into_iter().map(|file| Ok(InputSource::Found(file))).chain(failed.into_iter().map(Err)).collect()
}
