//! Rate limiting of crawlers: one word of memory for each sender, and a clock that the caller
//! reads. Meant for frameworks without Tower, and for stores that several processes share; the
//! layer counts by itself.
//!
//! A [`Quota`] is an interval and a burst. A bucket enforces it with the generic cell rate
//! algorithm (GCRA): it stores the time when the sender's passed requests are paid off, and each
//! request adds one interval. A refused request adds nothing, so a sender that keeps asking too
//! early loses nothing by it.
//!
//! Which bucket a request takes from matters for security:
//!
//! - A verified crawler has a bucket of its own.
//! - A client that only claims a name shares a bucket with its network. Otherwise anyone could use
//!   up the real crawler's requests by sending its name.
//! - Impostors of one name share a bucket.
//!
//! [`SiteBuckets`] finds the bucket of a [`RateKey`]. Buckets of names are allocated on the first
//! request and keep their place across reloads. Buckets of networks are in [`NetworkBuckets`],
//! whose memory is bounded.
//!
//! This module knows nothing of requests, policies or system clocks. Times are nanoseconds since a
//! start that all callers share.

mod gcra;
mod site_buckets;

pub use self::gcra::{Quota, RateKey, RateSender};
pub use self::site_buckets::{NetworkBuckets, SiteBuckets};

#[cfg(test)]
mod tests;
