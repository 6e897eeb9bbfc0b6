//! The W3C extended log format: a line `#Fields:` names the columns. IIS separates columns with
//! spaces, CloudFront with tabs. Other servers write values that contain spaces as quoted strings.

use std::borrow::Cow;

use super::clf::{LoggedRequest, is_request, rfc3339, status};

pub(crate) const FIELDS: &[u8] = b"#Fields:";

/// The names of the columns that are read: method, path, query, agent, referer, status, address,
/// date, time, and two columns for the host. In logs of CloudFront, `x-host-header` contains the
/// host that the client requested, and `cs(Host)` the name of the distribution.
const READ: [&[&[u8]]; 11] = [
    &[b"cs-method"],
    &[b"cs-uri-stem", b"cs-uri"],
    &[b"cs-uri-query"],
    &[b"cs(user-agent)"],
    &[b"cs(referer)"],
    &[b"sc-status"],
    &[b"c-ip"],
    &[b"date"],
    &[b"time"],
    &[b"cs-host", b"cs(host)"],
    &[b"x-host-header"],
];

/// Positions of the columns that are read. A log contains only some of these columns, depending on
/// the configuration of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct W3cColumns {
    places: [Option<usize>; READ.len()],
    /// Number of all columns, including columns that are not read.
    count: usize,
}

#[derive(Clone, Copy)]
enum W3cValue<'a> {
    /// Value without quotes. It contains no separator.
    Plain(&'a [u8]),
    /// Content of a quoted string; quotes in it are doubled.
    Quoted(&'a [u8]),
}

impl W3cColumns {
    /// Parses the line `#Fields: …`. `None` for any other line.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let names = line.strip_prefix(FIELDS)?.to_ascii_lowercase();
        let names: Vec<&[u8]> = names.split(u8::is_ascii_whitespace).filter(|name| !name.is_empty()).collect();
        let places = READ.map(|known| names.iter().rposition(|name| known.contains(name)));
        Some(Self { places, count: names.len() })
    }

    pub(super) fn read<'a>(&self, line: &'a [u8]) -> Option<LoggedRequest<'a>> {
        let line = line.trim_ascii_end();
        // The first space or tab in the line is the separator. Later spaces and tabs may be part of
        // quoted values.
        let blank = line[memchr::memchr2(b' ', b'\t', line)?];
        let values = self.values(line, blank)?;
        let value = |column: Option<usize>| values.get(column?).filter(|value| !matches!(value, W3cValue::Plain(b"-")));
        let [.., host_column, named_column] = self.places;
        let [method, path, query, agent, referer, code, address, date, time, host, named_host] = self.places.map(value);
        let bytes = |value: Option<&W3cValue<'a>>| value.map(|value| value.bytes()).unwrap_or_default();
        let (method, path, query) = (bytes(method), bytes(path), bytes(query));
        if !is_request(&method, &path) {
            return None;
        }
        let target = match query.strip_prefix(b"?").unwrap_or(&query) {
            b"" => path,
            query => Cow::Owned([&*path, b"?", query].concat()),
        };
        let text = |value: Option<&W3cValue<'a>>| match value {
            Some(W3cValue::Plain(text)) if blank == b'\t' => percent_decoded(text),
            Some(W3cValue::Plain(text)) => plus_to_space(text),
            value => bytes(value),
        };
        let moment = || rfc3339(&[&*date?.bytes(), b"T", &*time?.bytes(), b"Z"].concat());
        Some(LoggedRequest {
            site: None,
            host: named_column.or(host_column).map(|_| bytes(named_host.or(host))),
            address: bytes(address),
            time: moment(),
            method,
            target,
            status: status(code.map(|code| code.bytes()).as_deref()),
            referer: text(referer),
            agent: text(agent),
        })
    }

    /// Splits a line into values; `None` if the line has too many or too few values. IIS does not
    /// escape quotes that a client sent, so the line is parsed first with quoted strings and, if
    /// that fails, without quoted strings.
    fn values<'a>(&self, line: &'a [u8], blank: u8) -> Option<Vec<W3cValue<'a>>> {
        let has_quotes = memchr::memchr(b'"', line).is_some();
        let quoted = has_quotes.then(|| split_with_strings(line, blank)).flatten();
        if let Some(values) = quoted.filter(|values| values.len() == self.count) {
            return Some(values);
        }
        let values: Vec<_> = line.split(|byte| *byte == blank).map(W3cValue::Plain).collect();
        // Some servers omit empty values at the end of a line. A line without the path, the query
        // or the agent is not accepted, because it would be parsed as a different request.
        let [_, path, query, agent, ..] = self.places;
        let is_whole = || [path, query, agent].into_iter().flatten().all(|place| place < values.len());
        (values.len() == self.count || (values.len() < self.count && !has_quotes && is_whole())).then_some(values)
    }
}

impl<'a> W3cValue<'a> {
    fn bytes(self) -> Cow<'a, [u8]> {
        match self {
            Self::Quoted(text) if memchr::memchr(b'"', text).is_some() => {
                let mut is_first = false;
                let is_kept = |byte: &&u8| {
                    is_first = **byte == b'"' && !is_first;
                    **byte != b'"' || is_first
                };
                Cow::Owned(text.iter().filter(is_kept).copied().collect())
            }
            Self::Plain(text) | Self::Quoted(text) => Cow::Borrowed(text),
        }
    }
}

/// Splits a line into values. A value that begins with a quote is parsed as a quoted string.
/// Returns `None` if a closing quote is missing.
fn split_with_strings(line: &[u8], blank: u8) -> Option<Vec<W3cValue<'_>>> {
    let (mut values, mut rest) = (Vec::new(), line);
    loop {
        let (value, behind) = match rest {
            [b'"', text @ ..] => {
                let (text, behind) = string(text)?;
                (W3cValue::Quoted(text), behind)
            }
            _ => {
                let (text, behind) = rest.split_at(memchr::memchr(blank, rest).unwrap_or(rest.len()));
                (W3cValue::Plain(text), behind)
            }
        };
        values.push(value);
        rest = match behind {
            [] => return Some(values),
            [next, more @ ..] if *next == blank => more,
            _ => return None,
        };
    }
}

/// Returns the text before and after the closing quote of a string. In the text before the closing
/// quote, quotes are still doubled.
fn string(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut end = memchr::memchr(b'"', text)?;
    while text.get(end + 1) == Some(&b'"') {
        end += 2 + memchr::memchr(b'"', &text[end + 2..])?;
    }
    Some((&text[..end], &text[end + 1..]))
}

/// Replaces `+` with a space, because IIS writes `+` for a space. The `+` in `(+https://…)` and `;
/// +https://…` is kept, because crawlers write it before the URL of their page.
fn plus_to_space(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'+', text).is_none() {
        return Cow::Borrowed(text);
    }
    let is_kept = |at: usize| {
        text[at + 1..].starts_with(b"http")
            && at.checked_sub(1).is_some_and(|before| matches!(text[before], b'+' | b'('))
    };
    let bytes = text.iter().enumerate().map(|(at, byte)| if *byte == b'+' && !is_kept(at) { b' ' } else { *byte });
    Cow::Owned(bytes.collect())
}

/// Decodes a value of CloudFront. CloudFront percent-encodes special bytes, and does this twice in
/// headers. A space is therefore `%20` or `%2520`.
pub(super) fn percent_decoded(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'%', text).is_none() {
        return Cow::Borrowed(text);
    }
    let once: Vec<u8> = percent_encoding::percent_decode(text).collect();
    match memchr::memmem::find(&once, b"%20") {
        Some(_) => Cow::Owned(percent_encoding::percent_decode(&once).collect()),
        None => Cow::Owned(once),
    }
}
