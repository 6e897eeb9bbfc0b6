//! A lint: a code, its reason, examples, a function and its fix.
//!
//! **Lints do not know their table.** A lint is its code, its examples, a pass over a `CheckedFile` and perhaps a fix;
//! the table lists the lints, and the check walks the file once for all of them.

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

/// One check, as data: what `--explain` shows, and what runs.
#[non_exhaustive]
pub struct Lint {
    /// The permanent kebab-case code.
    pub code: &'static str,
    /// The severity of most of its findings.
    pub severity: Severity,
    /// Its finding, in a few words.
    pub summary: &'static str,
    /// Why that matters, in one paragraph.
    pub why: &'static str,
    /// A file that has a finding of this lint.
    pub bad: Example,
    /// The same file without the finding.
    pub good: Example,
    pub(super) pass: Pass,
    /// How its findings are corrected; `None` where the file does not say what is meant.
    pub(super) fix: Option<LintFix>,
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
    /// Once, where the file is this. The other passes are only over text: to most of them every line of a web page is wrong.
    OfKind(FileKind, fn(&CheckedFile<'_>, &mut Sink)),
    /// At every group.
    Group(fn(&CheckedFile<'_>, Group<'_>, &mut Sink)),
    /// At every name of a group.
    Name(fn(&CheckedFile<'_>, Name<'_>, &mut Sink)),
    /// At every line that holds several directives, with the place of the second one. The other passes leave such a line out: to
    /// most of them its value is wrong, and they would correct what is not meant.
    Joined(fn(&Line<'_>, Range<usize>, &mut Sink)),
    /// At every line.
    Line(fn(&Line<'_>, &LineKind<'_>, &mut Sink)),
    /// At every line that is a field.
    Field(fn(&CheckedFile<'_>, &Field<'_>, &mut Sink)),
    /// At every field of this name, in its right spelling.
    Named(&'static str, fn(&CheckedFile<'_>, &Field<'_>, &mut Sink)),
}

/// How the findings of a lint are corrected.
#[derive(Clone, Copy)]
pub(super) struct LintFix {
    pub(super) edits: EditFinding,
    /// Whether the file does not say which of two corrections is meant. Such a fix is never safe, whatever it changes.
    pub(super) is_choice: bool,
    pub(super) shared: Option<SharedCorrection>,
}

/// The part that findings of a lint have in common if the same edits correct them: the edits are made once, however many
/// findings there are. `None` for a finding that has edits of its own.
pub(super) type SharedCorrection = fn(&CheckedFile<'_>, &Finding) -> Option<usize>;

/// The edits that correct a finding, or `None` if it is not known what is meant.
pub(super) type EditFinding = fn(&CheckedFile<'_>, &Finding) -> Option<Vec<Edit>>;

impl LintFix {
    pub(super) const fn new(edits: EditFinding) -> Self {
        Self { edits, is_choice: false, shared: None }
    }

    /// Drops the line, as far as it is the field.
    pub(super) const DROP_FIELD: Self =
        Self::new(|file, finding| Some(vec![file.without_field(file.line_of(finding))?]));

    /// A fix of something that can be meant in another way too.
    pub(super) const fn choice(edits: EditFinding) -> Self {
        Self { edits, is_choice: true, shared: None }
    }

    /// Has several findings corrected by the same edits.
    pub(super) const fn shared_by(self, shared: SharedCorrection) -> Self {
        Self { shared: Some(shared), ..self }
    }
}

impl Lint {
    /// Its row of the table of all lints, in the documentation of the newest version.
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

    /// A head followed by something many times over, for lints about size.
    pub(super) const fn repeated(head: &'static [u8], unit: &'static [u8], times: usize) -> Self {
        Self { head, unit, times, refused: &[] }
    }

    pub(super) const fn where_refused(self, refused: &'static [&'static str]) -> Self {
        Self { refused, ..self }
    }

    /// The whole file.
    #[doc(hidden)]
    pub fn bytes(&self) -> Cow<'static, [u8]> {
        match self.times {
            0 => Cow::Borrowed(self.head),
            times => Cow::Owned([self.head, &self.unit.repeat(times)].concat()),
        }
    }
}

/// The example as a person can read it: repetitions are shown once, characters that do not print are escaped.
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
