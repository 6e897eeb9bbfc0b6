//! Who sent the requests of a log, by the evidence of today.
//!
//! A report is about the past, and the evidence may be older or newer than a request:
//!
//! 1. A list verifies at any age. It makes an impostor only of a request that it is close to ([`list_copies`]); else an address
//!    that it lacks is claimed, and counted apart as such.
//! 2. Of several copies of a list the one counts that a server begins with. The others verify as well: newer ones always, older ones
//!    requests before its date.
//! 3. Names are looked up on request only, before the requests are counted ([`name_lookup`]), with the same limits on time.
//! 4. An address that may have been truncated decides nothing, and neither does one that is private or a trusted proxy's.
//! 5. Signatures are not in logs.
//!
//! Whether the log holds the addresses of clients at all is judged by all of it ([`suspect_paths`](super::suspect_paths)).

mod list_copies;
mod log_address;
mod name_answers;
mod name_lookup;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use tower_robots::agent::{Agent, Category, Crawler, Identity, Network, Registry, UndecidedReason};
use tower_robots::identity::{
    ClaimEvidence, DirectoryKeys, DirectoryUrl, IdentityRequest, ListEvidence, MethodOutcome, NamePattern,
    PublicAddress,
};

use crate::commands::arguments::site::EvidencePlaces;

pub(super) use self::list_copies::ListCopies;
pub(super) use self::log_address::{address_as_logged, is_whole};
pub(super) use self::name_answers::{NameAnswers, NameQuestions};
pub(super) use self::name_lookup::look_up;

/// The evidence that a log is judged by.
#[derive(Debug, Default)]
pub(super) struct LogEvidence {
    crawlers: Vec<CrawlerEvidence>,
    by_name: HashMap<Box<str>, usize>,
    lists: Vec<ListCopies>,
    patterns: Vec<Arc<[NamePattern]>>,
    answers: Option<NameAnswers>,
    /// The proxies of the config: what came through one is no evidence about the client.
    trusted_proxies: Vec<Network>,
}

/// How the claims of a crawler can be checked.
#[derive(Debug)]
struct CrawlerEvidence {
    /// `None` stands for a list of which there is no copy.
    lists: Box<[Option<usize>]>,
    names: Option<usize>,
}

impl LogEvidence {
    /// The evidence for the crawlers of a registry. Returns also why copies of lists cannot be used.
    pub(super) fn read(registry: &Registry, places: &EvidencePlaces) -> (Self, Vec<String>) {
        let mut evidence = Self { trusted_proxies: places.trusted_proxies.clone(), ..Self::default() };
        let (mut known, mut troubles) = (HashMap::<&str, Option<usize>>::new(), Vec::new());
        for crawler in registry.crawlers() {
            let mut lists = Vec::new();
            for url in crawler.ranges() {
                lists.push(*known.entry(url).or_insert_with(|| {
                    let copies = ListCopies::read(url, places, &mut troubles)?;
                    evidence.lists.push(copies);
                    Some(evidence.lists.len() - 1)
                }));
            }
            let patterns: Arc<[NamePattern]> = crawler.reverse_dns().filter_map(|text| text.parse().ok()).collect();
            let names = (!patterns.is_empty()).then(|| evidence.names_of(patterns));
            if !lists.is_empty() || names.is_some() {
                let methods = CrawlerEvidence { lists: lists.into(), names };
                evidence.by_name.insert(crawler.name().into(), evidence.crawlers.len());
                evidence.crawlers.push(methods);
            }
        }
        (evidence, troubles)
    }

    /// The address of a client, where that in the log is one: a private one and that of a trusted proxy may be many clients'.
    pub(super) fn client(&self, logged: Option<IpAddr>) -> Option<IpAddr> {
        PublicAddress::of(logged, |address| self.is_trusted_proxy(address)).ok().map(PublicAddress::get)
    }

    /// How the claims of these agents can be checked by an address; `None` where they cannot.
    pub(super) fn methods_of(&self, agents: &[Agent]) -> Option<ClaimMethods> {
        let known = |agent: &Agent| self.by_name.get(agent.registered()?.name()).copied();
        match agents {
            [agent] => known(agent).map(ClaimMethods::One),
            agents => agents.iter().any(|agent| known(agent).is_some()).then_some(ClaimMethods::Several),
        }
    }

    /// Who sent a request of these agents, logged with this address and time.
    pub(super) fn identify(
        &self,
        agents: &[Agent],
        methods: ClaimMethods,
        address: Option<IpAddr>,
        time: Option<i64>,
    ) -> Identity {
        let address = PublicAddress::of(address, |address| self.is_trusted_proxy(address)).ok();
        let evidence = EvidenceAt { evidence: self, methods, time, questions: None };
        evidence.identify(agents, address)
    }

    /// Notes what names have to be looked up for a request.
    pub(super) fn note_questions(
        &self,
        questions: &RefCell<NameQuestions>,
        agents: &[Agent],
        methods: ClaimMethods,
        address: Option<IpAddr>,
        time: Option<i64>,
    ) {
        let address = PublicAddress::of(address, |address| self.is_trusted_proxy(address)).ok();
        let evidence = EvidenceAt { evidence: self, methods, time, questions: Some(questions) };
        evidence.identify(agents, address);
    }

    /// What is answered about names from now on.
    pub(super) fn answer(&mut self, answers: NameAnswers) {
        self.answers = Some(answers);
    }

    pub(super) const fn answers(&self) -> Option<&NameAnswers> {
        self.answers.as_ref()
    }

    /// The patterns of names by the numbers that questions have.
    pub(super) fn patterns(&self) -> &[Arc<[NamePattern]>] {
        &self.patterns
    }

    /// The lists of these crawlers, by URL.
    pub(super) fn lists_of<'c>(&self, crawlers: impl IntoIterator<Item = &'c str>) -> Vec<&ListCopies> {
        let methods = crawlers.into_iter().filter_map(|name| self.crawlers.get(*self.by_name.get(name)?));
        let lists: BTreeSet<usize> = methods.flat_map(|methods| methods.lists.iter().copied().flatten()).collect();
        let mut lists: Vec<_> = lists.into_iter().filter_map(|at| self.lists.get(at)).collect();
        lists.sort_by(|left, right| left.url().cmp(right.url()));
        lists
    }

    fn is_trusted_proxy(&self, address: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|network| network.contains(address))
    }

    fn names_of(&mut self, patterns: Arc<[NamePattern]>) -> usize {
        if let Some(at) = self.patterns.iter().position(|known| *known == patterns) {
            return at;
        }
        self.patterns.push(patterns);
        self.patterns.len() - 1
    }
}

/// How the claims of a header can be checked, so that it is found out once for all its requests.
#[derive(Clone, Copy, Debug)]
pub(super) enum ClaimMethods {
    /// By the evidence of the one crawler with this number.
    One(usize),
    /// Each crawler by its own.
    Several,
}

/// The evidence about a request of this time.
struct EvidenceAt<'e> {
    evidence: &'e LogEvidence,
    methods: ClaimMethods,
    time: Option<i64>,
    questions: Option<&'e RefCell<NameQuestions>>,
}

/// A fetcher that acts for a person may run on that person's device, so no evidence refutes it, however old.
fn is_refutable(crawler: &Crawler) -> bool {
    crawler.category() != Category::UserFetch
}

impl<'e> EvidenceAt<'e> {
    fn identify(&self, agents: &[Agent], address: Option<PublicAddress>) -> Identity {
        // What the evidence says depends on the time of the request, which is part of it.
        IdentityRequest::new(agents, address).identify(self, SystemTime::UNIX_EPOCH).identity()
    }

    fn methods(&self, crawler: &Crawler) -> Option<&'e CrawlerEvidence> {
        let number = match self.methods {
            ClaimMethods::One(number) => number,
            ClaimMethods::Several => *self.evidence.by_name.get(crawler.name())?,
        };
        self.evidence.crawlers.get(number)
    }
}

impl ClaimEvidence for EvidenceAt<'_> {
    fn range(&self, crawler: &Crawler, address: PublicAddress, now: SystemTime) -> Option<MethodOutcome> {
        let methods = self.methods(crawler).filter(|methods| !methods.lists.is_empty())?;
        let lists = methods.lists.iter().map(|at| {
            let copies = self.evidence.lists.get((*at)?)?;
            let set = copies.set_for(address, self.time);
            let counts = !is_refutable(crawler) || copies.is_close_to(self.time);
            Some(if counts { ListEvidence::confirmed(set, now) } else { ListEvidence::unconfirmed(set) })
        });
        Some(ListEvidence::examine(lists, address, None, now))
    }

    fn rdns(&self, crawler: &Crawler, address: PublicAddress, _: SystemTime) -> Option<MethodOutcome> {
        let methods = self.methods(crawler)?;
        let names = methods.names?;
        if let Some(questions) = self.questions {
            questions.borrow_mut().note(names, address);
        }
        let Some(answers) = &self.evidence.answers else {
            // Lists are complete by themselves.
            return methods.lists.is_empty().then_some(MethodOutcome::Undecided(UndecidedReason::NotLoaded));
        };
        Some(match answers.outcome(names, address) {
            MethodOutcome::Failed(_) if is_refutable(crawler) && !answers.are_close_to(self.time) => {
                MethodOutcome::Undecided(UndecidedReason::Stale)
            }
            outcome => outcome,
        })
    }

    fn keys(&self, _: &DirectoryUrl, _: &str, _: SystemTime) -> DirectoryKeys {
        DirectoryKeys::NotConfigured
    }
}
