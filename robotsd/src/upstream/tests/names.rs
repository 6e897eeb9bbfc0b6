//! Tests of names that are resolved late or resolved again. Known addresses are used without delay.

use std::net::IpAddr;
use std::sync::mpsc;

use parking_lot::Mutex;

use super::super::resolver::Resolver;
use super::*;

const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// Creates a resolver whose results the test determines. Also returns the number of lookups.
fn resolver(fresh: Duration, answer: &'static Mutex<Option<Vec<IpAddr>>>) -> (SharedResources, &'static AtomicUsize) {
    let asked = shared::<AtomicUsize>();
    let resolver = Resolver::new(fresh, move |_| {
        asked.fetch_add(1, Ordering::SeqCst);
        answer.lock().clone().ok_or_else(|| std::io::Error::other("no such name"))
    });
    (SharedResources::with(resolver), asked)
}

/// Creates a client for a server that is configured by name. Also returns the events of the site.
fn by_name(origin: &Origin, limits: UpstreamLimits, surroundings: &SharedResources) -> (Origins, Upstream, Events) {
    let settings = settings([format!("http://app.test:{}", origin.address.port())]);
    let (origins, events) = origins(&settings, limits, surroundings);
    let upstream = worker(&origins);
    (origins, upstream, events)
}

#[tokio::test]
async fn an_upstream_name_may_become_resolvable_after_the_start() {
    let origin = Origin::always(OK);
    let answer = shared::<Mutex<Option<Vec<IpAddr>>>>();
    let (surroundings, _) = resolver(Duration::from_secs(600), answer);
    let (origins, upstream, events) = by_name(&origin, patient(), &surroundings);
    origins.look_up();
    for _ in 0..3 {
        let answer = soon(upstream.forward(request("GET", "/"))).await;
        assert_eq!(answer.status(), 502);
        assert_eq!(answer.extensions().get::<UpstreamFailure>().unwrap().kind, FailureKind::Unresolved);
    }
    let unresolved = event_detail(&events, "unresolved").await;
    assert!(unresolved.contains("app.test") && unresolved.contains("no such name"), "{unresolved}");
    *answer.lock() = Some(vec![HOME]);
    until_answered(&upstream, 200).await;
    assert_eq!(event_detail(&events, "resolved").await, format!("app.test resolves to {}", origin.address));
    assert_eq!((times_reported(&events, "unresolved"), times_reported(&events, "resolved")), (1, 1), "{events:?}");
}

#[tokio::test]
async fn the_last_known_addresses_stay_in_use_until_a_lookup_returns_new_ones() {
    let origin = Origin::always(OK);
    let answer = shared::<Mutex<Option<Vec<IpAddr>>>>();
    *answer.lock() = Some(vec![HOME]);
    let (surroundings, asked) = resolver(Duration::ZERO, answer);
    let (_origins, upstream, events) = by_name(&origin, patient(), &surroundings);
    assert_eq!(status(&upstream, "GET").await, 200);
    *answer.lock() = None;
    soon(async {
        while times_reported(&events, "unresolved") == 0 {
            assert_eq!(status(&upstream, "GET").await, 200);
        }
    })
    .await;
    assert_eq!(statuses(&upstream, ["GET"; 3]).await, [200; 3]);
    assert!(event_detail(&events, "unresolved").await.contains("so its last known addresses are used"));
    // No server listens at the name's new address. The old address must not be used any more.
    *answer.lock() = Some(vec![IpAddr::from([127, 255, 255, 254])]);
    until_answered(&upstream, 502).await;
    assert!(asked.load(Ordering::SeqCst) >= 3);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn all_addresses_of_a_name_take_turns() {
    let said =
        |text: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}", text.len());
    // Binds the same port on two addresses. If the port is in use on the second address, tries
    // another port.
    let (first, second) = loop {
        let first = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = first.local_addr().unwrap().port();
        if let Ok(second) = TcpListener::bind(("127.0.0.2", port)).await {
            break (first, second);
        }
    };
    let port = first.local_addr().unwrap().port();
    for (listener, text) in [(first, "1"), (second, "2")] {
        let text = said(text);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let mut peer = Raw::new(socket);
                peer.until(b"\r\n\r\n").await;
                peer.try_send(&text).await;
            }
        });
    }
    let answer = shared::<Mutex<Option<Vec<IpAddr>>>>();
    *answer.lock() = Some(vec![HOME, IpAddr::from([127, 0, 0, 2]), HOME]);
    let (surroundings, asked) = resolver(Duration::from_secs(600), answer);
    let (origins, _) = origins(&settings([format!("http://app.test:{port}")]), patient(), &surroundings);
    let upstream = worker(&origins);
    let mut bodies = String::new();
    for _ in 0..4 {
        bodies.push_str(&super::answer(&upstream, "GET").await.1);
    }
    // A request that had to wait for the name has also used up the first server's turn.
    assert!(bodies.contains('1') && bodies.contains('2'), "{bodies}");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_stuck_resolver_delays_no_request_beyond_the_deadline() {
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let asked = shared::<AtomicUsize>();
    let surroundings = SharedResources::with(Resolver::new(Duration::from_secs(600), move |_| {
        asked.fetch_add(1, Ordering::SeqCst);
        let _ = released.lock().recv();
        Ok(vec![HOME])
    }));
    let origin = Origin::always(OK);
    let limits = UpstreamLimits { connect: MOMENT, ..patient() };
    let (_origins, upstream, _) = by_name(&origin, limits, &surroundings);
    assert_eq!(ended(burst(&upstream, "GET")).await, [502; 100]);
    wait_until(|| asked.load(Ordering::SeqCst) > 0).await;
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    drop(release);
    until_answered(&upstream, 200).await;
}

#[tokio::test]
async fn localhost_and_addresses_need_no_resolver() {
    let origin = Origin::always(OK);
    let (surroundings, asked) = resolver(Duration::ZERO, shared());
    for url in [format!("http://localhost:{}", origin.address.port()), format!("http://{}", origin.address)] {
        let (origins, _) = origins(&settings([url]), patient(), &surroundings);
        assert_eq!(status(&worker(&origins), "GET").await, 200);
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}
