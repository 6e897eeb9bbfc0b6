//! The cost that counting adds to a request: `cargo bench -p robotsd --bench counting`.
//!
//! The same requests go through the layer of a site in three variants: without counters (`quiet`),
//! with the counters that the layer calls (`observed`), and with all counters of `/metrics`
//! (`counted`). The variants run alternately in short rounds, so that other work on the machine
//! affects all of them. The result of a variant is its fastest round.
//!
//! An argument such as `refused` selects the requests to measure. Without `--bench`, there are only
//! a few rounds, so that instructions can be counted: `valgrind --tool=callgrind
//! --toggle-collect='robotsd::benching::CountingBench::counted'`.

#![expect(clippy::print_stdout, reason = "a bench prints what it measures")]

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use http::Request;
use robotsd::benching::CountingBench;
use tower_robots::layer::RobotsLayer;
use tower_robots::live::LiveRobots;
use tower_robots::policy::{Mode, Policy};

const CHROME: &str =
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36";
const GPTBOT: &str =
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)";
const FILE: &str = "User-agent: GPTBot\nDisallow: /drafts/\n\nUser-agent: *\nDisallow: /private/\n";

/// Maximum time that counting a request may add in the layer, in nanoseconds.
const BAR: f64 = 5.0;

/// Number of requests per round.
const TURN: usize = 1_000;

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo test --benches` runs few rounds, to check only that the benchmark runs.
    let rounds = if std::env::args().any(|argument| argument == "--bench") { 5_000 } else { 2 };
    let policy = Policy::builder().mode(Mode::Refuse).build();
    let mut bench = CountingBench::new(&RobotsLayer::new(LiveRobots::text(FILE).policy(policy).open()?));
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    println!(
        "| request | not counted | in the layer | bar | around it | in all |\n| --- | --- | --- | --- | --- | --- |"
    );
    for (name, path, agent) in [
        ("a browser's", "/products/12345/view", CHROME),
        ("a crawler's, allowed", "/products/12345/view", GPTBOT),
        ("a crawler's, refused", "/drafts/x", GPTBOT),
        ("a crawler's for /robots.txt", "/robots.txt", GPTBOT),
    ] {
        if !name.contains(&wanted) {
            continue;
        }
        let request = Request::get(path).header("host", "example.com").header("user-agent", agent).body(())?;
        let (mut quiet, mut observed, mut counted) = (f64::MAX, f64::MAX, f64::MAX);
        for _ in 0..rounds {
            quiet = quiet.min(turn(|| bench.quiet(black_box(&request).clone())));
            observed = observed.min(turn(|| bench.observed(black_box(&request).clone())));
            counted = counted.min(turn(|| bench.counted(black_box(&request).clone())));
        }
        let (layer, around, all) = (observed - quiet, counted - observed, counted - quiet);
        println!("| {name} | {quiet:.1} ns | {layer:+.1} ns | {BAR:.0} ns | {around:+.1} ns | {all:+.1} ns |");
    }
    Ok(())
}

/// Runs a round. Returns its duration per request, in nanoseconds.
fn turn(mut request: impl FnMut()) -> f64 {
    let began = Instant::now();
    (0..TURN).for_each(|_| request());
    began.elapsed().as_nanos() as f64 / TURN as f64
}
