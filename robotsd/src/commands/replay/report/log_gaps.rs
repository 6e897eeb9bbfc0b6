//! What the lines of a log lack, and what is not known because of it.

use super::contents::Report;
use crate::html::figures::grouped;

/// As sentences without a stop.
pub(super) fn log_gaps(report: &Report) -> impl Iterator<Item = String> {
    let nameless = lacks_names(report).then(|| {
        "no request has a User-Agent, or the log does not hold it, so crawlers cannot be told from others: the combined \
         format has it (W3C: cs(User-Agent))"
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

/// Whether the requests that are not of crawlers are worth a line: those without any name are, where something of them is disallowed.
pub(super) fn has_others(report: &Report) -> bool {
    !lacks_names(report) || report.others.iter().any(|row| row.disallowed > 0)
}

impl Report {
    /// Whether no request of the log names an agent, and nothing of them is disallowed.
    pub(crate) fn says_nothing(&self) -> bool {
        !has_others(self)
    }
}

/// Whether the log does not hold who sent its requests, or nobody said.
pub(super) const fn lacks_names(report: &Report) -> bool {
    report.requests > 0 && report.nameless == report.requests
}
