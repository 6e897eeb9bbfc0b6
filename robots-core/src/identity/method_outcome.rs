//! What one method says about a claim.

use crate::agent::{Refutation, UndecidedReason};

/// What one method says about a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MethodOutcome {
    /// It confirms the claim.
    Verified,
    /// The request fails it.
    Failed(Refutation),
    /// It cannot tell.
    Undecided(UndecidedReason),
}
