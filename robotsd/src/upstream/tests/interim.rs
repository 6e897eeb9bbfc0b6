//! Tests of interim responses from servers, through the whole proxy.

use std::future::poll_fn;

use super::http2::{Http2Origin, answer, upstream_to};
use super::*;
use crate::http_common::test_peer::Http2Client;

const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: X-Own\r\nX-Own: 1\r\n\r\n\
                     HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\nContent-Length: 5\r\n\r\n";

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const POST: &str = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nok";

/// Starts an HTTP/1.1 server that sends two interim responses before each answer.
fn hinting_http1() -> Origin {
    Origin::start(|_, mut peer| async move {
        loop {
            peer.message().await;
            peer.send([HINTS, OK].concat()).await;
        }
    })
}

/// Starts an HTTP/2 server that sends two interim responses before each answer.
fn hinting_http2() -> Origin {
    Http2Origin::start(|_, mut respond| async move {
        for (status, link) in [(103, "</a>"), (100, ""), (102, "")] {
            let mut interim = Response::builder().status(status);
            if !link.is_empty() {
                interim = interim.header("link", link);
            }
            respond.send_informational(interim.body(()).unwrap()).unwrap();
        }
        answer(respond, "ok");
    })
}

async fn check(address: SocketAddr) {
    let mut client = Raw::connect(address).await;
    for request in [GET, POST, GET, GET] {
        client.send(request).await;
        let early = client.message().await;
        assert_eq!((early.status(), early.field("link")), (103, Some("</a>")), "{}", early.head);
        assert!(early.field("connection").is_none() && early.field("x-own").is_none(), "{}", early.head);
        let processing = client.message().await;
        assert_eq!((processing.status(), processing.field("content-length")), (102, None));
        let last = client.message().await;
        assert_eq!((last.status(), &*last.body), (200, "ok"), "{}", last.head);
    }
    let mut old = Raw::connect(address).await;
    assert_eq!(old.ask("GET / HTTP/1.0\r\nHost: h\r\n\r\n").await.status(), 200);
}

#[tokio::test]
async fn rfc_9110_15_2_interim_responses_of_both_protocols_reach_the_client() {
    for upstream in [hinting_http1().upstream(), hinting_http2().upstream()] {
        let address = proxy(upstream);
        check(address).await;
        check_http2(address).await;
    }
}

/// Checks the interim responses that an HTTP/2 client receives.
async fn check_http2(address: SocketAddr) {
    let mut client = Http2Client::connect(address).await;
    for method in ["GET", "POST", "GET"] {
        let (mut response, _) = client.begin(Request::builder().method(method).uri("http://h.test/"), true).await;
        let mut early = Vec::new();
        while let Some(head) = soon(poll_fn(|cx| response.poll_informational(cx))).await {
            early.push(head.unwrap());
        }
        let statuses: Vec<_> = early.iter().map(|head| head.status().as_u16()).collect();
        assert_eq!(statuses, [103, 102]);
        assert_eq!(early[0].headers().iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["link"]);
        let response = soon(response).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(soon(response.into_body().data()).await.unwrap().unwrap(), "ok");
    }
}

#[tokio::test]
async fn early_hints_reach_the_client_before_the_final_response() {
    let release = shared::<Notify>();
    let origin = Origin::start(move |_, mut peer| async move {
        loop {
            peer.message().await;
            peer.send(HINTS).await;
            release.notified().await;
            peer.send(OK).await;
        }
    });
    let mut client = Raw::connect(proxy(origin.upstream())).await;
    for request in [GET, POST, GET] {
        client.send(request).await;
        assert_eq!(client.message().await.status(), 103);
        assert_eq!(client.message().await.status(), 102);
        release.notify_one();
        assert_eq!(client.message().await.status(), 200);
    }
}

#[tokio::test]
async fn only_the_first_32_of_many_interim_responses_are_passed_on() {
    let origin = Origin::saying(format!("{}{OK}", "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100)));
    let origin_http2 = Http2Origin::start(|_, mut respond| async move {
        for _ in 0..100 {
            respond.send_informational(Response::builder().status(103).body(()).unwrap()).unwrap();
        }
        answer(respond, "ok");
    });
    for upstream in [origin.upstream(), origin_http2.upstream()] {
        let mut client = Raw::sent(proxy(upstream), GET).await;
        let mut statuses = Vec::new();
        while !matches!(statuses.last(), Some(200..)) {
            statuses.push(client.message().await.status());
        }
        assert_eq!((statuses.len(), statuses.last()), (33, Some(&200)));
    }
}

/// The interim response arrives shortly before the deadline. A second request with a deadline that
/// is 1.5 times as long shows that the first request fails in time.
#[tokio::test]
async fn an_interim_response_does_not_extend_the_deadline() {
    let deadline = 4 * MOMENT;
    let hinting = Origin::start(move |_, mut peer| async move {
        peer.message().await;
        tokio::time::sleep(deadline * 3 / 4).await;
        peer.send("HTTP/1.1 102 Processing\r\n\r\n").await;
        std::future::pending::<()>().await;
    });
    let silent = Origin::start(|_, mut peer| async move {
        peer.message().await;
        std::future::pending::<()>().await;
    });
    let with = |origin: &Origin, time| origin.upstream_with(|limits| limits.response_header = time);
    let (hinted, unhinted) = (proxy(with(&hinting, deadline)), proxy(with(&silent, deadline * 3 / 2)));
    undisturbed(async || {
        let (mut client, mut later) = (Raw::sent(hinted, GET).await, Raw::sent(unhinted, GET).await);
        let is_answered = async { client.message().await.status() == 102 && client.message().await.status() == 504 };
        tokio::select! {
            biased;
            is_answered = is_answered => is_answered.then_some(()),
            _ = later.message() => None,
        }
    })
    .await;
}

#[tokio::test]
async fn endless_interim_responses_lead_to_502_and_extend_no_deadline() {
    let flood = || Origin::saying("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100_000));
    let endless = Http2Origin::start(|_, mut respond| async move {
        while respond.send_informational(Response::builder().status(103).body(()).unwrap()).is_ok() {
            tokio::task::yield_now().await;
        }
    });
    for upstream in [flood().upstream(), endless.upstream()] {
        let mut client = Raw::sent(proxy(upstream), GET).await;
        let mut last = client.message().await;
        while last.status() == 103 {
            last = client.message().await;
        }
        assert_eq!(last.status(), 502);
    }
    // Interim responses do not extend any deadline.
    let slow = Origin::start(|_, mut peer| async move {
        peer.message().await;
        loop {
            peer.try_send("HTTP/1.1 102 Processing\r\n\r\n").await;
            tokio::time::sleep(MOMENT / 10).await;
        }
    });
    let slow_http2 = Http2Origin::start(|_, mut respond| async move {
        while respond.send_informational(Response::builder().status(102).body(()).unwrap()).is_ok() {
            tokio::time::sleep(MOMENT / 10).await;
        }
    });
    let brief = |limits: &mut UpstreamLimits| limits.response_header = MOMENT;
    for upstream in [slow.upstream_with(brief), upstream_to([slow_http2.address], brief)] {
        let mut client = Raw::sent(proxy(upstream), GET).await;
        let mut last = client.message().await;
        while last.status() == 102 {
            last = client.message().await;
        }
        assert_eq!(last.status(), 504);
    }
}

#[tokio::test]
async fn a_websocket_may_start_after_interim_responses() {
    let switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nhello";
    let origin = Origin::saying([HINTS, switch].concat());
    let mut client = Raw::sent(proxy(origin.upstream()), HANDSHAKE).await;
    for status in [103, 102, 101] {
        assert_eq!(client.message().await.status(), status);
    }
    assert_eq!(client.exactly(5).await, "hello");
}
