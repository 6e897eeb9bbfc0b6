//! Combines the outcomes of all methods into one identity.

#[cfg(feature = "signatures")]
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::MethodOutcome;
use super::address_class::PublicAddress;
use super::range_set::RangeSet;
use crate::agent::{Crawler, Identity, IdentityMethod, Refutation, UndecidedReason};

#[cfg(feature = "signatures")]
use super::signature::{DirectoryUrl, KeySet, MessageHead, SignatureCheck};

/// The kind of sender that a request claims to come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ClaimKind {
    /// No crawler.
    Unclaimed,
    /// The `User-Agent` names no crawler, but the `Signature-Agent` names the signer.
    #[cfg_attr(not(feature = "signatures"), allow(dead_code, reason = "only signatures bring such claims"))]
    Signer,
    /// A crawler.
    Crawler,
    /// A fetcher that acts for a person, from the operator's addresses or from the person's own
    /// device.
    UserTriggered,
}

/// A claim, and the outcomes of the methods that were tried.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub(super) struct Examination {
    claim: ClaimKind,
    signature: Option<MethodOutcome>,
    /// Outcome of the operator's lists, if there are any.
    pub(super) range: Option<MethodOutcome>,
    /// Outcome of the names of the address, if the operator has host name patterns.
    pub(super) rdns: Option<MethodOutcome>,
    /// Whether the names of the operator's addresses are unreliable. They then verify, but do not
    /// refute.
    pub(super) is_rdns_weak: bool,
    /// Whether the claimed crawler's operator publishes keys. They are not tried on a request
    /// without a signature.
    pub(super) is_signing: bool,
}

impl Examination {
    /// Creates the examination of a claim, before any method was tried.
    pub(super) const fn of(claim: ClaimKind) -> Self {
        Self { claim, signature: None, range: None, rdns: None, is_rdns_weak: false, is_signing: false }
    }

    /// Adds the outcome of the request's signatures for this claim. Without signatures, the method
    /// is not tried.
    ///
    /// `directories` are the directories of the claimed crawler's operator. `None` means that the
    /// claim names no known operator; then any configured directory counts.
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

    /// Reports whether a name lookup could still change the identity: a crawler is claimed, but not
    /// verified.
    pub(super) fn wants_rdns(&self) -> bool {
        let is_verified = [self.signature, self.range].contains(&Some(MethodOutcome::Verified));
        self.is_of_crawler() && !is_verified && self.rdns.is_none()
    }

    /// Returns the identity: the first method that verified, or else the first undecided one. If
    /// none is undecided and one failed, the claim is refuted.
    ///
    /// A doubt that the sender can cause at will does not outweigh an address that failed. A
    /// signature with an unknown key costs nothing, and the holder of an address controls whether
    /// and what its reverse zone answers. An operator's lists are complete by themselves. Names are
    /// a second chance, which such an answer ends. Without proof that the resolver answers for the
    /// operator, names could not be tried at all.
    ///
    /// A user-triggered fetcher whose address fails is unverifiable, because it may run on a
    /// person's device. An invalid signature still refutes it: the request itself contains the
    /// false evidence. Without a claim, there is nothing to refute.
    pub(super) fn conclude(&self) -> Identity {
        // Addresses verify and refute only crawlers. A request without such a claim is judged only
        // by its signature.
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
            MethodOutcome::Undecided(reason) if !(is_address_failed && is_of_sender(method, reason)) => Some(reason),
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

    /// Reports whether a failure of the method refutes this claim.
    fn counts(&self, method: IdentityMethod) -> bool {
        match method {
            IdentityMethod::Signature => true,
            IdentityMethod::Rdns if self.is_rdns_weak => false,
            _ => self.claim == ClaimKind::Crawler,
        }
    }
}

/// Reports whether the sender can cause this doubt, through the request or the reverse zone of its
/// address.
const fn is_of_sender(method: IdentityMethod, reason: UndecidedReason) -> bool {
    use UndecidedReason::{
        AgentAbsent, Busy, ComponentNotCovered, DirectoryNotConfigured, KeyUnknownThere, ResolverFailure, TestKey,
        Timeout, Truncated, UnprovenResolver,
    };
    match method {
        // Checks are limited per address that fails many.
        IdentityMethod::Signature => {
            matches!(
                reason,
                AgentAbsent | ComponentNotCovered | DirectoryNotConfigured | KeyUnknownThere | TestKey | Busy
            )
        }
        // `Busy` and `Pending` are our own: the lookup is still to come.
        IdentityMethod::Rdns => matches!(reason, Timeout | ResolverFailure | Truncated | UnprovenResolver),
        IdentityMethod::Range => false,
    }
}

/// The available evidence. No method waits: with missing evidence, the outcome is undecided.
pub trait ClaimEvidence {
    /// Returns the outcome of the operator's lists for an address; `None` if the operator publishes
    /// none.
    fn range(&self, crawler: &Crawler, address: PublicAddress, now: SystemTime) -> Option<MethodOutcome>;

    /// Returns the outcome of the names of an address; `None` if no names are known for the
    /// operator's addresses.
    fn rdns(&self, crawler: &Crawler, address: PublicAddress, now: SystemTime) -> Option<MethodOutcome>;

    /// Returns the keys of a directory, for a signature by the key with this thumbprint.
    ///
    /// Without keys, returns the reason.
    /// [`DirectoryNotConfigured`](UndecidedReason::DirectoryNotConfigured) means that neither the
    /// registry nor the configuration names the directory; it is not fetched, because a request
    /// must not choose what is fetched.
    /// [`DirectoryUnavailable`](UndecidedReason::DirectoryUnavailable) means that it could not be
    /// fetched yet. By default, no directory is configured.
    #[cfg(feature = "signatures")]
    fn keys(&self, directory: &DirectoryUrl, keyid: &str, now: SystemTime) -> Result<Arc<KeySet>, UndecidedReason> {
        let _ = (directory, keyid, now);
        Err(UndecidedReason::DirectoryNotConfigured)
    }

    /// Returns the outcomes of the signatures of a request from this address; `None` if it is not
    /// signed. By default, all signatures are checked with [`keys`](Self::keys). An implementation
    /// may cache results, and delay senders whose signatures fail.
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

/// Maximum age of a list that still refutes.
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);

/// Minimum time between the first sight of an address and a confirmation that covers the address. A
/// clock that was off by a day makes either time a day too early.
const CLOCK_ERROR: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum time that a confirmation may be ahead of now. If it is further ahead, the clock was or
/// is wrong.
const CLOCK_STEP: Duration = Duration::from_secs(60);

/// A list of an operator.
///
/// A list verifies at any age, but refutes only while it is fresh: over four months, one list lost
/// 119 of its 240 prefixes and gained 83, so an address that an old copy lacks may belong to the
/// crawler by now.
#[derive(Clone, Copy, Debug)]
pub struct ListEvidence<'a> {
    /// Addresses on the list.
    pub set: &'a RangeSet,
    /// Time of the last confirmation by the operator: the list was fetched, or the server answered
    /// that it is unchanged. Without a confirmation, as for an embedded list, the list verifies but
    /// never refutes.
    pub confirmed: Option<SystemTime>,
}

impl ListEvidence<'_> {
    /// Returns the outcome of a crawler's lists for an address. `None` represents a list that is
    /// not loaded.
    ///
    /// The claim is verified if one of the lists contains the address. It fails if none does and
    /// each list can refute: it was confirmed at most 24 hours ago, or more than 24 hours after the
    /// address was first seen with this claim.
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

    /// Returns the outcome of this list alone for an address.
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

    /// Combines the outcomes of several lists: one is enough to verify, and all must fail to
    /// refute.
    #[doc(hidden)]
    pub fn combine(outcomes: impl IntoIterator<Item = MethodOutcome>) -> MethodOutcome {
        const NOT_LOADED: MethodOutcome = MethodOutcome::Undecided(UndecidedReason::NotLoaded);
        let mut missed = None;
        for outcome in outcomes {
            match (outcome, missed) {
                (MethodOutcome::Verified, _) => return outcome,
                // A missing list is more important to report than an old one.
                (_, Some(NOT_LOADED)) | (MethodOutcome::Failed(_), Some(_)) => {}
                (outcome, _) => missed = Some(outcome),
            }
        }
        missed.unwrap_or(NOT_LOADED)
    }

    /// Reports whether a list that was confirmed at `confirmed` refutes claims at `now`, no matter
    /// when the address was first seen.
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
        /// Adds the outcome of a signature, whatever key made it.
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
    fn the_first_method_that_verifies_is_named() {
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
    fn a_doubt_of_the_senders_own_does_not_outweigh_an_address_that_failed() {
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
            // A missing result for the address still counts.
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
    fn a_fetcher_of_a_person_is_not_refuted_by_its_address() {
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
    fn without_a_method_nothing_is_said() {
        assert_eq!(crawler().conclude(), Identity::Unverifiable);
        assert_eq!(crawler().signing().conclude(), Identity::Undecided(UndecidedReason::Unsigned));
        assert_eq!(crawler().signing().range(UNLISTED).conclude(), Identity::Refuted(Refutation::NotListed));
        assert_eq!(crawler().signing().signature(EXPIRED).conclude(), Identity::Refuted(Refutation::Expired));
    }

    #[test]
    fn who_claims_nothing_is_judged_by_a_signature_only() {
        let unclaimed = Examination::of(ClaimKind::Unclaimed);
        assert_eq!(unclaimed.conclude(), Identity::Unclaimed);
        assert_eq!(unclaimed.range(UNLISTED).rdns(NO_NAME).signing().conclude(), Identity::Unclaimed);
        assert_eq!(unclaimed.range(VERIFIED).conclude(), Identity::Unclaimed);
        assert_eq!(unclaimed.signature(VERIFIED).conclude(), Identity::Verified(IdentityMethod::Signature));
        assert_eq!(unclaimed.signature(EXPIRED).conclude(), Identity::Unclaimed);
        let signer = Examination::of(ClaimKind::Signer);
        assert_eq!(signer.signature(EXPIRED).conclude(), Identity::Refuted(Refutation::Expired));
        assert_eq!(signer.range(UNLISTED).conclude(), Identity::Unclaimed);
        assert!(!signer.wants_rdns());
        assert_eq!(unclaimed.signature(DOWN).conclude(), Identity::Undecided(UndecidedReason::DirectoryUnavailable));
        assert!(!unclaimed.wants_rdns());
    }

    #[test]
    fn names_are_looked_up_only_where_they_can_matter() {
        assert!(crawler().wants_rdns());
        assert!(crawler().range(UNLISTED).wants_rdns());
        assert!(crawler().range(STALE).signature(EXPIRED).wants_rdns());
        assert!(!crawler().range(VERIFIED).wants_rdns());
        assert!(!crawler().signature(VERIFIED).wants_rdns());
        assert!(!crawler().range(UNLISTED).rdns(TIMEOUT).wants_rdns());
    }

    const HOUR: Duration = Duration::from_secs(3600);

    fn address(octets: [u8; 4]) -> PublicAddress {
        PublicAddress::of(Some(IpAddr::from(octets)), |_| false).expect("public")
    }

    fn at(hours: u32) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000) + hours * HOUR
    }

    const FAILED: MethodOutcome = MethodOutcome::Failed(Refutation::NotListed);
    const NOT_LOADED: MethodOutcome = MethodOutcome::Undecided(UndecidedReason::NotLoaded);

    #[test]
    fn a_miss_refutes_only_by_fresh_evidence() {
        let set: RangeSet = ["8.8.8.0/24".parse().expect("a prefix")].into_iter().collect();
        for (confirmed, first_seen, now, outcome) in [
            (Some(0), None, 0, FAILED),
            (Some(0), None, 24, FAILED),
            (Some(0), None, 25, STALE),
            (Some(0), Some(10), 24, FAILED),
            (Some(0), Some(10), 25, STALE),
            // The address was known before the list was confirmed without it.
            (Some(35), Some(10), 400, FAILED),
            (Some(34), Some(10), 400, STALE),
            (Some(20), Some(20), 400, STALE),
            // The clock was a day behind when the address was first seen, which was after the
            // confirmation.
            (Some(30), Some(31 - 24), 400, STALE),
            // The clock was set back, so the time of the confirmation proves nothing.
            (Some(30), None, 6, STALE),
            (Some(30), Some(5), 6, STALE),
            (None, None, 0, STALE),
            (None, Some(0), 400, STALE),
        ] {
            let list = ListEvidence { set: &set, confirmed: confirmed.map(at) };
            let first_seen = first_seen.map(at);
            let examine = |octets| ListEvidence::examine([Some(list)], address(octets), first_seen, at(now));
            assert_eq!(examine([9, 9, 9, 9]), outcome, "{confirmed:?} {first_seen:?} {now}");
            assert_eq!(examine([8, 8, 8, 8]), MethodOutcome::Verified);
        }
    }

    #[test]
    fn of_several_lists_one_verifies_and_all_refute() {
        let (one, other): (RangeSet, RangeSet) =
            (["8.8.8.0/24".parse().expect("a prefix")].into_iter().collect(), RangeSet::default());
        let fresh = ListEvidence { set: &other, confirmed: Some(at(0)) };
        let (old, listed) = (ListEvidence { confirmed: None, ..fresh }, ListEvidence { set: &one, confirmed: None });
        let examine = |lists: &[Option<ListEvidence<'_>>], octets| {
            ListEvidence::examine(lists.iter().copied(), address(octets), None, at(0))
        };
        assert_eq!(examine(&[None, Some(old), Some(listed)], [8, 8, 8, 8]), MethodOutcome::Verified);
        assert_eq!(examine(&[Some(fresh), Some(fresh)], [8, 8, 8, 8]), FAILED);
        assert_eq!(examine(&[Some(old), Some(fresh)], [8, 8, 8, 8]), STALE);
        assert_eq!(examine(&[Some(fresh), None, Some(old)], [8, 8, 8, 8]), NOT_LOADED);
        assert_eq!(examine(&[], [8, 8, 8, 8]), NOT_LOADED);
    }
}
