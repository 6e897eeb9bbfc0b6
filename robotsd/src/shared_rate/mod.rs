//! Rate-limit buckets that replicas share, stored in Valkey or Redis.
//!
//! For each request of a rate-limited crawler, the store runs one script, which uses the store's
//! clock (`bucket`, `gcra.lua`). `denials` repeats a denial without asking the store, so a crawler
//! that exceeds its rate causes no calls until its next request is allowed. `breaker` decides
//! whether the store is used at all. If anything fails, the verdict is [`SharedVerdict::Unknown`]
//! within the deadline, and the bucket of the process decides. A failing store therefore never
//! causes refusals. While the store fails, more requests are allowed, because each process counts
//! separately.
//!
//! This module does not know crawlers or sites. A bucket has only a key and a rate.

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
