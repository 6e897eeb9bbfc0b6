//! Tests every state change of a site that fetches its robots.txt. The name of each test describes
//! the expected behaviour, and `docs/src/explanation/fetching.md` refers to the tests.

use http::header::{CACHE_CONTROL, ETAG, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::*;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// A state machine, with a clock that only the test sets. Pauses are as short as possible.
struct World {
    state: SiteFreshness,
    now: SystemTime,
}

impl World {
    fn new(live: Option<VersionHash>) -> Self {
        let now = SystemTime::UNIX_EPOCH + 20_000 * DAY;
        let mut state = SiteFreshness::new(Schedule::default(), now);
        state.observe(live);
        Self { state, now }
    }

    /// Returns a world with a robots.txt that was fetched and published.
    fn good() -> Self {
        let mut world = Self::new(None);
        assert_eq!(world.answered(200, &[(ETAG, "\"1\"")]), "offer");
        world.record_published();
        world
    }

    fn after(&mut self, time: Duration) -> &mut Self {
        self.now += time;
        self
    }

    fn record_published(&mut self) -> &mut Self {
        let mut headers = HeaderMap::new();
        headers.insert(ETAG, HeaderValue::from_static("\"1\""));
        let interval = self.state.schedule.interval(Default::default());
        self.state.record_published(Validators::of(&headers), interval, self.now);
        self
    }

    fn answered(&mut self, status: u16, fields: &[(HeaderName, &'static str)]) -> &'static str {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(name, HeaderValue::from_static(value));
        }
        let status = StatusCode::from_u16(status).expect("a status");
        self.takes(FetchOutcome::of(status, &headers, *b"# x", self.now))
    }

    fn status(&mut self, status: u16) -> &'static str {
        self.answered(status, &[])
    }

    fn failed(&mut self) -> &'static str {
        self.takes(FetchOutcome::Failed(FetchError::new(FetchErrorKind::Timeout)))
    }

    fn takes(&mut self, answer: FetchOutcome) -> &'static str {
        match self.state.take(answer, self.now, 0) {
            Step::Offer { .. } => "offer",
            Step::Confirm => "confirm",
            Step::EndEnforcement(_) => "open",
            Step::Hold(..) => "hold",
            Step::Keep(..) => "keep",
        }
    }

    fn due_in(&self) -> Duration {
        self.state.status().next_fetch.duration_since(self.now).expect("in the future")
    }
}

#[test]
fn a_successful_response_is_offered_and_fetched_again_in_an_hour() {
    let world = World::good();
    assert_eq!(world.due_in(), HOUR);
    assert_eq!(world.state.status().confirmed, Some(world.now));
    assert_eq!(world.state.status().failing_since, None);
}

#[test]
fn a_rejected_file_is_fetched_again_soon_without_validators() {
    let mut world = World::good();
    assert_eq!(world.after(HOUR).status(200), "offer");
    world.state.record_rejected();
    assert!(world.state.validators.is_empty());
    assert!(world.due_in() < Duration::from_secs(6));
    assert_eq!(world.state.status().failing_since, Some(world.now));
}

#[test]
fn a_304_response_confirms_the_live_version() {
    let mut world = World::good();
    world.after(HOUR);
    assert_eq!(world.answered(304, &[(CACHE_CONTROL, "max-age=120")]), "confirm");
    assert_eq!(world.due_in(), Duration::from_secs(120));
    assert_eq!(world.state.status().confirmed, Some(world.now));
}

#[test]
fn a_304_response_to_an_unconditional_request_is_a_failure() {
    assert_eq!(World::new(None).status(304), "keep");
    let mut world = World::good();
    world.state.record_rejected();
    assert_eq!(world.status(304), "keep");
}

#[test]
fn before_the_first_success_a_failure_leaves_nothing_known() {
    let mut world = World::new(None);
    for status in [500, 502, 503, 429, 408, 425] {
        assert_eq!(world.status(status), "keep", "{status}");
    }
    assert_eq!(world.failed(), "keep");
    assert_eq!(world.state.status().confirmed, None);
}

#[test]
fn before_the_first_success_a_missing_file_means_no_rules_at_once() {
    for status in [404, 410, 401, 403, 400, 451] {
        let mut world = World::new(None);
        assert_eq!(world.status(status), "open", "{status}");
        assert_eq!(world.due_in(), HOUR);
    }
}

#[test]
fn failures_of_any_duration_keep_the_last_good_version() {
    let mut world = World::good();
    let confirmed = world.state.status().confirmed;
    for round in 0..400 {
        world.after(DAY);
        let step = if round % 2 == 0 { world.status(500) } else { world.failed() };
        assert_eq!(step, "keep");
    }
    assert_eq!(world.state.status().confirmed, confirmed, "its age is known");
    assert_eq!(world.state.status().failures, 400);
    assert!(world.due_in() <= Duration::from_secs(900));
}

#[test]
fn too_many_or_broken_redirects_keep_the_last_good_version() {
    let mut world = World::good();
    assert_eq!(world.takes(FetchOutcome::Redirected), "keep");
    assert_eq!(World::new(None).takes(FetchOutcome::Redirected), "keep");
}

#[test]
fn a_206_response_keeps_the_last_good_version() {
    assert_eq!(World::good().status(206), "keep");
}

#[test]
fn a_version_whose_file_is_missing_is_held_for_24_hours_and_then_removed() {
    for status in [404, 410, 401, 403] {
        let mut world = World::good();
        let missed = world.after(HOUR).now;
        assert_eq!(world.status(status), "hold", "{status}");
        assert_eq!(world.state.status().held_until, Some(missed + DAY));
        assert_eq!(world.after(DAY - Duration::from_secs(1)).status(status), "hold");
        assert_eq!(world.due_in(), Duration::from_secs(1), "it is asked once more when the time is up");
        assert_eq!(world.after(Duration::from_secs(1)).status(status), "open");
        assert_eq!(world.state.status().held_until, None);
        assert_eq!(world.after(HOUR).status(status), "open");
        assert_eq!(world.failed(), "keep", "which problem later on does not change");
    }
}

#[test]
fn a_version_from_before_a_restart_is_also_held_for_24_hours() {
    let mut world = World::new(Some(VersionHash::of(b"")));
    assert_eq!(world.status(404), "hold");
    assert_eq!(world.failed(), "keep");
    assert_eq!(world.after(DAY).status(404), "open");
}

#[test]
fn a_file_that_returns_and_disappears_again_is_held_for_another_24_hours() {
    let mut world = World::good();
    assert_eq!(world.status(404), "hold");
    assert_eq!(world.after(23 * HOUR).status(200), "offer");
    world.record_published();
    assert_eq!(world.after(2 * HOUR).status(404), "hold");
    assert_eq!(world.after(23 * HOUR).status(404), "hold");
}

#[test]
fn a_file_that_appears_after_a_404_is_offered() {
    let mut world = World::new(None);
    assert_eq!(world.status(404), "open");
    assert_eq!(world.after(HOUR).status(200), "offer");
    world.record_published();
    assert_eq!(world.status(404), "hold");
}

#[test]
fn failures_are_retried_with_growing_pauses_and_retry_after_is_respected() {
    let mut world = World::good();
    let pauses: Vec<_> = (0..10)
        .map(|_| {
            world.status(500);
            world.due_in().as_secs_f64()
        })
        .collect();
    assert_eq!(pauses, [2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 450.0, 450.0]);
    world.answered(503, &[(RETRY_AFTER, "600")]);
    assert_eq!(world.due_in(), Duration::from_secs(600));
}

#[test]
fn a_clock_that_jumps_back_keeps_the_held_version() {
    let mut world = World::good();
    world.status(404);
    world.now -= 10_000 * DAY;
    assert_eq!(world.status(404), "hold");
    assert_eq!(world.failed(), "keep");
}

#[test]
fn a_version_that_was_not_published_by_a_fetch_is_also_held() {
    let mut world = World::new(None);
    assert_eq!(world.status(200), "offer");
    world.state.record_rejected();
    world.state.observe(Some(VersionHash::of(b"")));
    assert_eq!(world.status(404), "hold");
}
