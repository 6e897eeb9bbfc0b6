//! Parses `X-Forwarded-For` and `Forwarded` (RFC 7239). Finds the client's address and the proxies
//! between the client and this server, the nearest proxy first.
//!
//! Each proxy appends an entry on the right, so the rightmost entries come from trusted proxies,
//! while clients can forge the leftmost entries. Therefore both fields are parsed from right to
//! left, and an entry never affects the entries on its right. For example, if a client sends an
//! unclosed quote, the entry of the next proxy is still parsed correctly.

use std::net::{IpAddr, SocketAddr};

use http::HeaderValue;
use http::header::{FORWARDED, HeaderMap, HeaderName};

/// The route of a request from the client to this server, as reported by trusted proxies.
#[derive(Debug)]
pub struct ForwardedWay {
    /// The addresses from the peer to the client; never empty. The last address is the client's:
    /// the first untrusted address or, if all addresses are trusted, the last valid one. The port
    /// is 0 if the field contains no port.
    pub hops: Vec<SocketAddr>,
    /// The scheme of the client's request: from the client's entry in `Forwarded`, or the last
    /// value of `X-Forwarded-Proto`.
    pub scheme: Option<Vec<u8>>,
    /// The host of the client's request: from the client's entry in `Forwarded`, or the last value
    /// of `X-Forwarded-Host`.
    pub host: Option<Vec<u8>>,
}

/// Maximum number of entries that are parsed. Real requests pass through far fewer trusted proxies.
const MAX_HOPS: usize = 32;

impl ForwardedWay {
    /// Parses the fields of a request from a trusted peer.
    ///
    /// Uses `X-Forwarded-*` if there is an `X-Forwarded-For`, and `Forwarded` otherwise, but never
    /// both. Most proxies set only `X-Forwarded-For` and forward the client's own `Forwarded`
    /// unchanged, so a client could forge `Forwarded`.
    pub fn read(fields: &HeaderMap, peer: SocketAddr, trusts: impl Fn(IpAddr) -> bool) -> Self {
        if !fields.contains_key(X_FORWARDED_FOR) && fields.contains_key(FORWARDED) {
            let (hops, client) = trace_hops(peer, forwarded(fields), trusts);
            let (scheme, host) = client.map_or((None, None), |hop| (hop.scheme, hop.host));
            return Self { hops, scheme, host };
        }
        let (hops, _) = trace_hops(peer, x_forwarded_for(fields), trusts);
        Self { hops, scheme: last_entry(fields, &X_FORWARDED_PROTO), host: last_entry(fields, &X_FORWARDED_HOST) }
    }

    /// Returns the client's address according to the fields, as if every proxy were trusted; `None`
    /// if there is no field, or if its last entry is invalid.
    pub(super) fn leftmost(fields: &HeaderMap) -> Option<IpAddr> {
        if ![X_FORWARDED_FOR, FORWARDED].iter().any(|name| fields.contains_key(name)) {
            return None;
        }
        let way = Self::read(fields, SocketAddr::from(([0; 4], 0)), |_| true);
        (way.hops.len() > 1).then(|| way.client().ip())
    }

    /// Returns the address of the client.
    pub fn client(&self) -> SocketAddr {
        self.hops[self.hops.len() - 1]
    }
}

/// Returns the addresses from the peer to the client, and the entry that contains the client's
/// address.
fn trace_hops(
    peer: SocketAddr,
    hops: impl Iterator<Item = Option<Hop>>,
    trusts: impl Fn(IpAddr) -> bool,
) -> (Vec<SocketAddr>, Option<Hop>) {
    let mut way = vec![peer];
    let mut last = None;
    // Parsing ends at an invalid entry, because this entry and the entries on its left may be
    // forged.
    for hop in hops.map_while(|hop| hop).take(MAX_HOPS) {
        let is_trusted = trusts(hop.address.ip());
        way.push(hop.address);
        last = Some(hop);
        if !is_trusted {
            break;
        }
    }
    (way, last)
}

/// Returns the entry that the nearest proxy added to a comma-separated field: the last one.
fn last_entry(fields: &HeaderMap, name: &HeaderName) -> Option<Vec<u8>> {
    let lines = fields.get_all(name).iter().rev();
    let mut entries = lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
    entries.next().map(|entry| entry.trim_ascii().to_vec())
}

struct Hop {
    /// Address of the client or proxy that sent the request to the proxy that wrote this entry.
    address: SocketAddr,
    scheme: Option<Vec<u8>>,
    host: Option<Vec<u8>>,
}

/// Returns the entries of `X-Forwarded-For` from right to left. An entry that is not an address is
/// `None`.
fn x_forwarded_for(fields: &HeaderMap) -> impl Iterator<Item = Option<Hop>> {
    let lines = fields.get_all(X_FORWARDED_FOR).iter().rev().map(HeaderValue::as_bytes);
    let entries = lines.flat_map(|line| line.rsplit(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    // Empty list elements are ignored (RFC 9110, section 5.6.1).
    let entries = entries.filter(|entry| !entry.is_empty());
    entries.map(|entry| Some(Hop { address: node(entry)?, scheme: None, host: None }))
}

/// Returns the elements of `Forwarded` from right to left. An element that is malformed or has no
/// address is `None`.
fn forwarded(fields: &HeaderMap) -> impl Iterator<Item = Option<Hop>> {
    let lines = fields.get_all(FORWARDED).iter().rev().map(HeaderValue::as_bytes);
    let elements = lines.flat_map(|line| {
        let mut rest = Some(line);
        std::iter::from_fn(move || {
            let (before, element) = split_last(rest?, b',');
            rest = before;
            Some(element.trim_ascii())
        })
    });
    elements.filter(|element| !element.is_empty()).map(hop)
}

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Parses an element of `Forwarded`: pairs separated by semicolons, without repeated names (RFC
/// 7239, section 4).
fn hop(element: &[u8]) -> Option<Hop> {
    let (mut address, mut scheme, mut host) = (None, None, None);
    let mut rest = Some(element);
    while let Some(pairs) = rest {
        let (before, pair) = split_last(pairs, b';');
        rest = before;
        let pair = pair.trim_ascii();
        if pair.is_empty() {
            continue;
        }
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        let value = unquoted(&pair[equals + 1..])?;
        let place = match pair[..equals].to_ascii_lowercase().as_slice() {
            b"for" => &mut address,
            b"proto" => &mut scheme,
            b"host" => &mut host,
            _ => continue,
        };
        if place.replace(value).is_some() {
            return None;
        }
    }
    Some(Hop { address: node(&address?)?, scheme, host })
}

/// Splits `text` at the last delimiter outside quotes. If there is no such delimiter, returns
/// `None` and the whole of `text`.
fn split_last(text: &[u8], delimiter: u8) -> (Option<&[u8]>, &[u8]) {
    let mut is_quoted = false;
    for (at, byte) in text.iter().enumerate().rev() {
        let is_escaped = || text[..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1;
        if *byte == b'"' && !is_escaped() {
            is_quoted = !is_quoted;
        } else if *byte == delimiter && !is_quoted {
            return (Some(&text[..at]), &text[at + 1..]);
        }
    }
    (None, text)
}

/// Returns an unquoted token unchanged, and a quoted string without its quotes and escapes (RFC
/// 9110, section 5.6.4).
fn unquoted(value: &[u8]) -> Option<Vec<u8>> {
    let Some(inner) = value.strip_prefix(b"\"") else {
        let is_token = !value.is_empty() && value.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'"');
        return is_token.then(|| value.to_vec());
    };
    let mut text = Vec::with_capacity(inner.len());
    let mut bytes = inner.strip_suffix(b"\"")?.iter();
    while let Some(byte) = bytes.next() {
        text.push(match byte {
            b'\\' => *bytes.next()?,
            b'"' => return None,
            byte => *byte,
        });
    }
    Some(text)
}

/// Parses an address with or without a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`,
/// `[2001:db8::1]:80`. Returns `None` for `unknown` and for an obfuscated name such as `_name`.
fn node(text: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let (address, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            (IpAddr::V6(address.parse().ok()?), port.strip_prefix(':').or(port.is_empty().then_some("0"))?)
        }
        None => match text.parse() {
            Ok(address) => (address, "0"),
            Err(_) => {
                let (address, port) = text.split_once(':')?;
                (IpAddr::V4(address.parse().ok()?), port)
            }
        },
    };
    // The port may also be an obfuscated identifier, such as `_port` (RFC 7239, section 6.3).
    let port = if port.starts_with('_') { 0 } else { port.parse().ok()? };
    Some(SocketAddr::new(address.to_canonical(), port))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fields(name: &str, lines: &[&str]) -> HeaderMap {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        lines.iter().map(|line| (name.clone(), HeaderValue::from_bytes(line.as_bytes()).unwrap())).collect()
    }

    /// Returns the addresses up to the first invalid entry.
    fn by_x_forwarded_for(lines: &[&str]) -> Vec<String> {
        let hops = x_forwarded_for(&fields("x-forwarded-for", lines)).map_while(|hop| hop).collect::<Vec<_>>();
        hops.iter().map(|hop| hop.address.to_string()).collect()
    }

    fn by_forwarded(lines: &[&str]) -> Vec<String> {
        let hops = forwarded(&fields("forwarded", lines)).map_while(|hop| hop).collect::<Vec<_>>();
        hops.iter().map(|hop| hop.address.to_string()).collect()
    }

    #[test]
    fn all_x_forwarded_for_lines_are_one_list_that_is_read_from_the_right() {
        assert_eq!(
            by_x_forwarded_for(&["192.0.2.1, 2001:db8::1", " 192.0.2.3:8080 ,[2001:db8::4]:443,,[2001:db8::5]", ","]),
            ["[2001:db8::5]:0", "[2001:db8::4]:443", "192.0.2.3:8080", "[2001:db8::1]:0", "192.0.2.1:0"]
        );
        assert_eq!(by_x_forwarded_for(&["::ffff:192.0.2.1"]), ["192.0.2.1:0"]);
    }

    #[test]
    fn scheme_and_host_come_from_the_nearest_proxy() {
        let mut all = fields("x-forwarded-for", &["192.0.2.1"]);
        all.extend(fields("x-forwarded-proto", &["http", "http , https"]));
        all.extend(fields("x-forwarded-host", &["a.test, b.test"]));
        let way = ForwardedWay::read(&all, SocketAddr::from(([192, 0, 2, 9], 0)), |_| true);
        assert_eq!((way.scheme.as_deref(), way.host.as_deref()), (Some(&b"https"[..]), Some(&b"b.test"[..])));
    }

    #[test]
    fn reading_x_forwarded_for_stops_at_an_entry_that_is_not_an_address() {
        let wrongs = "unknown | _hidden | 192.0.2 | 192.0.2.256 | 0300.0.2.1 | 192.0.2.1: | 192.0.2.1:65536 | \
            192.0.2.1:x | 192.0.2.1 192.0.2.2 | [192.0.2.1] | [2001:db8::1 | [2001:db8::1]x | \
            2001:db8::1%eth0 | a.test | \"192.0.2.1\" | 192.0.2.1;x | \u{e9}";
        for wrong in wrongs.split(" | ") {
            assert_eq!(by_x_forwarded_for(&[&format!("192.0.2.1, {wrong}, 192.0.2.9")]), ["192.0.2.9:0"], "{wrong}");
            assert_eq!(by_x_forwarded_for(&[wrong]), Vec::<String>::new(), "{wrong}");
        }
    }

    #[test]
    fn rfc_7239_4_elements_consist_of_name_value_pairs() {
        assert_eq!(
            by_forwarded(&[
                "for=192.0.2.43, For=\"[2001:db8:cafe::17]:4711\"",
                "proto=http;for=192.0.2.60;by=203.0.113.43 , FOR=\"192.0.2.7:_port\" ; host=\"a,b;for=1.1.1.1\"",
            ]),
            ["192.0.2.7:0", "192.0.2.60:0", "[2001:db8:cafe::17]:4711", "192.0.2.43:0"]
        );
        let said = fields("forwarded", &["for=192.0.2.1;proto=HTTPS;host=\"a\\.test:443\""]);
        let hop = forwarded(&said).next().unwrap().unwrap();
        assert_eq!(hop.scheme.as_deref(), Some(&b"HTTPS"[..]));
        assert_eq!(hop.host.as_deref(), Some(&b"a.test:443"[..]));
    }

    #[test]
    fn an_unclosed_quote_does_not_hide_later_elements() {
        for forged in ["for=\"x", "for=6.6.6.6;host=\"", "\"", "for=\"6.6.6.6\\", "\\\""] {
            let line = format!("{forged}, for=\"192.0.2.9\";host=\"a\"");
            assert_eq!(by_forwarded(&[&line]).first().map(String::as_str), Some("192.0.2.9:0"), "{forged}");
        }
    }

    proptest! {
        /// Checks that the parser first returns the entry that the proxy appended, regardless of
        /// the bytes that the client sent, and that the parser does not panic.
        #[test]
        fn the_entry_that_a_proxy_appends_is_read_first(
            sent in proptest::collection::vec(any::<u8>(), 0..200),
            shaped in "[for=:;,\"\\\\\\[\\]0-9a-f. ]{0,60}",
        ) {
            for sent in [sent, shaped.into_bytes()] {
                for (name, appended) in [
                    ("x-forwarded-for", &b", 192.0.2.9:4711"[..]),
                    ("forwarded", b", for=\"192.0.2.9:4711\";proto=https;host=\"a,b\""),
                ] {
                    let Ok(line) = HeaderValue::from_bytes(&[&sent, appended].concat()) else { continue };
                    let fields = HeaderMap::from_iter([(HeaderName::from_static(name), line)]);
                    let hops: Vec<_> =
                        if name == "forwarded" { forwarded(&fields).collect() } else { x_forwarded_for(&fields).collect() };
                    let first = hops[0].as_ref().map(|hop| hop.address.to_string());
                    prop_assert_eq!(first.as_deref(), Some("192.0.2.9:4711"));
                }
            }
        }
    }

    #[test]
    fn a_quoted_comma_from_a_proxy_does_not_start_an_element() {
        let line = "for=192.0.2.9;host=\"a\\\", for=6.6.6.6;x=\\\"\"";
        assert_eq!(by_forwarded(&[line]), ["192.0.2.9:0"]);
    }

    #[test]
    fn reading_forwarded_elements_stops_at_a_malformed_element() {
        let wrongs = "for=unknown | for=_x | proto=https | for | for= | for=192.0.2.1;for=192.0.2.2 | \
            for=\"192.0.2.1 | for=192.0.2.1\" | for=\"192.0.2.1\\\" | for=192.0.2.1 ;proto=a b | x";
        for wrong in wrongs.split(" | ") {
            assert_eq!(by_forwarded(&["for=192.0.2.1", wrong, "for=192.0.2.9"]), ["192.0.2.9:0"], "{wrong}");
        }
    }
}
