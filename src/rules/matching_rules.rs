//! Why a verdict is what it is: every rule that matches, in every form of the path.
//!
//! For people, not for requests: each rule is compared by itself, so this takes as long as the file has rules.

use std::cmp::Reverse;

use super::Access;
use super::document::{Group, Rule};
use super::path::RequestPath;
use super::path_form::PathForm;
use super::pattern::{self, PathPattern};
use super::reading::{Reading, STANDARD_LIMIT};
use super::rule_set::{Selection, Verdict};

/// A verdict with everything that led to it.
#[derive(Clone, Debug)]
pub struct Trace<'r> {
    groups: Vec<Group<'r>>,
    forms: Vec<FormTrace<'r>>,
    verdict: Verdict<'r>,
}

/// The verdict on one form of a path, and the rules that match it.
#[derive(Clone, Debug)]
pub struct FormTrace<'r> {
    form: PathForm,
    path: Box<[u8]>,
    rules: Vec<Rule<'r>>,
}

impl<'r> Selection<'r> {
    /// The groups that apply together, in the order of the file.
    pub fn groups(self) -> impl ExactSizeIterator<Item = Group<'r>> + Clone {
        let document = self.rule_set().document();
        self.group_indexes().iter().map(move |index| document.group(*index))
    }

    /// The verdict on a path, with every rule that matches.
    #[must_use]
    pub fn trace(self, path: &RequestPath<'_>) -> Trace<'r> {
        let form = |(form, path): (PathForm, &[u8])| FormTrace { form, path: path.into(), rules: self.matching(path) };
        Trace { groups: self.groups().collect(), forms: path.forms().map(form).collect(), verdict: self.verdict(path) }
    }

    /// The rules that match, the one that decides first; those without a pattern never do.
    fn matching(self, path: &[u8]) -> Vec<Rule<'r>> {
        let reading = self.rule_set().reading();
        let counts = |rule: &Rule<'_>| reading == Reading::Reference || rule.range().end <= STANDARD_LIMIT;
        let mut found: Vec<(usize, Rule<'r>)> = self
            .groups()
            .flat_map(Group::rules)
            .filter(|rule| !rule.pattern().is_empty())
            .filter(counts)
            .filter_map(|rule| Some((strength(rule, reading, path)?, rule)))
            .collect();
        // Longest pattern, then allow before disallow, then the first line.
        found.sort_by_key(|(strength, rule)| {
            (Reverse(*strength), rule.access() == Access::Disallow, rule.range().start)
        });
        found.into_iter().map(|(_, rule)| rule).collect()
    }
}

impl<'r> Trace<'r> {
    /// The groups that apply, in the order of the file; none where the agent is not held to the file.
    #[must_use]
    pub fn groups(&self) -> &[Group<'r>] {
        &self.groups
    }

    /// The forms of the path that were considered, the one as sent first.
    #[must_use]
    pub fn forms(&self) -> &[FormTrace<'r>] {
        &self.forms
    }

    /// The form that decided: the first that is disallowed, else the one as sent.
    #[must_use]
    pub fn deciding(&self) -> Option<&FormTrace<'r>> {
        self.forms.iter().find(|form| form.access() == Access::Disallow).or(self.forms.first())
    }

    /// The verdict.
    #[must_use]
    pub const fn verdict(&self) -> Verdict<'r> {
        self.verdict
    }
}

impl<'r> FormTrace<'r> {
    /// How the path was read.
    #[must_use]
    pub const fn form(&self) -> PathForm {
        self.form
    }

    /// The path and query as they were compared.
    #[must_use]
    pub const fn path(&self) -> &[u8] {
        &self.path
    }

    /// The rules that match this form, the one that decides first.
    #[must_use]
    pub fn rules(&self) -> &[Rule<'r>] {
        &self.rules
    }

    /// The verdict on this form alone.
    #[must_use]
    pub fn access(&self) -> Access {
        self.rules.first().map_or(Access::Allow, |rule| rule.access())
    }
}

/// The priority with which a rule matches a path.
fn strength(rule: Rule<'_>, reading: Reading, path: &[u8]) -> Option<usize> {
    let whole = PathPattern::new(rule.pattern(), reading);
    if whole.matches(path) {
        return Some(whole.priority());
    }
    let directory = pattern::directory_of_index(rule.pattern()).filter(|_| rule.access() == Access::Allow)?;
    let directory = PathPattern::new(&directory, reading);
    directory.matches(path).then_some(directory.priority())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Fallback, ProductToken, RobotsTxt};

    fn lines(file: &str, token: &str, path: &str) -> Vec<(PathForm, Vec<usize>)> {
        let rules = RobotsTxt::parse(file.as_bytes()).compile(Reading::Standard);
        let path = RequestPath::new(path.as_bytes());
        let selection = rules.select(&[ProductToken::new(token)], Fallback::Star);
        let trace = selection.trace(&path);
        // The first rule of the form that decides is the one the index found.
        let decided = trace.forms().iter().find(|form| form.form() == trace.verdict().form()).expect("the form");
        let verdict = trace.verdict().rule().filter(|rule| !rule.pattern().is_empty());
        assert_eq!(decided.rules().first().map(|rule| rule.line()), verdict.map(Rule::line), "{file}");
        assert_eq!(decided.access(), trace.verdict().access());
        trace.forms().iter().map(|form| (form.form(), form.rules().iter().map(|rule| rule.line()).collect())).collect()
    }

    #[test]
    fn rules_stand_in_the_order_they_win_in() {
        let file = "User-agent: a\nDisallow: /\nAllow: /x\nDisallow: /x\nDisallow: /x/*\nAllow:\nDisallow: /y\n\n\
                    User-agent: *\nDisallow: /x/z\n\nUser-agent: A\nAllow: /x/index.html\nAllow: /x/z/\n";
        assert_eq!(lines(file, "a", "/x/z/1"), [(PathForm::Standard, vec![14, 5, 3, 4, 2])]);
        assert_eq!(lines(file, "a", "/x/"), [(PathForm::Standard, vec![13, 5, 3, 4, 2])]);
        assert_eq!(lines(file, "b", "/x/z/1"), [(PathForm::Standard, vec![10])]);
        assert_eq!(lines(file, "b", "/q"), [(PathForm::Standard, vec![])]);
    }

    #[test]
    fn every_form_is_traced() {
        let file = "User-agent: *\nDisallow: /private/\nAllow: /open/\n";
        let want = [(PathForm::Standard, vec![3]), (PathForm::Resolved, vec![2])];
        assert_eq!(lines(file, "a", "/open/../private/x"), want);
    }

    #[test]
    fn groups_that_apply_together_are_named() {
        let rules =
            RobotsTxt::parse(&b"User-agent: a\nAllow: /\nUser-agent: b\nAllow: /\nUser-agent: A\nAllow: /\n"[..])
                .compile(Reading::Standard);
        let selection = rules.select(&[ProductToken::new("a")], Fallback::Star);
        assert_eq!(selection.groups().map(Group::line).collect::<Vec<_>>(), [1, 5]);
        assert_eq!(rules.select(&[], Fallback::Star).groups().len(), 0);
    }
}
