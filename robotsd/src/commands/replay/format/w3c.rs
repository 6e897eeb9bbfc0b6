//! The W3C extended log format: a line `#Fields:` names the columns. IIS parts them with blanks, CloudFront with tabs.

use std::borrow::Cow;

use super::clf::{LoggedRequest, rfc3339, status};

/// The start of the line that names the columns.
pub(crate) const FIELDS: &[u8] = b"#Fields:";

/// Which column is what; a log has those that its server is configured to write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct W3cColumns {
    method: Option<usize>,
    path: Option<usize>,
    query: Option<usize>,
    agent: Option<usize>,
    referer: Option<usize>,
    status: Option<usize>,
    address: Option<usize>,
    date: Option<usize>,
    time: Option<usize>,
    host: Option<usize>,
    /// The host that the client named, where `host` is that of the distribution.
    named_host: Option<usize>,
}

impl W3cColumns {
    /// Reads the line `#Fields: …`; `None` where it is another one.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let names = line.strip_prefix(FIELDS)?;
        let mut columns = Self::default();
        let is_blank = |octet: &u8| matches!(octet, b' ' | b'\t');
        for (at, name) in names.split(is_blank).filter(|name| !name.is_empty()).enumerate() {
            let column = match name.to_ascii_lowercase().as_slice() {
                b"cs-method" => &mut columns.method,
                b"cs-uri-stem" | b"cs-uri" => &mut columns.path,
                b"cs-uri-query" => &mut columns.query,
                b"cs(user-agent)" => &mut columns.agent,
                b"cs(referer)" => &mut columns.referer,
                b"sc-status" => &mut columns.status,
                b"c-ip" => &mut columns.address,
                b"date" => &mut columns.date,
                b"time" => &mut columns.time,
                b"cs-host" | b"cs(host)" => &mut columns.host,
                b"x-host-header" => &mut columns.named_host,
                _ => continue,
            };
            *column = Some(at);
        }
        Some(columns)
    }

    /// Reads a line of these columns.
    pub(super) fn read<'a>(&self, line: &'a [u8]) -> Option<LoggedRequest<'a>> {
        let has_tabs = memchr::memchr(b'\t', line).is_some();
        let blank = if has_tabs { b'\t' } else { b' ' };
        let values: Vec<&[u8]> = line.split(|octet| *octet == blank).collect();
        let value =
            |column: Option<usize>| column.and_then(|at| values.get(at)).copied().filter(|value| *value != b"-");
        let (method, path) = (value(self.method)?, value(self.path)?);
        if method.is_empty() || path.is_empty() {
            return None;
        }
        let target = match value(self.query).filter(|query| !query.is_empty()) {
            Some(query) => Cow::Owned([path, b"?", query.strip_prefix(b"?").unwrap_or(query)].concat()),
            None => Cow::Borrowed(path),
        };
        let text = |column: Option<usize>| match value(column) {
            Some(text) if has_tabs => percent_decoded(text),
            Some(text) => with_blanks(text),
            None => Cow::default(),
        };
        let moment = || rfc3339(&[value(self.date)?, b"T", value(self.time)?, b"Z"].concat());
        Some(LoggedRequest {
            site: None,
            host: (self.named_host.or(self.host))
                .map(|_| value(self.named_host).or_else(|| value(self.host)).unwrap_or_default().into()),
            address: value(self.address).map(Cow::Borrowed).unwrap_or_default(),
            time: moment(),
            method: Cow::Borrowed(method),
            target,
            status: status(value(self.status)),
            referer: text(self.referer),
            agent: text(self.agent),
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
