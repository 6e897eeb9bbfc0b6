//! Tests of upstreams on Unix sockets.

use std::path::Path;

use tokio::net::UnixListener;

use super::*;

fn upstream_at(path: &Path) -> Upstream {
    let (origins, _) = origins(&settings([format!("unix:{}", path.display())]), patient(), &SharedResources::system());
    worker(&origins)
}

#[tokio::test]
async fn a_unix_socket_is_an_upstream_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    let upstream = upstream_at(&path);
    let answer = soon(upstream.forward(request("GET", "/"))).await;
    assert_eq!(answer.status(), 502);
    let failure = answer.extensions().get::<UpstreamFailure>().unwrap();
    assert!(failure.detail.starts_with(&format!("unix:{}: ", path.display())), "{failure}");

    let listener = UnixListener::bind(&path).unwrap();
    let (sender, mut heads) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut number = 0;
        while let Ok((socket, _)) = listener.accept().await {
            let (mut peer, sender) = (Raw::new(socket), sender.clone());
            number += 1;
            tokio::spawn(async move {
                loop {
                    sender.send((number, peer.until(b"\r\n\r\n").await)).unwrap();
                    peer.send(OK).await;
                }
            });
        }
    });
    for method in ["GET", "POST", "GET"] {
        assert_eq!(status(&upstream, method).await, 200);
        let (number, head) = heads.recv().await.unwrap();
        assert!(number == 1 && head.starts_with(method), "{number}: {head}");
    }
    // An HTTP/1.0 request may have no host. `localhost` is then sent, not the path of the socket.
    let request = Request::builder().uri("/").body(RequestBody::empty()).unwrap();
    soon(upstream.forward(request.into())).await;
    assert!(heads.recv().await.unwrap().1.contains("\r\nhost: localhost\r\n"));
}

#[tokio::test]
async fn a_websocket_works_over_a_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    let listener = UnixListener::bind(&path).unwrap();
    tokio::spawn(async move {
        let mut peer = Raw::new(listener.accept().await.unwrap().0);
        peer.until(b"\r\n\r\n").await;
        peer.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n").await;
        assert_eq!(peer.exactly(4).await, "ping");
        peer.send("pong").await;
    });
    let mut client = Raw::sent(proxy(upstream_at(&path)), format!("{HANDSHAKE}ping")).await;
    assert!(client.until(b"\r\n\r\n").await.starts_with("HTTP/1.1 101 "));
    assert_eq!(client.exactly(4).await, "pong");
}
