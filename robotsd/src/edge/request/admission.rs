//! Rejects requests with an invalid method, size, target, transfer coding or expectation.
//!
//! hyper and `h2` do not check everything in a request head. This module and [`host`](super::host)
//! make the remaining checks. Path and query are not changed here: bytes that `http::Uri` rejects
//! have already been [escaped](crate::edge::http1_fast::request), or the request was rejected.

use http::header::{ALLOW, CONNECTION, CONTENT_LENGTH, EXPECT, MAX_FORWARDS, TRANSFER_ENCODING, UPGRADE};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Response, StatusCode, Version};

use super::response_body::ResponseBody;
use crate::edge::connection::settings::{Callers, EdgeLimits};
use crate::http_common::{fields, plain_answer};

/// Checks a request head, removes the `Expect` field, and decrements `Max-Forwards`. Returns
/// whether the request asks for a WebSocket.
pub(crate) fn admit(head: &mut Parts, limits: &EdgeLimits) -> Result<bool, RequestRefusal> {
    let is_question = limits.callers == Callers::AskingProxies;
    if head.method == Method::CONNECT || head.method == Method::TRACE && !is_question {
        return Err(RequestRefusal::new(StatusCode::METHOD_NOT_ALLOWED, "the method is not allowed"));
    }
    if head.headers.len() > limits.fields {
        return Err(RequestRefusal::new(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "the request has too many header fields",
        ));
    }
    check_target(head, limits)?;
    if head.method == Method::OPTIONS && !is_question {
        decrement_forwards(head)?;
    }
    // Most requests have none of the four fields that are checked below, so one pass over the field
    // names is usually enough.
    let is_simple = |name: &HeaderName| !matches!(*name, TRANSFER_ENCODING | CONTENT_LENGTH | EXPECT | UPGRADE);
    if head.headers.keys().all(is_simple) {
        return Ok(false);
    }
    let is_chunked = fields::is_chunked(&head.headers).map_err(RequestRefusal::bad_request)?;
    // If a request has both `Content-Length` and `Transfer-Encoding`, hyper removes
    // `Content-Length`, and closes the connection after the response. So this check is needed only
    // in case a later version of hyper behaves differently.
    if is_chunked && head.headers.contains_key(CONTENT_LENGTH) {
        return Err(RequestRefusal::bad_request("the request has both Content-Length and Transfer-Encoding"));
    }
    // hyper and `h2` have already rejected requests with different `Content-Length` values, but
    // `h2` accepts repeated fields and empty values.
    fields::unify_length(&mut head.headers).map_err(RequestRefusal::bad_request)?;
    check_expectation(head)?;
    Ok(asks_for_websocket(head))
}

fn check_target(head: &Parts, limits: &EdgeLimits) -> Result<(), RequestRefusal> {
    let Some(target) = head.uri.path_and_query() else {
        return Err(RequestRefusal::bad_request("invalid target"));
    };
    if target.as_str().len() > limits.target_bytes {
        return Err(RequestRefusal::new(StatusCode::URI_TOO_LONG, "the request target is too long"));
    }
    let path = target.path();
    let is_asterisk = path == "*" && head.method == Method::OPTIONS;
    if !path.starts_with('/') && !is_asterisk {
        return Err(RequestRefusal::bad_request("invalid target"));
    }
    // hyper has rejected most control characters, but accepts DEL and the backslash. Some upstreams
    // interpret a backslash as a slash.
    let is_bad = |byte: u8| byte.is_ascii_control() || byte == b'\\';
    if limits.callers == Callers::Clients && path.bytes().any(is_bad) {
        return Err(RequestRefusal::bad_request("the path contains a byte that is not allowed"));
    }
    Ok(())
}

/// Decrements `Max-Forwards`. If the field's value is 0, the request is answered here instead of
/// being forwarded (RFC 9110, section 7.6.2).
fn decrement_forwards(head: &mut Parts) -> Result<(), RequestRefusal> {
    let Some(left) = head.headers.get(MAX_FORWARDS).and_then(|left| fields::length(left.as_bytes())) else {
        return Ok(());
    };
    let left = left.checked_sub(1).ok_or(RequestRefusal::new(StatusCode::OK, "Max-Forwards is 0"))?;
    head.headers.insert(MAX_FORWARDS, left.into());
    Ok(())
}

/// Checks the `Expect` field and removes it. The 100 response is not sent here: hyper or the HTTP/2
/// stream sends it as soon as the body is polled.
fn check_expectation(head: &mut Parts) -> Result<(), RequestRefusal> {
    if head.version == Version::HTTP_10 {
        head.headers.remove(EXPECT);
        return Ok(());
    }
    match head.headers.remove(EXPECT) {
        Some(expected) if !expected.as_bytes().eq_ignore_ascii_case(b"100-continue") => {
            Err(RequestRefusal::new(StatusCode::EXPECTATION_FAILED, "unknown expectation"))
        }
        _ => Ok(()),
    }
}

fn asks_for_websocket(head: &Parts) -> bool {
    let mentions =
        |name, token: &[u8]| fields::listed(&head.headers, name).any(|item| item.eq_ignore_ascii_case(token));
    let has_body = head.headers.contains_key(CONTENT_LENGTH) || head.headers.contains_key(TRANSFER_ENCODING);
    head.version == Version::HTTP_11
        && head.method == Method::GET
        && !has_body
        && head.headers.contains_key(UPGRADE)
        && mentions(UPGRADE, b"websocket")
        && mentions(CONNECTION, b"upgrade")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestRefusal {
    pub(crate) status: StatusCode,
    reason: &'static str,
}

impl RequestRefusal {
    pub(crate) const fn new(status: StatusCode, reason: &'static str) -> Self {
        Self { status, reason }
    }

    pub(crate) const fn bad_request(reason: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, reason)
    }

    pub(crate) fn into_response<B>(self, version: Version) -> Response<ResponseBody<B>> {
        let text = format!("{} {}\n", self.status.as_u16(), self.reason);
        let mut response = plain_answer(self.status, text).map(ResponseBody::generated);
        let fields = response.headers_mut();
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            fields.insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
        }
        // The connection is closed, because the bytes after an invalid head may not be the
        // beginning of the next request.
        if self.status.is_client_error() && version != Version::HTTP_2 {
            fields.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn admitted(request: http::request::Builder) -> Result<bool, StatusCode> {
        let (mut head, ()) = request.header("host", "h.test").body(()).unwrap().into_parts();
        admit(&mut head, &EdgeLimits::default()).map_err(|refusal| refusal.status)
    }

    #[test]
    fn connect_and_trace_requests_are_rejected() {
        for method in ["CONNECT", "TRACE"] {
            assert_eq!(admitted(Request::builder().method(method).uri("/")), Err(StatusCode::METHOD_NOT_ALLOWED));
        }
        assert!(admitted(Request::builder().method("SLUDGE").uri("/")).is_ok());
    }

    #[test]
    fn targets_must_be_valid_paths_of_at_most_8_kib() {
        assert_eq!(admitted(Request::builder().uri("*")), Err(StatusCode::BAD_REQUEST));
        assert!(admitted(Request::builder().method("OPTIONS").uri("*")).is_ok());
        assert_eq!(admitted(Request::builder().uri("h.test")), Err(StatusCode::BAD_REQUEST));
        assert_eq!(admitted(Request::builder().uri("/a\\b")), Err(StatusCode::BAD_REQUEST));
        assert!(admitted(Request::builder().uri("/a?b=\\c")).is_ok());
        assert!(admitted(Request::builder().uri("/sale-50%-off")).is_ok());
        let path = |length: usize| format!("/{}", "a".repeat(length - 1));
        assert!(admitted(Request::builder().uri(path(8 * 1024))).is_ok());
        assert_eq!(admitted(Request::builder().uri(path(8 * 1024 + 1))), Err(StatusCode::URI_TOO_LONG));
    }

    #[test]
    fn decision_requests_may_use_methods_and_paths_that_other_requests_may_not() {
        let limits = EdgeLimits { callers: Callers::AskingProxies, ..EdgeLimits::default() };
        for (method, target) in [("TRACE", "/"), ("GET", "/a\\b")] {
            let request = Request::builder().method(method).uri(target).header("host", "h.test");
            let (mut head, ()) = request.header("x-original-uri", "/x").body(()).unwrap().into_parts();
            assert!(admit(&mut head, &limits).is_ok(), "{method} {target}");
            assert!(head.headers.contains_key("x-original-uri"));
        }
    }

    #[test]
    fn a_single_chunked_is_the_only_allowed_transfer_encoding() {
        let with = |values: &[&'static str]| {
            admitted(values.iter().fold(Request::builder().uri("/"), |r, v| r.header(TRANSFER_ENCODING, *v)))
        };
        assert!(with(&["Chunked"]).is_ok());
        for values in [&["gzip, chunked"][..], &["chunked", "chunked"], &["chunked, chunked"], &["identity"], &[""]] {
            assert_eq!(with(values), Err(StatusCode::BAD_REQUEST), "{values:?}");
        }
        let both = Request::builder().uri("/").header(CONTENT_LENGTH, "1").header(TRANSFER_ENCODING, "chunked");
        assert_eq!(admitted(both), Err(StatusCode::BAD_REQUEST));
    }

    #[test]
    fn rfc_9110_7_6_2_options_requests_are_forwarded_a_limited_number_of_times() {
        let left = |method: &str, value: &str| {
            let request = Request::builder().method(method).uri("/").header(MAX_FORWARDS, value);
            let (mut head, ()) = request.body(()).unwrap().into_parts();
            let admitted = admit(&mut head, &EdgeLimits::default());
            admitted.map(|_| head.headers[MAX_FORWARDS].to_str().unwrap().to_owned()).map_err(|answer| answer.status)
        };
        for (method, value, want) in [
            ("OPTIONS", "0", Err(StatusCode::OK)),
            ("OPTIONS", "1", Ok("0")),
            ("OPTIONS", "10", Ok("9")),
            ("OPTIONS", "x", Ok("x")),
            ("GET", "0", Ok("0")),
        ] {
            assert_eq!(left(method, value), want.map(str::to_owned), "{method} {value}");
        }
    }

    #[test]
    fn rfc_9110_8_6_a_request_has_one_valid_length() {
        let with = |values: &[&'static str]| -> Result<Vec<String>, StatusCode> {
            let (mut head, ()) = Request::builder().uri("/").body(()).unwrap().into_parts();
            head.headers.extend(values.iter().map(|value| (CONTENT_LENGTH, HeaderValue::from_static(value))));
            admit(&mut head, &EdgeLimits::default()).map_err(|refusal| refusal.status)?;
            Ok(head.headers.get_all(CONTENT_LENGTH).iter().map(|length| length.to_str().unwrap().to_owned()).collect())
        };
        assert_eq!(with(&["2"]), Ok(vec!["2".to_owned()]));
        assert_eq!(with(&["2", "2"]), Ok(vec!["2".to_owned()]));
        for values in [&[""][..], &["", "0"], &["2", ""], &["2", "3"], &["2,"], &["+2"], &["99999999999999999999"]] {
            assert_eq!(with(values), Err(StatusCode::BAD_REQUEST), "{values:?}");
        }
    }

    #[test]
    fn only_a_get_request_with_a_valid_handshake_requests_a_websocket() {
        let handshake = || Request::builder().uri("/").header(UPGRADE, "WebSocket");
        assert_eq!(admitted(handshake().header(CONNECTION, "keep-alive, Upgrade")), Ok(true));
        let of_http_2 = Request::builder().uri("/").header(UPGRADE, "h2c").header(CONNECTION, "upgrade");
        for other in [handshake(), handshake().header(CONNECTION, "upgrade").method("POST"), of_http_2] {
            assert_eq!(admitted(other), Ok(false));
        }
    }

    #[test]
    fn rfc_9110_10_1_1_unknown_expectations_are_rejected() {
        assert!(admitted(Request::builder().uri("/").header(EXPECT, "100-Continue")).is_ok());
        assert_eq!(admitted(Request::builder().uri("/").header(EXPECT, "x")), Err(StatusCode::EXPECTATION_FAILED));
    }
}
