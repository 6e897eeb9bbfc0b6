//! Which trailer fields cross the proxy.
//!
//! A trailer field comes after everything that was decided by the head. So one that frames, routes, authenticates, or says
//! how the content is to be read is dropped (RFC 9110, section 6.5.1), as are those that end at each hop, and those that only
//! a proxy may send.

use http::HeaderMap;
use http::header::HeaderName;

use crate::edge::request::fields;

/// A section with as many fields is dropped: what has to be said so late is little.
const FIELDS: usize = 64;

/// The trailers of a request that go further; none where there are none.
pub(crate) fn allowed_in_request(trailers: HeaderMap) -> Option<HeaderMap> {
    allowed(trailers, |name| !fields::is_made_up(name))
}

/// The trailers of a response that go further; none where there are none.
pub(crate) fn allowed_in_response(trailers: HeaderMap) -> Option<HeaderMap> {
    allowed(trailers, |_| true)
}

fn allowed(mut trailers: HeaderMap, is_further_allowed: impl Fn(&str) -> bool) -> Option<HeaderMap> {
    if trailers.len() > FIELDS {
        return None;
    }
    let is_allowed = |name: &HeaderName| !is_of_head(name.as_str()) && is_further_allowed(name.as_str());
    let dropped: Vec<HeaderName> = trailers.keys().filter(|name| !is_allowed(name)).cloned().collect();
    for name in dropped {
        trailers.remove(name);
    }
    (!trailers.is_empty()).then_some(trailers)
}

/// Whether a field has its meaning in a head only.
fn is_of_head(name: &str) -> bool {
    // All that describe the content: its type, coding, length, place, policy.
    name.starts_with("content-")
        || name.starts_with("access-control-")
        || OF_HEAD.binary_search(&name).is_ok()
        || fields::is_hop_by_hop(name)
}

/// Framing, routing, request modifiers, authentication, control data, caching and cookies; in order.
const OF_HEAD: &[&str] = &[
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
    use http::HeaderValue;

    use super::*;

    fn kept(allowed: fn(HeaderMap) -> Option<HeaderMap>, names: &[&'static str]) -> Vec<String> {
        let mut trailers = HeaderMap::new();
        for name in names {
            trailers.append(*name, HeaderValue::from_static("1"));
        }
        allowed(trailers).iter().flat_map(HeaderMap::keys).map(ToString::to_string).collect()
    }

    #[test]
    fn rfc_9110_6_5_1_what_belongs_in_a_head_is_no_trailer() {
        assert!(OF_HEAD.is_sorted());
        for name in OF_HEAD.iter().chain(&[
            "content-length",
            "content-type",
            "content-encoding",
            "content-range",
            "content-security-policy",
            "transfer-encoding",
            "connection",
            "te",
            "trailer",
            "upgrade",
            "keep-alive",
            "proxy-authorization",
        ]) {
            assert!(kept(allowed_in_request, &[name]).is_empty(), "{name}");
            assert!(kept(allowed_in_response, &[name]).is_empty(), "{name}");
        }
        let names = ["grpc-status", "grpc-message", "server-timing", "digest", "x-checksum"];
        assert_eq!(kept(allowed_in_request, &names), names);
        assert_eq!(kept(allowed_in_response, &names), names);
    }

    #[test]
    fn a_client_makes_nothing_up_in_trailers_either() {
        for name in
            ["robots-verdict", "x-forwarded-host", "x_real_ip", "forwarded", "cf-connecting-ip", "x-original-url"]
        {
            assert!(kept(allowed_in_request, &[name]).is_empty(), "{name}");
        }
    }

    #[test]
    fn a_section_is_bounded() {
        let mut trailers = HeaderMap::new();
        for at in 0..=FIELDS {
            trailers.append(HeaderName::try_from(format!("x-{at}")).unwrap(), HeaderValue::from_static("1"));
        }
        assert!(allowed_in_response(trailers).is_none());
    }
}
