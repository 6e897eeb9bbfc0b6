//! From what each method says to one identity.

use crate::agent::{Identity, IdentityMethod, Refutation, UndecidedReason};

/// What one method says about a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MethodOutcome {
    /// It confirms the claim.
    Verified,
    /// The request fails it.
    Failed(Refutation),
    /// It cannot tell.
    Undecided(UndecidedReason),
}

/// Who a request claims to come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClaimKind {
    /// No crawler.
    Unclaimed,
    /// A crawler.
    Crawler,
    /// A fetcher that acts for a person, from the operator's addresses or from the person's own device.
    UserTriggered,
}

/// A claim, and what the methods that were tried say about it.
///
/// ```
/// use tower_robots::agent::{Identity, IdentityMethod, Refutation, UndecidedReason};
/// use tower_robots::identity::{ClaimKind, Examination, MethodOutcome};
///
/// let failed = Examination::of(ClaimKind::Crawler).range(MethodOutcome::Failed(Refutation::NotListed));
/// assert_eq!(failed.conclude(), Identity::Refuted(Refutation::NotListed));
///
/// let doubtful = failed.rdns(MethodOutcome::Undecided(UndecidedReason::Timeout));
/// assert_eq!(doubtful.conclude(), Identity::Undecided(UndecidedReason::Timeout));
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Examination {
    claim: ClaimKind,
    signature: Option<MethodOutcome>,
    range: Option<MethodOutcome>,
    rdns: Option<MethodOutcome>,
    is_rdns_weak: bool,
    is_signing: bool,
}

impl Examination {
    /// The examination of a claim that no method has been tried for.
    pub const fn of(claim: ClaimKind) -> Self {
        Self { claim, signature: None, range: None, rdns: None, is_rdns_weak: false, is_signing: false }
    }

    /// The claimed crawler's operator publishes keys, which a request without a signature is not tried with.
    pub const fn signing(self) -> Self {
        Self { is_signing: true, ..self }
    }

    /// What the signature says. A request without one is not tried.
    pub const fn signature(self, outcome: MethodOutcome) -> Self {
        Self { signature: Some(outcome), ..self }
    }

    /// What the operator's lists say. Without lists the method is not tried.
    pub const fn range(self, outcome: MethodOutcome) -> Self {
        Self { range: Some(outcome), ..self }
    }

    /// What the names of the address say. Without host patterns the method is not tried.
    pub const fn rdns(self, outcome: MethodOutcome) -> Self {
        Self { rdns: Some(outcome), ..self }
    }

    /// The names of the operator's addresses are not dependable: they verify, and a failure says nothing.
    pub const fn weak_rdns(self, outcome: MethodOutcome) -> Self {
        Self { rdns: Some(outcome), is_rdns_weak: true, ..self }
    }

    /// Whether a name look-up could still change the identity: a crawler is claimed, and nothing verified it.
    #[must_use]
    pub fn wants_rdns(&self) -> bool {
        let is_verified = [self.signature, self.range].contains(&Some(MethodOutcome::Verified));
        self.claim != ClaimKind::Unclaimed && !is_verified && self.rdns.is_none()
    }

    /// The identity: the first method that verified; else the first that is undecided; else, if one failed, refuted.
    ///
    /// A user-triggered fetcher that fails by its address is unverifiable, because it may run on a person's device. A
    /// signature that does not hold refutes it all the same: the request itself carries the false evidence.
    #[must_use]
    pub fn conclude(&self) -> Identity {
        // Addresses verify and refute crawlers; a request that claims none is judged by its signature only.
        let of_address = |outcome: Option<MethodOutcome>| outcome.filter(|_| self.claim != ClaimKind::Unclaimed);
        let tried = [
            (IdentityMethod::Signature, self.signature),
            (IdentityMethod::Range, of_address(self.range)),
            (IdentityMethod::Rdns, of_address(self.rdns)),
        ];
        let tried = || tried.into_iter().filter_map(|(method, outcome)| Some((method, outcome?)));
        if let Some((method, _)) = tried().find(|(_, outcome)| *outcome == MethodOutcome::Verified) {
            return Identity::Verified(method);
        }
        if let Some(reason) = tried().find_map(|(_, outcome)| match outcome {
            MethodOutcome::Undecided(reason) => Some(reason),
            _ => None,
        }) {
            return Identity::Undecided(reason);
        }
        let refutation = tried().find_map(|(method, outcome)| match outcome {
            MethodOutcome::Failed(refutation) if self.counts(method) => Some(refutation),
            _ => None,
        });
        match (refutation, self.claim) {
            (Some(refutation), _) => Identity::Refuted(refutation),
            (None, ClaimKind::Unclaimed) => Identity::Unclaimed,
            (None, _) if self.is_signing && tried().next().is_none() => Identity::Undecided(UndecidedReason::Unsigned),
            (None, _) => Identity::Unverifiable,
        }
    }

    /// Whether a failure of the method refutes this claim.
    fn counts(&self, method: IdentityMethod) -> bool {
        match method {
            IdentityMethod::Signature => true,
            IdentityMethod::Rdns if self.is_rdns_weak => false,
            _ => self.claim == ClaimKind::Crawler,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERIFIED: MethodOutcome = MethodOutcome::Verified;
    const UNLISTED: MethodOutcome = MethodOutcome::Failed(Refutation::NotListed);
    const NO_NAME: MethodOutcome = MethodOutcome::Failed(Refutation::NoName);
    const EXPIRED: MethodOutcome = MethodOutcome::Failed(Refutation::Expired);
    const STALE: MethodOutcome = MethodOutcome::Undecided(UndecidedReason::Stale);
    const TIMEOUT: MethodOutcome = MethodOutcome::Undecided(UndecidedReason::Timeout);
    const DOWN: MethodOutcome = MethodOutcome::Undecided(UndecidedReason::DirectoryUnavailable);

    fn crawler() -> Examination {
        Examination::of(ClaimKind::Crawler)
    }

    #[test]
    fn the_first_method_that_verifies_is_named() {
        let all = crawler().rdns(VERIFIED).range(VERIFIED).signature(VERIFIED);
        assert_eq!(all.conclude(), Identity::Verified(IdentityMethod::Signature));
        assert_eq!(crawler().rdns(VERIFIED).range(VERIFIED).conclude(), Identity::Verified(IdentityMethod::Range));
        assert_eq!(
            crawler().signature(EXPIRED).range(STALE).rdns(VERIFIED).conclude(),
            Identity::Verified(IdentityMethod::Rdns)
        );
        assert_eq!(
            crawler().signature(DOWN).range(VERIFIED).rdns(NO_NAME).conclude(),
            Identity::Verified(IdentityMethod::Range)
        );
    }

    #[test]
    fn a_claim_is_refuted_only_if_every_method_that_was_tried_failed() {
        assert_eq!(crawler().range(UNLISTED).conclude(), Identity::Refuted(Refutation::NotListed));
        assert_eq!(crawler().range(UNLISTED).rdns(NO_NAME).conclude(), Identity::Refuted(Refutation::NotListed));
        assert_eq!(crawler().signature(EXPIRED).range(UNLISTED).conclude(), Identity::Refuted(Refutation::Expired));
        for (examination, reason) in [
            (crawler().range(UNLISTED).rdns(TIMEOUT), UndecidedReason::Timeout),
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
        assert_eq!(unclaimed.signature(EXPIRED).conclude(), Identity::Refuted(Refutation::Expired));
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
}
