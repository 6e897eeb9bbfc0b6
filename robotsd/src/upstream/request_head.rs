//! The head of a request as an upstream gets it.

use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderValue, Method, Request, Version};
use http_body::Body;

use crate::edge::{AnnouncedTrailers, RequestBody};

/// Puts the head of a request into the form of HTTP/1.1. `authority` is the `Host` of a request that names none.
pub(super) fn prepare(request: &mut Request<RequestBody>, wants_websocket: bool, authority: &HeaderValue) {
    *request.version_mut() = Version::HTTP_11;
    let announced = request.extensions_mut().remove::<AnnouncedTrailers>();
    // Extensions are for those before us; hyper would take some of them for its own.
    request.extensions_mut().clear();
    let is_empty = request.body().is_end_stream();
    let wants_length = matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH);
    let fields = request.headers_mut();
    if !fields.contains_key(HOST) {
        // HTTP/1.0 may leave it out, HTTP/1.1 may not.
        fields.insert(HOST, authority.clone());
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
        if let Some(announced) = announced {
            fields.insert(TRAILER, announced.to_value());
            request.body_mut().announce(announced);
        }
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
