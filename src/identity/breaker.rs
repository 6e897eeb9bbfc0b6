//! When so many claims fail that the path of the requests is in doubt, not the crawlers.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, SystemTime};

use super::public_address::PublicAddress;
use crate::agent::{Identity, Network, UndecidedReason};

const SLOT: u64 = 10 * 60;
const SLOTS_OF_A_DAY: usize = 144;
const SLOTS_OF_AN_HOUR: usize = 6;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// So few refuted requests in an hour say nothing about the path.
const FEW: u32 = 10;

/// How many addresses of an hour are told apart.
const MOST_ADDRESSES: usize = 64;

/// Counts what became of the claims of one crawler at one listener of one site, and says when their path is suspect.
///
/// Behind a CDN that is missing in `trusted_proxies`, every genuine crawler has the CDN's address and fails. So nothing is
/// refuted
///
/// - while nothing was verified within 24 hours: then nothing shows that this path brings the crawler's own address;
/// - from when, within an hour, more addresses are refuted than verified, and were not so in the day before, until that is
///   over, or until after a day the crawler still verifies: then the site simply has many impostors.
///
/// Addresses are counted, not requests: beside the genuine crawler, one impostor with a thousand requests cannot open the
/// breaker, and so make itself undecided.
#[derive(Clone, Debug)]
pub struct Breaker {
    /// The slots of a day, by their number modulo the length.
    slots: Box<[Slot; SLOTS_OF_A_DAY]>,
    /// The number of the slot that is counted into, since the epoch.
    current: u64,
    verified: RecentAddresses,
    refuted: RecentAddresses,
    last_verified: Option<SystemTime>,
    open_since: Option<SystemTime>,
}

/// Some addresses, each with the last slot it was seen in.
#[derive(Clone, Debug, Default)]
struct RecentAddresses(Vec<(IpAddr, u64)>);

/// How many addresses were verified and refuted in a slot, and how many requests were refuted.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    verified: u16,
    refuted: u16,
    refuted_requests: u16,
}

/// The sum of some slots.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    verified: u32,
    refuted: u32,
    refuted_requests: u32,
}

impl Share {
    const fn is_above_half(self) -> bool {
        self.refuted > self.verified
    }
}

impl Default for Breaker {
    fn default() -> Self {
        Self::new(None)
    }
}

impl Breaker {
    /// A breaker that has counted nothing. `last_verified` is when the crawler was last verified on this path, where that
    /// is known from an earlier process.
    #[must_use]
    pub fn new(last_verified: Option<SystemTime>) -> Self {
        Self {
            slots: Box::new([Slot::default(); SLOTS_OF_A_DAY]),
            current: 0,
            verified: RecentAddresses::default(),
            refuted: RecentAddresses::default(),
            last_verified,
            open_since: None,
        }
    }

    /// Counts what the methods say about a request from this address, before [`applied_to`](Self::applied_to).
    pub fn record(&mut self, identity: Identity, address: Option<PublicAddress>, now: SystemTime) {
        self.turn_to(now);
        // Only signatures are judged without an address: all such requests count as one client.
        let address =
            address.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |address| Network::around(address.get(), 32, 64).first());
        let slot = &mut self.slots[(self.current % SLOTS_OF_A_DAY as u64) as usize];
        match identity {
            Identity::Verified(_) => {
                self.last_verified = Some(now);
                slot.verified += u16::from(self.verified.is_new(address, self.current));
                if self.open_since.is_none() {
                    return;
                }
            }
            Identity::Refuted(_) => {
                slot.refuted_requests = slot.refuted_requests.saturating_add(1);
                slot.refuted += u16::from(self.refuted.is_new(address, self.current));
            }
            Identity::Undecided(_) | Identity::Unverifiable | Identity::Unclaimed => return,
        }
        let (hour, before) = self.shares();
        match self.open_since {
            None if hour.is_above_half() && hour.refuted_requests >= FEW && !before.is_above_half() => {
                self.open_since = Some(now);
            }
            Some(since) if self.is_over(since, hour, now) => self.open_since = None,
            _ => {}
        }
    }

    /// Whether nothing is to be refuted now.
    #[must_use]
    pub fn is_suspect(&self, now: SystemTime) -> bool {
        let is_verified = self.last_verified.is_some_and(|at| now.duration_since(at).map_or(true, |age| age < DAY));
        !is_verified || self.open_since.is_some()
    }

    /// The identity that counts: a refuted one is undecided while the path is suspect.
    #[must_use]
    pub fn applied_to(&self, identity: Identity, now: SystemTime) -> Identity {
        match identity {
            Identity::Refuted(_) if self.is_suspect(now) => Identity::Undecided(UndecidedReason::SuspectPath),
            identity => identity,
        }
    }

    /// When the crawler was last verified on this path.
    #[must_use]
    pub const fn last_verified(&self) -> Option<SystemTime> {
        self.last_verified
    }

    /// The networks that most of the refuted addresses are in, the largest share first, at most three: of a suspect path
    /// one of them is probably a proxy that `trusted_proxies` lacks.
    #[must_use]
    pub fn refuted_networks(&self) -> Vec<Network> {
        let mut counts: Vec<(usize, Network)> = Vec::new();
        for (address, _) in self.refuted.0.iter().filter(|(address, _)| !address.is_unspecified()) {
            let network = Network::around(*address, 24, 48);
            match counts.iter_mut().find(|(_, counted)| *counted == network) {
                Some((count, _)) => *count += 1,
                None => counts.push((1, network)),
            }
        }
        counts.sort_by(|(left, _), (right, _)| right.cmp(left));
        counts.into_iter().take(3).map(|(_, network)| network).collect()
    }

    /// Whether a breaker that opened at `since` closes.
    fn is_over(&self, since: SystemTime, hour: Share, now: SystemTime) -> bool {
        let is_calm = !hour.is_above_half() && hour.verified > 0;
        let is_old = now.duration_since(since).is_ok_and(|open| open >= DAY);
        is_calm || (is_old && self.last_verified.is_some_and(|at| at > since))
    }

    /// Makes the slot of this time the current one.
    fn turn_to(&mut self, now: SystemTime) {
        let slot = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() / SLOT);
        if slot == self.current {
            return;
        }
        let steps = slot.wrapping_sub(self.current);
        if slot + 1 == self.current {
            // A clock that is set back a little: the current slot goes on.
            return;
        }
        if slot < self.current {
            // The clock was wrong: none of the times counted by it is known.
            *self = Self::new(None);
        }
        for next in 1..=steps.min(SLOTS_OF_A_DAY as u64) {
            let at = self.current.wrapping_add(next) % SLOTS_OF_A_DAY as u64;
            self.slots[at as usize] = Slot::default();
        }
        self.current = slot;
    }

    /// The last hour, and the rest of the day before it.
    fn shares(&self) -> (Share, Share) {
        let (mut hour, mut before) = (Share::default(), Share::default());
        for age in 0..SLOTS_OF_A_DAY {
            let at = (self.current + (SLOTS_OF_A_DAY - age) as u64) % SLOTS_OF_A_DAY as u64;
            let slot = self.slots[at as usize];
            if age < SLOTS_OF_AN_HOUR {
                hour.refuted_requests += u32::from(slot.refuted_requests);
            } else {
                before.verified += u32::from(slot.verified);
                before.refuted += u32::from(slot.refuted);
            }
        }
        hour.verified = self.verified.of_the_hour(self.current);
        hour.refuted = self.refuted.of_the_hour(self.current);
        (hour, before)
    }
}

impl RecentAddresses {
    /// Whether an address is seen for the first time in this slot. Beyond the bound, addresses are not told apart.
    fn is_new(&mut self, address: IpAddr, slot: u64) -> bool {
        if let Some((_, last)) = self.0.iter_mut().find(|(seen, _)| *seen == address) {
            return std::mem::replace(last, slot) != slot;
        }
        if self.0.len() >= MOST_ADDRESSES {
            self.0.retain(|(_, last)| last + SLOTS_OF_AN_HOUR as u64 > slot);
        }
        let has_room = self.0.len() < MOST_ADDRESSES;
        if has_room {
            self.0.push((address, slot));
        }
        has_room
    }

    fn of_the_hour(&self, slot: u64) -> u32 {
        let recent = self.0.iter().filter(|(_, last)| last + SLOTS_OF_AN_HOUR as u64 > slot);
        u32::try_from(recent.count()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{IdentityMethod, Refutation};

    const VERIFIED: Identity = Identity::Verified(IdentityMethod::Range);
    const REFUTED: Identity = Identity::Refuted(Refutation::NotListed);
    const SUSPECT: Identity = Identity::Undecided(UndecidedReason::SuspectPath);

    fn at(minutes: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 / SLOT * SLOT + minutes * 60)
    }

    fn address(number: u32) -> Option<PublicAddress> {
        let address = IpAddr::from((0x0808_0000 + number).to_be_bytes());
        Some(PublicAddress::of(Some(address), |_| false).expect("public"))
    }

    struct Path(Breaker);

    impl Path {
        fn new() -> Self {
            Self(Breaker::default())
        }

        /// Requests from `count` addresses in one minute; the identity that counts for the last one.
        fn requests(&mut self, identity: Identity, count: u32, minute: u64) -> Identity {
            for number in 0..count {
                self.0.record(identity, address(number), at(minute));
            }
            self.0.applied_to(identity, at(minute))
        }
    }

    #[test]
    fn nothing_is_refuted_before_something_verified_or_a_day_after_it() {
        let mut path = Path::new();
        assert_eq!(path.requests(REFUTED, 3, 0), SUSPECT);
        assert_eq!(path.requests(VERIFIED, 1, 1), VERIFIED);
        assert_eq!(path.0.applied_to(REFUTED, at(1)), REFUTED);
        assert_eq!(path.0.applied_to(REFUTED, at(24 * 60)), REFUTED);
        assert_eq!(path.0.applied_to(REFUTED, at(24 * 60 + 1)), SUSPECT);
        let earlier = Breaker::new(Some(at(0)));
        assert_eq!(earlier.applied_to(REFUTED, at(60)), REFUTED);
        assert_eq!(earlier.applied_to(REFUTED, at(24 * 60)), SUSPECT);
    }

    #[test]
    fn what_is_not_refuted_stays_what_it_is() {
        let breaker = Breaker::default();
        let stale = Identity::Undecided(UndecidedReason::Stale);
        for identity in [VERIFIED, stale, Identity::Unverifiable, Identity::Unclaimed] {
            assert_eq!(breaker.applied_to(identity, at(0)), identity);
        }
    }

    #[test]
    fn a_share_that_jumps_above_one_half_opens_it() {
        let mut path = Path::new();
        path.requests(VERIFIED, 20, 0);
        // 20 of 40 addresses, and then one more.
        assert_eq!(path.requests(REFUTED, 20, 1), REFUTED);
        assert_eq!(path.requests(REFUTED, 21, 1), SUSPECT);
        // It stays open while the share is above one half, and closes when the crawler is back.
        assert_eq!(path.requests(REFUTED, 5, 90), SUSPECT);
        assert_eq!(path.requests(VERIFIED, 4, 91), VERIFIED);
        assert_eq!(path.0.applied_to(REFUTED, at(91)), SUSPECT);
        path.requests(VERIFIED, 5, 91);
        assert_eq!(path.0.applied_to(REFUTED, at(91)), REFUTED);
    }

    #[test]
    fn an_unlisted_proxy_that_takes_all_requests_over_is_noticed_within_the_hour() {
        let mut path = Path::new();
        for hour in 0..24 {
            path.requests(VERIFIED, 30, hour * 60);
        }
        // From now on all come from two addresses of a proxy.
        for minute in (24 * 60..25 * 60).step_by(2) {
            path.requests(REFUTED, 2, minute);
        }
        for minute in (25 * 60..72 * 60).step_by(5) {
            assert_eq!(path.requests(REFUTED, 2, minute), SUSPECT, "{minute}");
        }
        assert_eq!(path.0.refuted_networks(), ["8.8.0.0/24".parse().expect("a network")]);
    }

    #[test]
    fn one_impostor_cannot_open_it() {
        let mut path = Path::new();
        path.requests(VERIFIED, 1, 0);
        for minute in 0..59 {
            for _ in 0..100 {
                assert_eq!(path.requests(REFUTED, 1, minute), REFUTED);
            }
            path.requests(VERIFIED, 1, minute);
        }
        // Nor can one with a network of IPv6 addresses.
        let mut path = Path::new();
        path.requests(VERIFIED, 2, 0);
        for number in 0..1000_u128 {
            let client = IpAddr::from((0x2001_4860_u128 << 96 | number).to_be_bytes());
            let client = PublicAddress::of(Some(client), |_| false).expect("public");
            path.0.record(REFUTED, Some(client), at(1));
        }
        assert_eq!(path.0.applied_to(REFUTED, at(1)), REFUTED);
    }

    #[test]
    fn few_requests_do_not_open_it() {
        let mut path = Path::new();
        path.requests(VERIFIED, 1, 0);
        assert_eq!(path.requests(REFUTED, 9, 5), REFUTED);
        assert_eq!(path.requests(REFUTED, 1, 5), SUSPECT);
    }

    #[test]
    fn a_site_with_many_impostors_refutes_them_after_a_day() {
        let mut path = Path::new();
        path.requests(VERIFIED, 2, 0);
        path.requests(REFUTED, 60, 0);
        let mut last = SUSPECT;
        for minute in (10..26 * 60).step_by(10) {
            path.requests(VERIFIED, 2, minute);
            last = path.requests(REFUTED, 60, minute);
            assert_eq!(last, if minute < 24 * 60 { SUSPECT } else { REFUTED }, "{minute}");
        }
        assert_eq!(last, REFUTED);
    }

    #[test]
    fn a_clock_that_is_set_back_forgets_what_was_counted_by_it() {
        let mut path = Path::new();
        path.requests(VERIFIED, 20, 48 * 60);
        assert_eq!(path.requests(REFUTED, 1, 48 * 60 - 1), REFUTED);
        assert_eq!(path.requests(REFUTED, 1, 24 * 60), SUSPECT);
        assert_eq!(path.requests(VERIFIED, 1, 24 * 60 + 1), VERIFIED);
        assert_eq!(path.requests(REFUTED, 1, 24 * 60 + 2), REFUTED);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut path = Path::new();
        path.requests(REFUTED, 1_000, 0);
        path.requests(VERIFIED, 1_000, 0);
        assert!(path.0.refuted.0.len() <= MOST_ADDRESSES && path.0.verified.0.len() <= MOST_ADDRESSES);
        assert!(path.0.refuted_networks().len() <= 3);
    }
}
