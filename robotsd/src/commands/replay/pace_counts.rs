//! Requests that came sooner than the delay of their crawler's groups lets them.
//!
//! Whether one did depends on those before it, while chunks of a log are counted apart. So a chunk notes only when requests
//! came, and they are judged when it joins those before it, in their order.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::Duration;

use foldhash::fast::RandomState;
use tower_robots::rate::{Bucket, Quota};

/// Crawlers whose requests are judged. Names can be made up: the rest are not.
const MOST: usize = 1024;

/// A time so much earlier than the one before belongs to another log.
const EARLIER: i64 = 60;

/// The delay of a crawler's groups, and its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoggedDelay {
    pub(super) interval: Duration,
    pub(super) line: usize,
    /// Requests that pass at once after a pause.
    pub(super) burst: NonZeroU32,
}

/// Counts by crawler.
#[derive(Debug, Default)]
pub(super) struct PaceCounts {
    /// Of one chunk.
    noted: HashMap<String, NotedTimes, RandomState>,
    judged: HashMap<String, PaceCount, RandomState>,
}

/// When requests came, in seconds since 1970, and how many at that time.
#[derive(Debug)]
struct NotedTimes {
    delay: LoggedDelay,
    times: Vec<(i64, u32)>,
}

/// How many requests of a crawler came too soon.
#[derive(Debug)]
pub(super) struct PaceCount {
    pub(super) delay: LoggedDelay,
    pub(super) requests: u64,
    pub(super) too_soon: u64,
    bucket: Bucket,
    last: i64,
}

impl PaceCounts {
    /// Notes a request that the delay is about.
    pub(super) fn note(&mut self, crawler: &str, delay: LoggedDelay, time: i64) {
        if !self.noted.contains_key(crawler) {
            if self.noted.len() >= MOST {
                return;
            }
            self.noted.insert(crawler.to_owned(), NotedTimes { delay, times: Vec::new() });
        }
        let Some(noted) = self.noted.get_mut(crawler) else { return };
        match noted.times.last_mut() {
            Some((last, count)) if *last == time => *count += 1,
            _ => noted.times.push((time, 1)),
        }
    }

    /// Judges what the next chunk has noted.
    pub(super) fn join(&mut self, next: Self) {
        for (crawler, NotedTimes { delay, times }) in next.noted {
            if !self.judged.contains_key(&crawler) && self.judged.len() >= MOST {
                continue;
            }
            let count = self.judged.entry(crawler).or_insert_with(|| PaceCount::new(delay));
            times.into_iter().for_each(|(time, requests)| count.add(time, requests));
        }
    }

    /// Those of which requests came too soon, the most first.
    pub(super) fn sorted(&self) -> Vec<(&str, &PaceCount)> {
        let mut counts: Vec<_> = self.judged.iter().map(|(name, count)| (name.as_str(), count)).collect();
        counts.retain(|(_, count)| count.too_soon > 0);
        counts.sort_by(|a, b| b.1.too_soon.cmp(&a.1.too_soon).then_with(|| a.0.cmp(b.0)));
        counts
    }
}

impl PaceCount {
    fn new(delay: LoggedDelay) -> Self {
        Self { delay, requests: 0, too_soon: 0, bucket: Bucket::default(), last: i64::MIN }
    }

    fn add(&mut self, time: i64, requests: u32) {
        if time < self.last.saturating_sub(EARLIER) {
            self.bucket = Bucket::default();
        }
        self.last = time;
        let quota = Quota::new(self.delay.interval, self.delay.burst);
        let now = Duration::from_secs(time.try_into().unwrap_or(0));
        self.requests += u64::from(requests);
        self.too_soon += (0..requests).map(|_| u64::from(self.bucket.take(quota, now).is_err())).sum::<u64>();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: LoggedDelay =
        LoggedDelay { interval: Duration::from_secs(10), line: 2, burst: NonZeroU32::new(2).expect("above zero") };

    /// Requests and those that came too soon, of times in so many chunks.
    fn counted(times: &[i64], chunks: usize) -> (u64, u64) {
        let mut all = PaceCounts::default();
        for chunk in times.chunks(times.len().div_ceil(chunks)) {
            let mut next = PaceCounts::default();
            chunk.iter().for_each(|time| next.note("a", DELAY, *time));
            all.join(next);
        }
        let count = &all.judged["a"];
        (count.requests, count.too_soon)
    }

    #[test]
    fn what_is_counted_does_not_depend_on_the_chunks() {
        let times: Vec<i64> = (0..30).map(|number| 1_700_000_000 + number).collect();
        for chunks in [1, 2, 7, 30] {
            // A burst of two, and two more in the rest of the thirty seconds.
            assert_eq!(counted(&times, chunks), (30, 26), "{chunks}");
        }
    }

    #[test]
    fn those_that_keep_the_delay_are_never_too_soon() {
        let times: Vec<i64> = (0..30).map(|number| 1_700_000_000 + 10 * number).collect();
        assert_eq!(counted(&times, 3), (30, 0));
        // Another log, of the day before.
        let both: Vec<i64> = times.iter().copied().chain(times.iter().map(|time| time - 86_400)).collect();
        assert_eq!(counted(&both, 4), (60, 0));
    }

    #[test]
    fn crawlers_are_bounded_whatever_they_are_called() {
        let mut all = PaceCounts::default();
        for chunk in 0..3 {
            let mut next = PaceCounts::default();
            (0..MOST).for_each(|number| next.note(&format!("bot-{chunk}-{number}"), DELAY, 1));
            all.join(next);
        }
        assert_eq!(all.judged.len(), MOST);
    }
}
