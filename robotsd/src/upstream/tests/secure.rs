//! Tests of upstreams with TLS. The certificates come from a test authority.

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::*;
use crate::authorities::Authorities;
use crate::http_common::test_authority::TestAuthority;

impl TestAuthority {
    /// Creates the TLS settings of a server with a certificate for a name.
    fn server(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> TlsAcceptor {
        self.server_of(name, &["h2", "http/1.1"], change)
    }

    /// Creates the TLS settings of a server that supports these protocols.
    pub(super) fn server_of(
        &self,
        name: &str,
        spoken: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let certificate = self.sign(&[name], &key, change);
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
            .unwrap();
        config.alpn_protocols = spoken.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// The requests that a server behind TLS has received.
#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    server_names: parking_lot::Mutex<Vec<String>>,
}

/// Starts a server that answers every request with `answer`. `then` determines how the connection
/// ends.
fn serve(acceptor: TlsAcceptor, answer: &'static str, then: Then) -> (SocketAddr, &'static Seen) {
    let seen = shared::<Seen>();
    let address = accepting(move |number, socket| {
        let acceptor = acceptor.clone();
        async move {
            seen.connections.store(number + 1, Ordering::SeqCst);
            let Ok(stream) = acceptor.accept(socket).await else { return };
            let connection = stream.get_ref().1;
            assert_eq!(connection.alpn_protocol(), Some(&b"http/1.1"[..]));
            seen.server_names.lock().extend(connection.server_name().map(str::to_owned));
            let mut peer = Raw::new(stream);
            while peer.heard(b"\r\n\r\n").await {
                peer.try_send(answer).await;
                match then {
                    Then::Wait => {}
                    // The connection ends without close_notify, as if an attacker had cut it off.
                    Then::Drop => return,
                    Then::Close => return peer.finish().await,
                }
            }
        }
    });
    (address, seen)
}

#[derive(Clone, Copy)]
enum Then {
    Wait,
    Drop,
    Close,
}

fn upstream_to(url: String, authority: &TestAuthority, server_name: Option<&str>) -> (Upstream, Events) {
    let mut settings = settings([url]);
    settings.tls.trust = Some(Authorities::read(&authority.file()).unwrap());
    settings.tls.server_name = server_name.map(str::to_owned);
    watched(&settings, patient())
}

#[tokio::test]
async fn a_valid_certificate_is_accepted_and_connections_are_reused() {
    let authority = TestAuthority::new("ours");
    let (address, seen) = serve(authority.server("localhost", |_| {}), OK, Then::Wait);
    let (upstream, events) = upstream_to(format!("https://localhost:{}", address.port()), &authority, None);
    assert_eq!(statuses(&upstream, ["GET", "POST", "GET", "POST"]).await, [200; 4], "{events:?}");
    assert_eq!(seen.connections.load(Ordering::SeqCst), 1);
    assert_eq!(*seen.server_names.lock(), ["localhost"]);
    // The upstream is configured by address, so the certificate must contain the address.
    let (address, seen) = serve(authority.server("127.0.0.1", |_| {}), OK, Then::Wait);
    let (upstream, events) = upstream_to(format!("https://{address}"), &authority, None);
    assert_eq!(status(&upstream, "GET").await, 200, "{events:?}");
    assert!(seen.server_names.lock().is_empty());
}

#[tokio::test]
async fn the_configured_tls_name_may_differ_from_the_upstream_address() {
    let authority = TestAuthority::new("ours");
    let (address, seen) = serve(authority.server("app.internal", |_| {}), OK, Then::Wait);
    let (upstream, events) = upstream_to(format!("https://{address}"), &authority, Some("app.internal"));
    assert_eq!(status(&upstream, "GET").await, 200, "{events:?}");
    assert_eq!(*seen.server_names.lock(), ["app.internal"]);
}

#[tokio::test]
async fn certificate_problems_are_logged_and_not_shown_to_the_client() {
    let (authority, other) = (TestAuthority::new("ours"), TestAuthority::new("another"));
    let expired = |params: &mut CertificateParams| params.not_after = date_time_ymd(2001, 1, 1);
    let early = |params: &mut CertificateParams| params.not_before = date_time_ymd(4000, 1, 1);
    for (acceptor, want) in [
        (authority.server("localhost", expired), "the certificate expired on Mon, 01 Jan 2001 00:00:00 GMT"),
        (authority.server("localhost", early), "the certificate is not valid before Sat, 01 Jan 4000 00:00:00 GMT"),
        (authority.server("else.test", |_| {}), "the certificate is for \"else.test\" and not for \"localhost\""),
        (other.server("localhost", |_| {}), "is from an untrusted authority"),
    ] {
        let (address, _) = serve(acceptor, OK, Then::Wait);
        let (upstream, events) = upstream_to(format!("https://localhost:{}", address.port()), &authority, None);
        let response = soon(upstream.forward(request("GET", "/"))).await;
        assert_eq!(response.status(), 502, "{want}");
        assert!(response.headers().values().all(|value| !value.as_bytes().windows(4).any(|part| part == b"cert")));
        assert_eq!(text(response).await, "502 the site is not available\n");
        let said = event_detail(&events, "tls").await;
        assert!(said.contains(want) && said.contains(&format!("localhost:{}", address.port())), "{said}\n{want}");
        // With two more failures, the server is ejected.
        assert_eq!(statuses(&upstream, ["GET"; 2]).await, [502; 2]);
        assert!(event_detail(&events, "ejected").await.contains(want));
    }
}

#[tokio::test]
async fn the_log_reports_that_an_upstream_port_does_not_use_tls() {
    let authority = TestAuthority::new("ours");
    let plain = Origin::blurting("HTTP/1.1 400 Bad Request\r\n\r\n");
    let (upstream, events) = upstream_to(format!("https://{}", plain.address), &authority, None);
    assert_eq!(status(&upstream, "GET").await, 502);
    let said = event_detail(&events, "tls").await;
    assert!(said.contains("the server does not use TLS at this port"), "{said}");
}

#[tokio::test]
async fn the_tls_handshake_has_the_deadline_for_connecting() {
    let authority = TestAuthority::new("ours");
    let silent = Origin::blurting("");
    let mut settings = settings([format!("https://{}", silent.address)]);
    settings.tls.trust = Some(Authorities::read(&authority.file()).unwrap());
    let limits = UpstreamLimits { connect: MOMENT, ..patient() };
    let (origins, events) = origins(&settings, limits, &SharedResources::system());
    assert_eq!(status(&worker(&origins), "GET").await, 504);
    event_detail(&events, "connect-timeout").await;
}

#[tokio::test]
async fn a_body_of_unknown_length_is_incomplete_without_close_notify() {
    let authority = TestAuthority::new("ours");
    let ends_with_the_connection = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf of it";
    for (answer, then, is_whole) in [
        (ends_with_the_connection, Then::Drop, false),
        (ends_with_the_connection, Then::Close, true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf of it", Then::Close, false),
        // The body is complete if it has its declared length.
        (OK, Then::Drop, true),
    ] {
        let (address, _) = serve(authority.server("localhost", |_| {}), answer, then);
        let (upstream, _) = upstream_to(format!("https://localhost:{}", address.port()), &authority, None);
        let answered = soon(upstream.forward(request("GET", "/"))).await;
        assert_eq!(answered.status(), 200);
        assert_eq!(soon(answered.into_body().collect()).await.is_ok(), is_whole, "{answer:?}");
    }
}

#[test]
fn a_file_without_a_valid_certificate_is_rejected_as_an_authority() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    assert!(Authorities::read(&path).unwrap_err().contains("cannot be read"));
    for (text, why) in [
        ("nothing", "contains no certificate"),
        ("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n", "ca.pem"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "an invalid certificate"),
    ] {
        std::fs::write(&path, text).unwrap();
        assert!(Authorities::read(&path).unwrap_err().contains(why));
    }
}
