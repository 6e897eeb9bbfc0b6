//! Tests of requests as an upstream receives them: target, framing, bodies, and clients that
//! disconnect.

use super::*;

#[tokio::test]
async fn the_upstream_gets_the_request_target_unchanged() {
    let (sender, mut heads) = reporting();
    let origin = Origin::start(move |_, mut peer| async move {
        sender.send(peer.until(b"\r\n\r\n").await).unwrap();
        peer.send(OK).await;
    });
    let target = "/a%2Fb/%2e%2E//c;d?x=%zz&y=\\^|";
    assert_eq!(soon(origin.upstream().forward(request("GET", target))).await.status(), 200);
    let head = heads.recv().await.unwrap();
    assert!(head.starts_with(&format!("GET {target} HTTP/1.1\r\n")), "{head}");
    assert!(head.contains("\r\nhost: h.test\r\n"), "{head}");
    assert!(!head.contains("transfer-encoding") && !head.contains("content-length"), "{head}");
}

#[tokio::test]
async fn a_client_that_disconnects_closes_the_upstream_connection() {
    let (sender, closed) = oneshot::channel();
    let sender = parking_lot::Mutex::new(Some(sender));
    let begun = shared::<Notify>();
    let origin = Origin::start(move |_, mut peer| {
        let sender = sender.lock().take();
        async move {
            peer.until(b"\r\n\r\n").await;
            begun.notify_one();
            peer.rest().await;
            sender.map(|sender| sender.send(()));
        }
    });
    let client = Raw::sent(proxy(origin.upstream()), "GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    soon(begun.notified()).await;
    drop(client);
    soon(closed).await.unwrap();
}

#[tokio::test]
async fn request_bodies_with_a_length_and_chunked_bodies_reach_the_upstream() {
    let address = proxy(echo().upstream());
    let mut client = Raw::connect(address).await;
    for method in ["POST", "GET"] {
        let known = format!("{method} / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab");
        assert_eq!(client.ask(&known).await.body, "ab", "{method}");
        let chunked = format!(
            "{method} / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2;x=y\r\nab\r\n0\r\nX: 1\r\n\r\n"
        );
        assert_eq!(client.ask(&chunked).await.body, "ab", "{method}");
    }
    assert_eq!(client.ask("POST / HTTP/1.1\r\nHost: h\r\n\r\n").await.body, "");
}

#[tokio::test]
async fn bodies_larger_than_every_window_pass_through_http_2() {
    let address = proxy(echo().upstream());
    let socket = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (mut client, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), socket).await.unwrap();
    tokio::spawn(connection);
    let body = "0123456789abcdef".repeat(64 * 1024);
    let request = Request::post("http://h.test/").body(Full::<bytes::Bytes>::from(body.clone())).unwrap();
    let answer = soon(client.send_request(request)).await.unwrap();
    assert_eq!(soon(answer.into_body().collect()).await.unwrap().to_bytes(), body);
}

#[tokio::test]
async fn a_slow_upload_does_not_use_up_the_response_deadline() {
    let upstream = echo().upstream_with(|limits| limits.response_header = MOMENT);
    let proxy = proxy(upstream);
    let body = undisturbed(async || {
        let mut client = Raw::sent(proxy, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n").await;
        for byte in ["a", "b", "c"] {
            // The client must be slow here, so the test waits for a fixed time.
            tokio::time::sleep(MOMENT).await;
            client.try_send(byte).await;
        }
        Some(client.message().await).filter(|answer| answer.status() == 200).map(|answer| answer.body)
    });
    assert_eq!(body.await, "abc");
}

#[tokio::test]
async fn a_malformed_request_body_is_answered_with_400() {
    let mut client = Raw::connect(proxy(echo().upstream())).await;
    let answer = client.ask("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n").await;
    assert_eq!(answer.status(), 400);
    assert_eq!(client.rest().await, "");
}

#[tokio::test]
async fn expect_100_continue_is_answered_before_the_body_arrives() {
    let mut client = Raw::sent(
        proxy(echo().upstream()),
        "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
    )
    .await;
    assert_eq!(client.until(b"\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("ab").await;
    assert_eq!(client.message().await.body, "ab");
}
