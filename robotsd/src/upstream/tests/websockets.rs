//! Tests of connections that switch to another protocol.

use super::*;

#[tokio::test]
async fn a_websocket_is_tunnelled_from_its_first_byte() {
    let origin = Origin::start(|_, mut peer| async move {
        let head = peer.until(b"\r\n\r\n").await;
        assert!(head.contains("\r\nupgrade: websocket\r\n") && head.contains("\r\nconnection: upgrade\r\n"), "{head}");
        let switch =
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Accept: k\r\n\r\nhello";
        peer.send(switch).await;
        assert_eq!(peer.exactly(4).await, "ping");
        peer.send("pong").await;
        assert_eq!(peer.rest().await, "");
        peer.send("last").await;
    });
    let mut client = Raw::connect(proxy(origin.upstream())).await;
    // Each side sends its first bytes before the other side has switched protocols.
    client.send(format!("{HANDSHAKE}ping")).await;
    let head = client.until(b"\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{head}");
    assert!(head.contains("\r\nupgrade: websocket\r\n") && head.contains("\r\nx-accept: k\r\n"), "{head}");
    assert_eq!(client.exactly(9).await, "hellopong");
    client.finish().await;
    assert_eq!(client.rest().await, "last");
}

#[tokio::test]
async fn a_refused_websocket_leaves_the_http_connection_usable() {
    let origin = Origin::always("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    let mut client = Raw::connect(proxy(origin.upstream())).await;
    for _ in 0..2 {
        assert_eq!(client.ask(HANDSHAKE).await.status(), 403);
    }
    assert_eq!(origin.connections(), 1);
}
