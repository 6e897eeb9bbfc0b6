//! What a published list says about an address, and when a miss is evidence.

use std::time::{Duration, SystemTime};

use super::method_outcome::MethodOutcome;
use super::public_address::PublicAddress;
use super::range_set::RangeSet;
use crate::agent::{Refutation, UndecidedReason};

/// A list this old still refutes.
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);

/// How long before a confirmation an address has to be seen first for the confirmation to be about it. A clock that was off
/// by a day puts either time a day too early.
const CLOCK_ERROR: Duration = Duration::from_secs(24 * 60 * 60);

/// How far a confirmation may lie ahead of now; further ahead, the clock was wrong then or is wrong now.
const CLOCK_STEP: Duration = Duration::from_secs(60);

/// A list of an operator, as it is at hand.
///
/// A list verifies at any age, and refutes only while it is fresh: over four months one list lost 119 of its 240 prefixes
/// and gained 83, so an address that an old copy lacks may be the crawler's by now.
#[derive(Clone, Copy, Debug)]
pub struct ListEvidence<'a> {
    set: &'a RangeSet,
    confirmed: Option<SystemTime>,
}

impl<'a> ListEvidence<'a> {
    /// A list that its operator confirmed at this time: it was fetched, or its server answered that it is unchanged.
    #[must_use]
    pub const fn confirmed(set: &'a RangeSet, at: SystemTime) -> Self {
        Self { set, confirmed: Some(at) }
    }

    /// A list of which nothing says that it is still right, such as an embedded one: it verifies and never refutes.
    #[must_use]
    pub const fn unconfirmed(set: &'a RangeSet) -> Self {
        Self { set, confirmed: None }
    }

    /// What the lists of a crawler say about an address; `None` stands for a list that is not loaded.
    ///
    /// The address is in one of them, or fails them all if each can refute: it was confirmed at most 24 hours ago, or more than
    /// 24 hours after the address was first seen with this claim.
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

    /// What this list alone says about an address.
    pub(crate) fn outcome(
        &self,
        address: PublicAddress,
        first_seen: Option<SystemTime>,
        now: SystemTime,
    ) -> MethodOutcome {
        if self.set.contains(address.get()) {
            MethodOutcome::Verified
        } else if self.can_refute(first_seen, now) {
            MethodOutcome::Failed(Refutation::NotListed)
        } else {
            MethodOutcome::Undecided(UndecidedReason::Stale)
        }
    }

    /// What several lists say together: one verifies, and all refute.
    pub(crate) fn combine(outcomes: impl IntoIterator<Item = MethodOutcome>) -> MethodOutcome {
        const NOT_LOADED: MethodOutcome = MethodOutcome::Undecided(UndecidedReason::NotLoaded);
        let mut missed = None;
        for outcome in outcomes {
            match (outcome, missed) {
                (MethodOutcome::Verified, _) => return outcome,
                // That a list is missing says more than that another is old.
                (_, Some(NOT_LOADED)) | (MethodOutcome::Failed(_), Some(_)) => {}
                (outcome, _) => missed = Some(outcome),
            }
        }
        missed.unwrap_or(NOT_LOADED)
    }

    fn can_refute(&self, first_seen: Option<SystemTime>, now: SystemTime) -> bool {
        let Some(confirmed) = self.confirmed else { return false };
        match now.duration_since(confirmed) {
            Ok(age) => {
                age <= FRESH
                    || first_seen
                        .and_then(|first_seen| confirmed.duration_since(first_seen).ok())
                        .is_some_and(|known| known > CLOCK_ERROR)
            }
            Err(ahead) => ahead.duration() <= CLOCK_STEP,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn address(octets: [u8; 4]) -> PublicAddress {
        PublicAddress::of(Some(IpAddr::from(octets)), |_| false).expect("public")
    }

    fn at(hours: u32) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000) + hours * HOUR
    }

    const FAILED: MethodOutcome = MethodOutcome::Failed(Refutation::NotListed);
    const STALE: MethodOutcome = MethodOutcome::Undecided(UndecidedReason::Stale);
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
            // The clock was a day behind when the address was first seen: that was after the confirmation.
            (Some(30), Some(31 - 24), 400, STALE),
            // The clock was set back: the time of the confirmation says nothing.
            (Some(30), None, 6, STALE),
            (Some(30), Some(5), 6, STALE),
            (None, None, 0, STALE),
            (None, Some(0), 400, STALE),
        ] {
            let list = confirmed
                .map_or_else(|| ListEvidence::unconfirmed(&set), |hours| ListEvidence::confirmed(&set, at(hours)));
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
        let (fresh, old) = (ListEvidence::confirmed(&other, at(0)), ListEvidence::unconfirmed(&other));
        let listed = ListEvidence::unconfirmed(&one);
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
