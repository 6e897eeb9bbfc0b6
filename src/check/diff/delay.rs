//! A delay between requests that changes, and the crawlers that it changes for.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use super::subject::{FirstCrawlers, Subject};
use crate::rules::{CrawlDelay, RuleSet, Seconds};

/// Another delay than before, for some crawlers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct DelayChange {
    crawlers: Vec<Subject>,
    before: Option<Delay>,
    after: Option<Delay>,
}

/// A delay and its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Delay {
    line: usize,
    #[cfg_attr(feature = "serde", serde(rename = "seconds", serialize_with = "seconds"))]
    interval: Duration,
}

#[cfg(feature = "serde")]
fn seconds<S: serde::Serializer>(interval: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(interval.as_secs_f64())
}

impl DelayChange {
    /// The crawlers it is about; search engines first.
    #[must_use]
    pub fn crawlers(&self) -> &[Subject] {
        &self.crawlers
    }

    /// The delay before, or `None` where there was none.
    #[must_use]
    pub const fn before(&self) -> Option<Delay> {
        self.before
    }

    /// The delay now, or `None` where there is none.
    #[must_use]
    pub const fn after(&self) -> Option<Delay> {
        self.after
    }

    /// The change without its crawlers, as in `one request in 10 s instead of none`.
    #[must_use]
    pub fn effect(&self) -> impl fmt::Display + '_ {
        DelayEffect(self)
    }
}

struct DelayEffect<'a>(&'a DelayChange);

impl fmt::Display for DelayEffect<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [before, after] = [self.0.before, self.0.after].map(|delay| delay.map(|delay| Seconds(delay.interval)));
        match (before, after) {
            (Some(before), Some(after)) => write!(f, "one request in {after} instead of one in {before}"),
            (None, Some(after)) => write!(f, "one request in {after} instead of none"),
            (Some(before), None) => write!(f, "no delay instead of one request in {before}"),
            (None, None) => f.write_str("no delay, as before"),
        }
    }
}

/// As in `"ClaudeBot": one request in 10 s instead of none`.
impl fmt::Display for DelayChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", FirstCrawlers(&self.crawlers), self.effect())
    }
}

impl Delay {
    /// Its line.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.line
    }

    /// The time from one request to the next, as written.
    #[must_use]
    pub const fn interval(&self) -> Duration {
        self.interval
    }

    fn of(delay: &CrawlDelay<'_>) -> Self {
        Self { line: delay.line(), interval: delay.interval() }
    }
}

/// The delays that change for these crawlers, of which those in one class obey the same groups. A line that only moved
/// changes nothing.
pub(super) fn changes<'s>(rules: [&RuleSet; 2], classes: impl Iterator<Item = &'s [Subject]>) -> Vec<DelayChange> {
    let mut found: HashMap<[Option<Delay>; 2], Vec<Subject>> = HashMap::new();
    for class in classes {
        let Some(first) = class.first() else { continue };
        let delays = rules.map(|rules| first.select(rules).crawl_delay().as_ref().map(Delay::of));
        let [before, after] = delays.map(|delay| delay.map(|delay| delay.interval));
        if before != after {
            found.entry(delays).or_default().extend_from_slice(class);
        }
    }
    let change = |([before, after], mut crawlers): ([Option<Delay>; 2], Vec<Subject>)| {
        crawlers.sort_by_cached_key(Subject::rank);
        DelayChange { crawlers, before, after }
    };
    let mut changes: Vec<_> = found.into_iter().map(change).collect();
    changes.sort_by_cached_key(|change| {
        (change.crawlers.first().map(Subject::rank), change.after.map(|delay| delay.line))
    });
    changes
}
