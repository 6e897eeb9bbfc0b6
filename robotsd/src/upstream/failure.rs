//! Why an upstream gave no usable response, the response that the client gets instead, and the events that report it
//! without flooding the listener.
//!
//! A change of a server's state, or of the addresses of a name, is reported each time: there are few. Requests that got
//! no response can be many, so each kind is reported at most once a second, with the count of those left out; so are transfers
//! that were given up.

use std::fmt;
use std::time::{Duration, Instant};

use http::header::RETRY_AFTER;
use http::{HeaderValue, Response};

use super::failure_kind::FailureKind;
use super::response_body::ResponseBody;
use crate::exchange::plain_answer;
use crate::metrics::EventCounter;

/// A request that got no answer from its upstream; left in the response's extensions for logs.
// The detail may quote what an upstream sent: one event stays one line.
#[derive(Clone, Debug, derive_more::Display)]
#[display("{kind:?}: {}", self.detail.escape_debug())]
pub(crate) struct UpstreamFailure {
    /// The kind of failure.
    pub(crate) kind: FailureKind,
    /// The error behind it, in its own words. Not for clients: it may name addresses.
    pub(crate) detail: String,
}

impl UpstreamFailure {
    pub(super) fn new(kind: FailureKind, detail: impl fmt::Display) -> Self {
        Self { kind, detail: detail.to_string() }
    }

    /// The response to a call of gRPC.
    pub(super) fn into_grpc_response(self) -> Response<ResponseBody> {
        let mut response = Response::new(ResponseBody::empty());
        *response.headers_mut() = self.kind.grpc_code().fields(self.kind.answer().1.trim_end());
        response.extensions_mut().insert(self);
        response
    }

    /// The response to any other request.
    pub(super) fn into_response(self) -> Response<ResponseBody> {
        let (status, text) = self.kind.answer();
        let mut response = plain_answer(status, text).map(ResponseBody::own);
        if self.kind == FailureKind::Busy {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// An event of a site's upstreams.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamEvent {
    /// The kind of event.
    pub(crate) kind: UpstreamEventKind,
    /// Which upstream, and the error behind it. May quote what an upstream sent.
    pub(crate) detail: String,
    /// How often this happened since this kind was last reported, this time included.
    pub(crate) count: u64,
}

/// The kinds of [`UpstreamEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpstreamEventKind {
    /// A server failed too often in a row: requests go elsewhere.
    Ejected,
    /// A server that was out has answered.
    Returned,
    /// A name could not be resolved.
    Unresolved,
    /// A name that could not be resolved can be.
    Resolved,
    /// A transfer whose client had stalled was given up for another request.
    GaveUp,
    /// A request got no answer.
    Failed(FailureKind),
}

impl UpstreamEventKind {
    /// The kind's name in kebab-case.
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
    given_up: EventCounter,
}

impl UpstreamReporter {
    pub(super) fn new(tell: impl Fn(&UpstreamEvent) + Send + Sync + 'static) -> Self {
        let (failures, given_up) = Default::default();
        Self { tell: Box::new(tell), start: Instant::now(), failures, given_up }
    }

    pub(super) fn tell(&self, kind: UpstreamEventKind, detail: String) {
        (self.tell)(&UpstreamEvent { kind, detail, count: 1 });
    }

    /// A server is out for a while.
    pub(super) fn ejected(&self, server: &dyn fmt::Display, span: Duration, why: &dyn fmt::Display, are_all_out: bool) {
        let rest = if are_all_out { "; no other server is left, so it still gets requests" } else { "" };
        let detail = format!("{server}: out for about {} after {why}{rest}", humantime::format_duration(span));
        self.tell(UpstreamEventKind::Ejected, detail);
    }

    /// A transfer on a server was given up.
    pub(super) fn gave_up(&self, server: &dyn fmt::Display, stalled: Duration) {
        if let Some(count) = self.given_up.count(self.start) {
            let stalled = humantime::format_duration(Duration::from_secs(stalled.as_secs()));
            let detail = format!(
                "{server}: every connection that may be open is in use, so one was taken from a client that had stalled for {stalled}"
            );
            (self.tell)(&UpstreamEvent { kind: UpstreamEventKind::GaveUp, detail, count });
        }
    }

    /// The requests that got no answer, by kind.
    pub(super) fn failures(&self) -> Vec<(FailureKind, u64)> {
        let total = |kind: FailureKind| (kind, self.failures[kind as usize].total());
        FailureKind::ALL.map(total).into_iter().filter(|(_, total)| *total > 0).collect()
    }

    /// A request got no answer.
    pub(super) fn failed(&self, failure: &UpstreamFailure) {
        let due = self.failures[failure.kind as usize].count(self.start);
        // A failure that a client causes to its own request says nothing about an upstream.
        if matches!(failure.kind, FailureKind::RequestBody | FailureKind::RequestTimeout) {
            return;
        }
        if let Some(count) = due {
            let kind = UpstreamEventKind::Failed(failure.kind);
            (self.tell)(&UpstreamEvent { kind, detail: failure.detail.clone(), count });
        }
    }
}

tower_robots::internals::debug_as!(|_it| UpstreamReporter {});
