//! The W3C extended log format: a line `#Fields:` names the columns. IIS parts them with blanks, CloudFront with tabs.

use std::borrow::Cow;

use super::clf::{LoggedRequest, rfc3339, status};

/// The start of the line that names the columns.
pub(crate) const FIELDS: &[u8] = b"#Fields:";

/// The names of the columns that are read: of method, path, query, agent, referer, status, address, date, time, host, and of the host
/// that the client named, where the one before is that of the distribution.
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

/// The place of each column; a log has those that its server is configured to write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct W3cColumns([Option<usize>; READ.len()]);

impl W3cColumns {
    /// Reads the line `#Fields: …`; `None` where it is another one.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let names = line.strip_prefix(FIELDS)?.to_ascii_lowercase();
        let names: Vec<&[u8]> = names.split(u8::is_ascii_whitespace).filter(|name| !name.is_empty()).collect();
        Some(Self(READ.map(|known| names.iter().rposition(|name| known.contains(name)))))
    }

    /// Reads a line of these columns.
    pub(super) fn read<'a>(&self, line: &'a [u8]) -> Option<LoggedRequest<'a>> {
        let has_tabs = memchr::memchr(b'\t', line).is_some();
        let blank = if has_tabs { b'\t' } else { b' ' };
        let values: Vec<&[u8]> = line.split(|octet| *octet == blank).collect();
        let value =
            |column: Option<usize>| column.and_then(|at| values.get(at)).copied().filter(|value| *value != b"-");
        let [method, path, query, agent, referer, code, address, date, time, host, named_host] = self.0.map(value);
        let (method, path) = (method?, path?);
        if method.is_empty() || path.is_empty() {
            return None;
        }
        let target = match query.filter(|query| !query.is_empty()) {
            Some(query) => Cow::Owned([path, b"?", query.strip_prefix(b"?").unwrap_or(query)].concat()),
            None => Cow::Borrowed(path),
        };
        let text = |value: Option<&'a [u8]>| match value {
            Some(text) if has_tabs => percent_decoded(text),
            Some(text) => with_blanks(text),
            None => Cow::default(),
        };
        let moment = || rfc3339(&[date?, b"T", time?, b"Z"].concat());
        let [.., host_column, named_column] = self.0;
        Some(LoggedRequest {
            site: None,
            host: named_column.or(host_column).map(|_| named_host.or(host).unwrap_or_default().into()),
            address: address.map(Cow::Borrowed).unwrap_or_default(),
            time: moment(),
            method: Cow::Borrowed(method),
            target,
            status: status(code),
            referer: text(referer),
            agent: text(agent),
        })
    }
}

/// IIS writes `+` for a blank and leaves a `+` as it is. The one of `(+https://…)` and `; +https://…` is no blank: it is
/// how crawlers name their page.
fn with_blanks(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'+', text).is_none() {
        return Cow::Borrowed(text);
    }
    let is_kept = |at: usize| {
        text[at + 1..].starts_with(b"http")
            && at.checked_sub(1).is_some_and(|before| matches!(text[before], b'+' | b'('))
    };
    let octets = text.iter().enumerate().map(|(at, octet)| if *octet == b'+' && !is_kept(at) { b' ' } else { *octet });
    Cow::Owned(octets.collect())
}

/// CloudFront escapes what is no plain octet, and a `%` of the header again: a blank is `%20` or `%2520`.
fn percent_decoded(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'%', text).is_none() {
        return Cow::Borrowed(text);
    }
    let once: Vec<u8> = percent_encoding::percent_decode(text).collect();
    match memchr::memmem::find(&once, b"%20") {
        Some(_) => Cow::Owned(percent_encoding::percent_decode(&once).collect()),
        None => Cow::Owned(once),
    }
}
