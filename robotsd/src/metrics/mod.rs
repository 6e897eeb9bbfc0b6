//! Metrics for Prometheus.
//!
//! [`family`] lists the metric families. Other modules count the values; `counting` counts
//! requests. For each scrape, two modules add samples to an [`Exposition`], in any order: `sites`
//! for sites, address lists, registry and rate store, and `admin` for the process. The values are
//! the same as in `robotsd status`. Each worker counts its own requests, and a scrape adds up the
//! counts of all workers.
//!
//! No label value comes from a client. A label value is a name from the config or the registry, or
//! a fixed string.
//!
//! The outcome of a request comes from the record of the robots layer. A request without a record
//! counts as `untouched`.

pub(crate) mod family;

mod counters;
mod exposition;
mod histogram;

pub(crate) use self::counters::{Counter, EventCounter, MethodLabel, ResponseKey};
pub(crate) use self::exposition::{Exposition, ExpositionFormat, accepts_gzip};
pub(crate) use self::histogram::{DECISION_BUCKETS, HTTP_BUCKETS, Histogram};
