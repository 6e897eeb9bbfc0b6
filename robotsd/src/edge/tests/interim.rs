//! Tests of interim responses. On every path, an interim response is sent without waiting for the
//! final response.

use http::HeaderMap;

use super::*;

/// Sends an interim response to the client, if the client accepts interim responses.
pub(super) fn hint(request: &Request<RequestBody>, status: u16, link: &str) {
    if let Some(client) = ClientRequest::of(request.extensions()).and_then(|known| known.interim.as_ref()) {
        let fields = HeaderMap::from_iter([(http::header::LINK, link.parse().unwrap())]);
        client.send(StatusCode::from_u16(status).unwrap(), &fields);
    }
}

/// Sends two interim responses, and then a response with the body of the request. The response for
/// `/large` is large.
async fn hinting(request: Request<RequestBody>) -> Result<Response<Full<Bytes>>, Infallible> {
    hint(&request, 103, "</a>");
    hint(&request, 102, "</b>");
    let body = match request.uri().path() {
        "/large" => Bytes::from(vec![b'x'; 16 << 20]),
        _ => request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default(),
    };
    Ok(Response::new(Full::new(body)))
}

/// Reads the responses to one HTTP/1.1 request: two interim responses and the final response.
async fn read_hinted(client: &mut Raw) -> test_peer::RawMessage {
    for (status, link) in [(103, "</a>"), (102, "</b>")] {
        let interim = client.message().await;
        assert_eq!((interim.status(), interim.field("link")), (status, Some(link)), "{}", interim.head);
    }
    let last = client.message().await;
    assert_eq!(last.status(), 200, "{}", last.head);
    last
}

const REQUESTS: [(&str, &str); 6] = [
    ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", ""),
    ("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n", ""),
    ("GET / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\n\r\n", ""),
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nok", "ok"),
    ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "ok"),
    ("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", ""),
];

#[tokio::test]
async fn rfc_9110_15_2_interim_responses_come_before_the_final_one() {
    let edge = ServedEdge::start(EdgeLimits::default(), service_fn(hinting));
    for (request, body) in REQUESTS {
        let mut client = edge.sent(request).await;
        assert_eq!(read_hinted(&mut client).await.body, body, "{request}");
    }
    // The requests are sent one after another, and then all in one write. hyper takes over in
    // between.
    let mut client = edge.client().await;
    for (request, body) in REQUESTS {
        client.send(request).await;
        assert_eq!(read_hinted(&mut client).await.body, body, "{request}");
    }
    let mut client = edge.sent(REQUESTS.map(|(request, _)| request).concat()).await;
    for (request, body) in REQUESTS {
        assert_eq!(read_hinted(&mut client).await.body, body, "{request}");
    }
    assert!(client.rest().await.is_empty());
}

#[tokio::test]
async fn an_interim_response_does_not_wait_for_the_final_one() {
    let release = shared::<Notify>();
    let service = service_fn(move |request: Request<RequestBody>| async move {
        for link in ["</a>", "</b>"] {
            hint(&request, 103, link);
            release.notified().await;
        }
        Ok(Response::new(Empty::<Bytes>::new()))
    });
    let edge = ServedEdge::start(EdgeLimits::default(), service);
    for (request, _) in REQUESTS {
        let mut client = edge.sent(request).await;
        for link in ["</a>", "</b>"] {
            let interim = client.message().await;
            assert_eq!((interim.status(), interim.field("link")), (103, Some(link)), "{request}");
            release.notify_one();
        }
        assert_eq!(client.message().await.status(), 200, "{request}");
    }
}

#[tokio::test]
async fn an_http_1_0_client_gets_no_interim_responses() {
    let edge = ServedEdge::start(EdgeLimits::default(), service_fn(hinting));
    for request in ["GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n"] {
        assert_eq!(edge.ask(request).await.status(), 200);
    }
}

#[tokio::test]
async fn a_100_response_is_sent_together_with_other_interim_responses() {
    let edge = ServedEdge::start(EdgeLimits::default(), service_fn(hinting));
    let mut client = edge.sent("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n").await;
    let mut statuses = Vec::new();
    while statuses.len() < 3 {
        statuses.push(client.message().await.status());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [100, 102, 103]);
    client.send("ok").await;
    let last = client.message().await;
    assert_eq!((last.status(), &*last.body), (200, "ok"));
}

/// The client does not read a large response. The second response waits behind it.
#[tokio::test]
async fn responses_that_a_client_reads_late_keep_their_order() {
    let edge = ServedEdge::start(EdgeLimits::default(), service_fn(hinting));
    for (request, body) in REQUESTS {
        let mut client = edge.sent(["GET /large HTTP/1.1\r\nHost: h\r\n\r\n", request].concat()).await;
        // After this time, the buffers of the system are full.
        tokio::time::sleep(MOMENT).await;
        assert_eq!(read_hinted(&mut client).await.body.len(), 16 << 20);
        assert_eq!(read_hinted(&mut client).await.body, body, "{request}");
    }
}

/// The client does not read. Both the size of the queue and the waiting time are limited.
#[tokio::test]
async fn a_request_with_endless_unread_interim_responses_is_ended() {
    let stopped = shared::<Notify>();
    let service = service_fn(move |request: Request<RequestBody>| hint_without_end(request, NotifyOnDrop(stopped)));
    let edge = ServedEdge::start(brief(|limits| limits.body_idle = MOMENT), service);
    for (request, _) in REQUESTS {
        let _client = edge.sent(request).await;
        // The edge ends the request and the connection, although the client stays connected.
        soon(stopped.notified()).await;
    }
}

async fn hint_without_end(
    request: Request<RequestBody>,
    _stops: NotifyOnDrop,
) -> Result<Response<Empty<Bytes>>, Infallible> {
    let link = format!("</{}>", "x".repeat(16 * 1024));
    loop {
        hint(&request, 103, &link);
        tokio::task::yield_now().await;
    }
}

/// An upstream connection that other requests need.
#[derive(Default)]
struct Wanted(Notify);

impl StallObserver for Wanted {
    fn poll_stalled(&self, _: &mut Context<'_>) -> Poll<()> {
        self.0.notify_one();
        Poll::Ready(())
    }

    fn resumed(&self) {}
}

/// The final response waits until the client has received the interim responses. Meanwhile, other
/// requests may need the upstream connection of this response.
#[tokio::test]
async fn a_response_that_waits_for_interim_responses_can_be_cancelled() {
    let wanted = Arc::new(Wanted::default());
    let transfer = Transfer::new(&wanted);
    let service = service_fn(move |request: Request<RequestBody>| {
        let transfer = transfer.clone();
        async move {
            let link = format!("</{}>", "x".repeat(60 * 1024));
            // These responses do not fit into the system's buffers.
            for _ in 0..512 {
                hint(&request, 103, &link);
                tokio::task::yield_now().await;
            }
            let mut response = Response::new(Empty::<Bytes>::new());
            response.extensions_mut().insert(transfer);
            Ok(response)
        }
    });
    let edge = ServedEdge::start(EdgeLimits::default(), service);
    let _client = edge.sent("GET / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\n\r\n").await;
    soon(wanted.0.notified()).await;
}

struct NotifyOnDrop(&'static Notify);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}
