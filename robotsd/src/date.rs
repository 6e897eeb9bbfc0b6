//! Formats and parses times. The dependencies of this module panic for times before 1970 or after
//! the year 9999. If a wrong clock returns an unsupported time, this module uses the nearest
//! supported time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The last second of the year 9999.
const MAX_TIME: Duration = Duration::from_secs(253_402_300_799);

/// Formats a time as `2026-11-21T08:18:41Z`.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(nearest_supported(time)).to_string()
}

/// Formats a time as `2026-11-21T08:18:41.123Z`.
pub(crate) fn rfc3339_millis(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(nearest_supported(time)).to_string()
}

/// Formats a time as `Sat, 21 Nov 2026 06:25:38 GMT`.
pub(crate) fn http_date(time: SystemTime) -> String {
    httpdate::fmt_http_date(nearest_supported(time))
}

/// Returns the seconds since 1970; 0 for earlier times.
pub(crate) fn seconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// Parses a day or time such as `2026-11-21` or `2026-11-21T08:18:41Z` into seconds since 1970.
pub(crate) fn parse_time(text: &str) -> Option<i64> {
    let midnight = if text.len() == "2026-11-21".len() { "T00:00:00Z" } else { "" };
    humantime::parse_rfc3339_weak(&format!("{text}{midnight}")).ok().map(seconds)
}

/// Reports whether responses may have a `Date` field. A server whose clock is not set must not send
/// this field (RFC 9110, section 6.6.1), and hyper panics for times that it does not support.
pub(crate) fn is_clock_set() -> bool {
    is_supported(SystemTime::now())
}

pub(crate) fn is_supported(time: SystemTime) -> bool {
    nearest_supported(time) == time
}

/// Returns the nearest time that the formats of this module support.
pub(crate) fn nearest_supported(time: SystemTime) -> SystemTime {
    time.clamp(UNIX_EPOCH, UNIX_EPOCH + MAX_TIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_outside_the_supported_range_are_shown_as_the_nearest_supported_time() {
        let day = Duration::from_secs(86400);
        for early in [UNIX_EPOCH, UNIX_EPOCH - Duration::from_nanos(1), UNIX_EPOCH - 20_000 * day] {
            assert_eq!(rfc3339(early), "1970-01-01T00:00:00Z");
            assert_eq!(rfc3339_millis(early), "1970-01-01T00:00:00.000Z");
            assert_eq!(http_date(early), "Thu, 01 Jan 1970 00:00:00 GMT");
            assert_eq!(is_supported(early), early == UNIX_EPOCH);
        }
        for late in [UNIX_EPOCH + MAX_TIME, UNIX_EPOCH + MAX_TIME + day * 1_000_000] {
            assert_eq!(rfc3339(late), "9999-12-31T23:59:59Z");
            assert_eq!(http_date(late), "Fri, 31 Dec 9999 23:59:59 GMT");
            assert_eq!(is_supported(late), late == UNIX_EPOCH + MAX_TIME);
        }
    }
}
