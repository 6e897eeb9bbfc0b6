//! The common log format and its extensions, and the access logs of AWS application load balancers,
//! which use the same quoting.

use std::borrow::Cow;

use tower_robots::policy::RateLimit;
use tower_robots::rules::Authority;

use crate::board::is_page;

/// Whether a line must contain the referer and the agent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    Optional,
    Present,
}

/// Parses `[host[:port] ]address ident user [time] "request" status size[ "referer" "agent"]…`,
/// with or without a prefix from a log collector, such as the date, host and program of syslog.
pub(super) fn read(line: &[u8], quotes: Quotes) -> Option<LoggedRequest<'_>> {
    let (before, rest) = line.split_at(first_quote(line)?);
    let (bracket, time) = time_bracket(before)?;
    let Client { host, address } = Client::of(&before[..bracket])?;
    let (request, rest) = quoted(rest)?;
    let (method, target) = request_line(request)?;
    let (method, status) = (Cow::Borrowed(method), status(rest.split(|byte| *byte == b' ').nth(1)));
    let both = || {
        let (referer, rest) = quoted(rest)?;
        let (agent, rest) = quoted(rest)?;
        Some((referer, agent, rest))
    };
    let (referer, agent, rest) = match quotes {
        Quotes::Optional => both().unwrap_or((b"", b"", rest)),
        Quotes::Present => both()?,
    };
    if is_other_than_agent(agent, referer) {
        return None;
    }
    let site = match rest {
        b"" => None,
        _ if has_all_quotes(rest) => site_of_robotsd(rest),
        _ => return None,
    };
    let (host, address) = (host.map(value), Cow::Borrowed(address));
    Some(LoggedRequest {
        host,
        site,
        address,
        time,
        method,
        target,
        status,
        referer: value(referer),
        agent: value(agent),
    })
}

/// Reports whether the value in the agent's column is not an agent. Some servers insert another
/// column before the agent, for example a host or an address.
fn is_other_than_agent(agent: &[u8], referer: &[u8]) -> bool {
    if agent.starts_with(b"Mozilla/") {
        return false;
    }
    let may_be_referer = |text: &[u8]| matches!(text, b"" | b"-") || has_scheme(text);
    let first = &agent[..memchr::memchr(b',', agent).unwrap_or(agent.len())];
    is_address(first) || (may_be_referer(agent) && !may_be_referer(referer))
}

#[derive(Clone, Copy)]
struct Client<'a> {
    host: Option<&'a [u8]>,
    address: &'a [u8],
}

impl<'a> Client<'a> {
    /// Finds the address, and the virtual host that precedes the address. A user name may contain
    /// any text that a client sent, so the first word that can be an address is used.
    fn of(head: &'a [u8]) -> Option<Self> {
        let (first, rest) = head.split_at(memchr::memchr(b' ', head).unwrap_or(head.len()));
        // A line that begins with `host - - - [` contains a host, but no address.
        let has_host = |user: &[u8]| matches!(user, [b'-', b' ', _, ..]) && !is_address(first);
        if let [b' ', b'-', b' ', user @ ..] = rest
            && is_client(first)
            && !has_host(user)
        {
            return Some(Self { host: None, address: first });
        }
        let words = head.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty());
        let words: Vec<&[u8]> = words.map(without_colour).collect();
        let is_dash = |at: usize| words.get(at).is_some_and(|word| *word == b"-");
        let is_tag = |word: &&[u8]| word.ends_with(b":") && !is_client(word);
        if is_address(words.first()?) && !words.iter().any(is_tag) {
            return Some(Self { host: None, address: words[0] });
        }
        let is_named = is_host(words[0]) && is_dash(2) && words.len() > 3 && is_client(words[1]);
        // The word at `at` is the sender if it can be an address; the words before the sender are
        // the prefix of a log collector.
        let is_sender = |at: &usize| match at {
            1 => is_named || is_address(words[1]),
            at => is_address(words[*at]) && is_dash(at + 1),
        };
        let at = (1..words.len()).find(is_sender)?;
        // A word in the prefix may look like a local host name, so a host after a prefix must
        // contain a dot.
        let host = Some(words[at - 1]).filter(|word| is_host(word) && (at == 1 || word.contains(&b'.')));
        Some(Self { host, address: words[at] })
    }
}

pub(super) fn is_address(word: &[u8]) -> bool {
    let may_be = word.first().is_some_and(|byte| byte.is_ascii_hexdigit() || *byte == b':');
    may_be && std::str::from_utf8(word).is_ok_and(|word| word.parse::<std::net::IpAddr>().is_ok())
}

/// Reports whether a word can be the address of a client, or the host name that a server logs
/// instead of the address. A word such as `nginx:` is the name of a program instead.
fn is_client(word: &[u8]) -> bool {
    let is_of_name = |byte: &u8| matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' | b':' | b'%' | b'[' | b']');
    !word.is_empty() && word.iter().all(is_of_name) && (!word.ends_with(b":") || word == b"unix:" || is_address(word))
}

/// Reports whether a word can be a virtual host with its port, or `-` for a missing host. A time
/// such as `10:00:00` is not a host.
fn is_host(word: &[u8]) -> bool {
    let mut parts = word.split(|byte| *byte == b':');
    let name = parts.next().unwrap_or_default();
    let is_name = name.iter().any(u8::is_ascii_alphabetic) || is_address(name) || matches!(name, b"-" | b"_");
    let in_brackets = word.strip_prefix(b"[").and_then(|word| word.split(|byte| *byte == b']').next());
    is_client(word) && (in_brackets.is_some_and(is_address) || (is_name && parts.count() < 2))
}

/// Removes the terminal colour code at the beginning of a word.
fn without_colour(word: &[u8]) -> &[u8] {
    let Some(escape) = word.strip_prefix(b"\x1b[") else { return word };
    memchr::memchr(b'm', escape).map_or(word, |end| &escape[end + 1..])
}

/// Returns the site name from the end of a line in robotsd's log. A line in robotsd's log ends with
/// the site, the action and the ID of the request, each in quotes. A line from another server may
/// also end with three quoted values, so the caller must check that the config has a site with this
/// name.
fn site_of_robotsd(rest: &[u8]) -> Option<Cow<'_, [u8]>> {
    let (site, rest) = quoted(rest)?;
    let (_action, rest) = quoted(rest)?;
    let (_id, rest) = quoted(rest)?;
    rest.trim_ascii().is_empty().then(|| value(site)).filter(|site| !site.is_empty())
}

/// Maximum length of a time in brackets, in bytes.
const MAX_TIME_LENGTH: usize = 48;

/// Finds the time in `before`, the part of a line before the request. Returns the position of its
/// opening bracket, and the time if it can be parsed. A host or a process ID may be in brackets,
/// too. A user name, or a prefix that a log collector has added, may contain another time.
/// Therefore, the last time in brackets is used.
fn time_bracket(before: &[u8]) -> Option<(usize, Option<i64>)> {
    let time_at = |at: usize| {
        let rest = &before[at + 1..];
        let end = memchr::memchr(b']', &rest[..rest.len().min(MAX_TIME_LENGTH)])?;
        // A short number is a process ID, not a time.
        any_time(&rest[..end]).filter(|_| end > 8).map(|time| (at, Some(time)))
    };
    let last = || memchr::memrchr(b'[', before).map(|at| (at, None));
    memchr::memrchr_iter(b'[', before).find_map(time_at).or_else(last)
}

/// Splits a request line such as `GET /path HTTP/1.1`. The protocol may be missing, because servers
/// also log invalid request lines.
pub(super) fn request_line(request: &[u8]) -> Option<(&[u8], Cow<'_, [u8]>)> {
    let at = memchr::memchr(b' ', request)?;
    let (method, rest) = (&request[..at], &request[at + 1..]);
    let end = memchr::memrchr(b' ', rest).filter(|end| rest[end + 1..].starts_with(b"HTTP/")).unwrap_or(rest.len());
    (is_method(method) && end > 0).then(|| (method, unescaped(&rest[..end])))
}

/// Reports whether two values of a JSON or W3C line can be the method and the target of a request.
/// In lines about other events, values with the same names may have another meaning.
pub(super) fn is_request(method: &[u8], target: &[u8]) -> bool {
    is_method(method) && (target.starts_with(b"/") || target == b"*" || has_scheme(target) || method == b"CONNECT")
}

/// Reports whether a word can be a method: a token (RFC 9110, sections 5.6.2 and 9.1).
fn is_method(method: &[u8]) -> bool {
    http::Method::from_bytes(method).is_ok()
}

fn has_scheme(text: &[u8]) -> bool {
    let scheme = text.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte)).count();
    scheme > 0 && text[scheme..].starts_with(b"://")
}

/// Finds the quote that begins the request. Escaped quotes are skipped, because they are part of a
/// user name.
fn first_quote(line: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'"', line).find(|at| line[..*at].last() != Some(&b'\\'))
}

/// Returns the text between the next two quotes, and the remaining text. Escaped quotes are part of
/// the text.
pub(super) fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = memchr::memchr(b'"', text)? + 1;
    let mut at = start;
    loop {
        at += memchr::memchr(b'"', &text[at..])?;
        let slashes = text[start..at].iter().rev().take_while(|byte| **byte == b'\\').count();
        if slashes % 2 == 0 {
            return Some((&text[start..at], &text[at + 1..]));
        }
        at += 1;
    }
}

/// Reports whether every quote is closed. A truncated line may contain an unclosed quote.
fn has_all_quotes(mut rest: &[u8]) -> bool {
    while let Some((_, after)) = quoted(rest) {
        rest = after;
    }
    memchr::memchr(b'"', rest).is_none()
}

pub(super) fn value(text: &[u8]) -> Cow<'_, [u8]> {
    if text == b"-" { Cow::default() } else { unescaped(text) }
}

/// Removes the escapes of servers: `\"` and `\\` (Apache), `\x22` (nginx).
fn unescaped(text: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr::memchr(b'\\', text) else { return Cow::Borrowed(text) };
    let mut out = text[..first].to_vec();
    let mut rest = &text[first..];
    while let [byte, more @ ..] = rest {
        rest = match (byte, more) {
            (b'\\', [b'x', high, low, more @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                out.push(digit(high).unwrap_or(0) << 4 | digit(low).unwrap_or(0));
                more
            }
            (b'\\', [escaped @ (b'"' | b'\\'), more @ ..]) => {
                out.push(*escaped);
                more
            }
            (byte, more) => {
                out.push(*byte);
                more
            }
        };
    }
    Cow::Owned(out)
}

/// Connection types. Every line in the log of an AWS load balancer begins with one of them.
const ALB_KINDS: [&[u8]; 6] = [b"http", b"https", b"h2", b"grpcs", b"ws", b"wss"];

/// Reports whether a line begins like the lines of AWS load balancers, such as `https
/// 2018-07-02T22:23:00.186641Z app/name/50dc6c495c0c9188 …`.
pub(super) fn begins_like_alb(line: &[u8]) -> bool {
    let mut words = line.splitn(4, |byte| *byte == b' ');
    words.next().is_some_and(|kind| ALB_KINDS.contains(&kind))
        && words.next().is_some_and(|moment| rfc3339(moment).is_some())
        && words.next().is_some_and(|balancer| balancer.starts_with(b"app/"))
}

/// Parses `kind time balancer client:port target:port … "METHOD URL HTTP/x" "agent" …`.
pub(super) fn read_alb(line: &[u8]) -> Option<LoggedRequest<'_>> {
    let mut words = line.splitn(5, |byte| *byte == b' ');
    if !words.next().is_some_and(|kind| ALB_KINDS.contains(&kind)) {
        return None;
    }
    let time = rfc3339(words.next()?);
    let client = words.nth(1)?;
    let behind = words.next()?;
    let status = status(behind.split(|byte| *byte == b' ').nth(4));
    let (request, rest) = quoted(behind)?;
    // An unreadable request is logged as `- http://example.com:80- -`.
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

pub(super) fn status(word: Option<&[u8]>) -> Option<u16> {
    let digits = word.filter(|word| word.len() == 3)?;
    number(digits).and_then(|number| u16::try_from(number).ok())
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LoggedRequest<'a> {
    /// Host with port; `None` if the log does not contain hosts, empty if the request had no host.
    pub(crate) host: Option<Cow<'a, [u8]>>,
    /// Name of the site that responded, if the line may be from robotsd's own log.
    pub(crate) site: Option<Cow<'a, [u8]>>,
    pub(crate) address: Cow<'a, [u8]>,
    /// Seconds since 1970.
    pub(crate) time: Option<i64>,
    pub(crate) method: Cow<'a, [u8]>,
    pub(crate) target: Cow<'a, [u8]>,
    pub(crate) status: Option<u16>,
    /// Empty if the line has no referer, or the referer `-`.
    pub(crate) referer: Cow<'a, [u8]>,
    pub(crate) agent: Cow<'a, [u8]>,
}

impl LoggedRequest<'_> {
    /// Returns the method, or an empty string if it is not valid UTF-8.
    pub(crate) fn method(&self) -> &str {
        std::str::from_utf8(&self.method).unwrap_or_default()
    }

    /// Reports whether the response was a page. Images, scripts and other assets are not pages. If
    /// the log has no statuses, every request counts as successful.
    pub(crate) fn got_page(&self) -> bool {
        *self.method == *b"GET" && !RateLimit::is_for_asset(&self.target) && self.status.is_none_or(is_page)
    }

    pub(super) fn into_owned(self) -> LoggedRequest<'static> {
        fn owned(value: Cow<'_, [u8]>) -> Cow<'static, [u8]> {
            Cow::Owned(value.into_owned())
        }
        LoggedRequest {
            host: self.host.map(owned),
            site: self.site.map(owned),
            address: owned(self.address),
            time: self.time,
            method: owned(self.method),
            target: owned(self.target),
            status: self.status,
            referer: owned(self.referer),
            agent: owned(self.agent),
        }
    }
}

/// Parses `10/Oct/2000:13:55:36 -0700`.
fn clf_time(text: &[u8]) -> Option<i64> {
    const MONTHS: [&[u8]; 12] =
        [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
    let day = number(text.get(..2)?)?;
    let month = MONTHS.iter().position(|name| text.get(3..6) == Some(*name))?;
    let year = number(text.get(7..11)?)?;
    let clock = clock(text.get(12..20)?)?;
    Some(days(year, month as i64 + 1, day) * 86_400 + clock - zone(&text[20..]))
}

/// Parses `2000-10-10T13:55:36.123+02:00`; a space may replace the `T`.
pub(super) fn rfc3339(text: &[u8]) -> Option<i64> {
    let (year, month, day) = (number(text.get(..4)?)?, number(text.get(5..7)?)?, number(text.get(8..10)?)?);
    let clock = clock(text.get(11..19)?)?;
    (1..=12).contains(&month).then(|| days(year, month, day) * 86_400 + clock - zone(&text[19..]))
}

pub(super) fn any_time(text: &[u8]) -> Option<i64> {
    let of_number = || {
        let text =
            std::str::from_utf8(text).ok().filter(|text| text.starts_with(|first: char| first.is_ascii_digit()))?;
        numbered_time(text.parse().ok()?)
    };
    rfc3339(text).or_else(|| clf_time(text)).or_else(of_number)
}

/// Converts a number of seconds, milliseconds, microseconds or nanoseconds since 1970 into seconds.
pub(super) fn numbered_time(number: f64) -> Option<i64> {
    let units = [1.0, 1e3, 1e6, 1e9];
    units.iter().map(|unit| number / unit).find(|seconds| *seconds < 1e11).map(|seconds| seconds as i64)
}

/// Parses `13:55:36` into seconds.
fn clock(text: &[u8]) -> Option<i64> {
    let [h1, h2, b':', m1, m2, b':', s1, s2] = text else { return None };
    Some(number(&[*h1, *h2])? * 3600 + number(&[*m1, *m2])? * 60 + number(&[*s1, *s2])?)
}

/// Returns the offset of the time zone at the end of a time, in seconds. `text` may begin with
/// fractional seconds.
fn zone(text: &[u8]) -> i64 {
    let at = text.iter().position(|byte| matches!(byte, b'+' | b'-'));
    at.and_then(|at| offset(&text[at..])).unwrap_or(0)
}

/// Parses `+0200` or `+02:00` into seconds.
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

/// Returns the number of days from 1970-01-01 to a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // The calculation uses years that begin in March. The leap day is then the last day of a year.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}
