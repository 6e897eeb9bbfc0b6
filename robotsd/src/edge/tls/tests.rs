//! TLS on real sockets, with certificates made for each question.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, PKCS_ED25519, SanType, date_time_ymd};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, version};
use tower::service_fn;

use super::*;
use crate::edge::connection::client_socket::ClientSocket;
use crate::edge::connection_error::ConnectionErrorKind;
use crate::edge::connection_state::state::ConnectionState;
use crate::edge::raw::{Raw, RawMessage, soon};
use crate::edge::{ConnectionError, Edge, EdgeLimits, ListenerSettings, RequestBody, Tunnel, WebSocket};

const MOMENT: Duration = Duration::from_millis(150);
const SETTLING: Duration = Duration::from_millis(1);

/// Who signs the certificates, and the folder they are kept in.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    folder: TempDir,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap().der().clone();
        Self { issuer: Issuer::new(params, key), certificate, folder: tempfile::tempdir().unwrap() }
    }

    /// Writes a pair for these names under a name of its own.
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
        let mut params = CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
        params.subject_alt_names.push(SanType::IpAddress(IpAddr::from([127, 0, 0, 1])));
        change(&mut params);
        let certificate = params.signed_by(key, &self.issuer).unwrap();
        let paths = self.paths(file);
        put(&paths.chain, certificate.pem().as_bytes());
        put(&paths.key, key.serialize_pem().as_bytes());
        paths
    }

    fn paths(&self, file: &str) -> PairPaths {
        let path = |end: &str| self.folder.path().join(format!("{file}.{end}"));
        PairPaths { chain: path("pem"), key: path("key") }
    }

    /// A client that trusts this authority and offers these protocols.
    fn client(&self, alpn: &[&[u8]]) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(pair::provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Arc::new(config)
    }
}

/// Replaces a file as tools do: whole or not at all.
fn put(path: &Path, octets: &[u8]) {
    let new = path.with_extension("new");
    std::fs::write(&new, octets).unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&new, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::rename(&new, path).unwrap();
}

fn live(pairs: &[&PairPaths]) -> LiveCertificates {
    let read = |paths: &&PairPaths| ((*paths).clone(), CertificatePair::read(paths).unwrap());
    LiveCertificates::new(pairs.iter().map(read).collect()).unwrap()
}

struct Secure {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
    troubles: Arc<Mutex<Vec<(ConnectionErrorKind, String)>>>,
}

impl Secure {
    async fn start(certificates: LiveCertificates, limits: EdgeLimits) -> Self {
        Self::start_on(TcpListener::bind("127.0.0.1:0").await.unwrap(), certificates, limits)
    }

    fn start_on(listener: TcpListener, certificates: LiveCertificates, limits: EdgeLimits) -> Self {
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let troubles = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&troubles);
        let on_error =
            move |trouble: &ConnectionError| told.lock().unwrap().push((trouble.kind, trouble.detail.clone()));
        let tls = Some(TlsAcceptor::new(certificates, limits.handshakes, limits.tls_handshake));
        let entrance = ListenerSettings { tls, ..ListenerSettings::default() };
        let served = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            Edge::new(limits, on_error, None).serve(listener, entrance, service_fn(answer), stopped).await;
        });
        Self { address, stop: Some(stop), served, troubles }
    }

    async fn connect(&self, client: &Arc<ClientConfig>, name: &str) -> std::io::Result<TlsStream<TcpStream>> {
        let socket = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from(name.to_owned()).unwrap();
        soon(TlsConnector::from(Arc::clone(client)).connect(name, socket)).await
    }

    async fn raw(&self, client: &Arc<ClientConfig>, name: &str) -> Raw<TlsStream<TcpStream>> {
        Raw::new(self.connect(client, name).await.unwrap())
    }

    async fn ask(&self, client: &Arc<ClientConfig>, name: &str, host: &str) -> RawMessage {
        self.raw(client, name).await.ask(&get(host)).await
    }

    /// Waits for trouble and what is said about it.
    async fn tells(&self, kind: ConnectionErrorKind) -> String {
        soon(async {
            loop {
                let told = self.troubles.lock().unwrap().iter().find(|(told, _)| *told == kind).cloned();
                match told {
                    Some((_, detail)) => return detail,
                    None => tokio::task::yield_now().await,
                }
            }
        })
        .await
    }
}

/// Less than a session of TLS keeps of what has been written, and than an HTTP/2 client takes without a word.
const TAIL: usize = 60_000;

fn get(host: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

/// Answers with the scheme it was told, with more than fits anywhere, or with a WebSocket whose other end echoes.
async fn answer(request: Request<RequestBody>) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.extensions().get::<WebSocket>().is_some() {
        let (near, far) = tokio::io::duplex(1024);
        tokio::spawn(async move {
            let (mut read, mut write) = tokio::io::split(far);
            tokio::io::copy(&mut read, &mut write).await
        });
        let mut response = Response::new(Full::default());
        *response.status_mut() = http::StatusCode::SWITCHING_PROTOCOLS;
        response.extensions_mut().insert(Tunnel::new(near, Bytes::from_static(b"hello")));
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
async fn http_2_is_spoken_where_it_is_agreed_on_and_nowhere_else() {
    let authority = Authority::new();
    let edge = Secure::start(live(&[&authority.write("a", &["a.test"])]), EdgeLimits::default()).await;
    for (alpn, agreed) in [
        (&[][..], None),
        (&[&b"http/1.1"[..]][..], Some(&b"http/1.1"[..])),
        (&[b"http/1.1", b"h2"], Some(b"h2")),
        (&[b"h2"], Some(b"h2")),
    ] {
        let stream = edge.connect(&authority.client(alpn), "a.test").await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), agreed);
        let is_http_2 = agreed == Some(b"h2");
        // HTTP/2, whatever has been agreed on.
        if is_http_2 {
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
            tokio::spawn(connection);
            let request = Request::get("https://a.test/").body(Empty::<Bytes>::new()).unwrap();
            let response = soon(sender.send_request(request)).await.unwrap();
            assert_eq!(response.status(), 200, "{alpn:?}");
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "https");
        } else {
            // In one piece and in several.
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
            let answer = edge.ask(&authority.client(alpn), "a.test", "a.test").await;
            assert_eq!((answer.status(), &*answer.body), (200, "https"), "{alpn:?}");
        }
    }
    // No preface, part of one, and one that ends otherwise (RFC 9113, section 3.4).
    let edge = Secure::start(live(&[&authority.write("b", &["a.test"])]), EdgeLimits::default()).await;
    for octets in [
        &get("a.test")[..],
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r_",
        "PRI * HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "INVALID CONNECTION PREFACE\r\n\r\n",
    ] {
        let mut client = edge.raw(&authority.client(&[b"h2"]), "a.test").await;
        client.send(octets).await;
        let _ = soon(async { client.finish().await }).await;
        let answer = client.rest().await;
        assert!(!answer.contains("HTTP"), "{octets:?}: {answer:?}");
        // An empty SETTINGS, and a GOAWAY with PROTOCOL_ERROR.
        let goaway = "\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01";
        assert_eq!(answer, goaway, "{octets:?}");
    }
    assert_eq!(edge.tells(ConnectionErrorKind::Protocol).await, "no preface of HTTP/2, which was agreed on");
    let nothing_in_common = edge.connect(&authority.client(&[b"acme-tls/1"]), "a.test").await;
    assert!(nothing_in_common.is_err());
    edge.tells(ConnectionErrorKind::Handshake).await;
}

#[tokio::test]
async fn each_name_is_shown_its_certificate_and_others_the_first() {
    let authority = Authority::new();
    let [a, b, c] = [("a", "a.test"), ("b", "*.b.test"), ("c", "x.b.test")].map(|(f, n)| authority.write(f, &[n]));
    let edge = Secure::start(live(&[&a, &b, &c]), EdgeLimits::default()).await;
    let client = authority.client(&[]);
    for (name, paths) in [
        ("a.test", &a),
        ("A.TEST", &a),
        ("y.b.test", &b),
        ("x.b.test", &c),
        // No name at all.
        ("127.0.0.1", &a),
    ] {
        let stream = edge.connect(&client, name).await.unwrap();
        assert_eq!(leaf(&stream), CertificatePair::read(paths).unwrap().key.cert[0], "{name}");
    }
    // This client checks, and so finds out that there is none for it.
    let error = edge.connect(&client, "other.test").await.unwrap_err().to_string();
    assert!(error.contains("a.test"), "{error}");
}

#[tokio::test]
async fn of_two_keys_for_a_name_the_client_is_shown_the_first_it_understands() {
    let authority = Authority::new();
    let modern = authority.write_with("modern", &["a.test"], &KeyPair::generate_for(&PKCS_ED25519).unwrap(), |_| {});
    let common = authority.write("common", &["a.test"]);
    let edge = Secure::start(live(&[&modern, &common]), EdgeLimits::default()).await;
    let mut provider = pair::provider();
    for (schemes, shown) in [(3, &modern), (2, &common)] {
        // ECDSA with two hashes comes first there, then Ed25519.
        provider.signature_verification_algorithms.mapping =
            &pair::provider().signature_verification_algorithms.mapping[..schemes];
        let mut roots = RootCertStore::empty();
        roots.add(authority.certificate.clone()).unwrap();
        let client = ClientConfig::builder_with_provider(Arc::new(provider.clone()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = edge.connect(&Arc::new(client), "a.test").await.unwrap();
        assert_eq!(leaf(&stream), CertificatePair::read(shown).unwrap().key.cert[0]);
    }
}

#[tokio::test]
async fn both_versions_resume_sessions_and_older_ones_are_not_spoken() {
    let authority = Authority::new();
    let edge = Secure::start(live(&[&authority.write("a", &["a.test"])]), EdgeLimits::default()).await;
    for protocol in [&version::TLS12, &version::TLS13] {
        let mut roots = RootCertStore::empty();
        roots.add(authority.certificate.clone()).unwrap();
        let client = ClientConfig::builder_with_provider(Arc::new(pair::provider()))
            .with_protocol_versions(&[protocol])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let client = Arc::new(client);
        for kind in [HandshakeKind::Full, HandshakeKind::Resumed] {
            let stream = edge.connect(&client, "a.test").await.unwrap();
            assert_eq!(stream.get_ref().1.handshake_kind(), Some(kind));
            assert_eq!(stream.get_ref().1.protocol_version(), Some(protocol.version));
            // Reading also takes the tickets of TLS 1.3.
            assert_eq!(Raw::new(stream).ask(&get("a.test")).await.body, "https");
        }
    }
    // A hello of TLS 1.0, which nothing can be agreed with.
    let mut old = Raw::connect(edge.address).await;
    let hello = [&[3, 1][..], &[7; 32], &[0, 0, 2, 0, 0x2f, 1, 0]].concat();
    old.send([&[22, 3, 1, 0, 4 + hello.len() as u8, 1, 0, 0, hello.len() as u8], &hello[..]].concat()).await;
    assert!(!old.rest().await.contains("HTTP"));
    edge.tells(ConnectionErrorKind::Handshake).await;
}

#[tokio::test]
async fn a_request_for_a_host_of_another_certificate_is_misdirected() {
    let authority = Authority::new();
    let [a, b, c] = [
        authority.write("a", &["a.test", "also-a.test"]),
        authority.write("b", &["*.b.test"]),
        authority.write("c", &["c.b.test"]),
    ];
    let edge = Secure::start(live(&[&a, &b, &c]), EdgeLimits::default()).await;
    let client = authority.client(&[]);
    for (name, host, status) in [
        ("a.test", "A.test:443", 200),
        ("a.test", "also-a.test", 200),
        ("a.test", "x.b.test", 421),
        ("a.test", "c.b.test", 421),
        // Nobody's name would have been shown the first certificate too.
        ("a.test", "nowhere.test", 200),
        ("a.test", "10.0.0.1", 200),
        ("x.b.test", "y.b.test", 200),
        // Covered, though a connection of its own would be shown another.
        ("x.b.test", "c.b.test", 200),
        ("c.b.test", "x.b.test", 421),
        ("x.b.test", "a.test", 421),
        ("x.b.test", "nowhere.test", 421),
        ("x.b.test", "127.0.0.1", 200),
        // Whoever names none can only mean what Host says.
        ("127.0.0.1", "x.b.test", 200),
        ("127.0.0.1", "a.test", 200),
    ] {
        assert_eq!(edge.ask(&client, name, host).await.status(), status, "{name} {host}");
    }
    let stream = edge.connect(&authority.client(&[b"h2"]), "a.test").await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    for (host, status) in [("x.b.test", 421), ("a.test", 200)] {
        let request = Request::get(format!("https://{host}/")).body(Empty::<Bytes>::new()).unwrap();
        assert_eq!(soon(sender.send_request(request)).await.unwrap().status(), status, "{host}");
    }
}

#[tokio::test]
async fn requests_in_the_clear_are_told_and_nothing_else_is_said_without_tls() {
    let authority = Authority::new();
    let edge = Secure::start(live(&[&authority.write("a", &["a.test"])]), EdgeLimits::default()).await;
    for request in [&get("a.test")[..], "POST /x HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let mut client = Raw::connect(edge.address).await;
        client.send(request).await;
        client.finish().await;
        let answer = client.message().await;
        assert_eq!((answer.status(), &*answer.body), (400, "400 this port speaks TLS: use https://\n"), "{request}");
        assert_eq!(client.rest().await, "");
    }
    assert_eq!(edge.tells(ConnectionErrorKind::Handshake).await, "a request without TLS");
    for garbage in
        [&b"\x16\x03\x01\xff\xff garbage"[..], b"\x00", b"\x80\x2e\x01\x00\x02", b"\r\nGET / HTTP/1.1\r\n\r\n"]
    {
        let mut client = Raw::connect(edge.address).await;
        client.try_send(garbage).await;
        let _ = soon(async { client.finish().await }).await;
        assert!(!client.rest().await.contains("HTTP"), "{garbage:?}");
    }
    assert_eq!(edge.ask(&authority.client(&[]), "a.test", "a.test").await.status(), 200);
}

#[tokio::test]
async fn a_handshake_has_a_deadline() {
    let authority = Authority::new();
    let limits = EdgeLimits { tls_handshake: MOMENT, ..EdgeLimits::default() };
    let edge = Secure::start(live(&[&authority.write("a", &["a.test"])]), limits).await;
    for begun in [&b""[..], b"\x16", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"] {
        let mut client = Raw::connect(edge.address).await;
        client.send(begun).await;
        let opened = Instant::now();
        client.rest().await;
        assert!(opened.elapsed() < EdgeLimits::default().tls_handshake, "{begun:?}");
    }
    edge.tells(ConnectionErrorKind::Slow).await;
}

/// What a client says first.
fn client_hello(client: &Arc<ClientConfig>) -> Vec<u8> {
    let name = ServerName::try_from("a.test").unwrap();
    let mut client = ClientConnection::new(Arc::clone(client), name).unwrap();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    hello
}

#[tokio::test]
async fn a_handshake_counts_once_its_hello_is_whole() {
    let authority = Authority::new();
    let limits = EdgeLimits { handshakes: 1, ..EdgeLimits::default() };
    let edge = Secure::start(live(&[&authority.write("a", &["a.test"])]), limits).await;
    let client = authority.client(&[]);
    let hello = client_hello(&client);
    let mut slow = Vec::new();
    for length in [0, 1, 3, 5, 6, 64, hello.len() - 1] {
        let mut client = Raw::connect(edge.address).await;
        client.send(&hello[..length]).await;
        slow.push(client);
    }
    for _ in 0..3 {
        assert_eq!(edge.ask(&client, "a.test", "a.test").await.status(), 200);
    }
    assert_eq!(edge.troubles.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn a_hello_has_a_bound() {
    let authority = Authority::new();
    let edge = Secure::start(live(&[&authority.write("a", &["a.test"])]), EdgeLimits::default()).await;
    let mut client = Raw::connect(edge.address).await;
    client.send(b"\x16\x03\x01\x40\x00\x01\x00\xff\xff").await;
    client.try_send([0; 32 * 1024]).await;
    client.rest().await;
    assert_eq!(edge.tells(ConnectionErrorKind::Handshake).await, "a ClientHello of more than 16384 octets");
}

#[tokio::test]
async fn handshakes_beyond_the_limit_wait_for_one_to_end() {
    let authority = Authority::new();
    let limits = EdgeLimits { handshakes: 1, ..EdgeLimits::default() };
    let edge = Secure::start(live(&[&authority.write("a", &["a.test"])]), limits).await;
    let client = authority.client(&[]);
    let mut slow = Raw::connect(edge.address).await;
    slow.send(client_hello(&client)).await;
    slow.some().await;
    let waiting = edge.ask(&client, "a.test", "a.test");
    let ending = async {
        edge.tells(ConnectionErrorKind::Full).await;
        drop(slow);
    };
    let (answer, ()) = tokio::join!(waiting, ending);
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn a_handshake_that_its_client_abandons_is_given_up_for_others() {
    let authority = Authority::new();
    let limits = EdgeLimits { handshakes: 2, ..EdgeLimits::default() };
    let edge = Secure::start(live(&[&authority.write("a", &["a.test"])]), limits).await;
    let client = authority.client(&[]);
    let mut abandoned = Vec::new();
    for _ in 0..6 {
        let mut slow = Raw::connect(edge.address).await;
        slow.send(client_hello(&client)).await;
        abandoned.push(slow);
    }
    let asked = Instant::now();
    assert_eq!(edge.ask(&client, "a.test", "a.test").await.status(), 200);
    assert!(asked.elapsed() < EdgeLimits::default().tls_handshake);
    edge.tells(ConnectionErrorKind::Full).await;
}

#[tokio::test]
async fn connections_within_their_hello_give_way_to_new_ones() {
    let authority = Authority::new();
    let limits = EdgeLimits { connections: 4, ..EdgeLimits::default() };
    let edge = Secure::start(live(&[&authority.write("a", &["a.test"])]), limits).await;
    let client = authority.client(&[]);
    let mut slow = Vec::new();
    for _ in 0..12 {
        let mut client = Raw::connect(edge.address).await;
        client.send(b"\x16\x03\x01").await;
        slow.push(client);
    }
    let mut kept = edge.raw(&client, "a.test").await;
    for _ in 0..8 {
        assert_eq!(kept.ask(&get("a.test")).await.status(), 200);
    }
    edge.tells(ConnectionErrorKind::Recycled).await;
    for client in &mut slow[..8] {
        client.rest().await;
    }
    // Secured and then idle, it is the last to go; and it is told so.
    for _ in 0..4 {
        assert_eq!(edge.ask(&client, "a.test", "a.test").await.status(), 200);
    }
    let mut others = Vec::new();
    for _ in 0..4 {
        let mut other = edge.raw(&client, "a.test").await;
        assert_eq!(other.ask(&get("a.test")).await.status(), 200);
        others.push(other);
    }
    assert_eq!(kept.rest().await, "");
}

#[tokio::test]
async fn an_answer_that_waits_within_tls_is_a_request_in_progress() {
    let authority = Authority::new();
    let upload = b"POST /tail HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n\r\nab";
    let stream = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\
        \0\0\x11\x01\x05\0\0\0\x01\x82\x87\x04\x05/tail\x01\x06a.test";
    for (protocol, request) in [(&b"http/1.1"[..], &upload[..]), (b"h2", stream)] {
        // Buffers that take little of the answer: the rest waits in the session.
        let listening = TcpSocket::new_v4().unwrap();
        listening.set_send_buffer_size(4096).unwrap();
        listening.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let limits = EdgeLimits { connections: 2, ..EdgeLimits::default() };
        let certificates = live(&[&authority.write("a", &["a.test"])]);
        let edge = Secure::start_on(listening.listen(16).unwrap(), certificates, limits);
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let socket = soon(socket.connect(edge.address)).await.unwrap();
        let name = ServerName::try_from("a.test").unwrap();
        let connecting = TlsConnector::from(authority.client(&[protocol])).connect(name, socket);
        let mut slow = Raw::new(soon(connecting).await.unwrap());
        slow.send(request).await;
        slow.some().await;
        let client = authority.client(&[]);
        let mut others = Vec::new();
        for _ in 0..4 {
            let mut other = edge.raw(&client, "a.test").await;
            assert_eq!(other.ask(&get("a.test")).await.status(), 200);
            others.push(other);
        }
        edge.tells(ConnectionErrorKind::Recycled).await;
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
async fn a_large_hello_counts_before_it_is_whole() {
    let authority = Authority::new();
    let limits = EdgeLimits { handshakes: 1, ..EdgeLimits::default() };
    let edge = Secure::start(live(&[&authority.write("a", &["a.test"])]), limits).await;
    let client = authority.client(&[]);
    let mut large = Vec::new();
    for _ in 0..3 {
        let mut client = Raw::connect(edge.address).await;
        client.send(b"\x16\x03\x01\x40\x00\x01\x00\x30\x00").await;
        client.send([0; 8 * 1024]).await;
        large.push(client);
    }
    // More is read of the first alone; it gives its place up like any handshake that stands still.
    edge.tells(ConnectionErrorKind::Full).await;
    let asked = Instant::now();
    assert_eq!(edge.ask(&client, "a.test", "a.test").await.status(), 200);
    assert!(asked.elapsed() < EdgeLimits::default().tls_handshake);
}

#[tokio::test]
async fn shutdown_closes_silent_connections_at_once_and_finishes_handshakes() {
    let authority = Authority::new();
    let mut edge = Secure::start(live(&[&authority.write("a", &["a.test"])]), EdgeLimits::default()).await;
    let client = authority.client(&[]);
    let mut idle = edge.raw(&client, "a.test").await;
    assert_eq!(idle.ask(&get("a.test")).await.status(), 200);
    let mut silent = Raw::connect(edge.address).await;
    edge.stop.take().unwrap().send(()).unwrap();
    assert_eq!(silent.rest().await, "");
    assert_eq!(idle.rest().await, "");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off() {
    let authority = Authority::new();
    let limits = EdgeLimits { body_idle: MOMENT, ..EdgeLimits::default() };
    let edge = Secure::start(live(&[&authority.write("a", &["a.test"])]), limits).await;
    let mut client = edge.raw(&authority.client(&[]), "a.test").await;
    client.send("GET /large HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let told = edge.tells(ConnectionErrorKind::Broken).await;
    assert!(told.contains("connection"), "{told}");
}

#[tokio::test]
async fn a_websocket_passes_through() {
    let authority = Authority::new();
    let edge = Secure::start(live(&[&authority.write("a", &["a.test"])]), EdgeLimits::default()).await;
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
async fn leaving_without_a_word_is_no_trouble() {
    let authority = Authority::new();
    let mut edge = Secure::start(live(&[&authority.write("a", &["a.test"])]), EdgeLimits::default()).await;
    let mut client = edge.raw(&authority.client(&[]), "a.test").await;
    assert_eq!(client.ask(&get("a.test")).await.status(), 200);
    drop(client);
    let mut stream = edge.connect(&authority.client(&[]), "a.test").await.unwrap();
    stream.get_mut().0.shutdown().await.unwrap();
    let mut rest = Vec::new();
    let _ = soon(stream.read_to_end(&mut rest)).await;
    edge.stop.take().unwrap().send(()).unwrap();
    soon(edge.served).await.unwrap();
    let troubles = edge.troubles.lock().unwrap();
    assert!(!troubles.iter().any(|(kind, _)| *kind == ConnectionErrorKind::Broken), "{troubles:?}");
}

#[tokio::test]
async fn a_goodbye_that_nobody_waits_for_is_no_failure() {
    let authority = Authority::new();
    let tls = TlsAcceptor::new(live(&[&authority.write("a", &["a.test"])]), 1, Duration::from_secs(20));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (stop, mut stopped) = watch::channel(false);
    let connecting = async {
        let socket = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let connector = TlsConnector::from(authority.client(&[]));
        connector.connect(ServerName::try_from("a.test").unwrap(), socket).await.unwrap()
    };
    let accepting = async {
        let (socket, _) = listener.accept().await.unwrap();
        let activity = Arc::new(ConnectionState::new(&EdgeLimits::default()));
        tls.secure(socket, &mut stopped, &activity, || {}).await.unwrap().unwrap()
    };
    let (client, (stream, _)) = soon(async { tokio::join!(connecting, accepting) }).await;
    // Without the usual ceremony: the next octet from here is answered with a reset.
    socket2::SockRef::from(client.get_ref().0).set_linger(Some(Duration::ZERO)).unwrap();
    drop(client);
    let mut transport = ClientSocket::Tls(Box::new(stream));
    let _ = soon(transport.read(&mut [0])).await;
    soon(transport.shutdown()).await.unwrap();
    drop(stop);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_replaced_under_running_connections() {
    let authority = Authority::new();
    let paths = authority.write("a", &["a.test"]);
    let certificates = live(&[&paths]);
    let edge = Arc::new(Secure::start(certificates.clone(), EdgeLimits::default()).await);
    let mut first = edge.raw(&authority.client(&[]), "a.test").await;
    let (asked, running) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(1)));
    let mut clients = Vec::new();
    for kept_alive in [true, true, false, false] {
        let (edge, client) = (Arc::clone(&edge), authority.client(&[]));
        let (asked, running) = (Arc::clone(&asked), Arc::clone(&running));
        clients.push(tokio::spawn(async move {
            let mut connection = edge.raw(&client, "a.test").await;
            while running.load(Ordering::Relaxed) == 1 {
                if !kept_alive {
                    connection = edge.raw(&client, "a.test").await;
                }
                assert_eq!(connection.ask(&get("a.test")).await.body, "https");
                asked.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    for round in 0..20 {
        let before = asked.load(Ordering::Relaxed);
        authority.write("a", &["a.test", &format!("round-{round}.test")]);
        let (live, now) = (certificates.clone(), SystemTime::now());
        let news = tokio::task::spawn_blocking(move || live.reload(now)).await.unwrap();
        assert_eq!(news.len(), 1, "{news:?}");
        assert_eq!(news[0].event, "certificate");
        assert!(news[0].message.contains(&format!("round-{round}.test")), "{news:?}");
        soon(async {
            while asked.load(Ordering::Relaxed) < before + 8 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    }
    running.store(0, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    assert_eq!(first.ask(&get("a.test")).await.body, "https");
    let shown = leaf(&edge.connect(&authority.client(&[]), "round-19.test").await.unwrap());
    assert_eq!(shown, CertificatePair::read(&paths).unwrap().key.cert[0]);
}

#[test]
fn what_is_wrong_with_a_pair_is_told_once_and_the_one_before_stays() {
    let authority = Authority::new();
    let paths = authority.write("a", &["a.test"]);
    let (chain, key) = (std::fs::read(&paths.chain).unwrap(), std::fs::read(&paths.key).unwrap());
    let certificates = live(&[&paths]);
    let in_force = || certificates.current().iter().next().unwrap().pair.names().to_vec();
    let now = SystemTime::now();
    assert_eq!(certificates.look(now, SETTLING), []);
    let other = authority.write("b", &["b.test"]);
    let other = (std::fs::read(&other.chain).unwrap(), std::fs::read(&other.key).unwrap());
    let encrypted = b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIH0\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let secret = "c2VjcmV0";
    let broken = format!("-----BEGIN PRIVATE KEY-----\n{secret}\n{secret}!\n-----END PRIVATE KEY-----\n");
    for (what, chain, key, culprit) in [
        ("the key is not that of the first certificate", &other.0[..], &key[..], &paths.key),
        ("no certificate here", b"", &key, &paths.chain),
        ("no private key here", &chain, b"", &paths.key),
        ("no certificate here", &key, &key, &paths.chain),
        ("no private key here", &chain, &chain, &paths.key),
        ("broken PEM", &chain[..chain.len() / 2], &key, &paths.chain),
        ("is encrypted", &chain, encrypted, &paths.key),
        ("broken PEM", &chain, broken.as_bytes(), &paths.key),
        (
            "no key that can be used",
            &chain,
            b"-----BEGIN PRIVATE KEY-----\nMIH0\n-----END PRIVATE KEY-----\n",
            &paths.key,
        ),
        ("cannot be read", b"-----BEGIN CERTIFICATE-----\nMIH0\n-----END CERTIFICATE-----\n", &key, &paths.chain),
        ("larger than 1 MiB", &vec![b'x'; (1 << 20) + 1], &key, &paths.chain),
        ("the key is not that of the first certificate", &chain, &other.1, &paths.key),
    ] {
        put(&paths.chain, chain);
        put(&paths.key, key);
        let news = certificates.look(now, SETTLING);
        assert_eq!(news.len(), 1, "{what}: {news:?}");
        assert_eq!(news[0].event, "certificate-rejected");
        assert!(news[0].message.contains(what), "{what}: {news:?}");
        assert!(news[0].message.starts_with(&format!("{}: ", culprit.display())), "{news:?}");
        assert!(!news[0].message.contains(secret), "{news:?}");
        assert_eq!(certificates.look(now, SETTLING), [], "{what}");
        // Who asks is told again.
        assert_eq!(certificates.reload(now), news);
        assert_eq!(in_force(), ["a.test"]);
    }
    std::fs::remove_file(&paths.key).unwrap();
    assert_eq!(certificates.look(now, SETTLING).len(), 1);
    std::fs::create_dir(&paths.key).unwrap();
    assert!(certificates.look(now, SETTLING)[0].message.contains("no file"));
    std::fs::remove_dir(&paths.key).unwrap();
    // What is in force comes back.
    put(&paths.chain, &chain);
    put(&paths.key, &key);
    let news = certificates.look(now, SETTLING);
    assert!(news.len() == 1 && news[0].message.contains("is again what is in force"), "{news:?}");
    // Another one that fits.
    put(&paths.chain, &other.0);
    put(&paths.key, &other.1);
    let news = certificates.look(now, SETTLING);
    assert!(news.len() == 1 && news[0].message.contains("replaced, in force for b.test"), "{news:?}");
    assert_eq!(in_force(), ["b.test"]);
}

#[cfg(unix)]
#[test]
fn a_fifo_in_place_of_a_file_hangs_nobody() {
    let authority = Authority::new();
    let paths = authority.write("a", &["a.test"]);
    let certificates = live(&[&paths]);
    std::fs::remove_file(&paths.key).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&paths.key).status().unwrap().success());
    let news = certificates.look(SystemTime::now(), SETTLING);
    assert!(news[0].message.contains("no file"), "{news:?}");
}

#[test]
fn pairs_that_end_soon_or_are_open_to_all_are_warned_about() {
    let authority = Authority::new();
    let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let paths = authority.write_with("a", &["a.test"], &key, |params| {
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(2026, 4, 1);
    });
    let at = |text: &str| humantime::parse_rfc3339(text).unwrap();
    let certificates = live(&[&paths]);
    let news = certificates.introduce(at("2026-02-01T00:00:00Z"));
    assert_eq!(news.len(), 1, "{news:?}");
    assert!(news[0].message.ends_with("a.pem: in force for a.test, until 2026-04-01"), "{news:?}");
    // Once a day.
    for (now, warnings) in [
        ("2026-03-01T00:00:00Z", 0),
        ("2026-03-20T00:00:00Z", 1),
        ("2026-03-20T00:00:05Z", 1),
        ("2026-03-20T00:00:10Z", 0),
        ("2026-03-21T00:00:10Z", 1),
        ("2026-04-02T00:00:00Z", 1),
        ("2026-04-03T00:00:00Z", 0),
    ] {
        let news = certificates.look(at(now), SETTLING);
        assert_eq!(news.iter().filter(|news| news.event == "certificate-warning").count(), warnings, "{now} {news:?}");
    }
    #[cfg(unix)]
    for (mode, warnings) in [(0o600, 0), (0o640, 0), (0o400, 0), (0o644, 1), (0o660, 1), (0o604, 1)] {
        std::fs::set_permissions(&paths.key, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        let news = live(&[&paths]).introduce(at("2026-02-01T00:00:00Z"));
        assert_eq!(news.len(), 1 + warnings, "{mode:o} {news:?}");
    }
}
