//! Dates as HTTP writes them, of times that may be any: a clock or a file may say 1969, or the year 10000.

use std::time::SystemTime;

/// Seconds from 1970 to the year 10000, for which there is no date of four digits.
const END: u64 = 253_402_300_800;

/// `None` where HTTP has no date for it: before 1970 and after 9999.
pub(super) fn http(time: SystemTime) -> Option<String> {
    let age = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    (age.as_secs() < END).then(|| httpdate::fmt_http_date(time))
}

/// For people.
pub(super) fn shown(time: SystemTime) -> String {
    http(time).unwrap_or_else(|| {
        let is_early = time < SystemTime::UNIX_EPOCH;
        if is_early { "at a time before 1970".to_owned() } else { "at a time after 9999".to_owned() }
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_without_a_date_are_no_panic() {
        let epoch = SystemTime::UNIX_EPOCH;
        assert_eq!(http(epoch).as_deref(), Some("Thu, 01 Jan 1970 00:00:00 GMT"));
        let last = epoch + Duration::from_secs(END - 1);
        assert_eq!(http(last).as_deref(), Some("Fri, 31 Dec 9999 23:59:59 GMT"));
        assert_eq!(http(epoch + Duration::from_secs(END)), None);
        assert_eq!(http(epoch - Duration::from_nanos(1)), None);
        assert_eq!(shown(epoch - Duration::from_secs(86400)), "at a time before 1970");
        assert_eq!(shown(epoch + Duration::from_secs(END)), "at a time after 9999");
    }
}
