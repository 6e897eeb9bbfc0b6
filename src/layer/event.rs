//! What an observer is told.

use http::{Extensions, HeaderMap, Method, StatusCode, Uri};

use super::enforce::Asked;
use super::record::Record;

/// A request that robots.txt disallows, and what was done about it.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    record: &'a Record,
    method: &'a Method,
    target: &'a Uri,
    host: Option<&'a str>,
    headers: &'a HeaderMap,
    extensions: &'a Extensions,
    status: Option<StatusCode>,
}

impl<'a> Event<'a> {
    pub(super) fn new(record: &'a Record, asked: &Asked<'a>, status: Option<StatusCode>) -> Self {
        let Asked { method, target, headers, extensions, .. } = *asked;
        Self { record, method, target, host: asked.host(), headers, extensions, status }
    }

    /// Who asked, what decided and what was done.
    #[must_use]
    pub const fn record(&self) -> &'a Record {
        self.record
    }

    /// The request's method.
    #[must_use]
    pub const fn method(&self) -> &'a Method {
        self.method
    }

    /// The request's target, as it was judged. From the client: escape it before writing it anywhere.
    #[must_use]
    pub const fn target(&self) -> &'a Uri {
        self.target
    }

    /// The host the request is for.
    #[must_use]
    pub const fn host(&self) -> Option<&'a str> {
        self.host
    }

    /// The request's fields.
    #[must_use]
    pub const fn headers(&self) -> &'a HeaderMap {
        self.headers
    }

    /// The request's extensions.
    #[must_use]
    pub const fn extensions(&self) -> &'a Extensions {
        self.extensions
    }

    /// The status of the refusal, where the request was refused.
    #[must_use]
    pub const fn status(&self) -> Option<StatusCode> {
        self.status
    }
}
