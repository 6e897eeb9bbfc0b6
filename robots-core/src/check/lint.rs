//! A lint: a code, its reason, examples, a function and its fix.
//!
//! **Lints do not know their table.** A lint is its code, its examples, a pass over a `CheckedFile`
//! and possibly a fix. The table lists the lints, and the check walks the file once for all of
//! them.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use super::file_kind::FileKind;
use super::quote::{pieces, write_piece};

// The items that lints are written with.
pub(super) use super::checked_file::CheckedFile;
pub(super) use super::crawlers::any_of;
pub(super) use super::directives::{is_known, is_rule, is_spelled, is_url, lost_colon};
pub(super) use super::finding::{Finding, Severity, Sink};
pub(super) use super::fixes::Edit;
pub(super) use super::quote::{Quoted, quoted_list};
pub(super) use crate::agent::{Category, Crawler, Obeys};
pub(super) use crate::rules::{
    Access, Directive, Fallback, Field, Group, Line, LineKind, Name, PathPattern, ProductToken, Reading, RequestPath,
    Rule, crawl_delay, starts_with,
};

/// One check, as data: what `--explain` shows, and the code that runs.
#[non_exhaustive]
pub struct Lint {
    /// Permanent kebab-case code.
    pub code: &'static str,
    /// Severity of most of its findings.
    pub severity: Severity,
    /// Its finding, in a few words.
    pub summary: &'static str,
    /// Why the finding matters, in one paragraph.
    pub why: &'static str,
    /// A file that has a finding of this lint.
    pub bad: Example,
    /// The same file without the finding.
    pub good: Example,
    pub(super) pass: Pass,
    /// Fix of its findings; `None` if the file does not show what is meant.
    pub(super) fix: Option<LintFix>,
}

/// A small file that demonstrates a lint.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    pub(super) head: &'static [u8],
    pub(super) unit: &'static [u8],
    pub(super) times: usize,
    /// Names of crawlers that the configuration refuses; a few lints are only about the
    /// configuration.
    pub(super) refused: &'static [&'static str],
}

/// How a lint walks the file. All lints share one walk over the lines.
#[derive(Clone, Copy)]
pub(super) enum Pass {
    /// Once per file.
    File(fn(&CheckedFile<'_>, &mut Sink)),
    /// Once, if the file is of this kind. The other passes only run over text: to most of them
    /// every line of a web page is wrong.
    OfKind(FileKind, fn(&CheckedFile<'_>, &mut Sink)),
    /// For every group.
    Group(fn(&CheckedFile<'_>, Group<'_>, &mut Sink)),
    /// For every name of a group.
    Name(fn(&CheckedFile<'_>, Name<'_>, &mut Sink)),
    /// For every line that contains several directives, with the place of the second one. The other
    /// passes skip such a line: to most of them its value is wrong, and their fixes would correct
    /// something else than intended.
    Joined(fn(&Line<'_>, Range<usize>, &mut Sink)),
    /// For every line.
    Line(fn(&Line<'_>, &LineKind<'_>, &mut Sink)),
    /// For every line that is a field.
    Field(fn(&CheckedFile<'_>, &Field<'_>, &mut Sink)),
    /// For every field of this name, correctly spelled.
    Named(&'static str, fn(&CheckedFile<'_>, &Field<'_>, &mut Sink)),
}

/// How the findings of a lint are corrected.
#[derive(Clone, Copy)]
pub(super) struct LintFix {
    pub(super) edits: EditFinding,
    /// Whether the file does not show which of two corrections is meant. Such a fix is never safe,
    /// whatever it changes.
    pub(super) is_choice: bool,
    pub(super) shared: Option<SharedCorrection>,
}

/// Returns a key that findings share if the same edits correct them; the edits are then made once
/// for all of them. `None` for a finding with edits of its own.
pub(super) type SharedCorrection = fn(&CheckedFile<'_>, &Finding) -> Option<usize>;

/// Returns the edits that correct a finding; `None` if it is unclear what is meant.
pub(super) type EditFinding = fn(&CheckedFile<'_>, &Finding) -> Option<Vec<Edit>>;

impl LintFix {
    pub(super) const fn new(edits: EditFinding) -> Self {
        Self { edits, is_choice: false, shared: None }
    }

    /// Removes the line, or only its field if a comment follows.
    pub(super) const DROP_FIELD: Self =
        Self::new(|file, finding| Some(vec![file.without_field(file.line_of(finding))?]));

    /// Creates a fix for something that may also be meant differently.
    pub(super) const fn choice(edits: EditFinding) -> Self {
        Self { edits, is_choice: true, shared: None }
    }

    /// Lets the same edits correct several findings.
    pub(super) const fn shared_by(self, shared: SharedCorrection) -> Self {
        Self { shared: Some(shared), ..self }
    }
}

impl Lint {
    /// Returns the URL of the lint's row in the table of all lints, in the documentation of the
    /// newest version.
    #[doc(hidden)]
    pub fn url(&self) -> String {
        format!("https://docs.rs/tower-robots/latest/tower_robots/docs/lints/#{}", self.code)
    }
}

crate::debug_as!(|it| Lint { code: it.code, severity: it.severity });

impl Example {
    pub(super) const fn new(head: &'static [u8]) -> Self {
        Self { head, unit: b"", times: 0, refused: &[] }
    }

    /// Creates an example from a head and a unit that is repeated, for lints about size.
    pub(super) const fn repeated(head: &'static [u8], unit: &'static [u8], times: usize) -> Self {
        Self { head, unit, times, refused: &[] }
    }

    pub(super) const fn where_refused(self, refused: &'static [&'static str]) -> Self {
        Self { refused, ..self }
    }

    /// Returns the whole file.
    #[doc(hidden)]
    pub fn bytes(&self) -> Cow<'static, [u8]> {
        match self.times {
            0 => Cow::Borrowed(self.head),
            times => Cow::Owned([self.head, &self.unit.repeat(times)].concat()),
        }
    }
}

/// Formats the example for a person to read: a repeated unit is shown once, and non-printing
/// characters are escaped.
impl fmt::Display for Example {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (octets, times) in [(self.head, 1), (self.unit, self.times)] {
            for piece in pieces(octets) {
                match piece {
                    Ok('\n') => f.write_str("\n")?,
                    piece => write_piece(f, piece)?,
                }
            }
            if times > 1 {
                write!(f, "… ({times} times)")?;
            }
        }
        Ok(())
    }
}
