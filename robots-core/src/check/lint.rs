//! The definition of a lint: its code, its reason, examples, a function that finds problems, and a
//! fix.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use super::file_kind::FileKind;
use super::quote::{pieces, write_piece};

// The modules that define lints import these items from here.
pub(super) use super::checked_file::CheckedFile;
pub(super) use super::crawlers::any_of;
pub(super) use super::directives::{directive_without_colon, is_directive_name, is_known, is_rule, is_url};
pub(super) use super::finding::{Finding, Severity, Sink};
pub(super) use super::fixes::Edit;
pub(super) use super::quote::{Quoted, quoted_list};
pub(super) use crate::agent::{Category, Crawler, Obeys};
pub(super) use crate::rules::{
    Access, Directive, Fallback, Field, Group, Line, LineKind, Name, PathPattern, ProductToken, Reading, RequestPath,
    Rule, crawl_delay, starts_with,
};

/// A lint: its code, and the description that `--explain` prints.
#[non_exhaustive]
pub struct Lint {
    /// Permanent code, in kebab-case.
    pub code: &'static str,
    /// Severity of most findings of the lint.
    pub severity: Severity,
    /// Short description of the findings.
    pub summary: &'static str,
    /// Why findings of this lint matter, in one paragraph.
    pub why: &'static str,
    /// A file that has a finding of this lint.
    pub bad: Example,
    /// A corrected version of [`bad`](Self::bad), without the finding.
    pub good: Example,
    pub(super) pass: Pass,
    /// The fix of the lint's findings. `None` if only a person can correct the findings.
    pub(super) fix: Option<LintFix>,
}

/// A small file that demonstrates a lint.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    pub(super) head: &'static [u8],
    pub(super) unit: &'static [u8],
    pub(super) times: usize,
    /// Names for [`Options::refused_crawlers`](super::Options::refused_crawlers) in this example.
    /// Only lints about the configuration use these names.
    pub(super) refused: &'static [&'static str],
}

/// The function of a lint. The variant determines what the function examines, and how often it is
/// called.
#[derive(Clone, Copy)]
pub(super) enum Pass {
    File(fn(&CheckedFile<'_>, &mut Sink)),
    /// The function is called once if the file is of this kind. The functions of all other variants
    /// are called only if the file is text, because most lints would report every line of an HTML
    /// page.
    OfKind(FileKind, fn(&CheckedFile<'_>, &mut Sink)),
    Group(fn(&CheckedFile<'_>, Group<'_>, &mut Sink)),
    Name(fn(&CheckedFile<'_>, Name<'_>, &mut Sink)),
    /// The function is called for every line that contains several directives, with the range of
    /// the second directive's name. Other lints skip such lines, because their fixes would not
    /// split the line.
    Joined(fn(&Line<'_>, Range<usize>, &mut Sink)),
    Line(fn(&Line<'_>, &LineKind<'_>, &mut Sink)),
    Field(fn(&CheckedFile<'_>, &Field<'_>, &mut Sink)),
    Named(&'static str, fn(&CheckedFile<'_>, &Field<'_>, &mut Sink)),
}

#[derive(Clone, Copy)]
pub(super) struct LintFix {
    pub(super) edits: EditFinding,
    /// Whether there are two possible corrections, and the file does not show which of them is
    /// right. The fix is then never safe, even if it does not change the effect.
    pub(super) is_choice: bool,
    pub(super) shared: Option<SharedCorrection>,
}

/// A function that returns the same key for all findings that need the same edits, so that the
/// edits are computed only once. It returns `None` for a finding that shares its edits with no
/// other finding.
pub(super) type SharedCorrection = fn(&CheckedFile<'_>, &Finding) -> Option<usize>;

/// Function that returns the edits that correct a finding. `None` if the right correction is
/// unclear.
pub(super) type EditFinding = fn(&CheckedFile<'_>, &Finding) -> Option<Vec<Edit>>;

impl LintFix {
    pub(super) const fn new(edits: EditFinding) -> Self {
        Self { edits, is_choice: false, shared: None }
    }

    /// A fix that removes the line of a finding. If a comment follows the field, only the field is
    /// removed.
    pub(super) const DROP_FIELD: Self =
        Self::new(|file, finding| Some(vec![file.without_field(file.line_of(finding))?]));

    /// Creates a fix for findings with two possible corrections.
    pub(super) const fn choice(edits: EditFinding) -> Self {
        Self { edits, is_choice: true, shared: None }
    }

    pub(super) const fn shared_by(self, shared: SharedCorrection) -> Self {
        Self { shared: Some(shared), ..self }
    }
}

impl Lint {
    /// Returns the URL of the lint's row in the table of lints, in the documentation of the newest
    /// version.
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

    pub(super) const fn repeated(head: &'static [u8], unit: &'static [u8], times: usize) -> Self {
        Self { head, unit, times, refused: &[] }
    }

    pub(super) const fn where_refused(self, refused: &'static [&'static str]) -> Self {
        Self { refused, ..self }
    }

    /// Returns the content of the example file.
    #[doc(hidden)]
    pub fn bytes(&self) -> Cow<'static, [u8]> {
        match self.times {
            0 => Cow::Borrowed(self.head),
            times => Cow::Owned([self.head, &self.unit.repeat(times)].concat()),
        }
    }
}

/// Writes the example for people: shows a repeated part once, and escapes non-printing characters.
impl fmt::Display for Example {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (bytes, times) in [(self.head, 1), (self.unit, self.times)] {
            for piece in pieces(bytes) {
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
