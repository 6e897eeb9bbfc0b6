//! Simulates a site whose robots.txt is fetched: its state machine, task and snapshot. The test
//! sets the clock.

mod redirects;

use crate::live::Mutex;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use robots_core::internals::AddressClass;

use super::*;
use crate::live::{LiveRobots, RejectionKind, ReloadOutcome, TestClock, WhenMissing};

/// Returns the addresses of a host and port.
type Resolve = dyn Fn(&str, u16) -> Vec<SocketAddr> + Send + Sync;

pub(super) struct PlayedNetwork {
    pub(super) resolve: Box<Resolve>,
    pub(super) class: Box<dyn Fn(IpAddr) -> AddressClass + Send + Sync>,
}

impl FetcherBuilder {
    /// Makes the fetcher use a simulated network.
    fn network(mut self, played: PlayedNetwork) -> Self {
        self.client.network.played = Some(Arc::new(played));
        self
    }
}

/// Starts a server that sends the response set by the test.
fn server(answer: &Arc<Mutex<&'static str>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/robots.txt", listener.local_addr().expect("an address"));
    let answer = answer.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            read_head(&mut stream);
            let answer = *answer.lock();
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}

fn read_head(stream: &mut TcpStream) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
        head.push(byte[0]);
    }
}

const GOOD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n# good";
const GONE: &str = "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n";
const TROUBLE: &str = "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n";

#[test]
fn a_version_stays_live_during_a_year_of_failures_and_a_day_of_absence() {
    let answer = Arc::new(Mutex::new(GOOD));
    let says = |now| *answer.lock() = now;
    let time = TestClock::new();
    let pass = |hours: u32| time.pass(hours * Duration::from_secs(3600));
    let live = LiveRobots::url(&server(&answer))
        .expect("a URL")
        .clock(time.read())
        .when_missing(WhenMissing::Fail)
        .open()
        .expect("the first version");
    let reload = || live.reload_blocking();
    let is_good = || live.snapshot().content.as_ref().is_some_and(|content| &content.body()[..] == b"# good");

    says(TROUBLE);
    for _ in 0..365 {
        pass(24);
        assert!(matches!(reload().outcome, ReloadOutcome::Kept { .. }));
        assert!(is_good());
    }
    says(GONE);
    let missed = time.now();
    for _ in 0..24 {
        let reloaded = reload();
        assert!(
            matches!(&reloaded.outcome, ReloadOutcome::Kept { rejection, .. } if rejection.kind == RejectionKind::Held
                && rejection.until == Some(missed + Duration::from_secs(24 * 3600))),
            "{reloaded}"
        );
        assert!(is_good());
        pass(1);
    }
    let reloaded = reload();
    assert!(matches!(reloaded.outcome, ReloadOutcome::Absent { status: 410 }), "{reloaded}");
    assert!(live.snapshot().content.is_none());
    says(GOOD);
    assert!(matches!(reload().outcome, ReloadOutcome::Published { .. }));
    assert!(is_good());
}

#[test]
fn the_thread_of_a_fetcher_ends_when_its_last_user_is_dropped() {
    let answer = Arc::new(Mutex::new(GOOD));
    let fetcher = Fetcher::new().expect("a thread");
    let client = Arc::downgrade(&fetcher.client);
    let handle = fetcher.handle.clone();
    let live = LiveRobots::url(&server(&answer)).expect("a URL").fetcher(&fetcher).open().expect("open");
    drop(fetcher);
    assert!(matches!(
        live.reload_blocking().outcome,
        ReloadOutcome::Published { .. } | ReloadOutcome::Unchanged { .. }
    ));
    drop(live);
    let start = std::time::Instant::now();
    while client.strong_count() > 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "the client is still in use");
        std::thread::sleep(Duration::from_millis(5));
    }
    // If a task is spawned after its runtime has ended, it is cancelled.
    let spawned = handle.spawn(std::future::pending::<()>());
    while !spawned.is_finished() {
        assert!(start.elapsed() < Duration::from_secs(60), "the thread is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}
