//! Options of `robotsd check`, and the explanations of finding codes that `--explain` prints.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use clap::builder::ArgPredicate;
use tower_robots::check::{Lint, Safety, Severity};

use super::check_settings::Deny;
use super::live::{answer_lint, answer_lints};
use crate::commands::arguments::WithinArgs;
use crate::commands::arguments::site::{DEFAULT_FILE, SiteArgs};
use crate::commands::output::Page;
use crate::fetch::{is_url, shown_url};
use crate::names::did_you_mean;
use crate::render::{AnswerLint, FindingFormat, stdout};

/// Check robots.txt files before they are published
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// Files, directories, URLs such as https://example.com, or - for standard input
    ///
    /// A directory stands for every robots.txt below it or, if there is none, for the .txt files in
    /// it. A URL is fetched as a crawler would fetch it, with and without TLS and www., and the
    /// server's answers are checked, too. With --config or --site, the default is the robots.txt of
    /// the site.
    #[arg(value_name = "FILE", default_value = DEFAULT_FILE, default_value_ifs = [
        ("config", ArgPredicate::IsPresent, None::<&str>),
        ("site", ArgPredicate::IsPresent, None),
    ])]
    pub(super) paths: Vec<PathBuf>,

    #[command(flatten)]
    pub(super) site: SiteArgs,

    /// Explain the lint with this code, with examples; without a code, list all codes
    #[arg(long, value_name = "CODE", num_args = 0..=1, conflicts_with_all = ["paths", "format", "deny", "config", "ignore", "select", "stdin_filename", "exit_zero", "within", "notes", "verbose", "fix", "diff", "unsafe_fixes", "isolated"])]
    pub(super) explain: Option<Option<String>>,

    /// Output format
    #[arg(long, value_enum, default_value_t = FindingFormat::Text)]
    pub(super) format: FindingFormat,

    /// Check only these lints; may be repeated
    #[arg(long, value_name = "CODE", value_delimiter = ',', value_parser = known_code)]
    pub(super) select: Vec<&'static str>,

    /// Turn this lint off; may be repeated
    #[arg(long, visible_alias = "allow", value_name = "CODE", value_delimiter = ',', value_parser = known_code)]
    pub(super) ignore: Vec<&'static str>,

    /// The file name to show in findings about standard input
    #[arg(long, value_name = "PATH")]
    pub(super) stdin_filename: Option<PathBuf>,

    /// Also fetch the sitemaps that the robots.txt at a URL names
    #[arg(long)]
    pub(super) sitemap: bool,

    /// Show notes in full; otherwise they are only counted
    #[arg(long)]
    pub(super) notes: bool,

    /// Show every finding in the order of the file, including notes
    #[arg(long, short)]
    pub(super) verbose: bool,

    #[command(flatten)]
    pub(super) fixing: FixArgs,

    #[command(flatten)]
    pub(super) within: WithinArgs,

    /// Lowest severity of findings that fail the check
    ///
    /// By default, errors fail the check. With --format sarif, no finding fails the check by
    /// default, because the program that reads the output decides whether the check fails.
    #[arg(long, value_enum)]
    pub(super) deny: Option<Deny>,

    /// Exit with status 0 whatever is found, even with --deny; a file that cannot be read still
    /// causes status 2
    #[arg(long)]
    pub(super) exit_zero: bool,
}

#[derive(clap::Args, Debug)]
pub(super) struct FixArgs {
    /// Correct the files, but only with corrections that change nothing for crawlers that read the
    /// line; with -, write the corrected text to standard output
    #[arg(long)]
    pub(super) fix: bool,

    /// Show the changes that --fix would make, but do not change the files; exit with status 1 if
    /// there are changes
    #[arg(long, conflicts_with = "format")]
    pub(super) diff: bool,

    /// With --fix or --diff: also make corrections that change the effect of the file (which is
    /// printed) or that may not be what was meant
    #[arg(long)]
    pub(super) unsafe_fixes: bool,

    /// Do not read robots-check.toml
    #[arg(long)]
    pub(super) isolated: bool,
}

pub(super) fn has_stdin(paths: &[PathBuf]) -> bool {
    paths.iter().any(|path| path == Path::new("-"))
}

impl FixArgs {
    pub(super) const fn is_on(&self) -> bool {
        self.fix || self.diff
    }

    /// Reports whether standard output contains unescaped lines of the checked files.
    pub(super) fn writes_lines(&self, paths: &[PathBuf]) -> bool {
        self.diff || (self.fix && has_stdin(paths))
    }

    pub(super) const fn safety(&self) -> Safety {
        if self.unsafe_fixes { Safety::Unsafe } else { Safety::Safe }
    }

    /// Returns why these files cannot be corrected; `None` if they can.
    pub(super) fn refusal(&self, paths: &[PathBuf]) -> Option<String> {
        let option = if self.fix { "--fix" } else { "--diff" };
        let url = || paths.iter().filter_map(|path| path.to_str()).find(|word| is_url(word));
        Some(match (self.fix, self.diff) {
            (true, true) => "--fix and --diff cannot be combined: --fix corrects the file, and --diff only shows the \
                corrections"
                .to_owned(),
            (false, false) if self.unsafe_fixes => {
                "--unsafe-fixes has no effect without --fix or --diff: add one of them".to_owned()
            }
            (false, false) => return None,
            _ if paths.is_empty() => format!("{option} needs a file to correct: specify the robots.txt"),
            _ => match url() {
                Some(url) => {
                    let url = shown_url(url);
                    format!("{option} corrects local files and cannot correct a URL: specify the file instead of {url}")
                }
                None if self.fix && paths.len() > 1 && has_stdin(paths) => {
                    "--fix with - writes the corrected text to standard output: give - alone, or only files".to_owned()
                }
                None => return None,
            },
        })
    }
}

/// Parses the code of a lint. Returns an error with a suggestion if the code is unknown.
fn known_code(code: &str) -> Result<&'static str, String> {
    let known = codes().find(|known| *known == code);
    known.ok_or_else(|| format!("no lint has this code: {hint}", hint = hint(code)))
}

fn hint(code: &str) -> String {
    did_you_mean(code, codes()).unwrap_or_else(|| "`robotsd check --explain` lists all codes".to_owned())
}

fn codes() -> impl Iterator<Item = &'static str> {
    Lint::all().iter().map(|lint| lint.code).chain(answer_lints().iter().map(|lint| lint.code))
}

/// Explains one code, or lists all codes.
pub(super) fn explain_codes(code: Option<&str>) -> io::Result<ExitCode> {
    let mut out = stdout();
    match code {
        None => list(&mut out)?,
        Some(code) => match (Lint::of_code(code), answer_lint(code)) {
            (Some(lint), _) => explain(&mut out, lint)?,
            (None, Some(lint)) => explain_answer(&mut out, lint)?,
            (None, None) => {
                return Err(io::Error::other(format!("no lint has the code {code:?}: {hint}", hint = hint(code))));
            }
        },
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn list(out: &mut impl Write) -> io::Result<()> {
    let width = codes().map(str::len).max().unwrap_or(0);
    let of_files = Lint::all().iter().map(|lint| (lint.code, lint.severity, lint.summary));
    let of_answers = answer_lints().iter().map(|lint| (lint.code, lint.severity, lint.summary));
    for (code, severity, summary) in of_files.chain(of_answers) {
        writeln!(out, "{code:width$}  {:7}  {summary}", severity.as_str())?;
    }
    Ok(())
}

fn explain(out: &mut impl Write, lint: &Lint) -> io::Result<()> {
    write_why(out, lint.code, lint.severity, lint.summary, lint.why)?;
    for (title, example) in [("Found:", &lint.bad), ("Not found:", &lint.good)] {
        writeln!(out, "\n{title}\n")?;
        example.to_string().lines().try_for_each(|line| writeln!(out, "    {line}"))?;
    }
    writeln!(
        out,
        "\nTo turn this lint off for a line, add the comment \"# robots-check: allow({code})\".",
        code = lint.code
    )
}

/// Explains a lint about servers' responses. Such a lint has no example files.
fn explain_answer(out: &mut impl Write, lint: &AnswerLint) -> io::Result<()> {
    write_why(out, lint.code, lint.severity, lint.summary, lint.why)?;
    writeln!(
        out,
        "\nThis lint applies only when a URL is checked. Turn it off with --ignore {code}. Details: {url}",
        code = lint.code,
        url = lint.url()
    )
}

fn write_why(out: &mut impl Write, code: &str, severity: Severity, summary: &str, why: &str) -> io::Result<()> {
    let mut page = Page::default();
    page.title(&format!("{code}: {summary} ({severity})"));
    page.blank();
    page.paragraph(why);
    out.write_all(page.into_string().as_bytes())
}
