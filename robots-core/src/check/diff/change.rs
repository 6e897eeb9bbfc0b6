//! Changes of a path's verdict, with the rules that decide it, and changes of a delay.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use super::extent::SiteExtent;
use super::subject::{Subject, first_crawlers, sorted};
use crate::rules::{Access, CrawlDelay, Group, Rule, RuleSet, Selection, Verdict};

/// A path whose verdict differs from before.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Change {
    /// A path whose verdict changes. Other paths decided by the same rules change with it.
    pub path: String,
    /// The new verdict; the old one was the opposite.
    pub access: Access,
    /// How much of the site changes. The path alone does not show that it represents a whole site.
    pub breadth: Breadth,
    /// The rule that decided before; `None` if no rule matched.
    pub before: Option<Decider>,
    /// The rule that decides now; `None` if no rule matches.
    pub after: Option<Decider>,
}

/// How much of the site a [`Change`] affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Breadth {
    /// The whole site has the new verdict.
    Site,
    /// All of the site, except paths that narrower rules of the new file decide otherwise.
    Rest,
    /// The paths that the patterns of both deciding rules match.
    Part,
}

/// The rule that decides the verdict of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Decider {
    /// Line number of the rule in its file.
    pub line: usize,
    /// Access that the rule gives.
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
    /// Returns the breadth of a change between these verdicts; `selected` are the groups of the
    /// second verdict.
    fn of([before, after]: [Verdict<'_>; 2], selected: Selection<'_>) -> Self {
        if ![before, after].into_iter().all(|verdict| verdict.rule().is_none_or(is_about_all)) {
            return Self::Part;
        }
        let mut rules = selected.groups().flat_map(Group::rules);
        let is_exception = |rule: Rule<'_>| rule.access() != after.access() && !is_about_all(rule);
        if rules.any(is_exception) { Self::Rest } else { Self::Site }
    }
}

/// Reports whether a rule matches every path, or has no pattern and so decides nothing.
fn is_about_all(rule: Rule<'_>) -> bool {
    match rule.pattern() {
        [b'/', rest @ ..] => rest.iter().all(|octet| *octet == b'*'),
        pattern => pattern.iter().all(|octet| *octet == b'*'),
    }
}

impl Decider {
    /// Returns the rule that a verdict comes from. `None` if it has no pattern, because it then
    /// matches nothing.
    pub(in crate::check) fn of(verdict: Verdict<'_>) -> Option<Self> {
        let rule = verdict.rule().filter(|rule| !rule.pattern().is_empty())?;
        let pattern = String::from_utf8_lossy(rule.pattern()).into_owned();
        Some(Self { line: rule.line(), access: rule.access(), pattern })
    }
}

/// A delay that differs from before, for some crawlers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct DelayChange {
    /// The crawlers it affects; search engines first.
    pub crawlers: Vec<Subject>,
    /// The old delay; `None` if there was none.
    pub before: Option<Delay>,
    /// The new delay; `None` if there is none.
    pub after: Option<Delay>,
}

/// A delay and its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Delay {
    /// Line number of the delay.
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
    /// Returns the change without its crawlers, as in `one request every 10 s instead of no delay`.
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

/// Formats the change as in `"ClaudeBot": one request every 10 s instead of no delay`.
impl fmt::Display for DelayChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", first_crawlers(f, &self.crawlers), self.effect())
    }
}

/// Returns the delays that change for these crawlers; crawlers of one class obey the same groups. A
/// line that only moved changes nothing, and a crawler that may now fetch nothing has no delay to
/// keep.
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
