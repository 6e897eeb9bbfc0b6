//! Tests of responses: in pieces, with every framing, cut off, late, or not HTTP.

use super::*;

#[tokio::test]
async fn a_response_that_arrives_in_pieces_is_passed_on_whole() {
    let body = "b".repeat(300 * 1024);
    let whole = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nX-A: 1\r\n\r\n{body}", body.len());
    // The response is cut in the status line, in a field, before the body, and within the body.
    for cut in [9, 30, whole.len() - body.len(), whole.len() - 7] {
        let whole = whole.clone();
        let origin = Origin::start(move |_, mut peer| {
            let whole = whole.clone();
            async move {
                loop {
                    if !peer.heard(b"\r\n\r\n").await {
                        return;
                    }
                    peer.send(&whole[..cut]).await;
                    // Without this wait, both pieces could be read together.
                    settled().await;
                    peer.send(&whole[cut..]).await;
                }
            }
        });
        let upstream = origin.upstream();
        for _ in 0..2 {
            let response = soon(upstream.forward(request("GET", "/x"))).await;
            assert_eq!(response.headers()["x-a"], "1");
            assert!(soon(response.into_body().collect()).await.unwrap().to_bytes() == body, "cut at {cut}");
        }
        assert_eq!(origin.connections(), 1, "cut at {cut}");
    }
}

#[tokio::test]
async fn invalid_http_responses_are_answered_with_502() {
    let flood = "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n".repeat(10_000);
    let big = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(600 * 1024));
    for answer in [
        "\x16\x03\x01 not http\n\n",
        "<html>",
        "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 5\r\n\r\nokoko",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        flood.as_str(),
        big.as_str(),
    ] {
        let answered = soon(Origin::closing(answer).upstream().forward(request("GET", "/"))).await;
        assert_eq!(answered.status(), 502, "{answer:.60}");
        assert_eq!(answered.headers()["cache-control"], "no-store", "{answer:.60}");
        let failure = answered.extensions().get::<UpstreamFailure>().unwrap();
        assert_eq!(failure.kind, FailureKind::Invalid, "{answer:.60}: {failure}");
    }
}

#[tokio::test]
async fn a_hundred_interim_responses_before_the_response_are_accepted() {
    let origin = Origin::saying(format!("{}{OK}", "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100)));
    assert_eq!(status(&origin.upstream(), "GET").await, 200);
}

#[tokio::test]
async fn the_content_length_of_a_chunked_response_is_removed() {
    let origin = Origin::saying(
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    );
    let answer = soon(origin.upstream().forward(request("GET", "/"))).await;
    assert!(!answer.headers().contains_key(CONTENT_LENGTH));
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "ok");
}

#[tokio::test]
async fn an_upstream_that_does_not_respond_in_time_leads_to_504() {
    let origin = Origin::saying("HTTP/1.1 200 OK\r\nX-");
    let upstream = origin.upstream_with(|limits| limits.response_header = MOMENT);
    let asked = Instant::now();
    assert_eq!(status(&upstream, "GET").await, 504);
    assert!(asked.elapsed() >= MOMENT);
}

#[tokio::test]
async fn a_response_body_that_stalls_is_ended_with_an_error() {
    let origin = Origin::saying("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab");
    let upstream = origin.upstream_with(|limits| limits.body_idle = MOMENT);
    let answer = soon(upstream.forward(request("GET", "/"))).await;
    assert_eq!(answer.status(), 200);
    let error = soon(answer.into_body().collect()).await.unwrap_err();
    assert_eq!(error.to_string(), "the upstream stopped sending its response body");
}

#[tokio::test]
async fn a_truncated_response_is_never_passed_on_as_complete() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nzz\r\n",
    ] {
        let mut client =
            Raw::sent(proxy(Origin::closing(answer).upstream()), "GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
        let received = client.rest().await;
        assert!(received.starts_with("HTTP/1.1 200 OK\r\n"), "{received}");
        assert!(!received.ends_with("0\r\n\r\n"), "{received}");
    }
}

#[tokio::test]
async fn a_response_to_head_keeps_its_content_length() {
    let origin = Origin::saying("HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n");
    let mut client =
        Raw::sent(proxy(origin.upstream()), "HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await;
    let answer = client.rest().await;
    assert!(answer.contains("content-length: 12345\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
}
