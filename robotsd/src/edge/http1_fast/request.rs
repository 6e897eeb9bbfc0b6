//! Parses the head of a request on the fast path.
//!
//! nginx accepts some bytes in a target that `http::Uri`, and therefore hyper, rejects: non-UTF-8
//! bytes, `<`, `>`, backticks and quotes. Browsers and scripts send these bytes. So if the fast
//! path has read the whole request line, it percent-encodes these bytes before it parses the line.
//! The head that causes a handover is also escaped. Later heads of the same connection are read by
//! hyper, which rejects these bytes, as does `h2`. Percent-encoding does not change the meaning of
//! the target (RFC 3986, section 2.1). Harmful bytes are rejected: control characters, spaces, DEL
//! and the backslash.
//!
//! Bytes that hyper reads itself are not escaped, because they may be a body that looks like a
//! head, and escaping would change the length of the body.
//!
//! As a result, the fast path and hyper agree on every target. A property test checks this
//! agreement. The rules of robots.txt are applied to the same target that is forwarded.

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HeaderMap, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{Method, Request, Uri};

use crate::edge::connection::settings::{self, EdgeLimits};

/// Maximum number of fields in a head on the fast path; hyper handles heads with more fields.
const FIELDS: usize = 64;

const ADDED: usize = 4;

/// Parses a request if the bytes are exactly one complete head that the fast path can handle.
/// Otherwise, returns the bytes for the handover to hyper. The target in the returned bytes is
/// escaped if necessary, because hyper would reject an unescaped target.
pub(crate) fn parse(bytes: Bytes, limits: &EdgeLimits) -> Result<Request<()>, Bytes> {
    let fits = bytes.len() <= limits.head_bytes;
    let parse_bytes = |bytes: &Bytes| if fits { parse_bytes(bytes) } else { None };
    if let Some(request) = parse_bytes(&bytes) {
        return Ok(request);
    }
    match escaped(&bytes) {
        Some(escaped) => parse_bytes(&escaped).ok_or(escaped),
        None => Err(bytes),
    }
}

fn parse_bytes(bytes: &Bytes) -> Option<Request<()>> {
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS];
    let head = settings::parse_whole(bytes, &mut fields)?;
    let method = match head.method {
        Some("GET") => Method::GET,
        Some("HEAD") => Method::HEAD,
        _ => return None,
    };
    if head.version != Some(1) {
        return None;
    }
    let target = head.path.filter(|target| target.starts_with('/'))?;
    let uri = Uri::from_maybe_shared(bytes.slice_ref(target.as_bytes())).ok()?;
    let mut map = HeaderMap::with_capacity(head.headers.len() + ADDED);
    for field in head.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        match name {
            // `keep-alive` concerns only the connection between client and robotsd, which is kept
            // alive anyway.
            CONNECTION if field.value.eq_ignore_ascii_case(b"keep-alive") => continue,
            // Requests with these fields have a body or change the state of the connection.
            CONNECTION | CONTENT_LENGTH | EXPECT | TE | TRAILER | TRANSFER_ENCODING | UPGRADE => return None,
            _ => {}
        }
        map.append(name, HeaderValue::from_maybe_shared(bytes.slice_ref(field.value)).ok()?);
    }
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = map;
    Some(request)
}

/// Escapes the target if the bytes begin with a complete request line. Returns `None` if nothing
/// needs escaping. The end of the head stays the same, so this parser and hyper cannot disagree
/// about where the message ends.
pub(crate) fn escaped(head: &Bytes) -> Option<Bytes> {
    let after_method = &head[memchr::memchr(b' ', head)? + 1..];
    let end = after_method.iter().position(|byte| byte.is_ascii_control() || *byte == b' ')?;
    let (target, rest) = after_method.split_at(end);
    if !target.starts_with(b"/") || !rest.starts_with(b" HTTP/1.") {
        return None;
    }
    // Non-ASCII bytes need no escaping if the whole target is valid UTF-8.
    let is_text = std::str::from_utf8(target).is_ok();
    let query = memchr::memchr(b'?', target).unwrap_or(target.len());
    let is_escaped = |(at, byte): (usize, &u8)| match byte {
        b'<' | b'>' => true,
        b'`' => at < query,
        b'"' => at > query,
        byte => !byte.is_ascii() && !is_text,
    };
    if !target.iter().enumerate().any(is_escaped) {
        return None;
    }
    let mut escaped = Vec::with_capacity(head.len() + 2 * target.len());
    escaped.extend_from_slice(&head[..head.len() - after_method.len()]);
    for (at, byte) in target.iter().enumerate() {
        if is_escaped((at, byte)) {
            let digit = |value: u8| b"0123456789ABCDEF"[usize::from(value)];
            escaped.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
        } else {
            escaped.push(*byte);
        }
    }
    escaped.extend_from_slice(rest);
    Some(escaped.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(head: &str) -> Option<Request<()>> {
        parse(Bytes::copy_from_slice(head.as_bytes()), &EdgeLimits::default()).ok()
    }

    #[test]
    fn the_fast_path_parses_plain_requests_unchanged() {
        let request =
            parsed("GET /a%2Fb?c HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nx-a:  2 \r\nConnection: keep-alive\r\n\r\n");
        let request = request.unwrap();
        assert_eq!(request.uri(), "/a%2Fb?c");
        let values: Vec<_> = request.headers().get_all("x-a").iter().map(HeaderValue::as_bytes).collect();
        assert_eq!(values, [b"1", b"2"]);
        assert_eq!(parsed("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n").unwrap().method(), Method::HEAD);
        let bytes = Bytes::from_static(b"GET / HTTP/1.1\r\nHost: h\r\nX: \xC3\xA9\r\n\r\n");
        assert!(parse(bytes, &EdgeLimits::default()).is_ok());
    }

    #[test]
    fn the_fast_path_leaves_all_other_requests_to_hyper() {
        for head in [
            "",
            "GET / HTTP/1.1\r\nHost: h\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\n\r\nG",
            "GET / HTTP/1.0\r\nHost: h\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: h\r\n\r\n",
            "get / HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET * HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\ntransfer-encoding: chunked\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, X-A\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nX : 1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nX: 1\r\n 2\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nX: \0\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ] {
            assert!(parsed(head).is_none(), "{head:?}");
        }
        let limits = EdgeLimits { head_bytes: 20, ..EdgeLimits::default() };
        assert!(parse(Bytes::from_static(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"), &limits).is_err());
    }

    fn target(target: impl AsRef<[u8]>) -> Option<String> {
        let head = [b"GET ", target.as_ref(), b" HTTP/1.1\r\nX: <\xFF>\r\n\r\n"].concat();
        let escaped = escaped(&head.into())?;
        let target = escaped.strip_prefix(b"GET ")?.strip_suffix(b" HTTP/1.1\r\nX: <\xFF>\r\n\r\n")?;
        Some(String::from_utf8(target.to_vec()).unwrap())
    }

    #[test]
    fn bytes_that_hyper_rejects_in_a_target_are_percent_encoded() {
        for (given, want) in [
            (&b"/q?x=caf\xe9"[..], "/q?x=caf%E9"),
            (b"/caf\xe9/\xc3\xa9", "/caf%E9/%C3%A9"),
            (b"/a<b>`c`?d=<e>\"`", "/a%3Cb%3E%60c%60?d=%3Ce%3E%22`"),
            (b"/\x80\xff", "/%80%FF"),
            (b"/?\xff?\"", "/?%FF?%22"),
            (b"/<\\", "/%3C\\"),
        ] {
            assert_eq!(target(given).as_deref(), Some(want), "{}", given.escape_ascii());
        }
    }

    #[test]
    fn targets_that_hyper_accepts_or_that_are_invalid_stay_unchanged() {
        for given in [
            "/",
            "/caf\u{e9}?\u{e9}",
            "/a\"b{}|^\\~",
            "/?`{}|^\\~'",
            "/%3C",
            "/#",
            "*",
            "http://h/<",
            "//\x7f<",
            "/ <",
            "/\t<",
            "",
        ] {
            assert_eq!(target(given), None, "{given:?}");
        }
        for head in ["GET /<\r\n", "GET /< HTTP/2.0\r\n\r\n", "GET\r\n\r\n", "GET  /< HTTP/1.1", "GET /<", ""] {
            assert_eq!(escaped(&Bytes::from_static(head.as_bytes())), None, "{head:?}");
        }
    }

    /// Fails if a later version of the http crate accepts more or fewer bytes than the current
    /// version.
    #[test]
    fn exactly_the_bytes_that_the_uri_type_rejects_are_escaped() {
        for (before, after) in [("/a", "b"), ("/a?x=", "b")] {
            for byte in (0x21..=0xFF).filter(|byte| *byte != 0x7F) {
                let given = [before.as_bytes(), &[byte], after.as_bytes()].concat();
                let is_taken = Uri::from_maybe_shared(Bytes::from(given.clone())).is_ok();
                assert_eq!(target(&given).is_none(), is_taken, "{}", given.escape_ascii());
            }
        }
    }
}
