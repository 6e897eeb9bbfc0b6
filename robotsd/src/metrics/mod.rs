//! Metrics for Prometheus: the families, their text in both formats, and the counters of requests.
//!
//! [`family`] is the table of names; [`Exposition`] takes samples of all families, in any order,
//! and returns the whole output. The modules with the data add the samples, from the same values as
//! the status: `sites` for sites, `admin` for the process. Each worker counts its own requests, and
//! a scrape adds them up.
//!
//! No label value comes from a client: it is a name from the config or the registry, or a fixed
//! string.
//!
//! An observer of crawlers' requests records the outcome while the layer decides, on the same
//! thread; a request without a record was left untouched.

pub(crate) mod family;

mod counters;
mod exposition;
mod histogram;

pub(crate) use self::counters::{Counter, EventCounter, MethodLabel, ResponseKey};
pub(crate) use self::exposition::{Exposition, ExpositionFormat, accepts_gzip};
pub(crate) use self::histogram::{DECISION_BUCKETS, HTTP_BUCKETS, Histogram};
