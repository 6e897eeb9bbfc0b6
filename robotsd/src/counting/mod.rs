//! Counts the decisions about a site's requests on each worker, for the status, the metrics and the
//! board.

mod crawler_counts;
mod outcome_counts;
mod sending_services;

pub(crate) use self::crawler_counts::{CrawlerCombinations, RequestOutcome};
pub(crate) use self::outcome_counts::{CountedRequest, OutcomeCounts, PageTotals, SiteTotals, VisitorTotals, is_page};
pub(crate) use self::sending_services::{SendingServices, service_of};
