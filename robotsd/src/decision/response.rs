//! The responses, and the reading of a question's body to its end.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::{fmt, mem};

use bytes::{Buf, Bytes};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, VARY};
use http::{Response, StatusCode};
use http_body::{Body, Frame, SizeHint};

use super::ext_authz::{CallError, IncomingMessage};
use super::preset::Preset;
use crate::edge::RequestBody;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// What is read of a question's body to keep the connection; after more than this it is closed.
const BODY: usize = 16 * 1024;

/// The request goes on. Exactly 200, and nothing in it: Envoy takes any other status for a refusal.
pub(super) fn pass() -> Response<Bytes> {
    Response::new(Bytes::new())
}

/// Makes a refusal the answer to a question. That of a call of gRPC has status 200, which would let the call go on. It becomes 403, also
/// where the call came too soon: some clients of gRPC go by the status of HTTP where it is not 200 and not by `grpc-status`, and to them
/// 403 is PERMISSION_DENIED, but 429 UNAVAILABLE, which they try again.
pub(super) fn as_refusal(response: &mut Response<Bytes>) {
    if !response.status().is_client_error() {
        *response.status_mut() = StatusCode::FORBIDDEN;
    }
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

/// It is for the service of gRPC, and not in gRPC.
pub(super) fn no_call() -> Response<Bytes> {
    text(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "415 Unsupported Media Type: questions here are calls of gRPC, over HTTP/2\n".into(),
    )
}

fn text(status: StatusCode, body: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The answer to a question. It waits for what is left of the question's body, within bounds, and most have none; or for the
/// message that is the question.
#[must_use]
pub(crate) struct DecisionFuture(State);

enum State {
    Answered { response: Option<Response<DecisionBody>>, body: RequestBody, budget: usize },
    Asked { message: IncomingMessage, answer: Option<CallAnswer> },
}

/// Answers a call, with the content of the response or with what is wrong.
type CallAnswer = Box<dyn FnOnce(Result<Bytes, CallError>) -> Result<Bytes, CallError> + Send>;

impl DecisionFuture {
    pub(super) fn new(response: Response<Bytes>, body: RequestBody) -> Self {
        Self(State::Answered { response: Some(response.map(DecisionBody::content)), body, budget: BODY })
    }

    /// The answer to a call, once its message is there.
    pub(super) fn asked(
        message: IncomingMessage,
        answer: impl FnOnce(Result<Bytes, CallError>) -> Result<Bytes, CallError> + Send + 'static,
    ) -> Self {
        Self(State::Asked { message, answer: Some(Box::new(answer)) })
    }

    /// The answer to a call that has none.
    pub(super) fn failed(error: CallError) -> Self {
        Self(State::Answered { response: Some(status(error)), body: RequestBody::empty(), budget: 0 })
    }
}

impl Future for DecisionFuture {
    type Output = Result<Response<DecisionBody>, Infallible>;

    /// # Panics
    ///
    /// If it is polled again after it was done.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let response = match &mut self.get_mut().0 {
            State::Answered { response, body, budget } => {
                while !body.is_end_stream() {
                    match ready!(Pin::new(&mut *body).poll_frame(cx)) {
                        Some(Ok(frame)) => {
                            let length = frame.data_ref().map_or(0, Buf::remaining);
                            let Some(left) = budget.checked_sub(length) else { break };
                            *budget = left;
                        }
                        Some(Err(_)) | None => break,
                    }
                }
                response.take()
            }
            State::Asked { message, answer } => {
                let message = ready!(Pin::new(message).poll(cx));
                answer.take().map(|answer| match answer(message) {
                    Ok(content) => called(content),
                    Err(error) => status(error),
                })
            }
        };
        match response {
            Some(response) => Poll::Ready(Ok(response)),
            None => panic!("the future was polled after it was done"),
        }
    }
}

impl fmt::Debug for DecisionFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecisionFuture").finish_non_exhaustive()
    }
}

/// The response to a call that has an answer.
fn called(content: Bytes) -> Response<DecisionBody> {
    let trailers = HeaderMap::from_iter([(GRPC_STATUS, HeaderValue::from_static("0"))]);
    let mut response = Response::new(DecisionBody { content, trailers: Some(trailers) });
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

/// The response to a call that has none.
fn status(error: CallError) -> Response<DecisionBody> {
    let mut response = Response::new(DecisionBody::content(Bytes::new()));
    *response.headers_mut() = error.fields();
    response
}

/// The content of a response, and the status of a call after it.
#[derive(Debug)]
pub(crate) struct DecisionBody {
    content: Bytes,
    trailers: Option<HeaderMap>,
}

impl DecisionBody {
    const fn content(content: Bytes) -> Self {
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
