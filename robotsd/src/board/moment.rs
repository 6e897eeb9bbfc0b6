//! Time as the board counts it: whole seconds since 1970, hours and days of UTC.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::date;

/// Seconds since 1970.
pub(crate) type Second = u64;

pub(crate) const MINUTE: Second = 60;
pub(crate) const HOUR: Second = 60 * MINUTE;
pub(crate) const DAY: Second = 24 * HOUR;

/// A clock before 1970 counts as 1970.
pub(crate) fn seconds(time: SystemTime) -> Second {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The first second of the hour of a moment.
pub(crate) const fn hour_of(at: Second) -> Second {
    at - at % HOUR
}

/// The first second of the day of a moment.
pub(crate) const fn day_of(at: Second) -> Second {
    at - at % DAY
}

/// As `2026-11-21T08:18:41Z`.
pub(crate) fn written(at: Second) -> String {
    date::rfc3339(UNIX_EPOCH.checked_add(Duration::from_secs(at)).unwrap_or(UNIX_EPOCH))
}

/// As `2026-11-21`, the day of a moment.
pub(crate) fn date_of(at: Second) -> String {
    let mut text = written(at);
    text.truncate("2026-11-21".len());
    text
}

/// The first second of a day written so.
pub(crate) fn day_named(date: &str) -> Option<Second> {
    let is_date = date.len() == 10 && date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let time = humantime::parse_rfc3339(&format!("{date}T00:00:00Z")).ok().filter(|_| is_date)?;
    Some(seconds(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_read_as_it_is_written() {
        let at = 1_795_336_721;
        assert_eq!((written(at), date_of(at)), ("2026-11-22T08:38:41Z".to_owned(), "2026-11-22".to_owned()));
        assert_eq!(day_named("2026-11-22"), Some(day_of(at)));
        for wrong in ["", "2026-13-01", "2026-11-22T", "now.jsonl.", "+026-11-22"] {
            assert_eq!(day_named(wrong), None, "{wrong}");
        }
    }
}
