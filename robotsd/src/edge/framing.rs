//! How the end of a response body is known to its reader (RFC 9112, section 6; RFC 9113, section 8.1).

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderValue, StatusCode, response};
use http_body::Body;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// There is no body, whatever the head says; to HEAD it may say how long the body would be, which is still to be
    /// written.
    Absent { length: Option<u64> },
    /// A `Content-Length`, which the head has already or not.
    Length { octets: u64, is_in_head: bool },
    /// Each piece, and the end, are marked: by chunks on HTTP/1.1, by frames on HTTP/2.
    Chunked,
}

impl Framing {
    /// Decides by the head, which then says nothing else, and by the body.
    pub(crate) fn new(head: &mut response::Parts, body: &impl Body, is_head: bool) -> Self {
        // RFC 9110, section 6.4.1.
        let has_none = matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        if head.status == StatusCode::NO_CONTENT {
            head.headers.remove(CONTENT_LENGTH);
        }
        head.headers.remove(TRANSFER_ENCODING);
        if has_none {
            return Self::Absent { length: None };
        }
        let size = if body.is_end_stream() { Some(0) } else { body.size_hint().exact() };
        if is_head {
            let is_said = head.headers.contains_key(CONTENT_LENGTH);
            return Self::Absent { length: size.filter(|size| *size > 0 && !is_said) };
        }
        let said = head.headers.get(CONTENT_LENGTH).map(length);
        match (said, size) {
            (Some(Some(octets)), _) => Self::Length { octets, is_in_head: true },
            (None, Some(octets)) => Self::Length { octets, is_in_head: false },
            (Some(None), exact) => {
                head.headers.remove(CONTENT_LENGTH);
                exact.map_or(Self::Chunked, |octets| Self::Length { octets, is_in_head: false })
            }
            (None, None) => Self::Chunked,
        }
    }
}

/// The number in a `Content-Length`, if it is one.
fn length(value: &HeaderValue) -> Option<u64> {
    let text = std::str::from_utf8(value.as_bytes()).ok()?;
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}
