//! Measures rate limiting: the bucket alone, the bucket with the clock, and a whole request with
//! and without a delay.

#![expect(clippy::expect_used, reason = "a bench stops at the first surprise")]

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use http::Request;
use tower_robots::agent::{Identity, IdentityMethod};
use tower_robots::layer::RobotsLayer;
use tower_robots::live::LiveRobots;
use tower_robots::parts::OriginalRequest;
use tower_robots::policy::{Mode, Policy, RateMode};
use tower_robots::rate::{NetworkBuckets, Quota, RateKey, RateSender, SiteBuckets};
use tower_robots::rules::ProductToken;

const GPTBOT: &str =
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)";
const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";

fn buckets(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("bucket");
    let token = ProductToken::new("gptbot");
    let site = SiteBuckets::new(1, Arc::new(NetworkBuckets::new()));
    // An allowed request writes to the bucket, which takes longer than refusing it.
    let quota = Quota::new(Duration::from_nanos(1), NonZeroU32::new(5).expect("above zero"));
    let start = Instant::now();
    let verified = RateKey { token: Some(&token), sender: RateSender::Verified };
    group.bench_function("verified crawler", |bencher| {
        bencher.iter(|| black_box(site.take(black_box(&verified), quota, start.elapsed())));
    });
    let key = |number: u32| RateKey {
        token: Some(&token),
        sender: RateSender::Claimed(Some(IpAddr::V4(Ipv4Addr::from_bits(number)))),
    };
    group.bench_function("one address", |bencher| {
        bencher.iter(|| black_box(site.take(black_box(&key(7)), quota, start.elapsed())));
    });
    let mut number = 0_u32;
    group.bench_function("another address each time", |bencher| {
        bencher.iter(|| {
            number = number.wrapping_add(0x9E37_79B9);
            black_box(site.take(black_box(&key(number)), quota, start.elapsed()))
        });
    });
    group.finish();
}

fn requests(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("request");
    let layer = |file: &str, rate: RateMode| {
        let live = LiveRobots::text(file)
            .policy(Policy::builder().mode(Mode::Refuse).rate(rate).build())
            .open()
            .expect("a robots.txt");
        RobotsLayer::new(live)
            .address_from(|_| Some(IpAddr::V4(Ipv4Addr::LOCALHOST)))
            .identity_from(|extensions| extensions.get::<Identity>().copied())
    };
    let file = "User-agent: GPTBot\nCrawl-delay: 0.000000001\nDisallow: /drafts/\n";
    for (name, rate) in [("off", RateMode::Off), ("refuse", RateMode::Refuse)] {
        let layer = layer(file, rate);
        for (who, agent, identity) in [
            ("browser", FIREFOX, Identity::Unclaimed),
            ("verified crawler", GPTBOT, Identity::Verified(IdentityMethod::Range)),
            ("claimed crawler", GPTBOT, Identity::Unverifiable),
        ] {
            let mut request = Request::get("/page").header("user-agent", agent).body(()).expect("a request");
            request.extensions_mut().insert(identity);
            group.bench_function(format!("{who}, {name}"), |bencher| {
                bencher.iter(|| black_box(layer.decide(&OriginalRequest::of(black_box(&request))).respond(None)));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, buckets, requests);
criterion_main!(benches);
