//! Defines the row: the data about one crawler on one site in one hour or day. A row contains
//! counts, fetches of robots.txt, and the data that is needed to judge disallowed requests later.
//!
//! [`Row::merge`] adds up the rows of workers, processes and replicas. Every list in a row has a
//! maximum length. For privacy, a row contains neither requested paths nor client addresses.
//! Instead of the paths, it contains the matching patterns of robots.txt.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::date;
use crate::word_enum::word_enum;

/// Maximum number of [`ReadSpan`]s, and of [`Case`]s, per row.
const MAX_SPANS: usize = 32;

/// Maximum number of robots.txt lines per row. The hits of further lines are counted together.
const MAX_LINES: usize = 32;

/// Origin of fetches and requests whose real origin is no longer known. Matches every origin.
pub(super) const ANY_ORIGIN: &str = "*";

word_enum! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub(crate) enum ClaimResult {
        /// A verification method confirmed that the client is the crawler.
        Verified = "verified",
        /// No method confirmed or disproved that the client is the crawler.
        #[default]
        Claimed = "claimed",
        /// A verification method showed that the client is not the crawler.
        Impostor = "impostor",
    }
}

/// Key of a row within its site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct RowKey {
    /// First second of the hour or day.
    #[serde(rename = "hour")]
    pub(crate) begin: Second,
    pub(crate) crawler: String,
    pub(crate) identity: ClaimResult,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Row {
    /// Operator of the crawler; empty if the crawler is not registered.
    pub(crate) operator: String,
    /// Category of the crawler; empty if the crawler is not registered.
    pub(crate) category: String,
    /// Product tokens whose groups the crawler obeys, most preferred first.
    pub(crate) chain: Vec<String>,
    /// Requests that robots.txt does not disallow, except requests for robots.txt itself.
    pub(crate) allowed: u64,
    pub(crate) disallowed: u64,
    /// Pages that the crawler received: responses with 2xx or 304, except responses for images and
    /// other page resources.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) pages: u64,
    pub(crate) done: Done,
    pub(crate) reads: Vec<ReadSpan>,
    pub(crate) cases: Vec<Case>,
    pub(crate) lines: Vec<LineHits>,
}

/// Numbers of requests, by the action that robotsd took. Includes only disallowed requests,
/// requests of impostors, and requests that came before the crawl delay had passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Done {
    pub(crate) refused: u64,
    pub(crate) tagged: u64,
    /// Requests that were forwarded because the mode is `observe` or because the grace period has
    /// not ended.
    pub(crate) observed: u64,
    /// Requests that were forwarded because of an exemption or an override.
    pub(crate) passed: u64,
    /// Allowed requests that came before the crawl delay had passed and got the status 429.
    pub(crate) limited: u64,
}

/// Consecutive fetches of the same version of robots.txt from the same origin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReadSpan {
    pub(crate) origin: String,
    /// The fetched version; `None` if another server responded.
    pub(crate) version: Option<String>,
    pub(crate) first: Second,
    pub(crate) last: Second,
    pub(crate) count: u64,
}

/// Disallowed requests to one origin. They are judged together, because the same versions of
/// robots.txt disallow all of them, and the same versions allow all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Case {
    pub(crate) origin: String,
    /// Versions that are known to disallow the requests, the one in force first.
    pub(crate) disallowed_by: Vec<String>,
    pub(crate) allowed_by: Vec<String>,
    pub(crate) first: Second,
    pub(crate) last: Second,
    pub(crate) count: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LineHits {
    pub(crate) version: String,
    /// Line number; 0 for the lines beyond [`MAX_LINES`], which are counted together.
    pub(crate) line: usize,
    /// Pattern as written in robots.txt.
    pub(crate) pattern: String,
    pub(crate) hits: u64,
}

impl Row {
    /// Adds a row of the same crawler. The times of the two rows may overlap.
    pub(crate) fn merge(&mut self, other: &Self) {
        if self.operator.is_empty() && self.chain.is_empty() {
            self.operator.clone_from(&other.operator);
            self.category.clone_from(&other.category);
            self.chain.clone_from(&other.chain);
        }
        self.allowed = self.allowed.saturating_add(other.allowed);
        self.disallowed = self.disallowed.saturating_add(other.disallowed);
        self.pages = self.pages.saturating_add(other.pages);
        self.done.merge(other.done);
        // Fetches are merged first, because two requests must stay in separate cases if there is a
        // fetch between them.
        other.reads.iter().for_each(|read| self.read(read));
        other.cases.iter().for_each(|case| self.disallow(case));
        other.lines.iter().for_each(|line| self.add_hits(line));
    }

    /// Adds fetches of robots.txt. Fetches beyond [`MAX_SPANS`] are merged into one span with an
    /// unknown version and [`ANY_ORIGIN`]. The merged span cannot be evidence against a crawler.
    pub(crate) fn read(&mut self, read: &ReadSpan) {
        let is_full = self.reads.len() >= MAX_SPANS;
        let is_separated = |own: &ReadSpan| {
            let between = |other: &ReadSpan| {
                other.origin == read.origin
                    && other.version != read.version
                    && other.last >= own.first.min(read.first)
                    && other.first <= own.last.max(read.last)
            };
            self.reads.iter().any(between)
        };
        let is_alike = |own: &ReadSpan| own.origin == read.origin && own.version == read.version && !is_separated(own);
        if let Some(at) = self.reads.iter().rposition(is_alike) {
            self.reads[at].extend(read);
        } else if !is_full {
            self.reads.push(read.clone());
        } else {
            let rest = self.reads.iter_mut().find(|own| own.origin == ANY_ORIGIN && own.version.is_none());
            match rest {
                Some(rest) => rest.extend(read),
                None => self.reads.push(ReadSpan { origin: ANY_ORIGIN.to_owned(), version: None, ..*read }),
            }
        }
    }

    /// Adds a [`Case`]. Does not change `disallowed`: the caller has already added the number of
    /// requests in the case.
    pub(crate) fn disallow(&mut self, case: &Case) {
        // If a fetch begins between two requests, only the later request was sent after the fetch,
        // so the requests stay in separate cases. A fetch in the same second as one of the requests
        // also counts as a fetch between them.
        let has_read_between = |from: Second, to: Second| {
            let at = [case.origin.as_str(), ANY_ORIGIN];
            let of = |read: &&ReadSpan| at.contains(&read.origin.as_str());
            self.reads.iter().filter(of).any(|read| from < to && (from..=to).contains(&read.first))
        };
        let is_alike = |own: &Case| {
            own.has_same_versions(case) && !has_read_between(own.first.min(case.first), own.last.max(case.last))
        };
        if let Some(at) = self.cases.iter().rposition(is_alike) {
            self.cases[at].extend(case);
        } else if self.cases.len() < MAX_SPANS {
            self.cases.push(case.clone());
        } else {
            match self.cases.iter_mut().find(|own| own.origin == ANY_ORIGIN) {
                Some(rest) => rest.extend(case),
                None => self.cases.push(Case {
                    origin: ANY_ORIGIN.to_owned(),
                    disallowed_by: Vec::new(),
                    allowed_by: Vec::new(),
                    ..*case
                }),
            }
        }
    }

    pub(crate) fn add_hits(&mut self, hits: &LineHits) {
        let is_alike =
            |own: &&mut LineHits| own.version == hits.version && own.line == hits.line && own.pattern == hits.pattern;
        if let Some(own) = self.lines.iter_mut().find(is_alike) {
            own.hits = own.hits.saturating_add(hits.hits);
        } else if self.lines.len() < MAX_LINES {
            self.lines.push(hits.clone());
        } else {
            match self.lines.iter_mut().find(|own| own.line == 0) {
                Some(rest) => rest.hits = rest.hits.saturating_add(hits.hits),
                None => self.lines.push(LineHits { version: String::new(), line: 0, pattern: String::new(), ..*hits }),
            }
        }
    }
}

impl Done {
    pub(crate) const fn merge(&mut self, other: Self) {
        self.refused = self.refused.saturating_add(other.refused);
        self.tagged = self.tagged.saturating_add(other.tagged);
        self.observed = self.observed.saturating_add(other.observed);
        self.passed = self.passed.saturating_add(other.passed);
        self.limited = self.limited.saturating_add(other.limited);
    }
}

impl ReadSpan {
    fn extend(&mut self, other: &Self) {
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.count = self.count.saturating_add(other.count);
    }
}

impl Case {
    fn has_same_versions(&self, other: &Self) -> bool {
        self.origin == other.origin && self.disallowed_by == other.disallowed_by && self.allowed_by == other.allowed_by
    }

    fn extend(&mut self, other: &Self) {
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.count = self.count.saturating_add(other.count);
    }
}

pub(super) const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Unix time, in seconds.
pub(crate) type Second = u64;

pub(crate) const MINUTE: Second = 60;
pub(crate) const HOUR: Second = 60 * MINUTE;
pub(crate) const DAY: Second = 24 * HOUR;

/// Returns the Unix time; 0 if the clock is set before 1970.
pub(crate) fn seconds(time: SystemTime) -> Second {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

pub(crate) const fn hour_of(at: Second) -> Second {
    at - at % HOUR
}

pub(crate) const fn day_of(at: Second) -> Second {
    at - at % DAY
}

/// Formats a time, for example `2026-11-21T08:18:41Z`.
pub(crate) fn written(at: Second) -> String {
    date::rfc3339(UNIX_EPOCH.checked_add(Duration::from_secs(at)).unwrap_or(UNIX_EPOCH))
}

/// Formats a day, for example `2026-11-21`.
pub(crate) fn date_of(at: Second) -> String {
    let mut text = written(at);
    text.truncate("2026-11-21".len());
    text
}

/// Parses `YYYY-MM-DD`, and returns the first second of this day (UTC).
pub(crate) fn parse_day(date: &str) -> Option<Second> {
    let is_date = date.len() == 10 && date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let time = humantime::parse_rfc3339(&format!("{date}T00:00:00Z")).ok().filter(|_| is_date)?;
    Some(seconds(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(version: &str, at: Second) -> ReadSpan {
        ReadSpan { origin: "https://a.test".into(), version: Some(version.into()), first: at, last: at, count: 1 }
    }

    fn case(by: &str, at: Second) -> Case {
        let origin = "https://a.test".into();
        Case { origin, disallowed_by: vec![by.into()], allowed_by: Vec::new(), first: at, last: at, count: 1 }
    }

    #[test]
    fn reads_of_one_version_are_a_span_until_another_version_is_read() {
        let mut row = Row::default();
        for (version, at) in [("1", 10), ("1", 20), ("2", 30), ("1", 40), ("1", 50)] {
            row.read(&read(version, at));
        }
        let spans: Vec<_> = row.reads.iter().map(|read| (read.version.as_deref(), read.first, read.last)).collect();
        assert_eq!(spans, [(Some("1"), 10, 20), (Some("2"), 30, 30), (Some("1"), 40, 50)]);
    }

    #[test]
    fn requests_before_and_after_a_read_are_counted_separately() {
        let mut row = Row::default();
        row.disallow(&case("2", 10));
        row.disallow(&case("2", 20));
        row.read(&read("2", 30));
        row.disallow(&case("2", 40));
        // Another fetch of the same version does not separate requests.
        row.read(&read("2", 50));
        row.disallow(&case("2", 60));
        let cases: Vec<_> = row.cases.iter().map(|case| (case.first, case.last, case.count)).collect();
        assert_eq!(cases, [(10, 20, 2), (40, 60, 2)]);
        // A request in the same second as a fetch gets a separate case.
        let mut row_of_a_second = Row::default();
        row_of_a_second.read(&read("2", 10));
        [10, 10, 15, 16].iter().for_each(|at| row_of_a_second.disallow(&case("2", *at)));
        let of_a_second: Vec<_> =
            row_of_a_second.cases.iter().map(|case| (case.first, case.last, case.count)).collect();
        assert_eq!(of_a_second, [(10, 10, 2), (15, 16, 2)]);
        // The result must not depend on how the counts are split between workers.
        let mut pieces = Row::default();
        let mut piece = |fill: &dyn Fn(&mut Row)| {
            let mut piece = Row::default();
            fill(&mut piece);
            pieces.merge(&piece);
        };
        piece(&|row| row.disallow(&case("2", 10)));
        piece(&|row| {
            row.disallow(&case("2", 20));
            row.read(&read("2", 30));
            row.disallow(&case("2", 40));
        });
        piece(&|row| {
            row.read(&read("2", 50));
            row.disallow(&case("2", 60));
        });
        assert_eq!(pieces, row);
    }

    #[test]
    fn every_list_has_a_bound_and_loses_no_count() {
        let mut row = Row::default();
        for number in 0..1000 {
            let name = number.to_string();
            row.read(&ReadSpan { origin: name.clone(), ..read("1", number) });
            row.disallow(&Case { origin: name.clone(), ..case("1", number) });
            row.add_hits(&LineHits { version: "1".into(), line: number as usize + 1, pattern: name, hits: 1 });
        }
        assert!(row.reads.len() <= MAX_SPANS + 1 && row.cases.len() <= MAX_SPANS + 1);
        assert!(row.lines.len() <= MAX_LINES + 1);
        assert_eq!(row.reads.iter().map(|read| read.count).sum::<u64>(), 1000);
        assert_eq!(row.cases.iter().map(|case| case.count).sum::<u64>(), 1000);
        assert_eq!(row.lines.iter().map(|line| line.hits).sum::<u64>(), 1000);
    }

    #[test]
    fn a_written_date_is_read_back_as_the_same_day() {
        let at = 1_795_336_721;
        assert_eq!((written(at), date_of(at)), ("2026-11-22T08:38:41Z".to_owned(), "2026-11-22".to_owned()));
        assert_eq!(parse_day("2026-11-22"), Some(day_of(at)));
        for wrong in ["", "2026-13-01", "2026-11-22T", "now.jsonl.", "+026-11-22"] {
            assert_eq!(parse_day(wrong), None, "{wrong}");
        }
    }
}
