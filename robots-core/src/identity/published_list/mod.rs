//! Address lists that operators publish: their formats, the requirements for a new list, and the
//! embedded copies.

mod embedded;
mod range_list;
mod text;

use std::error::Error;
use std::fmt;

pub use self::embedded::EmbeddedList;
pub use self::range_list::RangeList;

/// Why a document is rejected: it is not a valid list of addresses or set of keys, or it must not
/// replace the previous list.
///
/// Displayed with the position, as in `12:3: message`, if the list is text. The caller adds a path
/// or URL.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DocumentError {
    /// The kind of error.
    pub kind: DocumentErrorKind,
    /// Line and column of the error, from 1, if it is in one line.
    pub position: Option<(usize, usize)>,
    /// The error and its correction, without the position.
    pub message: String,
}

/// The kind of error that a [`DocumentError`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DocumentErrorKind {
    /// More than 1 MiB, or 64 KiB for keys.
    TooLarge,
    /// Neither a JSON list nor text with one prefix per line.
    UnknownFormat,
    /// Invalid JSON.
    InvalidJson,
    /// JSON without a `prefixes` array.
    NoPrefixes,
    /// JSON that is neither a JWK Set nor a JWK.
    NoKeySet,
    /// A newer version of the format.
    NewerFormat,
    /// A line that is not a valid prefix.
    InvalidLine,
    /// No valid prefix.
    Empty,
    /// More than 50,000 prefixes, or 32 keys.
    TooMany,
    /// A prefix that covers a large part of the Internet.
    TooWide,
    /// More than half of the previous list's addresses are missing.
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

/// Maximum number of prefixes: five times the longest published list of addresses, and 50 times the
/// longest published list of prefixes.
pub(super) const MAX_PREFIXES: usize = 50_000;
