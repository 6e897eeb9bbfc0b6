//! The codes that `--select` and `--ignore` take, those of files and those of what servers answer, and `--explain`: what a code
//! means, why it matters, and an example with it and one without.

use std::io::{self, Write};
use std::process::ExitCode;

use tower_robots::check::{Example, Lint, lint, lints};

use super::live::{answer_lint, answer_lints};
use crate::render::{AnswerLint, stdout};
use crate::suggestion::did_you_mean;

/// The code of a lint that exists.
pub(super) fn known_code(code: &str) -> Result<&'static str, String> {
    let known = codes().find(|known| *known == code);
    known.ok_or_else(|| format!("no lint has this code: {}", hint(code)))
}

/// What to write in place of a code that no lint has.
fn hint(code: &str) -> String {
    did_you_mean(code, codes()).unwrap_or_else(|| "`robotsd check --explain` lists them".to_owned())
}

/// Every code.
pub(super) fn codes() -> impl Iterator<Item = &'static str> {
    lints().iter().map(|lint| lint.code).chain(answer_lints().iter().map(|lint| lint.code))
}

/// Columns that text is wrapped to.
const WIDTH: usize = 80;

/// Explains one code, or lists all of them.
pub(super) fn run(code: Option<&str>) -> io::Result<ExitCode> {
    let mut out = stdout();
    match code {
        None => list(&mut out)?,
        Some(code) => match (lint(code), answer_lint(code)) {
            (Some(lint), _) => explain(&mut out, lint)?,
            (None, Some(lint)) => explain_answer(&mut out, lint)?,
            (None, None) => return Err(io::Error::other(format!("no lint has the code {code:?}: {}", hint(code)))),
        },
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn list(out: &mut impl Write) -> io::Result<()> {
    let width = codes().map(str::len).max().unwrap_or(0);
    let of_files = lints().iter().map(|lint| (lint.code, lint.severity, lint.summary));
    let of_answers = answer_lints().iter().map(|lint| (lint.code, lint.severity, lint.summary));
    for (code, severity, summary) in of_files.chain(of_answers) {
        writeln!(out, "{code:width$}  {:7}  {summary}", severity.as_str())?;
    }
    Ok(())
}

fn explain(out: &mut impl Write, lint: &Lint) -> io::Result<()> {
    writeln!(out, "{}: {} ({})\n", lint.code, lint.summary, lint.severity)?;
    wrap(out, lint.why)?;
    example(out, "Found:", &lint.bad)?;
    example(out, "Not found:", &lint.good)?;
    writeln!(out, "\nOff for a line with the comment \"# robots-check: allow({})\".", lint.code)
}

/// A lint of what servers answer, which no file is an example of.
fn explain_answer(out: &mut impl Write, lint: &AnswerLint) -> io::Result<()> {
    writeln!(out, "{}: {} ({})\n", lint.code, lint.summary, lint.severity)?;
    wrap(out, lint.why)?;
    writeln!(out, "\nFound only where a URL is checked. Off with --ignore {}; see {}", lint.code, lint.url())
}

fn example(out: &mut impl Write, title: &str, example: &Example) -> io::Result<()> {
    writeln!(out, "\n{title}\n")?;
    for line in example.to_string().lines() {
        writeln!(out, "    {line}")?;
    }
    Ok(())
}

fn wrap(out: &mut impl Write, text: &str) -> io::Result<()> {
    let mut column = 0;
    for word in text.split_ascii_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > WIDTH {
            writeln!(out)?;
            column = 0;
        }
        if column > 0 {
            write!(out, " ")?;
            column += 1;
        }
        write!(out, "{word}")?;
        column += length;
    }
    writeln!(out)
}
