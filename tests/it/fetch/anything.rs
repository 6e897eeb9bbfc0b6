//! Whatever a server sends, the result is an answer or an error: no panic, no hang, and nothing
//! goes live that was not sent.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use tower_robots::internals::Schedule;
use tower_robots::live::{LiveRobots, RejectionKind, ReloadOutcome};
use tower_robots::source::fetch::Fetcher;

use super::server::{Server, robots};
use crate::waiting::PATIENCE;

/// Returns a part of a response, or arbitrary bytes.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let lines = "HTTP/1.1 200 OK\r\n~HTTP/1.1 304 Not Modified\r\n~HTTP/1.1 404 Not Found\r\n~\
        HTTP/1.1 103 Early Hints\r\n~HTTP/1.1 101 Switching Protocols\r\n~HTTP/1.1 301 Moved\r\n~\
        HTTP/1.1 429 \r\n~HTTP/1.0 500\r\n~HTTP/2.0 999 x\r\n~Location: /robots.txt\r\n~\
        Location: //[::\u{fffd}]\r\n~Content-Length: 5\r\n~Content-Length: 18446744073709551616\r\n~\
        Transfer-Encoding: chunked\r\n~Transfer-Encoding: gzip, chunked\r\n~Content-Encoding: gzip\r\n~\
        Cache-Control: max-age=\"1, ,s-maxage=,no-store\r\n~Retry-After: Thu, 99 Foo 99999 99:99:99 GMT\r\n~\
        Retry-After: 99999999999999999999\r\n~ETag: \"\r\nLast-Modified: never\r\nAge: -1\r\n~\
        Connection: close\r\n~Upgrade: h2c\r\n~\r\n~\r\n\r\n~5\r\n# abc\r\n~ffffffffffffffff\r\n~0\r\n\r\n~\
        # robots\n~User-agent: *\nDisallow: /\n~<html>";
    prop_oneof![
        prop::sample::select(lines.split('~').collect::<Vec<_>>()).prop_map(|text| text.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..40),
    ]
}

fn answers() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(part(), 0..12).prop_map(|parts| parts.concat())
}

#[test]
fn random_responses_cause_no_panic_or_hang_and_the_site_recovers() {
    let bytes = Arc::new(Mutex::new(robots("# good").into_bytes()));
    let served = bytes.clone();
    let server = Server::start(move |_, stream| drop(stream.write_all(&served.lock().unwrap())));
    let fetcher = Fetcher::builder().fetch_within(PATIENCE).start().unwrap();
    let live = LiveRobots::url(&server.url("/robots.txt")).unwrap();
    let live = live
        .fetcher(&fetcher)
        .schedule(Schedule { retry_first: PATIENCE * 10, retry_most: PATIENCE * 10, ..Schedule::default() })
        .open()
        .unwrap();
    assert!(matches!(
        live.reload_blocking().outcome,
        ReloadOutcome::Published { .. } | ReloadOutcome::Unchanged { .. }
    ));
    proptest!(ProptestConfig::with_cases(500), |(answer in answers())| {
        bytes.lock().unwrap().clone_from(&answer);
        let reload = live.reload_blocking();
        prop_assert!(!reload.to_string().contains('\n'), "one line");
        let snapshot = live.snapshot();
        let body = snapshot.content.as_ref().unwrap().body().clone();
        match &reload.outcome {
            ReloadOutcome::Kept { rejection, .. } => prop_assert_ne!(rejection.kind, RejectionKind::Interrupted),
            ReloadOutcome::Published { .. } => prop_assert!(body.len() as u64 <= LiveRobots::MAX_FILE && body.len() <= answer.len()),
            _ => {}
        }
    });
    *bytes.lock().unwrap() = robots("# good again").into_bytes();
    assert!(matches!(live.reload_blocking().outcome, ReloadOutcome::Published { .. }));
    assert_eq!(&live.snapshot().content.as_ref().unwrap().body()[..], b"# good again");
}
