//! Access logs of an AWS application load balancer.

use std::borrow::Cow;

use tower_robots::rules::Authority;

use super::logged_request::LoggedRequest;
use super::{clf, time};

/// Kinds of connections, which begin a line.
const KINDS: [&[u8]; 6] = [b"http", b"https", b"h2", b"grpcs", b"ws", b"wss"];

/// Whether a line begins as one of a load balancer: `https 2018-07-02T22:23:00.186641Z app/name/50dc6c495c0c9188 …`
pub(super) fn begins(line: &[u8]) -> bool {
    let mut words = line.splitn(4, |octet| *octet == b' ');
    words.next().is_some_and(|kind| KINDS.contains(&kind))
        && words.next().is_some_and(|moment| time::rfc3339(moment).is_some())
        && words.next().is_some_and(|balancer| balancer.starts_with(b"app/"))
}

/// `kind time balancer client:port target:port … "METHOD URL HTTP/x" "agent" …`
pub(super) fn read(line: &[u8]) -> Option<LoggedRequest<'_>> {
    let mut words = line.splitn(5, |octet| *octet == b' ');
    if !words.next().is_some_and(|kind| KINDS.contains(&kind)) {
        return None;
    }
    let time = time::rfc3339(words.next()?);
    let client = words.nth(1)?;
    let (request, rest) = clf::quoted(words.next()?)?;
    // A request that could not be read is `- http://example.com:80- -`.
    let (method, url) = clf::request_line(request).filter(|(method, _)| *method != b"-")?;
    let (agent, _) = clf::quoted(rest)?;
    let (host, target) = match Authority::of_url(&url) {
        None => (None, url),
        Some((_, authority, path)) => {
            let host = authority.host().to_vec();
            let target = if path.starts_with(b"/") { path.to_vec() } else { [b"/", path].concat() };
            (Some(Cow::Owned(host)), Cow::Owned(target))
        }
    };
    Some(LoggedRequest {
        host,
        address: Cow::Borrowed(&client[..memchr::memrchr(b':', client).unwrap_or(client.len())]),
        time,
        method: Cow::Borrowed(method),
        target,
        referer: Cow::default(),
        agent: clf::value(agent),
    })
}
