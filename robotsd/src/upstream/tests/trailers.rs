//! Tests of trailers if one side uses HTTP/1.1. The trailers are dropped (RFC 9110, section 6.5.1).

use super::http2::{Http2Origin, answer};
use super::*;
use crate::http_common::test_peer::Http2Client;

const ANSWER: &str =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n";

#[tokio::test]
async fn trailers_of_an_http_1_upstream_reach_no_client() {
    let address = proxy(Origin::always(ANSWER).upstream());
    let mut client = Raw::connect(address).await;
    for te in ["", "TE: trailers\r\n", "Connection: TE\r\nTE: deflate, Trailers\r\n"] {
        client.send(format!("GET / HTTP/1.1\r\nHost: h\r\n{te}\r\n")).await;
        let head = client.until(b"\r\n\r\n").await;
        assert!(!head.contains("trailer:"), "{head}");
        assert_eq!(client.until(b"0\r\n\r\n").await, "2\r\nok\r\n0\r\n\r\n", "{te}");
    }
    let get = Request::builder().uri("http://h.test/").header("te", "trailers");
    let mut client = Http2Client::connect(address).await;
    let (response, _) = client.begin(get, true).await;
    let response = soon(response).await.unwrap();
    assert!(!response.headers().contains_key("trailer"), "{response:?}");
    let mut body = response.into_body();
    let mut text = Vec::new();
    while let Some(piece) = soon(body.data()).await {
        text.extend(piece.unwrap());
    }
    assert_eq!(text, b"ok");
    assert_eq!(soon(body.trailers()).await.unwrap(), None);
}

#[tokio::test]
async fn request_trailers_are_dropped_if_either_side_uses_http_1() {
    let (sender, mut requests) = reporting();
    let http1 = Origin::start(move |_, mut peer| async move {
        while let Some(head) = peer.up_to(b"\r\n\r\n").await {
            sender.send((String::from_utf8(head).unwrap(), peer.until(b"0\r\n\r\n").await)).unwrap();
            peer.send(OK).await;
        }
    });
    let http2 = Http2Origin::start(move |request, respond| async move {
        let head = format!("{:?}", request.headers());
        let mut body = request.into_body();
        while let Some(Ok(piece)) = body.data().await {
            let _ = body.flow_control().release_capacity(piece.len());
        }
        sender.send((head, format!("{:?}", body.trailers().await.unwrap()))).unwrap();
        answer(respond, "ok");
    });
    let (http1, http2) = (proxy(http1.upstream()), proxy(http2.upstream()));
    for (address, want) in [(http1, "2\r\nab\r\n0\r\n\r\n"), (http2, "None")] {
        let mut client = Raw::connect(address).await;
        for announced in ["", "Trailer: X-Sum\r\n"] {
            let request = format!(
                "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n{announced}\r\n2\r\nab\r\n0\r\nX-Sum: 1\r\n\r\n"
            );
            assert_eq!(client.ask(&request).await.status(), 200);
            let (head, body) = requests.recv().await.unwrap();
            assert!(!head.contains("trailer"), "{head}");
            assert_eq!(body, want, "{announced}");
        }
    }
    let post = Request::builder().method("POST").uri("http://h.test/").header("trailer", "x-sum");
    let mut client = Http2Client::connect(http1).await;
    let (response, mut stream) = client.begin(post, false).await;
    stream.send_data("ab".into(), false).unwrap();
    stream.send_trailers([("x-sum".parse().unwrap(), "1".parse().unwrap())].into_iter().collect()).unwrap();
    assert_eq!(soon(response).await.unwrap().status(), 200);
    let (head, body) = requests.recv().await.unwrap();
    assert!(!head.contains("trailer"), "{head}");
    assert_eq!(body, "2\r\nab\r\n0\r\n\r\n");
}
