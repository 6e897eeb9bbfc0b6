//! `robotsd diff OLD NEW`: shows the effect of a change on crawlers.
//!
//! Exit status:
//!
//! - 0 if neither 1 nor 2 applies, even if the files differ;
//! - 1 if `--forbid` forbids one of the changes, or the loss exceeds `--max-loss`;
//! - 2 if a file could not be read, `--forbid` names a crawler that does not exist, or comparing
//!   the files took too long.

mod lists;
mod text;

pub(in crate::commands) use self::text::{ChangesText, DiffNames};

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde::Serialize;
use tower_robots::agent::Registry;
use tower_robots::check::{Diff, Guard};
use tower_robots::rules::Reading;

use self::lists::{ListLosses, PageListArgs};
use super::arguments::site::{DEFAULT_FILE, OtherFiles, SiteArgs};
use crate::evaluator::MAX_TIME;
use crate::exit::{self, FAILED, complain};
use crate::fetch::is_url;
use crate::input::stdin_once;
use crate::names::UnknownName;
use crate::render::{finding_line, printable, printable_path, stdout, write_json};
use crate::selector::Selector;
use crate::target_url::TargetUrl;

/// Show what changes for crawlers between two robots.txt files
#[derive(Args, Debug)]
#[command(
    override_usage = "robotsd diff [OPTIONS] <OLD> <NEW>\n       robotsd diff [OPTIONS] <NEW>\n       robotsd diff [OPTIONS] --config <FILE> <NEW>"
)]
pub(crate) struct DiffArgs {
    /// The current robots.txt and the new one: files, URLs such as https://example.com, or - for
    /// standard input. If only NEW is given, OLD is the robots.txt of the site (with --config),
    /// otherwise the robots.txt in this folder
    #[arg(value_names = ["OLD", "NEW"], num_args = 1..=2, required = true)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    site: SiteArgs,

    /// Fail if anything changes for this crawler on these paths, such as "Googlebot:/products/" or
    /// "category:ai-training:/"; the path may be a pattern, and * stands for crawlers that are
    /// named in neither file; may be repeated
    #[arg(long, value_name = "CRAWLER:PATTERN", value_parser = forbidden_change)]
    forbid: Vec<Guard>,

    #[command(flatten)]
    lists: PageListArgs,

    /// Output format
    #[arg(long, value_enum, default_value_t = DiffFormat::Text)]
    format: DiffFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DiffFormat {
    /// Human-readable text
    Text,
    /// One JSON object
    Json,
    /// For a comment on a pull request
    Markdown,
}

/// JSON output: the effects of the change, and the pages that it disallows for search engines.
#[derive(Debug, Serialize)]
struct DiffJson<'d> {
    #[serde(flatten)]
    diff: &'d Diff,
    #[serde(skip_serializing_if = "ListLosses::is_empty")]
    pages: &'d ListLosses,
}

/// Parses a value of `--forbid`. The value may select several crawlers, for example with
/// `category:ai-training`.
fn forbidden_change(text: &str) -> Result<Guard, String> {
    let missing = || "write a crawler, a colon and a path, such as \"Googlebot:/products/\"".to_owned();
    let key = ["category:", "operator:"].into_iter().find(|key| text.starts_with(key)).unwrap_or_default();
    let colon = key.len() + text[key.len()..].find(':').ok_or_else(missing)?;
    let (crawlers, pattern) = (&text[..colon], text[colon + 1..].trim());
    if pattern.starts_with('*') {
        return Guard::new(crawlers, pattern).ok_or_else(missing);
    }
    // The compared files apply to a single host, so only the path of a URL is used.
    let url = TargetUrl::parse(pattern.as_bytes())?;
    Guard::new(crawlers, &String::from_utf8_lossy(url.path())).ok_or_else(missing)
}

fn guards_of(forbidden: &Guard, registry: &Registry) -> Result<Vec<Guard>, String> {
    let names = Selector::names(&forbidden.crawler, registry)
        .map_err(|error| format!("--forbid {:?}: {error}", forbidden.to_string()))?;
    Ok(names.into_iter().filter_map(|name| Guard::new(name, &forbidden.pattern)).collect())
}

fn unknown_crawler(guard: &Guard, unknown: &UnknownName<'_>) -> String {
    let any = Guard::new("*", &guard.pattern).map_or_else(String::new, |guard| guard.to_string());
    let hint = unknown.hint().map_or_else(String::new, |hint| format!("{hint} "));
    let (guard, fault) = (guard.to_string(), unknown.fault());
    format!("--forbid {guard:?}: {fault}: {hint}Write {any:?} for the crawlers that are not named in any group")
}

pub(in crate::commands) fn complain_of_timeout(name: &str) {
    complain(&format_args!(
        "{file}: comparing the files took more than {seconds} s, so more may change than is shown: use fewer rules, \
         or patterns with fewer wildcards",
        file = printable(name),
        seconds = MAX_TIME.as_secs()
    ));
}

/// Prints that OLD is the robots.txt in the working directory. Returns an error if NEW is a URL or
/// is itself this file.
fn print_default_old_file(new: &Path) -> io::Result<()> {
    let real = |path: &Path| path.canonicalize().ok();
    let name = printable_path(new);
    if new.to_str().is_some_and(is_url) {
        let message = format!(
            "NEW is the file that will be served next, so it cannot be a URL: to compare the served file with the \
             local one, write robotsd diff {name} {DEFAULT_FILE}"
        );
        return Err(io::Error::other(message));
    }
    if real(new).is_some_and(|new| Some(new) == real(Path::new(DEFAULT_FILE))) {
        let before = format!("git show HEAD:./{DEFAULT_FILE} | robotsd diff - {DEFAULT_FILE}");
        return Err(io::Error::other(format!(
            "OLD is missing: to compare with the version before {name}, write {before}"
        )));
    }
    complain(&format_args!("OLD is not given, so the {DEFAULT_FILE} in this folder is used"));
    Ok(())
}

pub(crate) fn run(args: &DiffArgs) -> io::Result<ExitCode> {
    stdin_once(args.files.iter().chain(args.lists.files()))?;
    let both: Vec<_> = args.files.iter().map(PathBuf::as_path).filter(|_| args.files.len() > 1).collect();
    let site = args.site.select_for(&both, &[])?;
    let Some((new, old)) = args.files.split_last() else {
        return Err(io::Error::other("no file is given: name NEW, or OLD and NEW"));
    };
    let old = old.first();
    if old.is_none() && !site.is_configured() {
        print_default_old_file(new)?;
    }
    let (old, new) = (site.robots(old.map(PathBuf::as_path))?, site.named(new)?);
    if old.name == "-" && old.bytes.is_empty() {
        complain(&"OLD, which was read from standard input, is empty and therefore allows everything");
    }
    let new_name = new.name.clone();
    let names = DiffNames::new(&old.name, &new.name);
    // The old file may be an HTML page that was published as robots.txt by mistake.
    let old = old.evaluator(Reading::Standard, &site.settings, OtherFiles::Accept)?;
    let new = new.evaluator(Reading::Standard, &site.settings, OtherFiles::Refuse)?;
    let mut guards = Vec::new();
    for forbidden in &args.forbid {
        guards.extend(guards_of(forbidden, &site.settings.registry).map_err(io::Error::other)?);
    }
    // A `--forbid` with an unknown name could never detect a change.
    for guard in &guards {
        if let Some(unknown) = old.unknown_name(&guard.crawler, Some(&new)) {
            return Err(io::Error::other(unknown_crawler(guard, &unknown)));
        }
    }
    let diff = old.diff(&new, guards);
    let unread = new.new_line_findings(&old);
    let pages = args.lists.losses(&site, &old, &new)?;
    let mut out = stdout();
    match args.format {
        DiffFormat::Text => {
            write!(out, "{}", text::LossesText { names: &names, pages: &pages })?;
            writeln!(out, "{}", ChangesText { names: &names, diff: &diff, unread: &unread })?;
        }
        DiffFormat::Markdown => text::write_markdown(&mut out, &names, &diff, &pages, &unread)?,
        DiffFormat::Json => {
            unread.iter().for_each(|finding| complain(&finding_line(&new_name, finding)));
            write_json(&mut out, &DiffJson { diff: &diff, pages: &pages })?;
        }
    }
    out.flush()?;
    if diff.is_cut {
        complain_of_timeout(&new_name);
        return Ok(ExitCode::from(FAILED));
    }
    Ok(exit::exit_code_for(diff.breaches.is_empty() && !pages.exceeds_limit()))
}
