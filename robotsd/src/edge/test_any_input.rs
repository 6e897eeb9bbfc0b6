//! Fuzzing entry points. Each one checks properties that must hold for any bytes from clients or
//! proxies.

use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use http::header::{FORWARDED, HeaderMap, HeaderValue};
use http::{HeaderName, Method, Request};
use tower_robots::internals::ForwardedWay;

use super::proxy_protocol::{self, HeaderProgress};
use crate::edge::connection::settings::EdgeLimits;
use crate::edge::http1_fast::request;
use crate::edge::request::host;
use crate::edge::request::trusted::Trusted;
use crate::edge::spop::frames::{self, HaproxyFrame, MAX_FRAME_BYTES};
use crate::edge::spop::{Arguments, VariableList};
use crate::edge::tls::pair::Validity;
use crate::http_common::fields;
use crate::http_common::fields::{X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PROTO};

/// Checks the head of a request on the fast path. An accepted head must be a simple request.
/// Writing the request and parsing it again must not change it.
pub fn request_head(bytes: &[u8]) {
    let limits = EdgeLimits::default();
    let Ok(taken) = request::parse(Bytes::copy_from_slice(bytes), &limits) else { return };
    assert!(matches!(*taken.method(), Method::GET | Method::HEAD), "a method the fast path does not know");
    assert!(taken.uri().path().starts_with('/') && taken.uri().authority().is_none(), "a target that is not a path");
    let written = Bytes::from(written(&taken));
    if written.len() <= limits.head_bytes {
        let again = request::parse(written, &limits);
        let is_same = again.is_ok_and(|again| again.uri() == taken.uri() && again.headers() == taken.headers());
        assert!(is_same, "two readings of the same request");
    }
}

fn written(request: &Request<()>) -> Vec<u8> {
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method(), request.uri()).into_bytes();
    fields::write(&mut head, request.headers(), None);
    head
}

/// Checks the forwarded fields of a trusted proxy, given one per line. The list of addresses must
/// be limited and end with the peer, and the host must be valid.
pub fn forwarded_fields(bytes: &[u8]) {
    const NAMES: [HeaderName; 4] = [X_FORWARDED_FOR, FORWARDED, X_FORWARDED_PROTO, X_FORWARDED_HOST];
    let peer = SocketAddr::from(([10, 0, 0, 1], 4711));
    let networks = ["10.0.0.0/8", "2001:db8::/32"].map(|network| network.parse());
    let trusted = Trusted { networks: networks.into_iter().flatten().collect(), agent_header: None };
    let mut fields = HeaderMap::new();
    for (at, line) in bytes.split(|byte| *byte == b'\n').take(8).enumerate() {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            fields.append(NAMES[at % NAMES.len()].clone(), value);
        }
    }
    let read = trusted.read(&fields, peer);
    let forwarded_for =
        read.forwarded_for.as_ref().and_then(|forwarded_for| forwarded_for.to_str().ok()).unwrap_or_default();
    assert!((1..=64).contains(&forwarded_for.split(", ").count()), "a path of unlimited length");
    assert!(forwarded_for.ends_with("10.0.0.1"), "a path that does not end with the peer");
    assert!(read.host.is_none_or(|host| host::is_valid(host.as_bytes())), "an invalid host");
}

/// Checks that the entry of the client's own proxy is found, whatever other entries the client has
/// sent.
pub fn hops(bytes: &[u8]) {
    let after = |line: &[u8], entry: &str| HeaderValue::from_bytes(&[line, b",", entry.as_bytes()].concat());
    let [peer, proxy] = [[10, 0, 0, 1], [192, 0, 2, 1]].map(|address| SocketAddr::from((address, 0)));
    if let (Ok(list), Ok(elements)) = (after(bytes, "192.0.2.1"), after(bytes, "for=192.0.2.1;host=a.test")) {
        for (name, line, host) in [(X_FORWARDED_FOR, list, None), (FORWARDED, elements, Some(b"a.test".to_vec()))] {
            let fields = HeaderMap::from_iter([(name, line)]);
            let way = ForwardedWay::read(&fields, peer, |_| false);
            assert_eq!((way.hops, way.host), (vec![peer, proxy], host));
            let all = ForwardedWay::read(&fields, peer, |_| true).hops.len();
            assert!(all <= 33.min(bytes.len() + 2), "more hops than entries");
        }
    }
}

/// Checks a PROXY header. For the beginning of a header, the result must be "incomplete" or the
/// same as for the whole header. Bytes after the header must not change the result.
pub fn proxy_header(bytes: &[u8]) {
    let whole = proxy_protocol::parse(bytes);
    for end in 0..bytes.len().min(256) {
        match proxy_protocol::parse(&bytes[..end]) {
            Ok(HeaderProgress::Partial) => {}
            decided => assert_eq!(decided, whole, "two readings of the same header"),
        }
    }
    if let Ok(HeaderProgress::Known { length, .. }) = whole {
        assert!((15..=16 + 65_535).contains(&length), "a header of invalid length");
        let longer = [bytes, b"GET / HTTP/1.1\r\n\r\n"].concat();
        assert_eq!(proxy_protocol::parse(&longer), whole, "bytes after the header change its meaning");
    }
}

/// Parses the dates of a DER certificate.
pub fn certificate(bytes: &[u8]) {
    if let Some(validity) = Validity::of(bytes) {
        assert_eq!(validity.last_day().len(), 10, "an invalid day");
        let _ = validity.warning(std::time::SystemTime::UNIX_EPOCH);
    }
}

/// Checks the frames of a SPOP connection, and calls `message` for the messages in them. The
/// parameters of a handshake must be within the limits, and an answer must fit into a frame.
pub(crate) fn spop_frames(bytes: &[u8], mut message: impl FnMut(Arguments<'_>, &mut VariableList)) {
    let mut left = BytesMut::from(bytes);
    let mut max_frame_size = MAX_FRAME_BYTES;
    while let Ok(Some(frame)) = frames::take(&mut left, max_frame_size) {
        match frame {
            HaproxyFrame::Hello(payload) => {
                if let Ok(agreement) = frames::agree(&payload) {
                    max_frame_size = agreement.max_frame_size;
                    assert!((256..=MAX_FRAME_BYTES).contains(&max_frame_size), "an invalid limit");
                }
            }
            HaproxyFrame::Notify { stream, frame, payload } => {
                let mut variables = VariableList::of_frame(max_frame_size);
                let mut rest = &payload[..];
                while let Some((arguments, after)) = Arguments::of_message(rest) {
                    assert!(after.len() < rest.len(), "an empty message");
                    message(arguments, &mut variables);
                    rest = after;
                }
                let mut answer = Vec::new();
                frames::push_ack(&mut answer, stream, frame, &variables);
                assert!(answer.len() <= 4 + max_frame_size, "an answer that is too big");
            }
            HaproxyFrame::Disconnect | HaproxyFrame::Unknown => {}
        }
    }
}
