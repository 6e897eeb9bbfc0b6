//! Failures of upstreams: what clients receive, and which events are logged.
//!
//! Changes of state are rare, so every change is reported: a server goes out of service or returns,
//! or a host name can no longer be resolved. Failed requests and aborted transfers can be frequent,
//! so each kind is reported at most once a second, with the number of occurrences since the last
//! report of this kind.

use std::fmt;
use std::time::{Duration, Instant};

use http::header::RETRY_AFTER;
use http::{HeaderValue, Response};
use parking_lot::Mutex;

use super::failure_kind::FailureKind;
use super::response_body::ResponseBody;
use crate::http_common::plain_answer;
use crate::metrics::EventCounter;

/// The reason why a request got no response from its upstream, for the log. This value is stored in
/// the extensions of the error response that the client gets.
// The detail may quote bytes from an upstream, so it is escaped and stays on one line.
#[derive(Clone, Debug, derive_more::Display)]
#[display("{kind:?}: {}", self.detail.escape_debug())]
pub(crate) struct UpstreamFailure {
    pub(crate) kind: FailureKind,
    /// The underlying error message. Clients never get this message, as it may contain addresses.
    pub(crate) detail: String,
}

impl UpstreamFailure {
    pub(super) fn new(kind: FailureKind, detail: impl fmt::Display) -> Self {
        Self { kind, detail: detail.to_string() }
    }

    pub(super) fn into_grpc_response(self) -> Response<ResponseBody> {
        let mut response = Response::new(ResponseBody::empty());
        *response.headers_mut() = self.kind.grpc_code().fields(self.kind.answer().1.trim_end());
        response.extensions_mut().insert(self);
        response
    }

    pub(super) fn into_response(self) -> Response<ResponseBody> {
        let (status, text) = self.kind.answer();
        let mut response = plain_answer(status, text).map(ResponseBody::generated);
        if self.kind == FailureKind::Busy {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response.extensions_mut().insert(self);
        response
    }
}

#[derive(Clone, Debug)]
pub(crate) struct UpstreamEvent {
    pub(crate) kind: UpstreamEventKind,
    /// The upstream and the underlying error. May quote bytes from an upstream.
    pub(crate) detail: String,
    /// Number of occurrences since the last report of this kind, including this occurrence.
    pub(crate) count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpstreamEventKind {
    /// A server failed too often in a row, so other servers get its requests for a while.
    Ejected,
    /// A server that was out of service has answered.
    Returned,
    Unresolved,
    Resolved,
    /// A transfer whose client had stalled was aborted, so that another request could use the
    /// connection.
    GaveUp,
    Failed(FailureKind),
}

impl UpstreamEventKind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Ejected => "ejected",
            Self::Returned => "returned",
            Self::Unresolved => "unresolved",
            Self::Resolved => "resolved",
            Self::GaveUp => "gave-up",
            Self::Failed(kind) => kind.as_str(),
        }
    }
}

pub(super) struct UpstreamReporter {
    tell: Box<dyn Fn(&UpstreamEvent) + Send + Sync>,
    start: Instant,
    failures: [EventCounter; FailureKind::ALL.len()],
    /// Three values: the number of answered requests at the last failure, the number of failures in
    /// a row, and the last failure.
    unanswered: Mutex<(u64, u64, Option<UpstreamFailure>)>,
    given_up: EventCounter,
}

impl UpstreamReporter {
    pub(super) fn new(tell: impl Fn(&UpstreamEvent) + Send + Sync + 'static) -> Self {
        Self {
            tell: Box::new(tell),
            start: Instant::now(),
            failures: Default::default(),
            unanswered: Mutex::default(),
            given_up: EventCounter::default(),
        }
    }

    pub(super) fn tell(&self, kind: UpstreamEventKind, detail: String) {
        (self.tell)(&UpstreamEvent { kind, detail, count: 1 });
    }

    pub(super) fn ejected(&self, server: &dyn fmt::Display, span: Duration, why: &dyn fmt::Display, are_all_out: bool) {
        let rest = if are_all_out { "; because no other server is left, this one still gets requests" } else { "" };
        let detail = format!(
            "{server} will get no requests for about {time}: {why}{rest}",
            time = humantime::format_duration(span)
        );
        self.tell(UpstreamEventKind::Ejected, detail);
    }

    pub(super) fn transfer_aborted(&self, server: &dyn fmt::Display, stalled: Duration) {
        if let Some(count) = self.given_up.count(self.start) {
            let stalled = humantime::format_duration(Duration::from_secs(stalled.as_secs()));
            let detail = format!(
                "{server}: all connections that robotsd may open are in use; to free one, robotsd aborted a transfer \
                 whose client had stalled for {stalled}"
            );
            (self.tell)(&UpstreamEvent { kind: UpstreamEventKind::GaveUp, detail, count });
        }
    }

    pub(super) fn failures(&self) -> Vec<(FailureKind, u64)> {
        let total = |kind: FailureKind| (kind, self.failures[kind as usize].total());
        FailureKind::ALL.map(total).into_iter().filter(|(_, total)| *total > 0).collect()
    }

    /// Returns the number of requests that have failed in a row, and the last failure; `None` if a
    /// request has been answered since. `answered` is the current number of answered requests.
    pub(super) fn unanswered(&self, answered: u64) -> Option<(u64, UpstreamFailure)> {
        let (before, count, last) = self.unanswered.lock().clone();
        last.filter(|_| before == answered).map(|last| (count, last))
    }

    pub(super) fn failed(&self, failure: &UpstreamFailure, answered: u64) {
        let due = self.failures[failure.kind as usize].count(self.start);
        // A failure that the client caused is not counted as an unanswered request.
        if matches!(failure.kind, FailureKind::RequestBody | FailureKind::RequestTimeout) {
            return;
        }
        // If no connection was free, the request was never sent. The failure shows that the servers
        // are busy, not that the servers fail to answer.
        if failure.kind != FailureKind::Busy {
            let mut unanswered = self.unanswered.lock();
            let before = if unanswered.0 == answered { unanswered.1 } else { 0 };
            *unanswered = (answered, before + 1, Some(failure.clone()));
        }
        if let Some(count) = due {
            let kind = UpstreamEventKind::Failed(failure.kind);
            (self.tell)(&UpstreamEvent { kind, detail: failure.detail.clone(), count });
        }
    }
}

tower_robots::internals::debug_as!(|_it| UpstreamReporter {});
