//! What requests of a log are held to, and what a chunk notes of those that are held to a delay.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use foldhash::fast::RandomState;
use serde::{Serialize, Serializer};
use tower_robots::agent::{Agent, Identity};
use tower_robots::policy::{Decision, Pace, RateMode};
use tower_robots::rate::{RateKey, RateSender};
use tower_robots::rules::{ProductToken, RuleSet};

use crate::html::{counted, grouped};

/// Who sends requests under the name of a crawler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PacedSenders {
    /// The crawler itself, as far as is known.
    Own,
    Impostors,
    /// The impostors, judged as if they were only not known to be the crawler: that is what they are where the log does not hold
    /// the addresses of clients.
    Doubted,
}

/// How many requests of a crawler, or of its impostors, came too soon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct PacedRequests {
    pub(crate) requests: u64,
    pub(crate) too_soon: u64,
    /// Of those that came too soon, how many a server with the settings of the site answers with 429.
    pub(crate) refused: u64,
    /// Those whose client's address the log lacks: they count together.
    pub(crate) without_address: u64,
}
/// A delay that is enforced, and for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LoggedLimit {
    /// The delay and the crawler that is held to it; nothing is counted in it.
    pub(super) count: PaceCount,
    /// Whether that is a name of the registry or of the file, or a class. There may be any number of others.
    pub(super) is_known: bool,
    /// Whose requests count together; `None` for all names that may be made up.
    pub(super) token: Option<ProductToken>,
    pub(super) mode: RateMode,
}

/// Limits by number.
#[derive(Debug, Default)]
pub(super) struct LimitTable {
    pub(super) limits: Vec<LoggedLimit>,
    by_crawler: HashMap<String, Vec<usize>, RandomState>,
}

/// The name that the limits of an agent are counted under, and whether it is no name that anybody can make up.
pub(super) fn paced_name<'a>(agent: &'a Agent, rules: &RuleSet) -> (Cow<'a, str>, bool) {
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

impl PacedRequests {
    pub(super) const fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.too_soon += other.too_soon;
        self.refused += other.refused;
        self.without_address += other.without_address;
    }
}

impl LoggedLimit {
    /// Whether it is the one of a request with this pace and key.
    fn is_of(&self, senders: PacedSenders, key: &RateKey<'_>, pace: &Pace<'_>) -> bool {
        self.count.senders == senders
            && self.token.as_ref() == key.token
            && (self.count.interval, self.count.line, self.mode) == (pace.interval, pace.delay.line(), pace.mode)
    }
}

impl LimitTable {
    /// The number of the limit of a request that names this crawler.
    pub(super) fn of(
        &mut self,
        (name, is_known): (&str, bool),
        senders: PacedSenders,
        key: &RateKey<'_>,
        pace: &Pace<'_>,
    ) -> usize {
        let known = self.by_crawler.get(name).map(Vec::as_slice).unwrap_or_default();
        if let Some(known) = known.iter().find(|at| self.limits[**at].is_of(senders, key, pace)) {
            return *known;
        }
        let delay = pace.delay;
        let count = PaceCount {
            crawler: name.to_owned(),
            senders,
            paced: PacedRequests::default(),
            asked: delay.interval(),
            interval: pace.interval,
            line: delay.line(),
        };
        self.insert(LoggedLimit { count, is_known, token: key.token.cloned(), mode: pace.mode })
    }

    /// The number of a limit, if it is known.
    pub(super) fn find(&self, limit: &LoggedLimit) -> Option<usize> {
        self.by_crawler.get(&limit.count.crawler)?.iter().copied().find(|at| self.limits[*at] == *limit)
    }

    pub(super) fn insert(&mut self, limit: LoggedLimit) -> usize {
        let at = self.limits.len();
        match self.by_crawler.get_mut(&limit.count.crawler) {
            Some(known) => known.push(at),
            None => drop(self.by_crawler.insert(limit.count.crawler.clone(), vec![at])),
        }
        self.limits.push(limit);
        at
    }
}

/// Of one chunk, in the order of its lines.
#[derive(Debug, Default)]
pub(crate) struct PaceNotes {
    pub(super) table: LimitTable,
    pub(super) notes: Vec<(i64, NotedRequests)>,
}

/// Requests of one sender in a second, that stand together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotedRequests {
    /// The number of the limit.
    pub(super) limit: usize,
    pub(super) sender: RateSender,
    pub(super) requests: u32,
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
    /// Notes a request, if this decision, which believes the identity, holds it to a delay.
    pub(crate) fn note(&mut self, decision: &Decision<'_>, line: &PacedLogLine<'_>) {
        let sender = RateSender::of(line.identity, || line.address);
        let senders = if sender == RateSender::Refuted { PacedSenders::Impostors } else { PacedSenders::Own };
        self.note_as(senders, sender, decision, line);
    }

    /// Notes a request whose claim fails, with the decision about it if that says nothing: then its address is not known to be a
    /// client's.
    pub(crate) fn note_doubted(&mut self, decision: &Decision<'_>, line: &PacedLogLine<'_>) {
        self.note_as(PacedSenders::Doubted, RateSender::Claimed(None), decision, line);
    }

    fn note_as(&mut self, senders: PacedSenders, sender: RateSender, decision: &Decision<'_>, line: &PacedLogLine<'_>) {
        let Some(pace) = decision.pace else { return };
        let Some(agent) = line.agents.get(pace.agent) else { return };
        if Pace::is_for_asset(line.target) {
            return;
        }
        let is_named = |token: &ProductToken| pace.is_known && line.rules.names(token);
        let Some(key) = RateKey::of(agent, sender, is_named) else { return };
        let (name, is_known) = paced_name(agent, line.rules);
        let limit = self.table.of((&name, is_known), senders, &key, &pace);
        match self.notes.last_mut() {
            Some((time, last)) if *time == line.time && (last.limit, last.sender) == (limit, sender) => {
                last.requests += 1;
            }
            _ => self.notes.push((line.time, NotedRequests { limit, sender, requests: 1 })),
        }
    }
}
