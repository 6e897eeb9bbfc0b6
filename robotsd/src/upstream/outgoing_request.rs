//! A request on its way to an upstream: its head, its body, which notes whom the upstream is waiting for, and the
//! interim responses (1xx) to it.
//!
//! A proxy forwards interim responses (RFC 9110, section 15.2), and no final response may ever follow: so few are
//! passed on, and they move no deadline.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Version};
use http_body::{Body, Frame, SizeHint};

use super::tracked_io::ExchangeProgress;
use crate::exchange::fields::ForwardedValues;
use crate::exchange::{InterimResponses, RequestBody, RequestBodyError};

/// A request body on its way to an upstream.
#[derive(Debug)]
pub(super) struct OutgoingBody {
    /// Only whole where nothing of it has been taken.
    pub(super) body: RequestBody,
    pub(super) progress: Arc<ExchangeProgress>,
}

impl Body for OutgoingBody {
    type Data = Bytes;
    type Error = RequestBodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, RequestBodyError>>> {
        let this = self.get_mut();
        let frame = Pin::new(&mut this.body).poll_frame(cx);
        this.progress.upload.awaits_client.set(frame.is_pending());
        // Once there is an answer, its body knows whether anything moves.
        if this.progress.awaits_head() {
            let usage = &this.progress.usage;
            if frame.is_pending() { usage.stall() } else { usage.moved() }
        }
        if let Poll::Ready(Some(Err(error))) = &frame {
            this.progress.upload.note_failure(error);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Puts the head of a request into the form of HTTP/1.1. `authority` is the `Host` of a request that names none, and not one that
/// its client is reported to have meant.
pub(super) fn prepare(
    request: &mut Request<RequestBody>,
    wants_websocket: bool,
    forwarded: Option<&mut ForwardedValues>,
    authority: &HeaderValue,
) {
    *request.version_mut() = Version::HTTP_11;
    // Extensions are for those before us; hyper would take some of them for its own.
    request.extensions_mut().clear();
    let is_empty = request.body().is_end_stream();
    let wants_length = matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH);
    let fields = request.headers_mut();
    match (fields.get(HOST), forwarded) {
        (Some(host), Some(ForwardedValues { host: forwarded @ None, .. })) => *forwarded = Some(host.clone()),
        (Some(_), _) => {}
        // HTTP/1.0 may leave it out, HTTP/1.1 may not.
        (None, _) => {
            fields.insert(HOST, authority.clone());
        }
    }
    if wants_websocket {
        fields.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        fields.insert(UPGRADE, HeaderValue::from_static("websocket"));
    }
    if fields.contains_key(CONTENT_LENGTH) {
        return;
    }
    if !is_empty {
        // hyper would drop the body of a GET whose length it does not know.
        fields.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    } else if wants_length {
        // HTTP/2 says it with a flag; some HTTP/1.1 servers insist on the number.
        fields.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
}

/// A copy of a request that has no body.
pub(super) fn without_body(request: &Request<RequestBody>) -> Box<Request<RequestBody>> {
    let mut copy = Box::new(Request::new(RequestBody::empty()));
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    copy
}

/// So many responses are passed on: servers send one or two, or one in a while for as long as they work.
const RESPONSES: usize = 32;

/// So many are taken at all.
const MOST_RESPONSES: usize = 1000;

/// Passes the interim responses to one request on, as far as its client can be sent some.
#[derive(Debug)]
pub(super) struct InterimRelay {
    pub(super) client: Option<InterimResponses>,
    received: AtomicUsize,
}

impl InterimRelay {
    pub(super) fn new(client: Option<&InterimResponses>) -> Self {
        Self { client: client.cloned(), received: AtomicUsize::new(0) }
    }

    /// Takes the next one, which is dropped where enough have been passed on. Returns false where more came than any server has
    /// a use for.
    pub(super) fn received(&self, status: StatusCode, fields: &HeaderMap) -> bool {
        let before = self.received.fetch_add(1, Ordering::Relaxed);
        if before >= MOST_RESPONSES {
            return false;
        }
        if let Some(client) = self.client.as_ref().filter(|_| before < RESPONSES) {
            client.send(status, fields);
        }
        true
    }
}
