//! Counts the requests of crawlers, by crawler and outcome.
//!
//! A crawler in the registry is counted under its name. All other crawlers are counted under the
//! name of their class, because clients could otherwise create any number of metrics by inventing
//! names. Each site counts only a limited number of combinations of crawler and outcome separately.
//! Combinations above this limit are counted as `other`. Alerts depend on the counts of search
//! engines and of 429 responses. Search engines and 429 responses therefore have their own limits,
//! which clients that invent names cannot use up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use http::StatusCode;
use parking_lot::Mutex;
use tower_robots::agent::Agent;
use tower_robots::layer::Record;
use tower_robots::policy::{Action, Reason};

use crate::word_enum::word_enum;

/// Maximum number of combinations of crawler and outcome that are counted separately, per site and
/// [`CombinationGroup`]. Decisions and requests for `/robots.txt` have separate limits.
const MAX_COMBINATIONS: usize = 256;

/// The groups of combinations of crawler and outcome. Each group has its own limit, so combinations
/// of one group cannot use up the limit of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CombinationGroup {
    Others,
    IndexEngines,
    RefusedEngines,
    /// Requests of search engines that got the status 429.
    LimitedEngines,
    /// Requests of other crawlers that got the status 429.
    Limited,
}

const GROUPS: usize = 5;

/// Crawler label for all combinations beyond the limit.
const OTHER: &str = "other";

/// Crawler label of requests without a recognised crawler.
pub(crate) const NO_CRAWLER: &str = "none";

/// The outcome of a crawler's request, and the identity of its sender. Requests for `/robots.txt`
/// have no outcome and are counted by status code ([`OfRobotsTxt`]).
type OfDecision = (RequestOutcome, &'static str);
type OfRobotsTxt = u16;

/// The counts by crawler label, then by [`OfDecision`] or [`OfRobotsTxt`].
type ByCrawler<W> = BTreeMap<Arc<str>, BTreeMap<W, u64>>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CrawlerCounts {
    pub(crate) requests: ByCrawler<OfDecision>,
    pub(crate) robots_txt: ByCrawler<OfRobotsTxt>,
}

/// Combinations of crawler and outcome that a site counts separately. All workers of the site share
/// this list. A worker adds a new combination to the list before counting it, unless the limit is
/// reached.
#[derive(Debug, Default)]
pub(crate) struct CrawlerCombinations {
    requests: Combinations<OfDecision>,
    robots_txt: Combinations<OfRobotsTxt>,
}

/// Combinations of a crawler label and `W` ([`OfDecision`] or [`OfRobotsTxt`]), in one set per
/// [`CombinationGroup`].
type Combinations<W> = Mutex<[BTreeSet<(Arc<str>, W)>; GROUPS]>;

impl CrawlerCounts {
    /// Counts a request, unless it is for `/robots.txt`.
    pub(super) fn request(&mut self, combinations: &CrawlerCombinations, request: &Record, outcome: RequestOutcome) {
        self.of_agent(combinations, &request.agent, identity(request), outcome);
    }

    fn of_agent(
        &mut self,
        combinations: &CrawlerCombinations,
        agent: &Agent,
        identity: &'static str,
        outcome: RequestOutcome,
    ) {
        let group = CombinationGroup::of(agent, outcome);
        count(&mut self.requests, &combinations.requests, group, label(agent), (outcome, identity));
    }

    pub(super) fn robots_txt(
        &mut self,
        combinations: &CrawlerCombinations,
        crawler: Option<&Agent>,
        status: StatusCode,
    ) {
        let group =
            crawler.map_or(CombinationGroup::Others, |agent| CombinationGroup::of(agent, RequestOutcome::Allowed));
        let label = crawler.map_or(NO_CRAWLER, label);
        count(&mut self.robots_txt, &combinations.robots_txt, group, label, status.as_u16());
    }

    pub(super) fn add(&mut self, other: &Self) {
        add(&mut self.requests, &other.requests);
        add(&mut self.robots_txt, &other.robots_txt);
    }
}

/// Counts a request under the label of its crawler, or under [`OTHER`] if the combination is new
/// and the limit is reached.
fn count<W: Copy + Ord>(
    counts: &mut ByCrawler<W>,
    combinations: &Combinations<W>,
    group: CombinationGroup,
    crawler: &str,
    of: W,
) {
    if let Some(count) = counts.get_mut(crawler).and_then(|counts| counts.get_mut(&of)) {
        *count += 1;
        return;
    }
    let key = (Arc::from(crawler), of);
    let group = &mut combinations.lock()[group as usize];
    let is_admitted = group.contains(&key) || group.len() < MAX_COMBINATIONS && group.insert(key.clone());
    let label = if is_admitted { key.0 } else { OTHER.into() };
    *counts.entry(label).or_default().entry(of).or_default() += 1;
}

fn add<W: Copy + Ord>(sums: &mut ByCrawler<W>, counts: &ByCrawler<W>) {
    for (crawler, counts) in counts {
        let sums = sums.entry(Arc::clone(crawler)).or_default();
        for (of, count) in counts {
            *sums.entry(*of).or_default() += count;
        }
    }
}

impl CombinationGroup {
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

/// Returns the label of an agent. The label never contains text from the client.
fn label(agent: &Agent) -> &str {
    agent.registered().map_or(agent.class().as_str(), |crawler| &crawler.name)
}

/// Returns the label of the sender's identity. If identities are not verified, the label is
/// `claimed` for registered crawlers and `unclaimed` for all other clients.
fn identity(request: &Record) -> &'static str {
    let unchecked = if request.agent.is_registered() { "claimed" } else { "unclaimed" };
    request.identity.map_or(unchecked, |identity| identity.outcome())
}

word_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub(crate) enum RequestOutcome {
        /// No group applies to the agent, or enforcement is off.
        Untouched = "untouched",
        Allowed = "allowed",
        /// Disallowed or sent by an impostor, but forwarded because of the mode or a grace period.
        Observed = "observed",
        Tagged = "tagged",
        Refused = "refused",
        /// Allowed by robots.txt, but refused with 429 because it came before the crawl delay had
        /// passed.
        Limited = "limited",
        /// Forwarded although it came before the crawl delay had passed, because the site's mode or
        /// rate mode is `observe`.
        LimitObserved = "limit-observed",
        /// Forwarded because of an exemption or an override.
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
    fn a_site_counts_a_bounded_number_of_known_names_and_no_made_up_names() {
        let registry = Registry::builtin();
        let recognizer = Recognizer::new(registry.clone(), &RobotsTxt::parse(&b"User-agent: *\n"[..]));
        let combinations = CrawlerCombinations::default();
        let mut workers = [(); 2].map(|()| CrawlerCounts::default());
        let others = || registry.crawlers().filter(|crawler| !crawler.is_index_engine);
        let names: Vec<_> = others().map(|crawler| crawler.name.to_owned()).collect();
        assert!(names.len() > MAX_COMBINATIONS);
        for worker in &mut workers {
            for crawler in others() {
                worker.robots_txt(&combinations, Some(&Agent::from(crawler)), StatusCode::OK);
            }
            let made_up = recognizer.identify(b"EvilBot/1.0 (+https://evil.test)");
            worker.robots_txt(&combinations, Some(&made_up), StatusCode::OK);
            worker.robots_txt(&combinations, None, StatusCode::OK);
        }
        let mut totals = CrawlerCounts::default();
        workers.iter().for_each(|worker| totals.add(worker));
        assert_eq!(totals.robots_txt.len(), MAX_COMBINATIONS + 1);
        assert_eq!(totals.robots_txt.values().flat_map(BTreeMap::values).sum::<u64>(), 2 * (names.len() as u64 + 2));
        let known = |crawler: &str| crawler == OTHER || names.iter().any(|name| name == crawler);
        assert!(totals.robots_txt.keys().all(|crawler| known(crawler)), "{totals:?}");
    }

    /// Alerts use the counts of refused search engines and of 429 responses. These counts must stay
    /// correct however many names clients invent.
    #[test]
    fn refusals_and_limits_of_search_engines_are_counted_by_name_after_a_flood() {
        const IDENTITIES: [&str; 4] = ["claimed", "unverified", "refuted", "verified"];
        let registry = Registry::builtin();
        let (mut worker, combinations) = (CrawlerCounts::default(), CrawlerCombinations::default());
        let engines: Vec<_> = registry.crawlers().filter(|crawler| crawler.is_index_engine).collect();
        assert!(engines.len() * IDENTITIES.len() < MAX_COMBINATIONS, "{}", engines.len());
        let mut flood = |crawler: &Crawler| {
            let agent = Agent::from(crawler);
            let others = [RequestOutcome::Refused, RequestOutcome::Limited];
            for outcome in RequestOutcome::ALL.into_iter().filter(|outcome| !others.contains(outcome)) {
                IDENTITIES.iter().for_each(|identity| worker.of_agent(&combinations, &agent, identity, outcome));
            }
            others.iter().for_each(|outcome| worker.of_agent(&combinations, &agent, "claimed", *outcome));
            worker.robots_txt(&combinations, Some(&agent), StatusCode::NOT_MODIFIED);
        };
        registry.crawlers().filter(|crawler| !crawler.is_index_engine).for_each(&mut flood);
        engines.iter().copied().for_each(flood);
        for engine in engines.iter().map(|engine| Agent::from(*engine)) {
            worker.of_agent(&combinations, &engine, "verified", RequestOutcome::Refused);
            worker.of_agent(&combinations, &engine, "verified", RequestOutcome::Limited);
            worker.robots_txt(&combinations, Some(&engine), StatusCode::OK);
        }
        for engine in &engines {
            let crawler = &*engine.name;
            for outcome in [RequestOutcome::Refused, RequestOutcome::Limited] {
                assert_eq!(worker.requests[crawler].get(&(outcome, "verified")), Some(&1), "{crawler}");
            }
            assert_eq!(worker.robots_txt[crawler].get(&200), Some(&1));
        }
        let series = worker.requests.values().map(BTreeMap::len).sum::<usize>();
        assert!(series <= GROUPS * (MAX_COMBINATIONS + 1), "{series}");
        let series = worker.robots_txt.values().map(BTreeMap::len).sum::<usize>();
        assert!(series <= GROUPS * (MAX_COMBINATIONS + 1), "{series}");
    }

    #[test]
    fn the_outcome_depends_first_on_the_action_and_then_on_the_reason() {
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
