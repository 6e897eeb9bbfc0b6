//! A lint's message about one place of the file.

use std::fmt;
use std::ops::Range;

use crate::rules::keywords;

/// How bad a [`Finding`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum Severity {
    /// Worth knowing; often meant that way.
    Note,
    /// Some crawlers read it otherwise than it looks, or it does more than most files want.
    Warning,
    /// It does not do what it says.
    Error,
}

/// Something that a lint found, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Finding {
    pub(super) code: &'static str,
    pub(super) severity: Severity,
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) span: Range<usize>,
    /// Boxed, because few findings are about one agent.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) agent: Option<Box<str>>,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl Severity {
    /// Every severity, the worst first.
    pub const ALL: [Self; 3] = [Self::Error, Self::Warning, Self::Note];
}

keywords!(Severity, "a severity", {
    Note = "note",
    Warning = "warning",
    Error = "error",
});

impl Finding {
    /// The permanent kebab-case code of the lint; see [`lint`](super::lint).
    #[must_use]
    pub const fn code(&self) -> &'static str {
        self.code
    }

    /// How bad it is.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        self.severity
    }

    /// The line it begins on, from 1.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.line
    }

    /// The octet of the line it begins at, from 1; a byte order mark does not count.
    #[must_use]
    pub const fn column(&self) -> usize {
        self.column
    }

    /// The octets of the file it is about; may be empty, never reaches past the end of the file.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// The crawler it is about, the first where it is about several: the name in the file or the registry, without control
    /// characters. None where it is about the file or every agent.
    #[must_use]
    pub fn agent(&self) -> Option<&str> {
        self.agent.as_deref()
    }

    /// The fault, in one line without control characters.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The correction, in one line without control characters.
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }
}

/// `line:column: severity: message`, ready to follow a path and a colon.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, severity, message, .. } = self;
        write!(f, "{line}:{column}: {severity}: {message}")
    }
}
