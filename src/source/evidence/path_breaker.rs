//! A circuit breaker for identity checks. If very many checks fail, the cause is more likely a
//! proxy between the crawlers and this process than impostors.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, SystemTime};

use crate::agent::{Identity, IdentityMethod, Network, UndecidedReason};
use crate::identity::PublicAddress;

/// Length of a time slot. A `u128` is sufficient for one bit per slot of a day (120 slots).
const SLOT: Duration = Duration::from_secs(12 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Tolerance if the time of the last verification is in the future, for example after the clock was
/// set back.
const CLOCK_STEP: Duration = Duration::from_secs(10 * 60);

/// Minimum number of refuted requests in the last hour that can make a path suspect.
const MIN_REFUTED_REQUESTS: u32 = 10;

/// Counts the results of checks for one crawler on one claim path (a site and a listener). Decides
/// whether this path is suspect. On a suspect path, claims are not refuted.
///
/// Behind a CDN that is missing in `trusted_proxies`, every genuine crawler seems to have an
/// address of the CDN, so all checks of addresses fail. Behind a proxy that changes `Host`, or with
/// a wrong clock, all checks of signatures fail. The path is suspect in two cases:
///
/// - The crawler was not verified within 24 hours, so it is unknown whether the crawler's address
///   or signature arrives unchanged on this path.
/// - In the last hour, but not in the day before that hour, the refuted clients outnumbered the
///   verified clients. The path remains suspect until a client was verified in the last hour and
///   the refuted clients are no longer in the majority. A path that has been suspect for a day also
///   stops being suspect if the crawler was verified in this time, which shows that the refuted
///   clients are impostors.
///
/// The breaker counts each client at most once in the last hour and once in the day before that
/// hour, regardless of how many requests the client sends. Refuted clients in the same network
/// (`/24`, `/48`) are counted as one client. So one impostor cannot make the path suspect as long
/// as the genuine crawler visits the site, even if the impostor sends a thousand requests or uses
/// all addresses of its network.
///
/// Checks of addresses and checks of signatures are counted separately, because a valid signature
/// proves nothing about the address, and vice versa.
#[derive(Clone, Debug, Default)]
pub(super) struct PathBreaker {
    methods: [MethodBreaker; 2],
    /// Number of the current slot, counted from 1970.
    current: u64,
}

#[derive(Clone, Debug, Default)]
struct MethodBreaker {
    verified: RecentAddresses,
    refuted: RecentAddresses,
    /// Number of requests with a refuted claim in each slot of the last hour. The current slot is
    /// first.
    refuted_requests: [u32; SLOTS_OF_AN_HOUR as usize],
    last_verified: Option<SystemTime>,
    open_since: Option<SystemTime>,
}

impl PathBreaker {
    /// Creates a breaker without counts. `last_verified` and `last_signed` are the times when an
    /// earlier process last verified the crawler on this path, by its address and by a signature.
    pub(super) fn new(last_verified: Option<SystemTime>, last_signed: Option<SystemTime>) -> Self {
        let method_breaker = |last_verified| MethodBreaker { last_verified, ..MethodBreaker::default() };
        Self { methods: [last_verified, last_signed].map(method_breaker), current: 0 }
    }

    /// Counts the result of checking the sender of a request. Call this function before
    /// [`effective_identity`](Self::effective_identity).
    pub(super) fn record(&mut self, identity: Identity, address: Option<PublicAddress>, now: SystemTime) {
        let Some(method) = identity.method() else { return };
        self.advance_to(now);
        // If a request has no usable address, only its signatures are checked. All these requests
        // are counted as one client.
        let client = |v4, v6| {
            address.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |address| Network::around(address.get(), v4, v6).first())
        };
        let counts = &mut self.methods[place(method)];
        match identity {
            Identity::Verified(_) => counts.verified(client(32, 64), now),
            _ => counts.refuted(client(24, 48), now),
        }
    }

    /// Reports whether failed checks with this method of identification are unreliable now and must
    /// not refute a claim.
    pub(super) fn is_suspect(&self, method: IdentityMethod, now: SystemTime) -> bool {
        let counts = &self.methods[place(method)];
        let is_verified = counts.last_verified.is_some_and(|at| match now.duration_since(at) {
            Ok(age) => age < DAY,
            // A time more than `CLOCK_STEP` in the future comes from a wrong clock, so it proves
            // nothing.
            Err(ahead) => ahead.duration() <= CLOCK_STEP,
        });
        !is_verified || counts.open_since.is_some()
    }

    /// Returns the identity to use: while the path is suspect, a refuted identity becomes
    /// undecided.
    pub(super) fn effective_identity(&self, identity: Identity, now: SystemTime) -> Identity {
        match identity {
            Identity::Refuted(refutation) if self.is_suspect(refutation.method(), now) => {
                Identity::Undecided(UndecidedReason::SuspectPath)
            }
            identity => identity,
        }
    }

    pub(super) fn last_verified(&self, method: IdentityMethod) -> Option<SystemTime> {
        self.methods[place(method)].last_verified
    }

    /// Returns up to three networks of clients whose claims failed with this method in the last
    /// day.
    pub(super) fn refuted_networks(&self, method: IdentityMethod) -> Vec<Network> {
        let mut networks: Vec<Network> =
            self.methods[place(method)].refuted.iter().map(|address| Network::around(address, 24, 48)).collect();
        networks.sort_unstable_by_key(Network::first);
        networks.truncate(3);
        networks
    }

    fn advance_to(&mut self, now: SystemTime) {
        let slot = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() / SLOT.as_secs());
        // If the clock was set back to the previous slot, the current slot does not change.
        if slot == self.current || slot + 1 == self.current {
            return;
        }
        if slot < self.current {
            // The clock was set back further, so the counts are not reliable.
            *self = Self::default();
        }
        let steps = u32::try_from(slot - self.current).unwrap_or(u32::MAX);
        self.methods.iter_mut().for_each(|counts| counts.advance(steps));
        self.current = slot;
    }
}

/// Returns the index of a method's counts. Lists and reverse DNS names share the same counts,
/// because both check addresses.
fn place(method: IdentityMethod) -> usize {
    usize::from(method == IdentityMethod::Signature)
}

impl MethodBreaker {
    fn verified(&mut self, client: IpAddr, now: SystemTime) {
        self.last_verified = Some(now);
        self.verified.mark_seen(client);
        if self.open_since.is_some_and(|since| self.is_over(since, now)) {
            self.open_since = None;
        }
    }

    fn refuted(&mut self, client: IpAddr, now: SystemTime) {
        self.refuted_requests[0] = self.refuted_requests[0].saturating_add(1);
        self.refuted.mark_seen(client);
        match self.open_since {
            None if self.has_jumped() => self.open_since = Some(now),
            Some(since) if self.is_over(since, now) => self.open_since = None,
            _ => {}
        }
    }

    /// Reports whether the refuted clients outnumbered the verified clients in the last hour, but
    /// not in the day before that hour. Returns `false` for fewer than [`MIN_REFUTED_REQUESTS`]
    /// refuted requests.
    fn has_jumped(&self) -> bool {
        let requests = self.refuted_requests.iter().fold(0_u32, |sum, count| sum.saturating_add(*count));
        let was_so = || self.refuted.in_the_day_before() > self.verified.in_the_day_before();
        self.is_above_half() && requests >= MIN_REFUTED_REQUESTS && !was_so()
    }

    fn is_above_half(&self) -> bool {
        self.refuted.in_the_hour() > self.verified.in_the_hour()
    }

    fn is_over(&self, since: SystemTime, now: SystemTime) -> bool {
        let is_calm = !self.is_above_half() && self.verified.in_the_hour() > 0;
        let is_old = now.duration_since(since).is_ok_and(|open| open >= DAY);
        is_calm || (is_old && self.last_verified.is_some_and(|at| at > since))
    }

    fn advance(&mut self, slots: u32) {
        self.verified.advance(slots);
        self.refuted.advance(slots);
        let kept = SLOTS_OF_AN_HOUR.saturating_sub(slots) as usize;
        self.refuted_requests.copy_within(..kept, SLOTS_OF_AN_HOUR as usize - kept);
        let cleared = self.refuted_requests.len() - kept;
        self.refuted_requests[..cleared].fill(0);
    }
}

const SLOTS_OF_A_DAY: u32 = 120;
const SLOTS_OF_AN_HOUR: u32 = 5;

/// Maximum number of different addresses that are counted in the last hour. The same maximum
/// applies separately to the day before that hour.
const MAX_ADDRESSES: usize = 64;

#[derive(Clone, Debug, Default)]
struct RecentAddresses {
    seen: HashMap<IpAddr, SeenSlots>,
    in_hour: usize,
}

/// The slots when an address was seen, one bit per slot. Bit 0 represents the current slot.
#[derive(Clone, Copy, Debug, Default)]
struct SeenSlots(u128);

const HOUR: u128 = (1 << SLOTS_OF_AN_HOUR) - 1;

impl RecentAddresses {
    /// Records that an address was seen in the current slot. A new address is ignored if the
    /// maximum number of addresses were already seen in the last hour.
    fn mark_seen(&mut self, address: IpAddr) {
        if let Some(slots) = self.seen.get_mut(&address) {
            self.in_hour += usize::from(!slots.is_in_hour());
            slots.0 |= 1;
            return;
        }
        if self.in_hour >= MAX_ADDRESSES {
            return;
        }
        if self.seen.len() >= 2 * MAX_ADDRESSES {
            let oldest = self.seen.iter().max_by_key(|(_, slots)| slots.age()).map(|(address, _)| *address);
            if let Some(oldest) = oldest {
                self.seen.remove(&oldest);
            }
        }
        self.seen.insert(address, SeenSlots(1));
        self.in_hour += 1;
    }

    fn advance(&mut self, slots: u32) {
        self.seen.retain(|_, seen| seen.advance(slots));
        self.in_hour = self.seen.values().filter(|seen| seen.is_in_hour()).count();
    }

    fn in_the_hour(&self) -> usize {
        self.in_hour.min(MAX_ADDRESSES)
    }

    /// Returns how many addresses were seen in the day before the last hour, at most
    /// [`MAX_ADDRESSES`].
    fn in_the_day_before(&self) -> usize {
        self.seen.values().filter(|seen| seen.0 & !HOUR != 0).count().min(MAX_ADDRESSES)
    }

    fn iter(&self) -> impl Iterator<Item = IpAddr> {
        self.seen.keys().copied()
    }
}

impl SeenSlots {
    const fn is_in_hour(self) -> bool {
        self.0 & HOUR != 0
    }

    /// Returns how many slots ago the address was last seen.
    const fn age(self) -> u32 {
        self.0.trailing_zeros()
    }

    /// Moves the bits to older slots. Reports whether the address was seen within the last day.
    fn advance(&mut self, slots: u32) -> bool {
        const MASK: u128 = (1 << SLOTS_OF_A_DAY) - 1;
        self.0 = self.0.checked_shl(slots).unwrap_or_default() & MASK;
        self.0 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Refutation;

    const VERIFIED: Identity = Identity::Verified(IdentityMethod::Range);
    const REFUTED: Identity = Identity::Refuted(Refutation::NotListed);
    const SUSPECT: Identity = Identity::Undecided(UndecidedReason::SuspectPath);

    fn at(minutes: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 / SLOT.as_secs() * SLOT.as_secs() + minutes * 60)
    }

    /// Returns the address with this number. Each address is in a different network.
    fn address(number: u32) -> Option<PublicAddress> {
        let address = IpAddr::from((0x0808_0000 + (number << 8)).to_be_bytes());
        Some(PublicAddress::of(Some(address), |_| false).expect("public"))
    }

    struct Path(PathBreaker);

    impl Path {
        fn new() -> Self {
            Self(PathBreaker::default())
        }

        fn requests(&mut self, identity: Identity, count: u32, minute: u64) -> Identity {
            for number in 0..count {
                self.0.record(identity, address(number), at(minute));
            }
            self.0.effective_identity(identity, at(minute))
        }
    }

    #[test]
    fn a_claim_is_refuted_only_within_a_day_after_the_crawler_was_verified() {
        let mut path = Path::new();
        assert_eq!(path.requests(REFUTED, 3, 0), SUSPECT);
        assert_eq!(path.requests(VERIFIED, 1, 1), VERIFIED);
        assert_eq!(path.0.effective_identity(REFUTED, at(1)), REFUTED);
        assert_eq!(path.0.effective_identity(REFUTED, at(24 * 60)), REFUTED);
        assert_eq!(path.0.effective_identity(REFUTED, at(24 * 60 + 1)), SUSPECT);
        let earlier = PathBreaker::new(Some(at(0)), None);
        assert_eq!(earlier.effective_identity(REFUTED, at(60)), REFUTED);
        assert_eq!(earlier.effective_identity(REFUTED, at(24 * 60)), SUSPECT);
    }

    #[test]
    fn the_breaker_changes_only_refuted_identities() {
        let breaker = PathBreaker::default();
        let stale = Identity::Undecided(UndecidedReason::Stale);
        for identity in [VERIFIED, stale, Identity::Unverifiable, Identity::Unclaimed] {
            assert_eq!(breaker.effective_identity(identity, at(0)), identity);
        }
    }

    #[test]
    fn the_breaker_opens_when_the_share_of_refuted_addresses_rises_above_half() {
        let mut path = Path::new();
        path.requests(VERIFIED, 20, 0);
        // With 20 refuted addresses among 40, the breaker is closed. The next refuted address opens
        // it.
        assert_eq!(path.requests(REFUTED, 20, 1), REFUTED);
        assert_eq!(path.requests(REFUTED, 21, 1), SUSPECT);
        // With five refuted addresses in the last hour, the breaker closes when the fifth address
        // is verified.
        assert_eq!(path.requests(REFUTED, 5, 90), SUSPECT);
        assert_eq!(path.requests(VERIFIED, 4, 91), VERIFIED);
        assert_eq!(path.0.effective_identity(REFUTED, at(91)), SUSPECT);
        path.requests(VERIFIED, 5, 91);
        assert_eq!(path.0.effective_identity(REFUTED, at(91)), REFUTED);
    }

    #[test]
    fn the_breaker_opens_within_an_hour_after_an_unlisted_proxy_takes_over_all_requests() {
        let mut path = Path::new();
        for hour in 0..24 {
            path.requests(VERIFIED, 30, hour * 60);
        }
        // After the first day, all requests come from two addresses of a proxy.
        for minute in (24 * 60..25 * 60).step_by(2) {
            path.requests(REFUTED, 2, minute);
        }
        for minute in (25 * 60..72 * 60).step_by(5) {
            assert_eq!(path.requests(REFUTED, 2, minute), SUSPECT, "{minute}");
        }
        let want = ["8.8.0.0/24", "8.8.1.0/24"].map(|text| text.parse().expect("a network"));
        assert_eq!(path.0.refuted_networks(IdentityMethod::Range), want);
    }

    #[test]
    fn one_impostor_cannot_open_the_breaker() {
        let mut path = Path::new();
        path.requests(VERIFIED, 1, 0);
        for minute in 0..59 {
            for _ in 0..100 {
                assert_eq!(path.requests(REFUTED, 1, minute), REFUTED);
            }
            path.requests(VERIFIED, 1, minute);
        }
        // An impostor that uses all addresses of one network cannot open the breaker.
        for (first, step) in [(0x2001_4860_u128 << 96, 1_u128 << 64), (0xFFFF_0808_0800_u128, 1)] {
            let mut path = Path::new();
            path.requests(VERIFIED, 1, 0);
            for number in 0..200_u128 {
                let client = IpAddr::from((first + number * step).to_be_bytes());
                let client = PublicAddress::of(Some(client), |_| false).expect("public");
                path.0.record(REFUTED, Some(client), at(1));
            }
            assert_eq!(path.0.effective_identity(REFUTED, at(1)), REFUTED);
        }
    }

    #[test]
    fn the_breaker_opens_only_after_ten_refuted_requests() {
        let mut path = Path::new();
        path.requests(VERIFIED, 1, 0);
        assert_eq!(path.requests(REFUTED, 9, 5), REFUTED);
        assert_eq!(path.requests(REFUTED, 1, 5), SUSPECT);
    }

    #[test]
    fn the_breaker_closes_after_a_day_of_many_impostors_if_the_crawler_is_still_verified() {
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
    fn setting_the_clock_back_by_a_day_discards_the_earlier_counts() {
        let mut path = Path::new();
        path.requests(VERIFIED, 20, 48 * 60);
        assert_eq!(path.requests(REFUTED, 1, 48 * 60 - 1), REFUTED);
        assert_eq!(path.requests(REFUTED, 1, 24 * 60), SUSPECT);
        assert_eq!(path.requests(VERIFIED, 1, 24 * 60 + 1), VERIFIED);
        assert_eq!(path.requests(REFUTED, 1, 24 * 60 + 2), REFUTED);
    }

    #[test]
    fn an_address_that_sends_requests_all_day_counts_once() {
        let mut path = Path::new();
        path.requests(REFUTED, 5, 0);
        for minute in (0..=23 * 60).step_by(10) {
            path.requests(VERIFIED, 2, minute);
        }
        assert_eq!(path.0.methods[0].verified.in_the_day_before(), 2);
        // Impostors were already in the majority on the day before. So their majority in the last
        // hour is not a change, and the breaker does not open.
        for _ in 0..10 {
            assert_eq!(path.requests(REFUTED, 5, 23 * 60), REFUTED);
        }
    }

    #[test]
    fn checks_of_addresses_and_of_signatures_are_counted_separately() {
        let signed = Identity::Verified(IdentityMethod::Signature);
        let forged = Identity::Refuted(Refutation::BadSignature);
        let mut path = Path::new();
        path.requests(signed, 5, 0);
        assert_eq!(path.0.last_verified(IdentityMethod::Range), None);
        assert_eq!((path.requests(REFUTED, 1, 1), path.requests(forged, 1, 1)), (SUSPECT, forged));
        let mut path = Path::new();
        path.requests(VERIFIED, 5, 0);
        assert_eq!((path.requests(REFUTED, 1, 1), path.requests(forged, 1, 1)), (REFUTED, SUSPECT));
        path.0.record(Identity::Verified(IdentityMethod::Rdns), address(1), at(2));
        assert_eq!(path.0.last_verified(IdentityMethod::Range), Some(at(2)));
    }

    #[test]
    fn a_verification_time_more_than_ten_minutes_in_the_future_is_ignored() {
        let refuted = |last: u64, now| PathBreaker::new(Some(at(last)), None).effective_identity(REFUTED, at(now));
        assert_eq!(refuted(10, 0), REFUTED);
        assert_eq!(refuted(11, 0), SUSPECT);
        assert_eq!(refuted(24 * 60, 0), SUSPECT);
    }

    /// The clock jumps forward by a day in one case, and back by a day in the other.
    #[test]
    fn no_claim_is_refuted_after_the_clock_jumps_by_a_day() {
        for (before, after) in [(48 * 60, 72 * 60), (48 * 60, 24 * 60)] {
            for identity in
                [REFUTED, Identity::Refuted(Refutation::Expired), Identity::Refuted(Refutation::CreatedInFuture)]
            {
                let mut path = Path::new();
                path.requests(VERIFIED, 5, before);
                path.requests(Identity::Verified(IdentityMethod::Signature), 5, before);
                for minute in (after..after + 300).step_by(7) {
                    assert_eq!(path.requests(identity, 3, minute), SUSPECT, "{before} {after} {minute}");
                }
            }
        }
    }

    #[test]
    fn the_number_of_stored_addresses_and_reported_networks_is_limited() {
        let mut path = Path::new();
        path.requests(REFUTED, 1_000, 0);
        path.requests(VERIFIED, 1_000, 0);
        assert_eq!(path.0.methods[0].refuted.iter().count(), MAX_ADDRESSES);
        assert_eq!(path.0.methods[0].verified.iter().count(), MAX_ADDRESSES);
        assert!(path.0.refuted_networks(IdentityMethod::Range).len() <= 3);
    }

    fn ip(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    #[test]
    fn an_address_counts_once_in_each_window() {
        let mut recent = RecentAddresses::default();
        for _ in 0..SLOTS_OF_A_DAY {
            recent.mark_seen(ip(1));
            recent.mark_seen(ip(1));
            recent.advance(1);
        }
        recent.mark_seen(ip(2));
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
    fn an_hour_with_many_addresses_does_not_displace_the_addresses_of_the_day_before() {
        let mut recent = RecentAddresses::default();
        for number in 0..60 {
            recent.mark_seen(ip(number));
        }
        recent.advance(SLOTS_OF_AN_HOUR);
        for number in 100..1_000 {
            recent.mark_seen(ip(number));
        }
        assert_eq!((recent.in_the_hour(), recent.in_the_day_before()), (MAX_ADDRESSES, 60));
        recent.advance(SLOTS_OF_AN_HOUR);
        for number in 2_000..3_000 {
            recent.mark_seen(ip(number));
        }
        assert_eq!((recent.in_the_hour(), recent.in_the_day_before()), (MAX_ADDRESSES, MAX_ADDRESSES));
        assert!(recent.seen.len() <= 2 * MAX_ADDRESSES);
    }
}
