//! A site's reading of every response: careful, because it speaks for the site.
//!
//! A state machine without a clock of its own: it says what to do about a response, and when to fetch next.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::StatusCode;

use super::resolver;
use super::{FetchError, FetchErrorKind, FetchOutcome, Schedule, Validators, later};
use crate::live::{FetchStatus, RejectionKind, VersionHash};

#[derive(Debug)]
pub(super) struct SiteFreshness {
    pub(super) schedule: Schedule,
    known: LastKnown,
    /// When a robots.txt that was there was first missed.
    missed_since: Option<SystemTime>,
    pub(super) validators: Validators,
    /// Failures are in a row, of any kind: versions that were offered and not taken as well.
    status: FetchStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastKnown {
    Nothing,
    /// A good version is live.
    Good,
    /// There is no robots.txt.
    Absent,
}

/// The step after an answer.
#[derive(Debug)]
pub(super) enum Step {
    /// Offer it to the site; [`SiteFreshness::taken`] or [`SiteFreshness::refused`] has to follow.
    Offer { bytes: Arc<[u8]>, validators: Box<Validators>, interval: Duration },
    /// The live version was confirmed.
    Confirm,
    /// There is no robots.txt, and nothing is enforced.
    Open(StatusCode),
    /// Nothing changes: there is a 4xx in its place, which is not believed before then.
    Hold(StatusCode, SystemTime),
    /// Nothing changes: the server is in trouble, and this is why.
    Keep(RejectionKind, String),
}

impl SiteFreshness {
    pub(super) fn new(schedule: Schedule, now: SystemTime) -> Self {
        let status =
            FetchStatus { confirmed: None, failing_since: None, failures: 0, held_until: None, next_fetch: now };
        let validators = Validators::default();
        Self { schedule, known: LastKnown::Nothing, missed_since: None, validators, status }
    }

    /// How fetching fares.
    pub(super) fn status(&self) -> FetchStatus {
        FetchStatus { held_until: self.held_until(), ..self.status }
    }

    /// Until when a version that is missing at its source stays in force.
    fn held_until(&self) -> Option<SystemTime> {
        match self.known {
            LastKnown::Good => self.missed_since.map(|since| later(since, self.schedule.hold)),
            LastKnown::Nothing | LastKnown::Absent => None,
        }
    }

    /// Takes in which version is live, which others may have brought about: one kept from before, one that waited to
    /// be accepted.
    pub(super) fn observe(&mut self, live: Option<VersionHash>) {
        self.known = match (live, self.known) {
            (Some(_), _) => LastKnown::Good,
            (None, LastKnown::Good) => LastKnown::Nothing,
            (None, known) => known,
        };
    }

    /// The step after an answer. `roll` is any number: it spreads out the retries.
    pub(super) fn take(&mut self, answer: FetchOutcome, now: SystemTime, roll: u32) -> Step {
        match answer {
            FetchOutcome::Found { status: StatusCode::PARTIAL_CONTENT, .. } => {
                self.fail(&bad("the response is a part, and the request was for the whole"), now, roll)
            }
            FetchOutcome::Found { bytes, freshness, validators, .. } => {
                // As if it were not taken, until `taken` says that it was.
                self.wait(None, now, roll);
                Step::Offer { bytes, validators: validators.into(), interval: self.schedule.interval(freshness) }
            }
            FetchOutcome::NotModified(freshness) if self.known == LastKnown::Good && !self.validators.is_empty() => {
                self.succeed(self.schedule.interval(freshness), now);
                Step::Confirm
            }
            FetchOutcome::NotModified(_) => {
                self.validators = Validators::default();
                self.fail(&bad("the response is 304, and the request had no condition"), now, roll)
            }
            FetchOutcome::Redirected => self.fail(&resolver::leads_nowhere(), now, roll),
            FetchOutcome::Status { status, freshness, .. } if is_missing(status) => {
                self.miss(status, self.schedule.interval(freshness), now, roll)
            }
            FetchOutcome::Status { status, retry_after, .. } => {
                self.wait(retry_after, now, roll);
                Step::Keep(RejectionKind::Unreachable, format!("the answer is {status}"))
            }
            FetchOutcome::Failed(error) => self.fail(&error, now, roll),
        }
    }

    /// The offered version is live: `found` but for its bytes.
    pub(super) fn taken(&mut self, validators: Validators, interval: Duration, now: SystemTime) {
        self.known = LastKnown::Good;
        self.validators = validators;
        self.succeed(interval, now);
    }

    /// It is not. The next response has to be whole: a 304 would confirm a version that is not live.
    pub(super) fn refused(&mut self) {
        self.validators = Validators::default();
    }

    fn succeed(&mut self, interval: Duration, now: SystemTime) {
        self.missed_since = None;
        let (confirmed, next_fetch) = (Some(now), later(now, interval));
        self.status = FetchStatus { confirmed, failing_since: None, failures: 0, held_until: None, next_fetch };
    }

    /// Counts a failure, after which it is fetched later.
    fn wait(&mut self, retry_after: Option<Duration>, now: SystemTime, roll: u32) {
        self.status.failures = self.status.failures.saturating_add(1);
        self.status.failing_since.get_or_insert(now);
        self.status.next_fetch = later(now, self.schedule.pause(self.status.failures, retry_after, roll));
    }

    fn fail(&mut self, error: &FetchError, now: SystemTime, roll: u32) -> Step {
        self.wait(None, now, roll);
        let is_too_large = error.kind == FetchErrorKind::TooLarge;
        let kind = if is_too_large { RejectionKind::TooLarge } else { RejectionKind::Unreachable };
        Step::Keep(kind, error.to_string())
    }

    fn miss(&mut self, status: StatusCode, interval: Duration, now: SystemTime, roll: u32) -> Step {
        self.missed_since.get_or_insert(now);
        match self.held_until() {
            Some(until) if now < until => {
                self.wait(None, now, roll);
                // Not a moment later than it is due, if it is still gone then.
                self.status.next_fetch = self.status.next_fetch.min(until);
                Step::Hold(status, until)
            }
            _ => {
                self.known = LastKnown::Absent;
                self.validators = Validators::default();
                self.succeed(interval, now);
                Step::Open(status)
            }
        }
    }
}

/// A status that means that there is no robots.txt. Those that demand a retry say nothing about it.
fn is_missing(status: StatusCode) -> bool {
    let demands_retry = [
        StatusCode::REQUEST_TIMEOUT,
        StatusCode::TOO_EARLY,
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::MISDIRECTED_REQUEST,
    ];
    status.is_client_error() && !demands_retry.contains(&status)
}

fn bad(cause: &'static str) -> FetchError {
    FetchError::with_cause(FetchErrorKind::BadResponse, cause)
}

#[cfg(test)]
mod tests;
