//! Tests of HTTP/2 streams through the whole proxy. They cover bodies in both directions at the
//! same time, trailers, windows, and streams that end early.

use bytes::Bytes;
use h2::{Reason, SendStream};
use http::{HeaderMap, HeaderValue};

use super::http2::{Http2Origin, answer, are_quick, endless, unread, upstream_to};
use super::*;
use crate::http_common::test_peer::{Http2Client, bytes};

fn post() -> http::request::Builder {
    Request::builder().method("POST").uri("http://h.test/pkg.Service/Method").header("content-type", "application/grpc")
}

fn trailers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    fields.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
}

/// Sends all of the bytes, as fast as the other side accepts them.
async fn pour(stream: &mut SendStream<Bytes>, mut bytes: Bytes) {
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len());
        let room = soon(std::future::poll_fn(|cx| stream.poll_capacity(cx))).await.unwrap().unwrap();
        stream.send_data(bytes.split_to(room.min(bytes.len())), false).unwrap();
    }
}

/// Starts an origin that sends every piece of a body back as it arrives. At the end, it sends the
/// trailers back, with an additional trailer.
fn echo() -> Origin {
    Http2Origin::start(|request, mut respond| async move {
        let te = request.headers().get("te").cloned();
        let mut body = request.into_body();
        let mut response = Response::builder();
        if let Some(te) = te {
            response = response.header("x-te", te);
        }
        let mut stream = respond.send_response(response.body(()).unwrap(), false).unwrap();
        while let Some(Ok(piece)) = body.data().await {
            let _ = body.flow_control().release_capacity(piece.len());
            pour(&mut stream, piece).await;
        }
        let mut end = body.trailers().await.ok().flatten().unwrap_or_default();
        end.insert("grpc-status", HeaderValue::from_static("0"));
        end.insert("set-cookie", HeaderValue::from_static("late=1"));
        end.insert("content-length", HeaderValue::from_static("0"));
        let _ = stream.send_trailers(end);
    })
}

#[tokio::test]
async fn both_directions_stream_at_the_same_time_and_end_with_trailers() {
    let mut client = Http2Client::connect(proxy(echo().upstream())).await;
    let (response, mut stream) = client.begin(post().header("te", "trailers"), false).await;
    let response = soon(response).await.unwrap();
    assert_eq!((response.status().as_u16(), &response.headers()["x-te"]), (200, &"trailers".parse().unwrap()));
    let mut body = response.into_body();
    for message in ["one", "two", "three"] {
        stream.send_data(Bytes::from_static(message.as_bytes()), false).unwrap();
        assert_eq!(soon(body.data()).await.unwrap().unwrap(), message);
    }
    let sent = [("x-checksum", "7"), ("robots-verdict", "allow"), ("authorization", "x"), ("content-type", "x")];
    stream.send_trailers(trailers(&sent)).unwrap();
    assert!(soon(body.data()).await.is_none());
    let end = soon(body.trailers()).await.unwrap().unwrap();
    let mut end: Vec<_> = end.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    end.sort_unstable();
    assert_eq!(end, [("grpc-status", "0"), ("x-checksum", "7")]);
}

#[tokio::test]
async fn the_te_field_of_an_http_1_request_is_not_forwarded() {
    let proxy = proxy(echo().upstream());
    let mut client = Http2Client::connect(proxy).await;
    let (response, mut stream) = client.begin(post(), false).await;
    stream.send_data(Bytes::new(), true).unwrap();
    assert!(!soon(response).await.unwrap().headers().contains_key("x-te"));
    let mut plain = Raw::connect(proxy).await;
    for said in ["trailers", "deflate, Trailers", "gzip"] {
        let head = format!("POST / HTTP/1.1\r\nHost: h\r\nTE: {said}\r\nContent-Length: 2\r\n\r\nab");
        let response = plain.ask(&head).await;
        assert_eq!((response.field("x-te"), response.body.as_str()), (None, "ab"), "{said}");
    }
}

#[tokio::test]
async fn a_trailers_only_response_is_passed_on() {
    let origin = Http2Origin::start(|_, mut respond| async move {
        let response = Response::builder().header("grpc-status", "5").header("content-type", "application/grpc");
        respond.send_response(response.body(()).unwrap(), true).unwrap();
    });
    let mut client = Http2Client::connect(proxy(origin.upstream())).await;
    let (response, _) = client.begin(post(), true).await;
    let response = soon(response).await.unwrap();
    assert_eq!(response.headers()["grpc-status"], "5");
    // The response consists of one frame: the head, which ends the stream.
    assert!(response.body().is_end_stream());
}

#[tokio::test]
async fn large_bodies_pass_through_both_flow_control_windows() {
    let large = Bytes::from((0..2 << 20).map(|at| (at / 7) as u8).collect::<Vec<_>>());
    let mut client = Http2Client::connect(proxy(echo().upstream())).await;
    let (response, mut stream) = client.begin(post(), false).await;
    let sent = large.clone();
    tokio::spawn(async move {
        pour(&mut stream, sent).await;
        stream.send_data(Bytes::new(), true).unwrap();
    });
    assert!(bytes(soon(response).await.unwrap().into_body()).await.unwrap() == large);
    // On HTTP/1.1, the trailers are dropped and the body is still complete.
    let mut plain = Raw::connect(proxy(echo().upstream())).await;
    let response =
        plain.ask("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n").await;
    assert_eq!((response.status(), response.body.as_str()), (200, "ab"));
}

#[tokio::test]
async fn a_client_that_does_not_read_delays_only_its_own_stream() {
    let (origin, sent) = endless(Bytes::from(vec![0; 16 * 1024]));
    let upstream = origin.upstream_with(|limits| limits.buffer_bytes = 64 * 1024);
    let _held = unread(&upstream).await;
    are_quick(&upstream, 20).await;
    assert!(sent.load(Ordering::SeqCst) <= 9 * 64 * 1024, "{sent:?}");
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn a_request_that_the_client_cancels_is_cancelled_at_the_upstream() {
    let (sender, mut reasons) = reporting();
    let origin = Http2Origin::start(move |request, mut respond| async move {
        let answers = request.uri().path() == "/answered";
        let mut stream = answers.then(|| respond.send_response(Response::new(()), false).unwrap());
        sender.send(None).unwrap();
        let reason = match &mut stream {
            Some(stream) => std::future::poll_fn(|cx| stream.poll_reset(cx)).await,
            None => std::future::poll_fn(|cx| respond.poll_reset(cx)).await,
        };
        sender.send(Some(reason.unwrap())).unwrap();
    });
    let proxy = proxy(origin.upstream());
    for path in ["/answered", "/silent"] {
        let mut client = Http2Client::connect(proxy).await;
        let (response, mut stream) = client.begin(Request::post(format!("http://h.test{path}")), false).await;
        assert_eq!(soon(reasons.recv()).await, Some(None), "{path}");
        if path == "/answered" {
            drop(soon(response).await.unwrap());
        } else {
            tokio::spawn(response);
        }
        stream.send_reset(Reason::CANCEL);
        assert_eq!(soon(reasons.recv()).await, Some(Some(Reason::CANCEL)), "{path}");
    }
    // The connection was not closed, so other requests on it would not have been affected.
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn a_complete_body_waits_for_the_end_of_its_stream_for_a_limited_time() {
    let (sender, mut ends) = reporting();
    let origin = Http2Origin::start(move |request, mut respond| async move {
        let patience = if request.uri().path() == "/late" { MOMENT } else { Duration::MAX };
        let response = match request.method().as_str() {
            "DELETE" => Response::builder().status(204),
            _ => Response::builder().header(CONTENT_LENGTH, "2"),
        };
        let mut stream = respond.send_response(response.body(()).unwrap(), false).unwrap();
        if request.method() == "GET" {
            stream.send_data(Bytes::from_static(b"ok"), false).unwrap();
        }
        let reset = tokio::time::timeout(patience, std::future::poll_fn(|cx| stream.poll_reset(cx))).await;
        stream.send_data(Bytes::new(), true).ok();
        sender.send(reset.ok().map(Result::unwrap)).unwrap();
    });
    let mut client = Raw::connect(proxy(origin.upstream())).await;
    for (path, want) in [("/late", None), ("/never", Some(Reason::CANCEL)), ("/late", None)] {
        undisturbed(async || {
            let response = client.ask(&format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n")).await;
            assert_eq!((response.status(), response.body.as_str()), (200, "ok"), "{path}");
            (soon(ends.recv()).await == Some(want)).then_some(())
        })
        .await;
    }
    // Responses without a body are not delayed either, whatever length they declare.
    for (method, status) in [("HEAD", "200 OK"), ("DELETE", "204 No Content")] {
        undisturbed(async || {
            client.send(format!("{method} /late HTTP/1.1\r\nHost: h\r\n\r\n")).await;
            let head = client.until(b"\r\n\r\n").await;
            assert!(head.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{head}");
            assert_eq!(head.contains("content-length: 2"), method == "HEAD", "{head}");
            (soon(ends.recv()).await == Some(None)).then_some(())
        })
        .await;
    }
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn a_response_that_arrives_before_the_request_ends_is_passed_on() {
    let origin = Http2Origin::start(|_, respond| async move { answer(respond, "enough") });
    let mut client = Http2Client::connect(proxy(origin.upstream())).await;
    let (response, mut stream) = client.begin(post(), false).await;
    stream.send_data(Bytes::from_static(b"some"), false).unwrap();
    assert_eq!(bytes(soon(response).await.unwrap().into_body()).await.unwrap(), b"enough");
}

#[tokio::test]
async fn small_body_pieces_are_joined_and_a_bounded_part_is_kept_for_a_retry() {
    // If pieces of one byte were sent separately, the server would treat them as a flood.
    for (pieces, size, want) in [(200, 1, 200), (300, 200, 200), (80, 1024, 502)] {
        let seen = shared::<AtomicUsize>();
        let origin = Http2Origin::start(move |request, mut respond| {
            let number = seen.fetch_add(1, Ordering::SeqCst);
            async move {
                let bytes = bytes(request.into_body()).await.unwrap();
                if number == 0 {
                    return respond.send_reset(Reason::REFUSED_STREAM);
                }
                answer(respond, &bytes.len().to_string());
            }
        });
        let mut client = Http2Client::connect(proxy(origin.upstream())).await;
        let (response, mut stream) = client.begin(Request::post("http://h.test/"), false).await;
        for _ in 0..pieces {
            stream.send_data(Bytes::from(vec![b'x'; size]), false).unwrap();
        }
        stream.send_data(Bytes::new(), true).unwrap();
        let response = soon(response).await.unwrap();
        assert_eq!(response.status(), want, "{pieces} of {size}");
        if want == 200 {
            assert_eq!(bytes(response.into_body()).await.unwrap(), (pieces * size).to_string().as_bytes());
        }
    }
}

#[tokio::test]
async fn a_response_body_that_breaks_off_ends_with_an_error() {
    let go = shared::<Notify>();
    let origin = Http2Origin::start(move |_, mut respond| async move {
        let mut stream = respond.send_response(Response::new(()), false).unwrap();
        stream.send_data(Bytes::from_static(b"half"), false).unwrap();
        go.notified().await;
        stream.send_reset(Reason::INTERNAL_ERROR);
    });
    let response = soon(origin.upstream().forward(request("GET", "/"))).await;
    assert_eq!(response.status(), 200);
    go.notify_one();
    assert!(soon(response.into_body().collect()).await.is_err());
}

#[tokio::test]
async fn a_silent_server_times_out_and_its_connection_is_checked_with_a_ping() {
    let origin = Http2Origin::start(|request, respond| async move {
        if request.uri().path() == "/silent" {
            std::future::pending::<()>().await;
        }
        answer(respond, "ok");
    });
    // The server answers PINGs. If there is a pause between two PINGs, the connection stays in use.
    // If it is too early for another PING, the connection is suspected to be dead, and another
    // connection opens.
    for (pauses, want) in [(true, 1), (false, 2)] {
        let connections = undisturbed(async || {
            let before = origin.connections();
            let upstream = origin.upstream_with(|limits| limits.response_header = MOMENT);
            assert_eq!(soon(upstream.forward(request("GET", "/silent"))).await.status(), 504);
            if pauses {
                settled().await;
            }
            (status(&upstream, "GET").await == 200).then(|| origin.connections() - before)
        });
        assert_eq!(connections.await, want, "{pauses}");
    }
    // If a server does not answer the PING, its connection is closed.
    let dead = Origin::start(|_, mut peer| async move {
        peer.try_send([0, 0, 0, 4, 0, 0, 0, 0, 0]).await;
        std::future::pending::<()>().await;
    });
    let upstream = upstream_to([dead.address], |limits| {
        limits.response_header = MOMENT;
        limits.connect = MOMENT;
    });
    assert_eq!(status(&upstream, "GET").await, 504);
    wait_until(|| open_connections(&upstream) == 0).await;
}

#[tokio::test]
async fn a_stalled_response_body_is_aborted_unless_the_request_body_moves() {
    let origin = Http2Origin::start(|request, mut respond| async move {
        let mut stream = respond.send_response(Response::new(()), false).unwrap();
        if request.uri().path() == "/listens" {
            let mut body = request.into_body();
            while let Some(Ok(piece)) = body.data().await {
                let _ = body.flow_control().release_capacity(piece.len());
            }
            let _ = stream.send_data(Bytes::from_static(b"heard"), true);
            return;
        }
        std::future::pending::<()>().await;
    });
    let upstream = origin.upstream_with(|limits| limits.body_idle = 2 * MOMENT);
    let response = soon(upstream.forward(request("GET", "/silent"))).await;
    assert!(soon(response.into_body().collect()).await.is_err());
    let proxy = proxy(upstream);
    let body = undisturbed(async || {
        let mut client = Http2Client::connect(proxy).await;
        let (response, mut stream) = client.begin(Request::post("http://h.test/listens"), false).await;
        let response = soon(response).await.ok()?;
        let start = Instant::now();
        while start.elapsed() < 4 * MOMENT {
            stream.send_data(Bytes::from_static(b"x"), false).ok()?;
            tokio::time::sleep(MOMENT / 5).await;
        }
        stream.send_data(Bytes::new(), true).ok()?;
        bytes(response.into_body()).await.ok()
    });
    assert_eq!(body.await, b"heard");
}

#[tokio::test]
async fn a_grpc_call_without_a_response_gets_a_grpc_status() {
    let (_gone, gone) = refusing();
    let silent = Http2Origin::start(|_, respond| async move {
        let _held = respond;
        std::future::pending::<()>().await;
    });
    for (address, code) in [(gone, "14"), (silent.address, "4")] {
        let upstream = upstream_to([address], |limits| limits.response_header = MOMENT);
        let proxy = proxy(upstream);
        let mut calling = Http2Client::connect(proxy).await;
        let (response, _) = calling.begin(post(), true).await;
        let response = soon(response).await.unwrap();
        let fields = response.headers();
        assert_eq!((response.status().as_u16(), fields["grpc-status"].to_str().unwrap()), (200, code));
        assert_eq!(fields["content-type"], "application/grpc");
        assert!(fields["grpc-message"].to_str().unwrap().starts_with("50") && response.body().is_end_stream());
        // Requests other than gRPC calls still get the usual response.
        let response = calling.ask(Request::get("http://h.test/")).await.unwrap();
        assert!(matches!(response.status().as_u16(), 502 | 504) && !response.headers().contains_key("grpc-status"));
    }
}
