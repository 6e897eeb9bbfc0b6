//! Expectations that a robots.txt does not meet, as text.

use std::io::{self, Write};
use std::path::Path;

use tower_robots::check::{ExpectationOutcome, Unmet};
use tower_robots::rules::Access;

use crate::evaluator::Evaluator;
use crate::exit::complain;
use crate::expectations::{ExpectationsFile, WrittenWord};
use crate::render::printable;

/// Whether the agents of a file are crawlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Spelling {
    Right,
    /// A name is nearly that of a crawler.
    Slip,
}

/// A robots.txt that was held against a file of expectations.
#[derive(Debug)]
pub(in crate::commands) struct EvaluatedExpectations<'a> {
    pub(in crate::commands) path: &'a Path,
    pub(in crate::commands) file: &'a ExpectationsFile,
    /// The name of the robots.txt.
    pub(in crate::commands) robots: &'a str,
    pub(in crate::commands) outcome: &'a ExpectationOutcome,
}

impl EvaluatedExpectations<'_> {
    /// Writes to standard error which agents of the file no crawler is, and which paths look like patterns, each with its
    /// place. Returns whether a name is a slip: what is expected of a crawler that does not exist guards nothing.
    #[must_use]
    pub(in crate::commands) fn complain_of_slips(&self, evaluator: &Evaluator) -> Spelling {
        let path = printable(self.path.as_os_str().as_encoded_bytes());
        let mut spelling = Spelling::Right;
        for WrittenWord { text, place: (line, column) } in &self.file.agents {
            if let Some(unknown) = evaluator.unknown_name(text, None) {
                complain(&format_args!("{path}:{line}:{column}: {unknown}"));
                if unknown.hint().is_some() {
                    spelling = Spelling::Slip;
                }
            }
        }
        for WrittenWord { text, place: (line, column) } in &self.file.paths {
            let without_query = text.split('?').next().unwrap_or(text);
            if without_query.contains('*') || text.ends_with('$') {
                let text = printable(text.as_bytes());
                complain(&format_args!(
                    "{path}:{line}:{column}: \"{text}\" is taken as a path, and \"*\" and \"$\" stand for themselves in it: \
                     name a path that the rules are to match"
                ));
            }
        }
        spelling
    }

    /// The unmet pairs, each with the line of its expectation.
    pub(in crate::commands) fn unmet(&self) -> impl Iterator<Item = (usize, &Unmet)> {
        let line = |unmet: &Unmet| self.file.lines.get(unmet.expectation()).copied().unwrap_or(1);
        self.outcome.unmet().iter().map(move |unmet| (line(unmet), unmet))
    }

    pub(in crate::commands) fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        for (line, unmet) in self.unmet() {
            self.write_one(out, line, unmet)?;
        }
        Ok(())
    }

    fn write_one(&self, out: &mut impl Write, line: usize, unmet: &Unmet) -> io::Result<()> {
        let access = match unmet.access() {
            Access::Allow => "may fetch",
            Access::Disallow => "may not fetch",
        };
        let shown = |text: &str| printable(text.as_bytes());
        let (agent, path, robots) = (shown(unmet.agent()), shown(unmet.path()), shown(self.robots));
        write!(out, "{}:{line}: {agent} {access} {path}: ", shown(&self.path.to_string_lossy()))?;
        match unmet.rule() {
            Some(rule) => writeln!(out, "{robots}:{}: {} {}", rule.line(), rule.access(), shown(rule.pattern())),
            None if unmet.has_group() => writeln!(out, "no rule of {robots} matches"),
            None => writeln!(out, "no group of {robots} is for it"),
        }
    }
}
