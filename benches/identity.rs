//! Measures how long identifying a crawler takes, with lists and with signatures.
//!
//! First looks up a million addresses in the embedded lists, and compares the results with those of
//! a scan of all prefixes.

#![expect(clippy::expect_used, reason = "a bench stops at the first surprise")]

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use criterion::{Criterion, criterion_group, criterion_main};
use tower_robots::identity::{
    EmbeddedList, KeySet, MessageHead, NamePattern, RangeList, RangeSet, SignatureCandidate, SignatureCheck,
};

const AUTHORITY: &str = "example.com";
const KEY: &str = r#"{"kty":"OKP","crv":"Ed25519","x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"}"#;
const FIELDS: [(&str, &str); 3] = [
    ("signature-agent", "sig1=\"https://signature-agent.test\""),
    (
        "signature-input",
        "sig1=(\"@authority\" \"signature-agent\";key=\"sig1\");created=1735689600;expires=1735689720;\
         keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\";alg=\"ed25519\";tag=\"web-bot-auth\"",
    ),
    ("signature", "sig1=:cpuMV8x+HogpoX3FaNl5gFKJT6FY5UVHp6U1cTlxSE0oZmKUdWlnM1z93Qd7vjXbysAG4naRH/dqn1yh7pXLAA==:"),
];

/// Pseudo-random numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn wide(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }
}

/// Prefixes, each as its first address and its length in bits.
type Prefixes<T> = Vec<(T, u32)>;

fn snapshot() -> (Prefixes<u32>, Prefixes<u128>) {
    let text = include_str!("../robots-core/src/identity/published_list/ranges_snapshot.txt");
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for line in text.lines().filter(|line| !line.starts_with(['#', '[']) && !line.contains(" = ")) {
        for word in line.split_whitespace() {
            let (address, length) = word.split_once('/').unwrap_or((word, ""));
            match address.parse().expect("an address") {
                IpAddr::V4(address) => v4.push((address.to_bits(), length.parse().unwrap_or(32))),
                IpAddr::V6(address) => v6.push((address.to_bits(), length.parse().unwrap_or(128))),
            }
        }
    }
    (v4, v6)
}

/// Returns a million addresses of both families. Three quarters are in or near the ranges, and a
/// quarter are anywhere.
fn million(v4: &[(u32, u32)], v6: &[(u128, u32)]) -> Vec<IpAddr> {
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    (0..1_000_000_u32)
        .map(|number| {
            let at = numbers.next() as usize;
            match number % 8 {
                0 => Ipv4Addr::from_bits(numbers.next() as u32).into(),
                1 => Ipv6Addr::from_bits(numbers.wide() >> 3 | 1 << 125).into(),
                2..5 => {
                    let (first, length) = v4[at % v4.len()];
                    let span = (u32::MAX.checked_shr(length.saturating_sub(1)).unwrap_or(0)).max(3);
                    let bits = first.wrapping_sub(span / 4).wrapping_add(numbers.next() as u32 & span);
                    let address = Ipv4Addr::from_bits(bits);
                    if number % 16 < 8 { address.into() } else { address.to_ipv6_mapped().into() }
                }
                _ => {
                    let (first, length) = v6[at % v6.len()];
                    let span = (u128::MAX.checked_shr(length.saturating_sub(1)).unwrap_or(0)).max(3);
                    Ipv6Addr::from_bits(first.wrapping_sub(span / 4).wrapping_add(numbers.wide() & span)).into()
                }
            }
        })
        .collect()
}

fn equals_a_scan() {
    let (v4, v6) = snapshot();
    assert_eq!(v4.len() + v6.len(), 3088);
    let prefixes = v4.iter().map(|(first, length)| format!("{}/{length}", Ipv4Addr::from_bits(*first)));
    let prefixes = prefixes.chain(v6.iter().map(|(first, length)| format!("{}/{length}", Ipv6Addr::from_bits(*first))));
    let set: RangeSet = prefixes.map(|text| text.parse().expect("a prefix")).collect();
    let mut inside = 0;
    for address in million(&v4, &v6) {
        let is_inside = match address.to_canonical() {
            IpAddr::V4(address) => {
                v4.iter().any(|(first, length)| (address.to_bits() ^ first).checked_shr(32 - length).unwrap_or(0) == 0)
            }
            IpAddr::V6(address) => {
                v6.iter().any(|(first, length)| (address.to_bits() ^ first).checked_shr(128 - length).unwrap_or(0) == 0)
            }
        };
        assert_eq!(set.contains(address), is_inside, "{address}");
        inside += u32::from(is_inside);
    }
    report(inside);
}

#[expect(clippy::print_stderr, reason = "a bench says what it did")]
fn report(inside: u32) {
    eprintln!("1,000,000 addresses looked up as a scan of 3,088 prefixes finds them, {inside} of them in a list");
}

/// Returns a set with this many prefixes of both families. No two of them are adjacent.
fn made(prefixes: u32) -> RangeSet {
    let text: String = (0..prefixes)
        .map(|number| {
            if number % 2 == 0 {
                format!("{}/27\n", Ipv4Addr::from_bits(0x0800_0000 + number * 64))
            } else {
                format!("{}/64\n", Ipv6Addr::from_bits(0x2a00_u128 << 112 | u128::from(number) << 68))
            }
        })
        .collect();
    RangeList::parse(text.as_bytes()).expect("a list").set
}

fn membership(criterion: &mut Criterion) {
    equals_a_scan();
    let mut group = criterion.benchmark_group("membership");
    let longest = &EmbeddedList::all().iter().max_by_key(|list| list.list.prefixes).expect("lists").list.set;
    for (name, set) in [("1,058 published", longest.clone()), ("1,100", made(1_100)), ("50,000", made(50_000))] {
        let mut numbers = Numbers(7);
        // There are more addresses than the caches and the branch predictor of the processor can
        // learn.
        let prefixes = if name == "50,000" { 50_000 } else { 1_100 };
        let v4: Vec<IpAddr> = (0..16_384)
            .map(|_| Ipv4Addr::from_bits(0x0800_0000 + (numbers.next() % (prefixes * 64)) as u32).into())
            .collect();
        let v6: Vec<IpAddr> = (0..16_384)
            .map(|_| {
                let number = u128::from(numbers.next() % prefixes);
                Ipv6Addr::from_bits(0x2a00_u128 << 112 | number << 68 | u128::from(numbers.next())).into()
            })
            .collect();
        for (family, addresses) in [("IPv4", v4), ("IPv6", v6)] {
            let mut turn = 0;
            group.bench_function(format!("{name}, {family}"), |bencher| {
                bencher.iter(|| {
                    turn = (turn + 1) % addresses.len();
                    set.contains(black_box(addresses[turn]))
                });
            });
        }
    }
    group.finish();
    let pattern: NamePattern = "crawl-*-*-*-*.googlebot.com".parse().expect("a pattern");
    criterion.bench_function("name of an address", |bencher| {
        bencher.iter(|| pattern.matches(black_box("crawl-66-249-66-1.googlebot.com.")));
    });
}

fn signatures(criterion: &mut Criterion) {
    let fields = FIELDS.as_slice();
    let message = MessageHead::new("GET", "https", Some(AUTHORITY), "/path?x=1", &fields);
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_735_689_660);
    let mut keys = KeySet::parse(KEY.as_bytes()).expect("a key");
    keys.accepts_test_key = true;
    let keys = Arc::new(keys);
    let mut group = criterion.benchmark_group("signature");
    group.bench_function("read, without the check", |bencher| {
        bencher.iter(|| SignatureCandidate::all(black_box(&message), now));
    });
    group.bench_function("read and checked", |bencher| {
        bencher.iter(|| SignatureCheck::all(black_box(&message), now, |_, _| Ok(keys.clone())));
    });
    group.finish();
}

criterion_group!(benches, membership, signatures);
criterion_main!(benches);
