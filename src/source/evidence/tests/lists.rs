//! Tests of published lists that are fetched over HTTP.

use super::played_http::{PlayedHttp, answer};
use super::*;
use crate::agent::{Identity, IdentityMethod, Recognizer, Refutation, UndecidedReason};
use crate::rules::RobotsTxt;
use crate::source::evidence::verifier_builder::VerifierSettings;
use crate::source::follow::{DocumentStatus, FollowBuilder};

const MISS: MethodOutcome = MethodOutcome::Failed(Refutation::NotListed);
const STALE: MethodOutcome = MethodOutcome::Undecided(UndecidedReason::Stale);
const NOT_LOADED: MethodOutcome = MethodOutcome::Undecided(UndecidedReason::NotLoaded);

const INSIDE: &str = "8.8.8.8";
const OUTSIDE: &str = "9.9.9.9";

fn list(prefixes: &[&str]) -> String {
    let entries: Vec<String> = prefixes.iter().map(|prefix| format!(r#"{{"ipv4Prefix":"{prefix}"}}"#)).collect();
    format!(r#"{{"creationTime":"2026-11-01T00:00:00","prefixes":[{}]}}"#, entries.join(","))
}

fn good() -> String {
    answer(
        "200 OK",
        "ETag: \"one\"\r\n",
        &list(&["8.8.8.0/24", "8.8.9.0/24", "8.8.10.0/24", "8.8.11.0/24", "8.8.12.0/24"]),
    )
}

struct Followed {
    server: PlayedHttp,
    clock: TestClock,
    registry: Arc<Registry>,
    verifier: Verifier,
}

impl Followed {
    fn start(answer: impl Into<Vec<u8>>) -> Self {
        Self::start_with(answer, |builder| builder)
    }

    fn start_with(
        answer: impl Into<Vec<u8>>,
        change: impl FnOnce(FollowBuilder<VerifierSettings>) -> FollowBuilder<VerifierSettings>,
    ) -> Self {
        Self::start_at(PlayedHttp::start(answer), change)
    }

    /// Starts a verifier with the operator's own copy of the list, which contains these networks.
    fn start_with_file(answer: impl Into<Vec<u8>>, networks: &[&str]) -> Self {
        let copy = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(copy.path(), list(networks)).expect("written");
        let server = PlayedHttp::start(answer);
        let url = server.url.clone();
        Self::start_at(server, |builder| builder.list_file(&url, copy.path()).expect("a list"))
    }

    fn start_at(
        server: PlayedHttp,
        change: impl FnOnce(FollowBuilder<VerifierSettings>) -> FollowBuilder<VerifierSettings>,
    ) -> Self {
        let clock = TestClock::new();
        let registry = registry(|row| Crawler { ranges: vec![server.url.clone()], ..row });
        let builder = Verifier::builder(&registry).clock(clock.read()).without_names();
        let verifier = change(builder).start().expect("a verifier");
        Self { server, clock, registry, verifier }
    }

    fn range(&self, address: &str) -> MethodOutcome {
        self.verifier.range(playbot(&self.registry), public(address), self.clock.now()).expect("a list")
    }

    fn status(&self) -> DocumentStatus {
        self.verifier.status().lists.remove(0)
    }

    /// Waits until this many requests were made, and the response to the last one was processed.
    fn fetched(&self, times: usize) {
        until("a request", || (self.server.heads().len() >= times).then_some(()));
        let now = self.clock.now();
        until("its outcome", || {
            let status = self.status();
            (status.confirmed == Some(now) || status.problem.is_some()).then_some(())
        });
    }

    /// Lets two hours pass, and waits until the list is fetched again.
    fn fetch_again(&self, times: usize) {
        self.clock.pass(2 * HOUR);
        self.verifier.refresh();
        self.fetched(times);
    }
}

#[test]
fn a_fetched_list_verifies_its_addresses_and_refutes_other_addresses() {
    let followed = Followed::start(good());
    followed.fetched(1);
    assert_eq!(followed.range(INSIDE), MethodOutcome::Verified);
    assert_eq!(followed.range(&format!("::ffff:{INSIDE}")), MethodOutcome::Verified);
    assert_eq!(followed.range(OUTSIDE), MISS);
    let status = followed.status();
    assert_eq!((status.origin, status.entries), (Some("fetched"), Some(5)));
    assert_eq!(status.created.as_deref(), Some("2026-11-01T00:00:00"));
    assert!(followed.server.heads()[0].starts_with("GET /list.json HTTP/1.1\r\n"), "{:?}", followed.server.heads());
}

#[test]
fn a_client_verified_within_the_minute_is_checked_again_when_the_evidence_changes() {
    let networks = ["9.9.9.0/24", "8.8.8.0/24", "8.8.9.0/24", "8.8.10.0/24"];
    let followed = Followed::start_with_file(answer("503 Oh", "", ""), &networks);
    followed.fetched(1);
    let recognizer = Recognizer::new(followed.registry.clone(), &RobotsTxt::parse(*b""));
    let agents = [recognizer.identify(b"Playbot/1.0")];
    let on_path = |address: &str, listener: &str| {
        let path = ClaimPath { site: "example.com", listener };
        followed.verifier.identify_unsigned(&agents, address.parse().ok(), path, followed.clock.now())
    };
    let identity = |address: &str| on_path(address, "0.0.0.0:443");
    let verified = Identity::Verified(IdentityMethod::Range);
    let twice = |address: &str| [identity(address), identity(address)];
    assert_eq!((twice(INSIDE), twice(OUTSIDE)), ([verified; 2], [verified; 2]));

    // The address now belongs to a proxy.
    let proxies = |networks: &[&str]| {
        let networks: Vec<_> = networks.iter().map(|network| network.parse().expect(network)).collect();
        followed.verifier.set_trusted_proxies(networks);
    };
    proxies(&["9.9.9.9/32"]);
    assert_eq!((identity(INSIDE), identity(OUTSIDE)), (verified, Identity::Undecided(UndecidedReason::Address)));
    proxies(&[]);
    assert_eq!(twice(OUTSIDE), [verified; 2]);
    // Claims on another path are stored separately.
    assert_eq!(on_path(OUTSIDE, "0.0.0.0:80"), verified);

    // The operator removes the address from the list within the same minute.
    followed.server.answers(good());
    followed.fetch_again(2);
    until("the list", || (followed.status().origin == Some("fetched")).then_some(()));
    followed.clock.go_back(2 * HOUR);
    assert_eq!(identity(INSIDE), verified);
    // The stored claim becomes invalid a moment later, when the evidence version changes.
    until("other evidence", || (identity(OUTSIDE) != verified).then_some(()));

    // In the new registry, the crawler has no list.
    followed.verifier.follow(&only(Crawler::new("Playbot", Category::Search))).expect("a registry");
    assert_eq!(identity(INSIDE), Identity::Unverifiable);
}

#[test]
fn a_304_response_confirms_the_list() {
    let followed = Followed::start(good());
    followed.fetched(1);
    followed.server.answers("HTTP/1.1 304 Not Modified\r\n\r\n");
    followed.fetch_again(2);
    assert!(followed.server.heads()[1].to_lowercase().contains("\r\nif-none-match: \"one\"\r\n"));
    assert_eq!(followed.status().confirmed, Some(followed.clock.now()));
    assert_eq!((followed.range(INSIDE), followed.range(OUTSIDE)), (MethodOutcome::Verified, MISS));
}

#[test]
fn a_304_to_an_unconditional_request_confirms_nothing() {
    let followed = Followed::start_with_file("HTTP/1.1 304 Not Modified\r\n\r\n", &["8.8.8.0/24"]);
    followed.fetched(1);
    let status = followed.status();
    assert_eq!((status.origin, status.confirmed), (Some("file"), None));
    assert_eq!(status.problem.as_deref(), Some("the server answered with 304, but the request was not conditional"));
    assert_eq!((followed.range(INSIDE), followed.range(OUTSIDE)), (MethodOutcome::Verified, STALE));
}

#[test]
fn a_response_without_a_valid_list_keeps_the_previous_list() {
    let shrunken = answer("200 OK", "", &list(&["8.8.8.0/24", "8.8.9.0/24"]));
    let cut_off = good().replace("]}", "").into_bytes();
    let moved = answer("200 OK", "", r#"{"Action needed":"update the location you're fetching from"}"#);
    let huge = answer("200 OK", "", &format!("{}{}", list(&["8.8.8.0/24"]), " ".repeat(10 << 20)));
    let newer = answer("200 OK", "Content-Type: application/jafar+json; version=2.0\r\n", &list(&["9.9.9.0/24"]));
    for (what, wrong, problem) in [
        ("an object without prefixes", moved.into_bytes(), "prefixes"),
        ("cut off", cut_off, "the connection ended"),
        ("cut off within", answer("200 OK", "", &list(&["8.8.8.0/24"]).replace("]}", "")).into_bytes(), "JSON"),
        ("10 MiB", huge.into_bytes(), "the body exceeds the size limit"),
        ("a failing server", answer("503 Oh", "", "").into_bytes(), "503"),
        ("gone", answer("404 Not Found", "", &list(&["9.9.9.0/24"])).into_bytes(), "404"),
        ("another success", answer("203 Other", "", &list(&["9.9.9.0/24"])).into_bytes(), "203"),
        ("a redirect to nowhere", answer("302 Found", "", "").into_bytes(), "redirect"),
        ("less than half", shrunken.into_bytes(), "more than half"),
        ("the whole Internet", answer("200 OK", "", &list(&["0.0.0.0/0"])).into_bytes(), "large part"),
        ("a newer format", newer.into_bytes(), "2.0"),
        ("a page", answer("200 OK", "Content-Type: text/html\r\n", "<!doctype html>").into_bytes(), "list"),
    ] {
        let followed = Followed::start(good());
        followed.fetched(1);
        let confirmed = followed.status().confirmed;
        followed.server.answers(wrong);
        followed.fetch_again(2);
        let status = followed.status();
        assert_eq!((status.confirmed, status.entries), (confirmed, Some(5)), "{what}");
        let said = status.problem.expect(what);
        assert!(said.contains(problem), "{what}: {said}");
        assert_eq!((followed.range(INSIDE), followed.range(OUTSIDE)), (MethodOutcome::Verified, MISS), "{what}");
        // A day later, the list is too old to refute claims.
        followed.clock.pass(25 * HOUR);
        assert_eq!((followed.range(INSIDE), followed.range(OUTSIDE)), (MethodOutcome::Verified, STALE), "{what}");
    }
}

#[test]
fn a_fetched_list_is_used_instead_of_the_operators_list_file() {
    let followed = Followed::start_with_file(good(), &["9.9.9.0/24"]);
    followed.fetched(1);
    let status = followed.status();
    assert_eq!((status.origin, status.problem), (Some("fetched"), None));
    assert_eq!((followed.range(INSIDE), followed.range(OUTSIDE)), (MethodOutcome::Verified, MISS));
}

#[test]
fn a_redirect_to_a_list_is_followed() {
    let target = PlayedHttp::start(good());
    let followed = Followed::start(answer("302 Found", &format!("Location: {}\r\n", target.url), ""));
    followed.fetched(1);
    assert_eq!((followed.range(INSIDE), followed.range(OUTSIDE)), (MethodOutcome::Verified, MISS));
}

#[test]
fn a_response_that_stalls_is_aborted_after_the_time_limit() {
    let fetcher = crate::source::fetch::Fetcher::builder().fetch_within(Duration::from_millis(200));
    let fetcher = fetcher.start().expect("a thread");
    let server = PlayedHttp::start_stalling("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{");
    let registry = registry(|row| Crawler { ranges: vec![server.url.clone()], ..row });
    let verifier = Verifier::builder(&registry).without_names().fetcher(&fetcher).start().expect("a verifier");
    let problem = until("problem", || verifier.status().lists.remove(0).problem);
    assert!(problem.contains("the response did not arrive in time"), "{problem}");
    assert_eq!(verifier.range(playbot(&registry), public(INSIDE), SystemTime::now()), Some(NOT_LOADED));
}

#[test]
fn without_a_network_from_the_start_no_request_is_refuted() {
    let followed = Followed::start(answer("502 Oh", "", ""));
    followed.fetched(1);
    assert_eq!((followed.range(INSIDE), followed.range(OUTSIDE)), (NOT_LOADED, NOT_LOADED));
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("list.json");
    std::fs::write(&copy, list(&["8.8.8.0/24"])).expect("a file");
    let server = PlayedHttp::start(answer("502 Oh", "", ""));
    let registry = registry(|row| Crawler { ranges: vec![server.url.clone()], ..row });
    let builder = Verifier::builder(&registry).without_names().list_file(&server.url, &copy).expect("a list");
    let verifier = builder.start().expect("a verifier");
    let range = |address| verifier.range(playbot(&registry), public(address), SystemTime::now());
    assert_eq!((range(INSIDE), range(OUTSIDE)), (Some(MethodOutcome::Verified), Some(STALE)));
    assert_eq!(verifier.status().lists[0].origin, Some("file"));
    let wrong = folder.path().join("wrong.txt");
    std::fs::write(&wrong, "8.8.8.0/24\n8.8.8.0/99\n").expect("a file");
    let error = Verifier::builder(&registry).list_file(&server.url, &wrong).expect_err("no list").to_string();
    assert!(error.starts_with(&format!("{}:2:", wrong.display())), "{error}");
}

#[test]
fn a_fetched_list_is_available_after_a_restart_without_a_network() {
    let folder = tempfile::tempdir().expect("a folder");
    let followed = Followed::start_with(good(), |builder| builder.saved_in(folder.path()));
    followed.fetched(1);
    let is_saved = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.path().extension().is_some_and(|extension| extension == "json"))
    };
    until("the saved list", || std::fs::read_dir(folder.path()).ok()?.any(is_saved).then_some(()));
    let Followed { server, clock, registry, verifier } = followed;
    drop(verifier);
    server.answers(answer("502 Oh", "", ""));
    clock.pass(HOUR);
    let start = || {
        let builder = Verifier::builder(&registry).clock(clock.read()).without_names().saved_in(folder.path());
        builder.start().expect("a verifier")
    };
    let verifier = start();
    let range = |verifier: &Verifier, address| verifier.range(playbot(&registry), public(address), clock.now());
    assert_eq!(range(&verifier, INSIDE), Some(MethodOutcome::Verified));
    assert_eq!(range(&verifier, OUTSIDE), Some(MISS));
    assert_eq!(verifier.status().lists[0].origin, Some("saved"));
    until("a request with the saved validator", || {
        server.heads().last().filter(|head| head.to_lowercase().contains("if-none-match: \"one\"")).map(drop)
    });
    clock.pass(24 * HOUR);
    assert_eq!(range(&start(), OUTSIDE), Some(STALE));
}

#[test]
fn a_list_that_cannot_be_saved_is_not_reported_as_unavailable() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("evidence");
    // A file takes the place of the folder, so nothing can be saved there.
    std::fs::write(&place, "").expect("a file");
    let followed = Followed::start_with(good(), |builder| builder.saved_in(&place));
    until("a failed save", || followed.status().save_problem);
    let status = followed.verifier.status();
    assert_eq!((&status.lists[0].problem, status.lists[0].origin), (&None, Some("fetched")));
    let [problem] = &status.problems()[..] else { panic!("{:?}", status.problems()) };
    let start = "1 of 1 published list could not be saved for the next start; for example http://127.0.0.1:";
    assert!(problem.starts_with(start), "{problem}");
    // The next fetch saves the list.
    std::fs::remove_file(&place).expect("removed");
    std::fs::create_dir(&place).expect("a folder");
    followed.fetch_again(2);
    until("a saved list", || followed.status().save_problem.is_none().then_some(()));
    assert_eq!(followed.verifier.status().problems(), Vec::<String>::new());
}

#[test]
fn an_older_saved_list_is_not_confirmed_by_a_response_about_a_newer_list() {
    let folder = tempfile::tempdir().expect("a folder");
    let [lists, moved] = ["lists", "moved"].map(|name| folder.path().join(name));
    let followed = Followed::start_with(good(), |builder| builder.saved_in(&lists));
    let is_saved = |path: &std::path::PathBuf| {
        path.extension().is_some_and(|extension| extension == "json") && !path.ends_with("claim-paths.json")
    };
    let files = || std::fs::read_dir(&lists).ok()?.flatten().map(|entry| entry.path()).find(is_saved);
    let saved = until("the saved list", files);
    let before = std::fs::read(&saved).expect("a file");
    // A file takes the place of the folder, so nothing can be saved.
    std::fs::rename(&lists, &moved).expect("moved");
    std::fs::write(&lists, "").expect("a file");
    let newer = list(&["8.8.8.0/24", "8.8.9.0/24", "8.8.10.0/24", "8.8.11.0/24"]);
    followed.server.answers(answer("200 OK", "ETag: \"two\"\r\n", &newer));
    followed.fetch_again(2);
    until("a failed save", || followed.status().save_problem);
    std::fs::remove_file(&lists).expect("removed");
    std::fs::rename(&moved, &lists).expect("moved back");
    followed.server.answers("HTTP/1.1 304 Not Modified\r\n\r\n");
    // The second fetch begins after everything from the first one has been saved.
    followed.fetch_again(3);
    followed.fetch_again(4);
    assert_eq!(followed.status().entries, Some(4));
    assert!(followed.status().save_problem.is_some(), "the newer list is not saved yet");
    assert_eq!(std::fs::read(&saved).expect("a file"), before);
}

#[test]
fn no_request_is_refuted_if_the_clock_is_wrong_by_a_day() {
    let followed = Followed::start(good());
    followed.fetched(1);
    followed.clock.go_back(25 * HOUR);
    assert_eq!((followed.range(INSIDE), followed.range(OUTSIDE)), (MethodOutcome::Verified, STALE));
}

#[test]
fn a_changed_registry_keeps_the_lists_that_it_still_contains() {
    let followed = Followed::start(good());
    followed.fetched(1);
    let other = PlayedHttp::start(good());
    let both = registry(|row| Crawler { ranges: vec![followed.server.url.clone(), other.url.clone()], ..row });
    followed.verifier.follow(&both).expect("the registry");
    until("the other list", || (other.heads().len() == 1).then_some(()));
    assert_eq!((followed.server.heads().len(), followed.verifier.status().lists.len()), (1, 2));
    let wrong = registry(|row| Crawler { ranges: vec!["ftp://play.example/list".into()], ..row });
    let error = followed.verifier.follow(&wrong).expect_err("no list").to_string();
    assert!(error.starts_with(r#"crawler "Playbot", ranges "ftp://play.example/list": "#), "{error}");
    assert_eq!(followed.verifier.status().lists.len(), 2);
}

#[test]
fn lists_whose_urls_differ_only_in_the_query_are_separate_and_the_query_is_not_displayed() {
    let server = PlayedHttp::start(good());
    let url = |query: &str| format!("{}?token={query}", server.url);
    let both = registry(|row| Crawler { ranges: vec![url("a"), url("b")], ..row });
    let copy = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(copy.path(), list(&["8.8.8.0/24"])).expect("written");
    let builder = Verifier::builder(&both).without_names();
    let verifier = builder.list_file(&url("c"), copy.path()).expect("a copy").start().expect("a verifier");
    let requested = |query: &str| server.heads().iter().any(|head| head.contains(&format!("?token={query} ")));
    until("both lists", || (requested("a") && requested("b")).then_some(()));
    let status = verifier.status();
    assert_eq!((status.lists.len(), status.unnamed_lists.len()), (2, 1));
    assert!(!format!("{status:?}").contains("token"), "{status:?}");
    // A new token is used without a restart.
    verifier.follow(&registry(|row| Crawler { ranges: vec![url("d")], ..row })).expect("the registry");
    until("the list with the new token", || requested("d").then_some(()));
}

/// If the network is down, one event reports all lists. A second event reports an unknown list.
#[test]
fn lists_that_cannot_be_fetched_are_reported_once_per_cause() {
    let server = PlayedHttp::start(answer("503 Service Unavailable", "Retry-After: 0\r\n", ""));
    let clock = TestClock::new();
    let urls: Vec<String> = (0..40).map(|number| format!("{}/{number}", server.url)).collect();
    let registry = registry(|row| Crawler { ranges: urls, ..row });
    let copy = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(copy.path(), list(&["8.8.8.0/24"])).expect("written");
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let listened = Arc::clone(&said);
    let verifier = Verifier::builder(&registry)
        .clock(clock.read())
        .without_names()
        .list_file(&format!("{}/x", server.url), copy.path())
        .expect("a copy")
        .on_event(move |event| listened.lock().push(event.to_string()))
        .start()
        .expect("a verifier");
    until("all three", || (said.lock().len() >= 3).then_some(()));
    let first = said.lock().clone();
    for want in [
        "40 of 40 published lists cannot be fetched, so they cannot be used to recognise impostors; for example ",
        "has no effect, because no crawler in the registry has this URL: did you mean ",
        "impostors pass unrecognised: ",
    ] {
        assert_eq!(first.iter().filter(|line| line.contains(want)).count(), 1, "{want}: {first:?}");
    }
    assert_eq!(verifier.status().problems().len(), 3);
    // The end of the problems is reported, and no problem is reported twice.
    server.answers(good());
    until("the lists", || {
        clock.pass(HOUR);
        let status = verifier.status();
        let is_there = status.lists.iter().all(|list| list.confirmed.is_some() && list.problem.is_none());
        is_there.then_some(())
    });
    assert_eq!(verifier.status().problems().len(), 1, "the copy of no list stays: {:?}", verifier.status().problems());
    let over = until("its end", || said.lock().get(3).cloned());
    assert!(over.starts_with("impostors can be recognised again: "), "{over}");
}
