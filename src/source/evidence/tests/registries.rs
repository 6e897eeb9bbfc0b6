//! Tests of a registry that is fetched over HTTPS, and of a part that is appended to a robots.txt.

use std::path::Path;

use super::played_http::{PlayedHttp, answer};
use super::*;
use crate::agent::RegistryRow;
use crate::live::VersionHash;
use crate::rules::Fragment;
use crate::source::fetch::{FetchUrl, Fetcher};
use crate::source::follow::{DocumentSettings, FollowBuilder, FollowedDocument};

/// Parses a registry in a format for these tests. A line contains the name of a crawler to add to
/// the built-in registry or, after a `-`, of a crawler to remove.
fn read(text: &str) -> Result<Registry, String> {
    let row = |line: &str| match line.strip_prefix('-') {
        Some(name) => RegistryRow::Remove(name.to_owned()),
        None => Crawler::new(line, Category::Seo).into(),
    };
    Registry::builtin().extended_with(text.lines().map(row)).map_err(|error| format!("list: {error}"))
}

fn published(lines: &str) -> String {
    answer("200 OK", "ETag: \"1\"\r\nCache-Control: max-age=60\r\n", lines)
}

struct Followed {
    server: PlayedHttp,
    clock: TestClock,
    registry: FollowedDocument<Registry>,
    events: Arc<Mutex<Vec<String>>>,
}

impl Followed {
    fn start(answer: impl Into<Vec<u8>>) -> Self {
        Self::start_with(answer, |builder| builder)
    }

    fn start_in(answer: impl Into<Vec<u8>>, folder: &Path) -> Self {
        Self::start_with(answer, |builder| builder.saved_in(folder))
    }

    fn start_with(
        answer: impl Into<Vec<u8>>,
        change: impl FnOnce(FollowBuilder<DocumentSettings<Registry>>) -> FollowBuilder<DocumentSettings<Registry>>,
    ) -> Self {
        let (server, pem) = PlayedHttp::start_tls(answer);
        let fetcher = Fetcher::builder().trust_only(pem.as_bytes()).expect("a certificate").start().expect("a thread");
        let (clock, events) = (TestClock::new(), Arc::<Mutex<Vec<String>>>::default());
        let said = events.clone();
        let builder = FollowedDocument::<Registry>::builder(server.url.parse().expect("a URL"), read)
            .clock(clock.read())
            .fetcher(&fetcher)
            .on_event(move |event| said.lock().push(event.to_string()));
        let (registry, problem) = change(builder).start().expect("a registry");
        assert_eq!(problem, None);
        Self { server, clock, registry, events }
    }

    fn knows(&self, name: &str) -> bool {
        self.registry.current().is_some_and(|registry| registry.crawler(name).is_some())
    }

    /// Waits for this number of fetches.
    fn fetched(&self, times: usize) {
        until("a fetch", || (self.server.heads().len() >= times).then_some(()));
    }

    fn events(&self) -> Vec<String> {
        self.events.lock().clone()
    }

    fn event(&self, number: usize) -> String {
        until("an event", || self.events().get(number).cloned())
    }
}

fn hash(text: &str) -> VersionHash {
    VersionHash::of(text.as_bytes())
}

#[test]
fn a_published_registry_is_fetched_with_validators_and_at_most_hourly() {
    let followed = Followed::start(published("HouseBot"));
    until("a registry", || followed.knows("HouseBot").then_some(()));
    assert_eq!(followed.event(0), format!("version {} is used now", hash("HouseBot").short()));
    // `max-age` is only one minute, but a registry is fetched at most hourly.
    followed.clock.pass(HOUR - Duration::from_secs(60));
    followed.registry.accept(Vec::<VersionHash>::new());
    followed.server.answers("HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n");
    followed.clock.pass(Duration::from_secs(120));
    followed.fetched(2);
    let heads = followed.server.heads();
    assert!(!heads[0].to_lowercase().contains("if-none-match") && heads[1].contains("\"1\""), "{heads:?}");
    until("a confirmation", || {
        let confirmed = followed.registry.status().confirmed?;
        (confirmed >= followed.clock.now() - Duration::from_secs(60)).then_some(())
    });
    assert!(followed.knows("HouseBot") && followed.registry.status().problem.is_none());
    assert_eq!((followed.server.heads().len(), followed.events().len()), (2, 1));
}

#[test]
fn an_unusable_registry_keeps_the_previous_one_and_is_reported_once() {
    for wrong in [
        answer("503 Oh", "", ""),
        answer("200 OK", "Content-Type: text/html\r\n", "HouseBot"),
        answer("200 OK", "", "<html>"),
        answer("200 OK", "", "-NeverThere"),
        answer("200 OK", "", &"#".repeat((1 << 20) + 1)),
        answer("200 OK", "", "Firefox"),
        answer("302 Found", "Location: http://localhost:1/\r\n", ""),
        "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nOtherBot".to_owned(),
    ] {
        let followed = Followed::start(published("HouseBot"));
        followed.event(0);
        followed.server.answers(wrong.clone());
        followed.clock.pass(HOUR * 2);
        let said = followed.event(1);
        assert!(said.ends_with("; the previous version stays in use"), "{said}");
        assert!(followed.knows("HouseBot") && !followed.knows("OtherBot"), "{wrong:.80}");
        assert!(followed.registry.status().problem.is_some());
        followed.clock.pass(HOUR * 2);
        followed.fetched(3);
        followed.server.answers(published("OtherBot"));
        // This is repeated, because the outcome of the previous fetch may not have been applied
        // yet.
        until("the next one", || {
            followed.clock.pass(HOUR);
            followed.knows("OtherBot").then_some(())
        });
        let events = followed.events();
        assert_eq!(events.iter().filter(|event| **event == said).count(), 1, "{events:?}");
    }
}

#[test]
fn a_registry_without_a_search_engine_is_held_until_its_hash_is_accepted() {
    let followed = Followed::start(published("HouseBot"));
    followed.event(0);
    let without = "OtherBot\n-Googlebot";
    followed.server.answers(published(without));
    followed.clock.pass(HOUR * 2);
    let short = hash(without).short();
    let gone = "the search engine \"Googlebot\" is missing from the new registry";
    let said = format!("version {short} is held until accepted: {gone}; the previous version stays in use");
    assert_eq!(followed.event(1), said);
    assert_eq!(followed.registry.status().waiting, Some((hash(without), gone.to_owned())));
    assert!(followed.knows("Googlebot") && followed.knows("HouseBot") && !followed.knows("OtherBot"));
    // Accepting another hash has no effect.
    followed.registry.accept([hash("another")]);
    followed.clock.pass(HOUR * 2);
    followed.fetched(3);
    assert!(followed.knows("Googlebot"));
    // An accepted version is fetched without waiting for an hour.
    followed.registry.accept([hash(without)]);
    until("the accepted one", || followed.knows("OtherBot").then_some(()));
    assert!(!followed.knows("Googlebot"));
    until("the status", || followed.registry.status().waiting.is_none().then_some(()));
}

#[test]
fn the_first_fetched_registry_is_compared_with_the_builtin_one() {
    let followed = Followed::start(published("-bingbot"));
    assert!(followed.event(0).contains("the search engine \"bingbot\" is missing from the new registry"));
    assert!(followed.registry.current().is_none() && followed.registry.status().waiting.is_some());
    let accepted = Followed::start_with(published("-bingbot"), |builder| builder.accept([hash("-bingbot")]));
    until("a registry", || accepted.registry.current());
}

#[test]
fn the_last_accepted_registry_is_used_again_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = Followed::start_in(published("-bingbot"), folder.path());
    first.event(0);
    first.registry.accept([hash("-bingbot")]);
    first.event(1);
    let url: FetchUrl = first.server.url.parse().expect("a URL");
    let saved = FollowedDocument::<Registry>::builder(url.clone(), read).saved_in(folder.path()).saved();
    let saved = saved.expect("a registry").expect("what was saved");
    assert!(saved.crawler("bingbot").is_none());
    drop(first);

    // Without a network, the saved copy is used immediately, and its acceptance is still valid.
    let fetcher = Fetcher::new().expect("a thread");
    let builder = FollowedDocument::<Registry>::builder(url.clone(), read).saved_in(folder.path()).fetcher(&fetcher);
    let (registry, problem) = builder.start().expect("a registry");
    assert!(problem.is_none() && registry.current().is_some_and(|registry| registry.crawler("bingbot").is_none()));
    assert_eq!(registry.status().origin, Some("saved"));

    // A saved file may be damaged.
    let file = std::fs::read_dir(folder.path()).expect("a folder").next().expect("a file").expect("a file").path();
    std::fs::write(&file, "{").expect("written");
    let builder = FollowedDocument::<Registry>::builder(url, read).saved_in(folder.path()).fetcher(&fetcher);
    let (registry, problem) = builder.start().expect("a registry");
    assert!(registry.current().is_none() && problem.is_some_and(|problem| problem.to_string().contains(".json")));
}

#[test]
fn a_registry_is_not_fetched_without_tls() {
    let url = "http://localhost:1/registry.toml".parse().expect("a URL");
    let error = FollowedDocument::<Registry>::builder(url, read).start().expect_err("in the clear");
    assert!(error.to_string().ends_with("write the https URL of the registry"), "{error}");
}

#[test]
fn a_fragment_keeps_its_fetcher_alive_and_is_updated() {
    let (server, pem) = PlayedHttp::start_tls(published("User-agent: HouseBot\nDisallow: /\n"));
    let fetcher = Fetcher::builder().trust_only(pem.as_bytes()).expect("a certificate").start().expect("a thread");
    let clock = TestClock::new();
    let builder = FollowedDocument::<Fragment>::builder(server.url.parse().expect("a URL"), "House");
    let (fragment, problem) = builder.clock(clock.read()).fetcher(&fetcher).start().expect("a fragment");
    drop(fetcher);
    assert_eq!(problem, None);
    let groups = || fragment.current().map_or(0, |fragment| fragment.robots.groups().count());
    until("a fragment", || (groups() == 1).then_some(()));
    server.answers(published("User-agent: HouseBot\nDisallow: /\n\nUser-agent: OtherBot\nDisallow: /\n"));
    until("the next one", || {
        clock.pass(HOUR);
        (groups() == 2).then_some(())
    });
    assert_eq!(fragment.status().waiting, None);
}
