//! The corrections of findings.

use std::collections::BTreeMap;

use super::edit::Edit;
use crate::rules::keyword_enum;

keyword_enum! {
    /// Whether a [`Fix`] may be made without a person looking at it.
    #[derive(PartialOrd, Ord)]
    Safety, "a safety", {
        /// No verdict, delay or other line changes for any crawler under any reading, and the finding is gone.
        Safe = "safe",
        /// The effect changes, another correction may be meant, or the proof would have cost too much.
        Unsafe = "unsafe",
    }
}

/// The edits that correct a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    pub(super) safety: Safety,
    pub(super) edits: Vec<Edit>,
}

/// The fixes of the findings of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fixes(pub(super) BTreeMap<usize, Fix>);

impl Fix {
    /// Whether it may be made without a person looking at it.
    #[must_use]
    pub const fn safety(&self) -> Safety {
        self.safety
    }

    /// What changes, in the order of the file; never empty. No two share octets.
    #[must_use]
    pub fn edits(&self) -> &[Edit] {
        &self.edits
    }
}

impl Fixes {
    /// The fix of a finding, by its place in [`Report::findings`](super::Report::findings); `None` where only a person can correct it.
    #[must_use]
    pub fn get(&self, finding: usize) -> Option<&Fix> {
        self.0.get(&finding)
    }

    /// How many findings have a fix of this safety.
    #[must_use]
    pub fn count(&self, safety: Safety) -> usize {
        self.0.values().filter(|fix| fix.safety == safety).count()
    }
}
