//! Simulates 100,000 addresses that claim to be one crawler within ten seconds. Measures how many
//! questions the resolver gets, how much memory is used, and how other requests are affected.
//!
//! A browser sends a thousand requests per second through the layer, for ten seconds without the
//! flood and ten seconds with it, five times.

#![expect(clippy::expect_used, reason = "a bench stops at the first surprise")]
#![expect(clippy::print_stdout, reason = "a bench says what it found")]

mod instant_app;
mod played;

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::Empty;
use instant_app::InstantApp;
use played::{NAMED, serve_list, serve_names};
use tower::{Layer, Service};
use tower_robots::agent::{Category, Crawler, Registry, RegistryRow};
use tower_robots::layer::{RobotsLayer, SenderCheck};
use tower_robots::live::LiveRobots;
use tower_robots::parts::Robots;
use tower_robots::source::evidence::Verifier;

const FILE: &str = "User-agent: Playbot\nDisallow: /drafts/\n\nUser-agent: *\nDisallow: /private/\n";
const BROWSER: &str =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36";

const TIME: Duration = Duration::from_secs(10);
const FLOOD: u32 = 100_000;
const RUNS: usize = 5;

fn request(agent: &str, address: IpAddr) -> Request<Empty<Bytes>> {
    let request = Request::get("/products/12345/view").header("host", "example.com").header("user-agent", agent);
    request.header("accept", "*/*").extension(address).body(Empty::new()).expect("a request")
}

/// Returns how long the layer takes for a request. The future of the layer is ready at the first
/// poll.
fn send(service: &mut Robots<InstantApp>, request: Request<Empty<Bytes>>) -> Duration {
    let mut context = Context::from_waker(Waker::noop());
    let start = Instant::now();
    assert!(service.poll_ready(&mut context).is_ready());
    let future = std::pin::pin!(service.call(request));
    assert!(black_box(future.poll(&mut context)).is_ready());
    start.elapsed()
}

/// Calls `turn` this many times within [`TIME`], in steps of one millisecond.
fn spread(times: u32, mut turn: impl FnMut(u32)) {
    let (start, mut done) = (Instant::now(), 0);
    while done < times {
        let due = (start.elapsed().as_secs_f64() / TIME.as_secs_f64() * f64::from(times)) as u32;
        while done < due.min(times) {
            turn(done);
            done += 1;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns how long the requests of a browser take: the median and the 99th percentile.
fn browse(service: &mut Robots<InstantApp>) -> [Duration; 2] {
    let address = IpAddr::from([8, 8, 4, 4]);
    let mut taken = Vec::new();
    spread(10_000, |_| taken.push(send(service, request(BROWSER, address))));
    taken.sort();
    [taken[taken.len() / 2], taken[taken.len() * 99 / 100]]
}

fn flood(service: &mut Robots<InstantApp>, run: usize) {
    spread(FLOOD, |number| {
        let address = Ipv4Addr::from(0x2800_0000 + (run as u32) * FLOOD + number);
        send(service, request("Playbot/1.0", address.into()));
    });
}

/// Returns the resident memory of the process, in KiB. Pages have 4 KiB.
fn memory() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok()).unwrap_or(0) * 4
}

/// Returns the maximum number of questions within one second.
fn count(questions: &AtomicUsize, is_over: &AtomicBool) -> usize {
    let (mut most, mut before) = (0, questions.load(Ordering::Relaxed));
    let mut next = Instant::now();
    while !is_over.load(Ordering::Relaxed) {
        next += Duration::from_secs(1);
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        let asked = questions.load(Ordering::Relaxed);
        most = most.max(asked - before);
        before = asked;
    }
    most
}

fn main() {
    let questions = Arc::new(AtomicUsize::new(0));
    let resolver = serve_names(questions.clone());
    let row = Crawler {
        operator: "Play".into(),
        ranges: vec![serve_list()],
        reverse_dns: vec![".play.test".into()],
        ..Crawler::new("Playbot", Category::Search)
    };
    let removed = Registry::builtin().crawlers().map(|crawler| RegistryRow::Remove(crawler.name.clone()));
    let registry = Arc::new(Registry::builtin().extended_with(removed.chain([row.into()])).expect("a registry"));
    let verifier = Verifier::builder(&registry).resolvers([resolver]).start().expect("a verifier");
    let live = LiveRobots::text(FILE).registry(registry).open().expect("a robots.txt");
    let layer = RobotsLayer::new(live).verifier(SenderCheck::new(&verifier));
    let layer = layer.address_from(|extensions| extensions.get::<IpAddr>().copied());
    let mut service = layer.layer(InstantApp);
    let start = Instant::now();
    while verifier.status().lists[0].confirmed.is_none() {
        assert!(start.elapsed() < Duration::from_secs(30), "{verifier:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    for address in ["66.249.66.1", NAMED] {
        send(&mut service, request("Playbot/1.0", address.parse().expect("an address")));
    }
    println!("| run | median without, with | p99 without, with | questions a second | known, waiting | memory |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let mut ratios = Vec::new();
    for run in 0..RUNS {
        let without = browse(&mut service);
        let is_over = AtomicBool::new(false);
        let (with, most) = std::thread::scope(|scope| {
            let mut attacked = service.clone();
            let counted = scope.spawn(|| count(&questions, &is_over));
            let flood = scope.spawn(move || flood(&mut attacked, run));
            let with = browse(&mut service);
            flood.join().expect("no panic");
            is_over.store(true, Ordering::Relaxed);
            (with, counted.join().expect("no panic"))
        });
        let status = verifier.status();
        println!(
            "| {} | {:?}, {:?} | {:?}, {:?} | {most} | {}, {} | {} KiB |",
            run + 1,
            without[0],
            with[0],
            without[1],
            with[1],
            status.known_names.unwrap_or_default(),
            status.waiting_names,
            memory()
        );
        ratios.push(with[1].as_secs_f64() / without[1].as_secs_f64());
    }
    ratios.sort_by(f64::total_cmp);
    println!("\np99 with the flood: {:.2} times that without, the median of {RUNS} runs", ratios[RUNS / 2]);
}
