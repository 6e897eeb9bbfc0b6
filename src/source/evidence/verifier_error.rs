//! Why there is no evidence.

use std::error::Error;
use std::fmt;

/// Why a [`Verifier`](super::Verifier) cannot start, or cannot follow a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
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

impl Error for VerifierError {}
