//! A path whose verdict changes, with the rules that decide about it, and a delay that changes.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use super::extent::SiteExtent;
use super::subject::{Subject, first_crawlers, sorted};
use crate::rules::{Access, CrawlDelay, Group, Rule, RuleSet, Selection, Verdict};

/// A path with another verdict than before.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Change {
    /// A path whose verdict changes; others that the same rules decide about change with it.
    pub path: String,
    /// The verdict now; before it was the other one.
    pub access: Access,
    /// How much of the site it is about: the path alone does not show that it stands for a whole site.
    pub breadth: Breadth,
    /// The rule that decided before, or `None` where none matched.
    pub before: Option<Decider>,
    /// The rule that decides now.
    pub after: Option<Decider>,
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
    /// The paths that the patterns of the two deciding rules match.
    Part,
}

/// The rule that decides about a path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Decider {
    /// The line of the rule in its file.
    pub line: usize,
    /// Allow or disallow.
    pub access: Access,
    /// The path pattern as written.
    pub pattern: String,
}

impl Change {
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
    /// The rule that a verdict comes from. One without a pattern matches nothing, so none decides then.
    pub(in crate::check) fn of(verdict: Verdict<'_>) -> Option<Self> {
        let rule = verdict.rule().filter(|rule| !rule.pattern().is_empty())?;
        let pattern = String::from_utf8_lossy(rule.pattern()).into_owned();
        Some(Self { line: rule.line(), access: rule.access(), pattern })
    }
}

/// Another delay than before, for some crawlers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct DelayChange {
    /// The crawlers it is about; search engines first.
    pub crawlers: Vec<Subject>,
    /// The delay before, or `None` where there was none.
    pub before: Option<Delay>,
    /// The delay now, or `None` where there is none.
    pub after: Option<Delay>,
}

/// A delay and its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Delay {
    /// Its line.
    pub line: usize,
    /// The time from one request to the next, as written.
    #[cfg_attr(feature = "serde", serde(rename = "seconds", serialize_with = "seconds"))]
    pub interval: Duration,
}

#[cfg(feature = "serde")]
fn seconds<S: serde::Serializer>(interval: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(interval.as_secs_f64())
}

impl DelayChange {
    /// The change without its crawlers, as in `one request in 10 s instead of none`.
    pub fn effect(&self) -> String {
        let [before, after] = [self.before, self.after].map(|delay| delay.map(|delay| delay.interval.as_secs_f64()));
        match (before, after) {
            (Some(before), Some(after)) => format!("one request in {after} s instead of one in {before} s"),
            (None, Some(after)) => format!("one request in {after} s instead of none"),
            (Some(before), None) => format!("no delay instead of one request in {before} s"),
            (None, None) => "no delay, as before".to_owned(),
        }
    }
}

/// As in `"ClaudeBot": one request in 10 s instead of none`.
impl fmt::Display for DelayChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", first_crawlers(f, &self.crawlers), self.effect())
    }
}

/// The delays that change for these crawlers, of which those in one class obey the same groups. A line that only moved
/// changes nothing, and a crawler that may read nothing any more has no delay to keep.
pub(super) fn changes(rules: [&RuleSet; 2], classes: &[Vec<Subject>]) -> Vec<DelayChange> {
    let mut found: HashMap<[Option<Delay>; 2], Vec<Subject>> = HashMap::new();
    for class in classes {
        let Some(first) = class.first() else { continue };
        let delay = |delay: CrawlDelay<'_>| Delay { line: delay.line(), interval: delay.interval() };
        let selections = rules.map(|rules| first.select(rules));
        let delays = selections.map(|selection| selection.crawl_delay().map(delay));
        let [before, after] = delays.map(|delay| delay.map(|delay| delay.interval));
        if before != after && SiteExtent::of(selections[1]) != SiteExtent::Shut {
            found.entry(delays).or_default().extend_from_slice(class);
        }
    }
    let mut changes: Vec<_> = found
        .into_iter()
        .map(|([before, after], crawlers)| DelayChange { crawlers: sorted(crawlers), before, after })
        .collect();
    changes.sort_by_cached_key(|change| {
        (change.crawlers.first().map(Subject::rank), change.after.map(|delay| delay.line))
    });
    changes
}
