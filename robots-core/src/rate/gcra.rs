//! The generic cell rate algorithm (GCRA), with one atomic word per bucket. This module also
//! contains the key that selects the bucket of a request.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::agent::{Agent, Identity};
use crate::rules::ProductToken;

/// A rate limit: one request per interval on average, and a burst of requests after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Minimum average time between two requests, in nanoseconds; at least 1.
    interval: u64,
    /// Maximum time until a bucket is full again, in nanoseconds: interval × burst.
    depth: u64,
}

/// The bucket of one sender. Contains the time when the bucket is full again, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Bucket(AtomicU64);

impl Quota {
    /// Creates a limit of one request per interval. After a pause, `burst` requests pass without a
    /// delay. The interval is limited to between one nanosecond and about a hundred years.
    pub fn new(interval: Duration, burst: NonZeroU32) -> Self {
        let interval = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX).clamp(1, u64::MAX >> 2);
        let depth = interval.saturating_mul(burst.get().into()).min(u64::MAX >> 2);
        Self { interval, depth }
    }

    /// Returns the minimum average time between two requests.
    pub const fn interval(self) -> Duration {
        Duration::from_nanos(self.interval)
    }

    /// Returns the burst: the number of requests that pass at once after a time without requests.
    pub fn burst(self) -> NonZeroU32 {
        let burst = u32::try_from(self.depth / self.interval).unwrap_or(u32::MAX);
        NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN)
    }

    /// Decides on a request at the time `now`. `full_at` is the value that the [`Bucket`] contains.
    /// Returns the bucket's next value and, if the request does not pass, the time to wait.
    pub(super) fn take(self, full_at: u64, now: u64) -> (u64, Result<(), Duration>) {
        // `full_at` exceeds `full` only if the interval or the burst was reduced, or the clock was
        // set back. `full` then replaces `full_at`.
        let full = now.saturating_add(self.depth);
        let full_at = full_at.clamp(now, full);
        let next = full_at.saturating_add(self.interval);
        if next <= full { (next, Ok(())) } else { (full_at, Err(Duration::from_nanos(next - full))) }
    }

    pub(super) fn look(self, full_at: u64, now: u64) -> Result<(), Duration> {
        self.take(full_at, now).1
    }
}

impl Bucket {
    /// Counts one request in the bucket if the request may pass. If several threads call this
    /// method at once, no more requests pass in total than the quota allows.
    ///
    /// # Errors
    ///
    /// Returns the time to wait, above zero, if the request exceeds the quota. The bucket does not
    /// count refused requests.
    pub(super) fn take(&self, quota: Quota, now: Duration) -> Result<(), Duration> {
        let now = nanoseconds(now);
        let mut full_at = self.0.load(Ordering::Relaxed);
        loop {
            let (next, taken) = quota.take(full_at, now);
            // For a refused request, `next` differs from `full_at` only if `Quota::take` has
            // clamped the bucket's time.
            if next == full_at {
                return taken;
            }
            match self.0.compare_exchange_weak(full_at, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return taken,
                Err(other) => full_at = other,
            }
        }
    }

    /// Reports whether a request would pass, without counting it in the bucket.
    ///
    /// # Errors
    ///
    /// Returns the time to wait if the request would exceed the quota.
    pub(super) fn look(&self, quota: Quota, now: Duration) -> Result<(), Duration> {
        quota.look(self.0.load(Ordering::Relaxed), nanoseconds(now))
    }
}

/// Converts a time to nanoseconds, limited to about a hundred years.
pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).min(u64::MAX >> 2)
}

/// The properties of a request that select its bucket: the crawler's token and the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RateKey<'a> {
    /// Product token of the crawler; `None` if the client may have made up the name. All made-up
    /// names share one key, so that a client cannot get more requests by sending more names.
    pub token: Option<&'a ProductToken>,
    /// What is known about the sender of the request.
    pub sender: RateSender,
}

/// The sender of a request, after its claim to be a crawler was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RateSender {
    /// The sender is the crawler that it claims to be. All requests of that crawler share one
    /// bucket.
    Verified,
    /// The sender is not the crawler that it claims to be. All impostors of one crawler share one
    /// bucket.
    Refuted,
    /// The claim is neither verified nor refuted. All senders in one network share a bucket, and
    /// all senders with an unknown address share another bucket.
    Claimed(Option<IpAddr>),
}

impl RateSender {
    /// Returns the sender of a request. `identity` is the result of checking the sender's claim to
    /// be a crawler. Calls `address` only if the claim is neither verified nor refuted.
    pub fn of(identity: Identity, address: impl FnOnce() -> Option<IpAddr>) -> Self {
        match identity {
            Identity::Verified(_) => Self::Verified,
            Identity::Refuted(_) => Self::Refuted,
            _ => Self::Claimed(address()),
        }
    }
}

impl<'a> RateKey<'a> {
    /// Returns the key of the bucket for an agent's requests. `is_named` reports whether a group of
    /// the file names a token.
    ///
    /// `None` if the requests cannot be counted, because the agent has no name and the client's
    /// network is unknown.
    pub fn of(agent: &'a Agent, sender: RateSender, is_named: impl Fn(&ProductToken) -> bool) -> Option<Self> {
        let token = match agent.tokens() {
            [] if !matches!(sender, RateSender::Claimed(Some(_))) => return None,
            [first, ..] if agent.is_registered() => Some(first),
            // A client may have made up an unregistered name. So the key uses the first token that
            // a group names. If no group names a token but the claim is verified, the name is not
            // made up, and the key uses the agent's first token.
            tokens => {
                let verified = tokens.first().filter(|_| sender == RateSender::Verified);
                tokens.iter().find(|token| is_named(token)).or(verified)
            }
        };
        Some(Self { token, sender })
    }
}
