//! Decides which trailer fields are forwarded.
//!
//! Trailers arrive after the head has been checked. Therefore, fields that affect framing, routing,
//! authentication or the interpretation of the content are dropped (RFC 9110, section 6.5.1).
//! Hop-by-hop fields and fields that only a proxy may send are dropped as well.
//!
//! Trailers are forwarded only from HTTP/2 to HTTP/2. So trailers that arrive over HTTP/1.1 are
//! dropped, and robotsd sends no trailers over HTTP/1.1.

use http::HeaderMap;

use super::fields;

/// Maximum number of trailer fields. A larger trailer section is dropped as a whole.
const FIELDS: usize = 64;

/// A function that reports whether a field may be a trailer: [`of_request`] or [`of_response`].
pub(crate) type MayTrail = fn(&str) -> bool;

/// Removes the fields that may not be trailers. Returns `None` if no field remains.
pub(crate) fn allowed(mut trailers: HeaderMap, may_trail: MayTrail) -> Option<HeaderMap> {
    if trailers.len() > FIELDS {
        return None;
    }
    fields::remove(&mut trailers, |name| !may_trail(name.as_str()));
    (!trailers.is_empty()).then_some(trailers)
}

pub(crate) fn of_request(name: &str) -> bool {
    of_response(name) && !fields::is_removed_unless_trusted(name)
}

pub(crate) fn of_response(name: &str) -> bool {
    // Fields with these prefixes describe the content (type, coding, length, location) or restrict
    // who may read it.
    !(name.starts_with("content-")
        || name.starts_with("access-control-")
        || HEAD_ONLY.binary_search(&name).is_ok()
        || fields::is_hop_by_hop(name))
}

/// Names of fields that may be only in a head: fields for framing, routing, request modifiers,
/// authentication, control data, caching and cookies. Sorted.
const HEAD_ONLY: &[&str] = &[
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authentication-info",
    "authorization",
    "cache-control",
    "clear-site-data",
    "cookie",
    "date",
    "expect",
    "expires",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "location",
    "max-forwards",
    "origin",
    "pragma",
    "range",
    "referer",
    "refresh",
    "retry-after",
    "set-cookie",
    "strict-transport-security",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "x-forwarded-for",
    "x-request-id",
];

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn kept(may_trail: MayTrail, names: &[&'static str]) -> Vec<String> {
        let mut trailers = HeaderMap::new();
        for name in names {
            trailers.append(*name, HeaderValue::from_static("1"));
        }
        allowed(trailers, may_trail).iter().flat_map(HeaderMap::keys).map(ToString::to_string).collect()
    }

    #[test]
    fn rfc_9110_6_5_1_fields_that_belong_in_a_head_are_removed_from_trailers() {
        assert!(HEAD_ONLY.is_sorted());
        let others = "content-length content-type content-encoding content-range content-security-policy \
            transfer-encoding connection te trailer upgrade keep-alive proxy-authorization";
        for name in HEAD_ONLY.iter().copied().chain(others.split(' ')) {
            assert!(kept(of_request, &[name]).is_empty(), "{name}");
            assert!(kept(of_response, &[name]).is_empty(), "{name}");
        }
        let names = ["grpc-status", "grpc-message", "server-timing", "digest", "x-checksum"];
        assert_eq!(kept(of_request, &names), names);
        assert_eq!(kept(of_response, &names), names);
    }

    #[test]
    fn forged_fields_are_removed_from_request_trailers() {
        for name in
            ["robots-verdict", "x-forwarded-host", "x_real_ip", "forwarded", "cf-connecting-ip", "x-original-url"]
        {
            assert!(kept(of_request, &[name]).is_empty(), "{name}");
        }
    }

    #[test]
    fn a_trailer_section_with_too_many_fields_is_rejected() {
        let mut trailers = HeaderMap::new();
        for at in 0..=FIELDS {
            trailers.append(HeaderName::try_from(format!("x-{at}")).unwrap(), HeaderValue::from_static("1"));
        }
        assert!(allowed(trailers, of_response).is_none());
    }
}
