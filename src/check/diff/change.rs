//! A path whose verdict changes, and the rules that decide about it.

use crate::rules::{Access, Group, Rule, Selection, Verdict};

/// A path with another verdict than before.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Change {
    pub(super) path: String,
    pub(super) access: Access,
    pub(super) breadth: Breadth,
    pub(super) before: Option<Decider>,
    pub(super) after: Option<Decider>,
}

/// How much of the site a [`Change`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Breadth {
    /// The whole site has the new verdict.
    Site,
    /// All of the site that no narrower rule of the new file gives the other verdict.
    Rest,
    /// What the patterns of the two rules that decide match.
    Part,
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

    /// How much of the site it is about: the path alone does not show that it stands for a whole site.
    #[must_use]
    pub const fn breadth(&self) -> Breadth {
        self.breadth
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

    pub(super) fn of(path: &[u8], [before, after]: [Verdict<'_>; 2], selected: Selection<'_>) -> Self {
        Self {
            path: String::from_utf8_lossy(path).into_owned(),
            access: after.access(),
            breadth: Breadth::of([before, after], selected),
            before: Decider::of(before),
            after: Decider::of(after),
        }
    }
}

impl Breadth {
    /// Of a change between these verdicts; `selected` are the groups of the second.
    fn of([before, after]: [Verdict<'_>; 2], selected: Selection<'_>) -> Self {
        if ![before, after].into_iter().all(|verdict| verdict.rule().is_none_or(is_about_all)) {
            return Self::Part;
        }
        let mut rules = selected.groups().flat_map(Group::rules);
        let is_exception = |rule: Rule<'_>| rule.access() != after.access() && !is_about_all(rule);
        if rules.any(is_exception) { Self::Rest } else { Self::Site }
    }
}

/// Whether a rule matches every path, or has no pattern and decides nothing.
fn is_about_all(rule: Rule<'_>) -> bool {
    match rule.pattern() {
        [b'/', rest @ ..] => rest.iter().all(|octet| *octet == b'*'),
        pattern => pattern.iter().all(|octet| *octet == b'*'),
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

    /// The rule that a verdict comes from. One without a pattern matches nothing, so none decides then.
    pub(in crate::check) fn of(verdict: Verdict<'_>) -> Option<Self> {
        let rule = verdict.rule().filter(|rule| !rule.pattern().is_empty())?;
        let pattern = String::from_utf8_lossy(rule.pattern()).into_owned();
        Some(Self { line: rule.line(), access: rule.access(), pattern })
    }
}
