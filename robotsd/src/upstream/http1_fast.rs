//! The fast path for simple exchanges: a GET or HEAD request, and a response that declares its
//! length and whose head arrives in one read.
//!
//! Nearly all exchanges are of this kind, and need no state machine: this module writes the
//! requests itself, and reads the responses with the parser that hyper uses. If the response is of
//! another kind, the connection is handed over to hyper. Such a response is chunked or malformed,
//! ends with the close of the connection, follows an interim response, or has a head that arrives
//! in parts. After the handover, hyper sends the request once more, but to a socket that discards
//! the request and returns the bytes of the response read so far. The connection stays with hyper,
//! so there is at most one handover per connection.

use std::future::Future;
use std::io;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{BufMut, Bytes, BytesMut};
use http::header::{
    CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{Method, Request, Response, StatusCode, Version};
use http_body::{Body, SizeHint};
use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use super::tracked_io::TrackedIo;
use crate::http_common::fields::{self, ForwardedValues};

/// Size of the stack buffer for the first read of a response, in bytes.
const READ: usize = 16 * 1024;

/// Maximum number of header fields; hyper handles heads with more fields.
const FIELDS: usize = 64;

/// Number of header fields that the edge adds to a response.
const ADDED: usize = 1;

#[derive(Debug)]
pub(super) struct FastConnection {
    pub(super) stream: TrackedIo,
    /// The head of the request. The first `sent` bytes of the head have been sent.
    out: Vec<u8>,
    sent: usize,
    body: BytesMut,
    /// Whether the server sent more bytes than it declared.
    pub(super) is_spoiled: bool,
}

pub(super) enum FastAnswer {
    Answer(Response<FastBody>),
    /// The fast path cannot handle the response that begins with these bytes.
    Other(Bytes),
}

#[derive(Debug)]
pub(super) struct FastBody {
    /// The body bytes that arrived together with the head.
    pub(super) first: Bytes,
    /// Number of body bytes that have not arrived yet.
    pub(super) left: u64,
    /// Whether more bytes arrived together with the head than the response declares.
    pub(super) is_surplus: bool,
}

pub(super) fn is_plain(request: &Request<impl Body>) -> bool {
    let is_delicate = |name: &HeaderName| matches!(*name, CONTENT_LENGTH | TRANSFER_ENCODING | CONNECTION | UPGRADE);
    matches!(*request.method(), Method::GET | Method::HEAD)
        && request.body().is_end_stream()
        && !request.headers().keys().any(is_delicate)
}

impl FastConnection {
    pub(super) fn new(stream: TrackedIo) -> Self {
        Self { stream, out: Vec::new(), sent: 0, body: BytesMut::new(), is_spoiled: false }
    }

    pub(super) fn begin<B>(&mut self, request: &Request<B>, forwarded: Option<&ForwardedValues>) {
        let out = &mut self.out;
        out.clear();
        self.sent = 0;
        out.extend_from_slice(request.method().as_str().as_bytes());
        out.push(b' ');
        let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
        out.extend_from_slice(target.as_bytes());
        out.extend_from_slice(b" HTTP/1.1\r\n");
        fields::write(out, request.headers(), forwarded);
    }

    pub(super) fn poll_answer(&mut self, cx: &mut Context<'_>, method: &Method) -> Poll<io::Result<FastAnswer>> {
        while self.sent < self.out.len() {
            match ready!(Pin::new(&mut self.stream).poll_write(cx, &self.out[self.sent..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.sent += written,
            }
        }
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        let mut room = [MaybeUninit::uninit(); READ];
        let mut buffer = ReadBuf::uninit(&mut room);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))?;
        let bytes = buffer.filled();
        if bytes.is_empty() {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        let Some(answer) = parse(bytes, method) else {
            return Poll::Ready(Ok(FastAnswer::Other(Bytes::copy_from_slice(bytes))));
        };
        self.is_spoiled |= answer.body().is_surplus;
        Poll::Ready(Ok(FastAnswer::Answer(answer)))
    }

    pub(super) fn poll_body(&mut self, cx: &mut Context<'_>, left: u64, most: usize) -> Poll<io::Result<Bytes>> {
        // One extra byte is read, to detect a server that sends too much. The extra byte also saves
        // a system call: if the buffer is not full after a read, no more data has arrived.
        let room = usize::try_from(left.saturating_add(1)).unwrap_or(most).min(most);
        self.body.reserve(room);
        let mut limited = (&mut self.body).limit(room);
        if ready!(pin!(self.stream.read_buf(&mut limited)).poll(cx))? == 0 {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        let mut bytes = self.body.split().freeze();
        if bytes.len() as u64 >= left {
            self.is_spoiled |= bytes.len() as u64 > left;
            bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            // The connection may now be idle, so its buffer is freed.
            self.body = BytesMut::new();
        }
        Poll::Ready(Ok(bytes))
    }

    /// Reports whether nothing has arrived since the last response, not even the end of the stream.
    pub(super) fn is_silent(&mut self, cx: &mut Context<'_>) -> bool {
        let mut room = [MaybeUninit::uninit(); 1];
        let mut buffer = ReadBuf::uninit(&mut room);
        !self.is_spoiled && Pin::new(&mut self.stream).poll_read(cx, &mut buffer).is_pending()
    }
}

/// Parses a response. Returns `None` if `bytes` do not begin with a complete head, or if the
/// response is not simple enough for the fast path.
pub(super) fn parse(bytes: &[u8], method: &Method) -> Option<Response<FastBody>> {
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS];
    let mut head = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut head, bytes, &mut fields);
    let Ok(httparse::Status::Complete(end)) = parsed else { return None };
    // The head is copied separately from the body: two small allocations are faster than a larger
    // one.
    let kept = Bytes::copy_from_slice(bytes.get(..end)?);
    let keep = |part: &[u8]| {
        let start = (part.as_ptr() as usize).checked_sub(bytes.as_ptr() as usize)?;
        (start + part.len() <= end).then(|| kept.slice(start..start + part.len()))
    };
    let status = StatusCode::from_u16(head.code?).ok()?;
    if head.version != Some(1) || status.is_informational() {
        return None;
    }
    let mut map = HeaderMap::with_capacity(head.headers.len() + ADDED);
    let mut length = None;
    for field in head.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        match name {
            CONTENT_LENGTH if length.is_none() => length = Some(fields::length(field.value)?),
            // `keep-alive` concerns only the connection to the upstream.
            CONNECTION if field.value.eq_ignore_ascii_case(b"keep-alive") => continue,
            CONTENT_LENGTH | CONNECTION | TRANSFER_ENCODING | TRAILER | UPGRADE => return None,
            _ => {}
        }
        map.append(name, HeaderValue::from_maybe_shared(keep(field.value)?).ok()?);
    }
    // Responses to HEAD, and responses with these two status codes, have no body, even if they
    // declare a length (RFC 9112, section 6.3).
    let is_empty = *method == Method::HEAD || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let length = if is_empty { 0 } else { length? };
    let came = bytes.get(end..)?;
    let first = Bytes::copy_from_slice(&came[..usize::try_from(length).unwrap_or(usize::MAX).min(came.len())]);
    let rest = FastBody { left: length - first.len() as u64, is_surplus: first.len() < came.len(), first };
    let mut response = Response::new(rest);
    *response.status_mut() = status;
    *response.version_mut() = Version::HTTP_11;
    *response.headers_mut() = map;
    Some(response)
}

/// Corrects the `Content-Length` fields of a response from hyper, which ignores some of these
/// fields but does not always remove them.
pub(super) fn unify_framing(headers: &mut HeaderMap) -> Result<(), &'static str> {
    if fields::is_chunked(headers)? {
        headers.remove(CONTENT_LENGTH);
        return Ok(());
    }
    fields::unify_length(headers)
}

#[derive(Debug)]
pub(super) enum UnreadBody {
    Fast(FastBody),
    Hyper(Incoming),
}

impl UnreadBody {
    pub(super) fn is_end_stream(&self) -> bool {
        match self {
            Self::Fast(rest) => rest.first.is_empty() && rest.left == 0,
            Self::Hyper(incoming) => incoming.is_end_stream(),
        }
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        match self {
            Self::Fast(rest) => SizeHint::with_exact(rest.first.len() as u64 + rest.left),
            Self::Hyper(incoming) => incoming.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(method: Method, bytes: &str) -> Option<Response<FastBody>> {
        parse(bytes.as_bytes(), &method)
    }

    #[test]
    fn responses_of_known_length_are_parsed_on_the_fast_path() {
        let answer = parsed(Method::GET, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1\r\n\r\nabc").unwrap();
        assert_eq!((answer.status(), &answer.headers()["x-a"]), (StatusCode::OK, &HeaderValue::from_static("1")));
        let rest = answer.into_body();
        assert_eq!((&*rest.first, rest.left, rest.is_surplus), (&b"abc"[..], 2, false));
        for (method, bytes) in [
            (Method::HEAD, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
            (Method::HEAD, "HTTP/1.1 200 OK\r\n\r\n"),
            (Method::GET, "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
            (Method::GET, "HTTP/1.1 204 No Content\r\nConnection: Keep-Alive\r\n\r\n"),
        ] {
            let rest = parsed(method, bytes).unwrap().into_body();
            assert_eq!((rest.left, rest.first.len(), rest.is_surplus), (0, 0, false), "{bytes:?}");
        }
    }

    #[test]
    fn surplus_bytes_after_a_response_are_noted_and_not_passed_on() {
        let rest = parsed(Method::GET, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP").unwrap().into_body();
        assert_eq!((&*rest.first, rest.left, rest.is_surplus), (&b"ab"[..], 0, true));
        let rest = parsed(Method::HEAD, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab").unwrap().into_body();
        assert_eq!((rest.first.len(), rest.is_surplus), (0, true));
    }

    #[test]
    fn the_fast_path_leaves_all_other_responses_to_hyper() {
        for bytes in [
            "HTTP/1.1 200 OK\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n",
            "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc",
            "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX : 1\r\n\r\nabc",
            "abc\r\n\r\n",
        ] {
            assert!(parsed(Method::GET, bytes).is_none(), "{bytes:?}");
        }
    }
}
