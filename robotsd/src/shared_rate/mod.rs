//! Rate-limit buckets that replicas share, stored in Valkey or Redis.
//!
//! For each limited request, the store is asked; it runs one script that uses its own clock
//! (`bucket`, `gcra.lua`). `denials` contains denials that this process repeats without asking, so
//! a crawler that exceeds its rate causes no calls until its next request may pass. `breaker`
//! decides whether the store is used at all. If anything fails, the answer is
//! [`SharedVerdict::Unknown`] within the deadline, and the process's own bucket decides. So no
//! request is refused because the store fails. The requests that pass are at most those that the
//! shared rate allows, and those that processes allowed while they counted alone.
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
