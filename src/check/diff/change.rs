//! A path whose verdict changes, and the rules that decide about it.

use crate::rules::{Access, Rule, Verdict};

/// A path with another verdict than before.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Change {
    pub(super) path: String,
    pub(super) access: Access,
    pub(super) before: Option<Decider>,
    pub(super) after: Option<Decider>,
}

/// The rule that decides about a path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Decider {
    line: usize,
    access: Access,
    pattern: String,
}

impl Change {
    /// A path whose verdict changes; others that the same rules decide about change with it.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The verdict now; before it was the other one.
    #[must_use]
    pub const fn access(&self) -> Access {
        self.access
    }

    /// The rule that decided before, or `None` where none matched.
    #[must_use]
    pub const fn before(&self) -> Option<&Decider> {
        self.before.as_ref()
    }

    /// The rule that decides now.
    #[must_use]
    pub const fn after(&self) -> Option<&Decider> {
        self.after.as_ref()
    }

    pub(super) fn of(path: &[u8], before: Verdict<'_>, after: Verdict<'_>) -> Self {
        Self {
            path: String::from_utf8_lossy(path).into_owned(),
            access: after.access(),
            before: before.rule().map(Decider::of),
            after: after.rule().map(Decider::of),
        }
    }
}

impl Decider {
    /// The line of the rule in its file.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.line
    }

    /// Allow or disallow.
    #[must_use]
    pub const fn access(&self) -> Access {
        self.access
    }

    /// The path pattern as written.
    #[must_use]
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    pub(in crate::check) fn of(rule: Rule<'_>) -> Self {
        let pattern = String::from_utf8_lossy(rule.pattern()).into_owned();
        Self { line: rule.line(), access: rule.access(), pattern }
    }
}
