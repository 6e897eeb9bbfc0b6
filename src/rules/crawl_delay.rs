//! The delay of the groups that an agent obeys.

use std::fmt;
use std::time::Duration;

use super::document::{DelayRecord, Group, Name, RobotsTxt};

/// How long an agent shall wait between two requests, and the line that says so.
///
/// Of several lines in the groups that apply the shortest counts, so that a crawler that obeys any one of them obeys this
/// one. A line with 0 says nothing.
#[derive(Clone, Copy)]
pub struct CrawlDelay<'r> {
    document: &'r RobotsTxt,
    record: &'r DelayRecord,
    /// The name that makes the line's group one for the agent.
    name: usize,
}

impl<'r> CrawlDelay<'r> {
    pub(super) const fn new(document: &'r RobotsTxt, record: &'r DelayRecord, name: usize) -> Self {
        Self { document, record, name }
    }

    /// The longest interval that requests are held to. Some crawlers leave a site that has a longer one.
    pub const LONGEST_ENFORCED: Duration = Duration::from_secs(30);

    /// The time from one request to the next, above zero, as written: it may be days.
    #[must_use]
    pub const fn interval(&self) -> Duration {
        self.record.interval
    }

    /// The interval that requests are held to: [`LONGEST_ENFORCED`](Self::LONGEST_ENFORCED) at most.
    #[must_use]
    pub fn enforced_interval(&self) -> Duration {
        self.interval().min(Self::LONGEST_ENFORCED)
    }

    /// The line it stands on.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.record.line
    }

    /// The group it stands in.
    #[must_use]
    pub fn group(&self) -> Group<'r> {
        self.document.group(self.record.group)
    }

    /// The name that makes the group one for the agent: the first in it that stands for its token, or `*`.
    #[must_use]
    pub fn name(&self) -> Name<'r> {
        self.document.name(self.name)
    }
}

/// The delay of a set of groups.
#[derive(Clone, Copy)]
pub(super) struct SetDelay {
    pub(super) record: DelayRecord,
    /// The place of its group in the set: names are at the same place, so that no request looks for its own.
    pub(super) place: usize,
}

/// A time in seconds and their fraction, as in `10 s` and `0.5 s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seconds(pub Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", self.0.as_secs_f64())
    }
}

impl fmt::Debug for CrawlDelay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrawlDelay").field("interval", &self.interval()).field("line", &self.line()).finish()
    }
}

/// The delay that counts for each set of groups: the shortest of its lines that end within the octets that are read.
pub(super) fn by_set(document: &RobotsTxt, limit: usize, sets: &[Vec<usize>]) -> Vec<Option<SetDelay>> {
    let lines = document.delays();
    if lines.is_empty() {
        // Nearly every file.
        return Vec::new();
    }
    let mut of_group: Vec<Option<DelayRecord>> = vec![None; document.groups().len()];
    for line in lines.iter().filter(|line| line.end <= limit) {
        shorten(&mut of_group[line.group], line);
    }
    let of_set = |set: &Vec<usize>| {
        let delays = set.iter().enumerate();
        let delays = delays.filter_map(|(place, group)| Some(SetDelay { record: of_group[*group]?, place }));
        // The first of those that are equal.
        delays.min_by_key(|delay| delay.record.interval)
    };
    sets.iter().map(of_set).collect()
}

fn shorten(shortest: &mut Option<DelayRecord>, line: &DelayRecord) {
    if shortest.is_none_or(|known| line.interval < known.interval) {
        *shortest = Some(*line);
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::{Fallback, ProductToken, Reading, RobotsTxt, STANDARD_LIMIT};

    fn delay(file: &[u8], token: &str) -> Option<(f64, usize, String)> {
        let rules = RobotsTxt::parse(file).compile(Reading::Standard);
        let delay = rules.select(&[ProductToken::new(token)], Fallback::Star).crawl_delay()?;
        let name = String::from_utf8_lossy(delay.name().value()).into_owned();
        assert!(delay.group().names().any(|known| known.value() == delay.name().value()));
        Some((delay.interval().as_secs_f64(), delay.line(), name))
    }

    fn found(seconds: f64, line: usize, name: &str) -> Option<(f64, usize, String)> {
        Some((seconds, line, name.to_owned()))
    }

    #[test]
    fn an_agent_gets_the_delay_of_its_own_group() {
        let file = b"User-agent: *\nCrawl-delay: 5\nDisallow:\n\nUser-agent: a\nUser-agent: B/1\nCrawl-delay: 0.5\n\
                     Disallow: /x\n\nUser-agent: c\nDisallow: /y\n";
        assert_eq!(delay(file, "a"), found(0.5, 7, "a"));
        assert_eq!(delay(file, "b"), found(0.5, 7, "B/1"));
        assert_eq!(delay(file, "other"), found(5.0, 2, "*"));
        assert_eq!(delay(file, "c"), None, "a group without a delay switches that of the star off");
    }

    #[test]
    fn of_several_lines_the_shortest_counts_and_zero_says_nothing() {
        let file = b"User-agent: a\nCrawl-delay: 20\nCrawl-delay: 0\nCrawl-delay: soon\nDisallow:\n\nUser-agent: a\n\
                     Crawl-delay: 10\nCrawl-delay: 30\n";
        assert_eq!(delay(file, "a"), found(10.0, 8, "a"));
        assert_eq!(delay(b"User-agent: a\nCrawl-delay: 0\n", "a"), None);
        assert_eq!(delay(b"Crawl-delay: 3\nUser-agent: a\nDisallow:\n", "a"), None, "before the first group");
    }

    #[test]
    fn a_delay_behind_the_octets_that_count_is_not_read() {
        let mut file = b"User-agent: a\n#".to_vec();
        file.resize(STANDARD_LIMIT - 5, b'x');
        file.extend(b"\nCrawl-delay: 10\n");
        assert_eq!(delay(&file, "a"), None);
    }
}
