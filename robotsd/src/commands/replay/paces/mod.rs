//! Requests that a server would have found to come too soon: as the layer counts, with the same policy, keys and buckets.
//!
//! Whether a request comes too soon depends on those before it, while chunks of a log are counted apart. So a chunk notes what
//! is held to a delay ([`PaceNotes`]), and when it joins those before it, its requests are put in the order of their times
//! ([`time_order`]) and take from the buckets of their senders ([`PaceCounts`]).

mod limit;
mod time_order;

use std::collections::HashMap;
use std::mem;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use tower_robots::policy::{Policy, RateMode};
use tower_robots::rate::{NetworkBuckets, Quota, RateKey, RateSender, SiteBuckets};

use self::limit::{LimitTable, LoggedLimit, NotedRequests, PacedRequests};
use self::time_order::{InOrder, TimeOrder};

pub(super) use self::limit::{PaceCount, PaceNotes, PacedLogLine, PacedSenders};

/// Names that may be made up with a count of their own, in the order of the log; the rest share one.
const UNKNOWN_NAMES: usize = 1024;

/// What the rest is called.
const OTHERS: &str = "other crawlers";

/// Counts of all chunks until now.
#[derive(Debug)]
pub(crate) struct PaceCounts {
    order: TimeOrder<NotedRequests>,
    inputs: usize,
    judge: PaceJudge,
}

/// Takes requests from buckets, in the order of their times.
#[derive(Debug)]
struct PaceJudge {
    burst: NonZeroU32,
    table: LimitTable,
    counts: Vec<PaceCount>,
    /// The count of each limit.
    count_of: Vec<usize>,
    by_name: HashMap<(String, PacedSenders), usize, RandomState>,
    unknown_names: usize,
    buckets: SiteBuckets,
    /// For those that are doubted.
    doubted: SiteBuckets,
    /// The latest time.
    now: Duration,
    /// How often times began anew.
    other_logs: usize,
}

impl PaceCounts {
    pub(crate) fn new(burst: NonZeroU32) -> Self {
        Self { order: TimeOrder::default(), inputs: 0, judge: PaceJudge::new(burst) }
    }

    /// The next chunk is the first of an input.
    pub(crate) const fn begin_input(&mut self) {
        self.inputs += 1;
        self.order.begin_input();
    }

    /// Whether times begin anew more often than inputs do, as in a log whose latest line comes first.
    pub(crate) const fn is_out_of_order(&self) -> bool {
        self.judge.other_logs > self.inputs
    }

    /// Judges what the next chunk has noted.
    pub(crate) fn join(&mut self, next: PaceNotes) {
        let PaceNotes { table, notes } = next;
        let limits: Vec<usize> = table.limits.into_iter().map(|limit| self.judge.limit(limit)).collect();
        for (time, noted) in notes {
            let noted = NotedRequests { limit: limits[noted.limit], ..noted };
            self.order.add(time, noted, &mut |next| self.judge.take_next(next));
        }
    }

    /// Once all is counted. What impostors of these crawlers did counts as what the crawlers did: the log may not hold the addresses of
    /// clients.
    pub(crate) fn conclude(&mut self, suspects: &[String]) {
        self.order.finish(&mut |next| self.judge.take_next(next));
        let mut counts = mem::take(&mut self.judge.counts);
        counts.retain(|count| match count.senders {
            PacedSenders::Own => true,
            PacedSenders::Impostors => !suspects.contains(&count.crawler),
            PacedSenders::Doubted => suspects.contains(&count.crawler),
        });
        self.judge.by_name.clear();
        for count in counts {
            let senders = if count.senders == PacedSenders::Doubted { PacedSenders::Own } else { count.senders };
            let at = self.judge.count_like(PaceCount { senders, paced: PacedRequests::default(), ..count.clone() });
            self.judge.counts[at].paced.add(count.paced);
        }
    }

    /// Those of which requests came too soon, the most first.
    pub(crate) fn sorted(&self) -> Vec<&PaceCount> {
        let mut counts: Vec<_> = self.judge.counts.iter().filter(|count| count.paced.too_soon > 0).collect();
        counts.sort_by(|a, b| {
            let by_name = || (&a.crawler, a.senders).cmp(&(&b.crawler, b.senders));
            b.paced.too_soon.cmp(&a.paced.too_soon).then_with(by_name)
        });
        counts
    }
}

impl Default for PaceCounts {
    fn default() -> Self {
        Self::new(Policy::DEFAULT_BURST)
    }
}

impl PaceJudge {
    fn new(burst: NonZeroU32) -> Self {
        Self {
            burst,
            table: LimitTable::default(),
            counts: Vec::new(),
            count_of: Vec::new(),
            by_name: HashMap::default(),
            unknown_names: 0,
            buckets: new_buckets(),
            doubted: new_buckets(),
            now: Duration::ZERO,
            other_logs: 0,
        }
    }

    /// The number of a limit that a chunk has noted.
    fn limit(&mut self, mut limit: LoggedLimit) -> usize {
        if let Some(known) = self.table.find(&limit) {
            return known;
        }
        if !limit.is_known && !self.by_name.contains_key(&(limit.count.crawler.clone(), limit.count.senders)) {
            if self.unknown_names >= UNKNOWN_NAMES {
                limit.count.crawler = OTHERS.to_owned();
                if let Some(known) = self.table.find(&limit) {
                    return known;
                }
            } else {
                self.unknown_names += 1;
            }
        }
        let count = self.count_like(limit.count.clone());
        self.count_of.push(count);
        self.table.insert(limit)
    }

    /// The number of the count for the same senders; this one where there is none.
    fn count_like(&mut self, count: PaceCount) -> usize {
        let next = self.counts.len();
        let at = *self.by_name.entry((count.crawler.clone(), count.senders)).or_insert(next);
        if at == next {
            self.counts.push(count);
        }
        at
    }

    fn take_next(&mut self, next: InOrder<NotedRequests>) {
        match next {
            InOrder::Item(time, noted) => {
                self.now = self.now.max(Duration::from_secs(time.try_into().unwrap_or(0)));
                self.take(&noted);
            }
            InOrder::OtherLog => {
                self.now = Duration::ZERO;
                self.other_logs += 1;
                for buckets in [&mut self.buckets, &mut self.doubted] {
                    *buckets = new_buckets();
                }
            }
        }
    }

    fn take(&mut self, noted: &NotedRequests) {
        let limit = &self.table.limits[noted.limit];
        let count = &mut self.counts[self.count_of[noted.limit]];
        let quota = Quota::new(limit.count.interval, self.burst);
        let key = RateKey { token: limit.token.as_ref(), sender: noted.sender };
        let buckets = if limit.count.senders == PacedSenders::Doubted { &self.doubted } else { &self.buckets };
        // What comes too soon takes nothing, so all after it in the same moment come too soon.
        let passed = (0..noted.requests).take_while(|_| buckets.take(&key, quota, self.now).is_ok()).count();
        let (requests, too_soon) = (u64::from(noted.requests), u64::from(noted.requests) - passed as u64);
        count.paced.add(PacedRequests {
            requests,
            too_soon,
            refused: if limit.mode == RateMode::Refuse { too_soon } else { 0 },
            without_address: if noted.sender == RateSender::Claimed(None) { requests } else { 0 },
        });
    }
}

/// With nothing taken. A log that is read twice has the same counts.
fn new_buckets() -> SiteBuckets {
    SiteBuckets::new(0, Arc::new(NetworkBuckets::reproducible()))
}

#[cfg(test)]
mod tests;
