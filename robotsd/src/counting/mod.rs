//! Counts the requests of a site on each worker, for the status, the metrics and the board.
//!
//! - [`outcome_counts`] counts decisions, responses by status, and durations. To add another count
//!   of requests or responses, start in this module, and publish the count in `metrics::family` and
//!   `sites::site_metrics`.
//! - [`crawler_counts`] counts the requests of each crawler.
//! - [`sending_services`] recognises the services that refer visitors.

mod crawler_counts;
mod outcome_counts;
mod sending_services;

pub(crate) use self::crawler_counts::{CrawlerCombinations, RequestOutcome};
pub(crate) use self::outcome_counts::{CountedRequest, OutcomeCounts, PageTotals, SiteTotals, VisitorTotals, is_page};
pub(crate) use self::sending_services::{SendingServices, service_of};
