//! What the lines of a log lack, and what is not known because of it.

use super::contents::Report;
use crate::html::figures::grouped;

/// As sentences without a stop.
pub(super) fn log_gaps(report: &Report) -> impl Iterator<Item = String> {
    let nameless = lacks_names(report).then(|| {
        "no line has a User-Agent, so crawlers cannot be told from others: log it, as the combined format does (W3C: \
         cs(User-Agent))"
            .to_owned()
    });
    let untimed = match report.timeless {
        0 => None,
        all if all == report.requests => Some("all requests have".to_owned()),
        1 => Some("1 request has".to_owned()),
        some => Some(format!("{} requests have", grouped(some))),
    };
    let timeless = untimed.map(|lines| {
        format!("{lines} no time that can be read: what came faster than a Crawl-delay or before --effective-from is not known")
    });
    let unordered = report.out_of_order.then(|| {
        "the lines of a log are not in the order of their times: what came faster than a Crawl-delay is not known; sort them, the \
         earliest first"
            .to_owned()
    });
    nameless.into_iter().chain(timeless).chain(unordered)
}

/// Whether the log does not hold who sent its requests.
pub(super) const fn lacks_names(report: &Report) -> bool {
    report.requests > 0 && report.nameless == report.requests
}
