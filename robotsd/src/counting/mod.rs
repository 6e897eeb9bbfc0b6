//! The decisions about the requests of a site, counted on each worker: for the status, the metrics and the board.

mod crawler_counts;
mod outcome_counts;

pub(crate) use self::crawler_counts::{CrawlerCombinations, RequestOutcome};
pub(crate) use self::outcome_counts::{CountedRequest, OutcomeCounts, OutcomeTotals, SiteTotals, VisitorTotals};
