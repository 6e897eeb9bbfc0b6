//! Decides how a site whose robots.txt is fetched handles each response. A failed fetch never
//! changes the live version, and a missing file ends the enforcement of the live version only after
//! the time [`Schedule::hold`].
//!
//! This module contains a state machine without a clock. For each response, it returns what to do
//! next, and when to fetch the file again.

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
    /// When the server began to respond that the robots.txt is missing. `None` if the file is not
    /// missing, or if the site never had a robots.txt.
    missed_since: Option<SystemTime>,
    pub(super) validators: Validators,
    /// Status of the fetches. The field `failures` counts consecutive failures, and a fetched
    /// version that the site did not publish counts as a failure.
    status: FetchStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastKnown {
    Nothing,
    /// The site has a live version.
    Good,
    /// The site has no robots.txt.
    Absent,
}

#[derive(Debug)]
pub(super) enum Step {
    /// Pass the file to the site. The caller must then call [`SiteFreshness::record_published`] or
    /// [`SiteFreshness::record_rejected`].
    Offer { bytes: Arc<[u8]>, validators: Box<Validators>, interval: Duration },
    /// The live version was confirmed.
    Confirm,
    /// End the enforcement, because the server has no robots.txt.
    EndEnforcement(StatusCode),
    /// Keep the live version until the given time, although the given status means that the server
    /// has no robots.txt.
    Hold(StatusCode, SystemTime),
    /// Keep the live version, because the fetch failed for the given reason.
    Keep(RejectionKind, String),
}

impl SiteFreshness {
    pub(super) fn new(schedule: Schedule, now: SystemTime) -> Self {
        let status =
            FetchStatus { confirmed: None, failing_since: None, failures: 0, held_until: None, next_fetch: now };
        let validators = Validators::default();
        Self { schedule, known: LastKnown::Nothing, missed_since: None, validators, status }
    }

    pub(super) fn status(&self) -> FetchStatus {
        FetchStatus { held_until: self.held_until(), ..self.status }
    }

    fn held_until(&self) -> Option<SystemTime> {
        match self.known {
            LastKnown::Good => self.missed_since.map(|since| later(since, self.schedule.hold)),
            LastKnown::Nothing | LastKnown::Absent => None,
        }
    }

    /// Records which version is live. The live version may have changed without a fetch, because
    /// the site has restored an earlier version or an operator has accepted the pending version.
    pub(super) fn observe(&mut self, live: Option<VersionHash>) {
        self.known = match (live, self.known) {
            (Some(_), _) => LastKnown::Good,
            (None, LastKnown::Good) => LastKnown::Nothing,
            (None, known) => known,
        };
    }

    /// Returns what to do after a response. `roll` is a random number for the jitter of the next
    /// retry.
    pub(super) fn take(&mut self, answer: FetchOutcome, now: SystemTime, roll: u32) -> Step {
        match answer {
            FetchOutcome::Found { status: StatusCode::PARTIAL_CONTENT, .. } => self.fail(
                &bad("the response contains only part of the file (206), but the whole file was requested"),
                now,
                roll,
            ),
            FetchOutcome::Found { bytes, freshness, validators, .. } => {
                // The fetch counts as a failure until the caller calls `record_published`.
                self.wait(None, now, roll);
                Step::Offer { bytes, validators: validators.into(), interval: self.schedule.interval(freshness) }
            }
            FetchOutcome::NotModified(freshness) if self.known == LastKnown::Good && !self.validators.is_empty() => {
                self.succeed(self.schedule.interval(freshness), now);
                Step::Confirm
            }
            FetchOutcome::NotModified(_) => {
                self.validators = Validators::default();
                self.fail(&bad("the response is 304 (Not Modified), but the request was not conditional"), now, roll)
            }
            FetchOutcome::Redirected => self.fail(&resolver::redirect_error(), now, roll),
            FetchOutcome::Status { status, freshness, .. } if is_missing(status) => {
                self.miss(status, self.schedule.interval(freshness), now, roll)
            }
            FetchOutcome::Status { status, retry_after, .. } => {
                self.wait(retry_after, now, roll);
                Step::Keep(RejectionKind::Unreachable, format!("the server answered {status}"))
            }
            FetchOutcome::Failed(error) => self.fail(&error, now, roll),
        }
    }

    pub(super) fn record_published(&mut self, validators: Validators, interval: Duration, now: SystemTime) {
        self.known = LastKnown::Good;
        self.validators = validators;
        self.succeed(interval, now);
    }

    /// Records that the fetched version is not live. Removes the validators, because a 304 response
    /// would confirm this version instead of the live version.
    pub(super) fn record_rejected(&mut self) {
        self.validators = Validators::default();
    }

    fn succeed(&mut self, interval: Duration, now: SystemTime) {
        self.missed_since = None;
        let (confirmed, next_fetch) = (Some(now), later(now, interval));
        self.status = FetchStatus { confirmed, failing_since: None, failures: 0, held_until: None, next_fetch };
    }

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
                // At `until`, the enforcement ends if the file is still missing. So the next fetch
                // must not be later than `until`.
                self.status.next_fetch = self.status.next_fetch.min(until);
                Step::Hold(status, until)
            }
            _ => {
                self.known = LastKnown::Absent;
                self.validators = Validators::default();
                self.succeed(interval, now);
                Step::EndEnforcement(status)
            }
        }
    }
}

/// Reports whether a status means that there is no robots.txt. Returns `false` for a status that
/// asks the client to retry.
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
