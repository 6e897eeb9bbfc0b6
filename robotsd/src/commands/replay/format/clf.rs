//! The common log format and its extensions.

use std::borrow::Cow;

use tower_robots::rules::{Authority, Port};

use super::logged_request::LoggedRequest;
use super::time;

/// Whether the line begins with the virtual host.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    Absent,
    First,
}

/// Whether the line ends with referer and agent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    Optional,
    Present,
}

/// `[host[:port] ]address ident user [time] "request" status size[ "referer" "agent"]…`
pub(super) fn read(line: &[u8], host: Host, quotes: Quotes) -> Option<LoggedRequest<'_>> {
    let bracket = memchr::memchr(b'[', line)?;
    let (head, rest) = (&line[..bracket], &line[bracket + 1..]);
    let mut words = head.splitn(3, |octet| *octet == b' ').filter(|word| !word.is_empty());
    let host = match host {
        Host::Absent => None,
        Host::First => Some(Cow::Borrowed(without_port(words.next()?))),
    };
    let address = Cow::Borrowed(words.next()?);
    let end = memchr::memchr(b']', rest)?;
    let time = time::clf(&rest[..end]);
    let (request, rest) = quoted(&rest[end + 1..])?;
    let (method, target) = request_line(request)?;
    let method = Cow::Borrowed(method);
    let both = || {
        let (referer, rest) = quoted(rest)?;
        let (agent, _) = quoted(rest)?;
        Some((value(referer), value(agent)))
    };
    let (referer, agent) = match quotes {
        Quotes::Optional => both().unwrap_or_default(),
        Quotes::Present => both()?,
    };
    Some(LoggedRequest { host, address, time, method, target, referer, agent })
}

pub(super) fn without_port(host: &[u8]) -> &[u8] {
    let authority = Authority::of_host_field(host);
    match authority.port() {
        Port::Number(_) => authority.host(),
        _ => host,
    }
}

/// `GET /path HTTP/1.1`; servers log whatever they receive.
pub(super) fn request_line(request: &[u8]) -> Option<(&[u8], Cow<'_, [u8]>)> {
    let at = memchr::memchr(b' ', request)?;
    let (method, rest) = (&request[..at], &request[at + 1..]);
    let end = memchr::memrchr(b' ', rest).filter(|end| rest[end + 1..].starts_with(b"HTTP/")).unwrap_or(rest.len());
    let is_method = !method.is_empty() && method.iter().all(|octet| octet.is_ascii_alphabetic() || *octet == b'-');
    (is_method && end > 0).then(|| (method, unescaped(&rest[..end])))
}

/// The text between the next two quotes, and the rest; escaped quotes do not count.
pub(super) fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = memchr::memchr(b'"', text)? + 1;
    let mut at = start;
    loop {
        at += memchr::memchr(b'"', &text[at..])?;
        let slashes = text[start..at].iter().rev().take_while(|octet| **octet == b'\\').count();
        if slashes % 2 == 0 {
            return Some((&text[start..at], &text[at + 1..]));
        }
        at += 1;
    }
}

/// Whether each quote of a line that begins a text has one that ends it.
pub(super) fn has_all_quotes(line: &[u8]) -> bool {
    let mut rest = line;
    while let Some((_, after)) = quoted(rest) {
        rest = after;
    }
    memchr::memchr(b'"', rest).is_none()
}

pub(super) fn value(text: &[u8]) -> Cow<'_, [u8]> {
    if text == b"-" { Cow::default() } else { unescaped(text) }
}

/// Undoes the escapes of servers: `\"` and `\\` (Apache), `\x22` (nginx).
fn unescaped(text: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr::memchr(b'\\', text) else { return Cow::Borrowed(text) };
    let mut out = text[..first].to_vec();
    let mut rest = &text[first..];
    while let [octet, more @ ..] = rest {
        rest = match (octet, more) {
            (b'\\', [b'x', high, low, more @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let digit = |octet: &u8| char::from(*octet).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                out.push(digit(high).unwrap_or(0) << 4 | digit(low).unwrap_or(0));
                more
            }
            (b'\\', [escaped @ (b'"' | b'\\'), more @ ..]) => {
                out.push(*escaped);
                more
            }
            (octet, more) => {
                out.push(*octet);
                more
            }
        };
    }
    Cow::Owned(out)
}
