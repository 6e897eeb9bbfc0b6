//! What an observer is told.

use http::{Extensions, HeaderMap, Method, StatusCode};

use super::original::Original;
use super::record::Record;

/// A request that robots.txt disallows, and what was done about it.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    record: &'a Record,
    request: Original<'a>,
    status: Option<StatusCode>,
}

impl<'a> Event<'a> {
    pub(super) const fn new(record: &'a Record, request: Original<'a>, status: Option<StatusCode>) -> Self {
        Self { record, request, status }
    }

    /// Who asked, what decided and what was done.
    #[must_use]
    pub const fn record(&self) -> &'a Record {
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

    /// The request's extensions.
    #[must_use]
    pub const fn extensions(&self) -> &'a Extensions {
        self.request.extensions()
    }

    /// The status of the refusal, where the request was refused.
    #[must_use]
    pub const fn status(&self) -> Option<StatusCode> {
        self.status
    }
}
