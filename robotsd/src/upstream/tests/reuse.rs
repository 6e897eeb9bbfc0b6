//! Tests of connection reuse and of repeated requests.

use super::*;

#[tokio::test]
async fn responses_of_every_framing_share_a_connection() {
    const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n";
    const LENGTH: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde";
    const INTERIM: &str = "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde";
    for order in
        [[LENGTH, LENGTH, CHUNKED, LENGTH], [LENGTH, INTERIM, LENGTH, CHUNKED], [CHUNKED, LENGTH, CHUNKED, LENGTH]]
    {
        let origin = Origin::start(move |_, mut peer| async move {
            for answer in order {
                assert!(peer.until(b"\r\n\r\n").await.starts_with("GET /x HTTP/1.1\r\n"));
                peer.send(answer).await;
            }
            peer.rest().await;
        });
        let upstream = origin.upstream();
        for answer in order {
            let response = soon(upstream.forward(request("GET", "/x"))).await;
            assert_eq!(response.status(), 200, "{answer:?}");
            assert_eq!(soon(response.into_body().collect()).await.unwrap().to_bytes(), "abcde", "{answer:?}");
        }
        assert_eq!(origin.connections(), 1);
    }
}

#[tokio::test]
async fn connections_are_reused() {
    let origin = Origin::always(OK);
    let upstream = origin.upstream();
    assert_eq!(statuses(&upstream, ["GET", "POST", "HEAD"]).await, [200; 3]);
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn an_idempotent_request_is_sent_again_when_an_idle_connection_dies() {
    for method in ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"] {
        let (origin, delivered) = dying("");
        let upstream = origin.upstream();
        assert_eq!(status(&upstream, "GET").await, 200);
        assert_eq!(status(&upstream, method).await, 200, "{method}");
        assert_eq!((origin.connections(), delivered.load(Ordering::SeqCst)), (2, 3), "{method}");
    }
}

/// After the chunked response, hyper drives the first connection. The second attempt uses the fast
/// path.
#[tokio::test]
async fn a_request_that_is_sent_again_has_each_forwarded_field_once() {
    let (sender, mut heads) = reporting();
    let origin = Origin::start(move |number, mut peer| async move {
        if number == 0 {
            peer.until(b"\r\n\r\n").await;
            peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n").await;
            peer.until(b"\r\n\r\n").await;
        } else {
            sender.send(peer.until(b"\r\n\r\n").await).unwrap();
            peer.send(OK).await;
        }
    });
    let mut client = Raw::connect(proxy(origin.upstream())).await;
    for _ in 0..2 {
        assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.status(), 200);
    }
    let head = soon(heads.recv()).await.unwrap();
    for name in ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"] {
        assert_eq!(head.matches(&format!("{name}: ")).count(), 1, "{head}");
    }
}

#[tokio::test]
async fn post_and_patch_begun_responses_and_new_connections_prevent_a_retry() {
    // POST and PATCH are not repeated. A request whose response has begun is not repeated, either.
    for (method, then) in [("POST", ""), ("PATCH", ""), ("GET", "HTTP/1.1 2")] {
        let (origin, delivered) = dying(then);
        let upstream = origin.upstream();
        assert_eq!(status(&upstream, "GET").await, 200);
        assert_eq!(status(&upstream, method).await, 502, "{method} {then}");
        assert_eq!((origin.connections(), delivered.load(Ordering::SeqCst)), (1, 2), "{method} {then}");
    }
    // A request on a new connection is not repeated.
    let origin = Origin::closing("");
    assert_eq!(status(&origin.upstream(), "GET").await, 502);
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn a_request_with_a_body_is_not_sent_again() {
    let (origin, delivered) = dying("");
    let mut client = Raw::connect(proxy(origin.upstream())).await;
    assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.status(), 200);
    let put = "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab";
    assert_eq!(client.ask(put).await.status(), 502);
    assert_eq!((origin.connections(), delivered.load(Ordering::SeqCst)), (1, 2));
}

#[tokio::test]
async fn a_post_is_not_sent_on_a_connection_that_the_server_has_closed() {
    use std::io::{Read, Write};
    // The origin does not use the event loop, and the loop does not run between the end of the
    // connection and the next request. So only the kernel knows that the connection has ended.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let (close, may_close) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for socket in listener.incoming().take(2) {
            let mut socket = socket.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                socket.read_exact(&mut byte).unwrap();
                head.extend(byte);
            }
            socket.write_all(OK.as_bytes()).unwrap();
            may_close.recv().unwrap();
            socket.shutdown(std::net::Shutdown::Both).unwrap();
            sender.send(()).unwrap();
        }
    });
    let upstream = upstream([address], patient());
    for _ in 0..2 {
        assert_eq!(status(&upstream, "POST").await, 200);
        close.send(()).unwrap();
        receiver.recv_timeout(Duration::from_secs(60)).unwrap();
    }
}

#[tokio::test]
async fn a_surplus_response_is_not_used_for_the_next_request() {
    let origin = Origin::saying(format!("{OK}HTTP/1.1 200 OK\r\nX-Poison: 1\r\nContent-Length: 0\r\n\r\n"));
    let upstream = origin.upstream();
    for _ in 0..2 {
        let answer = soon(upstream.forward(request("GET", "/"))).await;
        assert!(!answer.headers().contains_key("x-poison"));
        answer.into_body().collect().await.unwrap();
    }
    assert_eq!(origin.connections(), 2);
}

#[tokio::test]
async fn requests_beyond_the_connection_limit_get_503_with_retry_after() {
    let origin = Origin::saying("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab");
    let upstream = origin.upstream_with(few(1, MOMENT));
    let first = soon(upstream.forward(request("GET", "/"))).await;
    let second = soon(upstream.forward(request("GET", "/"))).await;
    assert_eq!((second.status().as_u16(), second.headers()["retry-after"].to_str().unwrap()), (503, "1"));
    drop(first);
    soon(async { while upstream.forward(request("GET", "/")).await.status() != 200 {} }).await;
}

#[tokio::test]
async fn idle_connections_are_closed_after_the_timeout() {
    let (sender, mut closed) = reporting();
    let origin = Origin::start(move |_, mut peer| async move {
        peer.until(b"\r\n\r\n").await;
        peer.send(OK).await;
        assert_eq!(peer.rest().await, "");
        sender.send(()).unwrap();
    });
    let upstream = origin.upstream_with(|limits| limits.idle_timeout = MOMENT);
    assert_eq!(status(&upstream, "GET").await, 200);
    soon(closed.recv()).await.unwrap();
}
