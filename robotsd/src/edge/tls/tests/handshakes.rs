//! Tests of handshakes: their deadlines and limits, and clients that do not speak TLS.

use super::*;

#[tokio::test]
async fn tls_1_2_and_1_3_resume_sessions_and_older_versions_are_rejected() {
    let (authority, edge) = secure(EdgeLimits::default());
    for protocol in [&version::TLS12, &version::TLS13] {
        let client = Arc::new(authority.client_of(pair::provider(), &[protocol]));
        for kind in [HandshakeKind::Full, HandshakeKind::Resumed] {
            let stream = edge.connect(&client, "a.test").await.unwrap();
            assert_eq!(stream.get_ref().1.handshake_kind(), Some(kind));
            assert_eq!(stream.get_ref().1.protocol_version(), Some(protocol.version));
            // Reading the answer lets the client process the session tickets of TLS 1.3.
            assert_eq!(Raw::new(stream).ask(&get("a.test")).await.body, "https");
        }
    }
    // A ClientHello for TLS 1.0. The server supports only later versions.
    let mut old = edge.client().await;
    let hello = [&[3, 1][..], &[7; 32], &[0, 0, 2, 0, 0x2f, 1, 0]].concat();
    old.send([&[22, 3, 1, 0, 4 + hello.len() as u8, 1, 0, 0, hello.len() as u8], &hello[..]].concat()).await;
    assert!(!old.rest().await.contains("HTTP"));
    edge.reports(ConnectionErrorKind::Handshake).await;
}

#[tokio::test]
async fn requests_without_tls_get_a_400_response_and_other_bytes_get_no_http_response() {
    let (authority, edge) = secure(EdgeLimits::default());
    for request in [&get("a.test")[..], "POST /x HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let mut client = edge.sent(request).await;
        client.finish().await;
        let answer = client.message().await;
        assert_eq!((answer.status(), &*answer.body), (400, "400 this port speaks TLS: use https://\n"), "{request}");
        assert_eq!(client.rest().await, "");
    }
    assert_eq!(edge.reports(ConnectionErrorKind::Handshake).await, "the client sent a request without TLS");
    let cases = [&b"\x16\x03\x01\xff\xff garbage"[..], b"\x00", b"\x80\x2e\x01\x00\x02", b"\r\nGET / HTTP/1.1\r\n\r\n"];
    for garbage in cases {
        let mut client = edge.client().await;
        client.try_send(garbage).await;
        let _ = soon(async { client.finish().await }).await;
        assert!(!client.rest().await.contains("HTTP"), "{garbage:?}");
    }
    assert_eq!(edge.ask_secured(&authority.client(&[]), "a.test", "a.test").await.status(), 200);
}

/// Limits whose deadlines never pass during a test.
fn no_deadlines() -> EdgeLimits {
    const HOUR: Duration = Duration::from_secs(3600);
    EdgeLimits { tls_handshake: HOUR, first_byte: HOUR, header_read: HOUR, ..EdgeLimits::default() }
}

#[tokio::test]
async fn a_handshake_has_a_deadline() {
    let (_, edge) = secure(EdgeLimits { tls_handshake: MOMENT, ..no_deadlines() });
    for begun in [&b""[..], b"\x16", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"] {
        edge.sent(begun).await.rest().await;
    }
    edge.counts(ConnectionErrorKind::Slow, 3).await;
    assert_eq!(edge.reports(ConnectionErrorKind::Slow).await, "the TLS handshake was not complete in time");
}

fn client_hello(client: &Arc<ClientConfig>) -> Vec<u8> {
    let name = ServerName::try_from("a.test").unwrap();
    let mut client = ClientConnection::new(Arc::clone(client), name).unwrap();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    hello
}

#[tokio::test]
async fn a_handshake_counts_toward_the_limit_once_its_hello_is_complete() {
    let (authority, edge) = secure(EdgeLimits { handshakes: NonZeroUsize::MIN, ..EdgeLimits::default() });
    let client = authority.client(&[]);
    let hello = client_hello(&client);
    let mut slow = Vec::new();
    for length in [0, 1, 3, 5, 6, 64, hello.len() - 1] {
        slow.push(edge.sent(&hello[..length]).await);
    }
    for _ in 0..3 {
        assert_eq!(edge.ask_secured(&client, "a.test", "a.test").await.status(), 200);
    }
    assert_eq!(edge.reported.lock().len(), 0);
}

#[tokio::test]
async fn a_client_hello_has_a_size_limit() {
    let (_, edge) = secure(EdgeLimits::default());
    let mut client = edge.sent(b"\x16\x03\x01\x40\x00\x01\x00\xff\xff").await;
    client.try_send([0; 32 * 1024]).await;
    client.rest().await;
    assert_eq!(edge.reports(ConnectionErrorKind::Handshake).await, "the ClientHello is longer than 16384 bytes");
}

#[tokio::test]
async fn rfc_8446_5_1_a_client_hello_may_span_several_records() {
    let (authority, edge) = secure(EdgeLimits::default());
    let hello = client_hello(&authority.client(&[]));
    for length in [1, 64, 512] {
        let records = hello[5..].chunks(length).flat_map(|fragment| {
            let [high, low] = u16::try_from(fragment.len()).unwrap().to_be_bytes();
            [&[22, 3, 1, high, low], fragment].concat()
        });
        let mut client = edge.sent(records.collect::<Vec<u8>>()).await;
        // The answer is a ServerHello (type 2).
        assert_eq!(client.bytes(6).await[5], 2, "{length}");
    }
}

#[tokio::test]
async fn handshakes_beyond_the_limit_wait_until_another_handshake_ends() {
    let (authority, edge) = secure(EdgeLimits { handshakes: NonZeroUsize::MIN, ..EdgeLimits::default() });
    let client = authority.client(&[]);
    let mut slow = edge.sent(client_hello(&client)).await;
    slow.some().await;
    let waiting = edge.ask_secured(&client, "a.test", "a.test");
    let ending = async {
        edge.reports(ConnectionErrorKind::Full).await;
        drop(slow);
    };
    let (answer, ()) = tokio::join!(waiting, ending);
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn handshakes_that_their_clients_abandon_are_ended_to_serve_others() {
    let (authority, edge) = secure(EdgeLimits { handshakes: NonZeroUsize::new(2).unwrap(), ..no_deadlines() });
    let client = authority.client(&[]);
    let mut abandoned = Vec::new();
    for _ in 0..6 {
        abandoned.push(edge.sent(client_hello(&client)).await);
    }
    assert_eq!(edge.ask_secured(&client, "a.test", "a.test").await.status(), 200);
    edge.reports(ConnectionErrorKind::Full).await;
}

#[tokio::test]
async fn connections_with_an_incomplete_hello_are_closed_for_new_ones() {
    let (authority, edge) = secure(EdgeLimits { connections: 4, ..EdgeLimits::default() });
    let client = authority.client(&[]);
    let mut slow = Raw::many(12, edge.address, b"\x16\x03\x01").await;
    let mut kept = edge.raw(&client, "a.test").await;
    for _ in 0..8 {
        assert_eq!(kept.ask(&get("a.test")).await.status(), 200);
    }
    edge.reports(ConnectionErrorKind::Recycled).await;
    for client in &mut slow[..8] {
        client.rest().await;
    }
    // An idle connection that has completed its handshake is closed last, and gracefully.
    for _ in 0..4 {
        assert_eq!(edge.ask_secured(&client, "a.test", "a.test").await.status(), 200);
    }
    let _others = edge.kept_secured(4, &client).await;
    assert_eq!(kept.rest().await, "");
}

#[tokio::test]
async fn a_large_client_hello_counts_toward_the_limit_before_it_is_complete() {
    let (authority, edge) = secure(EdgeLimits { handshakes: NonZeroUsize::MIN, ..no_deadlines() });
    let client = authority.client(&[]);
    let hello = [&b"\x16\x03\x01\x40\x00\x01\x00\x30\x00"[..], &[0; 8 * 1024]].concat();
    let _large = Raw::many(3, edge.address, hello).await;
    // Only the first connection has a permit. Its stalled handshake is ended.
    edge.reports(ConnectionErrorKind::Full).await;
    assert_eq!(edge.ask_secured(&client, "a.test", "a.test").await.status(), 200);
}

#[tokio::test]
async fn shutdown_closes_silent_and_idle_tls_connections() {
    let (authority, mut edge) = secure(EdgeLimits::default());
    let client = authority.client(&[]);
    let mut idle = edge.kept_secured(1, &client).await;
    let mut silent = edge.client().await;
    edge.begin_shutdown();
    assert_eq!(silent.rest().await, "");
    assert_eq!(idle[0].rest().await, "");
}
