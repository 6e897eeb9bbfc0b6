//! Rate-limit buckets that replicas share, in Valkey or Redis.
//!
//! Each limited request is checked with the store, which runs one script using its own clock
//! (`bucket`, `gcra.lua`). `denials` keeps answers that this process repeats without asking: a
//! crawler that exceeds its rate costs no calls until it may send the next request. `breaker`
//! decides whether the store is used at all. On any failure, the answer is
//! [`SharedVerdict::Unknown`] within the deadline, and the process's own bucket decides: no request
//! is refused because of the store. At most the shared rate passes, plus the requests that
//! processes counted alone.
//!
//! This module does not know crawlers or sites: buckets have only a key and a rate.

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
