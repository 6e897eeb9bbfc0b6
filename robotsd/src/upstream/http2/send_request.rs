//! Sends a request on a stream and waits for the head of the response.
//!
//! **An exchange has stalled only if neither direction makes progress.** Progress in one direction
//! restarts the idle deadlines of both directions.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use h2::client::ResponseFuture;
use h2::{Reason, RecvStream};
use http::header::{CONNECTION, HOST, TE, TRANSFER_ENCODING, UPGRADE};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use http_body::Body;
use tokio::time::{Instant, sleep_until};

use super::pool::Http2Slot;
use super::request_upload::{RequestUpload, UploadEnd};
use super::response_stream::{ExpectedBody, Http2Body};
use crate::http_common::{RequestBody, fields, poll_due};
use crate::upstream::endpoint::UpstreamLimits;
use crate::upstream::failure_kind::{Cause, FailureKind};
use crate::upstream::http1_connection::ExchangeError;
use crate::upstream::http1_fast::unify_framing;
use crate::upstream::outgoing_request::InterimRelay;

enum NoResponse {
    Stream(h2::Error),
    Late,
    /// The client did not send its whole request.
    Body,
    Invalid(&'static str),
}

impl Http2Slot {
    pub(in crate::upstream) async fn exchange(
        &mut self,
        mut request: Box<Request<RequestBody>>,
        scheme: Scheme,
        accepts_trailers: bool,
        relay: InterimRelay,
        limits: &UpstreamLimits,
    ) -> Result<Response<Http2Body>, ExchangeError> {
        let Some(head) = convert(&request, scheme, accepts_trailers) else {
            return Err(ExchangeError::Broken(Cause::Invalid("the request's Host is not a valid authority")));
        };
        let is_whole = request.body().is_end_stream();
        let is_head = *request.method() == Method::HEAD;
        let (response, stream) = match self.sender.send_request(head, is_whole) {
            Ok(sent) => sent,
            Err(error) => return Err(ExchangeError::Unsent(request, Cause::Http2(error))),
        };
        let sent = Instant::now();
        let mut upload = (!is_whole).then(|| {
            let body = std::mem::replace(request.body_mut(), RequestBody::empty());
            RequestUpload::new(body.with_trailers(), stream)
        });
        let progress = upload.as_ref().map(|upload| Arc::clone(&upload.progress));
        match wait_for_head(response, &mut upload, &relay, limits).await {
            Ok(response) => {
                self.connection.answered();
                accept(response, upload, is_head, limits)
            }
            Err(NoResponse::Late) => {
                self.connection.doubt(sent);
                Err(ExchangeError::Timeout)
            }
            Err(NoResponse::Invalid(why)) => Err(ExchangeError::Broken(Cause::Invalid(why))),
            Err(NoResponse::Body) => {
                self.body_failure = progress.and_then(|progress| progress.failure()).or(Some(FailureKind::RequestBody));
                let why = io::Error::other("the client did not send all of its request body");
                Err(ExchangeError::Broken(Cause::Socket(why)))
            }
            Err(NoResponse::Stream(error)) => Err(failed(request, is_whole, upload, error)),
        }
    }
}

/// Sends the body of the request while waiting for the head of the response.
async fn wait_for_head(
    mut response: ResponseFuture,
    upload: &mut Option<RequestUpload>,
    relay: &InterimRelay,
    limits: &UpstreamLimits,
) -> Result<Response<RecvStream>, NoResponse> {
    let sent = Instant::now();
    let progress = upload.as_ref().map(|upload| Arc::clone(&upload.progress));
    let mut is_sending = upload.is_some();
    let mut timer = pin!(sleep_until(sent + limits.response_header));
    poll_fn(|cx| {
        if let Poll::Ready(response) = poll_head(&mut response, relay, cx) {
            return Poll::Ready(response);
        }
        if let Some(sending) = upload.as_mut().filter(|_| is_sending) {
            match sending.poll_send(cx) {
                Poll::Ready(UploadEnd::Failed) => return Poll::Ready(Err(NoResponse::Body)),
                Poll::Ready(UploadEnd::Complete | UploadEnd::Unwanted) => is_sending = false,
                Poll::Pending => {}
            }
        }
        // As on HTTP/1.1, the time limit restarts whenever the server accepts a part of the
        // request, and does not apply while the upload waits for the client.
        let last_accepted = |now| match &progress {
            Some(progress) if is_sending && progress.awaits_client.is_set() => now,
            Some(progress) => progress.last_accepted(),
            None => sent,
        };
        poll_due(timer.as_mut(), cx, |now| last_accepted(now) + limits.response_header).map(|()| Err(NoResponse::Late))
    })
    .await
    .inspect(|_| {
        if !is_sending {
            *upload = None;
        }
    })
}

fn poll_head(
    response: &mut ResponseFuture,
    relay: &InterimRelay,
    cx: &mut Context<'_>,
) -> Poll<Result<Response<RecvStream>, NoResponse>> {
    // h2 queues interim responses without a limit, so they are read as they arrive.
    while let Poll::Ready(Some(received)) = response.poll_informational(cx) {
        let received = received.map_err(NoResponse::Stream)?;
        if received.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Poll::Ready(Err(NoResponse::Invalid("the server switched protocols, which HTTP/2 does not allow")));
        }
        if !relay.received(received.status(), received.headers()) {
            return Poll::Ready(Err(NoResponse::Invalid("the server sent too many interim responses")));
        }
    }
    Pin::new(response).poll(cx).map_err(NoResponse::Stream)
}

fn accept(
    response: Response<RecvStream>,
    upload: Option<RequestUpload>,
    is_head: bool,
    limits: &UpstreamLimits,
) -> Result<Response<Http2Body>, ExchangeError> {
    let (mut head, stream) = response.into_parts();
    head.extensions.clear();
    unify_framing(&mut head.headers).map_err(|why| ExchangeError::Broken(Cause::Invalid(why)))?;
    // Responses to HEAD, and responses with these two status codes, have no body (RFC 9110, section
    // 6.4.1).
    let is_bodiless = is_head || matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let expected = match fields::content_length(&head.headers).filter(|_| !is_bodiless) {
        Some(bytes) => ExpectedBody::Length(bytes),
        None if is_bodiless => ExpectedBody::Absent,
        None => ExpectedBody::Open,
    };
    let upload = upload.filter(|_| !stream.is_end_stream()).map(RequestUpload::spawn);
    Ok(Response::from_parts(head, Http2Body::new(stream, expected, upload, limits.body_idle)))
}

/// Classifies a failure. The returned error contains the request if it may be sent again. This is
/// the case if the server has reported that it did not process the request, or if the connection
/// broke and the rules of HTTP/1.1 allow another attempt.
fn failed(
    mut request: Box<Request<RequestBody>>,
    is_whole: bool,
    upload: Option<RequestUpload>,
    error: h2::Error,
) -> ExchangeError {
    // A GOAWAY contains the number of the last stream that the server may have processed. Only
    // streams with higher numbers fail with the error of the GOAWAY (RFC 9113, sections 6.8 and
    // 8.7).
    let is_refused = error.is_remote() && (error.is_go_away() || error.reason() == Some(Reason::REFUSED_STREAM));
    let has_broken = error.is_io();
    let cause = Cause::Http2(error);
    if is_whole {
        return match cause {
            cause if is_refused => ExchangeError::Unsent(request, cause),
            // It is unknown whether the server has processed the request.
            cause if has_broken || cause.ends_connection() => ExchangeError::Unanswered(request, cause),
            cause => ExchangeError::Broken(cause),
        };
    }
    match upload.filter(|_| is_refused).and_then(RequestUpload::into_body) {
        Some(body) => {
            *request.body_mut() = body;
            ExchangeError::Unsent(request, cause)
        }
        None => ExchangeError::Broken(cause),
    }
}

/// Converts the head of a request to HTTP/2. Returns `None` if the host is not a valid authority.
pub(super) fn convert(request: &Request<RequestBody>, scheme: Scheme, accepts_trailers: bool) -> Option<Request<()>> {
    let host = request.headers().get(HOST)?;
    let mut uri = http::uri::Parts::default();
    uri.authority = Some(Authority::try_from(host.as_bytes()).ok()?);
    uri.scheme = Some(scheme);
    uri.path_and_query = Some(request.uri().path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/")));
    let mut head = Request::new(());
    *head.method_mut() = request.method().clone();
    *head.uri_mut() = Uri::from_parts(uri).ok()?;
    *head.version_mut() = Version::HTTP_2;
    let mut fields = request.headers().clone();
    for name in [HOST, CONNECTION, TE, TRANSFER_ENCODING, UPGRADE] {
        fields.remove(name);
    }
    if accepts_trailers {
        // gRPC servers require `TE`, with the only value that HTTP/2 allows (RFC 9113, section
        // 8.2.2).
        fields.insert(TE, HeaderValue::from_static("trailers"));
    }
    *head.headers_mut() = fields;
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_http_2_request_has_its_host_in_the_uri_and_no_connection_fields() {
        let mut request = Request::new(RequestBody::empty());
        *request.uri_mut() = Uri::from_static("/a%2Fb?c=%20");
        for (name, value) in [
            ("host", "h.test:8080"),
            ("connection", "upgrade"),
            ("upgrade", "websocket"),
            ("transfer-encoding", "chunked"),
            ("te", "trailers"),
            ("x-a", "1"),
            ("x-a", "2"),
        ] {
            request.headers_mut().append(name, HeaderValue::from_static(value));
        }
        let head = convert(&request, Scheme::HTTPS, true).unwrap();
        assert_eq!(head.uri(), "https://h.test:8080/a%2Fb?c=%20");
        assert_eq!(head.headers().keys().map(|name| name.as_str()).collect::<Vec<_>>(), ["x-a", "te"]);
        assert_eq!(head.headers().get_all("x-a").iter().count(), 2);
        request.headers_mut().insert(HOST, HeaderValue::from_static("a b"));
        assert!(convert(&request, Scheme::HTTP, false).is_none());
    }
}
