//! Lines of access logs as requests, whatever their format.

mod clf;
mod json;
mod w3c;

use clap::ValueEnum;

use self::w3c::W3cColumns;

pub(super) use self::clf::LoggedRequest;
pub(super) use self::w3c::FIELDS;

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::commands) enum ReplayLogFormat {
    /// The format that most of the first lines have
    Auto,
    /// Common log format, which lacks the User-Agent; lines that have it are read too
    Common,
    /// Combined log format of nginx and Apache
    Combined,
    /// Combined with the virtual host in front
    VhostCombined,
    /// A JSON object a line: nginx, Caddy, Traefik, Envoy
    Json,
    /// W3C extended log format, whose columns a line #Fields names: IIS, CloudFront
    #[value(aliases = ["iis", "cloudfront"])]
    W3c,
    /// AWS application load balancer
    Alb,
}

/// Reads the lines of one chunk of a log.
#[derive(Debug)]
pub(super) struct ChunkReader {
    format: ReplayLogFormat,
    columns: W3cColumns,
    /// Whether the format was found, not named: then lines in another one are read too.
    is_found: bool,
}

/// The kind of a line of a log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LogLine<'a> {
    Request(LoggedRequest<'a>),
    /// A line about the log itself.
    Directive,
    /// A line of robotsd's log of events, which may share a file with its log of requests.
    Event,
    Unread,
}

impl ChunkReader {
    /// Finds the format of a chunk, where it is not known.
    pub(super) fn new(format: ReplayLogFormat, chunk: &[u8]) -> Self {
        let is_found = format == ReplayLogFormat::Auto;
        Self { format: format.detect(chunk), columns: W3cColumns::default(), is_found }
    }

    pub(super) fn read<'a>(&mut self, line: &'a [u8]) -> LogLine<'a> {
        if self.format == ReplayLogFormat::W3c {
            if let Some(columns) = W3cColumns::parse(line) {
                self.columns = columns;
            }
            if line.starts_with(b"#") {
                return LogLine::Directive;
            }
            return self.columns.read(line).map_or(LogLine::Unread, LogLine::Request);
        }
        if json::is_event(line) {
            return LogLine::Event;
        }
        let request = self.format.read(line);
        let request = match &request {
            Some(read) if !self.is_found || is_address(&read.address) => request,
            Some(_) => self.format.read_with_address(line).or(request.filter(|read| self.format.is_sure_of(read))),
            None => self.is_found.then(|| ReplayLogFormat::read_any(line)).flatten(),
        };
        request.map_or(LogLine::Unread, LogLine::Request)
    }
}

impl ReplayLogFormat {
    /// Reads a line; `None` where it is no request in this format, or needs the line of columns.
    pub(super) fn read<'a>(self, line: &'a [u8]) -> Option<LoggedRequest<'a>> {
        match self {
            Self::Auto => Self::of(line).read(line),
            Self::Common => clf::read(line, clf::Host::Absent, clf::Quotes::Optional),
            Self::Combined => clf::read(line, clf::Host::Absent, clf::Quotes::Present),
            Self::VhostCombined => clf::read(line, clf::Host::First, clf::Quotes::Present),
            Self::Json => json::read(line),
            Self::Alb => clf::read_alb(line),
            Self::W3c => None,
        }
    }

    /// Reads a line of a log whose server was given another format at some time. A line of an error log holds a request too, and so
    /// does one that was cut off: the common format, which lacks most, reads neither.
    fn read_any(line: &[u8]) -> Option<LoggedRequest<'_>> {
        let is_whole = |format, request: &LoggedRequest<'_>| {
            format != Self::Common || (request.time.is_some() && clf::has_all_quotes(line))
        };
        let read = |format: Self| format.read(line).filter(|request| is_whole(format, request));
        [Self::of(line), Self::Common].into_iter().find_map(read)
    }

    /// Whether a line that has no address is one of this format all the same. A line of an error log holds a request in quotes behind
    /// something in brackets, which is no time.
    fn is_sure_of(self, request: &LoggedRequest<'_>) -> bool {
        request.time.is_some() || !matches!(self, Self::Common | Self::Combined | Self::VhostCombined)
    }

    /// Reads a line in another format than this one, if it has the address of a client in that.
    fn read_with_address(self, line: &[u8]) -> Option<LoggedRequest<'_>> {
        let other = Some(Self::of(line)).filter(|format| *format != self)?;
        other.read(line).filter(|request| is_address(&request.address))
    }

    /// The format of a chunk's first lines: the one that most of them are read in.
    pub(super) fn detect(self, chunk: &[u8]) -> Self {
        if self != Self::Auto {
            return self;
        }
        let sample: Vec<&[u8]> =
            chunk.split(|octet| *octet == b'\n').filter(|line| !line.is_empty()).take(50).collect();
        // Chunks after the first begin with the line of columns too.
        if sample.iter().any(|line| line.starts_with(FIELDS)) {
            return Self::W3c;
        }
        let read = |format: &Self| {
            sample.iter().filter(|line| Self::of(line) == *format && format.read(line).is_some()).count()
        };
        let known = [Self::Combined, Self::VhostCombined, Self::Json, Self::Common, Self::Alb];
        known.into_iter().rev().max_by_key(read).unwrap_or(Self::Combined)
    }

    fn of(line: &[u8]) -> Self {
        if line.trim_ascii_start().starts_with(b"{") {
            return Self::Json;
        }
        if clf::begins_alb(line) {
            return Self::Alb;
        }
        let quotes = memchr::memchr_iter(b'"', line).count();
        let head = &line[..clf::time_bracket(line).unwrap_or(line.len())];
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

/// Whether a line is one of an error log, as nginx and Apache write them.
pub(super) fn is_of_error_log(line: &[u8]) -> bool {
    // `2026/11/22 10:00:00 [error] 7#7: …`; a date in front of it is of no access log.
    let is_nginx = line.get(..22).is_some_and(|head| {
        let digits = head.iter().map(|octet| if octet.is_ascii_digit() { b'0' } else { *octet });
        digits.take(21).eq(*b"0000/00/00 00:00:00 [") && head[21].is_ascii_lowercase()
    });
    // `[Sun Nov 22 10:00:00.000000 2026] [core:error] [pid 7] …`
    let is_apache = || {
        let line = line.strip_prefix(b"[")?;
        let (time, rest) = line.split_at(memchr::memchr(b']', line)?);
        let words = time.split(|octet| *octet == b' ').filter(|word| !word.is_empty()).count();
        Some(words == 5 && rest.starts_with(b"] ["))
    };
    is_nginx || is_apache().unwrap_or(false)
}

fn is_address(word: &[u8]) -> bool {
    std::str::from_utf8(word).is_ok_and(|word| word.parse::<std::net::IpAddr>().is_ok())
}

#[cfg(any(test, fuzzing))]
pub(crate) mod test_octets;
#[cfg(test)]
mod tests;
