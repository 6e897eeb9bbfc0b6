//! The argument of the callbacks that run once a request is decided: observers, and the application's own refusal.

use http::{Extensions, HeaderMap, Method, Response, StatusCode};

use super::grpc;
use super::original::Original;
use super::record::Record;

/// A request that robots.txt disallows, for [`RobotsLayer::observe`](super::RobotsLayer::observe) and
/// [`RobotsLayer::refuse_with`](super::RobotsLayer::refuse_with); or, with a
/// [`CrawlerRequest`](super::CrawlerRequest) as its record, any request of a crawler, for
/// [`RobotsLayer::observe_crawlers`](super::RobotsLayer::observe_crawlers).
///
/// The record is owned, because it stays in the extensions; the request is borrowed.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a, R = Record> {
    record: &'a R,
    request: Original<'a>,
    status: Option<StatusCode>,
    grpc_status: Option<u16>,
}

impl<'a, R> Event<'a, R> {
    pub(super) const fn new(record: &'a R, request: Original<'a>) -> Self {
        Self { record, request, status: None, grpc_status: None }
    }

    pub(super) fn set_response<B>(&mut self, response: &Response<B>) {
        self.status = Some(response.status());
        self.grpc_status = grpc::said_status(response.headers());
    }

    /// The agent, the rule that decided, and the action taken.
    #[must_use]
    pub const fn record(&self) -> &'a R {
        self.record
    }

    /// The request's method.
    #[must_use]
    pub const fn method(&self) -> &'a Method {
        self.request.method()
    }

    /// The path and query that were judged, as octets: a client may send any. Escape them before writing them anywhere.
    #[must_use]
    pub fn target(&self) -> &'a [u8] {
        self.request.target()
    }

    /// The host the request is for.
    #[must_use]
    pub fn host(&self) -> Option<&'a str> {
        self.request.host()
    }

    /// The request's fields.
    #[must_use]
    pub const fn headers(&self) -> &'a HeaderMap {
        self.request.headers()
    }

    /// Whether the request is a [call of gRPC](Original::is_grpc_call), which has no use for a page.
    #[must_use]
    pub fn is_grpc_call(&self) -> bool {
        self.request.is_grpc_call()
    }

    /// The request's extensions.
    #[must_use]
    pub const fn extensions(&self) -> &'a Extensions {
        self.request.extensions()
    }

    /// The status of the layer's own response: a refusal, or the robots.txt. The refusal of a call of gRPC has 200.
    #[must_use]
    pub const fn status(&self) -> Option<StatusCode> {
        self.status
    }

    /// The status of gRPC in the refusal of a call, such as 7 for `PERMISSION_DENIED`.
    #[must_use]
    pub const fn grpc_status(&self) -> Option<u16> {
        self.grpc_status
    }
}
