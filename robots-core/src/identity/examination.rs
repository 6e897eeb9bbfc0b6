//! Combines the outcomes of all verification methods into one identity.

#[cfg(feature = "signatures")]
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::MethodOutcome;
use super::address_class::PublicAddress;
use super::range_set::RangeSet;
use crate::agent::{Crawler, Identity, IdentityMethod, Refutation, UndecidedReason};

#[cfg(feature = "signatures")]
use super::signature::{DirectoryUrl, KeySet, MessageHead, SignatureCheck};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ClaimKind {
    Unclaimed,
    /// The `User-Agent` names no crawler, but the `Signature-Agent` names a signer.
    #[cfg_attr(
        not(feature = "signatures"),
        allow(dead_code, reason = "only the feature `signatures` creates such claims")
    )]
    Signer,
    /// The `User-Agent` names a crawler.
    Crawler,
    /// The `User-Agent` names a fetcher that acts for a person. The requests of such a fetcher come
    /// from the operator's addresses or from the person's own device.
    UserTriggered,
}

#[derive(Clone, Copy, Debug)]
#[must_use]
pub(super) struct Examination {
    claim: ClaimKind,
    signature: Option<MethodOutcome>,
    /// Outcome of the check with the operator's address lists. `None` if the operator has no lists,
    /// or if this check was not made.
    pub(super) range: Option<MethodOutcome>,
    /// Outcome of the check by reverse DNS. `None` if the crawler has no host name patterns, or if
    /// this check was not made.
    pub(super) rdns: Option<MethodOutcome>,
    /// Whether the operator's reverse DNS names are unreliable. Unreliable names can verify a
    /// claim, but not refute it.
    pub(super) is_rdns_weak: bool,
    /// Whether the claimed crawler's operator publishes keys. In this case, a claim that no method
    /// could check is undecided, not unverifiable.
    pub(super) is_signing: bool,
}

impl Examination {
    pub(super) const fn of(claim: ClaimKind) -> Self {
        Self { claim, signature: None, range: None, rdns: None, is_rdns_weak: false, is_signing: false }
    }

    /// Adds the best outcome of the request's signatures for this claim.
    ///
    /// `directories` contains the key directories of the claimed crawler's operator. If
    /// `directories` is `None`, the operator is unknown, and the keys of any configured directory
    /// are accepted.
    #[cfg(feature = "signatures")]
    pub(super) fn signatures(self, checks: &[SignatureCheck], directories: Option<&[DirectoryUrl]>) -> Self {
        let outcomes = checks.iter().filter_map(|check| check.outcome_for(directories));
        let strength = |outcome: &MethodOutcome| match outcome {
            MethodOutcome::Verified => 0,
            MethodOutcome::Undecided(_) => 1,
            MethodOutcome::Failed(_) => 2,
        };
        Self { signature: outcomes.min_by_key(strength), ..self }
    }

    /// Reports whether a reverse DNS lookup could still change the identity.
    pub(super) fn needs_rdns(&self) -> bool {
        let is_verified = [self.signature, self.range].contains(&Some(MethodOutcome::Verified));
        self.is_of_crawler() && !is_verified && self.rdns.is_none()
    }

    /// Returns the identity. The best outcome of all methods decides: verified is better than
    /// undecided, and undecided is better than failed. If several methods have the best outcome,
    /// the identity is the result of the method that was tried first.
    ///
    /// After a failed check of the address, undecided outcomes that the sender can cause are
    /// ignored. Otherwise, an impostor could avoid the refutation: anybody can send a signature
    /// with an unknown key, and the owner of an address controls the reverse DNS zone of the
    /// address. The reason [`UndecidedReason::UnprovenResolver`] is ignored, too: if the operator's
    /// lists are complete and do not contain the address, the lists refute the claim without DNS.
    ///
    /// A user-triggered fetcher may run on a person's device, so its claim is unverifiable if the
    /// check of its address failed. An invalid signature still refutes the claim, because the check
    /// of a signature does not depend on the address. If the request makes no claim, the result is
    /// never [`Identity::Refuted`].
    pub(super) fn conclude(&self) -> Identity {
        // The outcomes of address checks count only if the `User-Agent` names a crawler.
        let of_address = |outcome: Option<MethodOutcome>| outcome.filter(|_| self.is_of_crawler());
        let tried = [
            (IdentityMethod::Signature, self.signature),
            (IdentityMethod::Range, of_address(self.range)),
            (IdentityMethod::Rdns, of_address(self.rdns)),
        ];
        let tried = || tried.into_iter().filter_map(|(method, outcome)| Some((method, outcome?)));
        if let Some((method, _)) = tried().find(|(_, outcome)| *outcome == MethodOutcome::Verified) {
            return Identity::Verified(method);
        }
        let has_failed = |method, outcome| match outcome {
            MethodOutcome::Failed(_) => {
                method == IdentityMethod::Range || (method == IdentityMethod::Rdns && !self.is_rdns_weak)
            }
            _ => false,
        };
        let is_address_failed = tried().any(|(method, outcome)| has_failed(method, outcome));
        if let Some(reason) = tried().find_map(|(method, outcome)| match outcome {
            MethodOutcome::Undecided(reason) if !(is_address_failed && is_caused_by_sender(method, reason)) => {
                Some(reason)
            }
            _ => None,
        }) {
            return Identity::Undecided(reason);
        }
        let refutation = tried().find_map(|(method, outcome)| match outcome {
            MethodOutcome::Failed(refutation) if self.counts(method) => Some(refutation),
            _ => None,
        });
        match (refutation, self.claim) {
            (_, ClaimKind::Unclaimed) | (None, ClaimKind::Signer) => Identity::Unclaimed,
            (Some(refutation), _) => Identity::Refuted(refutation),
            (None, _) if self.is_signing && tried().next().is_none() => Identity::Undecided(UndecidedReason::Unsigned),
            (None, _) => Identity::Unverifiable,
        }
    }

    const fn is_of_crawler(&self) -> bool {
        matches!(self.claim, ClaimKind::Crawler | ClaimKind::UserTriggered)
    }

    /// Reports whether a failed check by `method` refutes the claim.
    fn counts(&self, method: IdentityMethod) -> bool {
        match method {
            IdentityMethod::Signature => true,
            IdentityMethod::Rdns if self.is_rdns_weak => false,
            _ => self.claim == ClaimKind::Crawler,
        }
    }
}

/// Reports whether an undecided outcome is ignored after a failed check of the address: the sender
/// can cause it with the request or with the reverse DNS zone of the address, or the reason is
/// `UnprovenResolver`.
const fn is_caused_by_sender(method: IdentityMethod, reason: UndecidedReason) -> bool {
    use UndecidedReason::{
        AgentAbsent, Busy, ComponentNotCovered, DirectoryNotConfigured, KeyUnknownThere, ResolverFailure, TestKey,
        Timeout, Truncated, UnprovenResolver,
    };
    match method {
        // A signature gets `Busy` only after many signatures of its sender have failed, so the
        // sender can cause it.
        IdentityMethod::Signature => {
            matches!(
                reason,
                AgentAbsent | ComponentNotCovered | DirectoryNotConfigured | KeyUnknownThere | TestKey | Busy
            )
        }
        // For reverse DNS, `Busy` and `Pending` only mean that the lookup is not complete yet.
        IdentityMethod::Rdns => matches!(reason, Timeout | ResolverFailure | Truncated | UnprovenResolver),
        IdentityMethod::Range => false,
    }
}

/// Provides the data for checking claims: address lists, DNS results and keys. The trait's methods
/// must not block. If data is missing, a method returns an undecided outcome.
pub trait ClaimEvidence {
    /// Returns whether the operator's address lists confirm an address; `None` if the operator
    /// publishes no lists.
    fn range(&self, crawler: &Crawler, address: PublicAddress, now: SystemTime) -> Option<MethodOutcome>;

    /// Returns whether the reverse DNS names of an address confirm the claim; `None` if the
    /// registry has no host name patterns for the crawler.
    fn rdns(&self, crawler: &Crawler, address: PublicAddress, now: SystemTime) -> Option<MethodOutcome>;

    /// Returns the keys of a directory. `keyid` is the thumbprint of the key that made the
    /// signature.
    ///
    /// If no keys are available, returns the reason.
    /// [`DirectoryNotConfigured`](UndecidedReason::DirectoryNotConfigured) means that neither the
    /// registry nor the configuration contains the directory. Such a directory is not fetched,
    /// because a client must not be able to choose which URLs the server fetches.
    /// [`DirectoryUnavailable`](UndecidedReason::DirectoryUnavailable) means that the directory
    /// could not be fetched yet. The default implementation always returns
    /// `DirectoryNotConfigured`.
    #[cfg(feature = "signatures")]
    fn keys(&self, directory: &DirectoryUrl, keyid: &str, now: SystemTime) -> Result<Arc<KeySet>, UndecidedReason> {
        let _ = (directory, keyid, now);
        Err(UndecidedReason::DirectoryNotConfigured)
    }

    /// Checks the signatures of a request from `address`. Returns `None` if the request is not
    /// signed. The default implementation uses the keys that [`keys`](Self::keys) returns. An
    /// implementation may also cache results, or limit the checks for senders whose signatures
    /// fail.
    #[cfg(feature = "signatures")]
    fn signatures(
        &self,
        message: &MessageHead<'_>,
        address: Option<PublicAddress>,
        now: SystemTime,
    ) -> Option<Arc<[SignatureCheck]>> {
        let _ = address;
        SignatureCheck::all(message, now, |directory, keyid| self.keys(directory, keyid, now))
    }
}

/// How long a list can refute any claim after the list's last confirmation. Later, the list can
/// refute only claims that the client first made long before the confirmation ([`CLOCK_ERROR`]).
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);

/// A list older than [`FRESH`] can refute a claim only if it was confirmed more than this time
/// after the first request with the claim. The time is a day, because the clock may have been wrong
/// by a day.
const CLOCK_ERROR: Duration = Duration::from_secs(24 * 60 * 60);

/// How far in the future the recorded time of a confirmation may be. If this time is further in the
/// future, the clock was wrong at the confirmation or is wrong now.
const CLOCK_STEP: Duration = Duration::from_secs(60);

/// An address list of an operator, with the time of its last confirmation.
///
/// A list of any age can verify claims, but an old list cannot refute new claims
/// ([`ListEvidence::examine`]), because lists change: within four months, one published list lost
/// 119 of its 240 prefixes and gained 83.
#[derive(Clone, Copy, Debug)]
pub struct ListEvidence<'a> {
    /// The addresses on the list.
    pub set: &'a RangeSet,
    /// Time when the operator's server last sent the list or responded that the list has not
    /// changed. `None` for a list that is embedded in the program. Such a list can verify claims,
    /// but it never refutes them.
    pub confirmed: Option<SystemTime>,
}

impl ListEvidence<'_> {
    /// Checks an address against a crawler's lists. `lists` contains `None` for each list that is
    /// not loaded.
    ///
    /// The claim is verified if one of the lists contains the address. The claim fails if no list
    /// contains the address and every list can refute the claim. A list can refute the claim in two
    /// cases: the operator's server confirmed the list within the last 24 hours, or the server
    /// confirmed the list more than 24 hours after the first request with this claim from the
    /// address.
    pub fn examine(
        lists: impl IntoIterator<Item = Option<Self>>,
        address: PublicAddress,
        first_seen: Option<SystemTime>,
        now: SystemTime,
    ) -> MethodOutcome {
        let outcomes = lists.into_iter().map(|list| match list {
            Some(list) => list.outcome(address, first_seen, now),
            None => MethodOutcome::Undecided(UndecidedReason::NotLoaded),
        });
        Self::combine(outcomes)
    }

    /// Checks an address against this list only.
    #[doc(hidden)]
    pub fn outcome(&self, address: PublicAddress, first_seen: Option<SystemTime>, now: SystemTime) -> MethodOutcome {
        if self.set.contains(address.get()) {
            MethodOutcome::Verified
        } else if self.can_refute(first_seen, now) {
            MethodOutcome::Failed(Refutation::NotListed)
        } else {
            MethodOutcome::Undecided(UndecidedReason::Stale)
        }
    }

    /// Combines the outcomes of several lists. One list can verify the claim. The claim is refuted
    /// only if all lists refute it.
    #[doc(hidden)]
    pub fn combine(outcomes: impl IntoIterator<Item = MethodOutcome>) -> MethodOutcome {
        const NOT_LOADED: MethodOutcome = MethodOutcome::Undecided(UndecidedReason::NotLoaded);
        let mut missed = None;
        for outcome in outcomes {
            match (outcome, missed) {
                (MethodOutcome::Verified, _) => return outcome,
                // If one list is not loaded and another is stale, `NotLoaded` is reported as the
                // more important reason.
                (_, Some(NOT_LOADED)) | (MethodOutcome::Failed(_), Some(_)) => {}
                (outcome, _) => missed = Some(outcome),
            }
        }
        missed.unwrap_or(NOT_LOADED)
    }

    /// Reports whether a list that was confirmed at `confirmed` is recent enough at `now` to refute
    /// claims, regardless of when the address was first seen.
    pub fn is_fresh(confirmed: SystemTime, now: SystemTime) -> bool {
        match now.duration_since(confirmed) {
            Ok(age) => age <= FRESH,
            Err(ahead) => ahead.duration() <= CLOCK_STEP,
        }
    }

    fn can_refute(&self, first_seen: Option<SystemTime>, now: SystemTime) -> bool {
        let Some(confirmed) = self.confirmed else { return false };
        let was_known = || {
            let known = first_seen.and_then(|first_seen| confirmed.duration_since(first_seen).ok());
            confirmed <= now && known.is_some_and(|known| known > CLOCK_ERROR)
        };
        Self::is_fresh(confirmed, now) || was_known()
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::agent::Refutation;

    impl Examination {
        const fn signature(self, outcome: MethodOutcome) -> Self {
            Self { signature: Some(outcome), ..self }
        }

        const fn range(self, outcome: MethodOutcome) -> Self {
            Self { range: Some(outcome), ..self }
        }

        const fn rdns(self, outcome: MethodOutcome) -> Self {
            Self { rdns: Some(outcome), ..self }
        }

        const fn weak_rdns(self, outcome: MethodOutcome) -> Self {
            Self { is_rdns_weak: true, ..self.rdns(outcome) }
        }

        const fn signing(self) -> Self {
            Self { is_signing: true, ..self }
        }
    }

    const VERIFIED: MethodOutcome = MethodOutcome::Verified;
    const UNLISTED: MethodOutcome = MethodOutcome::Failed(Refutation::NotListed);
    const NO_NAME: MethodOutcome = MethodOutcome::Failed(Refutation::NoName);
    const EXPIRED: MethodOutcome = MethodOutcome::Failed(Refutation::Expired);
    const STALE: MethodOutcome = MethodOutcome::Undecided(UndecidedReason::Stale);
    const TIMEOUT: MethodOutcome = MethodOutcome::Undecided(UndecidedReason::Timeout);
    const PENDING: MethodOutcome = MethodOutcome::Undecided(UndecidedReason::Pending);
    const DOWN: MethodOutcome = MethodOutcome::Undecided(UndecidedReason::DirectoryUnavailable);

    fn crawler() -> Examination {
        Examination::of(ClaimKind::Crawler)
    }

    #[test]
    fn the_identity_contains_the_first_method_that_verifies_it() {
        let all = crawler().rdns(VERIFIED).range(VERIFIED).signature(VERIFIED);
        assert_eq!(all.conclude(), Identity::Verified(IdentityMethod::Signature));
        assert_eq!(crawler().rdns(VERIFIED).range(VERIFIED).conclude(), Identity::Verified(IdentityMethod::Range));
        let want = Identity::Verified(IdentityMethod::Rdns);
        assert_eq!(crawler().signature(EXPIRED).range(STALE).rdns(VERIFIED).conclude(), want);
        let expected = Identity::Verified(IdentityMethod::Range);
        assert_eq!(crawler().signature(DOWN).range(VERIFIED).rdns(NO_NAME).conclude(), expected);
    }

    #[test]
    fn a_claim_is_refuted_only_if_every_method_that_was_tried_failed() {
        assert_eq!(crawler().range(UNLISTED).conclude(), Identity::Refuted(Refutation::NotListed));
        assert_eq!(crawler().range(UNLISTED).rdns(NO_NAME).conclude(), Identity::Refuted(Refutation::NotListed));
        assert_eq!(crawler().signature(EXPIRED).range(UNLISTED).conclude(), Identity::Refuted(Refutation::Expired));
        for (examination, reason) in [
            (crawler().range(UNLISTED).rdns(PENDING), UndecidedReason::Pending),
            (crawler().rdns(TIMEOUT), UndecidedReason::Timeout),
            (crawler().range(STALE).rdns(NO_NAME), UndecidedReason::Stale),
            (crawler().signature(DOWN).range(UNLISTED).rdns(NO_NAME), UndecidedReason::DirectoryUnavailable),
            (crawler().signature(EXPIRED).range(STALE), UndecidedReason::Stale),
            (crawler().range(STALE).rdns(TIMEOUT), UndecidedReason::Stale),
            (crawler().weak_rdns(TIMEOUT), UndecidedReason::Timeout),
        ] {
            assert_eq!(examination.conclude(), Identity::Undecided(reason), "{examination:?}");
        }
    }

    #[test]
    fn an_undecided_method_that_the_sender_controls_does_not_outweigh_a_failed_address() {
        let undecided = MethodOutcome::Undecided;
        for reason in [
            UndecidedReason::AgentAbsent,
            UndecidedReason::ComponentNotCovered,
            UndecidedReason::DirectoryNotConfigured,
            UndecidedReason::KeyUnknownThere,
            UndecidedReason::TestKey,
            UndecidedReason::Busy,
        ] {
            let signed = crawler().signature(undecided(reason));
            assert_eq!(signed.conclude(), Identity::Undecided(reason));
            assert_eq!(signed.range(STALE).conclude(), Identity::Undecided(reason));
            assert_eq!(signed.weak_rdns(NO_NAME).conclude(), Identity::Undecided(reason));
            assert_eq!(signed.range(UNLISTED).conclude(), Identity::Refuted(Refutation::NotListed));
            assert_eq!(signed.rdns(NO_NAME).conclude(), Identity::Refuted(Refutation::NoName));
            // The sender cannot make a list stale, so an outcome with the reason `Stale` counts.
            assert_eq!(signed.range(STALE).rdns(NO_NAME).conclude(), Identity::Undecided(UndecidedReason::Stale));
        }
        for reason in [
            UndecidedReason::Timeout,
            UndecidedReason::ResolverFailure,
            UndecidedReason::Truncated,
            UndecidedReason::UnprovenResolver,
        ] {
            let named = crawler().rdns(undecided(reason));
            assert_eq!(named.conclude(), Identity::Undecided(reason));
            assert_eq!(named.range(STALE).conclude(), Identity::Undecided(UndecidedReason::Stale));
            assert_eq!(named.range(UNLISTED).conclude(), Identity::Refuted(Refutation::NotListed));
        }
        for reason in [UndecidedReason::Pending, UndecidedReason::Busy] {
            let behind = crawler().range(UNLISTED).rdns(undecided(reason));
            assert_eq!(behind.conclude(), Identity::Undecided(reason));
        }
    }

    #[test]
    fn a_user_triggered_fetcher_is_not_refuted_by_its_address() {
        let fetcher = Examination::of(ClaimKind::UserTriggered);
        assert_eq!(fetcher.range(UNLISTED).rdns(NO_NAME).conclude(), Identity::Unverifiable);
        assert_eq!(fetcher.range(VERIFIED).conclude(), Identity::Verified(IdentityMethod::Range));
        assert_eq!(fetcher.range(STALE).conclude(), Identity::Undecided(UndecidedReason::Stale));
        assert_eq!(fetcher.range(UNLISTED).signature(EXPIRED).conclude(), Identity::Refuted(Refutation::Expired));
    }

    #[test]
    fn weak_evidence_verifies_and_does_not_refute() {
        assert_eq!(crawler().weak_rdns(NO_NAME).conclude(), Identity::Unverifiable);
        assert_eq!(crawler().weak_rdns(VERIFIED).conclude(), Identity::Verified(IdentityMethod::Rdns));
        assert_eq!(crawler().range(UNLISTED).weak_rdns(NO_NAME).conclude(), Identity::Refuted(Refutation::NotListed));
    }

    #[test]
    fn a_claim_without_any_method_is_unverifiable_and_an_unsigned_signer_is_undecided() {
        assert_eq!(crawler().conclude(), Identity::Unverifiable);
        assert_eq!(crawler().signing().conclude(), Identity::Undecided(UndecidedReason::Unsigned));
        assert_eq!(crawler().signing().range(UNLISTED).conclude(), Identity::Refuted(Refutation::NotListed));
        assert_eq!(crawler().signing().signature(EXPIRED).conclude(), Identity::Refuted(Refutation::Expired));
    }

    #[test]
    fn an_agent_that_claims_nothing_is_identified_only_by_a_signature() {
        let unclaimed = Examination::of(ClaimKind::Unclaimed);
        assert_eq!(unclaimed.conclude(), Identity::Unclaimed);
        assert_eq!(unclaimed.range(UNLISTED).rdns(NO_NAME).signing().conclude(), Identity::Unclaimed);
        assert_eq!(unclaimed.range(VERIFIED).conclude(), Identity::Unclaimed);
        assert_eq!(unclaimed.signature(VERIFIED).conclude(), Identity::Verified(IdentityMethod::Signature));
        assert_eq!(unclaimed.signature(EXPIRED).conclude(), Identity::Unclaimed);
        let signer = Examination::of(ClaimKind::Signer);
        assert_eq!(signer.signature(EXPIRED).conclude(), Identity::Refuted(Refutation::Expired));
        assert_eq!(signer.range(UNLISTED).conclude(), Identity::Unclaimed);
        assert!(!signer.needs_rdns());
        assert_eq!(unclaimed.signature(DOWN).conclude(), Identity::Undecided(UndecidedReason::DirectoryUnavailable));
        assert!(!unclaimed.needs_rdns());
    }

    #[test]
    fn reverse_dns_is_requested_only_if_it_can_change_the_result() {
        assert!(crawler().needs_rdns());
        assert!(crawler().range(UNLISTED).needs_rdns());
        assert!(crawler().range(STALE).signature(EXPIRED).needs_rdns());
        assert!(!crawler().range(VERIFIED).needs_rdns());
        assert!(!crawler().signature(VERIFIED).needs_rdns());
        assert!(!crawler().range(UNLISTED).rdns(TIMEOUT).needs_rdns());
    }

    const HOUR: Duration = Duration::from_secs(3600);

    fn address(bytes: [u8; 4]) -> PublicAddress {
        PublicAddress::of(Some(IpAddr::from(bytes)), |_| false).expect("public")
    }

    fn at(hours: u32) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000) + hours * HOUR
    }

    const FAILED: MethodOutcome = MethodOutcome::Failed(Refutation::NotListed);
    const NOT_LOADED: MethodOutcome = MethodOutcome::Undecided(UndecidedReason::NotLoaded);

    #[test]
    fn an_address_missing_from_a_list_is_refuted_only_if_the_list_is_fresh() {
        let set: RangeSet = ["8.8.8.0/24".parse().expect("a prefix")].into_iter().collect();
        for (confirmed, first_seen, now, outcome) in [
            (Some(0), None, 0, FAILED),
            (Some(0), None, 24, FAILED),
            (Some(0), None, 25, STALE),
            (Some(0), Some(10), 24, FAILED),
            (Some(0), Some(10), 25, STALE),
            // The list was confirmed more than a day after the address was first seen, and does not
            // contain the address.
            (Some(35), Some(10), 400, FAILED),
            (Some(34), Some(10), 400, STALE),
            (Some(20), Some(20), 400, STALE),
            // The clock was a day behind when the address was first seen, so the recorded time is
            // before the confirmation.
            (Some(30), Some(31 - 24), 400, STALE),
            // The clock was set back, so the time of the confirmation proves nothing.
            (Some(30), None, 6, STALE),
            (Some(30), Some(5), 6, STALE),
            (None, None, 0, STALE),
            (None, Some(0), 400, STALE),
        ] {
            let list = ListEvidence { set: &set, confirmed: confirmed.map(at) };
            let first_seen = first_seen.map(at);
            let examine = |bytes| ListEvidence::examine([Some(list)], address(bytes), first_seen, at(now));
            assert_eq!(examine([9, 9, 9, 9]), outcome, "{confirmed:?} {first_seen:?} {now}");
            assert_eq!(examine([8, 8, 8, 8]), MethodOutcome::Verified);
        }
    }

    #[test]
    fn one_of_several_lists_can_verify_but_only_all_of_them_together_refute() {
        let (one, other): (RangeSet, RangeSet) =
            (["8.8.8.0/24".parse().expect("a prefix")].into_iter().collect(), RangeSet::default());
        let fresh = ListEvidence { set: &other, confirmed: Some(at(0)) };
        let (old, listed) = (ListEvidence { confirmed: None, ..fresh }, ListEvidence { set: &one, confirmed: None });
        let examine = |lists: &[Option<ListEvidence<'_>>], bytes| {
            ListEvidence::examine(lists.iter().copied(), address(bytes), None, at(0))
        };
        assert_eq!(examine(&[None, Some(old), Some(listed)], [8, 8, 8, 8]), MethodOutcome::Verified);
        assert_eq!(examine(&[Some(fresh), Some(fresh)], [8, 8, 8, 8]), FAILED);
        assert_eq!(examine(&[Some(old), Some(fresh)], [8, 8, 8, 8]), STALE);
        assert_eq!(examine(&[Some(fresh), None, Some(old)], [8, 8, 8, 8]), NOT_LOADED);
        assert_eq!(examine(&[], [8, 8, 8, 8]), NOT_LOADED);
    }
}
