//! Tests of the HTTP version that is used with TLS.

use bytes::Bytes;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::authorities::Authorities;
use crate::http_common::test_authority::TestAuthority;

/// Starts a server that supports these ALPN protocols. It answers with the protocol that is used.
fn serve(authority: &TestAuthority, spoken: &'static [&'static str]) -> (SocketAddr, &'static AtomicUsize) {
    let acceptor: TlsAcceptor = authority.server_of("localhost", spoken, |_| {});
    let connections = shared::<AtomicUsize>();
    let address = accepting(move |_, socket| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(stream) = acceptor.accept(socket).await else { return };
            connections.fetch_add(1, Ordering::SeqCst);
            if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
                let mut peer = Raw::new(stream);
                while let Some(target) = peer.asked().await {
                    let switches = target == "/chat";
                    let head = if switches { "101 Switching Protocols\r\nUpgrade: websocket" } else { "200 OK" };
                    peer.try_send(format!("HTTP/1.1 {head}\r\nX-Spoken: 1.1\r\nContent-Length: 0\r\n\r\n")).await;
                    if switches {
                        return drop(peer.rest().await);
                    }
                }
                return;
            }
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((request, mut respond))) = connection.accept().await {
                assert_eq!(request.uri().scheme_str(), Some("https"));
                let response = Response::builder().header("x-spoken", "2").body(()).unwrap();
                let mut stream = respond.send_response(response, false).unwrap();
                stream.send_data(Bytes::from_static(b"ok"), true).unwrap();
            }
        }
    });
    (address, connections)
}

fn upstream_to(address: SocketAddr, authority: &TestAuthority, versions: HttpVersions) -> (Upstream, Events) {
    let mut settings = settings([format!("https://localhost:{}", address.port())]);
    settings.tls.trust = Some(Authorities::read(&authority.file()).unwrap());
    settings.versions = versions;
    watched(&settings, patient())
}

async fn spoken(upstream: &Upstream) -> (u16, String) {
    let (head, body) = soon(upstream.forward(request("GET", "/"))).await.into_parts();
    let _ = soon(body.collect()).await;
    let spoken = head.headers.get("x-spoken").map_or("", |spoken| spoken.to_str().unwrap()).to_owned();
    (head.status.as_u16(), spoken)
}

#[tokio::test]
async fn the_server_chooses_among_the_allowed_http_versions() {
    let authority = TestAuthority::new("ours");
    for (offered, versions, want) in [
        (&["h2", "http/1.1"][..], HttpVersions::Negotiated, "2"),
        (&["http/1.1", "h2"], HttpVersions::Negotiated, "1.1"),
        (&["http/1.1"], HttpVersions::Negotiated, "1.1"),
        (&["h2"], HttpVersions::Negotiated, "2"),
        // A server without ALPN support.
        (&[], HttpVersions::Negotiated, "1.1"),
        (&["h2", "http/1.1"], HttpVersions::Http1, "1.1"),
        (&["http/1.1", "h2"], HttpVersions::Http2, "2"),
    ] {
        let (address, connections) = serve(&authority, offered);
        let (upstream, events) = upstream_to(address, &authority, versions);
        for _ in 0..3 {
            assert_eq!(spoken(&upstream).await, (200, want.to_owned()), "{offered:?} {versions:?} {events:?}");
        }
        assert_eq!(connections.load(Ordering::SeqCst), 1, "{offered:?} {versions:?}");
    }
}

#[tokio::test]
async fn a_server_that_offers_no_allowed_http_version_is_reported_and_ejected() {
    let authority = TestAuthority::new("ours");
    for (spoken_there, versions, want) in [
        (&["http/1.1"][..], HttpVersions::Http2, "does not offer HTTP/2, which http2 = true requires"),
        (&[], HttpVersions::Http2, "does not offer HTTP/2, which http2 = true requires"),
        (&["h2"], HttpVersions::Http1, "does not offer HTTP/1.1, and http2 = false allows no other version"),
        (&["h3"], HttpVersions::Negotiated, "offers neither HTTP/2 nor HTTP/1.1"),
    ] {
        let (address, _) = serve(&authority, spoken_there);
        let (upstream, events) = upstream_to(address, &authority, versions);
        for _ in 0..3 {
            assert_eq!(spoken(&upstream).await.0, 502);
        }
        let said = event_detail(&events, "tls").await;
        assert!(said.contains(want), "{said}");
        // The server is ejected, because no request could be sent to it.
        assert_eq!(times_reported(&events, "ejected"), 1, "{events:?}");
    }
}

#[tokio::test]
async fn a_websocket_uses_its_own_http_1_1_connection() {
    let authority = TestAuthority::new("ours");
    let (address, connections) = serve(&authority, &["h2", "http/1.1"]);
    let (upstream, events) = upstream_to(address, &authority, HttpVersions::Negotiated);
    assert_eq!(spoken(&upstream).await, (200, "2".to_owned()), "{events:?}");
    let mut client = Raw::connect(proxy(upstream.clone())).await;
    assert_eq!(client.ask(HANDSHAKE).await.status(), 101);
    assert_eq!(spoken(&upstream).await, (200, "2".to_owned()));
    assert_eq!(connections.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_server_with_only_http_2_is_not_ejected_when_a_websocket_fails() {
    let authority = TestAuthority::new("ours");
    let (address, connections) = serve(&authority, &["h2"]);
    let (upstream, events) = upstream_to(address, &authority, HttpVersions::Negotiated);
    let proxy = proxy(upstream.clone());
    for _ in 0..6 {
        assert_eq!(Raw::connect(proxy).await.ask(HANDSHAKE).await.status(), 502);
    }
    let said = event_detail(&events, "tls").await;
    assert!(said.contains("does not offer HTTP/1.1, which WebSockets need"), "{said}");
    assert_eq!(times_reported(&events, "ejected"), 0, "{events:?}");
    for _ in 0..3 {
        assert_eq!(spoken(&upstream).await, (200, "2".to_owned()), "{events:?}");
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}
