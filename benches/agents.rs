//! Measures how long it takes to recognise the agents in a `User-Agent` header: new, cached, and
//! with many names in the file.

#![expect(clippy::expect_used, reason = "a bench stops at the first surprise")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use tower_robots::agent::{Crawler, Recognizer, Registry};
use tower_robots::live::LiveRobots;
use tower_robots::rules::RobotsTxt;

/// A browser's header of the usual length, 111 bytes.
const CHROME: &[u8] =
    b"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36";
const GPTBOT: &[u8] =
    b"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)";
const UNKNOWN: &[u8] = b"Mozilla/5.0 (compatible; NeverHeardOfBot/1.0; +https://example.net/about-our-bot)";

fn file(names: usize) -> RobotsTxt {
    let text: String = (0..names).map(|number| format!("User-agent: Crawler{number}x\nDisallow: /\n")).collect();
    RobotsTxt::parse(text.into_bytes())
}

fn first(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("first time");
    for names in [0, 10, 166, 1000] {
        let recognizer = Recognizer::new(Registry::builtin().clone(), &file(names));
        for (name, header) in [("browser", CHROME), ("registered", GPTBOT), ("unknown", UNKNOWN)] {
            group.bench_function(format!("{name}, {names} names"), |bencher| {
                bencher.iter(|| recognizer.agents(black_box(header)));
            });
        }
    }
    group.finish();
}

fn cached(criterion: &mut Criterion) {
    let live = LiveRobots::text("User-agent: *\nDisallow: /private/\n").open().expect("a robots.txt");
    let snapshot = live.snapshot();
    let content = snapshot.content.as_ref().expect("content");
    let mut group = criterion.benchmark_group("cached");
    for (name, header) in [("browser", CHROME), ("registered", GPTBOT)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| content.with_agents(black_box(header), |agents| agents.first().class()));
        });
    }
    group.finish();
}

fn startup(criterion: &mut Criterion) {
    let rows: Vec<Crawler> = Registry::builtin().crawlers().cloned().collect();
    criterion.bench_function("make the registry of its rows", |bencher| {
        bencher.iter(|| Registry::default().extended_with(black_box(&rows).iter().cloned()));
    });
    let (registry, file) = (Registry::builtin(), file(10));
    criterion.bench_function("names of a file, 10", |bencher| {
        bencher.iter(|| Recognizer::new(registry.clone(), black_box(&file)));
    });
}

criterion_group!(benches, first, cached, startup);
criterion_main!(benches);
