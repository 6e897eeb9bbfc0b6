//! Rate limiting of crawlers, with a few bytes of memory per sender. The Tower layer uses this
//! module. Use it directly in frameworks without Tower, or to keep the buckets in a store that
//! several processes share.
//!
//! A [`Quota`] is an interval and a burst. A bucket enforces the quota with the generic cell rate
//! algorithm (GCRA). The bucket stores the time when it will be full again. Each request that
//! passes adds one interval to the stored time. Refused requests add nothing, so a sender that
//! repeats a request too early does not have to wait longer.
//!
//! The choice of the bucket is important for security:
//!
//! - All requests of a verified crawler share one bucket, which no other sender uses.
//! - A client with an unverified claim to be a crawler shares a bucket with the other clients in
//!   its network, so that it cannot use up the requests of the real crawler.
//! - All impostors of one crawler share a bucket.
//!
//! [`SiteBuckets`] finds the bucket of a [`RateKey`]. The buckets of a crawler's name are allocated
//! on the first request with this name, and are kept when the site is reloaded. The buckets of
//! networks are in [`NetworkBuckets`], whose memory is bounded.
//!
//! This module does not use requests, policies or system clocks. The caller passes the time as a
//! duration since a fixed point in time, which must be the same in all calls.

mod gcra;
mod site_buckets;

pub use self::gcra::{Quota, RateKey, RateSender};
pub use self::site_buckets::{NetworkBuckets, SiteBuckets};

#[cfg(test)]
mod tests;
