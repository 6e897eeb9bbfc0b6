//! The counts do not depend on how a log is cut, and are those of a layer.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, UNIX_EPOCH};

use http::{Request, Response, StatusCode};
use tower::{Layer, ServiceExt, service_fn};
use tower_robots::agent::{Identity, IdentityMethod, Refutation};
use tower_robots::layer::RobotsLayer;
use tower_robots::live::LiveRobots;
use tower_robots::policy::{Mode, Policy, RateMode, StarScope};
use tower_robots::rules::Reading;

use super::*;
use crate::evaluator::{Evaluator, EvaluatorSettings, KnownSender};

const START: i64 = 1_700_000_000;

/// A log: of each line the header, the identity, the address and the time.
type Line<'a> = (&'a str, Identity, Option<&'a str>, i64);

fn policy(rate: RateMode, scope: StarScope) -> Policy {
    let policy = Policy::builder().mode(Mode::Refuse).rate(rate).rate_burst(2.try_into().expect("above zero"));
    policy.star_scope(scope).build()
}

fn evaluator_with(robots: &str, policy: Policy) -> Evaluator {
    let settings = EvaluatorSettings { policy, ..EvaluatorSettings::default() };
    Evaluator::new(robots.into(), Reading::Standard, &settings)
}

fn evaluator(robots: &str, rate: RateMode) -> Evaluator {
    evaluator_with(robots, policy(rate, StarScope::default()))
}

/// The counts of one input, in chunks of so many lines.
fn counts(evaluator: &Evaluator, lines: &[Line<'_>], chunk: usize, suspects: &[String]) -> PaceCounts {
    let mut all = PaceCounts::new(evaluator.settings.policy.rate_burst());
    for chunk in lines.chunks(chunk) {
        all.join(noted(evaluator, chunk));
    }
    all.conclude(suspects);
    all
}

/// The counts of several, each in one chunk.
fn counts_of_inputs(evaluator: &Evaluator, inputs: &[Vec<Line<'_>>]) -> PaceCounts {
    let mut all = PaceCounts::new(evaluator.settings.policy.rate_burst());
    for lines in inputs {
        all.begin_input();
        all.join(noted(evaluator, lines));
    }
    all.conclude(&[]);
    all
}

/// The notes of a chunk.
fn noted(evaluator: &Evaluator, chunk: &[Line<'_>]) -> PaceNotes {
    let mut notes = PaceNotes::default();
    for &(header, identity, address, time) in chunk {
        let agents = evaluator.agents(header.as_bytes());
        let path = evaluator.path(b"/page");
        let address = address.map(|address| address.parse::<IpAddr>().expect(address));
        let sender = KnownSender { identity, address };
        let (agents, rules) = (&agents, &evaluator.rules);
        let line = PacedLogLine { agents, rules, identity, address, target: b"/page", time };
        notes.note(&evaluator.decide_for_sender(agents, sender, "GET", &path), &line);
    }
    notes
}

/// Requests and those that came too soon, of each row.
fn rows(counts: &PaceCounts) -> Vec<(String, PacedSenders, u64, u64)> {
    let row = |count: &&PaceCount| {
        let PacedRequests { requests, too_soon, .. } = count.paced;
        (count.crawler.clone(), count.senders, requests, too_soon)
    };
    counts.sorted().iter().map(row).collect()
}

const GPTBOT: &str = "GPTBot/1.0";
const DELAY: &str = "User-agent: GPTBot\nCrawl-delay: 10\n";
const VERIFIED: Identity = Identity::Verified(IdentityMethod::Range);
const REFUTED: Identity = Identity::Refuted(Refutation::NotListed);

fn own(requests: u64, too_soon: u64) -> Vec<(String, PacedSenders, u64, u64)> {
    vec![("GPTBot".into(), PacedSenders::Own, requests, too_soon)]
}

#[test]
fn what_is_counted_does_not_depend_on_the_chunks() {
    let evaluator = evaluator(DELAY, RateMode::Observe);
    let lines: Vec<Line<'_>> =
        (0..30).map(|at| (GPTBOT, Identity::Unverifiable, Some("9.9.9.9"), START + at)).collect();
    for chunk in [1, 4, 15, 30] {
        // A burst of two, and two more in the rest of the thirty seconds.
        assert_eq!(rows(&counts(&evaluator, &lines, chunk, &[])), own(30, 26), "{chunk}");
    }
}

/// The times of a log are not those of a clock: a late line must not empty or fill a bucket.
#[test]
fn lines_that_are_out_of_order_change_nothing() {
    let evaluator = evaluator(DELAY, RateMode::Observe);
    let line = |time| (GPTBOT, VERIFIED, Some("9.9.9.9"), START + time);
    let mut lines: Vec<_> = (0..600).map(line).collect();
    let want = rows(&counts(&evaluator, &lines, 7, &[]));
    assert_eq!(want, own(600, 600 - 61));
    for chunk in lines.chunks_mut(13) {
        chunk.reverse();
    }
    assert_eq!(rows(&counts(&evaluator, &lines, 7, &[])), want);
    // Those that keep the delay do so in any order, and in another log of the day before.
    let mut kept: Vec<_> = (0..90).map(|at| line(10 * at)).collect();
    kept.chunks_mut(4).for_each(<[_]>::reverse);
    kept.extend((0..90).map(|at| line(10 * at - 86_400)));
    assert_eq!(rows(&counts(&evaluator, &kept, 11, &[])), []);
}

#[test]
fn networks_count_by_themselves_and_a_verified_crawler_by_its_name() {
    let evaluator = evaluator(DELAY, RateMode::Observe);
    let addresses = ["9.9.9.1", "9.9.9.2", "9.9.9.3", "9.9.9.4"];
    let lines = |identity| -> Vec<_> {
        (0..40).map(|at| (GPTBOT, identity, Some(addresses[at as usize % 4]), START + at * 10)).collect()
    };
    let four_at_once =
        |identity| -> Vec<_> { addresses.map(|address| (GPTBOT, identity, Some(address), START)).into() };
    // Each network keeps the delay.
    assert_eq!(rows(&counts(&evaluator, &lines(Identity::Unverifiable), 7, &[])), []);
    assert_eq!(rows(&counts(&evaluator, &four_at_once(Identity::Unverifiable), 7, &[])), []);
    assert_eq!(rows(&counts(&evaluator, &four_at_once(VERIFIED), 7, &[])), own(4, 2));
    // One client has a whole /64.
    let v6 = [("2001:db8::1", 0), ("2001:db8::2", 0), ("2001:db8::3", 1), ("2001:db8:0:1::1", 1)];
    let v6 = v6.map(|(address, at)| (GPTBOT, Identity::Unverifiable, Some(address), START + at));
    assert_eq!(rows(&counts(&evaluator, &v6, 7, &[])), own(4, 1));
    // Without addresses the name alone is left.
    let unaddressed: Vec<_> =
        lines(Identity::Unverifiable).into_iter().map(|line| (line.0, line.1, None, START)).collect();
    let counted = counts(&evaluator, &unaddressed, 7, &[]);
    assert_eq!(rows(&counted), own(40, 38));
    assert_eq!(counted.sorted()[0].paced.without_address, 40);
}

#[test]
fn impostors_share_a_bucket_unless_the_log_may_not_hold_their_addresses() {
    let evaluator = evaluator(DELAY, RateMode::Observe);
    let lines: Vec<_> = (1..=6)
        .flat_map(|at| {
            let address = ["9.9.9.1", "9.9.9.2", "9.9.9.3"][at % 3];
            [(GPTBOT, REFUTED, Some(address), START), (GPTBOT, VERIFIED, Some("9.9.9.9"), START + 10 * at as i64)]
        })
        .collect();
    let impostors = |too_soon| vec![("GPTBot".to_owned(), PacedSenders::Impostors, 6, too_soon)];
    assert_eq!(rows(&counts(&evaluator, &lines, 5, &[])), impostors(4));
    // Two of six, whose addresses may be one proxy's or several clients'.
    let counted = counts(&evaluator, &lines, 5, &["GPTBot".into()]);
    assert_eq!(rows(&counted), own(12, 4));
    assert_eq!(counted.sorted()[0].paced.without_address, 6);
    let lines: Vec<_> = lines.iter().copied().chain(lines.iter().copied()).collect();
    assert_eq!(rows(&counts(&evaluator, &lines, 5, &["GPTBot".into()])), own(24, 5 + 10));
}

#[test]
fn the_strictest_delay_of_all_names_counts_and_no_more_than_is_enforced() {
    let robots = "User-agent: GPTBot\nCrawl-delay: 1\nDisallow: /x\n\nUser-agent: CCBot\nCrawl-delay: 60\n";
    let header = "Mozilla/5.0 (compatible; GPTBot/1.0; CCBot/2.0)";
    let lines: Vec<_> = (0..4).map(|at| (header, Identity::Unverifiable, Some("9.9.9.9"), START + 31 * at)).collect();
    // At 60 s the third would come too soon.
    assert_eq!(rows(&counts(&evaluator(robots, RateMode::Observe), &lines, 5, &[])), []);
    let lines: Vec<_> = (0..4).map(|at| (header, Identity::Unverifiable, Some("9.9.9.9"), START + 2 * at)).collect();
    let counted = counts(&evaluator(robots, RateMode::Refuse), &lines, 5, &[]);
    assert_eq!(rows(&counted), [("CCBot".to_owned(), PacedSenders::Own, 4, 2)]);
    let count = counted.sorted()[0];
    assert_eq!((count.asked.as_secs(), count.interval.as_secs(), count.line, count.paced.refused), (60, 30, 6, 2));
}

/// All names that may be made up count as one, so more of them is not more requests.
#[test]
fn made_up_names_share_a_bucket_and_those_past_the_bound_a_row() {
    let evaluator = evaluator("User-agent: *\nCrawl-delay: 10\n", RateMode::Refuse);
    let names = made_up(|at| format!("Madeup{at}bot/1.0 (+https://example.com/bot)"));
    for chunk in [3, 5_000] {
        let counted = rows(&counts(&evaluator, &lines_of(&names), chunk, &[]));
        assert_eq!(counted.len(), 1_024 - 2 + 1, "{chunk}");
        assert_eq!(counted[0], ("other crawlers".to_owned(), PacedSenders::Own, 76, 76));
        assert!(!counted.iter().any(|row| row.0.starts_with("Madeup0bot") || row.0.starts_with("Madeup1bot")));
    }
}

/// More headers than have a row of their own.
fn made_up(of: fn(usize) -> String) -> Vec<String> {
    (0..1_100).map(of).collect()
}

/// A request of each header at once, from one address.
fn lines_of(headers: &[String]) -> Vec<Line<'_>> {
    headers.iter().map(|header| (header.as_str(), Identity::Unverifiable, Some("9.9.9.9"), START)).collect()
}

/// How many of these requests of one network, all in one second, a layer answers with 429.
fn refused_by_a_layer(robots: &'static str, policy: &Policy, headers: &[String], address: Option<IpAddr>) -> u64 {
    let now = UNIX_EPOCH + Duration::from_secs(START.unsigned_abs());
    let live = LiveRobots::inline(robots).policy(policy.clone()).clock(move || now).open().expect("a robots.txt");
    let layer = RobotsLayer::new(live).address_from(move |_| address);
    let service = layer.layer(service_fn(|_| std::future::ready(Ok::<_, Infallible>(Response::new(String::new())))));
    let is_refused = |header: &&String| {
        let request = Request::get("/page").header("user-agent", header.as_str()).body(()).expect("a request");
        let answer = pin!(service.clone().oneshot(request)).poll(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(Ok(response)) = answer else { panic!("{header}: no answer at once") };
        response.status() == StatusCode::TOO_MANY_REQUESTS
    };
    headers.iter().filter(is_refused).count() as u64
}

#[test]
fn a_log_of_requests_to_a_layer_has_as_many_that_come_too_soon() {
    let nutch = "User-agent: Nutch\nCrawl-delay: 10\n";
    let star = "User-agent: *\nCrawl-delay: 10\n";
    let foo = "User-agent: Foo\nCrawl-delay: 10\n";
    let policy = policy(RateMode::Refuse, StarScope::Everyone);
    let same = |header: &str| vec![header.to_owned(); 7];
    let numbered = |of: fn(usize) -> String| -> Vec<String> { (0..7).map(of).collect() };
    let firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";
    for (robots, headers, want, unaddressed) in [
        (nutch, numbered(|at| format!("X{at}Bot/Nutch-1.10")), 5, 5),
        (nutch, same("X1Bot/Nutch-1.10"), 5, 5),
        (foo, same("Foo/1.0"), 5, 5),
        (foo, numbered(|at| format!("Foo/1.{at}")), 5, 5),
        (star, same("GPTBot/1.0"), 5, 5),
        (star, same("curl/8.5.0"), 5, 0),
        (star, same("python-requests/2.31.0"), 5, 0),
        (star, numbered(|at| format!("Madeup{at}bot/1.0 (+https://example.com/bot)")), 5, 5),
        (star, [same("curl/8.5.0"), numbered(|at| format!("Made{at}bot/1.0"))].concat(), 12, 5),
        (star, same(firefox), 0, 0),
        (star, same("com.example.shop/7"), 0, 0),
    ] {
        for (address, want) in [(Some("9.9.9.9"), want), (None, unaddressed)] {
            let evaluator = evaluator_with(robots, policy.clone());
            let lines: Vec<Line<'_>> =
                headers.iter().map(|header| (header.as_str(), Identity::Unclaimed, address, START)).collect();
            let counted = counts(&evaluator, &lines, 3, &[]);
            let refused: u64 = counted.sorted().iter().map(|count| count.paced.refused).sum();
            let at = address.map(|address| address.parse().expect(address));
            assert_eq!(refused_by_a_layer(robots, &policy, &headers, at), want, "{robots}{headers:?} {address:?}");
            assert_eq!(refused, want, "{robots}{headers:?} {address:?}");
        }
    }
}

/// A name that only the file has, and an agent that names nobody, has a row as well.
#[test]
fn rows_are_named_by_the_crawler_its_token_or_its_class() {
    let robots = "User-agent: Foo\nCrawl-delay: 10\n\nUser-agent: *\nCrawl-delay: 10\n";
    let evaluator = evaluator_with(robots, policy(RateMode::Refuse, StarScope::Everyone));
    for (header, name) in [("GPTBot/1.0", "GPTBot"), ("Foo/1.0", "foo"), ("curl/8.5.0", "library")] {
        let lines = [(header, Identity::Unclaimed, Some("9.9.9.9"), START); 3];
        assert_eq!(rows(&counts(&evaluator, &lines, 3, &[])), [(name.to_owned(), PacedSenders::Own, 3, 1)]);
    }
}

/// Names in front of one that the file has are made up too.
#[test]
fn rows_of_names_in_front_of_a_framework_are_bounded() {
    let evaluator = evaluator("User-agent: Nutch\nCrawl-delay: 10\n", RateMode::Refuse);
    let names = made_up(|at| format!("X{at}Bot/Nutch-1.10"));
    let counted = rows(&counts(&evaluator, &lines_of(&names), 100, &[]));
    assert_eq!(counted.len(), 1_024 - 2 + 1);
    assert_eq!(counted[0], ("other crawlers".to_owned(), PacedSenders::Own, 76, 76));
}

/// The line of one server does not follow that of another.
#[test]
fn logs_of_two_servers_count_one_by_one() {
    let evaluator = evaluator(DELAY, RateMode::Observe);
    let server = |offset| -> Vec<Line<'_>> {
        (0..40).map(|at| (GPTBOT, VERIFIED, Some("9.9.9.9"), START + offset + 10 * at)).collect()
    };
    let all = counts_of_inputs(&evaluator, &[server(0), server(3), server(-5)]);
    assert_eq!(rows(&all), []);
    assert!(!all.is_out_of_order());
}

#[test]
fn a_log_whose_latest_line_comes_first_is_out_of_order() {
    let evaluator = evaluator(DELAY, RateMode::Observe);
    let line = |at: i64| (GPTBOT, VERIFIED, Some("9.9.9.9"), START + 10 * at);
    for (lines, want) in [((0..600).map(line).collect::<Vec<_>>(), false), ((0..600).rev().map(line).collect(), true)] {
        assert_eq!(counts_of_inputs(&evaluator, &[lines]).is_out_of_order(), want);
    }
}
