//! Lines of access logs as requests.

mod clf;
mod json;
mod logged_request;
mod time;

use clap::ValueEnum;

pub(super) use self::logged_request::LoggedRequest;

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ReplayLogFormat {
    /// The format that most of the first lines have
    Auto,
    /// Common log format, which lacks the User-Agent
    Common,
    /// Combined log format of nginx and Apache
    Combined,
    /// Combined with the virtual host in front
    VhostCombined,
    /// A JSON object a line: nginx, Caddy, Traefik, Envoy
    Json,
}

impl ReplayLogFormat {
    /// Reads a line; `None` where it is no request in this format.
    pub(super) fn read<'a>(self, line: &'a [u8]) -> Option<LoggedRequest<'a>> {
        match self {
            Self::Auto => Self::of(line).read(line),
            Self::Common => clf::read(line, clf::Host::Absent, clf::Quotes::Absent),
            Self::Combined => clf::read(line, clf::Host::Absent, clf::Quotes::Present),
            Self::VhostCombined => clf::read(line, clf::Host::First, clf::Quotes::Present),
            Self::Json => json::read(line),
        }
    }

    /// The format of a chunk's first lines: the one that most of them are read in.
    pub(super) fn detect(self, chunk: &[u8]) -> Self {
        if self != Self::Auto {
            return self;
        }
        let sample: Vec<&[u8]> =
            chunk.split(|octet| *octet == b'\n').filter(|line| !line.is_empty()).take(50).collect();
        let read = |format: &Self| {
            sample.iter().filter(|line| Self::of(line) == *format && format.read(line).is_some()).count()
        };
        let known = [Self::Combined, Self::VhostCombined, Self::Json, Self::Common];
        known.into_iter().rev().max_by_key(read).unwrap_or(Self::Combined)
    }

    fn of(line: &[u8]) -> Self {
        if line.trim_ascii_start().starts_with(b"{") {
            return Self::Json;
        }
        let quotes = memchr::memchr_iter(b'"', line).count();
        let head = line.split(|octet| *octet == b'[').next().unwrap_or_default();
        let words = head.split(|octet| *octet == b' ').filter(|word| !word.is_empty()).count();
        match (quotes, words) {
            (0..=3, _) => Self::Common,
            // `host:port address ident user [`
            (_, 4..) if !is_address(head.split(|octet| *octet == b' ').next().unwrap_or_default()) => {
                Self::VhostCombined
            }
            _ => Self::Combined,
        }
    }
}

fn is_address(word: &[u8]) -> bool {
    std::str::from_utf8(word).is_ok_and(|word| word.parse::<std::net::IpAddr>().is_ok())
}

#[cfg(test)]
mod tests;
