//! Tests of a site with several servers: their turns, failures, ejection, and return to service.

use parking_lot::Mutex;

use tokio::net::TcpSocket;

use std::sync::atomic::AtomicBool;

use super::*;

/// An origin that can be stopped, and started again at the same address. It answers with its name.
struct Mortal {
    address: SocketAddr,
    name: &'static str,
    /// Reserves the port while the origin is stopped.
    _reserve: TcpSocket,
    alive: Mutex<Option<JoinHandle<()>>>,
    answered: &'static AtomicUsize,
}

fn bound(address: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(address).unwrap();
    socket
}

impl Mortal {
    fn new(name: &'static str) -> Self {
        let (reserve, address) = refusing();
        Self { address, name, _reserve: reserve, alive: Mutex::default(), answered: shared() }
    }

    fn alive(name: &'static str) -> Self {
        let this = Self::new(name);
        this.revive();
        this
    }

    fn revive(&self) {
        let listener = bound(self.address).listen(1024).unwrap();
        let (name, answered) = (self.name, self.answered);
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            // The listener must be dropped before the connections. Otherwise a client that connects
            // again could be accepted and then reset, instead of refused.
            let listener = listener;
            while let Ok((socket, _)) = listener.accept().await {
                connections.spawn(async move {
                    let mut peer = Raw::new(socket);
                    while peer.heard(b"\r\n\r\n").await {
                        answered.fetch_add(1, Ordering::SeqCst);
                        peer.try_send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{name}", name.len())).await;
                    }
                });
            }
        });
        *self.alive.lock() = Some(task);
    }

    /// Closes the listener and every connection.
    async fn kill(&self) {
        let task = self.alive.lock().take().unwrap();
        task.abort();
        let _ = task.await;
    }
}

fn both(a: &Mortal, b: &Mortal, change: impl FnOnce(&mut HealthPolicy)) -> (Upstream, Events) {
    let mut settings = settings([format!("http://{}", a.address), format!("http://{}", b.address)]);
    change(&mut settings.health);
    watched(&settings, patient())
}

#[tokio::test]
async fn failures_in_a_row_are_counted_across_workers_until_one_gets_a_response() {
    let hangs = shared::<AtomicBool>();
    let origin = Origin::start(move |_, mut peer| async move {
        while peer.heard(b"\r\n\r\n").await {
            if hangs.load(Ordering::SeqCst) {
                peer.rest().await;
                return;
            }
            peer.try_send(OK).await;
        }
    });
    let limits = UpstreamLimits { response_header: MOMENT, ..patient() };
    let settings = settings([format!("http://{}", origin.address)]);
    let (origins, _) = origins(&settings, limits, &SharedResources::system());
    let workers = [worker(&origins), worker(&origins)];
    for well in &workers {
        hangs.store(false, Ordering::SeqCst);
        until_answered(well, 200).await;
        assert!(origins.unanswered().is_none());
        hangs.store(true, Ordering::SeqCst);
        for (before, worker) in [&workers[0], &workers[1], &workers[0]].into_iter().enumerate() {
            assert_eq!(status(worker, "GET").await, 504);
            let (count, last) = origins.unanswered().unwrap();
            assert_eq!((count, last.kind), (before as u64 + 1, FailureKind::ResponseTimeout));
        }
    }
}

#[tokio::test]
async fn failures_that_the_server_did_not_cause_are_not_counted() {
    let origin = Origin::always(OK);
    let settings = settings([format!("http://{}", origin.address)]);
    let (origins, _) = origins(&settings, patient(), &SharedResources::system());
    for kind in [FailureKind::Busy, FailureKind::RequestBody, FailureKind::RequestTimeout] {
        origins.0.reporter.failed(&UpstreamFailure::new(kind, "it"), 0);
        assert!(origins.unanswered().is_none(), "{kind:?}");
    }
    origins.0.reporter.failed(&UpstreamFailure::new(FailureKind::Invalid, "it"), 0);
    assert!(origins.unanswered().is_some());
}

#[tokio::test]
async fn requests_are_sent_to_the_servers_in_turn() {
    let (a, b) = (Mortal::alive("a"), Mortal::alive("b"));
    let (upstream, _) = both(&a, &b, |_| {});
    let mut names = Vec::new();
    for _ in 0..6 {
        names.push(answer(&upstream, "GET").await.1);
    }
    assert_eq!(names.concat(), "ababab");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_dies_under_load_causes_no_failed_request_and_later_returns() {
    let (a, b) = (Mortal::alive("a"), Mortal::alive("b"));
    let (upstream, events) = both(&a, &b, |health| health.eject = Duration::from_millis(50));
    const CLIENTS: usize = 16;
    // Opens as many connections to each server as this test uses at a time.
    let mut lease = Vec::new();
    for _ in 0..2 * CLIENTS {
        lease.push(soon(upstream.forward(request("GET", "/"))).await);
    }
    for answer in lease {
        soon(answer.into_body().collect()).await.unwrap();
    }
    let failed = shared::<AtomicUsize>();
    let stop = shared::<AtomicBool>();
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS {
        let upstream = upstream.clone();
        clients.spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                if status(&upstream, "GET").await != 200 {
                    failed.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
    }
    let reaches = async |origin: &Mortal, more: usize| {
        let from = origin.answered.load(Ordering::SeqCst);
        wait_until(|| origin.answered.load(Ordering::SeqCst) >= from + more).await;
    };
    reaches(&a, 200).await;
    a.kill().await;
    let ejected = event_detail(&events, "ejected").await;
    assert!(ejected.contains(&a.address.to_string()) && ejected.contains("3 failures in a row"), "{ejected}");
    reaches(&b, 500).await;
    assert_eq!(times_reported(&events, "ejected"), 1, "{events:?}");
    a.revive();
    let returned = event_detail(&events, "returned").await;
    assert!(returned.contains(&a.address.to_string()), "{returned}");
    reaches(&a, 100).await;
    stop.store(true, Ordering::SeqCst);
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    assert_eq!(failed.load(Ordering::SeqCst), 0, "{events:?}");
}

#[tokio::test]
async fn requests_fail_at_once_if_all_servers_are_down_and_a_revived_server_is_used() {
    let (a, b) = (Mortal::new("a"), Mortal::new("b"));
    let (upstream, events) = both(&a, &b, |health| health.eject = Duration::from_secs(600));
    // If a request waited until the deadline for connecting, it would get a 504.
    for _ in 0..20 {
        let (status, text) = answer(&upstream, "GET").await;
        assert_eq!((status, &*text), (502, "502 the site is not available\n"));
    }
    assert_eq!(times_reported(&events, "ejected"), 2);
    assert!(events.lock().iter().any(|event| event.detail.contains("no other server is left")), "{events:?}");
    b.revive();
    assert_eq!(answer(&upstream, "POST").await, (200, "b".to_owned()));
    event_detail(&events, "returned").await;
    for _ in 0..4 {
        assert_eq!(answer(&upstream, "POST").await, (200, "b".to_owned()));
    }
    assert!(times_reported(&events, "connect") >= 1);
}

#[tokio::test]
async fn a_failed_request_is_repeated_on_another_server() {
    let (dying, delivered) = dying("");
    let other = Mortal::alive("b");
    let upstream = upstream([dying.address, other.address], patient());
    // The third request is sent to the first server, which closes the connection, and is then sent
    // to the second server.
    for name in ["ok", "b", "b"] {
        assert_eq!(answer(&upstream, "GET").await, (200, name.to_owned()));
    }
    assert_eq!((dying.connections(), delivered.load(Ordering::SeqCst)), (1, 2));
}

#[tokio::test]
async fn error_statuses_and_slow_responses_eject_no_server() {
    let sick = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    for (answer, patience, want) in [(sick, Duration::from_secs(60), 503), ("", Duration::from_millis(20), 504)] {
        let origin = Origin::saying(answer);
        let (upstream, events) = origin.watched(|limits| limits.response_header = patience);
        assert_eq!(statuses(&upstream, ["POST"; 5]).await, [want; 5]);
        assert_eq!(times_reported(&events, "ejected"), 0, "{events:?}");
    }
}

#[tokio::test]
async fn a_server_that_closes_connections_before_a_response_is_ejected() {
    let broken = Origin::closing("");
    let good = Mortal::alive("b");
    let mut settings = settings([format!("http://{}", broken.address), format!("http://{}", good.address)]);
    settings.health.eject = Duration::from_secs(600);
    let (upstream, events) = watched(&settings, patient());
    let want = [502, 200, 502, 200, 502, 200, 200, 200, 200, 200];
    assert_eq!(statuses(&upstream, ["POST"; 10]).await, want);
    event_detail(&events, "ejected").await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_server_that_does_not_accept_connections_leaves_time_for_the_next_server() {
    // The backlog of the listener is full, so the kernel drops connection attempts.
    let deaf = bound(([127, 0, 0, 1], 0).into());
    let address = deaf.local_addr().unwrap();
    let _deaf = deaf.listen(1).unwrap();
    let mut filling = Vec::new();
    while let Ok(socket) = tokio::time::timeout(MOMENT, TcpStream::connect(address)).await {
        filling.push(socket.unwrap());
    }
    let good = Mortal::alive("b");
    // Connecting to the first server may take half of the total time, but at least a second.
    let answered = undisturbed(async || {
        let limits = UpstreamLimits { connect: Duration::from_secs(2), ..patient() };
        let answer = answer(&upstream([address, good.address], limits), "GET").await;
        (answer.0 != 504).then_some(answer)
    });
    assert_eq!(answered.await, (200, "b".to_owned()));
}

#[tokio::test]
async fn the_next_address_is_tried_if_a_connection_is_refused() {
    let (_closed, closed) = refusing();
    let origin = Origin::saying(OK);
    let both = upstream([closed, origin.address], patient());
    for _ in 0..2 {
        // The body is not read, so the connection is busy, and the second request cannot use it.
        assert_eq!(soon(both.forward(request("POST", "/"))).await.status(), 200);
    }
    let nowhere = upstream([closed], patient());
    let answer = soon(nowhere.forward(request("GET", "/"))).await;
    assert_eq!(answer.status(), 502);
    assert_eq!(answer.extensions().get::<UpstreamFailure>().unwrap().kind, FailureKind::Connect);
    assert_eq!(status(&upstream([], patient()), "GET").await, 502);
}
