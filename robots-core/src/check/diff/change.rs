//! Changes of verdicts, with the deciding rules, and changes of delays.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use super::extent::SiteExtent;
use super::subject::{Subject, first_crawlers, sorted};
use crate::rules::{Access, CrawlDelay, Group, Rule, RuleSet, Selection, Verdict};

/// A change of the verdict on a path. The path represents all paths with the same deciding rules.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Change {
    /// A path whose verdict changes. All other paths with the same two deciding rules change in the
    /// same way.
    pub path: String,
    /// The new verdict on the path. The old verdict was the opposite.
    pub access: Access,
    /// How much of the site the change affects. `path` is only one of the affected paths.
    pub breadth: Breadth,
    /// The deciding rule in the old file; `None` if no rule matched.
    pub before: Option<Decider>,
    /// The deciding rule in the new file; `None` if no rule matches.
    pub after: Option<Decider>,
}

/// How much of the site a [`Change`] affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Breadth {
    /// The whole site has the new verdict.
    Site,
    /// The whole site has the new verdict, except for paths that a more specific rule of the new
    /// file decides differently.
    Rest,
    /// Only a part of the site has the new verdict: paths that match the patterns of the deciding
    /// rules.
    Part,
}

/// The rule that determines the verdict on a path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Decider {
    /// Line number of the rule in its file.
    pub line: usize,
    /// Whether the rule allows or disallows.
    pub access: Access,
    /// Path pattern, as written.
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
    /// Returns how much of the site a change from the first to the second verdict affects.
    /// `selected` contains the groups of the new file that the crawler obeys.
    fn of([before, after]: [Verdict<'_>; 2], selected: Selection<'_>) -> Self {
        if ![before, after].into_iter().all(|verdict| verdict.rule().is_none_or(is_about_all)) {
            return Self::Part;
        }
        let mut rules = selected.groups().flat_map(Group::rules);
        let is_exception = |rule: Rule<'_>| rule.access() != after.access() && !is_about_all(rule);
        if rules.any(is_exception) { Self::Rest } else { Self::Site }
    }
}

fn is_about_all(rule: Rule<'_>) -> bool {
    match rule.pattern() {
        [b'/', rest @ ..] => rest.iter().all(|byte| *byte == b'*'),
        pattern => pattern.iter().all(|byte| *byte == b'*'),
    }
}

impl Decider {
    /// Returns the deciding rule of a verdict. `None` if no rule matched, or if the pattern of the
    /// matching rule is empty.
    pub(in crate::check) fn of(verdict: Verdict<'_>) -> Option<Self> {
        let rule = verdict.rule().filter(|rule| !rule.pattern().is_empty())?;
        let pattern = String::from_utf8_lossy(rule.pattern()).into_owned();
        Some(Self { line: rule.line(), access: rule.access(), pattern })
    }
}

/// A change of the delay for some crawlers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct DelayChange {
    /// The affected crawlers, search engines first.
    pub crawlers: Vec<Subject>,
    /// The old delay; `None` if there was no delay.
    pub before: Option<Delay>,
    /// The new delay; `None` if there is no delay.
    pub after: Option<Delay>,
}

/// A delay between requests, with the line of the file that sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Delay {
    /// Number of the crawl-delay line.
    pub line: usize,
    /// Time between two requests, as written.
    #[cfg_attr(feature = "serde", serde(rename = "seconds", serialize_with = "seconds"))]
    pub interval: Duration,
}

#[cfg(feature = "serde")]
fn seconds<S: serde::Serializer>(interval: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(interval.as_secs_f64())
}

impl DelayChange {
    /// Describes the change without the names of the crawlers: `one request every 10 s instead of
    /// no delay`.
    pub fn effect(&self) -> String {
        let [before, after] = [self.before, self.after].map(|delay| delay.map(|delay| delay.interval.as_secs_f64()));
        match (before, after) {
            (Some(before), Some(after)) => format!("one request every {after} s instead of every {before} s"),
            (None, Some(after)) => format!("one request every {after} s instead of no delay"),
            (Some(before), None) => format!("no delay instead of one request every {before} s"),
            (None, None) => "no delay, as before".to_owned(),
        }
    }
}

/// Writes the change, for example `"ClaudeBot": one request every 10 s instead of no delay`.
impl fmt::Display for DelayChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", first_crawlers(f, &self.crawlers), self.effect())
    }
}

/// Returns the delays that change for these classes of crawlers. All crawlers of a class obey the
/// same groups. A `Crawl-delay` line that only moved is not a change. Leaves out crawlers that the
/// new file blocks from every path, because a delay has no effect on them.
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
