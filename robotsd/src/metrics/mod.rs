//! Metrics for Prometheus: families, their text in both formats, and what counts without locking.
//!
//! [`family`] is the table of names; [`Exposition`] writes samples of any of them, in any order, and gives one text. The rooms that
//! know the facts fill it: `sites` for sites, `admin` for the process. Requests are counted in [`Histogram`] and
//! [`KeyedCounters`], each written by one worker and added up for a scrape.
//!
//! Nothing here comes from a client: a label value is a name of the config or the registry, or a word of this program.

pub(crate) mod family;

mod exposition;
mod histogram;
mod keyed_counters;
mod negotiation;
mod process;
mod response_key;

pub(crate) use self::exposition::Exposition;
pub(crate) use self::histogram::{DECISION_BUCKETS, HTTP_BUCKETS, Histogram, HistogramTotals};
pub(crate) use self::keyed_counters::KeyedCounters;
pub(crate) use self::negotiation::{ContentCoding, ExpositionFormat};
pub(crate) use self::process::write_process;
pub(crate) use self::response_key::{MethodLabel, ResponseKey};
