//! Why rows cannot extend a registry.

use std::fmt;

/// Why a [`Registry`](super::Registry) cannot be extended with the given rows.
#[derive(Clone, PartialEq, Eq)]
pub struct RegistryError {
    row: usize,
    field: &'static str,
    kind: RegistryErrorKind,
    message: String,
}

/// The kind of mistake that a [`RegistryError`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RegistryErrorKind {
    /// A field has a value that no crawler can have.
    WrongValue,
    /// Two of the rows have one name.
    RepeatedName,
    /// Two crawlers have one header name.
    SharedHeaderName,
    /// The crawler to remove does not exist.
    NotFound,
}

impl RegistryError {
    pub(super) fn new(row: usize, field: &'static str, kind: RegistryErrorKind, message: impl Into<String>) -> Self {
        Self { row, field, kind, message: message.into() }
    }

    /// Which of the rows is wrong, from 0.
    #[must_use]
    pub const fn row(&self) -> usize {
        self.row
    }

    /// The field of the row that is wrong, by its key in a registry file: `name`, `header` or `tokens`.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        self.field
    }

    /// The kind of mistake.
    #[must_use]
    pub const fn kind(&self) -> RegistryErrorKind {
        self.kind
    }

    /// The mistake and its correction, without the place.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// `row 2, header: what is wrong`, rows counted from 1.
impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "row {}, {}: {}", self.row + 1, self.field, self.message)
    }
}

impl fmt::Debug for RegistryError {
    /// As it is displayed, because that is what the operator sees of an error that `main` returns.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for RegistryError {}
