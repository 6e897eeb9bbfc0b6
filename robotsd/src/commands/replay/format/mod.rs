//! Parses the lines of access logs, in any supported format, as requests.

mod clf;
mod json;
mod json_keys;
mod w3c;

use clap::ValueEnum;

use self::w3c::W3cColumns;

pub(super) use self::clf::LoggedRequest;
pub(in crate::commands) use self::json_keys::{JsonKey, JsonKeys};
pub(super) use self::w3c::FIELDS;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::commands) enum ReplayLogFormat {
    /// Detect the format from the first lines
    Auto,
    /// Common log format, which lacks the User-Agent; lines that contain it are read, too
    Common,
    /// Combined log format of nginx and Apache, also with the virtual host in front
    #[value(alias = "vhost-combined")]
    Combined,
    /// One JSON object per line: nginx, Caddy, Traefik, Envoy, Cloudflare, Google Cloud, or with
    /// the keys in --json-keys
    Json,
    /// W3C extended log format, with a line #Fields that names the columns: IIS, CloudFront
    #[value(aliases = ["iis", "cloudfront"])]
    W3c,
    /// AWS application load balancer
    Alb,
}

/// Maximum number of enclosing objects and prefixes that are removed from a line. A container
/// runtime may add one wrapper, and the service that collects the output of containers may add
/// another.
const MAX_WRAPPERS: usize = 3;

#[derive(Debug)]
pub(super) struct ChunkReader<'k> {
    format: ReplayLogFormat,
    json_keys: &'k JsonKeys,
    columns: W3cColumns,
    /// Whether the format was detected from the first lines. If so, lines in other formats are also
    /// read.
    is_found: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum LogLine<'a> {
    Request(LoggedRequest<'a>),
    /// A line about the log itself, such as `#Fields`.
    Directive,
    /// A line of robotsd's event log, which may share a file with the access log.
    Event,
    Unread,
}

impl<'k> ChunkReader<'k> {
    pub(super) fn new(format: ReplayLogFormat, json_keys: &'k JsonKeys, chunk: &[u8]) -> Self {
        let is_found = format == ReplayLogFormat::Auto;
        Self { format: format.detect(json_keys, chunk), json_keys, columns: W3cColumns::default(), is_found }
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
        match self.read_unwrapped(line) {
            LogLine::Unread => self.read_wrapped(line, MAX_WRAPPERS),
            read => read,
        }
    }

    fn read_unwrapped<'a>(&self, line: &'a [u8]) -> LogLine<'a> {
        if json::is_event(line) {
            return LogLine::Event;
        }
        let request = self.format.read(line, self.json_keys);
        let request = match &request {
            Some(read) if self.is_found && !self.format.is_certain_format(read) => self.read_any(line),
            None if self.is_found => self.read_any(line),
            _ => request,
        };
        request.map_or(LogLine::Unread, LogLine::Request)
    }

    /// Reads a line in a format other than the format of the chunk, because the server's log format
    /// may have been changed within a log.
    fn read_any<'a>(&self, line: &'a [u8]) -> Option<LoggedRequest<'a>> {
        let formats = [ReplayLogFormat::of(line), ReplayLogFormat::Common];
        let read = |format: ReplayLogFormat| {
            format.read(line, self.json_keys).filter(|request| format.is_certain_format(request))
        };
        formats.into_iter().find_map(read)
    }

    /// Reads a line that log collectors have wrapped in up to `most` objects or prefixes.
    fn read_wrapped(&self, line: &[u8], most: usize) -> LogLine<'static> {
        for inner in wrapped(line, self.json_keys) {
            let read = match self.read_unwrapped(&inner) {
                LogLine::Request(request) => LogLine::Request(LoggedRequest {
                    time: request.time.or_else(|| clf::rfc3339(line)),
                    ..request.into_owned()
                }),
                LogLine::Event => LogLine::Event,
                _ if most > 1 => self.read_wrapped(&inner, most - 1),
                _ => LogLine::Unread,
            };
            if read != LogLine::Unread {
                return read;
            }
        }
        LogLine::Unread
    }
}

/// Returns the strings in a wrapped line that may be the original line: each string of a JSON
/// object that does not describe a request, an object after a prefix, or the text after an
/// unmatched quote. LiteSpeed writes such a quote before lines.
fn wrapped(line: &[u8], keys: &JsonKeys) -> Vec<Vec<u8>> {
    let line = line.trim_ascii();
    match memchr::memchr(b'{', line) {
        Some(0) => json::wrapped_lines(line, keys),
        Some(at) if line.ends_with(b"}") => vec![line[at..].to_vec()],
        _ => line.strip_prefix(b"\"").map(<[u8]>::to_vec).into_iter().collect(),
    }
}

impl ReplayLogFormat {
    /// Reads a line. `None` if the line is not a request in this format. Always `None` for the W3C
    /// format, whose column names are in an earlier line.
    pub(super) fn read<'a>(self, line: &'a [u8], json_keys: &JsonKeys) -> Option<LoggedRequest<'a>> {
        match self {
            Self::Auto => Self::of(line).read(line, json_keys),
            Self::Common => clf::read(line, clf::Quotes::Optional),
            Self::Combined => clf::read(line, clf::Quotes::Present),
            Self::Json => json::read(line, json_keys),
            Self::Alb => clf::read_alb(line),
            Self::W3c => None,
        }
    }

    /// Reports whether a parsed line is certainly in this format. The check is needed because lines
    /// of error logs quote requests, and can therefore be parsed, too.
    fn is_certain_format(self, request: &LoggedRequest<'_>) -> bool {
        match self {
            Self::Common => request.time.is_some(),
            Self::Combined => request.time.is_some() || clf::is_address(&request.address),
            _ => true,
        }
    }

    pub(super) fn detect(self, json_keys: &JsonKeys, chunk: &[u8]) -> Self {
        if self != Self::Auto {
            return self;
        }
        let sample: Vec<&[u8]> = chunk.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).take(50).collect();
        // Chunks after the first one also begin with the line that names the columns.
        if sample.iter().any(|line| line.starts_with(FIELDS)) {
            return Self::W3c;
        }
        let read = |format: &Self| {
            sample.iter().filter(|line| Self::of(line) == *format && format.read(line, json_keys).is_some()).count()
        };
        let known = [Self::Combined, Self::Json, Self::Common, Self::Alb];
        known.into_iter().rev().max_by_key(read).unwrap_or(Self::Combined)
    }

    fn of(line: &[u8]) -> Self {
        if line.trim_ascii_start().starts_with(b"{") {
            return Self::Json;
        }
        if clf::begins_like_alb(line) {
            return Self::Alb;
        }
        match memchr::memchr_iter(b'"', line).count() {
            0..=3 => Self::Common,
            _ => Self::Combined,
        }
    }
}

/// Reports whether a line contains a JSON object. `line` may be truncated. A client cannot forge
/// the beginning of an object, because servers escape quotes that clients send.
pub(super) fn has_object(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"{") || memchr::memmem::find(line, b"{\"").is_some()
}

pub(super) fn is_of_error_log(line: &[u8]) -> bool {
    // nginx: `2026/11/22 10:00:00 [error] 7#7: …`. No line of an access log begins with a date in
    // this form.
    let is_nginx = line.get(..22).is_some_and(|head| {
        let digits = head.iter().map(|byte| if byte.is_ascii_digit() { b'0' } else { *byte });
        digits.take(21).eq(*b"0000/00/00 00:00:00 [") && head[21].is_ascii_lowercase()
    });
    // Apache: `[Sun Nov 22 10:00:00.000000 2026] [core:error] [pid 7] …`.
    let is_apache = || {
        let line = line.strip_prefix(b"[")?;
        let (time, rest) = line.split_at(memchr::memchr(b']', line)?);
        let words = time.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).count();
        Some(words == 5 && rest.starts_with(b"] ["))
    };
    is_nginx || is_apache().unwrap_or(false)
}

#[cfg(any(test, fuzzing))]
pub(crate) mod test_any_input;
#[cfg(test)]
mod tests;
