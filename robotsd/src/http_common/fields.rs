//! Decides which header fields robotsd forwards.
//!
//! Hop-by-hop fields are removed in both directions before robotsd adds its own fields. If
//! hop-by-hop fields were removed later, `Connection: Robots-Verdict` from a client would remove
//! robotsd's own `Robots-Verdict`. Fields that only a proxy may send are removed from clients'
//! requests, and `edge::request::trusted` adds robotsd's fields with these names.

use http::header::{CONNECTION, CONTENT_LENGTH, COOKIE, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use tower_robots::internals::HOP_BY_HOP;

pub(crate) const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
pub(crate) const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
pub(crate) const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// The kind of sender of a request. The sender determines which fields the request may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    Anyone,
    TrustedProxy,
}

/// Iterates over the items of a list field, which may have several lines.
pub(crate) fn listed(fields: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &[u8]> {
    let lines = fields.get_all(name).into_iter();
    lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b',')).map(<[u8]>::trim_ascii)
}

/// Parses the value of a `Content-Length`. Returns `None` if the value is not a number, or is
/// greater than `i64::MAX`.
pub(crate) fn length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    // `str::parse` needs UTF-8, accepts a sign, and takes four times as long.
    let mut number: u64 = 0;
    for byte in value {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number = number.checked_mul(10)?.checked_add(digit)?;
    }
    Some(number).filter(|number| i64::try_from(*number).is_ok())
}

/// Returns the length of a body according to the head; `None` if the head declares no length.
pub(crate) fn content_length(fields: &HeaderMap) -> Option<u64> {
    fields.get(CONTENT_LENGTH).and_then(|said| length(said.as_bytes()))
}

/// Joins repeated `Content-Length` fields into one. Returns an error if a value is not valid, or if
/// the values differ.
pub(crate) fn unify_length(fields: &mut HeaderMap) -> Result<(), &'static str> {
    // A repeated length is valid if all values are identical (RFC 9112, section 6.3). hyper has
    // joined the values if the response has a body, and keeps them separate if it has none.
    let length = {
        let mut said = listed(fields, CONTENT_LENGTH);
        let Some(first) = said.next() else { return Ok(()) };
        length(first).filter(|_| said.all(|other| other == first))
    };
    fields.insert(CONTENT_LENGTH, length.ok_or("invalid Content-Length")?.into());
    Ok(())
}

/// Reports whether a body is chunked. Returns an error for any transfer coding other than a single
/// `chunked`, because robotsd supports no other coding. A request with another coding would be
/// forwarded with the wrong framing, which makes request smuggling possible. A response with
/// another coding would be forwarded as if the encoded bytes were the content.
pub(crate) fn is_chunked(fields: &HeaderMap) -> Result<bool, &'static str> {
    let mut codings = fields.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(false),
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(true),
        _ => Err("the transfer coding is not supported"),
    }
}

pub(crate) fn clean_request(fields: &mut HeaderMap, sender: Sender) {
    remove_named_in_connection(fields);
    remove(fields, |name| {
        let name = name.as_str();
        is_hop_by_hop(name) || is_forged(name) || is_of_proxies(name, sender)
    });
}

/// Removes hop-by-hop fields from a proxy's decision request. Keeps fields about the original
/// request even if `Connection` lists them.
///
/// A proxy may forward its client's `Connection` field to robotsd. If that field could remove
/// fields from the decision request, the client could hide the original request. Fields about the
/// original request can be kept, because a decision request is not forwarded.
pub(crate) fn clean_question(fields: &mut HeaderMap) {
    remove(fields, |name| is_hop_by_hop(name.as_str()));
    fields.remove("robots-verdict");
}

/// Removes the fields that belong to one connection only (RFC 9110, section 7.6.1).
pub(crate) fn remove_hop_by_hop(fields: &mut HeaderMap) {
    // Most responses have no hop-by-hop fields. Without a `Connection` field, there is also no list
    // of other fields to remove.
    if fields.keys().any(|name| is_hop_by_hop(name.as_str())) {
        remove_named_in_connection(fields);
        remove(fields, |name| is_hop_by_hop(name.as_str()));
    }
}

/// Removes a field in all spellings that map to the same CGI variable.
pub(crate) fn remove_spellings(fields: &mut HeaderMap, known: &HeaderName) {
    remove(fields, |name| is_spelling_of(name.as_str(), known.as_str()));
}

/// Removes the fields that `Connection` lists. Looks up each item once: a client can list tens of
/// thousands of names, and comparing each of them with each field would take milliseconds.
fn remove_named_in_connection(fields: &mut HeaderMap) {
    if fields.keys().all(|name| name != CONNECTION) {
        return;
    }
    let lines: Vec<HeaderValue> = fields.get_all(CONNECTION).iter().cloned().collect();
    for option in lines.iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b',')) {
        match std::str::from_utf8(option.trim_ascii()) {
            Ok(name) if !is_end_to_end(name) => drop(fields.remove(name)),
            _ => {}
        }
    }
}

/// Removes the fields that `is_removed` selects. The names are collected first, because `fields`
/// cannot be changed while it is iterated. Usually only a few fields are removed, or none.
pub(super) fn remove(fields: &mut HeaderMap, is_removed: impl Fn(&HeaderName) -> bool) {
    let removed: Vec<HeaderName> = fields.keys().filter(|name| is_removed(name)).cloned().collect();
    for name in removed {
        fields.remove(name);
    }
}

/// Joins the separate cookie fields of HTTP/2 into the single field of HTTP/1.1 (RFC 9113, section
/// 8.2.3).
pub(crate) fn join_cookies(fields: &mut HeaderMap) {
    if fields.get_all(COOKIE).iter().nth(1).is_none() {
        return;
    }
    let pieces: Vec<&[u8]> = fields.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if let Ok(joined) = HeaderValue::from_bytes(&pieces.join(&b"; "[..])) {
        fields.insert(COOKIE, joined);
    }
}

pub(crate) fn is_hop_by_hop(name: &str) -> bool {
    // Checking the first letter is fast, and excludes most names that are not hop-by-hop.
    matches!(name.as_bytes().first(), Some(b'c' | b'h' | b'k' | b'p' | b't' | b'u')) && HOP_BY_HOP.contains(&name)
}

/// Reports whether a field is kept even if `Connection` lists it. `Host` and `Content-Length` are
/// kept because they have already been checked. `User-Agent` is kept because a client must not be
/// able to hide it from the rules.
fn is_end_to_end(name: &str) -> bool {
    ["host", "content-length", "user-agent"].iter().any(|kept| name.eq_ignore_ascii_case(kept))
}

/// Reports whether only a proxy may send this field, or whether its name is another spelling of a
/// [framing](FRAMING) or hop-by-hop field.
///
/// Applications that read fields from the CGI or WSGI environment cannot distinguish `X_Real_IP`
/// from `X-Real-IP`. Therefore, all spellings that map to the same CGI variable count as the same
/// name.
fn is_forged(name: &str) -> bool {
    let is = |known: &str| is_spelling_of(name, known);
    let begins =
        |known: &str| name.get(..known.len()).is_some_and(|start| start.bytes().map(as_variable).eq(known.bytes()));
    let is_vouching = || PROXY_ONLY.iter().any(|known| is(known));
    let is_respelled = || {
        name.bytes().any(|byte| byte != as_variable(byte)) && FRAMING.iter().chain(&HOP_BY_HOP).any(|known| is(known))
    };
    // The first letter of a name is the same in every spelling, and comparing it excludes nearly
    // all fields of real requests.
    match name.as_bytes() {
        [b'x', ..] => ["x-forwarded-", "x-original-"].iter().any(|known| begins(known)) || is_vouching(),
        [b'f' | b'p' | b'r', ..] => is_vouching() || is_respelled(),
        [b'c' | b'h' | b'k' | b't' | b'u', ..] => is_respelled(),
        _ => false,
    }
}

/// Reports whether a field is removed from requests that do not come from a trusted proxy.
pub(crate) fn is_removed_unless_trusted(name: &str) -> bool {
    is_forged(name) || is_of_proxies(name, Sender::Anyone)
}

/// Reports whether a field contains a client address and must be removed from requests of this
/// sender. Trusted proxies may send such a field only in its usual spelling, because other
/// spellings may come from the client.
fn is_of_proxies(name: &str, sender: Sender) -> bool {
    let is_its_own = |known: &str| sender == Sender::TrustedProxy && name == known;
    CLIENT_ADDRESS.iter().any(|known| is_spelling_of(name, known) && !is_its_own(known))
}

fn is_spelling_of(name: &str, known: &str) -> bool {
    name.len() == known.len() && name.bytes().map(as_variable).eq(known.bytes().map(as_variable))
}

/// Normalizes a byte of a field name as CGI does in the names of variables, but with `-` instead of
/// `_`.
fn as_variable(byte: u8) -> u8 {
    if byte.is_ascii_alphanumeric() { byte } else { b'-' }
}

/// Fields that a CDN uses to send the client's address to the origin server. robotsd does not read
/// these fields, but applications do.
const CLIENT_ADDRESS: &[&str] = &["cf-connecting-ip", "true-client-ip"];

/// Other fields that only a proxy may send. `Proxy` is included because CGI maps it to the variable
/// HTTP_PROXY, which sets the proxy of HTTP clients (httpoxy, CVE-2016-5385).
const PROXY_ONLY: &[&str] = &[
    "forwarded",
    "proxy",
    "robots-verdict",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-forwarded",
    "x-real-ip",
    "x-request-id",
    "x-rewrite-url",
];

/// Fields that robotsd checks only in their usual spelling. Other spellings that map to the same
/// CGI variable could deceive applications.
const FRAMING: &[&str] = &["content-length", "host"];

/// Fields that tell an upstream who the client is and how the client reached robotsd. These fields
/// are added only when a request is forwarded, because robotsd itself does not read them.
#[derive(Clone, Debug)]
pub(crate) struct ForwardedValues {
    pub(crate) forwarded_for: HeaderValue,
    pub(crate) scheme: &'static str,
    /// The host that the client requested, if a trusted proxy has reported it. If no proxy has
    /// reported a host, the host is determined when the request is forwarded.
    pub(crate) host: Option<HeaderValue>,
}

impl ForwardedValues {
    /// Inserts the fields into a request. The caller must have removed the fields with these names
    /// that came from the client.
    pub(crate) fn insert(&self, fields: &mut HeaderMap) {
        fields.insert(X_FORWARDED_FOR, self.forwarded_for.clone());
        fields.insert(X_FORWARDED_PROTO, HeaderValue::from_static(self.scheme));
        if let Some(host) = &self.host {
            fields.insert(X_FORWARDED_HOST, host.clone());
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        write_field(out, &X_FORWARDED_FOR, self.forwarded_for.as_bytes());
        write_field(out, &X_FORWARDED_PROTO, self.scheme.as_bytes());
        if let Some(host) = &self.host {
            write_field(out, &X_FORWARDED_HOST, host.as_bytes());
        }
    }
}

/// Writes the fields of a head, the forwarded fields, and the empty line that ends the head, in the
/// format of HTTP/1.1 (RFC 9112, section 5).
pub(crate) fn write(out: &mut Vec<u8>, fields: &HeaderMap, forwarded: Option<&ForwardedValues>) {
    for (name, value) in fields {
        write_field(out, name, value.as_bytes());
    }
    if let Some(forwarded) = forwarded {
        forwarded.write(out);
    }
    out.extend_from_slice(b"\r\n");
}

pub(crate) fn write_field(out: &mut Vec<u8>, name: &HeaderName, value: &[u8]) {
    out.extend_from_slice(name.as_str().as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(fields: &[(&'static str, &'static str)]) -> Vec<String> {
        cleaned_from(Sender::Anyone, fields)
    }

    fn cleaned_from(sender: Sender, fields: &[(&'static str, &'static str)]) -> Vec<String> {
        let mut map = HeaderMap::new();
        for (name, value) in fields {
            map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_static(value));
        }
        clean_request(&mut map, sender);
        let mut kept: Vec<_> = map.keys().map(ToString::to_string).collect();
        kept.sort();
        kept
    }

    #[test]
    fn rfc_9110_7_6_1_hop_by_hop_fields_and_fields_named_by_connection_are_removed() {
        let kept = cleaned(&[
            ("Connection", "X-Secret, keep-alive, x-secret, connection"),
            ("connection", "Robots-Verdict ,, close, X-Absent, "),
            ("X-Secret", "1"),
            ("Keep-Alive", "timeout=9"),
            ("Proxy-Connection", "x"),
            ("Proxy-Authorization", "x"),
            ("TE", "trailers, deflate"),
            ("Trailer", "X"),
            ("Transfer-Encoding", "chunked"),
            ("Upgrade", "h2c"),
            ("HTTP2-Settings", "x"),
            ("Accept", "*/*"),
        ]);
        assert_eq!(kept, ["accept"]);
    }

    #[test]
    fn ours_a_connection_field_cannot_remove_host_content_length_or_user_agent() {
        let kept = cleaned(&[
            ("Connection", "host, content-length, user-agent, cookie"),
            ("Host", "h"),
            ("Content-Length", "1"),
            ("User-Agent", "FooBot"),
            ("Cookie", "a=b"),
        ]);
        assert_eq!(kept, ["content-length", "host", "user-agent"]);
    }

    #[test]
    fn forged_fields_are_removed_however_they_are_spelled() {
        let names = "Robots-Verdict rOBOTS_vERDICT Robots.Verdict X-Forwarded-For X_Forwarded_For \
            X-Forwarded-Uri X-Forwarded-Method X-Original-URI X-Original-URL X-Real-IP X_Real-IP Forwarded \
            X-Request-Id Proxy pROXY CF-Connecting-IP cf_connecting_ip True-Client-IP True_Client-IP \
            Transfer_Encoding Content_Length";
        for name in names.split(' ') {
            assert!(cleaned(&[(name, "forged")]).is_empty(), "{name}");
        }
        for name in
            ["X-Forward", "X-Requested-With", "Content-Type", "my_field", "X-Originals", "Content-Length", "Proxies"]
        {
            assert_eq!(cleaned(&[(name, "1")]).len(), 1, "{name}");
        }
    }

    #[test]
    fn a_trusted_proxy_may_name_the_client_in_its_own_field() {
        let fields = [
            ("CF-Connecting-IP", "192.0.2.1"),
            ("CF_Connecting_IP", "6.6.6.6"),
            ("True-Client-IP", "192.0.2.1"),
            ("True_Client_IP", "6.6.6.6"),
            ("Proxy", "http://6.6.6.6/"),
            ("X-Real-IP", "6.6.6.6"),
        ];
        assert_eq!(cleaned_from(Sender::TrustedProxy, &fields), ["cf-connecting-ip", "true-client-ip"]);
        assert!(cleaned(&fields).is_empty());
    }

    #[test]
    fn a_decision_request_keeps_the_fields_that_the_proxy_sets() {
        let mut map = HeaderMap::new();
        for name in ["x-original-uri", "x-forwarded-for", "keep-alive", "robots-verdict"] {
            map.append(HeaderName::from_static(name), HeaderValue::from_static("1"));
        }
        // A proxy may forward its client's `Connection` field unchanged.
        map.append(CONNECTION, HeaderValue::from_static("close, X-Original-URI, X-Forwarded-For"));
        clean_question(&mut map);
        assert_eq!(map.keys().collect::<Vec<_>>(), ["x-original-uri", "x-forwarded-for"]);
    }

    #[test]
    fn rfc_9113_8_2_3_cookies_are_joined() {
        let mut map = HeaderMap::new();
        for value in ["a=b", "c=d"] {
            map.append(COOKIE, HeaderValue::from_static(value));
        }
        join_cookies(&mut map);
        assert_eq!(map.get_all(COOKIE).iter().collect::<Vec<_>>(), ["a=b; c=d"]);
    }
}
