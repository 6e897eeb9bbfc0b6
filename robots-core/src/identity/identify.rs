//! Identifies the sender of a request from the request's claim, the registry and the evidence.

use std::time::SystemTime;

use super::MethodOutcome;
use super::address_class::PublicAddress;
use super::examination::{ClaimEvidence, ClaimKind, Examination};
#[cfg(feature = "signatures")]
use super::signature::{MessageHead, SignatureCheck};
#[cfg(feature = "signatures")]
use super::signers::Signers;
use crate::agent::{Agent, Category, Class, Crawler, Identity, UndecidedReason};

/// A request whose sender is to be identified.
#[must_use]
#[non_exhaustive]
pub struct IdentityRequest<'a> {
    agents: &'a [Agent],
    /// The client's address; `None` if the address proves nothing about the client.
    #[doc(hidden)]
    pub address: Option<PublicAddress>,
    #[cfg(feature = "signatures")]
    signed: Option<(&'a MessageHead<'a>, &'a Signers)>,
}

/// The identified sender of a request.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Identified<'a> {
    /// Result of verifying the claim of the request.
    pub identity: Identity,
    /// Name of the crawler: the [`signer`](Self::signer) or, if there is no signer, the crawler
    /// that the request claims to be from. `None` if the request has no signer and does not claim
    /// to be from a crawler.
    pub crawler: Option<&'a str>,
    /// The crawler whose operator signed the request. `None` if there is no valid signature, or if
    /// the `User-Agent` names a registered crawler. A request with a signer is handled and logged
    /// as a request of this crawler.
    pub signer: Option<&'a Agent>,
    /// Name of the registered crawler in the `User-Agent`.
    #[doc(hidden)]
    pub registered: Option<&'a str>,
    /// Whether a pending reverse DNS lookup may change the identity.
    #[doc(hidden)]
    pub is_rdns_pending: bool,
}

impl<'a> IdentityRequest<'a> {
    /// Creates a request from the agents in its `User-Agent` lines and the client's address. Pass
    /// `None` if the address proves nothing about the client ([`PublicAddress::of`]).
    pub const fn new(agents: &'a [Agent], address: Option<PublicAddress>) -> Self {
        Self {
            agents,
            address,
            #[cfg(feature = "signatures")]
            signed: None,
        }
    }

    /// Adds the request head with the signatures to check, and the key directories.
    #[cfg(feature = "signatures")]
    #[doc(hidden)]
    pub const fn signed(self, message: &'a MessageHead<'a>, signers: &'a Signers) -> Self {
        Self { signed: Some((message, signers)), ..self }
    }

    /// Identifies the sender of the request.
    ///
    /// 1. If the `User-Agent` names a registered crawler, the claim is checked with the methods in
    ///    the crawler's registry row, and with the signatures of the crawler's operator. If the
    ///    `User-Agent` names an unregistered crawler, the operator is unknown, so a signature of
    ///    any configured operator verifies the claim.
    /// 2. If the `User-Agent` names no crawler, but the request is signed and has a
    ///    `Signature-Agent`, this field is the claim. A valid signature identifies the crawler, and
    ///    an invalid signature refutes the claim.
    /// 3. If the request names several agents, only the worst of their identities is returned. The
    ///    order from the worst to the best identity is: refuted, undecided, unverifiable, verified.
    ///    But if one claim is verified, unverified claims to be other crawlers of the same operator
    ///    are ignored. For example, AdsBot's header may also name Googlebot, whose list does not
    ///    contain AdsBot's addresses.
    pub fn identify(&self, evidence: &impl ClaimEvidence, now: SystemTime) -> Identified<'a> {
        #[cfg(feature = "signatures")]
        let checks = self.signed.and_then(|(message, _)| evidence.signatures(message, self.address, now));
        #[cfg(feature = "signatures")]
        let checks = checks.as_deref().unwrap_or_default();
        let identify = |agent: Option<&'a Agent>| {
            #[cfg(feature = "signatures")]
            return self.identify_one(agent, evidence, checks, now);
            #[cfg(not(feature = "signatures"))]
            return self.identify_one(agent, evidence, now);
        };
        match self.agents {
            [] => identify(None),
            [agent] => identify(Some(agent)),
            agents => strictest(agents.iter().map(|agent| (operator(agent), identify(Some(agent)))).collect()),
        }
    }

    fn identify_one(
        &self,
        agent: Option<&'a Agent>,
        evidence: &impl ClaimEvidence,
        #[cfg(feature = "signatures")] checks: &[SignatureCheck],
        now: SystemTime,
    ) -> Identified<'a> {
        let registered = agent.and_then(Agent::registered);
        // An unregistered agent claims to be a crawler only if its header declares a crawler.
        let declared = agent.filter(|agent| registered.is_none() && agent.class() == Class::Declared);
        let kind = match registered {
            Some(crawler) if crawler.category == Category::UserFetch => ClaimKind::UserTriggered,
            Some(_) => ClaimKind::Crawler,
            None if declared.is_some() => ClaimKind::Crawler,
            #[cfg(feature = "signatures")]
            // A `Signature-Agent` is not a claim if the request has no signature.
            None if !checks.is_empty() && self.signed.is_some_and(|(message, _)| message.names_signer()) => {
                ClaimKind::Signer
            }
            None => ClaimKind::Unclaimed,
        };
        let mut examination = Examination::of(kind);
        #[cfg(feature = "signatures")]
        let signed_by = self.signed.and_then(|(_, signers)| {
            examination = examination.signatures(checks, registered.map(|crawler| signers.directories_of(crawler)));
            let valid = checks.iter().find(|check| check.outcome == MethodOutcome::Verified)?;
            signers.agent(valid.directory.as_ref()?)
        });
        #[cfg(not(feature = "signatures"))]
        let signed_by: Option<&'a Agent> = None;
        if let Some(crawler) = registered {
            self.examine_address(&mut examination, crawler, evidence, now);
        }
        let identity = examination.conclude();
        let signer = signed_by.filter(|_| registered.is_none() && matches!(identity, Identity::Verified(_)));
        let registered = registered.map(|crawler| crawler.name.as_str());
        let claimed = registered.or_else(|| declared?.crawler());
        let is_rdns_pending = examination.rdns == Some(MethodOutcome::Undecided(UndecidedReason::Pending));
        Identified {
            identity,
            crawler: signer.and_then(Agent::crawler).or(claimed),
            signer,
            registered,
            is_rdns_pending,
        }
    }

    fn examine_address(
        &self,
        examination: &mut Examination,
        crawler: &Crawler,
        evidence: &impl ClaimEvidence,
        now: SystemTime,
    ) {
        const NO_ADDRESS: MethodOutcome = MethodOutcome::Undecided(UndecidedReason::Address);
        examination.is_signing = crawler.signature.is_some();
        examination.is_rdns_weak = crawler.is_reverse_dns_weak;
        examination.range = match self.address {
            Some(address) => evidence.range(crawler, address, now),
            None => (!crawler.ranges.is_empty()).then_some(NO_ADDRESS),
        };
        if examination.needs_rdns() {
            examination.rdns = match self.address {
                Some(address) => evidence.rdns(crawler, address, now),
                None => (!crawler.reverse_dns.is_empty()).then_some(NO_ADDRESS),
            };
        }
    }
}

fn operator(agent: &Agent) -> Option<&str> {
    agent.registered().map(|crawler| crawler.operator.as_str()).filter(|operator| !operator.is_empty())
}

fn strictest<'a>(mut found: Vec<(Option<&str>, Identified<'a>)>) -> Identified<'a> {
    let is_verified = |found: &Identified<'_>| matches!(found.identity, Identity::Verified(_));
    if let Some(operator) = found.iter().find_map(|(operator, found)| operator.filter(|_| is_verified(found))) {
        found.retain(|(other, found)| *other != Some(operator) || is_verified(found));
    }
    let is_rdns_pending = found.iter().any(|(_, found)| found.is_rdns_pending);
    let unclaimed =
        Identified { identity: Identity::Unclaimed, crawler: None, signer: None, registered: None, is_rdns_pending };
    let strictest = found.into_iter().map(|(_, found)| found).min_by_key(|found| rank(found.identity));
    Identified { is_rdns_pending, ..strictest.unwrap_or(unclaimed) }
}

/// Returns the rank of an identity. If a request makes several claims, the identity with the lowest
/// rank counts. A refuted claim has rank 0: its sender is an impostor, even if another claim of the
/// request is true.
const fn rank(identity: Identity) -> u8 {
    match identity {
        Identity::Refuted(_) => 0,
        Identity::Undecided(_) => 1,
        Identity::Unverifiable => 2,
        Identity::Verified(_) => 3,
        Identity::Unclaimed => 4,
    }
}

crate::debug_as!(|it| IdentityRequest::<'_> { agents: it.agents, address: it.address });

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::agent::{IdentityMethod, Recognizer, Refutation, Registry};
    use crate::rules::RobotsTxt;

    /// Evidence for these tests. All lists contain 8.8.8.1, and AdsBot's list also contains
    /// 8.8.8.4. A reverse DNS name verifies 8.8.8.2. For 8.8.8.3, the checks by list and by reverse
    /// DNS fail. For 8.8.8.5, the lists are stale, and the reverse DNS lookup is pending.
    struct Played;

    impl ClaimEvidence for Played {
        fn range(&self, crawler: &Crawler, address: PublicAddress, _: SystemTime) -> Option<MethodOutcome> {
            (!crawler.ranges.is_empty()).then(|| match address.get() {
                address if address == IpAddr::from([8, 8, 8, 1]) => MethodOutcome::Verified,
                address if address == IpAddr::from([8, 8, 8, 4]) && crawler.name == "AdsBot-Google" => {
                    MethodOutcome::Verified
                }
                address if address == IpAddr::from([8, 8, 8, 5]) => MethodOutcome::Undecided(UndecidedReason::Stale),
                _ => MethodOutcome::Failed(Refutation::NotListed),
            })
        }

        fn rdns(&self, crawler: &Crawler, address: PublicAddress, _: SystemTime) -> Option<MethodOutcome> {
            assert_ne!(address.get(), IpAddr::from([8, 8, 8, 1]), "names are not asked for where the list decides");
            (!crawler.reverse_dns.is_empty()).then(|| match address.get() {
                address if address == IpAddr::from([8, 8, 8, 2]) => MethodOutcome::Verified,
                address if address == IpAddr::from([8, 8, 8, 5]) => MethodOutcome::Undecided(UndecidedReason::Pending),
                _ => MethodOutcome::Failed(Refutation::OtherName),
            })
        }
    }

    fn identify(headers: &[&str], last: Option<u8>) -> (Identity, Option<String>) {
        let (identity, crawler, _) = identify_now(headers, last);
        (identity, crawler)
    }

    /// Returns the identity, the crawler, and whether a reverse DNS lookup is pending.
    fn identify_now(headers: &[&str], last: Option<u8>) -> (Identity, Option<String>, bool) {
        let recognizer = Recognizer::new(Registry::builtin().clone(), &RobotsTxt::parse(&b""[..]));
        let agents: Vec<Agent> = headers.iter().map(|header| recognizer.identify(header.as_bytes())).collect();
        let address = last
            .map(|last| PublicAddress::of(Some(IpAddr::from([8, 8, 8, last])), |_| false).expect("a public address"));
        let request = IdentityRequest::new(&agents, address);
        let found = request.identify(&Played, SystemTime::UNIX_EPOCH);
        (found.identity, found.crawler.map(str::to_owned), found.is_rdns_pending)
    }

    const GOOGLEBOT: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
    const BROWSER: &str =
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0 Safari/537.36";

    #[test]
    fn a_claim_is_checked_by_the_methods_in_its_registry_row() {
        let google = || Some("Googlebot".to_owned());
        assert_eq!(identify(&[GOOGLEBOT], Some(1)), (Identity::Verified(IdentityMethod::Range), google()));
        assert_eq!(identify(&[GOOGLEBOT], Some(2)), (Identity::Verified(IdentityMethod::Rdns), google()));
        assert_eq!(identify(&[GOOGLEBOT], Some(3)), (Identity::Refuted(Refutation::NotListed), google()));
        assert_eq!(identify(&[GOOGLEBOT], None), (Identity::Undecided(UndecidedReason::Address), google()));
        let (identity, crawler) = identify(&["ChatGPT-User/1.0"], Some(3));
        assert_eq!((identity, crawler.as_deref()), (Identity::Unverifiable, Some("ChatGPT-User")));
        // The reverse DNS names of Baidu's addresses are unreliable.
        let (identity, crawler) =
            identify(&["Mozilla/5.0 (compatible; Baiduspider/2.0; +http://www.baidu.com/search/spider.html)"], Some(3));
        assert_eq!((identity, crawler.as_deref()), (Identity::Unverifiable, Some("Baiduspider")));
    }

    #[test]
    fn an_agent_without_a_registered_claim_is_not_checked_by_its_address() {
        assert_eq!(identify(&[BROWSER], Some(3)), (Identity::Unclaimed, None));
        assert_eq!(identify(&[], Some(3)), (Identity::Unclaimed, None));
        assert_eq!(identify(&["curl/8.0"], None), (Identity::Unclaimed, None));
        let declared = identify(&["ExampleBot/1.0 (+https://example.com/bot)"], Some(3));
        assert_eq!(declared, (Identity::Unverifiable, Some("ExampleBot".to_owned())));
    }

    #[test]
    fn an_impostor_among_several_agents_determines_the_identity() {
        for headers in [[GOOGLEBOT, BROWSER], [BROWSER, GOOGLEBOT], ["ExampleBot/1.0 (+https://a.example)", GOOGLEBOT]]
        {
            assert_eq!(identify(&headers, Some(3)).0, Identity::Refuted(Refutation::NotListed), "{headers:?}");
        }
        assert_eq!(identify(&[BROWSER, GOOGLEBOT], Some(1)).0, Identity::Verified(IdentityMethod::Range));
    }

    #[test]
    fn a_pending_lookup_is_reported_even_if_the_identity_has_another_reason() {
        let stale = Identity::Undecided(UndecidedReason::Stale);
        let pending = |headers: &[&str], last| {
            let (identity, _, is_rdns_pending) = identify_now(headers, last);
            (identity, is_rdns_pending)
        };
        assert_eq!(pending(&[GOOGLEBOT], Some(5)), (stale, true));
        assert_eq!(pending(&["GPTBot/1.0", GOOGLEBOT], Some(5)), (stale, true));
        assert_eq!(pending(&[GOOGLEBOT], Some(3)), (Identity::Refuted(Refutation::NotListed), false));
        assert_eq!(pending(&[GOOGLEBOT], Some(1)), (Identity::Verified(IdentityMethod::Range), false));
        assert_eq!(pending(&[BROWSER], Some(5)), (Identity::Unclaimed, false));
    }

    /// The address 8.8.8.4 is in AdsBot's list, but not in Googlebot's list.
    #[test]
    fn a_crawler_of_the_same_operator_in_the_request_is_not_an_impostor() {
        const ADSBOT: &str = "AdsBot-Google (+http://www.google.com/adsbot.html)";
        let verified = (Identity::Verified(IdentityMethod::Range), Some("AdsBot-Google".to_owned()));
        assert_eq!(identify(&[GOOGLEBOT, ADSBOT], Some(4)), verified);
        assert_eq!(identify(&[GOOGLEBOT], Some(4)).0, Identity::Refuted(Refutation::NotListed));
        let bing = "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)";
        assert_eq!(identify(&[bing, ADSBOT], Some(4)).0, Identity::Refuted(Refutation::NotListed));
    }
}
