//! The head of a request of the fast path.

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Uri};

use crate::edge::connection::parser_policy;
use crate::edge::http1_fast::target_escape::escaped;
use crate::edge::limits::EdgeLimits;

/// Fields of a head that the fast path takes; one with more is hyper's.
const FIELDS: usize = 64;

/// Fields that the edge adds.
const ADDED: usize = 4;

/// A request, if the octets are the whole head of one for the fast path and nothing more; a doubtful one is not. Else the
/// octets, escaped where they have to be: hyper takes no more in a target than the fast path.
pub(crate) fn parse(octets: Bytes, limits: &EdgeLimits) -> Result<Request<()>, Bytes> {
    let fits = octets.len() <= limits.head_bytes;
    let parse_octets = |octets: &Bytes| if fits { parse_octets(octets) } else { None };
    if let Some(request) = parse_octets(&octets) {
        return Ok(request);
    }
    match escaped(&octets) {
        Some(escaped) => parse_octets(&escaped).ok_or(escaped),
        None => Err(octets),
    }
}

fn parse_octets(octets: &Bytes) -> Option<Request<()>> {
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS];
    let head = parser_policy::parse_whole(octets, &mut fields)?;
    let method = match head.method {
        Some("GET") => Method::GET,
        Some("HEAD") => Method::HEAD,
        _ => return None,
    };
    if head.version != Some(1) {
        return None;
    }
    let target = head.path.filter(|target| target.starts_with('/'))?;
    let uri = Uri::from_maybe_shared(octets.slice_ref(target.as_bytes())).ok()?;
    let mut map = HeaderMap::with_capacity(head.headers.len() + ADDED);
    for field in head.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        if is_delicate(&name) {
            return None;
        }
        if name == CONNECTION {
            // Meant for us, and done.
            match field.value.eq_ignore_ascii_case(b"keep-alive") {
                true => continue,
                false => return None,
            }
        }
        map.append(name, HeaderValue::from_maybe_shared(octets.slice_ref(field.value)).ok()?);
    }
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = map;
    Some(request)
}

/// Whether a field concerns bodies, or what becomes of the connection.
fn is_delicate(name: &HeaderName) -> bool {
    use http::header::{CONTENT_LENGTH, EXPECT, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
    matches!(*name, CONTENT_LENGTH | TRANSFER_ENCODING | UPGRADE | EXPECT | TE | TRAILER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(head: &str) -> Option<Request<()>> {
        parse(Bytes::copy_from_slice(head.as_bytes()), &EdgeLimits::default()).ok()
    }

    #[test]
    fn plain_requests_are_taken_as_they_are() {
        let request =
            parsed("GET /a%2Fb?c HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nx-a:  2 \r\nConnection: keep-alive\r\n\r\n");
        let request = request.unwrap();
        assert_eq!(request.uri(), "/a%2Fb?c");
        let values: Vec<_> = request.headers().get_all("x-a").iter().map(HeaderValue::as_bytes).collect();
        assert_eq!(values, [b"1", b"2"]);
        assert_eq!(parsed("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n").unwrap().method(), Method::HEAD);
        let octets = Bytes::from_static(b"GET / HTTP/1.1\r\nHost: h\r\nX: \xC3\xA9\r\n\r\n");
        assert!(parse(octets, &EdgeLimits::default()).is_ok());
    }

    #[test]
    fn all_else_is_left_to_others() {
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
}
