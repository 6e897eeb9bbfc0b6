//! Tests of the connection limits, and of the order in which requests get connections.

use super::*;

fn limited(origin: &Origin, change: impl FnOnce(&mut UpstreamLimits)) -> (Origins, Events) {
    let mut limits = patient();
    change(&mut limits);
    origins(&settings([format!("http://{}", origin.address)]), limits, &SharedResources::system())
}

/// Allows one connection to each server.
fn one_each(limits: &mut UpstreamLimits) {
    limits.address_connections = NonZeroUsize::MIN;
}

#[tokio::test]
async fn an_idle_connection_is_closed_for_a_request_of_another_worker() {
    let origin = Origin::always(OK);
    let (origins, _) = limited(&origin, |limits| {
        limits.connections = NonZeroUsize::MIN;
        // Neither the age of the connection nor the sweep may free it during this test.
        limits.idle_timeout = Duration::from_secs(600);
        limits.connect = Duration::from_secs(60);
    });
    let workers = [worker(&origins), worker(&origins)];
    for turn in 0..4 {
        assert_eq!(status(&workers[turn % 2], "GET").await, 200, "{turn}");
    }
    assert_eq!(origin.connections(), 4);
}

#[tokio::test]
async fn a_waiting_request_gets_the_connection_that_becomes_free() {
    let release = shared::<Notify>();
    let (sender, mut asked) = reporting();
    let origin = Origin::start(move |_, mut peer| async move {
        while peer.heard(b"\r\n\r\n").await {
            sender.send(()).unwrap();
            release.notified().await;
            peer.try_send(OK).await;
        }
    });
    let (origins, _) = limited(&origin, few(1, Duration::from_secs(60)));
    let upstream = worker(&origins);
    let requests = burst(&upstream, "GET");
    for _ in 0..5 {
        soon(asked.recv()).await.unwrap();
        release.notify_one();
    }
    assert_eq!(ended(requests).await, [200; 5]);
    assert_eq!(origin.connections(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_requests_of_several_workers_share_few_connections() {
    let origin = Origin::always(OK);
    let (origins, events) = limited(&origin, few(3, Duration::from_secs(60)));
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let upstream = worker(&origins);
        for _ in 0..8 {
            let upstream = upstream.clone();
            asking.spawn(async move {
                assert_eq!(statuses(&upstream, ["GET"; 25]).await, [200; 25]);
            });
        }
    }
    while let Some(done) = asking.join_next().await {
        done.unwrap();
    }
    assert!(events.lock().is_empty(), "{events:?}");
}

#[tokio::test]
async fn each_server_has_its_own_connection_limit() {
    let unfinished = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab";
    let (a, b) = (Origin::saying(unfinished), Origin::saying(unfinished));
    let (upstream, events) = watched_in(HttpVersions::Http1, [a.address, b.address], |limits| {
        one_each(limits);
        limits.connect = MOMENT;
    });
    let mut lease = Vec::new();
    for want in [200, 200, 503] {
        let answer = soon(upstream.forward(request("GET", "/"))).await;
        assert_eq!(answer.status(), want);
        lease.push(answer);
    }
    assert_eq!(lease[2].headers()["retry-after"], "1");
    assert_eq!((a.connections(), b.connections()), (1, 1));
    assert_eq!(event_detail(&events, "busy").await, "all connections that robotsd may open to this server are in use");
    // A server whose connections are all in use does not count as failed.
    assert_eq!(times_reported(&events, "ejected"), 0);
    lease.remove(0);
    soon(async { while upstream.forward(request("GET", "/")).await.status() != 200 {} }).await;
}

#[tokio::test]
async fn a_tunnel_occupies_a_connection_slot_until_the_tunnel_ends() {
    let origin = Origin::start(|_, mut peer| async move {
        let head = peer.until(b"\r\n\r\n").await;
        if head.contains("upgrade: websocket") {
            peer.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n").await;
            peer.rest().await;
        } else {
            peer.send(OK).await;
        }
    });
    let (origins, _) = limited(&origin, few(1, MOMENT));
    let address = proxy(worker(&origins));
    let mut tunnel = Raw::sent(address, HANDSHAKE).await;
    tunnel.until(b"\r\n\r\n").await;
    let mut client = Raw::connect(address).await;
    assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.status(), 503);
    drop(tunnel);
    soon(async { while client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.status() != 200 {} }).await;
}

#[tokio::test]
async fn a_repeated_request_gets_its_own_connection_in_place_of_an_idle_one() {
    let (dying, _) = dying("");
    let other = Origin::always(OK);
    let (upstream, _) = watched_in(HttpVersions::Http1, [dying.address, other.address], one_each);
    // The third request is sent to the first server, which closes the connection. The request is
    // then sent to the second server, whose only allowed connection is idle.
    assert_eq!(statuses(&upstream, ["GET"; 3]).await, [200; 3]);
    assert_eq!((dying.connections(), other.connections()), (1, 2));
}
