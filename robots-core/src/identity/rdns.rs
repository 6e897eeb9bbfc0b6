//! Forward-confirmed reverse DNS: a reverse DNS name counts only if it resolves back to the
//! address. This module chooses the queries and interprets the responses. The caller sends the
//! queries to a resolver.

use std::net::IpAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::MethodOutcome;
use super::address_class::PublicAddress;
use super::name_pattern::NamePattern;
use crate::agent::{Refutation, UndecidedReason};

/// Maximum number of reverse DNS names that are checked per address.
const MAX_NAMES: usize = 4;

/// Maximum number of resolved addresses that are compared per name.
const MAX_ADDRESSES: usize = 8;

/// How long a successful check proves that a resolver works for an operator's names. A failed check
/// refutes a claim only within this time after the same resolver verified an address of the claimed
/// crawler's operator.
const RESOLVER_PROOF: Duration = Duration::from_secs(60 * 60);

/// A check of one client address by reverse DNS.
///
/// The caller gets a query from [`step`](Self::step), sends it through a resolver, and passes the
/// response to [`answer`](Self::answer). The caller repeats these steps until `step` returns the
/// outcome. A check takes at most five queries.
///
/// ```
/// use std::ops::ControlFlow;
/// use robots_core::identity::{DnsAnswer, MethodOutcome, PublicAddress, RdnsCheck, RdnsQuestion};
///
/// let address = PublicAddress::of(Some("66.249.66.1".parse()?), |_| false).expect("a public address");
/// let mut check = RdnsCheck::new(address, [".googlebot.com".parse()?].as_slice().into());
/// assert_eq!(check.step(), ControlFlow::Continue(RdnsQuestion::Ptr("66.249.66.1".parse()?)));
/// check.answer(DnsAnswer::Names(vec!["crawl-66-249-66-1.googlebot.com.".to_owned()]));
/// assert!(matches!(check.step(), ControlFlow::Continue(RdnsQuestion::A(_))));
/// check.answer(DnsAnswer::Addresses(vec!["66.249.66.1".parse()?]));
/// assert_eq!(check.step(), ControlFlow::Break(MethodOutcome::Verified));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct RdnsCheck {
    address: IpAddr,
    patterns: Arc<[NamePattern]>,
    state: RdnsState,
}

#[derive(Clone, Debug)]
enum RdnsState {
    Reverse,
    /// The names in the operator's domain whose addresses have not been queried yet. The check
    /// queries the last name of the vector first.
    Forward {
        names: Vec<String>,
        /// The reason why the claim is undecided if no name resolves back to the address; `None` if
        /// the claim is refuted in this case.
        doubt: Option<UndecidedReason>,
    },
    Done(MethodOutcome),
}

/// A DNS query to send to a resolver, by record type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RdnsQuestion<'a> {
    /// Queries the reverse DNS names of an address.
    Ptr(IpAddr),
    /// Queries the IPv4 addresses of a name. The name is absolute: the resolver must not append
    /// search domains.
    A(&'a str),
    /// Queries the IPv6 addresses of a name. The name is absolute, like the name in [`A`](Self::A).
    Aaaa(&'a str),
}

/// The response of a resolver.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DnsAnswer {
    /// The names in PTR records, in the order of the response.
    Names(Vec<String>),
    /// The addresses in A or AAAA records, after following CNAME records.
    Addresses(Vec<IpAddr>),
    /// The name does not exist (NXDOMAIN).
    NoSuchName,
    /// The name has no record of this type (NOERROR without data).
    NoRecords,
    /// The response is SERVFAIL, REFUSED or invalid.
    Failure,
    /// The resolver did not respond in time.
    Timeout,
    /// The response was truncated, and could not be received over TCP either.
    Truncated,
}

impl RdnsCheck {
    /// Creates a check of an address against a crawler's host name patterns.
    pub fn new(address: PublicAddress, patterns: Arc<[NamePattern]>) -> Self {
        Self { address: address.get(), patterns, state: RdnsState::Reverse }
    }

    /// Returns the next query, or the outcome.
    pub fn step(&self) -> ControlFlow<MethodOutcome, RdnsQuestion<'_>> {
        match &self.state {
            RdnsState::Reverse => ControlFlow::Continue(RdnsQuestion::Ptr(self.address)),
            RdnsState::Forward { names, doubt } => match names.last() {
                Some(name) => ControlFlow::Continue(self.addresses_of(name)),
                None => ControlFlow::Break(not_confirmed(*doubt)),
            },
            RdnsState::Done(outcome) => ControlFlow::Break(*outcome),
        }
    }

    /// Processes the response to the query from [`step`](Self::step). A response that does not
    /// belong to this query is treated as an error of the resolver.
    pub fn answer(&mut self, answer: DnsAnswer) {
        let state = std::mem::replace(&mut self.state, RdnsState::Reverse);
        self.state = match state {
            RdnsState::Reverse => self.names(answer),
            RdnsState::Forward { names, doubt } => self.addresses(names, doubt, answer),
            done @ RdnsState::Done(_) => done,
        };
    }

    const fn addresses_of<'n>(&self, name: &'n str) -> RdnsQuestion<'n> {
        match self.address {
            IpAddr::V4(_) => RdnsQuestion::A(name),
            IpAddr::V6(_) => RdnsQuestion::Aaaa(name),
        }
    }

    fn names(&self, answer: DnsAnswer) -> RdnsState {
        let names = match answer {
            DnsAnswer::Names(names) => names,
            DnsAnswer::NoSuchName | DnsAnswer::NoRecords => Vec::new(),
            other => return RdnsState::Done(MethodOutcome::Undecided(doubt_of(&other))),
        };
        if names.is_empty() {
            return RdnsState::Done(MethodOutcome::Failed(Refutation::NoName));
        }
        // Names outside the operator's domain are not queried, because they prove nothing: the
        // owner of an address can give the address any name.
        let is_operators = |name: &String| self.patterns.iter().any(|pattern| pattern.matches(name));
        // Names after the first `MAX_NAMES` might be in the operator's domain. So a failed check of
        // the first names proves nothing.
        let doubt = (names.len() > MAX_NAMES).then_some(UndecidedReason::Truncated);
        let mut names: Vec<String> = names.into_iter().take(MAX_NAMES).filter(is_operators).collect();
        if names.is_empty() {
            let other = MethodOutcome::Failed(Refutation::OtherName);
            return RdnsState::Done(doubt.map_or(other, MethodOutcome::Undecided));
        }
        names.reverse();
        RdnsState::Forward { names, doubt }
    }

    fn addresses(&self, mut names: Vec<String>, doubt: Option<UndecidedReason>, answer: DnsAnswer) -> RdnsState {
        names.pop();
        let found = match answer {
            DnsAnswer::Addresses(found) => found,
            DnsAnswer::NoSuchName | DnsAnswer::NoRecords => Vec::new(),
            other => return self.then(names, doubt.or(Some(doubt_of(&other)))),
        };
        if found.iter().take(MAX_ADDRESSES).any(|address| address.to_canonical() == self.address) {
            return RdnsState::Done(MethodOutcome::Verified);
        }
        let is_cut = found.len() > MAX_ADDRESSES;
        self.then(names, doubt.or(is_cut.then_some(UndecidedReason::Truncated)))
    }

    fn then(&self, names: Vec<String>, doubt: Option<UndecidedReason>) -> RdnsState {
        if names.is_empty() { RdnsState::Done(not_confirmed(doubt)) } else { RdnsState::Forward { names, doubt } }
    }

    /// Changes a failed outcome to undecided unless this resolver verified an address of the same
    /// operator within the last hour. A resolver without Internet access, or with an internal view
    /// of the DNS, may answer every query with NXDOMAIN.
    pub fn through(outcome: MethodOutcome, last_verified: Option<SystemTime>, now: SystemTime) -> MethodOutcome {
        let is_proven = |at: SystemTime| now.duration_since(at).is_ok_and(|age| age <= RESOLVER_PROOF);
        match outcome {
            MethodOutcome::Failed(_) if !last_verified.is_some_and(is_proven) => {
                MethodOutcome::Undecided(UndecidedReason::UnprovenResolver)
            }
            outcome => outcome,
        }
    }
}

/// Returns the outcome for the case that no name in the operator's domain resolves back to the
/// address: undecided if `doubt` contains a reason, otherwise failed.
fn not_confirmed(doubt: Option<UndecidedReason>) -> MethodOutcome {
    doubt.map_or(MethodOutcome::Failed(Refutation::NotConfirmed), MethodOutcome::Undecided)
}

const fn doubt_of(answer: &DnsAnswer) -> UndecidedReason {
    match answer {
        DnsAnswer::Timeout => UndecidedReason::Timeout,
        DnsAnswer::Truncated => UndecidedReason::Truncated,
        _ => UndecidedReason::ResolverFailure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_NAME: MethodOutcome = MethodOutcome::Failed(Refutation::NoName);
    const OTHER_NAME: MethodOutcome = MethodOutcome::Failed(Refutation::OtherName);
    const NOT_CONFIRMED: MethodOutcome = MethodOutcome::Failed(Refutation::NotConfirmed);

    fn undecided(reason: UndecidedReason) -> MethodOutcome {
        MethodOutcome::Undecided(reason)
    }

    fn names(names: &[&str]) -> DnsAnswer {
        DnsAnswer::Names(names.iter().map(|name| (*name).to_owned()).collect())
    }

    fn addresses(addresses: &[&str]) -> DnsAnswer {
        DnsAnswer::Addresses(addresses.iter().map(|address| address.parse().expect(address)).collect())
    }

    fn run(address: &str, answers: &[DnsAnswer]) -> (MethodOutcome, Vec<String>) {
        let public = PublicAddress::of(Some(address.parse().expect(address)), |_| false).expect("a public address");
        let patterns = [".googlebot.com", "google-proxy-*.google.com"].map(|text| text.parse().expect(text));
        let mut check = RdnsCheck::new(public, patterns.as_slice().into());
        let mut asked = Vec::new();
        let mut answers = answers.iter();
        loop {
            match check.step() {
                ControlFlow::Break(outcome) => {
                    assert_eq!(answers.next(), None, "an answer without a question");
                    return (outcome, asked);
                }
                ControlFlow::Continue(RdnsQuestion::Ptr(address)) => asked.push(format!("PTR {address}")),
                ControlFlow::Continue(RdnsQuestion::A(name)) => asked.push(format!("A {name}")),
                ControlFlow::Continue(RdnsQuestion::Aaaa(name)) => asked.push(format!("Aaaa {name}")),
            }
            check.answer(answers.next().expect("an answer").clone());
        }
    }

    fn outcome(answers: &[DnsAnswer]) -> MethodOutcome {
        run("66.249.66.1", answers).0
    }

    #[test]
    fn a_name_that_resolves_back_to_the_address_verifies() {
        let (found, asked) = run("66.249.66.1", &[names(&["crawl.googlebot.com."]), addresses(&["66.249.66.1"])]);
        assert_eq!(found, MethodOutcome::Verified);
        assert_eq!(asked, ["PTR 66.249.66.1", "A crawl.googlebot.com."]);
        let six = [names(&["Crawl.GOOGLEBOT.com"]), addresses(&["2001:4860:4801:10:0:0:0:1"])];
        let (found, asked) = run("2001:4860:4801:10::1", &six);
        assert_eq!(found, MethodOutcome::Verified);
        assert_eq!(asked, ["PTR 2001:4860:4801:10::1", "Aaaa Crawl.GOOGLEBOT.com"]);
        let (found, asked) = run("::ffff:66.249.66.1", &[names(&["a.googlebot.com"]), addresses(&["66.249.66.1"])]);
        assert_eq!(found, MethodOutcome::Verified);
        assert_eq!(asked, ["PTR 66.249.66.1", "A a.googlebot.com"]);
    }

    #[test]
    fn the_name_that_matches_must_also_resolve_back_to_the_address() {
        // The first name is in the operator's domain but resolves to another address. The second
        // name would resolve back, but is not in the operator's domain.
        let two = names(&["crawl.googlebot.com", "evil.example"]);
        let (found, asked) = run("66.249.66.1", &[two, addresses(&["66.249.66.2"])]);
        assert_eq!(found, NOT_CONFIRMED);
        assert_eq!(asked.last().map(String::as_str), Some("A crawl.googlebot.com"));
        let second =
            [names(&["a.googlebot.com", "b.googlebot.com"]), addresses(&["66.249.66.2"]), addresses(&["66.249.66.1"])];
        let (found, asked) = run("66.249.66.1", &second);
        assert_eq!(found, MethodOutcome::Verified);
        assert_eq!(asked[1..], ["A a.googlebot.com", "A b.googlebot.com"]);
    }

    #[test]
    fn a_name_outside_the_operators_domain_is_not_resolved() {
        for name in ["xgooglebot.com", "googlebot.com.evil.example", "googlebot.com", "www.google.com", "evil.example"]
        {
            let (found, asked) = run("66.249.66.1", &[names(&[name])]);
            assert_eq!((found, asked.len()), (OTHER_NAME, 1), "{name}");
        }
    }

    #[test]
    fn at_most_four_names_and_eight_addresses_are_checked() {
        let mut many = vec!["evil.example"; 100];
        many[4] = "crawl.googlebot.com";
        assert_eq!(outcome(&[names(&many)]), undecided(UndecidedReason::Truncated));
        assert_eq!(outcome(&[names(&many[..4])]), OTHER_NAME);
        many[3] = "crawl.googlebot.com";
        assert_eq!(outcome(&[names(&many), addresses(&["66.249.66.1"])]), MethodOutcome::Verified);
        let all = vec!["a.googlebot.com"; 100];
        let no = DnsAnswer::NoSuchName;
        let (found, asked) = run("66.249.66.1", &[names(&all), no.clone(), no.clone(), no.clone(), no]);
        assert_eq!((found, asked.len()), (undecided(UndecidedReason::Truncated), 5));
        let mut many = vec!["66.249.66.2"; 9];
        many[8] = "66.249.66.1";
        assert_eq!(outcome(&[names(&["a.googlebot.com"]), addresses(&many)]), undecided(UndecidedReason::Truncated));
        assert_eq!(outcome(&[names(&["a.googlebot.com"]), addresses(&many[..8])]), NOT_CONFIRMED);
        many[7] = "66.249.66.1";
        assert_eq!(outcome(&[names(&["a.googlebot.com"]), addresses(&many)]), MethodOutcome::Verified);
    }

    #[test]
    fn a_missing_name_refutes_a_claim_and_a_failed_lookup_does_not() {
        assert_eq!(outcome(&[DnsAnswer::NoSuchName]), NO_NAME);
        assert_eq!(outcome(&[DnsAnswer::NoRecords]), NO_NAME);
        assert_eq!(outcome(&[names(&[])]), NO_NAME);
        assert_eq!(outcome(&[names(&["a.googlebot.com"]), DnsAnswer::NoSuchName]), NOT_CONFIRMED);
        assert_eq!(outcome(&[names(&["a.googlebot.com"]), DnsAnswer::NoRecords]), NOT_CONFIRMED);
        for (answer, reason) in [
            (DnsAnswer::Timeout, UndecidedReason::Timeout),
            (DnsAnswer::Failure, UndecidedReason::ResolverFailure),
            (DnsAnswer::Truncated, UndecidedReason::Truncated),
        ] {
            assert_eq!(outcome(std::slice::from_ref(&answer)), undecided(reason));
            let two = names(&["a.googlebot.com", "b.googlebot.com"]);
            assert_eq!(outcome(&[two.clone(), answer.clone(), DnsAnswer::NoSuchName]), undecided(reason));
            assert_eq!(outcome(&[two.clone(), DnsAnswer::NoSuchName, answer.clone()]), undecided(reason));
            assert_eq!(outcome(&[two, answer, addresses(&["66.249.66.1"])]), MethodOutcome::Verified);
        }
        // The response is to another query.
        assert_eq!(outcome(&[addresses(&["66.249.66.1"])]), undecided(UndecidedReason::ResolverFailure));
        let want = undecided(UndecidedReason::ResolverFailure);
        assert_eq!(outcome(&[names(&["a.googlebot.com"]), names(&["a.googlebot.com"])]), want);
    }

    #[test]
    fn only_a_resolver_that_verified_an_address_in_the_last_hour_refutes() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let unproven = undecided(UndecidedReason::UnprovenResolver);
        let (hour, second) = (Duration::from_secs(3600), Duration::from_secs(1));
        for (last_verified, meant) in [
            (None, unproven),
            (Some(now - hour - second), unproven),
            (Some(now - hour), NO_NAME),
            (Some(now), NO_NAME),
            (Some(now + second), unproven),
        ] {
            assert_eq!(RdnsCheck::through(NO_NAME, last_verified, now), meant, "{last_verified:?}");
        }
        assert_eq!(RdnsCheck::through(MethodOutcome::Verified, None, now), MethodOutcome::Verified);
        let timeout = undecided(UndecidedReason::Timeout);
        assert_eq!(RdnsCheck::through(timeout, Some(now), now), timeout);
    }
}
