//! Types of config values that have a special notation, such as durations and sizes. Also declares
//! the ranges of values, and the messages about values that are out of range.

use std::fmt::{self, Display};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Serialize, Serializer};
use toml::Spanned;
use toml::de::DeValue;

use super::tables::{plain_values, whole_number};
use super::{Faults, Kind, Placed};
use crate::render::mask_password;
use crate::store::StoreUrl;

/// Maximum duration: one leap year.
const MAX_DURATION: Duration = Duration::from_secs(366 * 24 * 3600);

/// Reports whether a name matches a pattern. In the pattern, `*` matches any characters.
pub(crate) fn matches_pattern(pattern: &str, name: &str) -> bool {
    let Some((first, others)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let (middle, last) = others.rsplit_once('*').unwrap_or(("", others));
    for part in middle.split('*') {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// A duration, written `"1h"`, `"400ms"`, `"2m 30s"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, derive_more::Display, derive_more::From, derive_more::Into)]
#[display("\"{}\"", humantime::format_duration(self.0))]
pub(crate) struct Span(pub(crate) Duration);

/// A number of bytes, written `65536` or `"64KiB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, derive_more::From, derive_more::Into)]
pub(crate) struct Size(pub(crate) usize);

impl Span {
    pub(crate) const NONE: Self = Self(Duration::ZERO);

    pub(crate) const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    pub(crate) const fn days(days: u64) -> Self {
        Self::seconds(days * 24 * 3600)
    }

    fn of(value: &DeValue<'_>) -> Result<Option<Self>, String> {
        match value {
            DeValue::String(text) => Self::parse(text).map(Some),
            DeValue::Integer(number) if number.as_str().starts_with('-') => {
                Err(format!("{number} is not a duration: write one such as \"10s\""))
            }
            DeValue::Integer(number) => Err(without_unit(number.as_str())),
            DeValue::Float(number) => Err(format!("{number} is not a duration: write one such as \"1500ms\"")),
            _ => Ok(None),
        }
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match humantime::parse_duration(text) {
            Ok(span) if span <= MAX_DURATION => Ok(Self(span)),
            Ok(_) => Err(format!("{text:?} is longer than a year: write a shorter duration")),
            Err(_) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => Err(without_unit(text)),
            Err(_) => Err(format!("{text:?} is not a duration: write one such as \"10s\" or \"1h 30m\"")),
        }
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_duration(self.0))
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.in_units() {
            Some((number, unit)) => serializer.collect_str(&format_args!("{number}{unit}")),
            None => serializer.serialize_u64(self.0 as u64),
        }
    }
}

fn without_unit(number: &str) -> String {
    format!(
        "{number} has no unit: write \"{number}s\" for seconds, \"{number}ms\" for milliseconds, \"{number}m\" for \
         minutes, or \"{number}h\" for hours"
    )
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        let wrong = format!("{text:?} is not an address to listen on");
        let stripped = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        let stripped =
            stripped.map(|rest| rest.trim_end_matches('/')).filter(|rest| rest.parse::<SocketAddr>().is_ok());
        let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
        if let Some(address) = stripped {
            return format!("{wrong}: write the address without a scheme, as {address:?}");
        }
        if text.parse::<std::net::IpAddr>().is_ok() {
            let address = if text.contains(':') { format!("[{text}]") } else { text.to_owned() };
            return format!("{wrong}: write a port as well, such as \"{address}:8080\"");
        }
        match (host, port.parse::<u16>()) {
            ("" | "*", Ok(port)) => format!("{wrong}: {}", port_alone(port)),
            ("localhost", Ok(port)) => format!("{wrong}: write \"127.0.0.1:{port}\", because names are not resolved"),
            _ => format!("{wrong}: write one such as \"127.0.0.1:8080\" or \"[::1]:8080\""),
        }
    })
}

fn port_alone(port: u16) -> String {
    format!("write \"127.0.0.1:{port}\" for this machine only, or \"0.0.0.0:{port}\" for every network")
}

plain_values! {
    Span: Kind::Time, None, Self::of;
    Size: Kind::Size, None, Self::of;
    SocketAddr: Kind::Text, None, address_of;
    StoreText: Kind::Text, None, |value| Ok(value.as_str().map(|text| Self(text.to_owned())));
}

fn address_of(value: &DeValue<'_>) -> Result<Option<SocketAddr>, String> {
    match value {
        DeValue::String(text) => parse_address(text).map(Some),
        DeValue::Integer(number) => Err(match number.as_str().parse() {
            Ok(port) => format!("{port} is a port without an address: {right}", right = port_alone(port)),
            Err(_) => format!("{number} is not an address to listen on: write one such as \"127.0.0.1:8080\""),
        }),
        _ => Ok(None),
    }
}

/// The URL of a store. If it contains a password, the password is left out when the config is
/// printed.
#[derive(derive_more::Debug)]
#[debug("StoreText")]
pub(crate) struct StoreText(pub(crate) String);

impl Serialize for StoreText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // An invalid URL is not printed at all, because any part of it may be a password.
        let url = self.0.split_once("://").filter(|_| StoreUrl::new(&self.0).is_ok());
        let shown = url.map(|(scheme, rest)| mask_password(scheme, rest));
        serializer.serialize_str(&shown.unwrap_or_default())
    }
}

const UNITS: [(&str, usize); 7] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

impl Size {
    fn of(value: &DeValue<'_>) -> Result<Option<Self>, String> {
        let DeValue::String(text) = value else { return Ok(whole_number(value).map(Self)) };
        let wrong = || {
            let meant = Self::meant(text).unwrap_or_else(|| "one such as 65536 or \"64KiB\"".to_owned());
            format!("{text:?} is not a size: write {meant}")
        };
        Self::parse(text).map(Some).ok_or_else(wrong)
    }

    fn parse(text: &str) -> Option<Self> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let (_, unit) = UNITS.into_iter().find(|(name, _)| *name == unit.trim_start())?;
        number.parse::<usize>().ok()?.checked_mul(unit).map(Self)
    }

    /// Returns the size that was probably meant by an invalid string such as `64K`, `64kib` or
    /// `64`.
    fn meant(text: &str) -> Option<String> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let unit = unit.trim();
        if number.is_empty() || unit.is_empty() {
            return (!number.is_empty()).then(|| format!("{number}, without quotes, for bytes, or \"{number}KiB\""));
        }
        let same = UNITS.iter().rev().find(|(name, _)| name.eq_ignore_ascii_case(unit));
        let begun = || UNITS.iter().find(|(name, _)| name.len() == 3 && name[..1].eq_ignore_ascii_case(unit));
        let (unit, _) = same.or_else(begun)?;
        Some(format!("\"{number}{unit}\""))
    }

    /// Returns the size as a whole number of the largest possible binary unit. `None` if the size
    /// is not a multiple of 1 KiB.
    fn in_units(self) -> Option<(usize, &'static str)> {
        let whole = |(_, unit): &(&str, usize)| *unit > 1 && self.0 >= *unit && self.0.is_multiple_of(*unit);
        UNITS.into_iter().take(4).rev().find(whole).map(|(name, unit)| (self.0 / unit, name))
    }
}

impl Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.in_units() {
            Some((number, unit)) => write!(f, "\"{number}{unit}\""),
            None => write!(f, "{}", self.0),
        }
    }
}

pub(crate) struct Bound<T> {
    range: RangeInclusive<T>,
    /// Message about a value out of range, with `{}` for the value and `{key}` for its key; `None`
    /// for the default message.
    message: Option<String>,
}

pub(crate) const fn within<T>(range: RangeInclusive<T>) -> Bound<T> {
    Bound { range, message: None }
}

pub(crate) fn bound<T>(range: RangeInclusive<T>, message: impl Into<String>) -> Bound<T> {
    Bound { range, message: Some(message.into()) }
}

/// Returns a range of durations that excludes zero.
pub(crate) fn nonzero_time(message: &str) -> Bound<Span> {
    bound(Span(Duration::from_nanos(1))..=Span(MAX_DURATION), message)
}

impl<T: PartialOrd + Display> Bound<T> {
    pub(crate) fn check<'v>(&self, key: &str, value: impl Into<Option<&'v Spanned<T>>>, faults: &mut Faults)
    where
        T: 'v,
    {
        let Some(written) = value.into().filter(|value| !self.range.contains(value.get_ref())) else { return };
        let (value, Self { range, message }) = (written.get_ref(), self);
        let usual = || {
            format!(
                "{key:?} is {value}: write a value from {least} to {most}",
                least = range.start(),
                most = range.end()
            )
        };
        let message = message
            .as_ref()
            .map_or_else(usual, |message| message.replace("{key}", key).replace("{}", &value.to_string()));
        faults.push(written.fault(message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_and_decimal_units() {
        let cases = [("64KiB", 65_536), ("64 KiB", 65_536), ("1MiB", 1 << 20), ("2GB", 2_000_000_000), ("10B", 10)];
        for (text, want) in cases {
            assert_eq!(Size::parse(text).map(|size| size.0), Some(want), "{text}");
        }
        for text in "64 64K 64kib KiB -1B 1.5MiB 99999999999999999999B 18446744073709551615GiB".split(' ') {
            assert_eq!(Size::parse(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_are_displayed_in_the_largest_exact_binary_unit() {
        for (bytes, want) in [(65_536, "\"64KiB\""), (1 << 20, "\"1MiB\""), (1025, "1025"), (10, "10"), (0, "0")] {
            assert_eq!(Size(bytes).to_string(), want);
        }
    }
}
