//! A request on its way to an upstream, and the interim responses (1xx) to it.
//!
//! A proxy must forward interim responses (RFC 9110, section 15.2), but a server could send any
//! number of them. So only the first few interim responses are forwarded, and they extend no
//! deadline.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Version};
use http_body::{Body, Frame, SizeHint};

use super::tracked_io::ExchangeProgress;
use crate::http_common::fields::ForwardedValues;
use crate::http_common::{InterimResponses, RequestBody, RequestBodyError};

#[derive(Debug)]
pub(super) struct OutgoingBody {
    /// The body can be sent again only if nothing has been read from it.
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
        // After the head of the response has arrived, progress is recorded by the response body and
        // not here.
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

/// Converts the head of a request to HTTP/1.1. `authority` is used as `Host` if the request has no
/// `Host`, but it is not added to the forwarded fields.
pub(super) fn prepare(
    request: &mut Request<RequestBody>,
    wants_websocket: bool,
    forwarded: Option<&mut ForwardedValues>,
    authority: &HeaderValue,
) {
    *request.version_mut() = Version::HTTP_11;
    // Extensions are no longer needed, and hyper would interpret some of them.
    request.extensions_mut().clear();
    let is_empty = request.body().is_end_stream();
    let wants_length = matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH);
    let fields = request.headers_mut();
    match (fields.get(HOST), forwarded) {
        (Some(host), Some(ForwardedValues { host: forwarded @ None, .. })) => *forwarded = Some(host.clone()),
        (Some(_), _) => {}
        // `Host` is optional in HTTP/1.0 and required in HTTP/1.1.
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
        // hyper would drop the body of a GET request of unknown length.
        fields.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    } else if wants_length {
        // HTTP/2 marks an empty body with a flag, but some HTTP/1.1 servers require the length.
        fields.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
}

pub(super) fn without_body(request: &Request<RequestBody>) -> Box<Request<RequestBody>> {
    let mut copy = Box::new(Request::new(RequestBody::empty()));
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    copy
}

/// Maximum number of interim responses to forward. Servers usually send one or two interim
/// responses, or one from time to time while they process the request.
const RESPONSES: usize = 32;

/// Maximum number of interim responses to accept from the server.
const MAX_RESPONSES: usize = 1000;

/// Forwards interim responses to the client of a request. `client` is `None` if the client does not
/// accept interim responses.
#[derive(Debug)]
pub(super) struct InterimRelay {
    pub(super) client: Option<InterimResponses>,
    received: AtomicUsize,
}

impl InterimRelay {
    pub(super) fn new(client: Option<&InterimResponses>) -> Self {
        Self { client: client.cloned(), received: AtomicUsize::new(0) }
    }

    /// Forwards an interim response, unless [`RESPONSES`] have already been forwarded. Returns
    /// false if the server has sent too many interim responses.
    pub(super) fn received(&self, status: StatusCode, fields: &HeaderMap) -> bool {
        let before = self.received.fetch_add(1, Ordering::Relaxed);
        if before >= MAX_RESPONSES {
            return false;
        }
        if let Some(client) = self.client.as_ref().filter(|_| before < RESPONSES) {
            client.send(status, fields);
        }
        true
    }
}
