//! Metrics for Prometheus: families, their text in both formats, and what requests are counted in.
//!
//! [`family`] is the table of names; [`Exposition`] writes samples of any of them, in any order, and gives one text.
//! The rooms that know the facts fill it from what the status reports: `sites` for sites, `admin` for the process.
//! Each worker counts its requests apart, and a scrape adds them up.
//!
//! Nothing here comes from a client: a label value is a name of the config or the registry, or a word of this program.
//!
//! An observer of crawlers' requests notes the outcome while the layer decides, on the same thread; a request without
//! a note was left untouched.

pub(crate) mod family;

mod counters;
mod exposition;
mod histogram;

pub(crate) use self::counters::{Counter, EventCounter, MethodLabel, ResponseKey};
pub(crate) use self::exposition::{Exposition, ExpositionFormat, accepts_gzip};
pub(crate) use self::histogram::{DECISION_BUCKETS, HTTP_BUCKETS, Histogram};
