//! Tests of TLS on real sockets, with certificates generated for each test.

mod certificates;
mod handshakes;

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, SanType, date_time_ymd};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{
    ALL_VERSIONS, ClientConfig, ClientConnection, HandshakeKind, SupportedProtocolVersion, version,
};
use tower::service_fn;

use super::*;
use crate::edge::connection_error::ConnectionErrorKind;
use crate::edge::connection_state::ConnectionState;
use crate::edge::test_edge::ServedEdge;
use crate::edge::tests::echo;
use crate::edge::tests::shutdown::{LateAnswers, little_room, read_late};
use crate::edge::{EdgeLimits, ListenerSettings};
use crate::http_common::RequestBody;
use crate::http_common::test_authority::TestAuthority;
use crate::http_common::test_peer::{Http2Client, Raw, RawMessage, listen, shared, soon, wait_until};
use crate::socket::Socket;

const MOMENT: Duration = Duration::from_millis(150);
const SETTLING: Duration = Duration::from_millis(1);

impl TestAuthority {
    fn write(&self, file: &str, names: &[&str]) -> PairPaths {
        self.write_with(file, names, &KeyPair::generate().unwrap(), |_| {})
    }

    fn write_with(
        &self,
        file: &str,
        names: &[&str],
        key: &KeyPair,
        change: impl FnOnce(&mut CertificateParams),
    ) -> PairPaths {
        let certificate = self.sign(names, key, |params| {
            params.subject_alt_names.push(SanType::IpAddress(IpAddr::from([127, 0, 0, 1])));
            change(params);
        });
        let path = |end: &str| self.folder.path().join(format!("{file}.{end}"));
        let paths = PairPaths { chain: path("pem"), key: path("key") };
        put(&paths.chain, certificate.pem().as_bytes());
        put(&paths.key, key.serialize_pem().as_bytes());
        paths
    }

    /// Creates a client that trusts this authority and offers these protocols.
    fn client(&self, alpn: &[&[u8]]) -> Arc<ClientConfig> {
        let mut config = self.client_of(pair::provider(), ALL_VERSIONS);
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Arc::new(config)
    }

    /// Creates a client with these TLS versions and this provider. Trusts this authority.
    fn client_of(&self, provider: CryptoProvider, versions: &[&'static SupportedProtocolVersion]) -> ClientConfig {
        let config = ClientConfig::builder_with_provider(Arc::new(provider)).with_protocol_versions(versions).unwrap();
        config.with_root_certificates(self.roots()).with_no_client_auth()
    }
}

/// Replaces a file atomically, as certificate tools do.
fn put(path: &Path, bytes: &[u8]) {
    let new = path.with_extension("new");
    std::fs::write(&new, bytes).unwrap();
    std::fs::set_permissions(&new, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::rename(&new, path).unwrap();
}

fn live(pairs: &[&PairPaths]) -> LiveCertificates {
    let read = |paths: &&PairPaths| ((*paths).clone(), CertificatePair::read(paths).unwrap());
    LiveCertificates::new(pairs.iter().map(read).collect()).unwrap()
}

fn secure_on(listener: TcpListener, certificates: LiveCertificates, limits: EdgeLimits) -> ServedEdge {
    let tls = Some(TlsAcceptor::new(certificates, limits.handshakes, limits.tls_handshake));
    let settings = ListenerSettings { tls, ..ListenerSettings::default() };
    ServedEdge::start_on(listener, settings, limits, service_fn(answer))
}

fn secure_with(certificates: LiveCertificates, limits: EdgeLimits) -> ServedEdge {
    secure_on(listen().0, certificates, limits)
}

impl ServedEdge {
    async fn connect(&self, client: &Arc<ClientConfig>, name: &str) -> std::io::Result<TlsStream<TcpStream>> {
        let socket = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from(name.to_owned()).unwrap();
        soon(TlsConnector::from(Arc::clone(client)).connect(name, socket)).await
    }

    async fn raw(&self, client: &Arc<ClientConfig>, name: &str) -> Raw<TlsStream<TcpStream>> {
        Raw::new(self.connect(client, name).await.unwrap())
    }

    /// Opens this number of connections. Sends a request on each and waits for its answer.
    async fn kept_secured(&self, count: usize, client: &Arc<ClientConfig>) -> Vec<Raw<TlsStream<TcpStream>>> {
        let mut kept = Vec::new();
        for _ in 0..count {
            let mut other = self.raw(client, "a.test").await;
            assert_eq!(other.ask(&get("a.test")).await.status(), 200);
            kept.push(other);
        }
        kept
    }

    async fn ask_secured(&self, client: &Arc<ClientConfig>, name: &str, host: &str) -> RawMessage {
        self.raw(client, name).await.ask(&get(host)).await
    }
}

/// Starts an edge with a certificate for `a.test`.
fn secure(limits: EdgeLimits) -> (TestAuthority, ServedEdge) {
    let authority = TestAuthority::new("ours");
    let edge = secure_with(live(&[&authority.write("a", &["a.test"])]), limits);
    (authority, edge)
}

/// Size of an answer that fits into a TLS buffer and an HTTP/2 client's initial window.
const TAIL: usize = 60_000;

fn get(host: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

/// Answers with the scheme of the request, with a body larger than all buffers, or with an echo.
async fn answer(request: Request<RequestBody>) -> Result<Response<Full<Bytes>>, Infallible> {
    if let Some(response) = echo(&request, b"hello") {
        return Ok(response);
    }
    let scheme = request.headers()["x-forwarded-proto"].to_str().unwrap().to_owned();
    let body = match request.uri().path() {
        "/large" => vec![b'l'; 32 << 20],
        "/tail" => vec![b'l'; TAIL],
        _ => scheme.into_bytes(),
    };
    Ok(Response::new(Full::from(body)))
}

fn leaf(stream: &TlsStream<TcpStream>) -> CertificateDer<'static> {
    stream.get_ref().1.peer_certificates().unwrap()[0].clone()
}

#[tokio::test]
async fn http_2_is_used_if_and_only_if_alpn_negotiates_it() {
    let (authority, edge) = secure(EdgeLimits::default());
    for (alpn, agreed) in [
        (&[][..], None),
        (&[&b"http/1.1"[..]][..], Some(&b"http/1.1"[..])),
        (&[b"http/1.1", b"h2"], Some(b"h2")),
        (&[b"h2"], Some(b"h2")),
    ] {
        let stream = edge.connect(&authority.client(alpn), "a.test").await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), agreed);
        let is_http_2 = agreed == Some(b"h2");
        // The client uses HTTP/2, regardless of what ALPN has negotiated.
        if is_http_2 {
            let response = Http2Client::over(stream).await.ask(Request::get("https://a.test/")).await.unwrap();
            assert_eq!((response.status().as_u16(), &**response.body()), (200, &b"https"[..]), "{alpn:?}");
        } else {
            // Here, the client sends the same bytes in several pieces.
            let mut pieces = edge.raw(&authority.client(alpn), "a.test").await;
            for piece in ["PRI", " * HTTP/2.0\r\n\r\nSM\r\n", "\r\n\0\0\0\x04\0\0\0\0\0"] {
                pieces.try_send(piece).await;
                tokio::task::yield_now().await;
            }
            let mut whole = Raw::new(stream);
            whole.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
            for client in [&mut whole, &mut pieces] {
                let answer = client.rest().await;
                assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{alpn:?}: {answer:?}");
            }
            let answer = edge.ask_secured(&authority.client(alpn), "a.test", "a.test").await;
            assert_eq!((answer.status(), &*answer.body), (200, "https"), "{alpn:?}");
        }
    }
    // The client sends no preface, only a part of it, or a preface with a wrong end (RFC 9113,
    // section 3.4).
    let edge = secure_with(live(&[&authority.write("b", &["a.test"])]), EdgeLimits::default());
    for bytes in [
        &get("a.test")[..],
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r_",
        "PRI * HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "INVALID CONNECTION PREFACE\r\n\r\n",
    ] {
        let mut client = edge.raw(&authority.client(&[b"h2"]), "a.test").await;
        client.send(bytes).await;
        let _ = soon(async { client.finish().await }).await;
        let answer = client.rest().await;
        assert!(!answer.contains("HTTP"), "{bytes:?}: {answer:?}");
        // An empty SETTINGS frame, and a GOAWAY frame with PROTOCOL_ERROR.
        let goaway = "\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01";
        assert_eq!(answer, goaway, "{bytes:?}");
    }
    let want = "TLS negotiated HTTP/2, but the client did not send the HTTP/2 preface";
    assert_eq!(edge.reports(ConnectionErrorKind::Protocol).await, want);
    let nothing_in_common = edge.connect(&authority.client(&[b"acme-tls/1"]), "a.test").await;
    assert!(nothing_in_common.is_err());
    edge.reports(ConnectionErrorKind::Handshake).await;
}

#[tokio::test]
async fn a_connection_with_a_response_buffered_in_tls_is_not_closed_for_others() {
    let authority = TestAuthority::new("ours");
    let upload = b"POST /tail HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n\r\nab";
    let stream = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\
        \0\0\x11\x01\x05\0\0\0\x01\x82\x87\x04\x05/tail\x01\x06a.test";
    for (protocol, request) in [(&b"http/1.1"[..], &upload[..]), (b"h2", stream)] {
        // The socket buffers are small, so most of the answer waits in the TLS session.
        let listening = TcpSocket::new_v4().unwrap();
        listening.set_send_buffer_size(4096).unwrap();
        listening.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let limits = EdgeLimits { connections: 2, ..EdgeLimits::default() };
        let certificates = live(&[&authority.write("a", &["a.test"])]);
        let edge = secure_on(listening.listen(16).unwrap(), certificates, limits);
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let socket = soon(socket.connect(edge.address)).await.unwrap();
        let name = ServerName::try_from("a.test").unwrap();
        let connecting = TlsConnector::from(authority.client(&[protocol])).connect(name, socket);
        let mut slow = Raw::new(soon(connecting).await.unwrap());
        slow.send(request).await;
        slow.some().await;
        let _others = edge.kept_secured(4, &authority.client(&[])).await;
        edge.reports(ConnectionErrorKind::Recycled).await;
        let mut taken = 0;
        let taking = async {
            while slow.heard(b"l").await {
                taken += 1;
                if taken == TAIL {
                    break;
                }
            }
        };
        soon(taking).await;
        assert_eq!(taken, TAIL, "{}", protocol.escape_ascii());
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_its_response_is_disconnected() {
    let (authority, edge) = secure(EdgeLimits { body_idle: MOMENT, ..EdgeLimits::default() });
    let mut client = edge.raw(&authority.client(&[]), "a.test").await;
    client.send("GET /large HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let message = edge.reports(ConnectionErrorKind::Broken).await;
    assert!(message.contains("does not read its response"), "{message}");
}

#[tokio::test]
async fn rfc_9112_9_6_bytes_sent_after_a_goaway_do_not_destroy_pending_responses() {
    let authority = TestAuthority::new("ours");
    let certificates = live(&[&authority.write("a", &["a.test"])]);
    let settings = ListenerSettings {
        tls: Some(TlsAcceptor::new(certificates, NonZeroUsize::MIN, Duration::from_secs(20))),
        ..ListenerSettings::default()
    };
    let answers = LateAnswers::new();
    let edge = ServedEdge::start_behind(settings, EdgeLimits::default(), answers.service());
    let name = ServerName::try_from("a.test").unwrap();
    let connecting = TlsConnector::from(authority.client(&[b"h2"])).connect(name, little_room(edge.address).await);
    let client = Raw::new(soon(connecting).await.unwrap());
    read_late(edge, answers, client).await;
}

#[tokio::test]
async fn a_websocket_passes_through() {
    let (authority, edge) = secure(EdgeLimits::default());
    let mut client = edge.raw(&authority.client(&[]), "a.test").await;
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n").await;
    assert!(client.until(b"\r\n\r\n").await.starts_with("HTTP/1.1 101 "));
    assert_eq!(client.exactly(5).await, "hello");
    for said in ["one", &"x".repeat(32 << 10), "two"] {
        client.send(said).await;
        assert_eq!(client.exactly(said.len()).await, said);
    }
    client.finish().await;
    assert_eq!(client.rest().await, "");
}

#[tokio::test]
async fn a_client_that_leaves_without_close_notify_is_not_reported_as_an_error() {
    let (authority, mut edge) = secure(EdgeLimits::default());
    drop(edge.kept_secured(1, &authority.client(&[])).await);
    let mut stream = edge.connect(&authority.client(&[]), "a.test").await.unwrap();
    stream.get_mut().0.shutdown().await.unwrap();
    let mut rest = Vec::new();
    let _ = soon(stream.read_to_end(&mut rest)).await;
    edge.begin_shutdown();
    soon(edge.served).await.unwrap();
    let reported = edge.reported.lock();
    assert!(!reported.iter().any(|error| error.kind == ConnectionErrorKind::Broken), "{reported:?}");
}

#[tokio::test]
async fn a_close_notify_to_a_disconnected_client_causes_no_error() {
    let authority = TestAuthority::new("ours");
    let tls = TlsAcceptor::new(live(&[&authority.write("a", &["a.test"])]), NonZeroUsize::MIN, Duration::from_secs(20));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let connecting = async {
        let socket = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let connector = TlsConnector::from(authority.client(&[]));
        connector.connect(ServerName::try_from("a.test").unwrap(), socket).await.unwrap()
    };
    let accepting = async {
        let (socket, _) = listener.accept().await.unwrap();
        let activity = Arc::new(ConnectionState::new(&EdgeLimits::default()));
        tls.secure(socket, std::future::pending(), &activity, || {}).await.unwrap().unwrap()
    };
    let (client, (stream, _)) = soon(async { tokio::join!(connecting, accepting) }).await;
    // The client closes the connection without a TLS shutdown. Its system answers the next byte
    // from the server with a reset.
    socket2::SockRef::from(client.get_ref().0).set_linger(Some(Duration::ZERO)).unwrap();
    drop(client);
    let mut transport = Socket::Tls(Box::new(stream.into()));
    let _ = soon(transport.read(&mut [0])).await;
    soon(transport.shutdown()).await.unwrap();
}
