//! A lint: a code, its reason, examples and a function.

use std::borrow::Cow;
use std::fmt;

use super::checked_file::CheckedFile;
use super::file_kind::FileKind;
use super::finding::Severity;
use super::quote::{write_char, write_octet};
use super::sink::Sink;
use crate::rules::{Field, Line, LineKind};

/// One check, as data: what `--explain` shows, and what runs.
pub struct Lint {
    pub(super) code: &'static str,
    pub(super) severity: Severity,
    pub(super) summary: &'static str,
    pub(super) why: &'static str,
    pub(super) bad: Example,
    pub(super) good: Example,
    pub(super) pass: Pass,
}

/// A small file that shows a lint.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    pub(super) head: &'static [u8],
    pub(super) unit: &'static [u8],
    pub(super) times: usize,
    /// Names of crawlers that the configuration refuses: a few lints speak of the configuration only.
    pub(super) refused: &'static [&'static str],
}

/// How a lint walks the file. All lints share one walk over the lines.
#[derive(Clone, Copy)]
pub(super) enum Pass {
    /// Once.
    File(fn(&CheckedFile<'_>, &mut Sink)),
    /// Once, where the file is this in place of rules. No other lint runs then: to most of them every line of a web
    /// page is wrong.
    InsteadOfRules(FileKind, fn(&CheckedFile<'_>, &mut Sink)),
    /// At every line.
    Line(fn(&Line<'_>, &LineKind<'_>, &mut Sink)),
    /// At every line that is a field.
    Field(fn(&CheckedFile<'_>, &Field<'_>, &mut Sink)),
}

impl Lint {
    /// The permanent kebab-case code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        self.code
    }

    /// The severity of most of its findings.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        self.severity
    }

    /// Its finding, in a few words.
    #[must_use]
    pub const fn summary(&self) -> &'static str {
        self.summary
    }

    /// Why that matters, in one paragraph.
    #[must_use]
    pub const fn why(&self) -> &'static str {
        self.why
    }

    /// Its row of the table of all lints, in the documentation of the newest version.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://docs.rs/tower-robots/latest/tower_robots/docs/lints/#{}", self.code)
    }

    /// A file that has a finding of this lint.
    #[must_use]
    pub const fn bad_example(&self) -> &Example {
        &self.bad
    }

    /// The same file without the finding.
    #[must_use]
    pub const fn good_example(&self) -> &Example {
        &self.good
    }
}

impl fmt::Debug for Lint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lint").field("code", &self.code).field("severity", &self.severity).finish_non_exhaustive()
    }
}

impl Example {
    pub(super) const fn new(head: &'static [u8]) -> Self {
        Self { head, unit: b"", times: 0, refused: &[] }
    }

    /// A head followed by something many times over, for lints about size.
    pub(super) const fn repeated(head: &'static [u8], unit: &'static [u8], times: usize) -> Self {
        Self { head, unit, times, refused: &[] }
    }

    pub(super) const fn where_refused(self, refused: &'static [&'static str]) -> Self {
        Self { refused, ..self }
    }

    /// The whole file.
    #[must_use]
    pub fn bytes(&self) -> Cow<'static, [u8]> {
        match self.times {
            0 => Cow::Borrowed(self.head),
            times => Cow::Owned([self.head, &self.unit.repeat(times)].concat()),
        }
    }
}

/// The example as a person can read it: what is repeated is shown once, what does not print is escaped.
impl fmt::Display for Example {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (octets, times) in [(self.head, 1), (self.unit, self.times)] {
            for chunk in octets.utf8_chunks() {
                for char in chunk.valid().chars() {
                    match char {
                        '\n' => f.write_str("\n")?,
                        _ => write_char(f, char)?,
                    }
                }
                for octet in chunk.invalid() {
                    write_octet(f, *octet)?;
                }
            }
            if times > 1 {
                write!(f, "… ({times} times)")?;
            }
        }
        Ok(())
    }
}
