//! What makes a line a field, and which.

pub(super) mod missing_colon;
pub(super) mod misspelled_directive;
pub(super) mod not_a_field;
pub(super) mod unknown_directive;
pub(super) mod unknown_lint;
