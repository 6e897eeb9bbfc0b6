//! Metrics for Prometheus: the families, their text in both formats, and the counters.
//!
//! [`family`] lists the families. [`Exposition`] collects samples of all families in any order, and
//! returns the whole text. The modules that have the data add the samples, from the same values as
//! the status: `sites` for sites, `admin` for the process. Each worker counts its own requests, and
//! a scrape adds up the counts of all workers.
//!
//! No label value comes from a client. A label value is a name from the config or the registry, or
//! a fixed string.
//!
//! While the layer decides about a crawler's request, an observer on the same thread records the
//! outcome. A request without such a record counts as `untouched`.

pub(crate) mod family;

mod counters;
mod exposition;
mod histogram;

pub(crate) use self::counters::{Counter, EventCounter, MethodLabel, ResponseKey};
pub(crate) use self::exposition::{Exposition, ExpositionFormat, accepts_gzip};
pub(crate) use self::histogram::{DECISION_BUCKETS, HTTP_BUCKETS, Histogram};
