//! Requests that came sooner than the delay of their crawler lets them, in words.

use serde::Serialize;

use crate::commands::replay::paces::{PaceCount, PacedSenders};
use crate::html::figures::{counted, grouped};

/// What to know about requests whose client's address the log lacks.
pub(super) const COUNTED_TOGETHER: &str =
    "requests without the address of a client in the log count together; a server counts each address by itself";

/// Requests of a crawler, or of its impostors, that came sooner than its delay lets them.
#[derive(Debug, Serialize)]
pub(super) struct PaceRow {
    pub(super) name: String,
    senders: PacedSenders,
    /// Those that the delay is about: allowed ones, but for parts of pages and robots.txt.
    requests: u64,
    too_soon: u64,
    /// Of those that came too soon, how many a server with the settings of the site answers with 429.
    refused: u64,
    /// Those whose address the log lacks: they count together.
    pub(super) without_address: u64,
    /// The delay as written and as it is enforced, and its line in the last of the files.
    seconds: f64,
    enforced_seconds: f64,
    pub(super) line: usize,
}

impl PaceRow {
    pub(super) fn new(count: &PaceCount) -> Self {
        let paced = count.paced;
        Self {
            name: count.crawler.clone(),
            senders: count.senders,
            requests: paced.requests,
            too_soon: paced.too_soon,
            refused: paced.refused,
            without_address: paced.without_address,
            seconds: count.asked.as_secs_f64(),
            enforced_seconds: count.interval.as_secs_f64(),
            line: count.line,
        }
    }

    /// As in `1,204 of 3,000 requests came faster than its Crawl-delay of 10 s allows`.
    pub(super) fn sentence(&self) -> String {
        let of_whom = if self.senders == PacedSenders::Own { "" } else { " of impostors" };
        let (too_soon, requests) = (grouped(self.too_soon), counted(self.requests, "request"));
        let mut sentence =
            format!("{too_soon} of {requests}{of_whom} came faster than its Crawl-delay of {} s allows", self.seconds);
        if self.enforced_seconds < self.seconds {
            sentence += &format!(", of which {} s are enforced", self.enforced_seconds);
        }
        match self.refused {
            0 => {}
            refused if refused == self.too_soon => sentence += ": answered with 429",
            refused => sentence += &format!(": {} answered with 429", grouped(refused)),
        }
        sentence
    }
}
