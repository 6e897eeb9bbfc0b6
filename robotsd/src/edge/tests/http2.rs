//! Tests of HTTP/2 streams: interim responses, framing, early ends, and silent clients.

use std::future::poll_fn;

use h2::Reason;
use h2::client::ResponseFuture;
use http::HeaderMap;

use super::*;
use crate::http_common::frames;
use crate::http_common::test_peer::frame;

async fn next_interim(response: &mut ResponseFuture) -> (u16, HeaderMap) {
    let head = soon(poll_fn(|cx| response.poll_informational(cx))).await.unwrap().unwrap();
    (head.status().as_u16(), head.headers().clone())
}

#[tokio::test]
async fn rfc_9110_15_2_interim_responses_come_before_the_final_one() {
    let release = shared::<Notify>();
    let service = service_fn(move |request: Request<RequestBody>| async move {
        interim::hint(&request, 103, "</a>");
        release.notified().await;
        interim::hint(&request, 102, "</a>");
        let body = request.into_body().collect().await.unwrap().to_bytes();
        Ok(Response::new(Full::new(body)))
    });
    let edge = ServedEdge::start(EdgeLimits::default(), service);
    let mut client = edge.http2().await;
    for method in ["GET", "POST", "HEAD"] {
        let is_whole = method != "POST";
        let (mut response, mut body) = client.begin(get("http://h.test/").method(method), is_whole).await;
        let (status, fields) = next_interim(&mut response).await;
        assert_eq!((status, &fields["link"]), (103, &"</a>".parse().unwrap()));
        release.notify_one();
        assert_eq!(next_interim(&mut response).await.0, 102);
        if !is_whole {
            body.send_data(Bytes::from_static(b"ok"), true).unwrap();
        }
        let (head, body) = soon(response).await.unwrap().into_parts();
        assert_eq!(head.status, 200);
        assert_eq!(bytes(body).await.unwrap(), if is_whole { &b""[..] } else { b"ok" });
    }
}

#[tokio::test]
async fn the_number_and_total_size_of_sent_interim_responses_are_limited() {
    for (said, link, sent) in [(1000, "</a>".to_owned(), 32), (32, format!("</{}>", "x".repeat(15 * 1024)), 4)] {
        let service = service_fn(move |request: Request<RequestBody>| {
            let link = link.clone();
            async move {
                for _ in 0..said {
                    interim::hint(&request, 103, &link);
                    tokio::task::yield_now().await;
                }
                Ok(Response::new(Empty::<Bytes>::new()))
            }
        });
        let edge = ServedEdge::start(EdgeLimits::default(), service);
        let (mut response, _) = edge.http2().await.begin(get("http://h.test/"), true).await;
        let mut received = 0;
        while soon(poll_fn(|cx| response.poll_informational(cx))).await.is_some() {
            received += 1;
        }
        assert_eq!((received, soon(response).await.unwrap().status().as_u16()), (sent, 200));
    }
}

#[tokio::test]
async fn rfc_9110_10_1_1_a_100_response_is_sent_once_the_service_reads_the_body() {
    let service = service_fn(|request: Request<RequestBody>| async move {
        let body = match request.uri().path() {
            "/unread" => Bytes::new(),
            _ => request.into_body().collect().await.unwrap().to_bytes(),
        };
        Ok(Response::new(Full::new(body)))
    });
    let edge = ServedEdge::start(EdgeLimits::default(), service);
    let mut client = edge.http2().await;
    let post = |path: &str| get(&format!("http://h.test{path}")).method("POST").header("expect", "100-Continue");
    let (mut response, mut body) = client.begin(post("/"), false).await;
    assert_eq!(next_interim(&mut response).await.0, 100);
    body.send_data(Bytes::from_static(b"ok"), true).unwrap();
    assert_eq!(bytes(soon(response).await.unwrap().into_body()).await.unwrap(), b"ok");
    let (mut response, _body) = client.begin(post("/unread"), false).await;
    assert!(soon(poll_fn(|cx| response.poll_informational(cx))).await.is_none());
    assert_eq!(soon(response).await.unwrap().status(), 200);
}

/// Answers with a response whose status, declared length and body are given in the path.
async fn framed(request: Request<RequestBody>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut parts = request.uri().path().split('/').skip(1);
    let mut response = Response::builder().status(parts.next().unwrap());
    if let Some(length) = parts.next().filter(|length| !length.is_empty()) {
        response = response.header("content-length", length);
    }
    Ok(response.body(Full::from(parts.next().unwrap_or_default().to_owned())).unwrap())
}

#[tokio::test]
async fn rfc_9113_8_1_a_response_has_its_declared_length_or_is_reset() {
    let edge = ServedEdge::start(EdgeLimits::default(), service_fn(framed));
    let mut client = edge.http2().await;
    for (method, path, length, body) in [
        ("GET", "/200//abc", Some("3"), "abc"),
        ("GET", "/200/3/abc", Some("3"), "abc"),
        ("GET", "/200", None, ""),
        ("HEAD", "/200//abc", Some("3"), ""),
        ("HEAD", "/200/5", Some("5"), ""),
        ("GET", "/204/5/abc", None, ""),
        ("GET", "/304/5/abc", Some("5"), ""),
    ] {
        let (head, bytes) = client.ask(get(&format!("http://h.test{path}")).method(method)).await.unwrap().into_parts();
        let said = head.headers.get("content-length").map(|length| length.to_str().unwrap());
        assert_eq!((said, bytes.as_slice()), (length, body.as_bytes()), "{method} {path}");
        assert!(head.headers.contains_key("date"));
        assert!(!head.headers.contains_key("connection"));
    }
    for path in ["/200/5/abc", "/200/2/abc", "/200/2"] {
        let error = client.ask(get(&format!("http://h.test{path}"))).await.unwrap_err();
        assert!(error.is_reset(), "{path}: {error}");
    }
    // A refused request does not end the connection. The answer to HEAD has no body.
    let refused = client.ask(get("http://h.test/200/3/abc").method("HEAD").header("host", "evil")).await.unwrap();
    assert_eq!((refused.status().as_u16(), refused.body().len()), (400, 0));
    assert!(!refused.headers().contains_key("connection"));
}

#[tokio::test]
async fn rfc_9113_8_1_an_early_response_does_not_need_the_rest_of_the_request() {
    let edge = ServedEdge::start(EdgeLimits::default(), service_fn(framed));
    let mut client = edge.http2().await;
    let (response, mut body) = client.begin(get("http://h.test/200//abc").method("POST"), false).await;
    body.send_data(Bytes::from_static(b"a part"), false).unwrap();
    assert_eq!(bytes(soon(response).await.unwrap().into_body()).await.unwrap(), b"abc");
    assert_eq!(soon(poll_fn(|cx| body.poll_reset(cx))).await.unwrap(), Reason::NO_ERROR);
    assert_eq!(client.ask(get("http://h.test/200//abc")).await.unwrap().body(), b"abc");
}

#[tokio::test]
async fn a_request_is_dropped_when_its_client_resets_the_stream() {
    let (edge, begun, gone) = unanswered();
    let mut client = edge.http2().await;
    let (_response, mut body) = client.begin(get("http://h.test/").method("POST"), false).await;
    soon(begun.notified()).await;
    body.send_reset(Reason::CANCEL);
    assert!(soon(gone).await.is_err());
}

/// The first client does not answer a PING, so its connection ends. The connection of the second
/// client stays open.
#[tokio::test]
async fn a_client_that_does_not_answer_a_ping_is_disconnected() {
    // The head is sent together with the preface; otherwise the deadline for heads could pass.
    let asking = [flood::GREETING, &flood::head(2, frames::END_STREAM, 1)].concat();
    let Held { edge, begun, .. } = held(brief(|limits| (limits.keep_alive, limits.header_read) = (MOMENT, MOMENT)));
    let _silent = edge.sent(&asking).await;
    soon(begun.notified()).await;
    edge.reports(ConnectionErrorKind::Broken).await;
    assert!(edge.messages()[0].contains("the client did not answer a PING in time"));

    let Held { edge, begun, release } = held(brief(|limits| (limits.keep_alive, limits.header_read) = (MOMENT, HOUR)));
    let mut client = edge.sent(&asking).await;
    soon(begun.notified()).await;
    // After each answer, the server sends the next PING.
    for _ in 0..3 {
        let ping = loop {
            let received = soon(client.frame()).await.expect("an open connection");
            if received.kind == flood::PING && received.flags & frames::ACK == 0 {
                break received;
            }
        };
        client.send(frame(flood::PING, frames::ACK, 0, &ping.payload)).await;
    }
    release.notify_waiters();
    http2_stalls::until(&mut client, frames::HEADERS, 1).await;
}

#[tokio::test]
async fn shutdown_sends_a_goaway_and_finishes_requests() {
    let Held { mut edge, begun, release } = held(EdgeLimits::default());
    let mut client = edge.http2().await;
    let (response, _) = client.begin(get("http://h.test/"), true).await;
    soon(begun.notified()).await;
    edge.begin_shutdown();
    // When the client has received the GOAWAY, it cannot send more requests.
    soon(async {
        while poll_fn(|cx| client.sender.poll_ready(cx)).await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    release.notify_waiters();
    assert_eq!(soon(response).await.unwrap().status(), 200);
    soon(edge.served).await.unwrap();
    assert!(edge.reported.lock().is_empty());
}
