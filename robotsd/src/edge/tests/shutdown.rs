//! Draining at shutdown.

use super::*;

#[tokio::test]
async fn shutdown_closes_idle_connections_and_finishes_requests() {
    let Held { mut edge, begun, release } = held(EdgeLimits::default());
    let mut idle = edge.client().await;
    let mut kept = edge.sent("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    soon(begun.notified()).await;
    release.notify_one();
    assert_eq!(kept.message().await.status(), 200);
    let mut busy = edge.sent("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    soon(begun.notified()).await;

    edge.begin_shutdown();
    assert_eq!(idle.rest().await, "");
    assert_eq!(kept.rest().await, "");
    assert!(TcpStream::connect(edge.address).await.is_err(), "still listening");
    assert!(!edge.served.is_finished());
    release.notify_one();
    let answer = busy.message().await;
    assert_eq!((answer.status(), answer.field("connection")), (200, Some("close")));
    assert_eq!(busy.rest().await, "");
    soon(edge.served).await.unwrap();
    assert!(edge.reported.lock().is_empty());
}

#[tokio::test]
async fn shutdown_waits_a_moment_for_first_requests() {
    let limits = EdgeLimits { greeting: Duration::from_secs(60), ..EdgeLimits::default() };
    let mut edge = ServedEdge::start(limits, service_fn(mirror));
    let mut first = edge.client().await;
    edge.begin_shutdown();
    soon(async { while TcpStream::connect(edge.address).await.is_ok() {} }).await;
    assert_eq!(first.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.status(), 200);
    assert_eq!(first.rest().await, "");
    soon(edge.served).await.unwrap();
}

#[tokio::test]
async fn shutdown_has_a_deadline() {
    let Held { mut edge, begun, .. } = held(brief(|limits| limits.drain = MOMENT));
    let mut busy = edge.sent("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    soon(begun.notified()).await;
    edge.begin_shutdown();
    assert_eq!(busy.rest().await, "");
    edge.reports(ConnectionErrorKind::Aborted).await;
    soon(edge.served).await.unwrap();
}

#[tokio::test]
async fn shutdown_serves_connections_of_the_backlog() {
    // The listener's backlog is filled before the edge first runs, and the shutdown has begun.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut waiting = Raw::sent(listener.local_addr().unwrap(), "GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    let edge = Edge::new(EdgeLimits::default(), |_| {}, None);
    let serving: Pin<Box<dyn Future<Output = ()> + Send + '_>> =
        Box::pin(edge.serve(listener, ListenerSettings::default(), service_fn(mirror), async {}));
    let (answer, ()) = tokio::join!(waiting.message(), soon(serving));
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn shutdown_serves_a_connection_that_waits_for_a_slot() {
    let Held { mut edge, begun, release } = held(EdgeLimits { connections: 1, ..EdgeLimits::default() });
    let mut busy = edge.sent(GET).await;
    soon(begun.notified()).await;
    let mut waiting = edge.sent(GET).await;
    edge.reports(ConnectionErrorKind::Full).await;
    edge.begin_shutdown();
    for client in [&mut busy, &mut waiting] {
        release.notify_one();
        assert_eq!(client.message().await.status(), 200);
    }
    soon(edge.served).await.unwrap();
}

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

#[tokio::test]
async fn where_another_process_accepts_connections_close_behind_an_answer_that_says_so() {
    let mut edge = ServedEdge::start(brief(|limits| limits.drain = HOUR), service_fn(mirror));
    let mut clients = Vec::new();
    // On the fast path, with hyper, and on which nothing has come.
    for first in [GET, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", ""] {
        let mut client = edge.client().await;
        if !first.is_empty() {
            assert_eq!(client.ask(first).await.field("connection"), None);
        }
        clients.push(client);
    }
    wait_until(|| edge.edge.traffic().open >= clients.len()).await;
    edge.edge.set_successor();
    edge.begin_shutdown();
    soon(async { while TcpStream::connect(edge.address).await.is_ok() {} }).await;
    for mut client in clients {
        let answer = client.ask(GET).await;
        assert_eq!((answer.status(), answer.field("connection")), (200, Some("close")));
        assert_eq!(client.rest().await, "");
    }
    soon(edge.served).await.unwrap();
    assert!(edge.reported.lock().is_empty());
}

#[tokio::test]
async fn where_another_process_accepts_idle_connections_close_in_the_end() {
    let mut edge = ServedEdge::start(brief(|limits| limits.drain = 4 * MOMENT), service_fn(mirror));
    let mut kept = edge.client().await;
    assert_eq!(kept.ask(GET).await.status(), 200);
    edge.edge.set_successor();
    edge.begin_shutdown();
    assert_eq!(kept.rest().await, "");
    soon(edge.served).await.unwrap();
    // Nothing was cut off.
    assert!(edge.reported.lock().is_empty());
}
