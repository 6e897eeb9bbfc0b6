//! Buckets that replicas share, in Valkey or Redis.
//!
//! The store is asked about each limited request. It runs one script by its own clock (`bucket`, `gcra.lua`). `denials` are the
//! answers that this process repeats without asking: a crawler that is over its rate costs the store no call until it may come back.
//! `breaker` says whether the store is asked at all. On any failure the answer is [`SharedVerdict::Unknown`] within the deadline,
//! and the process's own bucket decides: no request is refused because of the store. So at most the rate passes, and the requests
//! that processes counted alone.
//!
//! This module does not know what a crawler or a site is: a bucket has a key and a rate.

mod breaker;
mod bucket;
mod denials;
mod keeper;
mod state;
mod store;

pub use self::bucket::{SharedBucket, SharedKey, SharedVerdict};
pub use self::state::{StoreCount, StoreCounts, StoreReport, StoreUsage};
pub use self::store::SharedRate;
pub use crate::store::{StoreNodes, StoreSettings, StoreUrl};
