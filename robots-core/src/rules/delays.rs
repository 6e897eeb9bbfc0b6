//! The values of crawl-delay, request-rate and visit-time lines. These lines limit how often and at
//! what time of day a crawler may fetch pages.

use std::cmp::Reverse;
use std::time::Duration;

use super::document::{DelayRecord, Group, Name, RobotsTxt};

/// The value of a request-rate line. For example, `1/10m 1300-1659` means one page per ten minutes,
/// from 13:00 to 16:59 GMT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestRate {
    /// Number of pages that may be fetched per [`period`](Self::period); at least 1.
    pub pages: u32,
    /// Length of the period; never zero.
    pub period: Duration,
    /// Part of the day when pages may be fetched; `None` for the whole day.
    pub window: Option<TimeWindow>,
}

/// A part of the day in GMT, as in a visit-time line (`0600-0845`). If the end is before the
/// beginning, the window spans midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimeWindow {
    /// Beginning of the window, in minutes since midnight GMT; below 1,440.
    pub from: u16,
    /// End of the window, in minutes since midnight GMT; below 1,440.
    pub to: u16,
}

impl RequestRate {
    /// Parses a number of pages, a slash and a duration with the unit `s`, `m` or `h`. A duration
    /// without a unit is in seconds. A part of the day may follow, with or without square brackets.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (rate, window) = value.split_at(memchr::memchr3(b' ', b'\t', b'[', value).unwrap_or(value.len()));
        let window = match window.trim_ascii() {
            [] => None,
            [b'[', inside @ .., b']'] => Some(TimeWindow::parse(inside.trim_ascii())?),
            bare => Some(TimeWindow::parse(bare)?),
        };
        let (pages, time) = rate.split_at(memchr::memchr(b'/', rate)?);
        let (time, unit) = match &time[1..] {
            [time @ .., b's' | b'S'] => (time, 1),
            [time @ .., b'm' | b'M'] => (time, 60),
            [time @ .., b'h' | b'H'] => (time, 3600),
            time => (time, 1),
        };
        let (pages, time) = (number(pages)?, number(time)?);
        let period = Duration::from_secs(u64::from(time) * unit);
        (pages > 0 && time > 0).then_some(Self { pages, period, window })
    }
}

impl TimeWindow {
    /// Parses two times of day with four digits each and a hyphen between them.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (from, to) = value.split_at(memchr::memchr(b'-', value)?);
        Some(Self { from: time_of_day(from)?, to: time_of_day(&to[1..])? })
    }
}

fn time_of_day(text: &[u8]) -> Option<u16> {
    let digits = number(text.trim_ascii()).filter(|_| text.trim_ascii().len() == 4)?;
    let (hours, minutes) = (digits / 100, digits % 100);
    // 24:00 is accepted as 00:00, because some people write it for the end of the day.
    let total = hours * 60 + minutes;
    (minutes < 60 && total <= 24 * 60).then_some((total % (24 * 60)) as u16)
}

fn number(digits: &[u8]) -> Option<u32> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}

/// The crawl delay of an agent, and the line of the file that sets it.
///
/// If several lines apply, a crawler should obey the longest delay
/// ([`AgentRules`](super::AgentRules)). A server enforces the shortest delay, because it must not
/// refuse a crawler that obeys at least one of the lines. A line with a delay of 0 has no effect.
#[derive(Clone, Copy)]
pub struct CrawlDelay<'r> {
    pub(super) document: &'r RobotsTxt,
    pub(super) record: &'r DelayRecord,
    /// Index of the user-agent line that matches the agent, among all user-agent lines of the
    /// document.
    pub(super) name: usize,
}

impl<'r> CrawlDelay<'r> {
    /// Maximum interval that a server enforces. A server treats a longer delay like this interval.
    pub const MAX_ENFORCED: Duration = Duration::from_secs(30);

    /// Returns the time between two requests as written in the file: above zero, without an upper
    /// limit.
    pub const fn interval(&self) -> Duration {
        self.record.interval
    }

    /// Returns the interval that a server enforces, at most [`MAX_ENFORCED`](Self::MAX_ENFORCED).
    pub fn enforced_interval(&self) -> Duration {
        self.interval().min(Self::MAX_ENFORCED)
    }

    /// Returns the line number of the delay.
    pub const fn line(&self) -> usize {
        self.record.line
    }

    /// Returns the group that contains the delay's line.
    pub fn group(&self) -> Group<'r> {
        self.document.group(self.record.group)
    }

    /// Returns the `User-agent` value that names the agent in [`group`](Self::group): the first
    /// value with the agent's token, or `*`.
    pub fn name(&self) -> Name<'r> {
        self.document.name(self.name)
    }
}

/// The delay that a server enforces for a set of groups: the shortest one in these groups.
#[derive(Clone, Copy)]
pub(super) struct SetDelay {
    pub(super) record: DelayRecord,
    /// Index of the delay's group within the set. [`RuleSet`](super::RuleSet) stores one matching
    /// name for each group in the same order, so this index also finds the name.
    pub(super) place: usize,
}

crate::debug_as!(|it| CrawlDelay::<'_> { interval: it.interval(), line: it.line() });

/// Returns the shortest delay in each set of groups, or an empty list if the file has no delays.
/// Ignores lines that end after the first `limit` bytes.
pub(super) fn by_set(document: &RobotsTxt, limit: usize, sets: &[Vec<usize>]) -> Vec<Option<SetDelay>> {
    let lines = document.delays();
    if lines.is_empty() {
        return Vec::new();
    }
    let mut of_group: Vec<Option<DelayRecord>> = vec![None; document.groups().len()];
    for line in lines.iter().filter(|line| line.end <= limit) {
        let shortest = &mut of_group[line.group];
        if shortest.is_none_or(|known| line.interval < known.interval) {
            *shortest = Some(*line);
        }
    }
    let of_set = |set: &Vec<usize>| {
        let delays = set.iter().enumerate();
        let delays = delays.filter_map(|(place, group)| Some(SetDelay { record: of_group[*group]?, place }));
        // `min_by_key` returns the first of several equal delays.
        delays.min_by_key(|delay| delay.record.interval)
    };
    sets.iter().map(of_set).collect()
}

/// Returns the longest delay in a set of groups, and the index of its group within the set. Ignores
/// lines that end after the first `limit` bytes.
pub(super) fn longest<'r>(document: &'r RobotsTxt, limit: usize, set: &[usize]) -> Option<(&'r DelayRecord, usize)> {
    let lines = document.delays().iter().filter(|line| line.end <= limit);
    let of_set = lines.filter_map(|line| Some((line, set.binary_search(&line.group).ok()?)));
    of_set.max_by_key(|(line, _)| (line.interval, Reverse(line.line)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Fallback, ProductToken, Reading, RobotsTxt};

    #[test]
    fn a_request_rate_has_pages_a_period_and_an_optional_time_window() {
        for (value, want) in [
            ("1/5", Some((1, 5, None))),
            ("1/10m", Some((1, 600, None))),
            ("2/1h", Some((2, 3600, None))),
            ("30/1M 1300-1659", Some((30, 60, Some("1300-1659")))),
            ("1/10s [1300-1659]", Some((1, 10, Some("1300-1659")))),
            ("1/10[ 2200-0600 ]", Some((1, 10, Some("2200-0600")))),
            ("1/4294967295h", Some((1, 4_294_967_295 * 3600, None))),
            ("1", None),
            ("1/", None),
            ("/5", None),
            ("0/5", None),
            ("1/0", None),
            ("1/5d", None),
            ("1.5/5", None),
            ("1/5 soon", None),
            ("1/5 [1300-1659", None),
            ("99999999999/1", None),
            ("", None),
        ] {
            let found = RequestRate::parse(value.as_bytes());
            let found = found.map(|rate| (rate.pages, rate.period.as_secs(), rate.window));
            let want = want.map(|(pages, seconds, window)| {
                (pages, seconds, window.and_then(|window: &str| TimeWindow::parse(window.as_bytes())))
            });
            assert_eq!(found, want, "{value}");
        }
    }

    #[test]
    fn a_time_window_is_two_times_of_four_digits() {
        for (value, want) in [
            ("0600-0845", Some((360, 525))),
            ("0000 - 2400", Some((0, 0))),
            ("600-845", None),
            ("0660-0845", None),
            ("2401-0845", None),
            ("06:00-08:45", None),
            ("0600", None),
            ("", None),
        ] {
            let found = TimeWindow::parse(value.as_bytes());
            assert_eq!(found.map(|window| (window.from, window.to)), want, "{value}");
        }
    }

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
    fn the_shortest_of_several_delays_counts_and_zero_is_ignored() {
        let file = b"User-agent: a\nCrawl-delay: 20\nCrawl-delay: 0\nCrawl-delay: soon\nDisallow:\n\nUser-agent: a\n\
                     Crawl-delay: 10\nCrawl-delay: 30\n";
        assert_eq!(delay(file, "a"), found(10.0, 8, "a"));
        assert_eq!(delay(b"User-agent: a\nCrawl-delay: 0\n", "a"), None);
        assert_eq!(delay(b"Crawl-delay: 3\nUser-agent: a\nDisallow:\n", "a"), None, "before the first group");
    }

    #[test]
    fn a_delay_past_the_byte_limit_is_ignored() {
        let mut file = b"User-agent: a\n#".to_vec();
        file.resize(Reading::STANDARD_LIMIT - 5, b'x');
        file.extend(b"\nCrawl-delay: 10\n");
        assert_eq!(delay(&file, "a"), None);
    }
}
