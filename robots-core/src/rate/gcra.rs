//! The generic cell rate algorithm, on one word, and the key of the bucket that a request takes from.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::agent::{Agent, Identity};
use crate::rules::ProductToken;

/// How many requests pass: one in each interval, and so many at once after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Nanoseconds, above zero.
    interval: u64,
    /// How far ahead of now the bucket may be: the intervals of a burst, one after the other.
    depth: u64,
}

/// The state of one sender: the time at which it has paid for all that passed, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Bucket(AtomicU64);

impl Quota {
    /// One request in each interval; after a pause `burst` requests pass at once. An interval of zero counts as one
    /// nanosecond; times of more than a hundred years are cut.
    pub fn new(interval: Duration, burst: NonZeroU32) -> Self {
        let interval = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX).clamp(1, u64::MAX >> 2);
        let depth = interval.saturating_mul(burst.get().into()).min(u64::MAX >> 2);
        Self { interval, depth }
    }

    /// One request passes in this time.
    pub const fn interval(self) -> Duration {
        Duration::from_nanos(self.interval)
    }

    /// So many pass at once after a pause.
    pub fn burst(self) -> NonZeroU32 {
        let burst = u32::try_from(self.depth / self.interval).unwrap_or(u32::MAX);
        NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN)
    }

    /// The state of a bucket after a request at this time: the next state if it passes; else the state to keep, and how long
    /// to wait.
    pub(super) fn take(self, paid: u64, now: u64) -> (u64, Result<(), Duration>) {
        // Further ahead than a full burst is none of this quota's doing: the interval was shortened, or the clock set back.
        let full = now.saturating_add(self.depth);
        let paid = paid.clamp(now, full);
        let next = paid.saturating_add(self.interval);
        if next <= full { (next, Ok(())) } else { (paid, Err(Duration::from_nanos(next - full))) }
    }

    /// Whether a request at this time would pass.
    pub(super) fn look(self, paid: u64, now: u64) -> Result<(), Duration> {
        self.take(paid, now).1
    }
}

impl Bucket {
    /// Takes one request from the bucket.
    ///
    /// Any number of threads take exactly what the quota allows: there is one word, and it is compared and swapped.
    ///
    /// # Errors
    ///
    /// If it comes too soon: how long to wait, above zero. Nothing is taken then.
    pub(super) fn take(&self, quota: Quota, now: Duration) -> Result<(), Duration> {
        let now = nanoseconds(now);
        let mut paid = self.0.load(Ordering::Relaxed);
        loop {
            let (next, taken) = quota.take(paid, now);
            // A refused request writes only where the clock or the interval has changed.
            if next == paid {
                return taken;
            }
            match self.0.compare_exchange_weak(paid, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return taken,
                Err(other) => paid = other,
            }
        }
    }

    /// Whether a request would pass. Nothing is taken.
    ///
    /// # Errors
    ///
    /// If it would come too soon.
    pub(super) fn look(&self, quota: Quota, now: Duration) -> Result<(), Duration> {
        quota.look(self.0.load(Ordering::Relaxed), nanoseconds(now))
    }
}

/// Times of more than a hundred years are cut.
pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).min(u64::MAX >> 2)
}

/// The sender of a request, as far as limiting goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RateKey<'a> {
    /// The crawler's product token; `None` for all names that may be made up, which count as one, so that a client has no more
    /// requests by sending more names.
    pub token: Option<&'a ProductToken>,
    /// The evidence about the sender.
    pub sender: RateSender,
}

/// The evidence about the sender of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RateSender {
    /// The crawler that it names: all its requests take from one bucket.
    Verified,
    /// Not the crawler that it names: all impostors of one name take from one bucket.
    Refuted,
    /// Neither: those of one network take from one bucket, and those whose address is not known from another.
    Claimed(Option<IpAddr>),
}

impl RateSender {
    /// The sender of a request whose claim was checked with this outcome. The address is looked at where nothing else tells
    /// senders apart.
    pub fn of(identity: Identity, address: impl FnOnce() -> Option<IpAddr>) -> Self {
        match identity {
            Identity::Verified(_) => Self::Verified,
            Identity::Refuted(_) => Self::Refuted,
            _ => Self::Claimed(address()),
        }
    }
}

impl<'a> RateKey<'a> {
    /// The key of an agent to which a delay applies, as the layer counts it; `is_named`: whether a group of the file names a token.
    ///
    /// `None` where it is not limited: an agent without a name is distinguished by its network only.
    pub fn of(agent: &'a Agent, sender: RateSender, is_named: impl Fn(&ProductToken) -> bool) -> Option<Self> {
        let token = match agent.tokens() {
            [] if !matches!(sender, RateSender::Claimed(Some(_))) => return None,
            [first, ..] if agent.is_registered() => Some(first),
            // Any other name may be made up, in front of one of the file too, unless it is verified.
            tokens => {
                let verified = tokens.first().filter(|_| sender == RateSender::Verified);
                tokens.iter().find(|token| is_named(token)).or(verified)
            }
        };
        Some(Self { token, sender })
    }
}
