//! Tests of upstreams that use HTTP/2: connections, streams, and repeated requests.

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};

use super::*;

/// An HTTP/2 server without TLS. A script answers each of its requests.
pub(super) struct Http2Origin;

pub(super) type Respond = SendResponse<Bytes>;

impl Http2Origin {
    pub(super) fn start<F>(script: impl Fn(Request<RecvStream>, Respond) -> F + Send + Sync + 'static) -> Origin
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::with(|_| {}, script)
    }

    /// Starts the server with SETTINGS that the test chooses.
    pub(super) fn with<F>(
        change: impl Fn(&mut h2::server::Builder),
        script: impl Fn(Request<RecvStream>, Respond) -> F + Send + Sync + 'static,
    ) -> Origin
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut builder = h2::server::Builder::new();
        change(&mut builder);
        let (script, goodbye) = (Arc::new(script), shared::<Notify>());
        let serve = move |_, socket: TcpStream| {
            let (builder, script) = (builder.clone(), Arc::clone(&script));
            async move {
                let Ok(mut connection) = builder.handshake::<_, Bytes>(socket).await else { return };
                loop {
                    tokio::select! {
                        accepted = connection.accept() => match accepted {
                            Some(Ok((request, respond))) => drop(tokio::spawn(script(request, respond))),
                            _ => return,
                        },
                        () = goodbye.notified() => connection.graceful_shutdown(),
                    }
                }
            }
        };
        Origin { goodbye, ..Origin::of_sockets(HttpVersions::Http2, serve) }
    }
}

pub(super) fn upstream_to(
    addresses: impl IntoIterator<Item = SocketAddr>,
    change: impl FnOnce(&mut UpstreamLimits),
) -> Upstream {
    watched_in(HttpVersions::Http2, addresses, change).0
}

/// Sends a 200 response, with or without a body.
pub(super) fn answer(mut respond: Respond, body: &str) {
    let end = body.is_empty();
    let response = Response::builder().header("x-from", "origin").body(()).unwrap();
    let Ok(mut stream) = respond.send_response(response, end) else { return };
    if !end {
        let _ = stream.send_data(Bytes::copy_from_slice(body.as_bytes()), true);
    }
}

/// Starts a server that answers `/quick` with a short body, and every other path with an endless
/// body. The endless body consists of copies of `piece`, sent as fast as the window allows. Also
/// returns the number of sent bytes.
pub(super) fn endless(piece: Bytes) -> (Origin, &'static AtomicUsize) {
    let sent = shared::<AtomicUsize>();
    let origin = Http2Origin::start(move |request, mut respond| {
        let piece = piece.clone();
        async move {
            if request.uri().path() == "/quick" {
                return answer(respond, "ok");
            }
            let mut stream = respond.send_response(Response::new(()), false).unwrap();
            stream.reserve_capacity(piece.len());
            while let Some(Ok(room)) = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await {
                sent.fetch_add(room.min(piece.len()), Ordering::SeqCst);
                stream.send_data(piece.slice(..room.min(piece.len())), false).unwrap();
                stream.reserve_capacity(piece.len());
            }
        }
    });
    (origin, sent)
}

/// Returns eight responses whose heads have arrived and whose bodies are not read.
pub(super) async fn unread(upstream: &Upstream) -> Vec<Response<ResponseBody>> {
    let mut held = Vec::new();
    for _ in 0..8 {
        held.push(soon(upstream.forward(request("GET", "/slow"))).await);
    }
    held
}

/// Sends this number of requests to `/quick`, and checks that they are answered quickly.
pub(super) async fn are_quick(upstream: &Upstream, requests: usize) {
    for _ in 0..requests {
        assert_eq!(soon(upstream.forward(request("GET", "/quick"))).await.status(), 200);
        settled().await;
    }
}

#[tokio::test]
async fn a_request_is_converted_to_http_2_with_its_target_and_fields() {
    let origin = Http2Origin::start(|request, respond| async move {
        let (head, _) = request.into_parts();
        let fields: Vec<_> = head.headers.keys().map(|name| name.as_str().to_owned()).collect();
        answer(respond, &format!("{} {} {}", head.method, head.uri, fields.join(",")));
    });
    let upstream = origin.upstream();
    let mut asked = request("GET", "/a%2Fb?c");
    asked.headers_mut().insert("x-a", "1".parse().unwrap());
    let response = soon(upstream.forward(asked)).await;
    assert_eq!((response.status().as_u16(), &response.headers()["x-from"]), (200, &"origin".parse().unwrap()));
    assert_eq!(text(response).await, "GET http://h.test/a%2Fb?c x-a");
    assert_eq!(text(soon(upstream.forward(request("OPTIONS", "*"))).await).await, "OPTIONS http://h.test* ");
    // If the request has no host, the server's address is used.
    let mut hostless = request("GET", "/");
    hostless.headers_mut().remove(HOST);
    let want = format!("GET http://{}/ ", origin.address);
    assert_eq!(text(soon(upstream.forward(hostless)).await).await, want);
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn requests_share_a_connection_and_another_opens_when_all_streams_are_used() {
    let (sender, mut came) = mpsc::unbounded_channel();
    let go = shared::<Notify>();
    let origin = Http2Origin::with(
        |builder| {
            builder.max_concurrent_streams(2);
        },
        move |_, respond| {
            let (sender, go) = (sender.clone(), go);
            async move {
                sender.send(()).unwrap();
                go.notified().await;
                answer(respond, "ok");
            }
        },
    );
    let upstream = origin.upstream();
    // The client learns the server's SETTINGS during the first exchange.
    go.notify_one();
    assert_eq!(status(&upstream, "GET").await, 200);
    came.recv().await;
    let requests = burst(&upstream, "GET");
    for _ in 0..6 {
        soon(came.recv()).await.unwrap();
    }
    assert_eq!(origin.connections(), 3);
    go.notify_waiters();
    assert_eq!(ended(requests).await, [200; 6]);
}

#[tokio::test]
async fn a_burst_of_requests_opens_one_connection() {
    let origin = Http2Origin::start(|_, respond| async move { answer(respond, "ok") });
    let upstream = origin.upstream();
    assert_eq!(ended(burst(&upstream, "GET")).await, [200; 50]);
    assert_eq!(origin.connections(), 1);
}

/// Starts an origin that allows one stream per connection. Also returns its requests.
fn origin_of_one_stream() -> (Origin, mpsc::UnboundedReceiver<Respond>) {
    let (sender, came) = mpsc::unbounded_channel();
    let origin = Http2Origin::with(
        |builder| {
            builder.max_concurrent_streams(1);
        },
        move |_, respond| {
            sender.send(respond).unwrap();
            std::future::ready(())
        },
    );
    (origin, came)
}

#[tokio::test]
async fn requests_wait_for_a_stream_once_the_connection_limit_is_reached() {
    let (origin, mut came) = origin_of_one_stream();
    let upstream = origin.upstream_with(few(1, Duration::from_secs(10)));
    let first = asking(&upstream, "GET");
    answer(soon(came.recv()).await.unwrap(), "ok");
    assert_eq!(soon(first).await.unwrap(), 200);
    let (second, third) = (asking(&upstream, "GET"), asking(&upstream, "GET"));
    answer(soon(came.recv()).await.unwrap(), "ok");
    answer(soon(came.recv()).await.unwrap(), "ok");
    assert_eq!((soon(second).await.unwrap(), soon(third).await.unwrap()), (200, 200));
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn a_request_gets_503_if_no_stream_becomes_free_in_time() {
    let (origin, mut came) = origin_of_one_stream();
    let upstream = origin.upstream_with(few(1, MOMENT));
    // The client learns the server's SETTINGS during the first exchange.
    let first = asking(&upstream, "GET");
    answer(soon(came.recv()).await.unwrap(), "ok");
    assert_eq!(soon(first).await.unwrap(), 200);
    let second = asking(&upstream, "GET");
    let held = soon(came.recv()).await.unwrap();
    assert_eq!(status(&upstream, "GET").await, 503);
    assert_eq!((open_connections(&upstream), origin.connections()), (1, 1));
    answer(held, "ok");
    assert_eq!(soon(second).await.unwrap(), 200);
}

#[tokio::test]
async fn a_goaway_frame_moves_new_requests_to_another_connection_and_loses_none() {
    let (sender, mut came) = mpsc::unbounded_channel();
    let origin = Http2Origin::start(move |_, respond| {
        sender.send(respond).unwrap();
        std::future::ready(())
    });
    let upstream = origin.upstream();
    let first = asking(&upstream, "POST");
    let held = soon(came.recv()).await.unwrap();
    origin.goodbye.notify_one();
    // After the GOAWAY has arrived, requests use another connection. Earlier requests are repeated.
    soon(async {
        while origin.connections() == 1 {
            let asking = asking(&upstream, "POST");
            answer(came.recv().await.unwrap(), "ok");
            assert_eq!(asking.await.unwrap(), 200);
        }
    })
    .await;
    answer(held, "ok");
    assert_eq!(soon(first).await.unwrap(), 200);
}

#[tokio::test]
async fn a_request_on_a_refused_stream_is_repeated_once_whatever_its_method() {
    let seen = shared::<AtomicUsize>();
    let origin = Http2Origin::start(move |request, mut respond| {
        let number = seen.fetch_add(1, Ordering::SeqCst);
        async move {
            if number == 0 {
                respond.send_reset(Reason::REFUSED_STREAM);
                return;
            }
            let (head, mut body) = request.into_parts();
            let mut bytes = Vec::new();
            while let Some(Ok(piece)) = body.data().await {
                bytes.extend(piece);
            }
            answer(respond, &format!("{} {}", head.method, String::from_utf8_lossy(&bytes)));
        }
    });
    let mut client = Raw::connect(proxy(origin.upstream())).await;
    let response = client.ask("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello").await;
    assert_eq!((response.status(), response.body.as_str()), (200, "POST hello"));
    assert_eq!(seen.load(Ordering::SeqCst), 2);
    // A request is repeated only once, so it is not sent a third time.
    let always = Http2Origin::start(|_, mut respond| async move { respond.send_reset(Reason::REFUSED_STREAM) });
    assert_eq!(status(&always.upstream(), "GET").await, 502);
}

#[tokio::test]
async fn a_request_that_the_server_may_have_processed_is_not_repeated() {
    for reason in [Reason::INTERNAL_ERROR, Reason::CANCEL, Reason::NO_ERROR] {
        let seen = shared::<AtomicUsize>();
        let origin = Http2Origin::start(move |_, mut respond| {
            seen.fetch_add(1, Ordering::SeqCst);
            async move { respond.send_reset(reason) }
        });
        let upstream = origin.upstream();
        assert_eq!(status(&upstream, "GET").await, 502, "{reason:?}");
        assert_eq!(seen.load(Ordering::SeqCst), 1, "{reason:?}");
    }
}

#[tokio::test]
async fn an_unreachable_server_is_skipped_and_an_http_1_server_is_reported() {
    let (_gone, gone) = refusing();
    let origin = Http2Origin::start(|_, respond| async move { answer(respond, "ok") });
    let upstream = upstream_to([gone, origin.address], |_| {});
    assert_eq!(statuses(&upstream, ["POST"; 6]).await, [200; 6]);
    // A server that answers with HTTP/1.1 is recognised, and the event contains its address.
    let plain = Origin::blurting("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    let (upstream, events) = watched_in(HttpVersions::Http2, [plain.address], |_| {});
    assert_eq!(status(&upstream, "GET").await, 502);
    let said = event_detail(&events, "invalid").await;
    assert!(said.contains(&plain.address.to_string()), "{said}");
}

#[tokio::test]
async fn idle_connections_are_closed() {
    let origin = Http2Origin::start(|_, respond| async move { answer(respond, "ok") });
    let upstream = origin.upstream_with(|limits| limits.idle_timeout = MOMENT);
    assert_eq!(status(&upstream, "GET").await, 200);
    wait_until(|| open_connections(&upstream) == 0).await;
    // If idle connections are not kept, a connection is closed as soon as it has no requests.
    let upstream = origin.upstream_with(|limits| limits.idle_connections = 0);
    assert_eq!(status(&upstream, "GET").await, 200);
    wait_until(|| open_connections(&upstream) == 0).await;
}

/// Starts an origin that answers the first request of each connection. At the second request, it
/// closes the connection without a response.
fn dying() -> Origin {
    Origin::of_sockets(HttpVersions::Http2, |_, socket| async {
        let mut connection = h2::server::handshake(socket).await.unwrap();
        if let Some(Ok((_, respond))) = connection.accept().await {
            answer(respond, "ok");
        }
        let _ = connection.accept().await;
    })
}

#[tokio::test]
async fn an_idempotent_request_is_repeated_after_its_connection_breaks_and_a_post_is_not() {
    let origin = dying();
    let upstream = origin.upstream();
    assert_eq!(statuses(&upstream, ["GET"; 2]).await, [200; 2]);
    assert_eq!(origin.connections(), 2);
    let origin = dying();
    let upstream = origin.upstream();
    assert_eq!((status(&upstream, "GET").await, status(&upstream, "POST").await), (200, 502));
    assert_eq!(origin.connections(), 1);
}
