//! Which addresses were seen within the last day, in slots of ten minutes.

use std::collections::HashMap;
use std::net::IpAddr;

pub(super) const SLOTS_OF_A_DAY: u64 = 144;
pub(super) const SLOTS_OF_AN_HOUR: u64 = 6;

/// How many addresses are distinguished in the last hour, and how many in the day before it.
pub(super) const MOST_ADDRESSES: usize = 64;

/// Addresses, each with the slots of the last day that it was seen in.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentAddresses {
    seen: HashMap<IpAddr, SeenSlots>,
    /// How many of them were seen within the last hour.
    in_hour: usize,
}

/// A bit for each slot; bit 0 is the current slot.
#[derive(Clone, Copy, Debug, Default)]
struct SeenSlots {
    /// The 72 newer and the 72 older slots.
    halves: [u128; 2],
}

const HALF: u64 = SLOTS_OF_A_DAY / 2;
const HOUR: u128 = (1 << SLOTS_OF_AN_HOUR) - 1;

impl RecentAddresses {
    /// Notes an address in the current slot. Beyond the bound, addresses of an hour are not distinguished.
    pub(super) fn see(&mut self, address: IpAddr) {
        if let Some(slots) = self.seen.get_mut(&address) {
            self.in_hour += usize::from(!slots.is_in_hour());
            slots.halves[0] |= 1;
            return;
        }
        if self.in_hour >= MOST_ADDRESSES {
            return;
        }
        if self.seen.len() >= 2 * MOST_ADDRESSES {
            let oldest = self.seen.iter().max_by_key(|(_, slots)| slots.age()).map(|(address, _)| *address);
            if let Some(oldest) = oldest {
                self.seen.remove(&oldest);
            }
        }
        self.seen.insert(address, SeenSlots { halves: [1, 0] });
        self.in_hour += 1;
    }

    /// Makes a later slot the current one.
    pub(super) fn advance(&mut self, slots: u64) {
        self.seen.retain(|_, seen| seen.advance(slots));
        self.in_hour = self.seen.values().filter(|seen| seen.is_in_hour()).count();
    }

    /// How many addresses were seen in the last hour, at most [`MOST_ADDRESSES`].
    pub(super) fn in_the_hour(&self) -> usize {
        self.in_hour.min(MOST_ADDRESSES)
    }

    /// How many were seen in the day before that hour, each once, at most [`MOST_ADDRESSES`].
    pub(super) fn in_the_day_before(&self) -> usize {
        self.seen.values().filter(|seen| seen.is_before_hour()).count().min(MOST_ADDRESSES)
    }

    /// The addresses of the day.
    pub(super) fn iter(&self) -> impl Iterator<Item = IpAddr> {
        self.seen.keys().copied()
    }
}

impl SeenSlots {
    const fn is_in_hour(self) -> bool {
        self.halves[0] & HOUR != 0
    }

    const fn is_before_hour(self) -> bool {
        self.halves[0] & !HOUR != 0 || self.halves[1] != 0
    }

    /// How many slots ago the address was last seen.
    const fn age(self) -> u32 {
        if self.halves[0] != 0 { self.halves[0].trailing_zeros() } else { 128 + self.halves[1].trailing_zeros() }
    }

    /// Whether it was seen within the day that ends now.
    fn advance(&mut self, slots: u64) -> bool {
        const MASK: u128 = (1 << HALF) - 1;
        for _ in 0..slots.min(SLOTS_OF_A_DAY) {
            self.halves[1] = (self.halves[1] << 1 | self.halves[0] >> (HALF - 1)) & MASK;
            self.halves[0] = (self.halves[0] << 1) & MASK;
        }
        self.halves != [0, 0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    #[test]
    fn an_address_counts_once_in_each_window() {
        let mut recent = RecentAddresses::default();
        for _ in 0..SLOTS_OF_A_DAY {
            recent.see(address(1));
            recent.see(address(1));
            recent.advance(1);
        }
        recent.see(address(2));
        assert_eq!((recent.in_the_hour(), recent.in_the_day_before()), (2, 1));
        recent.advance(SLOTS_OF_AN_HOUR - 1);
        assert_eq!((recent.in_the_hour(), recent.in_the_day_before()), (1, 1));
        recent.advance(1);
        assert_eq!((recent.in_the_hour(), recent.in_the_day_before()), (0, 2));
        recent.advance(SLOTS_OF_A_DAY - SLOTS_OF_AN_HOUR - 1);
        assert_eq!((recent.in_the_hour(), recent.in_the_day_before()), (0, 1));
        recent.advance(1);
        assert_eq!((recent.in_the_hour(), recent.in_the_day_before()), (0, 0));
        assert_eq!(recent.iter().count(), 0);
    }

    #[test]
    fn an_hour_with_many_addresses_leaves_the_day_before_as_it_was() {
        let mut recent = RecentAddresses::default();
        for number in 0..60 {
            recent.see(address(number));
        }
        recent.advance(SLOTS_OF_AN_HOUR);
        for number in 100..1_000 {
            recent.see(address(number));
        }
        assert_eq!((recent.in_the_hour(), recent.in_the_day_before()), (MOST_ADDRESSES, 60));
        recent.advance(SLOTS_OF_AN_HOUR);
        for number in 2_000..3_000 {
            recent.see(address(number));
        }
        assert_eq!((recent.in_the_hour(), recent.in_the_day_before()), (MOST_ADDRESSES, MOST_ADDRESSES));
        assert!(recent.seen.len() <= 2 * MOST_ADDRESSES);
    }
}
