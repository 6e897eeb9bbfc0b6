//! Reads the original request from the question of a proxy.
//!
//! The preset stands in the path of the question, never in its query: Caddy appends the client's query to that of the
//! question.

use std::net::IpAddr;

use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use tower_robots::rules::Authority;

use super::preset::Preset;
use super::preset_fields::{AddressField, PresetFields, TargetField, label};
use super::question_error::{QuestionError, QuestionFault};

/// The request that a proxy asks about.
#[derive(Debug)]
pub(super) struct OriginalRequest<'a> {
    pub(super) method: Method,
    pub(super) target: &'a [u8],
    pub(super) host: Option<&'a [u8]>,
}

impl Preset {
    /// Reads the original request from the method of a question, the part of its target below the preset, and its fields.
    pub(super) fn read<'a>(
        self,
        method: &Method,
        below: &'a str,
        fields: &'a HeaderMap,
    ) -> Result<OriginalRequest<'a>, QuestionError> {
        let fields_read = PresetFields::of(self);
        let target = match fields_read.target {
            TargetField::Below => match below.as_bytes() {
                [b'/', ..] => below.as_bytes(),
                _ => return Err(QuestionError::new(self, QuestionFault::Missing, "the path below the preset")),
            },
            TargetField::Field(name) => {
                let target = self.only(fields, &name, label(&name))?.as_bytes();
                if !is_target(target) {
                    return Err(QuestionError::new(self, QuestionFault::Unreadable, label(&name)));
                }
                target
            }
        };
        let method = match fields_read.method {
            None => method.clone(),
            Some(name) => {
                let named = self.only(fields, &name, label(&name))?;
                Method::from_bytes(named.as_bytes())
                    .map_err(|_| QuestionError::new(self, QuestionFault::Unreadable, label(&name)))?
            }
        };
        let host = match fields_read.host {
            None => host_of_url(target),
            Some(name) if fields.contains_key(&name) => self.host(fields, &name)?,
            Some(_) => None,
        };
        Ok(OriginalRequest { method, target, host })
    }

    /// The client's address as the proxy saw it, if the question names exactly one.
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

    /// The one value of a field: which of two is meant is not known.
    fn only<'a>(
        self,
        fields: &'a HeaderMap,
        name: &HeaderName,
        label: &'static str,
    ) -> Result<&'a HeaderValue, QuestionError> {
        let mut values = fields.get_all(name).iter();
        match (values.next(), values.next()) {
            (Some(value), None) if !value.is_empty() => Ok(value),
            (Some(_), Some(_)) => Err(QuestionError::new(self, QuestionFault::Repeated, label)),
            _ => Err(QuestionError::new(self, QuestionFault::Missing, label)),
        }
    }

    /// The host that a field names. A client may leave it out (HTTP/1.0) or send an invalid one, which must not bypass the
    /// rules: such a request belongs to the site of all other hosts. No proxy repeats the field.
    fn host<'a>(self, fields: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a [u8]>, QuestionError> {
        let mut values = fields.get_all(name).iter();
        match (values.next(), values.next()) {
            (_, Some(_)) => Err(QuestionError::new(self, QuestionFault::Repeated, label(name))),
            (host, None) => Ok(host.map(HeaderValue::as_bytes).filter(|host| !host.is_empty())),
        }
    }
}

/// Whether a client may have sent this target: no HTTP parser accepts a control character there.
pub(super) fn is_target(target: &[u8]) -> bool {
    let is_target = matches!(target, [b'/', ..] | b"*") || is_http_url(target);
    is_target && !target.iter().any(u8::is_ascii_control)
}

/// The authority of an `http` or `https` URL.
fn authority(url: &[u8]) -> Option<Authority<'_>> {
    let (scheme, authority, _) = Authority::of_url(url)?;
    (scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https")).then_some(authority)
}

fn is_http_url(url: &[u8]) -> bool {
    authority(url).is_some()
}

/// The host and port of a URL.
fn host_of_url(url: &[u8]) -> Option<&[u8]> {
    authority(url).map(|authority| authority.host_and_port()).filter(|host| !host.is_empty())
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

    /// Method, target and host, or the fault.
    fn read(preset: Preset, below: &str, map: &HeaderMap) -> Result<(String, Vec<u8>, Option<String>), QuestionFault> {
        let asked = preset.read(&Method::GET, below, map).map_err(|error| error.fault())?;
        Ok((asked.method.to_string(), asked.target.to_vec(), asked.host.map(|host| host.escape_ascii().to_string())))
    }

    fn asked(method: &str, target: &[u8], host: Option<&str>) -> (String, Vec<u8>, Option<String>) {
        (method.to_owned(), target.to_vec(), host.map(str::to_owned))
    }

    #[test]
    fn every_preset_reads_its_own_places_and_no_others() {
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
            // Without the fields of the preset there is nothing to go by, whatever else there is.
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
                assert_eq!(read(preset, "/below", &rest), Err(QuestionFault::Repeated), "{preset:?} {name}");
            }
        }
        assert_eq!(read(Preset::Envoy, "", &map), Err(QuestionFault::Missing));
        assert_eq!(read(Preset::Envoy, "?x", &map), Err(QuestionFault::Missing));
    }

    #[test]
    fn what_is_no_target_method_or_host_says_nothing() {
        let nginx = |uri: &[u8], method: &[u8], host: &[u8]| {
            read(Preset::Nginx, "", &fields(&[("x-original-uri", uri), ("x-original-method", method), ("host", host)]))
        };
        assert_eq!(nginx(b"HTTP://h.test", b"GET", b"h"), Ok(asked("GET", b"HTTP://h.test", Some("h"))));
        assert_eq!(nginx(b"/", b"GET", b""), Ok(asked("GET", b"/", None)));
        assert_eq!(nginx(b"*", b"OPTIONS", b"h"), Ok(asked("OPTIONS", b"*", Some("h"))));
        for uri in [&b"private/"[..], b"ftp://h/private/", b"/a\tb", b" /a", b"//a\t"] {
            assert_eq!(nginx(uri, b"GET", b"h"), Err(QuestionFault::Unreadable), "{}", uri.escape_ascii());
        }
        assert_eq!(nginx(b"", b"GET", b"h"), Err(QuestionFault::Missing));
        assert_eq!(nginx(b"/", b"GE T", b"h"), Err(QuestionFault::Unreadable));
        let ingress = |url: &[u8]| {
            read(Preset::IngressNginx, "", &fields(&[("x-original-url", url), ("x-original-method", b"GET")]))
        };
        assert_eq!(ingress(b"http://u@h.test?q").unwrap().2.as_deref(), Some("h.test"));
        assert_eq!(ingress(b"http:///private/"), Ok(asked("GET", b"http:///private/", None)));
        assert_eq!(ingress(b"h.test/private/"), Err(QuestionFault::Unreadable));
    }

    #[test]
    fn an_address_that_could_be_another_is_none() {
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
