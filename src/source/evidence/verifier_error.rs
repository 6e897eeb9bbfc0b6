//! Why there is no evidence.

use std::error::Error;
use std::fmt;

/// Why a [`Verifier`](super::Verifier) cannot start, or cannot follow a registry.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifierError {
    message: String,
}

impl VerifierError {
    pub(super) fn new(message: String) -> Self {
        Self { message }
    }
}

impl fmt::Display for VerifierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for VerifierError {
    /// As it is displayed, because that is what the operator sees of an error that `main` returns.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for VerifierError {}
