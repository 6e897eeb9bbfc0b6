//! Builds the responses to decision requests, and reads the bodies of decision requests.

use std::convert::Infallible;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, VARY};
use http::{Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;

use super::ext_authz::CallError;
use super::preset::Preset;
use crate::http_common::{RequestBody, plain_answer};

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// Maximum number of bytes that are read from the body of a decision request. If the body is
/// longer, the connection is closed.
const BODY: usize = 16 * 1024;

/// Returns the response that allows a request. The status is 200, because Envoy treats any other
/// status as a refusal.
pub(super) fn pass() -> Response<Bytes> {
    Response::new(Bytes::new())
}

/// Changes the status of the response to a refused gRPC call from 200 to 403. The proxy would treat
/// 200 as permission. If the request came before the crawl delay had passed, the status is 403 and
/// not 429, because some gRPC clients read only the HTTP status, and repeat the call after a 429.
pub(super) fn set_refusal_status(response: &mut Response<Bytes>) {
    if !response.status().is_client_error() {
        *response.status_mut() = StatusCode::FORBIDDEN;
    }
}

/// Changes the status of a refusal to 403 if the proxy would not treat the configured status as a
/// refusal.
pub(super) fn adapt_status(preset: Preset, mut response: Response<Bytes>) -> Response<Bytes> {
    if !preset.relays_status() && !response.status().is_success() {
        *response.status_mut() = StatusCode::FORBIDDEN;
    }
    response
}

/// Returns a refusal that is not based on a rule.
pub(super) fn forbidden(why: &str) -> Response<Bytes> {
    let mut response = plain_answer(StatusCode::FORBIDDEN, format!("403 Forbidden\n\nNo rule can be quoted: {why}.\n"));
    response.headers_mut().insert(VARY, HeaderValue::from_static("User-Agent"));
    response
}

/// Returns the response to a request for the robots.txt of an unknown host. After this response,
/// the proxy serves its own robots.txt. The status is 404 instead of 421, because HAProxy can retry
/// a request with another server only after a 404.
pub(super) fn robots_txt_not_found() -> Response<Bytes> {
    plain_answer(StatusCode::NOT_FOUND, "404 Not Found: no robots.txt is served here for this host\n")
}

/// Returns the response to a decision request whose target leads out of the path of its preset. A
/// client must have written such a target, because a proxy never builds one.
pub(super) fn outside_preset() -> Response<Bytes> {
    plain_answer(
        StatusCode::BAD_REQUEST,
        "400 Bad Request: dot segments lead out of the path of the decision request\n",
    )
}

pub(super) fn not_found() -> Response<Bytes> {
    plain_answer(StatusCode::NOT_FOUND, "404 Not Found: send decision requests to /-/auth/ followed by a preset\n")
}

pub(super) fn no_call() -> Response<Bytes> {
    let text = "415 Unsupported Media Type: decision requests must be gRPC calls over HTTP/2\n";
    plain_answer(StatusCode::UNSUPPORTED_MEDIA_TYPE, text)
}

pub(super) async fn read_to_end(mut body: RequestBody) {
    let mut budget = BODY;
    while !body.is_end_stream() {
        let Some(Ok(frame)) = body.frame().await else { return };
        let Some(left) = budget.checked_sub(frame.data_ref().map_or(0, Buf::remaining)) else { return };
        budget = left;
    }
}

pub(super) fn called(content: Bytes) -> Response<DecisionBody> {
    let trailers = HeaderMap::from_iter([(GRPC_STATUS, HeaderValue::from_static("0"))]);
    let mut response = Response::new(DecisionBody { content, trailers: Some(trailers) });
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

pub(super) fn status(error: CallError) -> Response<DecisionBody> {
    let mut response = Response::new(DecisionBody::content(Bytes::new()));
    *response.headers_mut() = error.fields();
    response
}

/// The body of a response, followed by the gRPC status of the call, if any.
#[derive(Debug)]
pub(crate) struct DecisionBody {
    content: Bytes,
    trailers: Option<HeaderMap>,
}

impl DecisionBody {
    pub(super) const fn content(content: Bytes) -> Self {
        Self { content, trailers: None }
    }
}

impl Body for DecisionBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        if !this.content.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(mem::take(&mut this.content)))));
        }
        Poll::Ready(this.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_empty() && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.content.len() as u64)
    }
}
