//! The common log format and its extensions, and the access logs of an AWS application load balancer, which quote as it does.
//!
//! A line of any format becomes a [`LoggedRequest`].

use std::borrow::Cow;

use tower_robots::rules::Authority;

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
    let bracket = time_bracket(line)?;
    let (head, rest) = (&line[..bracket], &line[bracket + 1..]);
    let mut words = head.splitn(3, |octet| *octet == b' ').filter(|word| !word.is_empty());
    let host = match host {
        Host::Absent => None,
        Host::First => Some(value(words.next()?)),
    };
    let address = Cow::Borrowed(words.next()?);
    let end = memchr::memchr(b']', rest)?;
    let time = clf_time(&rest[..end]);
    let (request, rest) = quoted(&rest[end + 1..])?;
    let (method, target) = request_line(request)?;
    let (method, status) = (Cow::Borrowed(method), status(rest.split(|octet| *octet == b' ').nth(1)));
    let both = || {
        let (referer, rest) = quoted(rest)?;
        let (agent, rest) = quoted(rest)?;
        Some((value(referer), value(agent), site_of_robotsd(rest)))
    };
    let (referer, agent, site) = match quotes {
        Quotes::Optional => both().unwrap_or_default(),
        Quotes::Present => both()?,
    };
    Some(LoggedRequest { host, site, address, time, method, target, status, referer, agent })
}

/// robotsd ends a line with the site, the action and the request's id, each in quotes. Others may have three values there too, so
/// this is a site if the config has one of that name.
fn site_of_robotsd(rest: &[u8]) -> Option<Cow<'_, [u8]>> {
    let (site, rest) = quoted(rest)?;
    let (_action, rest) = quoted(rest)?;
    let (_id, rest) = quoted(rest)?;
    rest.trim_ascii().is_empty().then(|| value(site)).filter(|site| !site.is_empty())
}

/// The start of the time; a host in front of all may be an address in brackets.
pub(super) fn time_bracket(line: &[u8]) -> Option<usize> {
    let host = line.strip_prefix(b"[").and_then(|_| memchr::memchr(b']', line)).unwrap_or(0);
    memchr::memchr(b'[', &line[host..]).map(|at| host + at)
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

/// Kinds of connections, which begin a line of a load balancer.
const ALB_KINDS: [&[u8]; 6] = [b"http", b"https", b"h2", b"grpcs", b"ws", b"wss"];

/// Whether a line begins as one of a load balancer: `https 2018-07-02T22:23:00.186641Z app/name/50dc6c495c0c9188 …`
pub(super) fn begins_alb(line: &[u8]) -> bool {
    let mut words = line.splitn(4, |octet| *octet == b' ');
    words.next().is_some_and(|kind| ALB_KINDS.contains(&kind))
        && words.next().is_some_and(|moment| rfc3339(moment).is_some())
        && words.next().is_some_and(|balancer| balancer.starts_with(b"app/"))
}

/// `kind time balancer client:port target:port … "METHOD URL HTTP/x" "agent" …`
pub(super) fn read_alb(line: &[u8]) -> Option<LoggedRequest<'_>> {
    let mut words = line.splitn(5, |octet| *octet == b' ');
    if !words.next().is_some_and(|kind| ALB_KINDS.contains(&kind)) {
        return None;
    }
    let time = rfc3339(words.next()?);
    let client = words.nth(1)?;
    let behind = words.next()?;
    let status = status(behind.split(|octet| *octet == b' ').nth(4));
    let (request, rest) = quoted(behind)?;
    // A request that could not be read is `- http://example.com:80- -`.
    let (method, url) = request_line(request).filter(|(method, _)| *method != b"-")?;
    let (agent, _) = quoted(rest)?;
    let (host, target) = match Authority::of_url(&url) {
        None => (None, url),
        Some((_, authority, path)) => {
            let host = authority.host_and_port.to_vec();
            let target = if path.starts_with(b"/") { path.to_vec() } else { [b"/", path].concat() };
            (Some(Cow::Owned(host)), Cow::Owned(target))
        }
    };
    Some(LoggedRequest {
        host,
        site: None,
        address: Cow::Borrowed(&client[..memchr::memrchr(b':', client).unwrap_or(client.len())]),
        time,
        method: Cow::Borrowed(method),
        target,
        status,
        referer: Cow::default(),
        agent: value(agent),
    })
}

/// The three digits of a status.
pub(super) fn status(word: Option<&[u8]>) -> Option<u16> {
    let digits = word.filter(|word| word.len() == 3)?;
    number(digits).and_then(|number| u16::try_from(number).ok())
}

/// A request, as a line of a log has it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LoggedRequest<'a> {
    /// The host with its port, where the log has it; empty where the request named none.
    pub(crate) host: Option<Cow<'a, [u8]>>,
    /// The site of robotsd that answered, where the log may be its own.
    pub(crate) site: Option<Cow<'a, [u8]>>,
    pub(crate) address: Cow<'a, [u8]>,
    /// Seconds since 1970, where the line has a time.
    pub(crate) time: Option<i64>,
    pub(crate) method: Cow<'a, [u8]>,
    pub(crate) target: Cow<'a, [u8]>,
    /// Of the response, where the line has it.
    pub(crate) status: Option<u16>,
    /// Empty where the log has none or `-`.
    pub(crate) referer: Cow<'a, [u8]>,
    pub(crate) agent: Cow<'a, [u8]>,
}

/// `10/Oct/2000:13:55:36 -0700`
fn clf_time(text: &[u8]) -> Option<i64> {
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
