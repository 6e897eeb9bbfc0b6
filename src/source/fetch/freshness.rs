//! Determines how long a response may be used without a new fetch (RFC 9111). Also contains the
//! [`Schedule`] of fetches: intervals, and randomised delays after failures. A robots.txt needs
//! only four directives, so no crate with a whole HTTP cache is used.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::{AGE, CACHE_CONTROL};

/// Maximum duration in a header field, in seconds. Larger values are reduced to this maximum (RFC
/// 9111, section 1.2.2).
const MAX_SECONDS: u64 = 1 << 31;

/// How long a response may be used, according to `Cache-Control` and `Age`.
///
/// With `no-cache` or `no-store`, the file must be fetched again before every use. If a directive
/// is repeated, its first value applies. An invalid number counts as 0, so the response is stale
/// (RFC 9111, section 4.2.1). `Expires` is ignored, because RFC 9309 mentions only `Cache-Control`,
/// and applications often send an `Expires` date in the past.
///
/// ```
/// use std::time::Duration;
/// use http::{HeaderMap, HeaderValue, header::CACHE_CONTROL};
/// use tower_robots::internals::Freshness;
///
/// let mut headers = HeaderMap::new();
/// headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=600, s-maxage=60"));
/// let freshness = Freshness::of(&headers);
/// assert_eq!(freshness.private(), Some(Duration::from_secs(600)));
/// assert_eq!(freshness.shared(), Some(Duration::from_secs(60)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freshness {
    max_age: Option<Duration>,
    shared_max_age: Option<Duration>,
    is_unstorable: bool,
    is_unusable: bool,
    age: Duration,
}

impl Freshness {
    /// Reads the header fields of a response.
    pub fn of(headers: &HeaderMap) -> Self {
        let mut freshness = Self::default();
        for line in headers.get_all(CACHE_CONTROL) {
            for directive in directives(line.as_bytes()) {
                freshness.add(directive);
            }
        }
        let age = headers.get(AGE).and_then(|age| seconds(age.as_bytes().trim_ascii()));
        freshness.age = age.unwrap_or_default();
        freshness
    }

    /// Returns how long a private cache, such as a crawler's, may use the response from now on;
    /// `None` if the header fields set no limit.
    pub fn private(&self) -> Option<Duration> {
        self.rest(self.max_age)
    }

    /// Returns how long a shared cache may use the response from now on. `s-maxage` takes
    /// precedence over `max-age`.
    pub fn shared(&self) -> Option<Duration> {
        self.rest(self.shared_max_age.or(self.max_age))
    }

    pub(super) const fn is_storable(&self) -> bool {
        !self.is_unstorable
    }

    fn rest(&self, lifetime: Option<Duration>) -> Option<Duration> {
        if self.is_unstorable || self.is_unusable {
            return Some(Duration::ZERO);
        }
        lifetime.map(|lifetime| lifetime.saturating_sub(self.age))
    }

    fn add(&mut self, directive: &[u8]) {
        let (name, value) = match memchr::memchr(b'=', directive) {
            Some(at) => (directive[..at].trim_ascii(), Some(directive[at + 1..].trim_ascii())),
            None => (directive.trim_ascii(), None),
        };
        // The value may be a token or a quoted string (RFC 9111, section 5.2).
        let number = || {
            let value = value.unwrap_or_default();
            let bare = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
            seconds(bare).unwrap_or_default()
        };
        if name.eq_ignore_ascii_case(b"max-age") {
            self.max_age.get_or_insert_with(number);
        } else if name.eq_ignore_ascii_case(b"s-maxage") {
            self.shared_max_age.get_or_insert_with(number);
        } else if name.eq_ignore_ascii_case(b"no-store") {
            self.is_unstorable = true;
        } else if name.eq_ignore_ascii_case(b"no-cache") && value.is_none() {
            // A `no-cache` with field names is ignored, because it applies only to these fields
            // (section 5.2.2.4).
            self.is_unusable = true;
        }
    }
}

pub(super) fn seconds(text: &[u8]) -> Option<Duration> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?;
    Some(Duration::from_secs(text.parse().map_or(MAX_SECONDS, |seconds: u64| seconds.min(MAX_SECONDS))))
}

/// Splits a comma-separated list. Commas in quotes are not separators.
fn directives(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let parts = move |byte: &u8| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b',' => return !is_quoted,
            _ => {}
        }
        false
    };
    list.split(parts).map(<[u8]>::trim_ascii)
}

/// Returns the pause after a number of consecutive failures: `first` after one failure, doubled for
/// each further failure, but at most `most`.
pub(super) fn backoff_pause(failures: u32, first: Duration, most: Duration) -> Duration {
    first.saturating_mul(2u32.saturating_pow(failures.saturating_sub(1))).min(most)
}

/// Returns a random duration between half of a pause and the whole pause, so that clients that
/// failed at the same time do not all retry at the same time.
fn jittered(pause: Duration, roll: u32) -> Duration {
    let half = pause / 2;
    half.saturating_add(half.mul_f64(f64::from(roll) / f64::from(u32::MAX))).min(pause)
}

/// Returns `now` plus a pause. The pause is limited to a hundred years, to avoid an overflow.
pub(in crate::source) fn later(now: SystemTime, pause: Duration) -> SystemTime {
    let century = Duration::from_secs(100 * 365 * 24 * 3600);
    now.checked_add(pause.min(century)).unwrap_or(now)
}

/// The schedule for fetching a site's robots.txt. Also determines how long the last version is
/// enforced after the server has stopped providing a robots.txt.
///
/// ```
/// use std::time::Duration;
/// use tower_robots::internals::Schedule;
///
/// let (every, hold) = (Duration::from_secs(300), Duration::from_secs(3600));
/// let often = Schedule { every, hold, ..Schedule::default() };
/// # let _ = often;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// Fetch interval if the response has no `Cache-Control`. Default: one hour.
    pub every: Duration,
    /// Minimum fetch interval, also used for `no-cache` and `no-store`. The interval that
    /// `Cache-Control` requests is `s-maxage` (or `max-age` if there is no `s-maxage`), minus
    /// `Age`. Default: one minute.
    pub least: Duration,
    /// Maximum fetch interval, even if `Cache-Control` requests a longer interval. Default: 24
    /// hours.
    pub most: Duration,
    /// Pause after the first failure. The pause doubles with each further failure. Each pause is
    /// reduced by a random amount of up to half of the pause. Default: five seconds.
    pub retry_first: Duration,
    /// Maximum pause after failures. If the server sends `Retry-After`, the pause may be up to four
    /// times this maximum. Default: 15 minutes.
    pub retry_most: Duration,
    /// How long a robots.txt is still enforced after the server begins to respond with 404 or
    /// another 4xx. Default: 24 hours.
    pub hold: Duration,
}

impl Schedule {
    pub(in crate::source) fn interval(&self, freshness: Freshness) -> Duration {
        let wanted = freshness.shared().unwrap_or(self.every);
        wanted.clamp(self.least.min(self.most), self.most).max(FLOOR)
    }

    pub(in crate::source) fn pause(&self, failures: u32, retry_after: Option<Duration>, roll: u32) -> Duration {
        let pause = jittered(backoff_pause(failures, self.retry_first, self.retry_most), roll);
        let asked_for = retry_after.unwrap_or_default().min(self.retry_most.saturating_mul(4));
        pause.max(asked_for).max(FLOOR)
    }
}

/// Minimum pause between fetches, regardless of the settings.
const FLOOR: Duration = Duration::from_millis(10);

impl Default for Schedule {
    fn default() -> Self {
        Self {
            every: Duration::from_secs(3600),
            least: Duration::from_secs(60),
            most: Duration::from_secs(24 * 3600),
            retry_first: Duration::from_secs(5),
            retry_most: Duration::from_secs(15 * 60),
            hold: Duration::from_secs(24 * 3600),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::header::CACHE_CONTROL;
    use http::{HeaderMap, HeaderValue};

    use super::*;

    fn of(lines: &[&'static str], age: Option<&'static str>) -> Freshness {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(CACHE_CONTROL, HeaderValue::from_static(line));
        }
        if let Some(age) = age {
            headers.insert(AGE, HeaderValue::from_static(age));
        }
        Freshness::of(&headers)
    }

    fn private(line: &'static str) -> Option<u64> {
        of(&[line], None).private().map(|rest| rest.as_secs())
    }

    #[test]
    fn max_age_is_found_anywhere_in_cache_control() {
        assert_eq!(private("max-age=60"), Some(60));
        assert_eq!(private("public,MAX-AGE=\"60\""), Some(60));
        assert_eq!(private("ext=\"a, max-age=1\\\", x\", max-age=60"), Some(60));
        assert_eq!(private("public"), None);
        assert_eq!(of(&["public", "max-age=7"], None).private(), Some(Duration::from_secs(7)));
        assert_eq!(Freshness::default().private(), None);
    }

    #[test]
    fn rfc_9111_4_2_1_the_first_max_age_counts_and_an_invalid_one_is_stale() {
        assert_eq!(private("max-age=60, max-age=5"), Some(60));
        assert_eq!(private("max-age=soon"), Some(0));
        assert_eq!(private("max-age=-1"), Some(0));
        assert_eq!(private("max-age"), Some(0));
        assert_eq!(private("max-age=99999999999999999999999"), Some(MAX_SECONDS));
    }

    #[test]
    fn rfc_9111_5_2_2_10_s_maxage_is_for_shared_caches() {
        let freshness = of(&["s-maxage=10, max-age=60"], None);
        assert_eq!(freshness.shared(), Some(Duration::from_secs(10)));
        assert_eq!(freshness.private(), Some(Duration::from_secs(60)));
    }

    #[test]
    fn rfc_9111_4_2_3_age_is_subtracted_from_the_lifetime() {
        assert_eq!(of(&["max-age=60"], Some("50")).private(), Some(Duration::from_secs(10)));
        assert_eq!(of(&["max-age=60"], Some("70")).private(), Some(Duration::ZERO));
        assert_eq!(of(&["max-age=60"], Some("old")).private(), Some(Duration::from_secs(60)));
    }

    #[test]
    fn rfc_9111_5_2_2_no_cache_and_no_store_set_the_lifetime_to_zero() {
        assert_eq!(private("no-cache, max-age=60"), Some(0));
        assert_eq!(private("no-store"), Some(0));
        assert_eq!(private("no-cache=\"set-cookie\", max-age=60"), Some(60));
        assert!(!of(&["no-store"], None).is_storable());
        assert!(of(&["no-cache"], None).is_storable());
    }

    #[test]
    fn unusual_cache_control_values_do_not_cause_a_panic() {
        for line in ["", ",", ",,,=,", "=", "\"", "\\", "max-age=\"", "max-age=\"\"", "\u{7f}"] {
            let mut headers = HeaderMap::new();
            if let Ok(line) = HeaderValue::from_bytes(line.as_bytes()) {
                headers.insert(CACHE_CONTROL, line);
                let _ = Freshness::of(&headers);
            }
        }
    }

    #[test]
    fn adding_a_very_long_pause_to_a_time_does_not_overflow() {
        let now = SystemTime::now();
        assert!(later(now, Duration::MAX) > now + Duration::from_secs(1 << 31));
        assert_eq!(later(now, Duration::from_secs(5)), now + Duration::from_secs(5));
    }

    #[test]
    fn retry_pauses_double_up_to_a_maximum() {
        let (first, most) = (Duration::from_secs(5), Duration::from_secs(60));
        let pauses: Vec<_> = (1..=6).map(|failures| backoff_pause(failures, first, most).as_secs()).collect();
        assert_eq!(pauses, [5, 10, 20, 40, 60, 60]);
        assert_eq!(backoff_pause(u32::MAX, first, most), most);
        assert_eq!(backoff_pause(u32::MAX, Duration::MAX, Duration::MAX), Duration::MAX);
    }

    #[test]
    fn jitter_shortens_a_pause_by_at_most_half() {
        let pause = Duration::from_secs(10);
        assert_eq!(jittered(pause, 0), pause / 2);
        assert_eq!(jittered(pause, u32::MAX), pause);
        assert!((pause / 2..pause).contains(&jittered(pause, u32::MAX / 3)));
    }

    fn interval(schedule: &Schedule, cache_control: &'static str) -> u64 {
        let mut headers = HeaderMap::new();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache_control));
        schedule.interval(Freshness::of(&headers)).as_secs()
    }

    #[test]
    fn cache_control_sets_the_interval_within_bounds() {
        let schedule = Schedule::default();
        assert_eq!(interval(&schedule, ""), 3600);
        assert_eq!(interval(&schedule, "max-age=600"), 600);
        assert_eq!(interval(&schedule, "max-age=600, s-maxage=120"), 120);
        assert_eq!(interval(&schedule, "max-age=1"), 60);
        assert_eq!(interval(&schedule, "no-store"), 60);
        assert_eq!(interval(&schedule, "no-cache, max-age=600"), 60);
        assert_eq!(interval(&schedule, "max-age=31536000"), 86_400);
    }

    #[test]
    fn retry_after_is_honoured_within_bounds() {
        let schedule = Schedule::default();
        let pause = |seconds| schedule.pause(1, Some(Duration::from_secs(seconds)), 0).as_secs_f64();
        assert_eq!(pause(0), 2.5);
        assert_eq!(pause(120), 120.0);
        assert_eq!(pause(1 << 31), 3600.0);
        assert_eq!(schedule.pause(1, None, u32::MAX), Duration::from_secs(5));
        assert_eq!(schedule.pause(99, None, u32::MAX), Duration::from_secs(900));
    }

    #[test]
    fn extreme_schedule_settings_never_cause_a_busy_loop_or_a_panic() {
        let zero = Duration::ZERO;
        let schedule =
            Schedule { every: zero, least: zero, most: zero, retry_first: zero, retry_most: zero, hold: zero };
        assert_eq!(schedule.interval(Freshness::default()), FLOOR);
        assert_eq!(schedule.pause(1, None, 0), FLOOR);
        let crossed = Schedule { least: Duration::MAX, most: zero, ..Schedule::default() };
        assert_eq!(crossed.interval(Freshness::default()), FLOOR);
        let huge = Schedule { retry_first: Duration::MAX, retry_most: Duration::MAX, ..Schedule::default() };
        assert_eq!(huge.pause(9, Some(Duration::MAX), u32::MAX), Duration::MAX);
    }
}
