//! Measures the time that the layer adds to a request, compared with a layer that does nothing.

#![expect(clippy::expect_used, reason = "a bench stops at the first surprise")]

mod instant_app;

use std::convert::Infallible;
use std::hint::black_box;
use std::task::{Context, Waker};

use bytes::Bytes;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use http::Request;
use http_body_util::Empty;
use instant_app::InstantApp;
use tower::layer::util::Identity;
use tower::{Layer, Service};
use tower_robots::layer::{FieldRule, RobotsLayer, Signals, UsageField};
use tower_robots::live::LiveRobots;
use tower_robots::policy::{Mode, Policy};

const CHROME: &str =
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36";
const GPTBOT: &str =
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)";
const FILE: &str = "User-agent: GPTBot\nDisallow: /drafts/\n\nUser-agent: *\nDisallow: /private/\nDisallow: /*?sort=\n";

fn request(path: &str, agent: &str) -> Request<Empty<Bytes>> {
    let request = Request::get(path).header("host", "example.com").header("user-agent", agent);
    request.header("accept", "*/*").header("accept-encoding", "gzip, br").body(Empty::new()).expect("a request")
}

/// Runs a service whose future is ready at the first poll.
fn run<S: Service<Request<Empty<Bytes>>, Error = Infallible>>(service: &mut S, request: Request<Empty<Bytes>>) {
    let mut context = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut context).is_ready());
    let future = std::pin::pin!(service.call(request));
    assert!(black_box(future.poll(&mut context)).is_ready());
}

fn layers(criterion: &mut Criterion) {
    let policy = Policy::builder().mode(Mode::Refuse).build();
    let live = LiveRobots::text(FILE).policy(policy).open().expect("a robots.txt");
    let mut empty = Identity::new().layer(InstantApp);
    let mut robots = RobotsLayer::new(live).layer(InstantApp);
    let mut group = criterion.benchmark_group("a request through");
    for (name, path, agent) in [
        ("browser", "/products/12345/view", CHROME),
        ("crawler, allowed", "/products/12345/view", GPTBOT),
        ("crawler, refused", "/drafts/x", GPTBOT),
        ("robots.txt", "/robots.txt", GPTBOT),
    ] {
        let made = request(path, agent);
        group.bench_function(format!("no layer: {name}"), |bencher| {
            bencher.iter_batched(|| made.clone(), |request| run(&mut empty, request), BatchSize::SmallInput);
        });
        group.bench_function(format!("the layer: {name}"), |bencher| {
            bencher.iter_batched(|| made.clone(), |request| run(&mut robots, request), BatchSize::SmallInput);
        });
    }
    group.finish();
    signals(criterion);
}

/// Measures the time for adding response fields, compared with the same layer without response
/// fields.
fn signals(criterion: &mut Criterion) {
    const USAGE: &str = "License: https://example.com/license.xml\n\nUser-agent: *\nDisallow: /private/\n\
                         Content-Usage: train-ai=n\nContent-Usage: /art/ train-ai=y\n\n\
                         User-agent: GPTBot\nDisallow: /drafts/\nContent-Usage: train-ai=n\n";
    let live = LiveRobots::text(USAGE).open().expect("a robots.txt");
    let field = FieldRule::new("/drafts/*", "X-Robots-Tag", "noindex").expect("a field");
    let rows = [
        ("off", Signals::default()),
        ("unanimous", Signals::default().usage(UsageField::Unanimous)),
        ("by-agent", Signals::default().usage(UsageField::ByAgent)),
        ("unanimous, licence and a field elsewhere", {
            Signals::default().usage(UsageField::Unanimous).license_links().field(field)
        }),
    ];
    let mut group = criterion.benchmark_group("fields of a response");
    for (name, signals) in rows {
        let mut robots = RobotsLayer::new(live.clone()).signals(signals).layer(InstantApp);
        for (of, agent) in [("browser", CHROME), ("crawler", GPTBOT)] {
            let made = request("/products/12345/view", agent);
            group.bench_function(format!("{name}: {of}"), |bencher| {
                bencher.iter_batched(|| made.clone(), |request| run(&mut robots, request), BatchSize::SmallInput);
            });
        }
    }
    group.finish();
}

criterion_group!(benches, layers);
criterion_main!(benches);
