//! The responses, and the reading of a question's body to its end.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, VARY};
use http::{Response, StatusCode};
use http_body::Body;
use http_body_util::Full;
use tower_robots::layer::Record;
use tower_robots::policy::Reason;

use super::preset::Preset;
use crate::edge::RequestBody;

/// What is read of a question's body to keep the connection; after more than this it is closed.
const BODY: usize = 16 * 1024;

/// The request goes on. Exactly 200, and nothing in it: Envoy takes any other status for a refusal.
pub(super) fn pass() -> Response<Bytes> {
    Response::new(Bytes::new())
}

/// A refusal as the answer to a question. That of a call of gRPC has status 200, which would let the call go on; clients of gRPC take
/// the status of gRPC in its fields, whatever that of HTTP is.
pub(super) fn refusal(mut response: Response<Bytes>) -> Response<Bytes> {
    if !response.status().is_client_error() {
        let is_limited = response.extensions().get::<Record>().is_some_and(|record| record.reason() == Reason::Limited);
        *response.status_mut() = if is_limited { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::FORBIDDEN };
    }
    response
}

/// The answer with a status that the proxy takes for what it is: a site may refuse with another status than 403.
pub(super) fn understood_by(preset: Preset, mut response: Response<Bytes>) -> Response<Bytes> {
    if !preset.relays_status() && !response.status().is_success() {
        *response.status_mut() = StatusCode::FORBIDDEN;
    }
    response
}

/// A refusal without a rule to quote.
pub(super) fn forbidden(why: &str) -> Response<Bytes> {
    let mut response = text(StatusCode::FORBIDDEN, format!("403 Forbidden\n\nNothing can be quoted: {why}.\n"));
    response.headers_mut().insert(VARY, HeaderValue::from_static("User-Agent"));
    response
}

/// There is no robots.txt here for this host (RFC 9110, section 15.5.20: the request was meant for another server).
pub(super) fn elsewhere() -> Response<Bytes> {
    text(
        StatusCode::MISDIRECTED_REQUEST,
        "421 Misdirected Request: no robots.txt is served here for this host\n".into(),
    )
}

pub(super) fn not_found() -> Response<Bytes> {
    text(StatusCode::NOT_FOUND, "404 Not Found: questions go to /-/auth/ and a preset\n".into())
}

fn text(status: StatusCode, body: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The answer to a question. It waits for what is left of the question's body, within bounds; most have none.
#[derive(Debug)]
pub(crate) struct DecisionFuture {
    response: Option<Response<Full<Bytes>>>,
    body: RequestBody,
    budget: usize,
}

impl DecisionFuture {
    pub(super) fn new(response: Response<Bytes>, body: RequestBody) -> Self {
        Self { response: Some(response.map(Full::new)), body, budget: BODY }
    }
}

impl Future for DecisionFuture {
    type Output = Result<Response<Full<Bytes>>, Infallible>;

    /// # Panics
    ///
    /// If it is polled again after it was done.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        while !this.body.is_end_stream() {
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    let length = frame.data_ref().map_or(0, Buf::remaining);
                    let Some(left) = this.budget.checked_sub(length) else { break };
                    this.budget = left;
                }
                Some(Err(_)) | None => break,
            }
        }
        match this.response.take() {
            Some(response) => Poll::Ready(Ok(response)),
            None => panic!("the future was polled after it was done"),
        }
    }
}
