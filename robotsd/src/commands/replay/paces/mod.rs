//! Requests that a server would have found to come too soon: as the layer counts, with the same policy, keys and buckets.
//!
//! Whether a request comes too soon depends on those before it, while chunks of a log are counted apart. So a chunk notes what
//! is limited by a delay ([`PaceNotes`]), and when it joins those before it, its requests are put in the order of their times
//! ([`time_order`]) and take from the buckets of their senders ([`PaceCounts`]).

mod time_order;

use std::borrow::Cow;
use std::collections::HashMap;
use std::mem;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use serde::{Serialize, Serializer};
use tower_robots::agent::{Agent, Identity};
use tower_robots::policy::{Decision, Pace, Policy, RateMode};
use tower_robots::rate::{NetworkBuckets, Quota, RateKey, RateSender, SiteBuckets};
use tower_robots::rules::{ProductToken, RuleSet};

use self::time_order::{InOrder, TimeOrder};
use crate::html::{counted, grouped};

/// Names that may be made up with a count of their own, in the order of the log; the rest share one.
const UNKNOWN_NAMES: usize = 1024;

/// The name of the rest.
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

    /// Once all is counted. Requests of impostors of these crawlers count as those of the crawlers: the log may not hold the addresses
    /// of clients. They share a bucket, as all whose address is not known do.
    pub(crate) fn conclude(&mut self, suspects: &[String]) {
        self.order.finish(&mut |next| self.judge.take_next(next));
        self.judge.by_name.clear();
        for mut count in mem::take(&mut self.judge.counts) {
            if count.senders == PacedSenders::Impostors && suspects.contains(&count.crawler) {
                (count.senders, count.paced.without_address) = (PacedSenders::Own, count.paced.requests);
            }
            let at = self.judge.count_like(PaceCount { paced: PacedRequests::default(), ..count.clone() });
            self.judge.counts[at].paced += count.paced;
        }
    }

    /// Those of which requests came too soon, the most first.
    pub(crate) fn sorted(&self) -> Vec<&PaceCount> {
        let mut counts: Vec<_> = self.judge.counts.iter().filter(|count| count.paced.too_soon > 0).collect();
        counts.sort_by_key(|count| (std::cmp::Reverse(count.paced.too_soon), &count.crawler, count.senders));
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
        let (table, counts, count_of, by_name) = Default::default();
        let (buckets, now) = (new_buckets(), Duration::ZERO);
        Self { burst, table, counts, count_of, by_name, unknown_names: 0, buckets, now, other_logs: 0 }
    }

    /// The number of a limit that a chunk has noted.
    fn limit(&mut self, mut limit: LoggedLimit) -> usize {
        if let Some(known) = self.table.numbers.get(&limit) {
            return *known;
        }
        if !limit.is_known && !self.by_name.contains_key(&(limit.count.crawler.clone(), limit.count.senders)) {
            if self.unknown_names >= UNKNOWN_NAMES {
                limit.count.crawler = OTHERS.to_owned();
                if let Some(known) = self.table.numbers.get(&limit) {
                    return *known;
                }
            } else {
                self.unknown_names += 1;
            }
        }
        let count = self.count_like(limit.count.clone());
        self.count_of.push(count);
        self.table.number(limit)
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
                self.buckets = new_buckets();
            }
        }
    }

    fn take(&mut self, noted: &NotedRequests) {
        let limit = &self.table.limits[noted.limit];
        let count = &mut self.counts[self.count_of[noted.limit]];
        let quota = Quota::new(limit.count.interval, self.burst);
        let key = RateKey { token: limit.token.as_ref(), sender: noted.sender };
        // A request that comes too soon takes nothing, so all after it in the same moment come too soon.
        let passed = (0..noted.requests).take_while(|_| self.buckets.take(&key, quota, self.now).is_ok()).count();
        let (requests, too_soon) = (u64::from(noted.requests), u64::from(noted.requests) - passed as u64);
        count.paced += PacedRequests {
            requests,
            too_soon,
            refused: if limit.mode == RateMode::Refuse { too_soon } else { 0 },
            without_address: if noted.sender == RateSender::Claimed(None) { requests } else { 0 },
        };
    }
}

/// With nothing taken. A log that is read twice has the same counts.
fn new_buckets() -> SiteBuckets {
    SiteBuckets::new(0, Arc::new(NetworkBuckets::reproducible()))
}

/// The senders of requests under the name of a crawler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PacedSenders {
    /// The crawler itself, as far as is known.
    Own,
    Impostors,
}

/// How many requests of a crawler, or of its impostors, came too soon.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct PaceCount {
    #[serde(rename = "name")]
    pub(crate) crawler: String,
    pub(crate) senders: PacedSenders,
    #[serde(flatten)]
    pub(crate) paced: PacedRequests,
    /// The delay as written, as it is enforced, and its line in the last of the files.
    #[serde(rename = "seconds", serialize_with = "in_seconds")]
    pub(crate) asked: Duration,
    #[serde(rename = "enforced_seconds", serialize_with = "in_seconds")]
    pub(crate) interval: Duration,
    pub(crate) line: usize,
}

/// Requests that a delay is about: allowed ones, but for parts of pages and robots.txt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, derive_more::AddAssign)]
pub(crate) struct PacedRequests {
    pub(crate) requests: u64,
    pub(crate) too_soon: u64,
    /// Of those that came too soon, how many a server with the settings of the site answers with 429.
    pub(crate) refused: u64,
    /// Those whose client's address the log lacks: they count together.
    pub(crate) without_address: u64,
}

/// A delay that is enforced, and for whom.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct LoggedLimit {
    /// The delay and the crawler to which it applies; nothing is counted in it.
    count: PaceCount,
    /// Whether that is a name of the registry or of the file, or a class. There may be any number of others.
    is_known: bool,
    /// The token whose requests count together; `None` for all names that may be made up.
    token: Option<ProductToken>,
    mode: RateMode,
}

/// Limits by number.
#[derive(Debug, Default)]
struct LimitTable {
    limits: Vec<LoggedLimit>,
    numbers: HashMap<LoggedLimit, usize, RandomState>,
}

/// The name that the limits of an agent are counted under, and whether it is no name that anybody can make up.
fn paced_name<'a>(agent: &'a Agent, rules: &RuleSet) -> (Cow<'a, str>, bool) {
    let is_registered = agent.is_registered();
    match (agent.crawler(), agent.tokens().first()) {
        (Some(name), _) => (name.into(), is_registered || rules.names(&ProductToken::new(name))),
        (None, Some(token)) => (token.to_string().into(), is_registered || rules.names(token)),
        (None, None) => (agent.class().as_str().into(), true),
    }
}

impl PaceCount {
    /// As in `1,204 of 3,000 requests came faster than its Crawl-delay of 10 s allows`.
    pub(crate) fn sentence(&self) -> String {
        let of_whom = if self.senders == PacedSenders::Own { "" } else { " of impostors" };
        let PacedRequests { requests, too_soon, refused, .. } = self.paced;
        let seconds = self.asked.as_secs_f64();
        let (soon, requests) = (grouped(too_soon), counted(requests, "request"));
        let mut sentence =
            format!("{soon} of {requests}{of_whom} came faster than its Crawl-delay of {seconds} s allows");
        if self.interval < self.asked {
            sentence += &format!(", of which {} s are enforced", self.interval.as_secs_f64());
        }
        match refused {
            0 => {}
            refused if refused == too_soon => sentence += ": answered with 429",
            refused => sentence += &format!(": {} answered with 429", grouped(refused)),
        }
        sentence
    }
}

fn in_seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

impl LimitTable {
    /// The number of a limit, which is a new one where it is not known.
    fn number(&mut self, limit: LoggedLimit) -> usize {
        if let Some(known) = self.numbers.get(&limit) {
            return *known;
        }
        self.numbers.insert(limit.clone(), self.limits.len());
        self.limits.push(limit);
        self.limits.len() - 1
    }
}

/// Of one chunk, in the order of its lines.
#[derive(Debug, Default)]
pub(crate) struct PaceNotes {
    table: LimitTable,
    notes: Vec<(i64, NotedRequests)>,
}

/// Requests of one sender in a second, that stand together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NotedRequests {
    /// The number of the limit.
    limit: usize,
    sender: RateSender,
    requests: u32,
}

/// A request of a log, as far as limiting goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacedLogLine<'a> {
    pub(crate) agents: &'a [Agent],
    /// Of the file that is judged.
    pub(crate) rules: &'a RuleSet,
    pub(crate) identity: Identity,
    /// That of the client, where the log has it: a truncated one tells senders apart as well.
    pub(crate) address: Option<IpAddr>,
    pub(crate) target: &'a [u8],
    pub(crate) time: i64,
}

impl PaceNotes {
    /// Notes a request, if this decision, which believes the identity, applies a delay to it.
    pub(crate) fn note(&mut self, decision: &Decision<'_>, line: &PacedLogLine<'_>) {
        let Some(pace) = decision.pace else { return };
        let Some(agent) = line.agents.get(pace.agent) else { return };
        if Pace::is_for_asset(line.target) {
            return;
        }
        let sender = RateSender::of(line.identity, || line.address);
        let senders = if sender == RateSender::Refuted { PacedSenders::Impostors } else { PacedSenders::Own };
        let is_named = |token: &ProductToken| pace.is_known && line.rules.names(token);
        let Some(key) = RateKey::of(agent, sender, is_named) else { return };
        let (name, is_known) = paced_name(agent, line.rules);
        let (crawler, asked, paced) = (name.into_owned(), pace.delay.interval(), PacedRequests::default());
        let count = PaceCount { crawler, senders, paced, asked, interval: pace.interval, line: pace.delay.line() };
        let limit = self.table.number(LoggedLimit { count, is_known, token: key.token.cloned(), mode: pace.mode });
        match self.notes.last_mut() {
            Some((time, last)) if *time == line.time && (last.limit, last.sender) == (limit, sender) => {
                last.requests += 1;
            }
            _ => self.notes.push((line.time, NotedRequests { limit, sender, requests: 1 })),
        }
    }
}

#[cfg(test)]
mod tests;
