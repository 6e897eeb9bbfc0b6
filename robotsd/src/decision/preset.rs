//! Where each proxy says what the original request was.
//!
//! A preset stands in the path of the question, never in its query (Caddy appends the client's query to ours), and reads
//! its own fields only: nginx passes a client's own `X-Forwarded-Uri` through, so under its preset that field means
//! nothing.

use std::net::IpAddr;

use http::Method;
use http::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use tower_robots::rules::Authority;

use super::question_error::{QuestionError, QuestionFault};

/// A proxy whose way of asking is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preset {
    Nginx,
    Haproxy,
    Caddy,
    Traefik,
    Envoy,
    IngressNginx,
}

/// What a question is about.
#[derive(Debug)]
pub(super) struct OriginalRequest<'a> {
    pub(super) method: Method,
    pub(super) target: &'a [u8],
    pub(super) host: Option<&'a [u8]>,
}

/// Where a preset looks.
struct PresetFields {
    target: TargetField,
    /// None: the question has the original's method.
    method: Option<HeaderName>,
    /// None: in the target, where it is a whole URL.
    host: Option<HeaderName>,
    address: AddressField,
}

enum TargetField {
    /// What follows the preset in the question's own target.
    Below,
    Field(HeaderName),
}

enum AddressField {
    /// The field is the address.
    Whole(HeaderName),
    /// The last address of a list is the proxy's own knowledge; those before are its clients' word.
    Last(HeaderName),
}

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_METHOD: HeaderName = HeaderName::from_static("x-forwarded-method");
const X_FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
const X_ORIGINAL_METHOD: HeaderName = HeaderName::from_static("x-original-method");
const X_ORIGINAL_URI: HeaderName = HeaderName::from_static("x-original-uri");
const X_ORIGINAL_URL: HeaderName = HeaderName::from_static("x-original-url");
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

impl Preset {
    /// Every preset.
    pub(super) const ALL: [Self; 6] =
        [Self::IngressNginx, Self::Nginx, Self::Haproxy, Self::Caddy, Self::Traefik, Self::Envoy];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Caddy => "caddy",
            Self::Traefik => "traefik",
            Self::Envoy => "envoy",
            Self::IngressNginx => "ingress-nginx",
        }
    }

    /// The preset that a text begins with, and where what follows its name begins: nothing, a path or a query.
    pub(super) fn named(text: &str) -> Option<(Self, usize)> {
        Self::ALL.into_iter().find_map(|preset| {
            let below = text.strip_prefix(preset.as_str())?;
            let at = text.len() - below.len();
            matches!(below.as_bytes().first(), None | Some(b'/' | b'?')).then_some((preset, at))
        })
    }

    /// Reads what a question is about from its method, the part of its target below the preset, and its fields.
    pub(super) fn read<'a>(
        self,
        method: &Method,
        below: &'a str,
        fields: &'a HeaderMap,
    ) -> Result<OriginalRequest<'a>, QuestionError> {
        let fields_read = self.fields_read();
        let target = match fields_read.target {
            TargetField::Below => match below.as_bytes() {
                [b'/', ..] => below.as_bytes(),
                _ => return Err(QuestionError::new(self, QuestionFault::Missing, "the path below the preset")),
            },
            TargetField::Field(name) => {
                let target = self.only(fields, &name, label(&name))?.as_bytes();
                let is_target = matches!(target, [b'/', ..] | b"*") || is_http_url(target);
                // A control is nobody's honest target, and this one did not get past an HTTP parser as one.
                if !is_target || target.iter().any(u8::is_ascii_control) {
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

    /// The client's address as the proxy saw it, where the question has exactly one.
    pub(super) fn address(self, fields: &HeaderMap) -> Option<IpAddr> {
        let only = |name| {
            let mut values = fields.get_all(name).iter();
            values.next().filter(|_| values.next().is_none()).map(HeaderValue::as_bytes)
        };
        let address = match self.fields_read().address {
            AddressField::Whole(name) => only(name)?,
            AddressField::Last(name) => only(name)?.rsplit(|byte| *byte == b',').next()?.trim_ascii(),
        };
        std::str::from_utf8(address).ok()?.parse().ok()
    }

    const fn fields_read(self) -> PresetFields {
        match self {
            Self::Nginx | Self::Haproxy => PresetFields {
                target: TargetField::Field(X_ORIGINAL_URI),
                method: Some(X_ORIGINAL_METHOD),
                host: Some(HOST),
                address: AddressField::Whole(X_REAL_IP),
            },
            Self::IngressNginx => PresetFields {
                target: TargetField::Field(X_ORIGINAL_URL),
                method: Some(X_ORIGINAL_METHOD),
                host: None,
                address: AddressField::Whole(X_REAL_IP),
            },
            Self::Caddy | Self::Traefik => PresetFields {
                target: TargetField::Field(X_FORWARDED_URI),
                method: Some(X_FORWARDED_METHOD),
                host: Some(X_FORWARDED_HOST),
                address: AddressField::Last(X_FORWARDED_FOR),
            },
            Self::Envoy => PresetFields {
                target: TargetField::Below,
                method: None,
                host: Some(HOST),
                address: AddressField::Last(X_FORWARDED_FOR),
            },
        }
    }

    /// The one value of a field: two could be read either way, so they say nothing.
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

    /// The host a field names. A client may leave it out (HTTP/1.0) or write nonsense, which must not be a way round the
    /// rules: then the request is for the site of every other host. A proxy does not say it twice.
    fn host<'a>(self, fields: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a [u8]>, QuestionError> {
        let mut values = fields.get_all(name).iter();
        match (values.next(), values.next()) {
            (_, Some(_)) => Err(QuestionError::new(self, QuestionFault::Repeated, label(name))),
            (host, None) => Ok(host.map(HeaderValue::as_bytes).filter(|host| !host.is_empty())),
        }
    }
}

/// The name as people write it.
fn label(name: &HeaderName) -> &'static str {
    const LABELS: [(HeaderName, &str); 7] = [
        (HOST, "Host"),
        (X_FORWARDED_HOST, "X-Forwarded-Host"),
        (X_FORWARDED_METHOD, "X-Forwarded-Method"),
        (X_FORWARDED_URI, "X-Forwarded-Uri"),
        (X_ORIGINAL_METHOD, "X-Original-Method"),
        (X_ORIGINAL_URI, "X-Original-URI"),
        (X_ORIGINAL_URL, "X-Original-URL"),
    ];
    LABELS.iter().find(|(known, _)| known == name).map_or("a field", |(_, label)| label)
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
            (Preset::IngressNginx, asked("PUT", b"https://url.test:8443/original-url?q", Some("url.test:8443")), first),
            (Preset::Caddy, asked("POST", b"/forwarded-uri", Some("forwarded.test")), second),
            (Preset::Traefik, asked("POST", b"/forwarded-uri", Some("forwarded.test")), second),
            (Preset::Envoy, asked("GET", b"/below?q", Some("host.test")), second),
        ] {
            assert_eq!(read(preset, "/below?q", &map), Ok(want), "{preset:?}");
            assert_eq!(preset.address(&map), Some(address), "{preset:?}");
            // Without the fields of the preset there is nothing to go by, whatever else there is.
            let fields_read = preset.fields_read();
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
                map.append(X_FORWARDED_FOR, HeaderValue::from_bytes(value).unwrap());
                map.append(X_REAL_IP, HeaderValue::from_bytes(value).unwrap());
            }
            for preset in Preset::ALL {
                assert_eq!(preset.address(&map), None, "{preset:?} {values:?}");
            }
        }
    }

    #[test]
    fn a_preset_stands_alone_in_the_path() {
        assert_eq!(Preset::named("nginx"), Some((Preset::Nginx, 5)));
        assert_eq!(Preset::named("caddy?a=b"), Some((Preset::Caddy, 5)));
        assert_eq!(Preset::named("envoy//x"), Some((Preset::Envoy, 5)));
        for preset in Preset::ALL {
            assert_eq!(Preset::named(preset.as_str()).map(|(named, _)| named), Some(preset));
        }
        for name in ["", "nginx2", "apache/nginx", "Nginx", "envoy*"] {
            assert_eq!(Preset::named(name), None, "{name}");
        }
    }
}
