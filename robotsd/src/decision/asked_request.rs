//! Extracts the original request from a proxy's decision request (see the parent module).
//!
//! The preset is in the path of the decision request, never in its query, because Caddy appends the
//! client's query to the query of the decision request.

use std::net::IpAddr;

use http::header::{HeaderMap, HeaderName, HeaderValue, REFERER, USER_AGENT};
use http::{Method, Request};
use tower_robots::rules::Authority;

use super::preset::{AddressField, Preset, PresetFields, TargetField, label};
use super::question_error::{QuestionError, QuestionFault};
use crate::http_common::{AskedAbout, ClientRequest};
use crate::target_url::is_http;

/// The client's request that a decision request is about.
#[derive(Debug)]
pub(super) struct AskedRequest<'a> {
    pub(super) method: Method,
    pub(super) target: &'a [u8],
    /// Targets in the decision request in addition to `target`. A client may be able to make the
    /// proxy send several targets. All targets are evaluated, and the strictest decision counts.
    pub(super) further_targets: Vec<&'a [u8]>,
    pub(super) host: Option<&'a [u8]>,
    /// The host in the target. `Some` if the target is an absolute URL although the preset takes
    /// the host from a header field.
    pub(super) host_in_target: Option<&'a [u8]>,
    /// An error in the decision request that does not prevent a decision. If there is such an
    /// error, all original requests that the decision request could be about are evaluated, and the
    /// strictest decision counts.
    pub(super) odd: Option<QuestionError>,
}

impl Preset {
    /// Extracts the original request from a decision request: from its method, from its fields, and
    /// from the text after the preset in its target.
    ///
    /// Returns an error only if the decision request lacks the original method or target. A
    /// malformed value does not prevent a decision, because the client may have sent it. If there
    /// are several targets, the rules are applied to each of them. An invalid or repeated method is
    /// replaced by [`STRICTEST_METHOD`].
    pub(super) fn read<'a>(
        self,
        method: &Method,
        below: &'a str,
        fields: &'a HeaderMap,
    ) -> Result<AskedRequest<'a>, QuestionError> {
        let fields_read = PresetFields::of(self);
        let mut odd = None;
        let mut note = |fault, name: &HeaderName| {
            odd.get_or_insert(QuestionError::new(self, fault, label(name)));
        };
        let (target, further_targets) = match &fields_read.target {
            TargetField::Below if below.starts_with('/') => (below.as_bytes(), Vec::new()),
            TargetField::Below => return Err(QuestionError::missing(self, "the path after the name of the preset")),
            TargetField::Field(name) => {
                let mut values = lines(fields, name);
                let target = values.next().ok_or_else(|| QuestionError::missing(self, label(name)))?;
                let further: Vec<_> = values.collect();
                if !further.is_empty() {
                    note(QuestionFault::Repeated, name);
                } else if !is_target(target) {
                    note(QuestionFault::Unreadable, name);
                }
                (target, further)
            }
        };
        let method = match &fields_read.method {
            None => method.clone(),
            Some(name) => {
                let mut values = lines(fields, name);
                let named = values.next().ok_or_else(|| QuestionError::missing(self, label(name)))?;
                match (values.next(), Method::from_bytes(named)) {
                    (None, Ok(method)) => method,
                    (further, _) => {
                        let is_repeated = further.is_some();
                        note(if is_repeated { QuestionFault::Repeated } else { QuestionFault::Unreadable }, name);
                        STRICTEST_METHOD
                    }
                }
            }
        };
        let (host, host_in_target) = match &fields_read.host {
            None => (host_field_of_url(target), None),
            Some(name) => {
                let mut values = lines(fields, name);
                let host = values.next();
                if values.next().is_some() {
                    note(QuestionFault::Repeated, name);
                }
                (host, host_of_url(target))
            }
        };
        Ok(AskedRequest { method, target, further_targets, host, host_in_target, odd })
    }

    /// Returns the client's address; `None` if the decision request contains no address or more
    /// than one.
    pub(super) fn address(self, fields: &HeaderMap) -> Option<IpAddr> {
        let only = |name| {
            let mut values = fields.get_all(name).iter();
            values.next().filter(|_| values.next().is_none()).map(HeaderValue::as_bytes)
        };
        let address = match PresetFields::of(self).address {
            AddressField::Whole(name) => only(name)?,
            AddressField::Last(name) => only(name)?.rsplit(|byte| *byte == b',').next()?.trim_ascii(),
        };
        std::str::from_utf8(address).ok()?.parse().ok()
    }
}

impl AskedRequest<'_> {
    /// Returns the original request for the access log. The `Referer`, the `User-Agent` and the
    /// client's address come from the decision request.
    pub(super) fn for_log(&self, question: &Request<()>) -> Box<AskedAbout> {
        let field = |name| question.headers().get(name).cloned();
        // The target may be a URL that the proxy has built from scheme, host and path.
        let path = Authority::of_url(self.target).filter(|_| !self.target.starts_with(b"/"));
        let target = path.map_or(self.target, |(.., path)| path);
        Box::new(AskedAbout {
            method: self.method.clone(),
            target: String::from_utf8_lossy(target).into_owned(),
            host: self.host.and_then(|host| HeaderValue::from_bytes(host).ok()),
            referer: field(REFERER),
            user_agent: field(USER_AGENT),
            address: ClientRequest::peer_of(question.extensions()).map(|peer| peer.address),
        })
    }
}

/// Method to assume if the method in a decision request is invalid or repeated. Every rule applies
/// to GET requests, whereas the rules in the group `*` do not apply to most other methods.
pub(super) const STRICTEST_METHOD: Method = Method::GET;

fn lines<'a>(fields: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    fields.get_all(name).iter().map(HeaderValue::as_bytes).filter(|value| !value.is_empty())
}

/// Reports whether a client could have sent this target. Clients cannot send targets with control
/// characters, because HTTP parsers reject such targets.
pub(super) fn is_target(target: &[u8]) -> bool {
    let is_target = matches!(target, [b'/', ..] | b"*") || Authority::of_url(target).is_some_and(|url| is_http(url.0));
    is_target && !target.iter().any(u8::is_ascii_control)
}

pub(super) fn host_of_url(url: &[u8]) -> Option<&[u8]> {
    let url = Some(url).filter(|url| !url.starts_with(b"/"))?;
    Authority::of_url(url).map(|(_, authority, _)| authority.host_and_port)
}

/// Returns the value of the `Host` field from a URL that a proxy has built from scheme, `Host`
/// field and target, as nginx does. The value of the `Host` field begins after `://` and ends at
/// the next slash, because this field may contain any byte except a slash.
fn host_field_of_url(url: &[u8]) -> Option<&[u8]> {
    let behind = &url[memchr::memmem::find(url, b"://")? + 3..];
    Some(&behind[..memchr::memchr(b'/', behind).unwrap_or(behind.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(fields: &[(&'static str, &[u8])]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in fields {
            map.append(HeaderName::from_static(name), HeaderValue::from_bytes(value).unwrap());
        }
        map
    }

    fn read(preset: Preset, below: &str, map: &HeaderMap) -> Result<(String, Vec<u8>, Option<String>), QuestionFault> {
        let asked = preset.read(&Method::GET, below, map).map_err(|error| error.fault)?;
        Ok((asked.method.to_string(), asked.target.to_vec(), asked.host.map(|host| host.escape_ascii().to_string())))
    }

    fn odd(preset: Preset, map: &HeaderMap) -> Option<QuestionFault> {
        preset.read(&Method::POST, "/below", map).unwrap().odd.map(|odd| odd.fault)
    }

    fn asked(method: &str, target: &[u8], host: Option<&str>) -> (String, Vec<u8>, Option<String>) {
        (method.to_owned(), target.to_vec(), host.map(str::to_owned))
    }

    #[test]
    fn every_preset_reads_its_own_header_fields_and_no_others() {
        let all: &[(&str, &[u8])] = &[
            ("host", b"host.test"),
            ("x-original-uri", b"/original-uri\xFF"),
            ("x-original-method", b"PUT"),
            ("x-original-url", b"https://url.test:8443/original-url?q"),
            ("x-forwarded-uri", b"/forwarded-uri"),
            ("x-forwarded-method", b"POST"),
            ("x-forwarded-host", b"forwarded.test"),
            ("x-real-ip", b"192.0.2.1"),
            ("x-forwarded-for", b"198.51.100.9, 192.0.2.2"),
        ];
        let map = fields(all);
        let [first, second]: [IpAddr; 2] = ["192.0.2.1", "192.0.2.2"].map(|address| address.parse().unwrap());
        for (preset, want, address) in [
            (Preset::Nginx, asked("PUT", b"/original-uri\xFF", Some("host.test")), first),
            (Preset::Haproxy, asked("PUT", b"/original-uri\xFF", Some("host.test")), first),
            (Preset::Varnish, asked("PUT", b"/original-uri\xFF", Some("host.test")), first),
            (Preset::IngressNginx, asked("PUT", b"https://url.test:8443/original-url?q", Some("url.test:8443")), first),
            (Preset::Caddy, asked("POST", b"/forwarded-uri", Some("forwarded.test")), second),
            (Preset::Traefik, asked("POST", b"/forwarded-uri", Some("forwarded.test")), second),
            (Preset::Envoy, asked("GET", b"/below?q", Some("host.test")), second),
        ] {
            assert_eq!(read(preset, "/below?q", &map), Ok(want), "{preset:?}");
            assert_eq!(preset.address(&map), Some(address), "{preset:?}");
            // If the preset's own field is missing, the field of another preset must not be used.
            let fields_read = PresetFields::of(preset);
            let own = [match fields_read.target {
                TargetField::Field(name) => Some(name),
                TargetField::Below => None,
            }];
            for name in own.into_iter().chain([fields_read.method]).flatten() {
                let mut rest = map.clone();
                let value = rest.remove(&name).unwrap();
                assert_eq!(read(preset, "/below", &rest), Err(QuestionFault::Missing), "{preset:?} {name}");
                rest.append(&name, value.clone());
                rest.append(&name, value);
                assert_eq!(odd(preset, &rest), Some(QuestionFault::Repeated), "{preset:?} {name}");
            }
        }
        assert_eq!(read(Preset::Envoy, "", &map), Err(QuestionFault::Missing));
        assert_eq!(read(Preset::Envoy, "?x", &map), Err(QuestionFault::Missing));
    }

    #[test]
    fn a_malformed_or_repeated_target_or_method_is_read_in_the_strictest_way() {
        let question = |uri: &[u8], method: &[u8], host: &[u8]| {
            fields(&[("x-original-uri", uri), ("x-original-method", method), ("host", host)])
        };
        let nginx = |uri: &[u8], method: &[u8], host: &[u8]| read(Preset::Nginx, "", &question(uri, method, host));
        assert_eq!(nginx(b"HTTP://h.test", b"GET", b"h"), Ok(asked("GET", b"HTTP://h.test", Some("h"))));
        assert_eq!(nginx(b"/", b"GET", b""), Ok(asked("GET", b"/", None)));
        assert_eq!(nginx(b"*", b"OPTIONS", b"h"), Ok(asked("OPTIONS", b"*", Some("h"))));
        for uri in [&b"private/"[..], b"ftp://h/private/", b"/a\tb", b" /a", b"//a\t"] {
            assert_eq!(nginx(uri, b"POST", b"h"), Ok(asked("POST", uri, Some("h"))), "{}", uri.escape_ascii());
            assert_eq!(odd(Preset::Nginx, &question(uri, b"POST", b"h")), Some(QuestionFault::Unreadable));
        }
        assert_eq!(nginx(b"", b"GET", b"h"), Err(QuestionFault::Missing));
        assert_eq!(nginx(b"/", b"PO ST", b"h"), Ok(asked("GET", b"/", Some("h"))));
        assert_eq!(odd(Preset::Nginx, &question(b"/", b"PO ST", b"h")), Some(QuestionFault::Unreadable));
        let mut twice = question(b"/", b"POST", b"h");
        twice.append("x-original-uri", HeaderValue::from_static("/private/"));
        twice.append("x-original-method", HeaderValue::from_static("POST"));
        let asked_twice = Preset::Nginx.read(&Method::POST, "", &twice).unwrap();
        assert_eq!((asked_twice.method, asked_twice.further_targets), (Method::GET, vec![&b"/private/"[..]]));
    }

    #[test]
    fn the_host_of_an_original_url_ends_at_the_first_slash() {
        let ingress = |url: &[u8]| {
            let read =
                read(Preset::IngressNginx, "", &fields(&[("x-original-url", url), ("x-original-method", b"GET")]));
            read.unwrap().2
        };
        for (url, host) in [
            (&b"http://h.test/private/"[..], Some("h.test")),
            (b"http://h.test:?/private/", Some("h.test:?")),
            (b"http://u@h.test#/private/?a=b://c/", Some("u@h.test#")),
            (b"http://h.test?q", Some("h.test?q")),
            (b"http:///private/", Some("")),
            (b"h.test/private/", None),
        ] {
            assert_eq!(ingress(url).as_deref(), host, "{}", url.escape_ascii());
        }
        // A URL from a client may contain a user name (RFC 3986).
        assert_eq!(host_of_url(b"ftp://u@h.test:80?x/y"), Some(&b"h.test:80"[..]));
        assert_eq!(host_of_url(b"/go?u=http://other.test/"), None);
    }

    #[test]
    fn an_ambiguous_or_invalid_client_address_is_ignored() {
        for values in [&[&b"192.0.2.1"[..], b"192.0.2.2"][..], &[b"192.0.2.1, "], &[b"unknown"], &[b""], &[]] {
            let mut map = HeaderMap::new();
            for value in values {
                map.append("x-forwarded-for", HeaderValue::from_bytes(value).unwrap());
                map.append("x-real-ip", HeaderValue::from_bytes(value).unwrap());
            }
            for preset in Preset::IN_PATHS {
                assert_eq!(preset.address(&map), None, "{preset:?} {values:?}");
            }
        }
    }
}
