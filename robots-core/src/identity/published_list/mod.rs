//! Address lists that operators publish: their formats, the conditions for replacing a list, and
//! the embedded copies.

mod embedded;
mod range_list;
mod text;

use std::error::Error;
use std::fmt;

pub use self::embedded::EmbeddedList;
pub use self::range_list::RangeList;

/// Error for a document that is rejected: it is not a valid address list or key set, or it is a
/// list that must not replace the previous list.
///
/// `Display` writes the message. If the position is known, it comes before the message: `12:3:
/// message`. The caller should add the path or URL of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DocumentError {
    /// The kind of error.
    pub kind: DocumentErrorKind,
    /// Line and column of the error, from 1; `None` if the error does not belong to one position.
    pub position: Option<(usize, usize)>,
    /// The problem and how to correct it. The message does not contain the position.
    pub message: String,
}

/// The kind of error that a [`DocumentError`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DocumentErrorKind {
    /// An address list is larger than 1 MiB, or a key set is larger than 64 KiB.
    TooLarge,
    /// The list is neither JSON nor text with one prefix per line.
    UnknownFormat,
    /// The document is not valid JSON.
    InvalidJson,
    /// The JSON has no `prefixes` array.
    NoPrefixes,
    /// The JSON is neither a JWK Set nor a JWK.
    NoKeySet,
    /// The list has a newer, unsupported version of the format.
    NewerFormat,
    /// A line of the list is not a valid prefix.
    InvalidLine,
    /// The list has no valid prefix.
    Empty,
    /// A list has more than 50,000 prefixes, or a key set has more than 32 keys.
    TooMany,
    /// A prefix covers a large part of the Internet.
    TooWide,
    /// More than half of the previous list's addresses are missing in the new list.
    Shrunk,
}

impl DocumentError {
    pub(in crate::identity) fn new(kind: DocumentErrorKind, message: impl Into<String>) -> Self {
        Self { kind, position: None, message: message.into() }
    }

    pub(super) fn at(self, line: usize, column: usize) -> Self {
        Self { position: Some((line, column)), ..self }
    }
}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.position {
            write!(f, "{line}:{column}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl Error for DocumentError {}

/// Maximum number of prefixes in a list. The longest published list of single addresses has about
/// 10,000 entries, and the longest list of networks has about 1,000.
pub(super) const MAX_PREFIXES: usize = 50_000;
