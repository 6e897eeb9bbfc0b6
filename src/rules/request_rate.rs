//! The values of request-rate and visit-time lines: how many pages in how long, and at what time of the day.

use std::fmt;
use std::time::Duration;

/// The value of a request-rate line: `1/10m 1300-1659`, one page in ten minutes, from 13:00 to 16:59 GMT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRate {
    pages: u32,
    period: Duration,
    window: Option<TimeWindow>,
}

/// A part of the day, GMT: the value of a visit-time line, `0600-0845`. One that ends before it begins spans midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeWindow {
    /// Minutes since midnight.
    from: u16,
    to: u16,
}

impl RequestRate {
    /// Reads pages, a slash and a time, in seconds or with one of `s`, `m` and `h`, and perhaps a part of the day, in
    /// brackets or without.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (rate, window) = value.split_at(memchr::memchr3(b' ', b'\t', b'[', value).unwrap_or(value.len()));
        let window = match window.trim_ascii() {
            [] => None,
            [b'[', inside @ .., b']'] => Some(TimeWindow::parse(inside.trim_ascii())?),
            bare => Some(TimeWindow::parse(bare)?),
        };
        let (pages, time) = rate.split_at(memchr::memchr(b'/', rate)?);
        let (time, unit) = match &time[1..] {
            [time @ .., b's' | b'S'] => (time, 1),
            [time @ .., b'm' | b'M'] => (time, 60),
            [time @ .., b'h' | b'H'] => (time, 3600),
            time => (time, 1),
        };
        let (pages, time) = (number(pages)?, number(time)?);
        let period = Duration::from_secs(u64::from(time) * unit);
        (pages > 0 && time > 0).then_some(Self { pages, period, window })
    }

    /// Pages that may be fetched in one [`period`](Self::period), at least 1.
    #[must_use]
    pub const fn pages(&self) -> u32 {
        self.pages
    }

    /// In how long; never zero.
    #[must_use]
    pub const fn period(&self) -> Duration {
        self.period
    }

    /// At what time of the day; `None` for the whole of it.
    #[must_use]
    pub const fn window(&self) -> Option<TimeWindow> {
        self.window
    }
}

impl TimeWindow {
    /// Reads two times of the day as four digits each, with a hyphen between them.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (from, to) = value.split_at(memchr::memchr(b'-', value)?);
        Some(Self { from: time_of_day(from)?, to: time_of_day(&to[1..])? })
    }

    /// Minutes from midnight GMT to its start, below 1,440.
    #[must_use]
    pub const fn start(&self) -> u16 {
        self.from
    }

    /// Minutes from midnight GMT to its end, below 1,440.
    #[must_use]
    pub const fn end(&self) -> u16 {
        self.to
    }
}

/// As it is written in a robots.txt.
impl fmt::Display for TimeWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [from, to] = [self.from, self.to].map(|minutes| (minutes / 60, minutes % 60));
        write!(f, "{:02}{:02}-{:02}{:02}", from.0, from.1, to.0, to.1)
    }
}

fn time_of_day(text: &[u8]) -> Option<u16> {
    let digits = number(text.trim_ascii()).filter(|_| text.trim_ascii().len() == 4)?;
    let (hours, minutes) = (digits / 100, digits % 100);
    // 24:00 is how some write the end of a day.
    let total = hours * 60 + minutes;
    (minutes < 60 && total <= 24 * 60).then_some((total % (24 * 60)) as u16)
}

fn number(digits: &[u8]) -> Option<u32> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_has_pages_a_time_and_perhaps_a_part_of_the_day() {
        for (value, want) in [
            ("1/5", Some((1, 5, None))),
            ("1/10m", Some((1, 600, None))),
            ("2/1h", Some((2, 3600, None))),
            ("30/1M 1300-1659", Some((30, 60, Some("1300-1659")))),
            ("1/10s [1300-1659]", Some((1, 10, Some("1300-1659")))),
            ("1/10[ 2200-0600 ]", Some((1, 10, Some("2200-0600")))),
            ("1/4294967295h", Some((1, 4_294_967_295 * 3600, None))),
            ("1", None),
            ("1/", None),
            ("/5", None),
            ("0/5", None),
            ("1/0", None),
            ("1/5d", None),
            ("1.5/5", None),
            ("1/5 soon", None),
            ("1/5 [1300-1659", None),
            ("99999999999/1", None),
            ("", None),
        ] {
            let found = RequestRate::parse(value.as_bytes());
            let found = found.map(|rate| (rate.pages(), rate.period().as_secs(), rate.window()));
            let want = want.map(|(pages, seconds, window)| {
                (pages, seconds, window.and_then(|window: &str| TimeWindow::parse(window.as_bytes())))
            });
            assert_eq!(found, want, "{value}");
        }
    }

    #[test]
    fn a_part_of_the_day_is_two_times() {
        for (value, want) in [
            ("0600-0845", Some((360, 525, "0600-0845"))),
            ("0000 - 2400", Some((0, 0, "0000-0000"))),
            ("600-845", None),
            ("0660-0845", None),
            ("2401-0845", None),
            ("06:00-08:45", None),
            ("0600", None),
            ("", None),
        ] {
            let found = TimeWindow::parse(value.as_bytes());
            let found = found.map(|window| (window.start(), window.end(), window.to_string()));
            assert_eq!(found, want.map(|(from, to, text)| (from, to, text.to_owned())), "{value}");
        }
    }
}
