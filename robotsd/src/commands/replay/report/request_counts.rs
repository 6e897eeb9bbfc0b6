//! What became of the requests under one name, or under all, as the rows of a report have it.

use serde::Serialize;

use crate::commands::replay::tally::RequestTally;

/// Requests under one name: of a crawler, or of its impostors.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct RequestCounts {
    pub(super) requests: u64,
    #[serde(flatten)]
    pub(super) outcomes: RequestOutcomes,
    pub(super) robots_txt: u64,
}

/// Sums over all crawlers, without impostors.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct TotalCounts {
    pub(super) crawler_requests: u64,
    #[serde(flatten)]
    pub(super) outcomes: RequestOutcomes,
}

/// How many requests met which end.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct RequestOutcomes {
    pub(super) allowed: u64,
    pub(super) disallowed: u64,
    /// Under the file that is compared with.
    pub(super) disallowed_before: Option<u64>,
    pub(super) shut: u64,
    pub(super) opened: u64,
    pub(super) not_blamed: u64,
}

impl RequestCounts {
    pub(super) fn of(tally: &RequestTally, compared: bool) -> Self {
        let (requests, robots_txt) = (tally.requests, tally.robots_txt);
        Self { requests, outcomes: RequestOutcomes::of(tally, compared), robots_txt }
    }
}

impl TotalCounts {
    pub(super) fn of(tally: &RequestTally, compared: bool) -> Self {
        Self { crawler_requests: tally.requests, outcomes: RequestOutcomes::of(tally, compared) }
    }
}

impl RequestOutcomes {
    fn of(tally: &RequestTally, compared: bool) -> Self {
        let disallowed = tally.disallowed[usize::from(compared)];
        Self {
            allowed: tally.requests - disallowed - tally.early,
            disallowed,
            disallowed_before: compared.then_some(tally.disallowed[0]),
            shut: tally.shut,
            opened: tally.opened,
            not_blamed: tally.early,
        }
    }
}
