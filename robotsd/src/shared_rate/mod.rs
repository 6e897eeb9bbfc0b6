//! Buckets that replicas share, in Valkey or Redis.
//!
//! The store is called for requests that are limited; all replicas share it. The store runs one script by its own clock
//! (`bucket`, `gcra.lua`). `ledger` is what a process knows of a bucket without asking: a denial, and the requests of a
//! busy crawler, which are reported to the store a batch at a time. `breaker` says whether the store is asked at all,
//! for each of its parts that fail apart. On any failure the answer is [`SharedVerdict::Unknown`] within the deadline,
//! and the process's own bucket decides: no request is refused because of the store.
//!
//! This room does not know what a crawler or a site is: a bucket has a key and a rate.

mod breaker;
mod bucket;
mod keeper;
mod ledger;
mod ledgers;
mod state;
mod store;

pub use self::bucket::{BucketOwner, SharedBucket, SharedKey};
pub use self::state::{StoreCount, StoreCounts, StoreReport, StoreUsage};
pub use self::store::{SharedRate, SharedVerdict};
pub use crate::store::{StoreNodes, StoreSettings, StoreUrl};
