//! What is known of names of addresses, in bounded memory of which every network has its share.

use std::hash::BuildHasher;
use std::time::SystemTime;

use super::claimants::Generations;
use crate::agent::Network;
use crate::identity::{MethodOutcome, PublicAddress};

/// Outcomes that are kept: of addresses that verified, and of others.
const MOST_VERIFIED: usize = 32_768;
const MOST_OTHERS: usize = 32_768;

/// Parts of the others.
const PARTS: usize = 256;

/// An address, and the number of the operator that it claims to be of.
pub(super) type NameKey = (PublicAddress, u32);

/// What names say of addresses.
///
/// What was verified is kept apart: no client has addresses that verify unless its operator gave them names, so none makes the names
/// of others be forgotten. Addresses of one network, /24 or /48, displace only the few in the same part, of one network in
/// 256, however many there are of them.
#[derive(Debug)]
pub(super) struct KnownNames {
    verified: Generations<NameKey, Known>,
    others: Generations<NameKey, Known>,
}

/// What names say of an address, or that it is yet to be known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// `None` while it is being looked up.
    pub(super) outcome: Option<MethodOutcome>,
    pub(super) until: SystemTime,
    /// Whether the last look-up that ended verified the address: so while it is looked up again, too.
    pub(super) was_verified: bool,
}

impl Default for KnownNames {
    fn default() -> Self {
        let by_network = Generations::in_parts(MOST_OTHERS, PARTS, |hasher, (address, _): &NameKey| {
            hasher.hash_one(Network::around(address.get(), 24, 48))
        });
        Self { verified: Generations::new(MOST_VERIFIED), others: by_network }
    }
}

impl KnownNames {
    pub(super) fn get(&self, key: &NameKey) -> Option<Known> {
        self.verified.get(key).or_else(|| self.others.get(key))
    }

    pub(super) fn insert(&self, key: NameKey, known: Known) {
        let (into, other) =
            if known.was_verified { (&self.verified, &self.others) } else { (&self.others, &self.verified) };
        other.remove(&key);
        into.insert(key, known);
    }

    pub(super) fn remove(&self, key: &NameKey) {
        self.verified.remove(key);
        self.others.remove(key);
    }

    /// How many outcomes are kept.
    pub(super) fn len(&self) -> usize {
        self.verified.len() + self.others.len()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv6Addr};

    use super::*;
    use crate::agent::Refutation;

    fn key(address: IpAddr) -> NameKey {
        (PublicAddress::of(Some(address), |_| false).expect("a public address"), 0)
    }

    /// An hour of questions at 50 a second, all about one /48.
    #[test]
    fn a_network_full_of_addresses_displaces_no_name_that_verified_and_few_others() {
        let names = KnownNames::default();
        let failed = MethodOutcome::Failed(Refutation::NoName);
        let outcome = |outcome, was_verified| Known { outcome: Some(outcome), until: SystemTime::now(), was_verified };
        let address = |class: u8, number: u32| key(IpAddr::from([class, (number >> 8) as u8, number as u8, 1]));
        for number in 0..1_000 {
            names.insert(address(8, number), outcome(MethodOutcome::Verified, true));
            names.insert(address(9, number), outcome(failed, false));
        }
        for number in 0..180_000_u128 {
            let flood = u128::from(0x2600_0001_0002_u64) << 80 | (number % 65_536) << 64 | number;
            names.insert(key(Ipv6Addr::from_bits(flood).into()), outcome(failed, false));
        }
        let kept = |class: u8| (0..1_000).filter(|number| names.get(&address(class, *number)).is_some()).count();
        assert_eq!(kept(8), 1_000);
        // About four of a thousand networks share a part with it.
        assert!(kept(9) > 970, "{}", kept(9));
        assert!(names.len() <= 2_000 + MOST_OTHERS / PARTS, "{}", names.len());
    }
}
