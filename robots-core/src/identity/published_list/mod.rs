//! The lists of addresses that operators publish: their formats, the requirements for a new list, and the embedded copies.

mod embedded;
mod range_list;
mod text;

use std::error::Error;
use std::fmt;

pub use self::embedded::EmbeddedList;
pub use self::range_list::RangeList;

/// Why octets are no list of addresses, or none that may take the place of the one before, or no set of keys.
///
/// Shown with its place, as `12:3: message`, where the list is text; a path or URL before it is the caller's.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DocumentError {
    /// The kind of mistake.
    pub kind: DocumentErrorKind,
    /// The line and the column of the mistake, from 1, where one line holds it.
    pub position: Option<(usize, usize)>,
    /// The mistake and its correction, without the place.
    pub message: String,
}

/// The kind of mistake that a [`DocumentError`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DocumentErrorKind {
    /// More than 1 MiB, or 64 KiB of keys.
    TooLarge,
    /// Neither a JSON list nor text of a prefix a line.
    UnknownFormat,
    /// No JSON.
    InvalidJson,
    /// JSON without a `prefixes` array.
    NoPrefixes,
    /// JSON that is neither a JWK Set nor a JWK.
    NoKeySet,
    /// A newer version of the format.
    NewerFormat,
    /// A line that is no prefix.
    InvalidLine,
    /// No valid prefix.
    Empty,
    /// More than 50,000 prefixes, or 32 keys.
    TooMany,
    /// A prefix that holds a large part of the Internet.
    TooWide,
    /// More than half of the addresses of the list before are missing.
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

/// Five times the longest list of addresses that is published, and 50 times the longest of prefixes.
pub(super) const MOST_PREFIXES: usize = 50_000;
