//! Rate limiting of crawlers, with one word of memory for each sender. The caller reads the clock.
//! This module is for frameworks without Tower, and for stores that several processes share. The
//! Tower layer already uses it.
//!
//! A [`Quota`] is an interval and a burst. A bucket enforces it with the generic cell rate
//! algorithm (GCRA): it stores the time at which the bucket is full again, and each request that
//! passes adds one interval to this time. A refused request adds nothing, so a sender that keeps
//! sending requests too early does not have to wait longer.
//!
//! The choice of the bucket matters for security:
//!
//! - A verified crawler has a bucket of its own.
//! - A client that only claims a name shares a bucket with its network. Otherwise anyone could use
//!   up the real crawler's requests by sending its name.
//! - All impostors of one crawler share a bucket.
//!
//! [`SiteBuckets`] finds the bucket of a [`RateKey`]. The buckets of a name are allocated on its
//! first request and are kept when a site is reloaded. Buckets of networks are in
//! [`NetworkBuckets`], whose memory is bounded.
//!
//! This module does not use requests, policies or system clocks. Times are durations since a point
//! in time that all callers share.

mod gcra;
mod site_buckets;

pub use self::gcra::{Quota, RateKey, RateSender};
pub use self::site_buckets::{NetworkBuckets, SiteBuckets};

#[cfg(test)]
mod tests;
