//! Explains a verdict: lists every rule that matches the path.

use std::cmp::Reverse;

use super::document::{Group, Rule};
use super::path::RequestPath;
use super::path_form::PathForm;
use super::pattern::{self, PathPattern};
use super::rule_set::{Selection, Verdict};
use super::{Access, Reading};

/// A verdict, and the rules that match each form of the path.
///
/// Use a trace to explain a verdict to people. Tracing is too slow for handling requests, because
/// it compares each rule with the path.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Trace<'r> {
    /// The groups that apply to the agent, in the order of the file; empty if no group applies.
    pub groups: Vec<Group<'r>>,
    /// The forms of the path, in the order of [`RequestPath::forms`].
    pub forms: Vec<FormTrace<'r>>,
    /// The verdict.
    pub verdict: Verdict<'r>,
}

/// The verdict on one form of a path, and the rules that match it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FormTrace<'r> {
    /// Form of the path.
    pub form: PathForm,
    /// Path and query in this form, as compared with the rules.
    pub path: Box<[u8]>,
    /// The rules that match this form. The deciding rule comes first.
    pub rules: Vec<Rule<'r>>,
}

impl<'r> Selection<'r> {
    /// Returns the verdict on a path, with every rule that matches.
    #[doc(hidden)]
    pub fn trace(self, path: &RequestPath<'_>) -> Trace<'r> {
        let form = |(form, path): (PathForm, &[u8])| FormTrace { form, path: path.into(), rules: self.matching(path) };
        Trace { groups: self.groups().collect(), forms: path.forms().map(form).collect(), verdict: self.verdict(path) }
    }

    /// Returns the rules that match a path, the deciding rule first. Leaves out rules with an empty
    /// pattern.
    fn matching(self, path: &[u8]) -> Vec<Rule<'r>> {
        let reading = self.rules.reading();
        let counts = |rule: &Rule<'_>| rule.range().end <= reading.limit();
        let mut found: Vec<(usize, Rule<'r>)> = self
            .groups()
            .flat_map(Group::rules)
            .filter(|rule| !rule.pattern().is_empty())
            .filter(counts)
            .filter_map(|rule| Some((strength(rule, reading, path)?, rule)))
            .collect();
        found.sort_by_key(|(strength, rule)| {
            (Reverse(*strength), rule.access() == Access::Disallow, rule.range().start)
        });
        found.into_iter().map(|(_, rule)| rule).collect()
    }
}

impl<'r> Trace<'r> {
    /// Returns the deciding form: the first disallowed form or, if no form is disallowed, the first
    /// form.
    pub fn deciding(&self) -> Option<&FormTrace<'r>> {
        self.forms.iter().find(|form| form.access() == Access::Disallow).or(self.forms.first())
    }
}

impl<'r> FormTrace<'r> {
    /// Returns whether the rules allow this form. Ignores all other forms of the path.
    pub fn access(&self) -> Access {
        self.rules.first().map_or(Access::Allow, |rule| rule.access())
    }
}

/// Returns the priority of a rule; `None` if the rule does not match the path.
fn strength(rule: Rule<'_>, reading: Reading, path: &[u8]) -> Option<usize> {
    let whole = PathPattern::new(rule.pattern(), reading);
    if whole.matches(path) {
        return Some(whole.priority());
    }
    let directory = pattern::directory_of_index(rule.pattern()).filter(|_| rule.access() == Access::Allow)?;
    let directory = PathPattern::new(&directory, reading);
    directory.matches(path).then_some(directory.priority())
}
