//! A request, whatever the format of its line, and when it was made, in seconds since 1970.

use std::borrow::Cow;

/// A request, as a line of a log has it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LoggedRequest<'a> {
    /// The host with its port, where the log has it; empty where the request named none.
    pub(crate) host: Option<Cow<'a, [u8]>>,
    pub(crate) address: Cow<'a, [u8]>,
    /// Seconds since 1970, where the line has a time.
    pub(crate) time: Option<i64>,
    pub(crate) method: Cow<'a, [u8]>,
    pub(crate) target: Cow<'a, [u8]>,
    /// Empty where the log has none or `-`.
    pub(crate) referer: Cow<'a, [u8]>,
    pub(crate) agent: Cow<'a, [u8]>,
}

/// `10/Oct/2000:13:55:36 -0700`
pub(super) fn clf_time(text: &[u8]) -> Option<i64> {
    const MONTHS: [&[u8]; 12] =
        [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
    let day = number(text.get(..2)?)?;
    let month = MONTHS.iter().position(|name| text.get(3..6) == Some(*name))?;
    let year = number(text.get(7..11)?)?;
    let clock = clock(text.get(12..20)?)?;
    let offset = text.get(21..26).and_then(offset).unwrap_or(0);
    Some(days(year, month as i64 + 1, day) * 86_400 + clock - offset)
}

/// `2000-10-10T13:55:36.123+02:00`, also with a blank for the `T`.
pub(super) fn rfc3339(text: &[u8]) -> Option<i64> {
    let (year, month, day) = (number(text.get(..4)?)?, number(text.get(5..7)?)?, number(text.get(8..10)?)?);
    let clock = clock(text.get(11..19)?)?;
    let zone = text[19..].iter().position(|octet| matches!(octet, b'+' | b'-'));
    let offset = zone.and_then(|at| offset(&text[19 + at..])).unwrap_or(0);
    (1..=12).contains(&month).then(|| days(year, month, day) * 86_400 + clock - offset)
}

/// Either form, or seconds as a number.
pub(super) fn any_time(text: &[u8]) -> Option<i64> {
    let seconds = || std::str::from_utf8(text).ok()?.parse::<f64>().ok().map(|seconds| seconds as i64);
    rfc3339(text).or_else(|| clf_time(text)).or_else(seconds)
}

/// `13:55:36`
fn clock(text: &[u8]) -> Option<i64> {
    let [h1, h2, b':', m1, m2, b':', s1, s2] = text else { return None };
    Some(number(&[*h1, *h2])? * 3600 + number(&[*m1, *m2])? * 60 + number(&[*s1, *s2])?)
}

/// `+0200` or `+02:00`, in seconds.
fn offset(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text {
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        _ => return None,
    };
    let minutes = match digits {
        [_, _, b':', rest @ ..] | [_, _, rest @ ..] => number(rest.get(..2)?)?,
        _ => return None,
    };
    Some(sign * (number(&digits[..2])? * 3600 + minutes * 60))
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |sum: i64, digit| digit.is_ascii_digit().then(|| sum * 10 + i64::from(digit - b'0')))
}

/// Days from 1970-01-01 in the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // A year that begins in March has its leap day last.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}
