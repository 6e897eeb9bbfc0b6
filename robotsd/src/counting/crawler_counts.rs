//! The requests of crawlers on one worker, by crawler and outcome; and the outcomes, each one word for an action of the
//! layer.
//!
//! A crawler that the registry knows has its name there; all others share the word of their class, because a name that
//! a client makes up would be a series of metrics each. A site has a bound on combinations; further ones count as
//! `other`. Engines with a public index have room of their own, and so have their refusals, which an alert is for: no
//! client can take it with other names.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use http::StatusCode;
use parking_lot::Mutex;
use tower_robots::agent::Agent;
use tower_robots::layer::Record;
use tower_robots::policy::{Action, Reason};

use crate::metrics::KeyedCounters;
use crate::word_enum::word_enum;

/// Combinations that a site names, of each kind and in each room.
const MOST_COMBINATIONS: usize = 256;

/// The crawlers that have room of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyRoom {
    Others,
    IndexEngines,
    /// Their refused requests.
    RefusedEngines,
    /// Their requests that were answered with 429.
    LimitedEngines,
    /// Others' requests that were answered with 429.
    Limited,
}

const ROOMS: usize = 5;

/// The crawler of what is past the bound.
const OTHER: &str = "other";

/// The crawler of a request in which none was recognised.
pub(crate) const NO_CRAWLER: &str = "none";

/// What the requests of a crawler are told apart by: their outcome with what is known of the sender, or the status code for
/// `/robots.txt`.
type OfDecision = (RequestOutcome, &'static str);
type OfRobotsTxt = u16;

/// A crawler's requests of one kind.
type CrawlerKey<W> = (Arc<str>, W);

/// Counts the requests of crawlers on one worker, which alone writes it.
#[derive(Debug, Default)]
pub(crate) struct CrawlerCounts {
    requests: [KeyedCounters<CrawlerKey<OfDecision>>; ROOMS],
    robots_txt: [KeyedCounters<CrawlerKey<OfRobotsTxt>>; ROOMS],
    combinations: Arc<CrawlerCombinations>,
}

/// The combinations that the workers of a site count.
#[derive(Debug, Default)]
pub(crate) struct CrawlerCombinations {
    requests: [BoundedKeys<CrawlerKey<OfDecision>>; ROOMS],
    robots_txt: [BoundedKeys<CrawlerKey<OfRobotsTxt>>; ROOMS],
}

/// Keys that workers share, up to [`MOST_COMBINATIONS`]. While there is room a worker takes a lock for each key that is new to it;
/// then the keys are settled, and are searched without one.
#[derive(Debug)]
struct BoundedKeys<K> {
    growing: Mutex<BTreeSet<K>>,
    /// In their order.
    settled: OnceLock<Box<[K]>>,
}

/// The sums of several [`CrawlerCounts`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CrawlerTotals {
    pub(crate) requests: BTreeMap<CrawlerKey<OfDecision>, u64>,
    pub(crate) robots_txt: BTreeMap<CrawlerKey<OfRobotsTxt>, u64>,
}

impl CrawlerCounts {
    pub(crate) fn of_site(combinations: Arc<CrawlerCombinations>) -> Self {
        Self { combinations, ..Self::default() }
    }

    /// Counts a request for anything but `/robots.txt`.
    pub(super) fn request(&self, request: &Record, outcome: RequestOutcome) {
        self.of_agent(&request.agent, identity(request), outcome);
    }

    fn of_agent(&self, agent: &Agent, identity: &'static str, outcome: RequestOutcome) {
        let is = |other: &OfDecision| other.0 == outcome && is_same(other.1, identity);
        let of = (label(agent), (outcome, identity));
        count(&self.requests, &self.combinations.requests, KeyRoom::of(agent, outcome), of, outcome as u64, is);
    }

    /// Counts a request for `/robots.txt`, of a crawler where one was recognised.
    pub(super) fn robots_txt(&self, crawler: Option<&Agent>, status: StatusCode) {
        let code = status.as_u16();
        let room = crawler.map_or(KeyRoom::Others, |agent| KeyRoom::of(agent, RequestOutcome::Allowed));
        let of = (crawler.map_or(NO_CRAWLER, label), code);
        count(&self.robots_txt, &self.combinations.robots_txt, room, of, code.into(), |other| *other == code);
    }
}

/// Counts a request of a crawler in its room, or as [`OTHER`] where that has no room for one more combination. `is` says whether a
/// key is of the same kind.
fn count<W: Copy + Ord>(
    counters: &[KeyedCounters<CrawlerKey<W>>; ROOMS],
    combinations: &[BoundedKeys<CrawlerKey<W>>; ROOMS],
    room: KeyRoom,
    (crawler, of): (&str, W),
    salt: u64,
    is: impl Fn(&W) -> bool,
) {
    let count = |room: KeyRoom, crawler: &str, key: &dyn Fn() -> Option<CrawlerKey<W>>| {
        let is = |(other, kind): &CrawlerKey<W>| is(kind) && **other == *crawler;
        counters[room as usize].count(hash(crawler, salt), is, key)
    };
    let order = |(other, kind): &CrawlerKey<W>| (&**other, *kind).cmp(&(crawler, of));
    let admitted = || combinations[room as usize].admit(order, || (crawler.into(), of));
    if !count(room, crawler, &admitted) {
        count(KeyRoom::Others, OTHER, &|| Some((OTHER.into(), of)));
    }
}

impl KeyRoom {
    fn of(agent: &Agent, outcome: RequestOutcome) -> Self {
        match (agent.registered().is_some_and(|crawler| crawler.is_index_engine), outcome) {
            (true, RequestOutcome::Refused) => Self::RefusedEngines,
            (true, RequestOutcome::Limited) => Self::LimitedEngines,
            (true, _) => Self::IndexEngines,
            (false, RequestOutcome::Limited) => Self::Limited,
            (false, _) => Self::Others,
        }
    }
}

impl CrawlerTotals {
    pub(crate) fn add(&mut self, counts: &CrawlerCounts) {
        for (key, count) in counts.requests.iter().flat_map(KeyedCounters::totals) {
            *self.requests.entry(key.clone()).or_default() += count;
        }
        for (key, count) in counts.robots_txt.iter().flat_map(KeyedCounters::totals) {
            *self.robots_txt.entry(key.clone()).or_default() += count;
        }
    }
}

impl<K: Clone + Ord> BoundedKeys<K> {
    /// The key, if a worker may count it: one that the site has, or one more. `order` is that of a key beside it.
    fn admit(&self, order: impl FnMut(&K) -> Ordering, make: impl FnOnce() -> K) -> Option<K> {
        if let Some(settled) = self.settled.get() {
            return settled.binary_search_by(order).ok().and_then(|at| settled.get(at)).cloned();
        }
        let mut growing = self.growing.lock();
        let key = make();
        if growing.contains(&key) {
            return Some(key);
        }
        if growing.len() >= MOST_COMBINATIONS {
            return None;
        }
        growing.insert(key.clone());
        if growing.len() == MOST_COMBINATIONS {
            self.settled.get_or_init(|| growing.iter().cloned().collect());
        }
        Some(key)
    }
}

impl<K> Default for BoundedKeys<K> {
    fn default() -> Self {
        Self { growing: Mutex::default(), settled: OnceLock::new() }
    }
}

/// The label of an agent. Nothing in it comes from the client.
fn label(agent: &Agent) -> &str {
    agent.registered().map_or(agent.class().as_str(), |crawler| &crawler.name)
}

/// The label of what is known of its sender: `claimed` where claims are not checked.
fn identity(request: &Record) -> &'static str {
    let unchecked = if request.agent.is_registered() { "claimed" } else { "unclaimed" };
    request.identity.map_or(unchecked, |identity| identity.outcome())
}

/// Compares two words of a few, nearly always by where they are.
fn is_same(one: &'static str, other: &'static str) -> bool {
    std::ptr::eq(one, other) || one == other
}

/// Spreads names over a table: length, ends and the outcome tell nearly all apart, and the comparison does the rest.
pub(super) fn hash(name: &str, salt: u64) -> u64 {
    let octets = name.as_bytes();
    let ends = match (octets.first_chunk(), octets.last_chunk()) {
        (Some(first), Some(last)) => u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(31),
        _ => octets.iter().fold(0, |word, octet| word << 8 | u64::from(*octet)),
    };
    (ends ^ (octets.len() as u64) << 8 ^ salt).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
}

word_enum! {
    /// The outcome of a request in the layer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub(crate) enum RequestOutcome {
        /// No group is for its agent, or nothing is enforced.
        Untouched = "untouched",
        Allowed = "allowed",
        /// Disallowed or an impostor's, and passed because the mode only observes or the grace has not ended.
        Observed = "observed",
        Tagged = "tagged",
        Refused = "refused",
        /// Allowed, sooner than the delay lets it, and answered with 429.
        Limited = "limited",
        /// Allowed, sooner than the delay lets it, and passed because the mode or that of limiting only observes.
        LimitObserved = "limit-observed",
        /// It passed because of an exemption or an override.
        Exempt = "exempt",
    }
}

impl RequestOutcome {
    pub(crate) const fn of(action: Action, reason: Reason) -> Self {
        match (action, reason) {
            (_, Reason::Limited) => Self::Limited,
            (_, Reason::LimitObserved) => Self::LimitObserved,
            (Action::Refuse, _) => Self::Refused,
            (Action::Tag, _) => Self::Tagged,
            (_, Reason::Observed | Reason::Grace | Reason::Impostor) => Self::Observed,
            (_, Reason::Allowed) => Self::Allowed,
            (_, Reason::NoGroup | Reason::NothingKnown | Reason::KillSwitch) => Self::Untouched,
            _ => Self::Exempt,
        }
    }
}

#[cfg(test)]
mod tests {
    use tower_robots::agent::{Crawler, Recognizer, Registry};
    use tower_robots::rules::RobotsTxt;

    use super::*;

    #[test]
    fn a_site_names_so_many_combinations_and_no_name_of_a_client() {
        let registry = Registry::builtin();
        let recognizer = Recognizer::new(registry.clone(), &RobotsTxt::parse(&b"User-agent: *\n"[..]));
        let combinations = Arc::<CrawlerCombinations>::default();
        let workers = [(); 2].map(|()| CrawlerCounts::of_site(Arc::clone(&combinations)));
        let others = || registry.crawlers().filter(|crawler| !crawler.is_index_engine);
        let names: Vec<_> = others().map(|crawler| crawler.name.to_owned()).collect();
        assert!(names.len() > MOST_COMBINATIONS);
        for worker in &workers {
            for crawler in others() {
                worker.robots_txt(Some(&Agent::from(crawler)), StatusCode::OK);
            }
            let made_up = recognizer.identify(b"EvilBot/1.0 (+https://evil.test)");
            worker.robots_txt(Some(&made_up), StatusCode::OK);
            worker.robots_txt(None, StatusCode::OK);
        }
        let mut totals = CrawlerTotals::default();
        workers.iter().for_each(|worker| totals.add(worker));
        assert_eq!(totals.robots_txt.len(), MOST_COMBINATIONS + 1);
        assert_eq!(totals.robots_txt.values().sum::<u64>(), 2 * (names.len() as u64 + 2));
        // No request waits for a lock any more, named or not.
        let growing = combinations.robots_txt[0].growing.lock();
        let worker = CrawlerCounts::of_site(Arc::clone(&combinations));
        let (counted, of_thread) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for crawler in Registry::builtin().crawlers().filter(|crawler| !crawler.is_index_engine) {
                worker.robots_txt(Some(&Agent::from(crawler)), StatusCode::OK);
            }
            let totals: Vec<u64> = worker.robots_txt[0].totals().map(|(_, count)| count).collect();
            counted.send((totals.len(), totals.iter().sum::<u64>()))
        });
        let (keys, sum) = of_thread.recv_timeout(std::time::Duration::from_secs(60)).expect("it waits for a lock");
        drop(growing);
        assert_eq!((keys, sum), (MOST_COMBINATIONS + 1, names.len() as u64));
        let known = |crawler: &str| crawler == OTHER || names.iter().any(|name| name == crawler);
        assert!(totals.robots_txt.keys().all(|(crawler, _)| known(crawler)), "{totals:?}");
    }

    /// Alerts are for what search engines are refused, and for what is answered with 429: whatever was requested before, under whatever names, does not hide it.
    #[test]
    fn refusals_and_limits_are_counted_by_name_whatever_came_before() {
        const IDENTITIES: [&str; 4] = ["claimed", "unverified", "refuted", "verified"];
        let registry = Registry::builtin();
        let worker = CrawlerCounts::of_site(Arc::default());
        let engines: Vec<_> = registry.crawlers().filter(|crawler| crawler.is_index_engine).collect();
        assert!(engines.len() * IDENTITIES.len() < MOST_COMBINATIONS, "{}", engines.len());
        let flood = |crawler: &Crawler| {
            let others = [RequestOutcome::Refused, RequestOutcome::Limited];
            for outcome in RequestOutcome::ALL.into_iter().filter(|outcome| !others.contains(outcome)) {
                IDENTITIES.iter().for_each(|identity| worker.of_agent(&Agent::from(crawler), identity, outcome));
            }
            others.iter().for_each(|outcome| worker.of_agent(&Agent::from(crawler), "claimed", *outcome));
            worker.robots_txt(Some(&Agent::from(crawler)), StatusCode::NOT_MODIFIED);
        };
        registry.crawlers().filter(|crawler| !crawler.is_index_engine).for_each(flood);
        engines.iter().copied().for_each(flood);
        for engine in &engines {
            worker.of_agent(&Agent::from(*engine), "verified", RequestOutcome::Refused);
            worker.of_agent(&Agent::from(*engine), "verified", RequestOutcome::Limited);
            worker.robots_txt(Some(&Agent::from(*engine)), StatusCode::OK);
        }
        let mut totals = CrawlerTotals::default();
        totals.add(&worker);
        for engine in &engines {
            let crawler: Arc<str> = engine.name.as_str().into();
            for outcome in [RequestOutcome::Refused, RequestOutcome::Limited] {
                let key = (Arc::clone(&crawler), (outcome, "verified"));
                assert_eq!(totals.requests.get(&key), Some(&1), "{crawler}");
            }
            assert_eq!(totals.robots_txt.get(&(crawler, 200)), Some(&1));
        }
        assert!(totals.requests.len() <= ROOMS * (MOST_COMBINATIONS + 1) && totals.robots_txt.len() <= ROOMS * 257);
    }

    #[test]
    fn the_action_comes_before_the_reason() {
        for (action, reason, want) in [
            (Action::Refuse, Reason::Disallowed, RequestOutcome::Refused),
            (Action::Refuse, Reason::Impostor, RequestOutcome::Refused),
            (Action::Refuse, Reason::Limited, RequestOutcome::Limited),
            (Action::Pass, Reason::LimitObserved, RequestOutcome::LimitObserved),
            (Action::Tag, Reason::SearchEngine, RequestOutcome::Tagged),
            (Action::Pass, Reason::Observed, RequestOutcome::Observed),
            (Action::Pass, Reason::Grace, RequestOutcome::Observed),
            (Action::Pass, Reason::Impostor, RequestOutcome::Observed),
            (Action::Pass, Reason::Allowed, RequestOutcome::Allowed),
            (Action::Pass, Reason::NoGroup, RequestOutcome::Untouched),
            (Action::Pass, Reason::Exempt, RequestOutcome::Exempt),
            (Action::Pass, Reason::SuspectHuman, RequestOutcome::Exempt),
        ] {
            assert_eq!(RequestOutcome::of(action, reason), want, "{action:?} {reason:?}");
        }
    }
}
