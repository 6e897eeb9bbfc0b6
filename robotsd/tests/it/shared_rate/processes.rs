//! Tests three processes that serve a site and share a store.

use super::server::{StoreServer, any_store, each_program};
use crate::harness::*;

fn config(rate: &str, store: &str) -> Config {
    let site = format!("root = \"root\"\nrobots.path = \"robots.txt\"\n[site.rate]\nmode = \"refuse\"\n{rate}");
    Config::refusing().admin_socket().tables(store).site("shop", site).file("root/a.html", "a")
}

fn crawl_delay(delay: &str) -> String {
    format!("User-agent: GPTBot\nCrawl-delay: {delay}\n")
}

/// Starts a process, and waits until it uses its store.
fn start(delay: &str, rate: &str, store: &str) -> (Folder, Running) {
    start_with("", delay, rate, store)
}

fn start_with(listener: &str, delay: &str, rate: &str, store: &str) -> (Folder, Running) {
    using(&config(rate, store).listener(listener).robots(crawl_delay(delay)))
}

fn using(config: &Config) -> (Folder, Running) {
    let (folder, running) = config.start();
    running.wait_for_event("rate-store", |line| line["level"] == "info");
    (folder, running)
}

fn store_of(folder: &Folder) -> Value {
    folder.with_config(&["status", "--json"]).json()["rate_store"].take()
}

fn count(store: &Value, counts: &str, kind: &str) -> usize {
    let counts = store[counts].as_array().unwrap();
    let found = counts.iter().find(|count| count["kind"] == kind).unwrap();
    usize::try_from(found["count"].as_u64().unwrap()).unwrap()
}

pub(crate) fn counted(folder: &Folder, counts: &str, kind: &str) -> usize {
    count(&store_of(folder), counts, kind)
}

fn in_store(store: &StoreServer) -> String {
    format!("[rate]\nstore = \"{}\"\n", store.url())
}

/// A function that sends a request to a process: directly, or as a decision request of nginx.
type Ask = fn(&Running) -> Answer;

const WAYS: [(&str, Ask); 2] = [("", |running| running.get("/a.html", GPTBOT)), ("kind = \"decision\"", question)];

fn question(running: &Running) -> Answer {
    let fields = [("X-Original-URI", "/a.html"), ("X-Original-Method", "GET"), ("User-Agent", GPTBOT)];
    running.request("GET", "/-/auth/nginx", &fields)
}

/// Result of sending many requests.
struct Hammered {
    /// Number of requests that passed.
    passed: usize,
    /// Longest possible duration: from before the first request until after the last response.
    longest: Duration,
    /// Shortest possible duration: from the first response until the last refused request was sent.
    shortest: Duration,
}

/// Sends requests to three processes, with two clients for each. A client continues as long as
/// `goes_on` returns `true` for its number of requests and the time.
fn hammer(replicas: &[(Folder, Running)], ask: Ask, goes_on: impl Fn(usize, Duration) -> bool + Sync) -> Hammered {
    let passed = AtomicUsize::new(0);
    let (first, last) = (Mutex::new(None), Mutex::new(None));
    let start = Instant::now();
    thread::scope(|scope| {
        for (_, running) in replicas.iter().chain(replicas) {
            scope.spawn(|| {
                for request in 0.. {
                    let asked = Instant::now();
                    if !goes_on(request, asked - start) {
                        return;
                    }
                    let status = ask(running).status;
                    first.lock().unwrap().get_or_insert_with(Instant::now);
                    match status {
                        200 => drop(passed.fetch_add(1, Ordering::Relaxed)),
                        // nginx can only refuse with status 403.
                        403 | 429 => {
                            let mut last = last.lock().unwrap();
                            *last = (*last).max(Some(asked));
                        }
                        status => panic!("{status}"),
                    }
                    thread::sleep(Duration::from_millis(10));
                }
            });
        }
    });
    let times = first.into_inner().unwrap().zip(last.into_inner().unwrap());
    let shortest = times.map(|(first, last)| last.saturating_duration_since(first)).unwrap_or_default();
    Hammered { passed: passed.into_inner(), longest: start.elapsed(), shortest }
}

#[test]
fn three_processes_that_share_a_store_allow_exactly_one_burst() {
    each_program(async |name, program| {
        let [(_store, replicas), (_other, asked)] = WAYS.map(|(listener, ask)| {
            let store = StoreServer::start(program).ready();
            let rate = in_store(&store);
            let replicas: Vec<_> = (0..3).map(|_| start_with(listener, "30", "burst = 20", &rate)).collect();
            // Sends so many requests that each process would let a whole burst pass if it counted
            // alone.
            let Hammered { passed, longest, .. } = hammer(&replicas, ask, |request, _| request < 30);
            let allowed = 20 + usize::try_from(longest.as_secs() / 30).unwrap();
            let alone: usize = replicas.iter().map(|(folder, _)| counted(folder, "requests", "alone")).sum();
            // The store may have counted a request although it was decided without its response.
            assert!(passed <= allowed + alone, "{name}: {passed} of {allowed} passed, {alone} without the store");
            assert!(passed + alone >= 20, "{name}: {passed} passed, {alone} without the store");
            (store, replicas)
        });
        asked[0].1.wait_for_event("limited", |line| line["reason"] == "limited");
        // Refused clients must get the same response as with one process.
        let refused = || Some(replicas[0].1.get("/a.html", GPTBOT)).filter(|answer| answer.status != 200);
        let answer = wait_for("a refusal", refused);
        assert_eq!((answer.status, answer.field("ratelimit-policy")), (429, Some("\"crawl\";q=1;w=30")));
        let retry_after: u64 = answer.field("retry-after").unwrap().parse().unwrap();
        assert!((1..=33).contains(&retry_after), "{answer:?}");
        replicas[0].1.wait_for_event("limited", |line| line["status"] == 429 && line["reason"] == "limited");
        assert_eq!(replicas[0].1.get("/a.html", FIREFOX).status, 200);
        assert_eq!(replicas[0].1.get("/robots.txt", GPTBOT).status, 200);
    });
}

/// If a site only observes, no request waits for the store, but the store must count all requests.
#[test]
fn an_observing_site_counts_in_the_store_and_refuses_no_request() {
    let Some(store) = any_store() else { return };
    let rate = in_store(&store);
    let config = config("burst = 10\n[site.enforcement]\nmode = \"observe\"", &rate).robots(crawl_delay("30"));
    let [one, other] = [(); 2].map(|()| using(&config));
    let ask = |running: &Running| assert_eq!(running.get("/a.html", GPTBOT).status, 200);
    (0..10).for_each(|_| ask(&one.1));
    // Through the store, this process learns of the requests that the other process has let pass.
    wait_until("a request that the store would deny", || {
        ask(&other.1);
        counted(&other.0, "requests", "known-denied") > 0
    });
    let limited = other.1.event("limit-observed");
    assert_eq!((&limited["would"], &limited["reason"]), (&"limit".into(), &"limit-observed".into()));
    for (folder, running) in [&one, &other] {
        assert_eq!(running.count("limited", |_| true), 0);
        // These counts include only requests that waited for a response of the store.
        let store = store_of(folder);
        assert_eq!(["allowed", "denied"].map(|kind| count(&store, "requests", kind)), [0, 0], "{store}");
    }
}

/// Each host has its own robots.txt, and must therefore have its own bucket.
#[test]
fn hosts_of_a_directory_source_do_not_share_a_bucket() {
    let Some(store) = any_store() else { return };
    let robots = "robots = { source = \"directory\", path = \"sites\" }";
    let config = Config::refusing()
        .admin_socket()
        .tables(in_store(&store))
        .site("shop", format!("root = \"root\"\n{robots}\nrate = {{ mode = \"refuse\", burst = 1 }}"))
        .file("root/a.html", "a")
        .file("sites/a.example.txt", crawl_delay("30"))
        .file("sites/b.example.txt", crawl_delay("20"))
        .file("sites/c.example.txt", crawl_delay("30"));
    let [one, other] = [(); 2].map(|()| using(&config));
    let status = |running: &Running, host: &str| {
        running.request("GET", "/a.html", &[("Host", host), ("User-Agent", GPTBOT)]).status
    };
    let hosts = ["a.example", "b.example", "c.example"];
    let start = Instant::now();
    assert_eq!(hosts.map(|host| status(&one.1, host)), [200; 3]);
    let again = [&one, &other].map(|(_, running)| hosts.map(|host| status(running, host)));
    // On a busy machine, a process may decide without the store. The next request may be allowed.
    let is_due = start.elapsed() >= Duration::from_secs(20);
    let is_alone = [&one, &other].iter().any(|(folder, _)| counted(folder, "requests", "alone") > 0);
    if !is_due && !is_alone {
        assert_eq!(again, [[429; 3]; 2]);
    }
}

/// With `ROBOTSD_LONG`, as in the long suite, this runs for a minute.
#[test]
fn three_processes_that_share_a_store_allow_the_rate_of_one_process() {
    let seconds = if is_long() { 60 } else { 1 };
    each_program(async |name, program| {
        for (listener, ask) in WAYS {
            let store = StoreServer::start(program).ready();
            let rate = in_store(&store);
            // The burst is the number of requests that are allowed in ten seconds. If the machine
            // stalls for a shorter time, all allowed requests still pass.
            let replicas: Vec<_> = (0..3).map(|_| start_with(listener, "0.1", "burst = 100", &rate)).collect();
            let hammered = hammer(&replicas, ask, |request, time| request < 50 || time < Duration::from_secs(seconds));
            let [allowed, least] = [hammered.longest, hammered.shortest]
                .map(|time| 100 + usize::try_from(time.as_millis() / 100).unwrap());
            let passed = hammered.passed;
            let stores: Vec<_> = replicas.iter().map(|(folder, _)| store_of(folder)).collect();
            let sum = |counts, kind| stores.iter().map(|store| count(store, counts, kind)).sum::<usize>();
            let (alone, unheard) = (sum("requests", "alone"), sum("calls", "late") + sum("calls", "failed"));
            let calls = sum("calls", "answered") + unheard;
            println!(
                "{name} {listener}: {passed} of {allowed} passed, {calls} calls, {alone} alone, {unheard} unheard"
            );
            assert!(passed <= allowed + alone, "{name} {listener}: {passed} of {allowed}, {alone} alone");
            // When a request is refused, all requests that were allowed until then have passed. On
            // a busy machine, processes may decide without the store all the time.
            assert!(hammered.shortest > Duration::ZERO || alone > 0, "{name} {listener}: no request was refused");
            assert!(passed + 3 + alone + unheard >= least, "{name} {listener}: {passed} of {least} at least");
        }
    });
}

#[test]
fn a_hanging_store_refuses_no_request_and_is_in_the_status() {
    let Some(store) = any_store() else { return };
    let (folder, running) = start("0.01", "burst = 1000", &in_store(&store));
    let pass = || assert_eq!(running.get("/a.html", GPTBOT).status, 200);
    pass();
    wait_until("a store that is used", || store_of(&folder)["state"] == "used");
    store.signal("STOP");
    wait_until("a store that is out", || {
        pass();
        store_of(&folder)["state"] == "out"
    });
    let lost = running.wait_for_event("rate-store", |line| line["level"] == "warn");
    assert!(message(&lost).contains("each process counts the requests of crawlers on its own"), "{lost}");
    pass();
    assert_has(unfolded(&folder.with_config(&["status"]).out), &[" is OUT: this process counts requests on its own"]);
    let needs_a_hand = folder.with_config(&["status", "--problems"]).ends_with(1).out;
    let problem = format!("problem: {} is not used: ", store.url());
    assert_has(unfolded(&needs_a_hand), &[&problem, "; each process counts the requests of crawlers on its own"]);
    assert!(counted(&folder, "requests", "alone") > 0);
    store.signal("CONT");
    wait_until("a store that is used again", || {
        pass();
        store_of(&folder)["state"] == "used"
    });
    wait_until("no problem", || folder.with_config(&["status", "--problems"]).code == Some(0));
    // If a new config names no store, the store is no longer used. If it names another store, the
    // buckets are full again.
    folder.configure(config("burst = 1000", ""));
    wait_until("no store", || store_of(&folder).is_null());
    pass();
    let other = Arc::new(StoreServer::start(&store.program).ready());
    folder.configure(config("burst = 1000", &in_store(&other)));
    wait_until("another store", || {
        pass();
        let of_status = store_of(&folder);
        of_status["state"] == "used" && of_status["place"] == other.url()
    });
}

#[test]
fn a_password_in_a_store_url_appears_in_no_log_and_no_output() {
    let with = |url: &str| config("", &format!("[rate]\nstore = \"redis://{url}\"")).robots("# nothing\n");
    let (folder, running) = with("robotsd:hunter2@127.0.0.1:1").start();
    running.wait_for_event("rate-store", |line| line["level"] == "warn");
    folder.configure(with("robotsd:swordfish@127.0.0.1:2"));
    running.event("config");
    let changed = running.wait_for_event("config-changed", |line| line["setting"] == "rate.store");
    assert_eq!(changed["after"], "redis://robotsd:***@127.0.0.1:2");
    let mut shown = folder.configured(["config", "show"]).said() + &folder.with_config(&["status", "--json"]).said();
    for event in running.event_names() {
        shown += &format!("{:?}", running.all(&event));
    }
    assert_has(&shown, &["127.0.0.1:2"]);
    assert_lacks(&shown, &["hunter2", "swordfish"]);
}
