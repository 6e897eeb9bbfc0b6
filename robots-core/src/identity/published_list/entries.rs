//! The prefixes that a list holds, and why it cannot be used.

use std::error::Error;
use std::fmt;

use crate::agent::Network;

/// Why octets are no list, or no list that may take the place of the one before.
///
/// Shown with its place, as `12:3: what is wrong`, where the list is text; a path or URL before it is the caller's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeListError {
    kind: RangeListErrorKind,
    /// Line and column, from 1.
    position: Option<(usize, usize)>,
    message: String,
}

/// The kind of mistake that a [`RangeListError`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RangeListErrorKind {
    /// More than 1 MiB.
    TooLarge,
    /// Neither a JSON list nor text of a prefix a line.
    UnknownFormat,
    /// No JSON.
    InvalidJson,
    /// JSON without a `prefixes` array.
    NoPrefixes,
    /// A newer version of the format.
    NewerFormat,
    /// A line that is no prefix.
    InvalidLine,
    /// No valid prefix.
    Empty,
    /// More than 50,000 prefixes.
    TooMany,
    /// A prefix that holds a large part of the Internet.
    TooWide,
    /// More than half of the addresses of the list before are missing.
    Shrunk,
}

impl RangeListError {
    pub(super) fn new(kind: RangeListErrorKind, message: impl Into<String>) -> Self {
        Self { kind, position: None, message: message.into() }
    }

    pub(super) fn at(self, line: usize, column: usize) -> Self {
        Self { position: Some((line, column)), ..self }
    }

    /// The kind of mistake.
    pub const fn kind(&self) -> RangeListErrorKind {
        self.kind
    }

    /// The line and the column of the mistake, from 1, where one line holds it.
    pub const fn position(&self) -> Option<(usize, usize)> {
        self.position
    }

    /// The mistake and its correction, without the place.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for RangeListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.position {
            write!(f, "{line}:{column}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl Error for RangeListError {}

/// Five times the longest list of addresses that is published, and 50 times the longest of prefixes.
pub(super) const MOST_PREFIXES: usize = 50_000;

/// What is read of a list, in any of its formats.
#[derive(Debug, Default)]
pub(super) struct Entries {
    pub(super) prefixes: Vec<Network>,
    pub(super) skipped: usize,
    pub(super) created: Option<String>,
}
