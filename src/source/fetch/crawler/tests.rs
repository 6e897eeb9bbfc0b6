//! Tests every state change of a crawler's cache. The name of each test describes the expected
//! behaviour, and a table in `docs/src/explanation/fetching.md` refers to the tests.

use http::header::{CACHE_CONTROL, CONTENT_ENCODING, ETAG, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::*;
use crate::source::fetch::outcome::{FetchError, FetchErrorKind};

const HOUR: Duration = Duration::from_secs(3600);
const SECOND: Duration = Duration::from_secs(1);

/// A cache, with a clock that only the test sets.
struct World {
    cache: CrawlerCache,
    now: SystemTime,
}

impl World {
    fn new() -> Self {
        Self { cache: CrawlerCache::new("https://example.com").unwrap(), now: SystemTime::UNIX_EPOCH + 20_000 * DAY }
    }

    fn after(&mut self, time: Duration) -> &mut Self {
        self.now += time;
        self
    }

    fn answered(&mut self, status: u16, fields: &[(HeaderName, &'static str)], body: impl AsRef<[u8]>) -> &mut Self {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(name, HeaderValue::from_static(value));
        }
        let status = StatusCode::from_u16(status).expect("a status");
        self.cache.record(FetchOutcome::of(status, &headers, body, self.now), self.now);
        self
    }

    fn status(&mut self, status: u16) -> &mut Self {
        self.answered(status, &[], "")
    }

    fn found(&mut self, body: &str) -> &mut Self {
        self.answered(200, &[], body)
    }

    fn failed(&mut self, kind: FetchErrorKind) -> &mut Self {
        self.cache.record(FetchOutcome::Failed(FetchError::new(kind)), self.now);
        self
    }

    /// Fetches once a day, and fails each time.
    fn failed_for(&mut self, days: u32) -> &mut Self {
        for _ in 0..days {
            self.after(DAY).failed(FetchErrorKind::Connect);
        }
        self
    }

    fn allows(&self) -> bool {
        self.cache.allows("OurBot", "/x", self.now)
    }

    /// Returns what the crawler may fetch: `unknown`, `allow`, `disallow`, or the content.
    fn reads(&self) -> String {
        match self.cache.permission(self.now) {
            CrawlerReading::Unknown => "unknown".into(),
            CrawlerReading::AllowAll => "allow".into(),
            CrawlerReading::DisallowAll => "disallow".into(),
            CrawlerReading::Rules(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        }
    }

    fn is_due(&self) -> bool {
        self.cache.is_due(self.now)
    }

    fn due_in(&self) -> Duration {
        self.cache.next_fetch().and_then(|next| next.duration_since(self.now).ok()).unwrap_or_default()
    }
}

#[test]
fn nothing_is_known_before_the_first_fetch() {
    let world = World::new();
    assert_eq!(world.reads(), "unknown");
    assert!(world.is_due());
    assert_eq!(world.cache.next_fetch(), None);
}

#[test]
fn a_2xx_response_is_parsed_regardless_of_its_status_code_and_body() {
    for status in [200, 201, 203, 204, 206, 299] {
        assert_eq!(World::new().answered(status, &[], "# x").reads(), "# x", "{status}");
    }
    // An HTML page is parsed like any file, and redirects in it are not followed.
    let page = "<meta http-equiv=refresh content='0;url=/other'>";
    assert_eq!(World::new().found(page).reads(), page);
}

#[test]
fn too_many_or_broken_redirects_count_as_404() {
    let mut world = World::new();
    world.cache.record(FetchOutcome::Redirected, world.now);
    assert_eq!(world.reads(), "allow");
    assert_eq!(world.due_in(), DAY);
}

#[test]
fn a_redirect_that_was_not_followed_disallows_all() {
    for status in [301, 302, 303, 307, 308] {
        let mut world = World::new();
        assert_eq!(world.status(status).reads(), "disallow", "{status}");
        assert_eq!(world.due_in(), RETRY_FIRST);
    }
}

#[test]
fn a_crawler_cache_allows_only_urls_of_its_own_site() {
    let mut world = World::new();
    world.found("User-agent: *\nDisallow: /x\n");
    for (url, allowed) in [
        ("/page", true),
        ("/go?to=https://other.example/", true),
        ("https://example.com/page", true),
        ("HTTPS://EXAMPLE.com:443/page", true),
        ("https://example.com/x", false),
        ("http://example.com/page", false),
        ("https://example.com:8443/page", false),
        ("https://other.example/page", false),
        ("https://other.example/robots.txt", false),
        ("ftp://example.com/page", false),
        ("https:///page", false),
        ("//other.example/page", false),
        ("//other.example/robots.txt", false),
        ("/\\other.example/page", false),
        ("\\\\other.example/page", false),
        ("/\t/other.example/page", false),
        (" //other.example/page", false),
        ("https:/other.example/page", false),
        ("https:other.example/page", false),
        ("https:\\\\other.example/page", false),
        ("http:example.com/page", false),
        ("mailto:a@example.com", false),
        ("localhost:3000/page", false),
        ("//example.com/page", true),
        ("//example.com/x", false),
        ("https:/example.com/page", true),
        ("https:example.com/x", false),
        ("page?time=12:30", true),
    ] {
        assert_eq!(world.cache.allows("OurBot", url, world.now), allowed, "{url}");
    }
    for site in ["example.com", "/robots.txt", "", "mailto:a@example.com", "https://:80/"] {
        let error = CrawlerCache::new(site).unwrap_err().to_string();
        assert!(error.contains("is not the URL of a site: write one such as"), "{error}");
    }
}

#[test]
fn a_url_is_allowed_by_the_rules_for_the_agent_in_the_cached_copy() {
    let mut world = World::new();
    world.found("User-agent: Our2Bot\nDisallow: /our/\n\nUser-agent: *\nDisallow: /\n");
    for (agent, url, allowed) in [
        ("OurBot", "https://example.com/x", false),
        ("OurBot", "/robots.txt", true),
        ("OtherBot/1.0 (+https://example.com/bot)", "/x", false),
        ("OurBot", "/x", false),
    ] {
        assert_eq!(world.cache.allows(agent, url, world.now), allowed, "{agent} {url}");
    }
    // The rules of a new copy are compiled. After a 304, the compiled rules are kept.
    world.found("User-agent: Our2Bot\nDisallow: /our/\n");
    for _ in 0..2 {
        for (agent, url, allowed) in [
            ("OurBot", "https://example.com/x", true),
            ("Our2Bot", "https://example.com/%6fur/x", false),
            ("Our2Bot", "/x", true),
            ("OurBot", "/our/x", true),
        ] {
            assert_eq!(world.cache.allows(agent, url, world.now), allowed, "{agent} {url}");
        }
        world.status(304);
    }
}

#[test]
fn without_a_copy_everything_or_only_robots_txt_is_allowed() {
    for (mut world, allowed) in [(World::new(), false), (World::new(), true)] {
        if allowed {
            world.status(404);
        }
        for _ in 0..2 {
            assert_eq!(world.cache.allows("OurBot", "/x", world.now), allowed);
            assert!(world.cache.allows("OurBot", "https://example.com/robots.txt", world.now));
            if !allowed {
                world.status(503);
            }
        }
    }
}

#[test]
fn client_errors_including_401_and_403_allow_all() {
    for status in (400..500).filter(|status| *status != 429) {
        assert_eq!(World::new().status(status).reads(), "allow", "{status}");
    }
}

#[test]
fn status_429_disallows_all_like_a_server_error() {
    assert_eq!(World::new().status(429).reads(), "disallow");
}

#[test]
fn server_errors_disallow_all() {
    for status in 500..600 {
        assert_eq!(World::new().status(status).reads(), "disallow", "{status}");
    }
}

#[test]
fn every_kind_of_fetch_failure_disallows_all() {
    for kind in FetchErrorKind::ALL {
        assert_eq!(World::new().failed(*kind).reads(), "disallow", "{kind:?}");
    }
}

#[test]
fn a_body_that_is_still_compressed_is_a_failure() {
    let reads = |status, fields: &[_], body: &[u8]| World::new().answered(status, fields, body).reads();
    let gzip = b"\x1F\x8B\x08\0";
    for (status, coding) in [(200, "gzip"), (200, "identity, br"), (206, "zstd")] {
        assert_eq!(reads(status, &[(CONTENT_ENCODING, coding)], b"# a"), "disallow", "{coding}");
    }
    assert_eq!(reads(200, &[], gzip), "disallow", "Content-Encoding is missing");
    for coding in ["", "Identity"] {
        assert_eq!(reads(200, &[(CONTENT_ENCODING, coding)], b"# a"), "# a", "{coding}");
    }
    assert_eq!(reads(404, &[(CONTENT_ENCODING, "gzip")], gzip), "allow", "the body of a 404 has no effect");
}

#[test]
fn a_failed_fetch_is_retried_with_doubling_pauses_until_another_status() {
    let mut world = World::new();
    world.status(500);
    let mut pauses = Vec::new();
    for _ in 0..8 {
        pauses.push(world.due_in().as_secs());
        assert!(!world.is_due());
        let pause = world.due_in();
        world.after(pause);
        assert!(world.is_due());
        world.failed(FetchErrorKind::Timeout);
        assert_eq!(world.reads(), "disallow");
    }
    assert_eq!(pauses, [60, 120, 240, 480, 960, 1920, 3600, 3600]);
    assert_eq!(world.status(404).reads(), "allow");
    assert_eq!(world.due_in(), DAY);
    assert_eq!(world.cache.failing_since(), None);
}

#[test]
fn retry_after_is_respected_up_to_a_day() {
    let mut world = World::new();
    assert_eq!(world.answered(503, &[(RETRY_AFTER, "7200")], "").due_in(), 2 * HOUR);
    assert_eq!(world.answered(503, &[(RETRY_AFTER, "999999")], "").due_in(), DAY);
    assert_eq!(world.answered(503, &[(RETRY_AFTER, "0")], "").due_in(), 4 * RETRY_FIRST);
}

#[test]
fn a_response_is_used_for_24_hours() {
    let mut world = World::new();
    world.found("# a");
    assert_eq!(world.due_in(), DAY);
    assert!(!world.after(DAY - SECOND).is_due());
    assert!(world.after(SECOND).is_due());
    assert_eq!(world.reads(), "# a", "what is due is not yet wrong");
}

#[test]
fn max_age_shortens_the_24_hours_and_never_lengthens_them() {
    for (value, seconds) in [("max-age=60", 60), ("max-age=31536000", 86_400), ("max-age=60, s-maxage=5", 60)] {
        for status in [200, 404] {
            let mut world = World::new();
            world.answered(status, &[(CACHE_CONTROL, value)], "# a");
            assert_eq!(world.due_in(), Duration::from_secs(seconds), "{status} {value}");
        }
    }
}

#[test]
fn a_response_with_no_cache_is_due_again_before_every_use() {
    let mut world = World::new();
    world.answered(200, &[(CACHE_CONTROL, "no-cache")], "# a");
    assert!(world.is_due());
    assert_eq!(world.reads(), "# a", "until then it is what is known");
}

#[test]
fn a_failure_while_the_copy_is_fresh_changes_nothing() {
    let mut world = World::new();
    world.found("# a").after(HOUR).status(503);
    assert_eq!(world.reads(), "# a");
    assert_eq!(world.after(23 * HOUR).reads(), "disallow", "then it is stale, and cannot be fetched anew");
}

#[test]
fn a_stale_copy_that_cannot_be_fetched_again_disallows_all() {
    let mut world = World::new();
    assert_eq!(world.found("# a").after(DAY).status(500).reads(), "disallow");
    assert_eq!(world.found("# b").reads(), "# b");
}

#[test]
fn after_30_days_of_failure_the_last_copy_is_used() {
    let mut world = World::new();
    world.found("# a").after(DAY).status(500);
    assert_eq!(world.failed_for(30).reads(), "disallow");
    assert_eq!(world.after(SECOND).reads(), "# a");
    assert_eq!(world.failed(FetchErrorKind::Connect).reads(), "# a");
}

#[test]
fn after_30_days_of_failure_without_a_copy_all_is_allowed() {
    let mut world = World::new();
    world.status(500);
    assert_eq!(world.failed_for(30).reads(), "disallow");
    assert_eq!(world.after(SECOND).reads(), "allow");
}

/// Without attempts, nothing shows that the server has failed all the time.
#[test]
fn days_without_a_fetch_attempt_do_not_count_as_days_of_failure() {
    let mut world = World::new();
    world.status(500);
    assert_eq!(world.after(31 * DAY).reads(), "disallow", "one failure");
    assert_eq!(world.failed(FetchErrorKind::Timeout).reads(), "disallow", "two failures");
    assert_eq!(world.cache.failing_since(), Some(world.now));
    assert_eq!(world.failed_for(31).reads(), "allow");
    assert_eq!(world.after(2 * DAY).reads(), "disallow", "no attempt for two days");
    // A pause that the server requests is part of the series.
    let mut world = World::new();
    for _ in 0..32 {
        world.after(DAY).answered(503, &[(RETRY_AFTER, "86400")], "");
    }
    assert_eq!(world.reads(), "allow");
}

#[test]
fn failures_of_all_kinds_count_together_until_a_success() {
    let mut world = World::new();
    world.status(500).failed_for(20).status(429).failed_for(10).after(SECOND).failed(FetchErrorKind::Name);
    assert_eq!(world.reads(), "allow");
    world.found("# a").after(DAY).status(500).failed_for(20);
    assert_eq!(world.reads(), "disallow");
}

#[test]
fn a_client_error_removes_the_copy() {
    let mut world = World::new();
    world.found("# a").after(DAY).status(404).after(DAY).status(500).failed_for(31);
    assert_eq!(world.reads(), "allow");
}

#[test]
fn a_response_with_no_store_is_not_used_after_a_later_failure() {
    let mut world = World::new();
    world.answered(200, &[(CACHE_CONTROL, "no-store")], "# a");
    assert_eq!(world.reads(), "# a");
    assert_eq!(world.status(500).failed_for(31).reads(), "allow");
}

#[test]
fn a_304_response_makes_the_copy_fresh_again() {
    let mut world = World::new();
    world.answered(200, &[(ETAG, "\"1\"")], "# a");
    assert_eq!(
        world.cache.validators().and_then(|validators| validators.etag.as_ref()).map(HeaderValue::as_bytes),
        Some(&b"\"1\""[..])
    );
    world.after(DAY).status(500).after(HOUR).answered(304, &[(CACHE_CONTROL, "max-age=60")], "");
    assert_eq!(world.reads(), "# a");
    assert_eq!(world.due_in(), 60 * SECOND);
    assert!(world.cache.validators().is_some());
}

#[test]
fn a_304_response_without_a_copy_disallows_all() {
    assert_eq!(World::new().status(304).reads(), "disallow");
    let mut world = World::new();
    assert_eq!(world.status(404).after(DAY).status(304).reads(), "disallow");
}

#[test]
fn a_stale_copy_is_used_during_failures_if_goes_by_last_copy_is_set() {
    let mut world = World::new();
    world.cache.goes_by_last_copy = true;
    assert_eq!(world.status(500).reads(), "disallow", "there is none yet");
    assert_eq!(world.found("# a").after(DAY).status(500).reads(), "# a");
}

#[test]
fn after_the_clock_was_set_back_the_file_is_fetched_again() {
    for fails in [false, true] {
        let mut world = World::new();
        world.found("# a");
        if fails {
            world.after(DAY).status(500);
        }
        world.now -= HOUR;
        assert!(!world.is_due(), "small adjustments have no effect");
        assert!(world.allows());
        world.now -= 10_000 * DAY;
        assert!(world.is_due());
        assert!(!world.allows(), "the age of the copy is unknown");
        assert_eq!(world.status(500).reads(), "disallow");
        assert_eq!(world.failed_for(31).reads(), "# a", "the 30 days do not begin in the future");
        assert!(world.found("# b").allows());
    }
}

#[test]
fn each_fetch_result_of_the_specification_gives_the_expected_access_or_lifetime() {
    let spec: Value =
        serde_json::from_str(include_str!("../../../../tests/cases/spec.json")).expect("the case data is JSON");
    let rows = spec["fetch_result"].as_array().expect("rows");
    assert_eq!(rows.len(), 6);
    for row in rows {
        let (status, result) = (row["status"].as_str().expect("a status"), row["result"].as_str().expect("a result"));
        let mut world = World::new();
        match status {
            "2xx" => {
                assert!(result.contains("parse the body"));
                assert_eq!(world.found("# a").reads(), "# a");
            }
            "3xx" => {
                assert!(result.contains("then treat as 404: full allow"));
                world.cache.record(FetchOutcome::Redirected, world.now);
                assert_eq!(world.reads(), "allow");
            }
            "4xx" => {
                assert!(result.contains("full allow, 401 and 403 included (429 is a server error"));
                for status in [400, 401, 403, 404, 410, 418, 451] {
                    assert_eq!(World::new().status(status).reads(), "allow");
                }
                assert_eq!(world.status(429).reads(), "disallow");
            }
            "5xx" | "network or DNS failure, timeout, bad response, reset, chunking error" => {
                assert!(result.contains("as 5xx") || result.contains("full disallow, retried"));
                let problem = |world: &mut World| match status {
                    "5xx" => drop(world.status(500)),
                    _ => drop(world.failed(FetchErrorKind::Broken)),
                };
                problem(&mut world);
                assert_eq!(world.reads(), "disallow");
                assert_eq!(world.failed_for(31).reads(), "allow", "and with none full allow");
                world.found("# a").after(DAY);
                problem(&mut world);
                assert_eq!(world.reads(), "disallow");
                assert_eq!(world.failed_for(31).reads(), "# a", "the last cached copy");
            }
            "cache" => {
                // The row is from Google, which lets `max-age` also lengthen the time. RFC 9309,
                // section 2.4, does not.
                assert!(result.starts_with("24 h; Cache-Control max-age lengthens or shortens it"));
                assert_eq!(world.found("# a").due_in(), DAY);
            }
            other => panic!("no test for the row {other:?}"),
        }
    }
}

/// `allows` must not use an old copy forever, even if the crawler never fetches the file again.
#[test]
fn a_response_that_was_not_fetched_again_for_25_hours_allows_only_robots_txt() {
    const OPEN: &str = "User-agent: *\nDisallow: /private/\n";
    for status in [200, 404] {
        let mut world = World::new();
        world.answered(status, &[], OPEN);
        assert!(world.after(DAY).allows(), "{status}: still fresh");
        assert!(world.after(HOUR).allows(), "{status}: another thread may be fetching");
        assert!(!world.after(SECOND).allows(), "{status}");
        assert!(world.cache.allows("OurBot", "/robots.txt", world.now));
        assert!(world.answered(status, &[], OPEN).allows(), "{status}: fetched again");
    }
}
