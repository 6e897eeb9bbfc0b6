//! Tests of reverse DNS names, with a real resolver.

use hickory_resolver::proto::op::ResponseCode;
use tokio::sync::Semaphore;

use super::played_dns::{Played, PlayedDns, address_records, ptr, records};
use super::played_http::{PlayedHttp, answer};
use super::*;
use crate::agent::{Refutation, UndecidedReason};
use crate::identity::NamePattern;
use crate::source::evidence::dns_resolver::{self, DnsResolver, IN_FLIGHT};

const NO_NAME: MethodOutcome = MethodOutcome::Failed(Refutation::NoName);
const OTHER_NAME: MethodOutcome = MethodOutcome::Failed(Refutation::OtherName);
const NOT_CONFIRMED: MethodOutcome = MethodOutcome::Failed(Refutation::NotConfirmed);

/// An address of the crawler, which is looked up to test whether the resolver answers.
const PROOF: &str = "66.249.66.1";
const CLIENT: &str = "9.9.9.9";

fn undecided(reason: UndecidedReason) -> MethodOutcome {
    MethodOutcome::Undecided(reason)
}

struct Resolved {
    dns: PlayedDns,
    clock: TestClock,
    registry: Arc<Registry>,
    verifier: Verifier,
}

impl Resolved {
    fn start() -> Self {
        Self::start_with(PACE, LONG)
    }

    fn start_with(pace: Duration, timeout: Duration) -> Self {
        let dns = PlayedDns::start();
        let clock = TestClock::new();
        let registry = registry(|row| Crawler { reverse_dns: vec![".googlebot.com".into()], ..row });
        let builder = Verifier::builder(&registry).clock(clock.read()).resolvers([dns.address]);
        let verifier = builder.question_times(pace, timeout).start().expect("a verifier");
        Self { dns, clock, registry, verifier }
    }

    /// Starts a verifier whose resolver is known to answer.
    fn proven() -> Self {
        Self::proven_with(PACE, LONG)
    }

    fn proven_with(pace: Duration, timeout: Duration) -> Self {
        let resolved = Self::start_with(pace, timeout);
        resolved.dns.confirmed(PROOF, "crawl-66-249-66-1.googlebot.com");
        let proof = until("the proof", || match resolved.rdns(PROOF) {
            // On a busy machine, a response may be too late for a short timeout.
            MethodOutcome::Undecided(UndecidedReason::Timeout) if timeout < LONG => {
                resolved.clock.pass(Duration::from_secs(61));
                None
            }
            outcome => Some(outcome),
        });
        assert_eq!(proof, MethodOutcome::Verified);
        resolved
    }

    fn at_once(&self, address: &str) -> MethodOutcome {
        self.verifier.rdns(playbot(&self.registry), public(address), self.clock.now()).expect("host patterns")
    }

    fn rdns(&self, address: &str) -> MethodOutcome {
        let pending = undecided(UndecidedReason::Pending);
        until("an outcome", || Some(self.at_once(address)).filter(|outcome| *outcome != pending))
    }
}

#[test]
fn a_reverse_dns_name_that_resolves_back_to_the_address_verifies() {
    let resolved = Resolved::proven();
    assert_eq!(resolved.dns.asked(), ["PTR 1.66.249.66.in-addr.arpa.", "A crawl-66-249-66-1.googlebot.com."]);
    // A known address is not looked up again.
    assert_eq!(resolved.at_once(PROOF), MethodOutcome::Verified);
    assert_eq!(resolved.dns.asked().len(), 2);
    resolved.dns.confirmed("2001:4860:4801:10::1", "Crawl-6.GoogleBot.COM");
    assert_eq!(resolved.rdns("2001:4860:4801:10::1"), MethodOutcome::Verified);
    assert!(resolved.dns.asked()[3].starts_with("AAAA "), "{:?}", resolved.dns.asked());
    resolved.dns.names("66.249.66.3", ptr(&["a.googlebot.com"]));
    resolved.dns.addresses("a.googlebot.com", Played::Chain("b.googlebot.com", records(&["66.249.66.3"])));
    assert_eq!(resolved.rdns("66.249.66.3"), MethodOutcome::Verified);
}

#[test]
fn an_address_without_a_confirmed_name_of_the_crawler_is_refuted() {
    let cases: [(&str, Played, MethodOutcome); 7] = [
        ("no such name", Played::Code(ResponseCode::NXDomain), NO_NAME),
        ("no records", Played::Records(Vec::new()), NO_NAME),
        ("a name without addresses", ptr(&["nowhere.googlebot.com"]), NOT_CONFIRMED),
        ("the right name and the impostor's own", ptr(&["other.googlebot.com", "evil.example"]), NOT_CONFIRMED),
        ("a longer label", ptr(&["xgooglebot.com"]), OTHER_NAME),
        ("a longer name", ptr(&["googlebot.com.evil.example"]), OTHER_NAME),
        ("a private name", ptr(&["evil.example"]), OTHER_NAME),
    ];
    for (what, names, outcome) in cases {
        let resolved = Resolved::proven();
        resolved.dns.names(CLIENT, names);
        resolved.dns.addresses("other.googlebot.com", address_records(&["66.249.66.9"]));
        resolved.dns.addresses("evil.example", address_records(&[CLIENT]));
        assert_eq!(resolved.rdns(CLIENT), outcome, "{what}");
    }
}

/// A resolver that has never answered, or has failed for an hour, cannot refute claims.
#[test]
fn a_resolver_that_never_answered_or_failed_for_an_hour_cannot_refute_claims() {
    let (dns, lists, clock) =
        (PlayedDns::start(), PlayedHttp::start(answer("404 Not Found", "", "")), TestClock::new());
    let of_names = vec![".googlebot.com".to_owned()];
    let registry = registry(|row| Crawler { ranges: vec![lists.url.clone()], reverse_dns: of_names, ..row });
    let builder = Verifier::builder(&registry).clock(clock.read()).resolvers([dns.address]).question_times(PACE, LONG);
    let resolved = Resolved { dns, clock, verifier: builder.start().expect("a verifier"), registry };
    let can_refute = || resolved.verifier.status().can_refute;
    assert!(!until("the first fetch", can_refute));
    let said = resolved.verifier.status().ineffective_reason().expect("a problem");
    assert!(said.contains("and no DNS resolver has answered for an hour"), "{said}");
    resolved.dns.names(CLIENT, Played::Code(ResponseCode::ServFail));
    assert_eq!(resolved.rdns(CLIENT), undecided(UndecidedReason::ResolverFailure));
    assert_eq!(can_refute(), Some(false), "an answer that it has none");
    resolved.dns.names("9.9.9.10", Played::Code(ResponseCode::NXDomain));
    assert_eq!(resolved.rdns("9.9.9.10"), undecided(UndecidedReason::UnprovenResolver));
    assert_eq!(can_refute(), Some(true));
    let said = resolved.verifier.status().ineffective_reason().expect("the lists fail");
    assert!(said.contains("only after a request of the same operator was verified"), "{said}");
    assert!(resolved.verifier.status().problems().contains(&said));
    // As long as no query is sent, the resolver counts as answering.
    resolved.clock.pass(HOUR + Duration::from_secs(1));
    assert_eq!(can_refute(), Some(true));
    resolved.dns.names("9.9.9.11", Played::Code(ResponseCode::ServFail));
    assert_eq!(resolved.rdns("9.9.9.11"), undecided(UndecidedReason::ResolverFailure));
    assert_eq!(can_refute(), Some(false));
    // A list can refute only claims to be the crawler of this list.
    lists.answers(answer("200 OK", "", r#"{"prefixes": [{"ipv4Prefix": "8.8.8.0/24"}]}"#));
    until("a list", || {
        // This is repeated, because a fetch that is in progress may have received the old response.
        resolved.clock.pass(2 * HOUR);
        resolved.verifier.refresh();
        can_refute().filter(|can_refute| *can_refute)
    });
    let problems = resolved.verifier.status().problems();
    assert_eq!(
        problems,
        ["no DNS resolver has answered for an hour, so impostors cannot be recognised by their host names"]
    );
}

#[test]
fn a_dns_query_without_a_usable_answer_refutes_no_request() {
    let cases: [(&str, Played, UndecidedReason); 4] = [
        ("no answer", Played::Silence, UndecidedReason::Timeout),
        ("SERVFAIL", Played::Code(ResponseCode::ServFail), UndecidedReason::ResolverFailure),
        ("REFUSED", Played::Code(ResponseCode::Refused), UndecidedReason::ResolverFailure),
        ("cut over TCP as well", Played::Truncated, UndecidedReason::Truncated),
    ];
    for (what, names, reason) in cases {
        let resolved = Resolved::proven_with(PACE, if reason == UndecidedReason::Timeout { SHORT } else { LONG });
        resolved.dns.names(CLIENT, names.clone());
        assert_eq!(resolved.rdns(CLIENT), undecided(reason), "{what}");
        resolved.dns.names("9.9.9.10", ptr(&["slow.googlebot.com"])).addresses("slow.googlebot.com", names);
        assert_eq!(resolved.rdns("9.9.9.10"), undecided(reason), "{what}, of the name");
    }
}

#[test]
fn a_dns_answer_with_a_hundred_names_is_read_over_tcp() {
    let resolved = Resolved::proven();
    let mut names = vec!["a-name-that-takes-its-room.evil.example"; 100];
    names[0] = "first.googlebot.com";
    resolved.dns.names(CLIENT, ptr(&names)).addresses("first.googlebot.com", address_records(&[CLIENT]));
    assert_eq!(resolved.rdns(CLIENT), MethodOutcome::Verified);
    assert!(resolved.dns.asked().len() <= 2 + 3, "{:?}", resolved.dns.asked());
}

#[test]
fn no_request_is_refuted_if_every_dns_query_gets_nxdomain() {
    let resolved = Resolved::start();
    let unproven = undecided(UndecidedReason::UnprovenResolver);
    assert_eq!((resolved.rdns(CLIENT), resolved.rdns(PROOF)), (unproven, unproven));
}

#[test]
fn a_resolver_is_tested_again_when_its_last_test_is_an_hour_old() {
    let resolved = Resolved::proven();
    assert_eq!(resolved.rdns(CLIENT), NO_NAME);
    resolved.clock.pass(HOUR + Duration::from_secs(1));
    // The failed outcome has expired, so the resolver is tested again.
    let failed = until("a refutation", || Some(resolved.rdns(CLIENT)).filter(|outcome| *outcome == NO_NAME));
    assert_eq!(failed, NO_NAME);
    // From now on, the resolver answers every query with NXDOMAIN.
    resolved.dns.names(PROOF, Played::Code(ResponseCode::NXDomain));
    resolved.clock.pass(HOUR + Duration::from_secs(1));
    assert_eq!(resolved.rdns(CLIENT), undecided(UndecidedReason::UnprovenResolver));
}

#[test]
fn requests_from_many_addresses_do_not_exceed_the_rate_limit_of_dns_queries() {
    let pace = Duration::from_millis(20);
    let resolved = Resolved::start_with(pace, LONG);
    let start = Instant::now();
    let (mut busy, mut pending) = (0, 0);
    for number in 0..10_000_u32 {
        let address = std::net::Ipv4Addr::from(0x0B00_0000 + number).to_string();
        match resolved.at_once(&address) {
            MethodOutcome::Undecided(UndecidedReason::Busy) => busy += 1,
            MethodOutcome::Undecided(UndecidedReason::Pending) => pending += 1,
            other => panic!("{address}: {other:?}"),
        }
    }
    let status = resolved.verifier.status();
    assert!(status.waiting_names <= 256 && status.known_names.expect("names are looked up") <= 65_536, "{status:?}");
    assert!(pending > 0 && busy > 5_000, "{busy} and {pending}");
    let asked = until("questions", || Some(resolved.dns.asked().len()).filter(|asked| *asked > 20));
    // One query is sent at the start, and then at most one every 20 ms.
    let (took, most) = (start.elapsed(), 2 + start.elapsed().as_millis() / pace.as_millis());
    assert!(asked as u128 <= most, "{asked} in {took:?}");
}

/// Sends a claim to be the crawler from the address with this number in a network.
fn claims(resolved: &Resolved, network: &str, number: u32) -> MethodOutcome {
    let address = match network.contains(':') {
        true => format!("{network}:{:x}:{:x}", number >> 16, number & 0xFFFF),
        false => format!("{network}.{}", number % 256),
    };
    resolved.at_once(&address)
}

/// Sends the verifier more claims from these networks than it can look up. Then a new address of
/// the crawler sends a request. Returns the number of queries about other addresses between this
/// request and each of the two queries about the new address.
fn questions_before_a_new_address(networks: &[String], names: Option<&Played>) -> [usize; 2] {
    const NEW: &str = "66.249.70.7";
    let resolved = Resolved::proven();
    resolved.dns.confirmed(NEW, "crawl-66-249-70-7.googlebot.com");
    if let Some(played) = names {
        resolved.dns.unset(played.clone());
    }
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                for network in networks {
                    claims(&resolved, network, number);
                }
                if is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
            }
        });
        let questions = || resolved.dns.asked().len();
        let begun = questions();
        // A /24 has only 256 addresses, so all may be known at the time of this check.
        let many_wait = || resolved.verifier.status().waiting_names > 200 || questions() > begun + 200;
        until("claims that wait", || many_wait().then_some(()));
        until("questions about them", || (questions() > begun + 2).then_some(()));
        // The queue is full, but the new address gets a place in the queue with its first request.
        let first = resolved.at_once(NEW);
        let before = questions();
        let verified = (first == undecided(UndecidedReason::Pending)).then(|| resolved.rdns(NEW));
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!((first, verified), (undecided(UndecidedReason::Pending), Some(MethodOutcome::Verified)));
        let asked = resolved.dns.asked();
        let about = |what: &str| asked.iter().position(|asked| asked.contains(what)).expect("it is asked");
        [about("7.70.249.66.in-addr"), about("crawl-66-249-70-7")].map(|at| at.saturating_sub(before))
    })
}

/// With a single queue for all networks, the first 256 addresses would be looked up first, and
/// chance would decide which address is next.
#[test]
fn a_new_address_is_looked_up_soon_while_one_network_floods_the_queue() {
    let silence = Played::Silence;
    for network in ["2600:1:2:3:0:0", "9.9.9"] {
        for names in [None, Some(&silence)] {
            let [reverse, forward] = questions_before_a_new_address(&[network.to_owned()], names);
            // Four lookups of the network are in progress, each with one query at a time. The other
            // queries are from later lookups of the network, which start before the resolver's
            // thread starts the lookup of the new address.
            assert!(reverse <= 4 + 20 && forward <= 2 * 4 + 40, "{network}: {reverse} and {forward}");
        }
    }
}

#[test]
fn a_new_address_is_looked_up_soon_while_many_networks_of_one_48_prefix_flood_the_queue() {
    let networks: Vec<String> = (0..1_000).map(|number| format!("2600:1:2:{number:x}:0:0")).collect();
    for names in [None, Some(&Played::Silence)] {
        let [reverse, forward] = questions_before_a_new_address(&networks, names);
        assert!(reverse <= 8 + 20 && forward <= 2 * 8 + 40, "{reverse} and {forward}");
    }
}

/// Looks up names as a program that checks a log does.
#[test]
fn dns_queries_of_a_log_check_keep_the_rate_limit() {
    let dns = PlayedDns::start();
    dns.confirmed(PROOF, "crawl-66-249-66-1.googlebot.com").names(CLIENT, ptr(&["evil.example"]));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let start = Instant::now();
    let outcomes = runtime.block_on(async {
        let resolver = DnsResolver::new(&[dns.address], dns_resolver::PACE, LONG).expect("a resolver");
        let resolver = dns_resolver::NameResolver { resolver, in_flight: Semaphore::new(IN_FLIGHT) };
        let patterns: Arc<[NamePattern]> = [".googlebot.com".parse().expect("a pattern")].as_slice().into();
        let check = |address: &str| resolver.check(public(address), patterns.clone(), |_, _| ());
        let unknown = (0..23).map(|number| format!("9.9.8.{number}"));
        for address in unknown {
            assert_eq!(check(&address).await, NO_NAME, "{address}");
        }
        tokio::join!(check(PROOF), check(CLIENT))
    });
    assert_eq!(outcomes, (MethodOutcome::Verified, OTHER_NAME));
    // There were 26 queries, and the first was sent at once.
    assert_eq!(dns.asked().len(), 26);
    assert!(start.elapsed() >= Duration::from_millis(500), "{:?}", start.elapsed());
}
