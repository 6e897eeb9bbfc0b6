//! Which trailer fields cross the proxy.
//!
//! A trailer field comes after everything that was decided by the head. So one that frames, routes, authenticates, or says
//! how the content is to be read is dropped (RFC 9110, section 6.5.1), as are those that end at each hop, and those that only
//! a proxy may send.
//!
//! HTTP/1.1 has them between peers of which one [announces](AnnouncedTrailers) them; HTTP/2 has them as they come.

use http::header::{HeaderName, TRAILER};
use http::{HeaderMap, HeaderValue};

use super::fields;

/// A section with as many fields is dropped: there is little that has to be said so late.
const FIELDS: usize = 64;

/// Whether a field may be a trailer of a message: [`of_request`] or [`of_response`].
pub(crate) type MayTrail = fn(&str) -> bool;

/// The trailer fields that the head of a message announces, as far as they go further (RFC 9110, section 6.6.2).
#[derive(Clone, Debug)]
pub(crate) struct AnnouncedTrailers(Box<[HeaderName]>);

impl AnnouncedTrailers {
    /// The trailers that the head of a message announces; none if it announces nothing.
    pub(crate) fn in_head(head: &HeaderMap, may_trail: MayTrail) -> Option<Self> {
        let mut names = Vec::new();
        for name in fields::listed(head, TRAILER) {
            let name = HeaderName::from_bytes(name).ok().filter(|name| may_trail(name.as_str()));
            names.extend(name.filter(|name| !names.contains(name)));
            if names.len() > FIELDS {
                return None;
            }
        }
        (!names.is_empty()).then(|| Self(names.into()))
    }

    /// The field that announces them.
    pub(crate) fn to_value(&self) -> HeaderValue {
        let names: Vec<&[u8]> = self.0.iter().map(|name| name.as_str().as_bytes()).collect();
        // Names of fields are no others than values may hold.
        HeaderValue::from_bytes(&names.join(&b", "[..])).unwrap_or_else(|_| HeaderValue::from_static(""))
    }

    /// Those of the trailers that were announced; none where there are none.
    pub(crate) fn select(&self, mut trailers: HeaderMap) -> Option<HeaderMap> {
        fields::remove(&mut trailers, |name| !self.0.contains(name));
        (!trailers.is_empty()).then_some(trailers)
    }
}

/// The trailers of a message that go further; none where there are none.
pub(crate) fn allowed(mut trailers: HeaderMap, may_trail: MayTrail) -> Option<HeaderMap> {
    if trailers.len() > FIELDS {
        return None;
    }
    fields::remove(&mut trailers, |name| !may_trail(name.as_str()));
    (!trailers.is_empty()).then_some(trailers)
}

/// Whether a field may be a trailer of a request.
pub(crate) fn of_request(name: &str) -> bool {
    of_response(name) && !fields::is_made_up(name)
}

/// Whether a field has a meaning behind a body.
pub(crate) fn of_response(name: &str) -> bool {
    // All that begin so describe the content, or who may read it: its type, coding, length, place, policy.
    !(name.starts_with("content-")
        || name.starts_with("access-control-")
        || OF_HEAD.binary_search(&name).is_ok()
        || fields::is_hop_by_hop(name))
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

    use super::*;

    fn kept(may_trail: MayTrail, names: &[&'static str]) -> Vec<String> {
        let mut trailers = HeaderMap::new();
        for name in names {
            trailers.append(*name, HeaderValue::from_static("1"));
        }
        allowed(trailers, may_trail).iter().flat_map(HeaderMap::keys).map(ToString::to_string).collect()
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
            assert!(kept(of_request, &[name]).is_empty(), "{name}");
            assert!(kept(of_response, &[name]).is_empty(), "{name}");
        }
        let names = ["grpc-status", "grpc-message", "server-timing", "digest", "x-checksum"];
        assert_eq!(kept(of_request, &names), names);
        assert_eq!(kept(of_response, &names), names);
    }

    #[test]
    fn a_client_makes_nothing_up_in_trailers_either() {
        for name in
            ["robots-verdict", "x-forwarded-host", "x_real_ip", "forwarded", "cf-connecting-ip", "x-original-url"]
        {
            assert!(kept(of_request, &[name]).is_empty(), "{name}");
        }
    }

    #[test]
    fn what_is_announced_is_what_goes_further() {
        let mut head = HeaderMap::new();
        for value in ["X-Checksum , content-length,\t,x-checksum, Robots-Verdict", "Server-Timing, b\u{e9}"] {
            head.append(TRAILER, HeaderValue::from_str(value).unwrap());
        }
        let announced = AnnouncedTrailers::in_head(&head, of_request).unwrap();
        assert_eq!(announced.to_value(), "x-checksum, server-timing");
        let mut trailers = HeaderMap::new();
        trailers.append("x-other", HeaderValue::from_static("1"));
        assert!(announced.select(trailers.clone()).is_none());
        trailers.append("server-timing", HeaderValue::from_static("2"));
        trailers.append("server-timing", HeaderValue::from_static("3"));
        let selected = announced.select(trailers).unwrap();
        assert_eq!(selected.get_all("server-timing").iter().collect::<Vec<_>>(), ["2", "3"]);
        assert_eq!(selected.len(), 2);

        let want = "x-checksum, robots-verdict, server-timing";
        assert_eq!(AnnouncedTrailers::in_head(&head, of_response).unwrap().to_value(), want);
        head.insert(TRAILER, HeaderValue::from_static("content-length, te"));
        assert!(AnnouncedTrailers::in_head(&head, of_response).is_none());
        let many: Vec<String> = (0..=FIELDS).map(|at| format!("x-{at}")).collect();
        head.insert(TRAILER, HeaderValue::from_str(&many.join(",")).unwrap());
        assert!(AnnouncedTrailers::in_head(&head, of_response).is_none());
    }

    #[test]
    fn a_section_is_bounded() {
        let mut trailers = HeaderMap::new();
        for at in 0..=FIELDS {
            trailers.append(HeaderName::try_from(format!("x-{at}")).unwrap(), HeaderValue::from_static("1"));
        }
        assert!(allowed(trailers, of_response).is_none());
    }
}
