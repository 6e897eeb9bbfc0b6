//! Tests which requests pass. The tests use a model of the bucket, many threads, and a million
//! addresses.

use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use proptest::prelude::*;

use super::gcra::Bucket;
use super::*;
use crate::agent::{Recognizer, Registry};
use crate::rules::{ProductToken, RobotsTxt};

const SECOND: Duration = Duration::from_secs(1);

fn quota(interval: Duration, burst: u32) -> Quota {
    Quota::new(interval, NonZeroU32::new(burst).unwrap())
}

/// Counts the entries, including entries whose buckets are full again.
fn entries(networks: &NetworkBuckets) -> usize {
    let shards = networks.shards.iter().filter_map(OnceLock::get).map(|shard| shard.lock().unwrap());
    shards.map(|shard| shard.iter().flat_map(|set| set.0).filter(|entry| entry.full_at > 0).count()).sum()
}

fn key_of(token: &ProductToken, sender: RateSender) -> RateKey<'_> {
    RateKey { token: Some(token), sender }
}

/// A simple token bucket: one token is refilled per interval.
struct NaiveBucket {
    interval: f64,
    burst: f64,
    tokens: f64,
    at: f64,
}

impl NaiveBucket {
    fn take(&mut self, now: f64) -> bool {
        self.tokens = (self.tokens + (now - self.at) / self.interval).min(self.burst);
        self.at = now;
        // The model adds fractions, so `tokens` may be slightly below 1 because of rounding errors.
        let passes = self.tokens >= 1.0 - 1e-6;
        self.tokens -= f64::from(u8::from(passes));
        passes
    }
}

proptest! {
    #[test]
    fn a_bucket_agrees_with_a_simple_token_bucket_model(
        interval in 1_u64..5_000,
        burst in 1_u32..9,
        pauses in prop::collection::vec(0_u64..8_000, 1..200),
    ) {
        let (bucket, quota) = (Bucket::default(), quota(Duration::from_millis(interval), burst));
        let mut naive = NaiveBucket { interval: interval as f64, burst: burst.into(), tokens: burst.into(), at: 0.0 };
        let mut now = 0;
        for pause in pauses {
            now += pause;
            let taken = bucket.take(quota, Duration::from_millis(now));
            prop_assert_eq!(taken.is_ok(), naive.take(now as f64), "at {}", now);
            if let Err(too_soon) = taken {
                // A request passes after the returned time, but not a nanosecond earlier.
                let then = Duration::from_millis(now) + too_soon;
                prop_assert!(bucket.take(quota, then - Duration::from_nanos(1)).is_err());
                prop_assert!(!too_soon.is_zero() && too_soon <= Duration::from_millis(interval));
            }
        }
    }
}

/// Returns how many requests pass in total if each of ten threads makes `tries` requests.
fn taken_by_ten_threads(tries: usize, take: impl Fn(usize) -> bool + Sync) -> usize {
    let passed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| passed.fetch_add((0..tries).filter(|at| take(*at)).count(), Ordering::Relaxed));
        }
    });
    passed.into_inner()
}

#[test]
fn ten_threads_on_one_bucket_take_exactly_what_is_allowed() {
    for now in [Duration::ZERO, 100 * SECOND] {
        let bucket = Bucket::default();
        assert_eq!(taken_by_ten_threads(1000, |_| bucket.take(quota(SECOND, 700), now).is_ok()), 700);
    }
}

#[test]
fn ten_threads_on_one_network_take_exactly_what_is_allowed() {
    let (site, token) = (SiteBuckets::new(1, Arc::new(NetworkBuckets::new())), ProductToken::new("a"));
    let key = key_of(&token, RateSender::Claimed(Some(IpAddr::V4(Ipv4Addr::LOCALHOST))));
    assert_eq!(taken_by_ten_threads(1000, |_| site.take(&key, quota(SECOND, 700), SECOND).is_ok()), 700);
}

#[test]
fn a_refused_request_does_not_use_up_quota() {
    let (bucket, quota) = (Bucket::default(), quota(10 * SECOND, 1));
    assert_eq!(bucket.take(quota, SECOND), Ok(()));
    for second in 2..11 {
        let too_soon = bucket.take(quota, second * SECOND).unwrap_err();
        assert_eq!(too_soon, (11 - second) * SECOND);
    }
    assert_eq!(bucket.take(quota, 11 * SECOND), Ok(()));
}

#[test]
fn a_clock_jump_delays_or_allows_at_most_one_burst() {
    let (bucket, quota) = (Bucket::default(), quota(SECOND, 3));
    let passed = |now: u32| (0..10).filter(|_| bucket.take(quota, now * SECOND).is_ok()).count();
    assert_eq!(passed(1000), 3);
    // The clock jumps back: the lead over the new time is limited to one burst, so the sender need
    // not wait until the clock reaches the old time again.
    assert_eq!((passed(10), passed(11), passed(12)), (0, 1, 1));
    // The clock jumps ahead: one burst passes and no more, however far the clock jumps.
    assert_eq!(passed(4_000_000_000), 3);
    assert!(bucket.take(quota, Duration::MAX).is_ok());
}

#[test]
fn a_shorter_interval_applies_at_once() {
    let bucket = Bucket::default();
    while bucket.take(quota(30 * SECOND, 5), SECOND).is_ok() {}
    let too_soon = bucket.take(quota(SECOND, 1), SECOND).unwrap_err();
    assert_eq!(too_soon, SECOND);
    assert!(bucket.take(quota(SECOND, 1), 2 * SECOND).is_ok());
}

#[test]
fn extreme_intervals_bursts_and_times_do_not_overflow() {
    for interval in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
        for burst in [1, u32::MAX] {
            for now in [Duration::ZERO, SECOND, Duration::MAX] {
                assert!(Bucket::default().take(quota(interval, burst), now).is_ok());
            }
        }
    }
}

#[test]
fn a_million_addresses_use_bounded_memory_and_no_quota_of_other_senders() {
    let networks = Arc::new(NetworkBuckets::new());
    let token = ProductToken::new("gptbot");
    let site = SiteBuckets::new(1, networks.clone());
    let quota = quota(10 * SECOND, 2);
    let mut passed = 0;
    for number in 0..1_000_000_u32 {
        let address = IpAddr::V4(Ipv4Addr::from_bits(number));
        let now = Duration::from_nanos(number.into());
        passed += usize::from(site.take(&key_of(&token, RateSender::Claimed(Some(address))), quota, now).is_ok());
    }
    assert_eq!(passed, 1_000_000, "each has a bucket of its own");
    assert_eq!(entries(&networks), NetworkBuckets::CAPACITY, "as many as there is room for");
    let now = Duration::from_millis(1);
    // The oldest entries were replaced: almost all of the last addresses have entries, and none of
    // the first addresses does.
    let is_known = |number: u32| {
        let key = key_of(&token, RateSender::Claimed(Some(IpAddr::V4(Ipv4Addr::from_bits(number)))));
        site.take(&key, quota, now).and_then(|()| site.take(&key, quota, now)).is_err()
    };
    let known = |numbers: std::ops::Range<u32>| numbers.step_by(100).filter(|number| is_known(*number)).count();
    let (last, first) = (known(990_000..1_000_000), known(0..10_000));
    assert!(last >= 95 && first == 0, "{last} {first}");
    for sender in [RateSender::Verified, RateSender::Refuted, RateSender::Claimed(None)] {
        let key = key_of(&token, sender);
        let passed = (0..10).filter(|_| site.take(&key, quota, now).is_ok()).count();
        assert_eq!(passed, 2, "{sender:?} has its own");
    }
}

#[test]
fn senders_in_the_same_network_share_a_bucket() {
    let (one, other) = (ProductToken::new("a"), ProductToken::new("b"));
    let networks = Arc::new(NetworkBuckets::new());
    let (site, neighbour) = (SiteBuckets::new(1, networks.clone()), SiteBuckets::new(2, networks));
    let take = |site: &SiteBuckets, token: &ProductToken, address: &str| {
        let sender = RateSender::Claimed(Some(address.parse().unwrap()));
        site.take(&key_of(token, sender), quota(SECOND, 1), SECOND).is_ok()
    };
    assert!(take(&site, &one, "192.0.2.1") && !take(&site, &one, "192.0.2.1") && take(&site, &one, "192.0.2.2"));
    assert!(!take(&site, &one, "::ffff:192.0.2.1"), "an IPv4 address in the dress of IPv6");
    assert!(take(&site, &one, "2001:db8::1"));
    assert!(!take(&site, &one, "2001:db8::ffff:2"));
    assert!(take(&site, &one, "2001:db8:0:1::1"));
    assert!(take(&site, &other, "192.0.2.1"), "another crawler");
    assert!(take(&neighbour, &one, "192.0.2.1"), "another site");
}

#[test]
fn a_name_gets_a_bucket_at_its_first_request_and_clones_share_it() {
    let (one, other) = (ProductToken::new("a"), ProductToken::new("b"));
    let site = SiteBuckets::new(1, Arc::new(NetworkBuckets::new()));
    let take = |site: &SiteBuckets, token: &ProductToken| {
        site.take(&key_of(token, RateSender::Verified), quota(10 * SECOND, 1), SECOND).is_ok()
    };
    assert_eq!(site.shared.names.len(), 0, "no memory for names that nobody sends");
    let clone = site.clone();
    assert!(take(&site, &one) && !take(&site, &one) && !take(&clone, &one));
    assert!(take(&clone, &other) && !take(&site, &other));
    assert_eq!(site.shared.names.len(), 2);
}

#[test]
fn names_beyond_the_maximum_still_have_a_rate_limit() {
    let networks = Arc::new(NetworkBuckets::new());
    let site = SiteBuckets::new(1, networks.clone());
    let names: Vec<_> = (0..SiteBuckets::MAX_NAMES + 10).map(|name| ProductToken::new(name.to_string())).collect();
    for passes in [true, false] {
        for token in &names {
            let taken = site.take(&key_of(token, RateSender::Verified), quota(10 * SECOND, 1), SECOND);
            assert_eq!(taken.is_ok(), passes, "{token}");
        }
    }
    assert_eq!((site.shared.names.len(), entries(&networks)), (SiteBuckets::MAX_NAMES, 10));
}

#[test]
fn ten_threads_with_the_same_new_names_take_exactly_what_is_allowed() {
    let site = SiteBuckets::new(1, Arc::new(NetworkBuckets::new()));
    let names: Vec<_> = (0..500).map(|name| ProductToken::new(name.to_string())).collect();
    let key = |name: usize| key_of(&names[name], RateSender::Verified);
    let passed = taken_by_ten_threads(500, |name| site.take(&key(name), quota(SECOND, 3), SECOND).is_ok());
    assert_eq!((passed, site.shared.names.len()), (1500, 500));
}

#[test]
fn an_unknown_name_has_its_own_rate_key_only_if_it_is_verified() {
    let recognizer = Recognizer::new(Registry::builtin().clone(), &RobotsTxt::parse(&b""[..]));
    let agent = recognizer.identify(b"NeverHeardOfBot/1.0 (+https://example.net/bot)");
    let has_name = |sender| RateKey::of(&agent, sender, |_| false).is_some_and(|key| key.token.is_some());
    assert!(has_name(RateSender::Verified) && !has_name(RateSender::Refuted) && !has_name(RateSender::Claimed(None)));
}
