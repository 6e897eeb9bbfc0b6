//! Why an upstream gave no usable response, and the response that the client gets instead.

use std::fmt;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};

use super::response_body::ResponseBody;

/// A request that got no answer from its upstream; left in the response's extensions for logs.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamFailure {
    /// What went wrong.
    pub(crate) kind: FailureKind,
    /// The error behind it, in its own words. Not for clients: it may name addresses.
    pub(crate) detail: String,
}

/// The kinds of [`UpstreamFailure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum FailureKind {
    /// As many connections as allowed are in use.
    Busy,
    /// No server has an address: a name cannot be resolved.
    Unresolved,
    /// No server accepted a connection.
    Connect,
    /// No server accepted a connection in time.
    ConnectTimeout,
    /// A server accepted a connection, but not as TLS wants it.
    Tls,
    /// The connection broke before an answer.
    Broken,
    /// The answer was not HTTP, too large, or switched protocols unasked.
    Invalid,
    /// No answer in time.
    ResponseTimeout,
    /// The client broke off its own request body.
    RequestBody,
    /// The client stopped sending its request body.
    RequestTimeout,
}

impl FailureKind {
    pub(super) const COUNT: usize = 10;

    /// The kind's name in kebab-case.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Unresolved => "no-address",
            Self::Connect => "connect",
            Self::ConnectTimeout => "connect-timeout",
            Self::Tls => "tls",
            Self::Broken => "broken",
            Self::Invalid => "invalid",
            Self::ResponseTimeout => "response-timeout",
            Self::RequestBody => "request-body",
            Self::RequestTimeout => "request-timeout",
        }
    }

    const fn status(self) -> StatusCode {
        match self {
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unresolved | Self::Connect | Self::Tls | Self::Broken | Self::Invalid => StatusCode::BAD_GATEWAY,
            Self::ConnectTimeout | Self::ResponseTimeout => StatusCode::GATEWAY_TIMEOUT,
            Self::RequestBody => StatusCode::BAD_REQUEST,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Busy => "503 the site is busy\n",
            Self::Unresolved | Self::Connect | Self::Tls | Self::Broken => "502 the site is not available\n",
            Self::Invalid => "502 the site gave an invalid response\n",
            Self::ConnectTimeout | Self::ResponseTimeout => "504 the site did not respond in time\n",
            Self::RequestBody => "400 the request body is broken\n",
            Self::RequestTimeout => "408 the request body did not arrive in time\n",
        }
    }
}

impl UpstreamFailure {
    pub(super) fn new(kind: FailureKind, detail: impl fmt::Display) -> Self {
        Self { kind, detail: detail.to_string() }
    }

    pub(super) fn into_response(self) -> Response<ResponseBody> {
        let mut response = Response::new(ResponseBody::own(Bytes::from_static(self.kind.text().as_bytes())));
        *response.status_mut() = self.kind.status();
        let fields = response.headers_mut();
        fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.kind == FailureKind::Busy {
            fields.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl fmt::Display for UpstreamFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The detail may quote what an upstream sent: one event stays one line.
        write!(f, "{:?}: {}", self.kind, self.detail.escape_debug())
    }
}
