//! Metrics for Prometheus.
//!
//! [`family`] lists the metric families. For each scrape, the modules that have the data add
//! samples to an [`Exposition`], in any order: `sites` adds the samples of sites, address lists,
//! registry and rate store, and `admin` adds the samples of the process. The values are the same as
//! in `robotsd status`. Each worker counts its own requests, and a scrape adds up the counts of all
//! workers.
//!
//! No label value comes from a client. A label value is a name from the config or the registry, or
//! a fixed string.
//!
//! When the robots layer has decided about a crawler's request, an observer on the same thread
//! records the outcome. A request whose outcome was not recorded counts as `untouched`.

pub(crate) mod family;

mod counters;
mod exposition;
mod histogram;

pub(crate) use self::counters::{Counter, EventCounter, MethodLabel, ResponseKey};
pub(crate) use self::exposition::{Exposition, ExpositionFormat, accepts_gzip};
pub(crate) use self::histogram::{DECISION_BUCKETS, HTTP_BUCKETS, Histogram};
