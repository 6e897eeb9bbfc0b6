//! Why an upstream gave no usable response, and the response that the client gets instead.

use std::fmt;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Request, Response};
use tower_robots::layer::{Original, grpc_status};

use super::failure_kind::FailureKind;
use super::response_body::ResponseBody;

/// A request that got no answer from its upstream; left in the response's extensions for logs.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamFailure {
    /// What went wrong.
    pub(crate) kind: FailureKind,
    /// The error behind it, in its own words. Not for clients: it may name addresses.
    pub(crate) detail: String,
}

/// What a request is answered in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestProtocol {
    Http,
    Grpc,
}

impl RequestProtocol {
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        if Original::of(request).is_grpc_call() { Self::Grpc } else { Self::Http }
    }
}

impl UpstreamFailure {
    pub(super) fn new(kind: FailureKind, detail: impl fmt::Display) -> Self {
        Self { kind, detail: detail.to_string() }
    }

    /// The response to a request, as its protocol has it.
    pub(super) fn into_response(self, protocol: RequestProtocol) -> Response<ResponseBody> {
        if protocol == RequestProtocol::Grpc {
            let message = self.kind.text().trim_end();
            let mut response = Response::new(ResponseBody::empty());
            *response.headers_mut() = grpc_status(self.kind.grpc_code(), message);
            response.extensions_mut().insert(self);
            return response;
        }
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
