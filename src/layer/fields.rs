//! Classes of header fields that operators and applications cannot set, and a function that adds
//! `User-Agent` to the `Vary` field.
//!
//! The functions that take a name as a string expect the result of [`plain_name`], because some
//! servers do not distinguish `Content_Length` from `Content-Length`.

use http::header::{HeaderMap, HeaderName, HeaderValue, VARY};

/// Names of hop-by-hop fields (RFC 9110, section 7.6.1; RFC 2616, section 13.5.1). `Trailer` and
/// `TE` are in the list, because trailers are negotiated for each hop. `Proxy-*` fields are in the
/// list, because they are only for the next proxy.
pub const HOP_BY_HOP: [&str; 11] = [
    "connection",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Names of fields that only the server can set, because the values depend on the content or on the
/// request.
const CONTENT_FIELDS: [&str; 7] =
    ["content-encoding", "content-range", "content-type", "date", "set-cookie", "vary", "x-request-id"];

/// Names of the fields that tell caches how long to store a response. Some caches obey these fields
/// instead of `Cache-Control: no-store`.
const CACHE_FIELDS: [&str; 6] =
    ["age", "cache-control", "edge-control", "expires", "surrogate-control", "x-accel-expires"];

pub(super) const USER_AGENT_NAME: HeaderValue = HeaderValue::from_static("User-Agent");

/// Returns the name in lower case, with `_` and other punctuation replaced by `-`. Servers that
/// convert names to CGI variables do not distinguish punctuation characters.
pub fn plain_name(name: &HeaderName) -> String {
    name.as_str().replace(|char: char| !char.is_ascii_alphanumeric(), "-")
}

/// Reports whether a field describes the connection or the length of the message.
pub fn is_of_connection(name: &str) -> bool {
    HOP_BY_HOP.contains(&name) || name == "content-length"
}

/// Reports whether only the server can set a field, because the value depends on the content or on
/// the request.
pub fn is_of_content(name: &str) -> bool {
    CONTENT_FIELDS.contains(&name)
}

/// Reports whether the field tells caches how long to store a response. Returns `true` also for
/// variants of `Cache-Control` for certain caches, such as `CDN-Cache-Control`.
pub fn is_of_caches(name: &str) -> bool {
    CACHE_FIELDS.contains(&name) || name.ends_with("-cache-control")
}

/// Adds `User-Agent` to the `Vary` field. The result is always a single line, because some caches
/// read only one `Vary` line.
pub fn vary_by_agent(headers: &mut HeaderMap) {
    let varies = |value: &HeaderValue| {
        let mut names = value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        names.any(|name| name == b"*" || name.eq_ignore_ascii_case(b"user-agent"))
    };
    if headers.get_all(VARY).iter().any(varies) {
        return;
    }
    let lines = headers.get_all(VARY).iter().map(HeaderValue::as_bytes).filter(|line| !line.is_empty());
    let mut joined = lines.collect::<Vec<_>>().join(&b", "[..]);
    if joined.is_empty() {
        headers.insert(VARY, USER_AGENT_NAME);
        return;
    }
    joined.extend_from_slice(b", User-Agent");
    if let Ok(value) = HeaderValue::from_bytes(&joined) {
        headers.insert(VARY, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_names_are_compared_as_a_cgi_application_reads_them() {
        for (name, want) in [
            ("Content_Length", "connection"),
            ("proxy.connection", "connection"),
            ("HTTP2-Settings", "connection"),
            ("Set_Cookie", "content"),
            ("X-Request-Id", "content"),
            ("Cache_Control", "caches"),
            ("CDN_Cache-Control", "caches"),
            ("X_Accel-Expires", "caches"),
            ("Link", "none"),
            ("X-Robots-Tag", "none"),
            ("Content-Language", "none"),
        ] {
            let name = plain_name(&HeaderName::try_from(name).expect(name));
            let kinds = [is_of_connection(&name), is_of_content(&name), is_of_caches(&name)];
            let found = ["connection", "content", "caches"].into_iter().zip(kinds).find(|(_, is_one)| *is_one);
            assert_eq!(found.map_or("none", |(kind, _)| kind), want, "{name}");
            assert!(kinds.into_iter().filter(|is_one| *is_one).count() <= 1, "{name}");
        }
    }
}
