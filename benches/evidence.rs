//! Measures how long a `Verifier` takes to verify a request if all evidence is already available.
//!
//! A list is served on the loopback, the keys of a directory are in a folder as if an earlier
//! process had saved them, and a local DNS server answers: nothing leaves the machine.

#![expect(clippy::expect_used, reason = "a bench stops at the first surprise")]

mod played;

use std::fs;
use std::hint::black_box;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use criterion::{Criterion, criterion_group, criterion_main};
use http::{HeaderMap, HeaderName, HeaderValue};
use played::{NAMED, serve_list, serve_names};
use ring::signature::{Ed25519KeyPair, KeyPair};
use tower_robots::agent::{Agent, Category, Class, Crawler, Identity, Recognizer, Registry, RegistryRow};
use tower_robots::identity::{FieldLines, IdentityRequest, KeySet, MessageHead, RangeSet, SignatureCandidate};
use tower_robots::internals::ClaimPath;
use tower_robots::rules::RobotsTxt;
use tower_robots::source::evidence::Verifier;

const SIGNATURE_INPUT: HeaderName = HeaderName::from_static("signature-input");
const DIRECTORY: &str = "https://localhost:1";
const PATH: ClaimPath<'_> = ClaimPath { site: "example.com", listener: "0.0.0.0:443" };
const BROWSER: &str =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36";
const LISTED: &str = "66.249.66.1";
const IMPOSTOR: &str = "9.9.9.9";

/// Measures the processor time of the thread, so that other programs on the machine do not matter.
struct ThreadTime;

impl Measurement for ThreadTime {
    type Intermediate = Duration;
    type Value = Duration;

    fn start(&self) -> Duration {
        spent()
    }

    fn end(&self, start: Duration) -> Duration {
        spent().saturating_sub(start)
    }

    fn add(&self, one: &Duration, other: &Duration) -> Duration {
        *one + *other
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        value.as_nanos() as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}

/// Returns the processor time of this thread, or the elapsed time if the kernel does not report it.
fn spent() -> Duration {
    // The kernel updates this value when a thread yields.
    std::thread::yield_now();
    if let Ok(stat) = fs::read_to_string("/proc/thread-self/schedstat")
        && let Some(spent) = stat.split(' ').next().and_then(|nanoseconds| nanoseconds.parse().ok())
    {
        return Duration::from_nanos(spent);
    }
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// Header fields of a request, in the server's own type.
struct Fields(HeaderMap);

impl FieldLines for Fields {
    fn for_each_line(&self, name: &str, each: &mut dyn FnMut(&[u8])) {
        self.0.get_all(name).iter().for_each(|value| each(value.as_bytes()));
    }
}

/// Returns the fields of a browser's request, and the additional fields `more`.
fn fields(more: &[(&'static str, &str)]) -> Fields {
    let usual = [
        ("host", "example.com"),
        ("user-agent", BROWSER),
        ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
        ("accept-language", "en-GB,en;q=0.5"),
        ("accept-encoding", "gzip, deflate, br, zstd"),
        ("sec-fetch-dest", "document"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-site", "none"),
    ];
    let fields = usual.iter().chain(more).map(|(name, value)| {
        (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value of a field"))
    });
    Fields(fields.collect())
}

/// A verifier that has all its evidence, and a request that is signed with a key from its
/// directory.
struct Judged {
    verifier: Verifier,
    agents: [Agent; 1],
    browser: [Agent; 1],
    signed: Fields,
    _folder: tempfile::TempDir,
}

impl Judged {
    fn start() -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a key");
        let jwk =
            format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{}"}}"#, URL_SAFE_NO_PAD.encode(pair.public_key().as_ref()));
        let folder = tempfile::tempdir().expect("a folder");
        save(folder.path(), &format!("{DIRECTORY}/.well-known/http-message-signatures-directory"), &jwk);
        let row = Crawler {
            operator: "Play".into(),
            ranges: vec![serve_list()],
            reverse_dns: vec![".play.test".into()],
            signature: Some(DIRECTORY.into()),
            ..Crawler::new("Playbot", Category::Search)
        };
        let removed = Registry::builtin().crawlers().map(|crawler| RegistryRow::Remove(crawler.name.clone()));
        let registry = Arc::new(Registry::builtin().extended_with(removed.chain([row.into()])).expect("a registry"));
        let builder = Verifier::builder(&registry).resolvers([serve_names(Arc::default())]).saved_in(folder.path());
        let verifier = builder.start().expect("a verifier");
        let recognizer = Recognizer::new(registry, &RobotsTxt::parse(*b""));
        let judged = Self {
            verifier,
            agents: [recognizer.identify(b"Playbot/1.0")],
            browser: [recognizer.identify(BROWSER.as_bytes())],
            signed: sign(&pair, &jwk),
            _folder: folder,
        };
        let unsigned = fields(&[]);
        for (address, meant) in
            [(LISTED, "verified(range)"), (NAMED, "verified(rdns)"), (IMPOSTOR, "refuted(range: not-listed)")]
        {
            judged.until(meant, || judged.identify(&judged.agents, Some(address), &unsigned));
        }
        judged.until("verified(signature)", || judged.identify(&judged.browser, None, &judged.signed));
        judged
    }

    fn until(&self, meant: &str, mut identity: impl FnMut() -> Identity) {
        let start = Instant::now();
        while identity().to_string() != meant {
            assert!(start.elapsed() < Duration::from_secs(30), "{meant}, not {}: {:?}", identity(), self.verifier);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn identify(&self, agents: &[Agent], address: Option<&str>, fields: &Fields) -> Identity {
        let address = address.map(|address| address.parse().expect("an address"));
        judge(&self.verifier, agents, address, fields)
    }
}

/// Verifies who sent a request, as the layer does. A request that is not signed and does not claim
/// to be a crawler is not verified.
#[inline(never)]
fn judge(verifier: &Verifier, agents: &[Agent], address: Option<IpAddr>, fields: &Fields) -> Identity {
    let is_signed = fields.0.keys().any(|name| *name == SIGNATURE_INPUT);
    let is_claim = |agent: &Agent| agent.registered().is_some() || agent.class() == Class::Declared;
    if !is_signed && !agents.iter().any(is_claim) {
        return Identity::Unclaimed;
    }
    let now = verifier.now();
    if !is_signed {
        return verifier.identify_unsigned(agents, address, PATH, now);
    }
    let request = IdentityRequest::new(agents, verifier.public_address(address));
    let message = MessageHead::new("GET", "https", Some("example.com"), "/path?x=1", fields);
    let signers = verifier.signers();
    verifier.identify(&request.signed(&message, &signers), PATH, now).identity
}

/// Does nothing, to measure the cost of the call itself.
#[inline(never)]
fn nothing(_: &Verifier, _: &[Agent], _: Option<IpAddr>, _: &Fields) -> Identity {
    Identity::Unclaimed
}

/// Saves a download for a URL, as an earlier process would have left it.
fn save(folder: &std::path::Path, url: &str, body: &str) {
    let name: String =
        hmac_sha256::Hash::hash(url.as_bytes()).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time");
    let saved = serde_json::json!({"url": url, "confirmed": since.as_secs(), "body": body});
    fs::write(folder.join(format!("{name}.json")), saved.to_string()).expect("a file");
}

fn sign(pair: &Ed25519KeyPair, jwk: &str) -> Fields {
    let keys = KeySet::parse(jwk.as_bytes()).expect("a key");
    let keyid = keys.thumbprints().next().expect("a key");
    let now = SystemTime::now();
    let created = now.duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_secs();
    let agent = format!("sig1=\"{DIRECTORY}\"");
    let input = format!(
        "sig1=(\"@authority\" \"signature-agent\";key=\"sig1\");created={created};expires={};keyid=\"{keyid}\";\
         alg=\"ed25519\";nonce=\"e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLEIW1qg==\";\
         tag=\"web-bot-auth\"",
        created + 3_600
    );
    let with = |signature: &str| {
        fields(&[("signature-agent", &*agent), ("signature-input", &*input), ("signature", signature)])
    };
    let unsigned = with("sig1=:AAAA:");
    let message = MessageHead::new("GET", "https", Some("example.com"), "/path?x=1", &unsigned);
    let base = SignatureCandidate::all(&message, now).remove(0).expect("a signature").base;
    with(&format!("sig1=:{}:", STANDARD.encode(pair.sign(base.as_bytes()))))
}

fn evidence(criterion: &mut Criterion<ThreadTime>) {
    let judged = Judged::start();
    let Judged { verifier, agents, browser, signed, .. } = &judged;
    let unsigned = fields(&[]);
    let address = |text: &str| Some(text.parse::<IpAddr>().expect("an address"));
    let listed = address(LISTED);
    let mut group = criterion.benchmark_group("evidence at hand");
    let set: RangeSet = ["66.249.64.0/19".parse().expect("a network")].into_iter().collect();
    group.bench_function("floor: a list of one prefix", |bencher| {
        bencher.iter(|| black_box(&set).contains(black_box(IpAddr::from([66, 249, 66, 1]))));
    });
    group.bench_function("floor: a call that looks at nothing", |bencher| {
        bencher.iter(|| nothing(verifier, black_box(browser), black_box(listed), black_box(&unsigned)));
    });
    group.bench_function("floor: the time", |bencher| bencher.iter(SystemTime::now));
    for (name, agents, address, fields) in [
        ("no crawler", browser, address("8.8.4.4"), &unsigned),
        ("verified by a list", agents, address(LISTED), &unsigned),
        ("verified by its name", agents, address(NAMED), &unsigned),
        ("refuted", agents, address(IMPOSTOR), &unsigned),
        ("verified by a signature", browser, None, signed),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| judge(verifier, black_box(agents), black_box(address), black_box(fields)));
        });
    }
    group.finish();
    for threads in [1, 2, 4] {
        at_once(&judged, threads);
    }
}

/// Measures the same request on several threads. All threads verify claims on the same network
/// path.
#[expect(clippy::print_stderr, reason = "a bench says what it found")]
fn at_once(judged: &Judged, threads: u32) {
    const TURNS: u32 = 400_000;
    let unsigned = fields(&[]);
    for address in [LISTED, NAMED, IMPOSTOR] {
        let parsed = Some(address.parse().expect("an address"));
        let mut medians: Vec<Duration> = (0..5)
            .map(|_| {
                std::thread::scope(|scope| {
                    let run = || {
                        let start = spent();
                        for _ in 0..TURNS {
                            black_box(judge(&judged.verifier, &judged.agents, black_box(parsed), &unsigned));
                        }
                        spent() - start
                    };
                    let all: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
                    all.into_iter().map(|thread| thread.join().expect("no panic")).sum()
                })
            })
            .collect();
        medians.sort();
        eprintln!("{threads} threads, {address}: {} ns a request", (medians[2] / (TURNS * threads)).as_nanos());
    }
}

criterion_group!(name = benches; config = Criterion::default().with_measurement(ThreadTime); targets = evidence);
criterion_main!(benches);
