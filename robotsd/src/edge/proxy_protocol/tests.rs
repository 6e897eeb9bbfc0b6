//! Tests of PROXY headers on real sockets, before HTTP and before TLS.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tower::service_fn;

use super::{AnnouncedClient, HeaderError, HeaderProgress, parse};
use crate::edge::test_edge::ServedEdge;
use crate::edge::{ConnectionErrorKind, EdgeLimits, ListenerSettings, Trusted};
use crate::http_common::test_peer::{Raw, soon, wait_until};
use crate::http_common::{ClientRequest, RequestBody};

fn version_2(command: u8, family: u8, block: &[u8]) -> Vec<u8> {
    let length = u16::try_from(block.len()).unwrap().to_be_bytes();
    [b"\r\n\r\n\0\r\nQUIT\n", &[0x20 | command, family][..], &length, block].concat()
}

/// The IPv4 addresses and the ports of source and destination. The client is 192.0.2.7.
const BLOCK_4: [u8; 12] = [192, 0, 2, 7, 198, 51, 100, 1, 0x10, 0x92, 0, 80];

fn block_6() -> Vec<u8> {
    let source: std::net::Ipv6Addr = "2001:db8::7".parse().unwrap();
    [&source.octets()[..], &[0; 16], &[0x10, 0x92, 0, 80]].concat()
}

fn known(client: &str, length: usize) -> Result<HeaderProgress, HeaderError> {
    let client = match client {
        "proxy" => AnnouncedClient::Proxy,
        "unknown" => AnnouncedClient::Unknown,
        address => AnnouncedClient::Address(address.parse().unwrap()),
    };
    Ok(HeaderProgress::Known { client, length })
}

/// Returns headers, each with the client that it contains.
fn headers() -> Vec<(Vec<u8>, &'static str)> {
    let extended = [&BLOCK_4[..], &[0x04, 0, 200], &[0; 200]].concat();
    vec![
        (b"PROXY TCP4 192.0.2.7 198.51.100.1 4242 80\r\n".to_vec(), "192.0.2.7:4242"),
        (b"PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n".to_vec(), "255.255.255.255:65535"),
        (b"PROXY TCP6 2001:db8::7 ::1 4242 0\r\n".to_vec(), "[2001:db8::7]:4242"),
        (
            b"PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n".to_vec(),
            "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535",
        ),
        (b"PROXY UNKNOWN\r\n".to_vec(), "unknown"),
        (b"PROXY UNKNOWN \xff anything at all\r\n".to_vec(), "unknown"),
        (version_2(1, 0x11, &BLOCK_4), "192.0.2.7:4242"),
        (version_2(1, 0x11, &extended), "192.0.2.7:4242"),
        (version_2(1, 0x21, &block_6()), "[2001:db8::7]:4242"),
        (version_2(0, 0x11, &BLOCK_4), "proxy"),
        (version_2(0, 0, &[]), "proxy"),
        (version_2(0, 0xff, &[0; 5]), "proxy"),
        (version_2(1, 0, &[]), "unknown"),
        (version_2(1, 0x12, &BLOCK_4), "unknown"),
        (version_2(1, 0x31, &[b'/'; 216]), "unknown"),
    ]
}

#[test]
fn headers_are_parsed_without_the_bytes_that_follow_them() {
    for (header, client) in headers() {
        let expected = known(client, header.len());
        assert_eq!(parse(&header), expected, "{}", header.escape_ascii());
        assert_eq!(parse(&[&header[..], b"GET / HTTP/1.1\r\n\r\n"].concat()), expected, "{}", header.escape_ascii());
    }
}

#[test]
fn the_parser_waits_for_the_rest_of_a_partial_header() {
    for (header, client) in headers() {
        for end in 0..header.len() {
            let progress = parse(&header[..end]);
            // If only extensions at the end are missing, the client is already known.
            let is_due =
                progress == Ok(HeaderProgress::Partial) || end >= 16 && progress == known(client, header.len());
            assert!(is_due, "{:?} of {}", progress, header[..end].escape_ascii());
        }
    }
}

#[test]
fn a_header_with_one_changed_byte_is_read_consistently_or_rejected() {
    for (header, _) in headers() {
        for at in 0..header.len() {
            for byte in [0, b'\r', b'\n', b' ', b'0', b':', header[at] ^ 1, header[at] ^ 0x80, 0xff] {
                let mut changed = header.clone();
                changed[at] = byte;
                crate::edge::test_any_input::proxy_header(&changed);
            }
        }
    }
}

#[test]
fn bytes_that_are_not_a_valid_header_are_refused_at_once() {
    let too_long = [&b"PROXY UNKNOWN "[..], &[b'x'; 93]].concat();
    assert_eq!((too_long.len(), parse(&too_long)), (107, Err(HeaderError::TooLong)));
    assert_eq!(parse(&[&too_long[..105], b"\r\n"].concat()), known("unknown", 107));
    for bytes in [&b"GET / HTTP/1.1\r\n"[..], b"P\0", b"proxy ", b"\r\n\r\nGET", b"\x16\x03\x01", b" PROXY"] {
        assert_eq!(parse(bytes), Err(HeaderError::Missing), "{}", bytes.escape_ascii());
    }
    let lines = "TCP4 192.0.2.7 198.51.100.1 4242~TCP4 192.0.2.7 198.51.100.1 4242 80 ~\
        TCP4  192.0.2.7 198.51.100.1 4242 80~TCP4 192.0.2.7 198.51.100.1 04242 80~\
        TCP4 192.0.2.7 198.51.100.1 +4242 80~TCP4 192.0.2.7 198.51.100.1 65536 80~\
        TCP4 192.0.2.7 198.51.100.1 4242 ~TCP4 192.0.2.07 198.51.100.1 4242 80~TCP4 2001:db8::7 ::1 4242 80~\
        TCP6 192.0.2.7 198.51.100.1 4242 80~TCP6 ::1%lo ::1 4242 80~TCP4 192.0.2.7\n198.51.100.1 4242 80~\
        tcp4 192.0.2.7 198.51.100.1 4242 80~UNKNOWNS";
    for line in lines.split('~').chain([""]) {
        assert_eq!(parse(format!("PROXY {line}\r\n").as_bytes()), Err(HeaderError::Line), "{line}");
    }
    for (bytes, expected) in [
        (version_2(2, 0x11, &BLOCK_4), HeaderError::Command(2)),
        (version_2(0x30, 0x11, &BLOCK_4), HeaderError::Version(3)),
        (version_2(1, 0x41, &[0; 300]), HeaderError::Family(0x41)),
        (version_2(1, 0x13, &BLOCK_4), HeaderError::Family(0x13)),
        (version_2(1, 0x11, &BLOCK_4[..11]), HeaderError::Length(11)),
        (version_2(1, 0x21, &BLOCK_4), HeaderError::Length(12)),
    ] {
        assert_eq!(parse(&bytes), Err(expected));
    }
}

/// An edge whose service answers with the address and port of the client.
fn behind(network: &str, limits: EdgeLimits) -> ServedEdge {
    let trusted = Trusted { networks: vec![network.parse().unwrap()], agent_header: None };
    let settings = ListenerSettings { proxy_protocol: true, trusted: trusted.into(), ..ListenerSettings::default() };
    let service = service_fn(|request: Request<RequestBody>| {
        let peer = ClientRequest::peer_of(request.extensions()).map(|peer| peer.address.to_string());
        let way = request.headers().get("x-forwarded-for").map(|way| way.to_str().unwrap().to_owned());
        async move {
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(format!("{} {}", peer.unwrap(), way.unwrap())))))
        }
    });
    ServedEdge::start_behind(settings, limits, service)
}

/// Connects, and sends `bytes` followed by a request.
async fn ask(edge: &ServedEdge, bytes: &[u8]) -> Raw {
    edge.sent([bytes, GET].concat()).await
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n";
const LOOPBACK: &str = "127.0.0.0/8";

#[tokio::test]
async fn the_header_determines_the_client_of_all_requests_on_the_connection() {
    let edge = behind(LOOPBACK, EdgeLimits::default());
    for (header, client) in headers() {
        let mut raw = ask(&edge, &header).await;
        let body = raw.message().await.body;
        match client {
            // The client is the proxy itself, so the forwarded fields of its request are used.
            "proxy" => assert!(body.starts_with("203.0.113.9:0 203.0.113.9, 127.0.0.1"), "{body}"),
            // The client is unknown. The proxy's address is used instead. The forwarded fields are
            // ignored, because they may come from the client.
            "unknown" => assert!(body.starts_with("127.0.0.1:") && body.ends_with(" 127.0.0.1"), "{body}"),
            address => {
                let ip = address.parse::<SocketAddr>().unwrap().ip();
                assert_eq!(body, format!("{address} {ip}"));
            }
        }
        // The header applies to all requests on the connection, including this second request.
        raw.send(GET).await;
        assert_eq!(raw.message().await.body, body);
    }
    // The header contains the address of another trusted proxy. So the forwarded fields are used as
    // if that proxy had connected directly.
    let mut chained = ask(&edge, b"PROXY TCP4 127.9.9.9 127.0.0.1 1 80\r\n").await;
    assert_eq!(chained.message().await.body, "203.0.113.9:0 203.0.113.9, 127.9.9.9");
    assert_eq!(edge.reported.lock().len(), 0);
}

#[tokio::test]
async fn a_header_may_arrive_byte_by_byte() {
    let edge = behind(LOOPBACK, EdgeLimits::default());
    for (header, client) in [
        (b"PROXY TCP4 192.0.2.7 198.51.100.1 4242 80\r\n".to_vec(), "192.0.2.7:4242 192.0.2.7"),
        (version_2(1, 0x21, &[&block_6()[..], &[4, 0, 40], &[0; 40]].concat()), "[2001:db8::7]:4242 2001:db8::7"),
    ] {
        let mut client_side = edge.client().await;
        for byte in [&header[..], GET].concat() {
            client_side.send([byte]).await;
            tokio::task::yield_now().await;
        }
        assert_eq!(client_side.message().await.body, client);
    }
    // The longest possible header.
    let longest = version_2(1, 0x11, &[&BLOCK_4[..], &vec![0; 65_535 - 12]].concat());
    assert_eq!(ask(&edge, &longest).await.message().await.body, "192.0.2.7:4242 192.0.2.7");
}

#[tokio::test]
async fn a_connection_without_a_valid_header_is_closed_without_a_response() {
    let edge = behind(LOOPBACK, EdgeLimits::default());
    let bad = [b"".to_vec(), b"PROXY TCP4 x\r\n".to_vec(), version_2(1, 0x11, &BLOCK_4[..11]), b"PROXY  ".to_vec()];
    for (number, bytes) in bad.iter().enumerate() {
        let mut client = ask(&edge, bytes).await;
        assert_eq!(client.rest().await, "", "{}", bytes.escape_ascii());
        edge.counts(ConnectionErrorKind::ProxyHeader, number as u64 + 1).await;
    }
    let first = &edge.messages()[0];
    assert!(first.starts_with("proxy-header 127.0.0.1:"), "{first}");
    assert!(first.contains("proxy_protocol = true requires"), "{first}");
    // The connection ends before its header is complete.
    let mut client = edge.sent(b"PROXY TC").await;
    client.finish().await;
    assert_eq!(client.rest().await, "");
    edge.counts(ConnectionErrorKind::ProxyHeader, 5).await;
}

#[tokio::test]
async fn only_trusted_proxies_may_connect() {
    let edge = behind("192.0.2.0/24", EdgeLimits::default());
    for number in 1..=3 {
        let mut client = edge.client().await;
        client.try_send(b"PROXY TCP4 192.0.2.7 198.51.100.1 4242 80\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
        assert_eq!(client.rest().await, "");
        edge.counts(ConnectionErrorKind::Untrusted, number).await;
    }
    assert!(edge.reported.lock()[0].detail.contains("trusted_proxies"));
}

#[tokio::test]
async fn a_listener_without_proxy_protocol_treats_a_header_as_a_bad_request() {
    let trusted = Trusted { networks: vec![LOOPBACK.parse().unwrap()], agent_header: None };
    let settings = ListenerSettings { trusted: trusted.into(), ..ListenerSettings::default() };
    let service =
        service_fn(|_: Request<RequestBody>| async { Ok::<_, Infallible>(Response::new(Full::<Bytes>::default())) });
    let edge = ServedEdge::start_behind(settings, EdgeLimits::default(), service);
    for header in [&b"PROXY TCP4 192.0.2.7 198.51.100.1 4242 80\r\n"[..], &version_2(1, 0x11, &BLOCK_4)] {
        let mut client = edge.client().await;
        client.try_send([header, GET].concat()).await;
        let answer = client.rest().await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(!answer.contains(" 200 "), "{answer}");
    }
}

#[tokio::test]
async fn health_checks_are_not_reported_as_errors() {
    let edge = behind(LOOPBACK, EdgeLimits::default());
    let headers: [fn(SocketAddr) -> Vec<u8>; 4] = [
        |_| Vec::new(),
        |_| version_2(0, 0, &[]),
        |_| b"PROXY UNKNOWN\r\n".to_vec(),
        |own| format!("PROXY TCP4 127.0.0.1 127.0.0.1 {} 80\r\n", own.port()).into_bytes(),
    ];
    for header in headers {
        for linger in [None, Some(Duration::ZERO)] {
            let client = tokio::net::TcpStream::connect(edge.address).await.unwrap();
            let bytes = header(client.local_addr().unwrap());
            socket2::SockRef::from(&client).set_linger(linger).unwrap();
            soon(client.writable()).await.unwrap();
            assert_eq!(client.try_write(&bytes).unwrap(), bytes.len());
        }
    }
    // When this request has been served, the other connections have ended, too.
    assert_eq!(ask(&edge, b"PROXY UNKNOWN\r\n").await.message().await.status(), 200);
    wait_until(|| edge.edge.traffic().open <= 1).await;
    assert_eq!(edge.messages(), Vec::<String>::new());
}

#[tokio::test]
async fn a_proxy_header_has_the_same_deadlines_as_a_request_head() {
    const MOMENT: Duration = Duration::from_millis(150);
    let limits = EdgeLimits { first_byte: MOMENT, header_read: MOMENT, ..EdgeLimits::default() };
    let edge = behind(LOOPBACK, limits);
    for bytes in [b"".to_vec(), b"PROXY TCP4 ".to_vec(), version_2(1, 0x11, &[0; 500])[..400].to_vec()] {
        let mut client = edge.sent(bytes).await;
        assert_eq!(client.rest().await, "");
    }
    edge.counts(ConnectionErrorKind::Slow, 3).await;
}

#[tokio::test]
async fn silent_connections_are_closed_to_make_room_for_new_clients() {
    let edge = behind(LOOPBACK, EdgeLimits { connections: 8, ..EdgeLimits::default() });
    let mut silent = Vec::new();
    for number in 0..64 {
        let mut client = edge.client().await;
        if number % 2 == 0 {
            client.try_send(b"\r\n\r\n\0\r\nQUIT").await;
        }
        silent.push(client);
    }
    for _ in 0..8 {
        let mut client = ask(&edge, b"PROXY TCP4 192.0.2.7 198.51.100.1 4242 80\r\n").await;
        assert_eq!(client.message().await.body, "192.0.2.7:4242 192.0.2.7");
    }
}

#[tokio::test]
async fn a_connection_that_was_opened_before_a_shutdown_is_served() {
    let mut edge = behind(LOOPBACK, EdgeLimits { greeting: Duration::from_secs(60), ..EdgeLimits::default() });
    let mut client = edge.client().await;
    edge.begin_shutdown();
    edge.stops_listening().await;
    client.send([b"PROXY TCP4 192.0.2.7 198.51.100.1 4242 80\r\n", GET].concat()).await;
    assert_eq!(client.message().await.body, "192.0.2.7:4242 192.0.2.7");
}
