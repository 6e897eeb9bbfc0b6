//! Identifies the senders of the requests in a log with the evidence that is available today.
//!
//! The evidence may be older or newer than a request. Therefore, these rules apply:
//!
//! 1. A list verifies requests of any age. A list refutes a claim only if the request was sent
//!    close to the date of the list ([`is_close`]). Any other request from an address that is not
//!    on the list is counted as claimed.
//! 2. If there are several copies of a list, only the copy that a server would start with can
//!    refute a claim. The other copies can only verify claims: newer copies verify requests of any
//!    age, and older copies verify only requests made before the date of the server's copy.
//! 3. Reverse DNS names are looked up only if requested, before the requests are counted
//!    ([`names`]). Like a list, a name refutes a claim only if the request was sent close to the
//!    time of the look-up.
//! 4. An address is not used as evidence if it may have been truncated, if it is private, or if it
//!    belongs to a trusted proxy.
//! 5. Signatures are not used, because logs do not contain them.
//!
//! A log may not contain the addresses of clients at all. Only all its requests together show
//! whether it contains them
//! ([`crawlers_with_suspect_path`](super::crawler_rows::crawlers_with_suspect_path)).

mod names;

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use tower_robots::agent::{Agent, Category, Crawler, Identity, Network, Registry, UndecidedReason};
use tower_robots::identity::{
    ClaimEvidence, IdentityRequest, ListEvidence, MethodOutcome, NamePattern, PublicAddress, RangeSet,
};
use tower_robots::internals::ListCopy;

use crate::commands::arguments::site::EvidencePlaces;
use crate::commands::claim::name_patterns;
use crate::date::{parse_time, seconds};

pub(super) use self::names::{NameAnswers, NameQuestions, look_up};

#[derive(Debug, Default)]
pub(super) struct LogEvidence {
    /// Evidence for each crawler, by the crawler's name.
    crawlers: HashMap<String, Arc<CrawlerEvidence>>,
    /// Patterns of reverse DNS names. The [`NameQuestions`] contain indexes into this list.
    pub(super) patterns: Vec<Arc<[NamePattern]>>,
    pub(super) answers: Option<NameAnswers>,
    /// The trusted proxies in the config. Their addresses are not used as evidence about clients.
    trusted_proxies: Vec<Network>,
}

#[derive(Debug)]
pub(super) struct CrawlerEvidence {
    /// The copies of each address list of the crawler; `None` for a list without a copy.
    lists: Box<[Option<Arc<ListCopies>>]>,
    pattern_index: Option<usize>,
}

impl LogEvidence {
    /// Reads the evidence for the crawlers of a registry. Also returns a message for each unusable
    /// copy of an address list.
    pub(super) fn read(registry: &Registry, places: &EvidencePlaces) -> (Self, Vec<String>) {
        let mut evidence = Self { trusted_proxies: places.trusted_proxies.clone(), ..Self::default() };
        let (mut known, mut problems) = (HashMap::<&str, Option<Arc<ListCopies>>>::new(), Vec::new());
        for crawler in registry.crawlers() {
            let mut copies = |url| ListCopies::read(url, places, &mut problems).map(Arc::new);
            let lists = crawler.ranges.iter().map(|url| known.entry(url).or_insert_with(|| copies(url)).clone());
            let lists: Box<[_]> = lists.collect();
            let pattern_index = name_patterns(crawler).map(|patterns| evidence.index_of_patterns(patterns));
            if !lists.is_empty() || pattern_index.is_some() {
                evidence.crawlers.insert(crawler.name.to_owned(), Arc::new(CrawlerEvidence { lists, pattern_index }));
            }
        }
        (evidence, problems)
    }

    /// Returns the methods that use an address to confirm or refute that a request is from these
    /// agents; `None` if there is no method.
    pub(super) fn methods_of(&self, agents: &[Agent]) -> Option<ClaimMethods> {
        let known = |agent: &Agent| self.crawlers.get(agent.registered()?.name.as_str()).cloned();
        match agents {
            [agent] => known(agent).map(ClaimMethods::One),
            agents => agents.iter().any(|agent| known(agent).is_some()).then_some(ClaimMethods::Several),
        }
    }

    /// Identifies the sender of a request that names these agents. Adds to `questions` the
    /// addresses whose names must be looked up.
    pub(super) fn identify(
        &self,
        agents: &[Agent],
        methods: &ClaimMethods,
        address: Option<IpAddr>,
        time: Option<i64>,
        questions: Option<&RefCell<NameQuestions>>,
    ) -> Identity {
        let address = PublicAddress::of(address, |address| self.is_trusted_proxy(address)).ok();
        let evidence = EvidenceAt { evidence: self, methods, time, questions };
        // The time argument has no effect, because `evidence` contains the time of the request.
        IdentityRequest::new(agents, address).identify(&evidence, SystemTime::UNIX_EPOCH).identity
    }

    pub(super) fn lists_of<'c>(&self, crawlers: impl IntoIterator<Item = &'c str>) -> Vec<&ListCopies> {
        let evidence = crawlers.into_iter().filter_map(|name| self.crawlers.get(name));
        let mut lists: Vec<_> =
            evidence.flat_map(|evidence| evidence.lists.iter().flatten().map(|list| &**list)).collect();
        lists.sort_by(|left, right| left.url.cmp(&right.url));
        lists.dedup_by(|left, right| left.url == right.url);
        lists
    }

    fn is_trusted_proxy(&self, address: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|network| network.contains(address))
    }

    fn index_of_patterns(&mut self, patterns: Arc<[NamePattern]>) -> usize {
        if let Some(at) = self.patterns.iter().position(|known| *known == patterns) {
            return at;
        }
        self.patterns.push(patterns);
        self.patterns.len() - 1
    }
}

/// Methods that check who sent requests with a given header. They are determined once per header.
#[derive(Debug)]
pub(super) enum ClaimMethods {
    One(Arc<CrawlerEvidence>),
    /// The header names several crawlers. Each crawler is checked with its own evidence.
    Several,
}

struct EvidenceAt<'e> {
    evidence: &'e LogEvidence,
    methods: &'e ClaimMethods,
    time: Option<i64>,
    questions: Option<&'e RefCell<NameQuestions>>,
}

/// Reports whether an address can refute the claim that a client is this crawler. A fetcher that
/// acts for a person may run on the device of that person, so the fetcher can have any address.
fn is_refutable(crawler: &Crawler) -> bool {
    crawler.category != Category::UserFetch
}

impl<'e> EvidenceAt<'e> {
    fn methods(&self, crawler: &Crawler) -> Option<&'e CrawlerEvidence> {
        match self.methods {
            ClaimMethods::One(evidence) => Some(evidence),
            ClaimMethods::Several => self.evidence.crawlers.get(crawler.name.as_str()).map(|evidence| &**evidence),
        }
    }
}

impl ClaimEvidence for EvidenceAt<'_> {
    fn range(&self, crawler: &Crawler, address: PublicAddress, now: SystemTime) -> Option<MethodOutcome> {
        let methods = self.methods(crawler).filter(|methods| !methods.lists.is_empty())?;
        let lists = methods.lists.iter().map(|copies| {
            let copies = copies.as_ref()?;
            let set = copies.set_for(address, self.time);
            let best = &copies.best;
            // Only a fetched list can refute a claim, because for any other copy it is unknown when
            // the crawler's operator last confirmed the list.
            let is_close = best.copy.confirmed.is_some() && is_close(best.date, self.time);
            let counts = !is_refutable(crawler) || is_close;
            Some(ListEvidence { set, confirmed: counts.then_some(now) })
        });
        Some(ListEvidence::examine(lists, address, None, now))
    }

    fn rdns(&self, crawler: &Crawler, address: PublicAddress, _: SystemTime) -> Option<MethodOutcome> {
        let methods = self.methods(crawler)?;
        let pattern_index = methods.pattern_index?;
        if let Some(questions) = self.questions {
            questions.borrow_mut().note((pattern_index, address), false);
        }
        let Some(answers) = &self.evidence.answers else {
            // Names were not looked up. If the crawler has lists, names are not needed, because the
            // lists contain all its addresses.
            return methods.lists.is_empty().then_some(MethodOutcome::Undecided(UndecidedReason::NotLoaded));
        };
        Some(match answers.outcome(pattern_index, address) {
            MethodOutcome::Failed(_) if is_refutable(crawler) && !is_close(answers.asked, self.time) => {
                MethodOutcome::Undecided(UndecidedReason::Stale)
            }
            outcome => outcome,
        })
    }
}

/// Parses an address from a log line. The address may have been truncated before it was logged.
pub(crate) fn address_as_logged(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    Some(text.parse::<IpAddr>().ok()?.to_canonical())
}

/// Reports whether an address can be the complete address of a client. Many servers log addresses
/// that are truncated to a /24, a /48 or a /64. Few complete addresses end with as many zeros as a
/// truncated address.
pub(crate) fn is_complete_address(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[3] != 0,
        IpAddr::V6(address) => address.segments()[4..] != [0; 4],
    }
}

const DAY: i64 = 24 * 60 * 60;

/// Maximum time from the confirmation of a list to a later request, in seconds. If more time has
/// passed, the list cannot refute the request's claim. `serve` uses the same maximum.
const CONFIRMED_BEFORE: i64 = DAY;

/// Maximum time from a request to a later confirmation of a list, in seconds. If more time has
/// passed, the list cannot refute the request's claim, because the address may have been removed
/// from the list after the request. For example, one operator's list lost half of its prefixes
/// within four months.
const CONFIRMED_AFTER: i64 = 30 * DAY;

#[derive(Debug)]
pub(crate) struct ListCopies {
    pub(crate) url: String,
    /// The copy that a server starts with.
    pub(crate) best: DatedCopy,
    /// The copies other than `best`. Older copies can verify requests that were sent before the
    /// date of `best`. Newer copies can verify all requests.
    others: Vec<DatedCopy>,
}

#[derive(Debug)]
pub(crate) struct DatedCopy {
    pub(crate) copy: ListCopy,
    /// Time when the copy was last known to be up to date, in seconds since 1970: the time of the
    /// fetch or of the last confirmation, or the date in the file.
    pub(crate) date: i64,
}

impl ListCopies {
    fn read(url: &str, places: &EvidencePlaces, problems: &mut Vec<String>) -> Option<Self> {
        let copies = places.list_copies(url, |problem| problems.push(problem));
        let mut copies = copies.into_iter().map(|copy| DatedCopy::of(copy, places.configured_copy(url)));
        Some(Self { url: url.to_owned(), best: copies.next()?, others: copies.collect() })
    }

    /// Returns the addresses of the copy that shows whether `address` belonged to the crawler's
    /// operator at `time`, the time of the request.
    ///
    /// If only an older copy contains the address, the address belonged to the operator until the
    /// date of the best copy. If only a newer copy contains the address, the address belongs to the
    /// operator now.
    fn set_for(&self, address: PublicAddress, time: Option<i64>) -> &RangeSet {
        let best = &self.best.copy.list.set;
        if self.others.is_empty() || best.contains(address.get()) {
            return best;
        }
        let is_after = time.is_some_and(|time| time >= self.best.date);
        let may_apply = |other: &&DatedCopy| !is_after || other.date > self.best.date;
        let mut others = self.others.iter().filter(may_apply).map(|other| &other.copy.list.set);
        others.find(|set| set.contains(address.get())).unwrap_or(best)
    }
}

impl DatedCopy {
    /// Creates a dated copy. If the copy comes from a file that the config names, `own` is the path
    /// of this file. If the list in the file contains no date, the time when the file was last
    /// changed is used.
    fn of(copy: ListCopy, own: Option<&Path>) -> Self {
        let changed = || own.and_then(|path| std::fs::metadata(path).and_then(|meta| meta.modified()).ok());
        let written = || copy.fetched.or(copy.list.created.as_deref()).and_then(parse_day);
        let confirmed = copy.confirmed.map(seconds);
        let date = confirmed.or_else(written).or_else(|| changed().map(seconds)).unwrap_or(0);
        Self { copy, date }
    }
}

/// Reports whether evidence from the time `date` may refute the claim of a request that was sent at
/// `time`.
fn is_close(date: i64, time: Option<i64>) -> bool {
    time.is_some_and(|time| (-CONFIRMED_BEFORE..=CONFIRMED_AFTER).contains(&date.saturating_sub(time)))
}

fn parse_day(text: &str) -> Option<i64> {
    parse_time(text.get(..10)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_addresses_are_read_in_every_form_and_truncated_ones_are_not() {
        let whole = |text: &str| address_as_logged(text.as_bytes()).filter(is_complete_address);
        for (text, want) in [
            ("66.249.66.1", "66.249.66.1"),
            ("::ffff:66.249.66.1", "66.249.66.1"),
            ("[2001:4860:4801:10::1]", "2001:4860:4801:10::1"),
        ] {
            assert_eq!(whole(text), Some(want.parse().expect(want)), "{text}");
        }
        let others = "66.249.66.0 ::ffff:66.249.66.0 2001:4860:4801:: 2001:4860:4801:10:: 66.249.66.0/24 66.249.66.1, \
                      crawl.example - ";
        for text in others.split(' ') {
            assert_eq!(whole(text), None, "{text}");
        }
        assert_eq!(address_as_logged(b"\xff"), None);
    }

    #[test]
    fn evidence_counts_from_30_days_before_a_request_to_1_day_after_it() {
        for (days, want) in [(-31, false), (-30, true), (0, true), (1, true), (2, false)] {
            assert_eq!(is_close(1_795_000_000, Some(1_795_000_000 + days * DAY)), want, "{days}");
        }
        assert!(!is_close(1_795_000_000, None));
        assert!(!is_close(i64::MAX, Some(i64::MIN)));
    }

    #[test]
    fn dates_are_read_with_or_without_a_time_and_other_strings_are_rejected() {
        assert_eq!(parse_day("2026-09-02T14:46:00.000000"), Some(1_788_307_200));
        assert_eq!(parse_day("2026-09-02"), Some(1_788_307_200));
        assert_eq!((parse_day("September"), parse_day("")), (None, None));
    }
}
