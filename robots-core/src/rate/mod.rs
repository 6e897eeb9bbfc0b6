//! How many requests of a crawler pass: one word of memory for each sender, and a clock that the caller reads. For frameworks
//! without Tower, and for stores that processes share; the layer counts by itself.
//!
//! A [`Quota`] is an interval and a burst. A bucket holds the sender to it with the generic cell rate algorithm (GCRA): it
//! keeps the moment at which the sender has paid for all that passed, and a request moves that moment by one interval. A
//! refused request moves nothing, so a sender that keeps asking too soon loses nothing by it.
//!
//! The choice of the bucket is a matter of security. A verified client has one of its own; a client that only claims a name shares
//! one with its network, else anyone could use up the real crawler's by borrowing its name; impostors share one. [`SiteBuckets`]
//! finds the bucket of a [`RateKey`]. Those of names are words that are made with the first request and stay where they are over
//! reloads; those of networks are in [`NetworkBuckets`], whose memory is bounded.
//!
//! This room knows nothing of requests, policies or clocks of the system. Times are nanoseconds since a start that all its
//! callers share.

mod gcra;
mod site_buckets;

pub use self::gcra::{Quota, RateKey, RateSender};
pub use self::site_buckets::{NetworkBuckets, SiteBuckets};

#[cfg(test)]
mod tests;
