//! The presets for the supported proxies. A preset determines which fields of a decision request
//! are read. For example, nginx forwards an `X-Forwarded-Uri` that a client sent, so the preset for
//! nginx ignores that field.

use http::header::{HOST, HeaderName, HeaderValue};

use crate::http_common::fields::{X_FORWARDED_FOR, X_FORWARDED_HOST};
use crate::word_enum::word_enum;

word_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Preset {
        Nginx = "nginx",
        Haproxy = "haproxy",
        Caddy = "caddy",
        Traefik = "traefik",
        Envoy = "envoy",
        IngressNginx = "ingress-nginx",
        Varnish = "varnish",
        /// The preset for Envoy's decision requests that are gRPC messages. No path contains this
        /// preset.
        EnvoyGrpc = "envoy-grpc",
    }
}

impl Preset {
    /// The presets that may occur in the path of a decision request.
    pub(super) const IN_PATHS: [Self; 7] =
        [Self::IngressNginx, Self::Nginx, Self::Haproxy, Self::Caddy, Self::Traefik, Self::Envoy, Self::Varnish];

    /// Reports whether the proxy relays a refusal with any status. nginx relays only 403: it treats
    /// other statuses as a failure of robotsd and forwards the request. After a 403, nginx can
    /// fetch the refusal itself from `/-/refusal/`.
    pub(super) const fn relays_status(self) -> bool {
        !matches!(self, Self::Nginx | Self::IngressNginx)
    }

    /// Returns the preset at the beginning of `text`, and the byte offset after the preset. The
    /// text after the preset is empty, or begins with `/` or `?`.
    pub(super) fn named(text: &str) -> Option<(Self, usize)> {
        Self::IN_PATHS.into_iter().find_map(|preset| {
            let below = text.strip_prefix(preset.as_str())?;
            let at = text.len() - below.len();
            matches!(below.as_bytes().first(), None | Some(b'/' | b'?')).then_some((preset, at))
        })
    }
}

pub(super) struct PresetFields {
    pub(super) target: TargetField,
    /// The field with the original method; `None` if the method of the decision request is the
    /// original method.
    pub(super) method: Option<HeaderName>,
    /// The field with the host; `None` if the host is part of the target, which is an absolute URL.
    pub(super) host: Option<HeaderName>,
    pub(super) address: AddressField,
}

pub(super) enum TargetField {
    /// The original target is in the target of the decision request, after the preset.
    Below,
    Field(HeaderName),
}

pub(super) enum AddressField {
    Whole(HeaderName),
    /// The field contains a list of addresses. Only the last address is used, because the proxy has
    /// appended it. The addresses before it may come from the client.
    Last(HeaderName),
}

const X_FORWARDED_METHOD: HeaderName = HeaderName::from_static("x-forwarded-method");
const X_FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
pub(super) const X_ORIGINAL_METHOD: HeaderName = HeaderName::from_static("x-original-method");
pub(super) const X_ORIGINAL_URI: HeaderName = HeaderName::from_static("x-original-uri");
pub(super) const X_ORIGINAL_URL: HeaderName = HeaderName::from_static("x-original-url");
pub(super) const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

impl PresetFields {
    pub(super) const fn of(preset: Preset) -> Self {
        match preset {
            Preset::Nginx | Preset::Haproxy | Preset::Varnish => Self {
                target: TargetField::Field(X_ORIGINAL_URI),
                method: Some(X_ORIGINAL_METHOD),
                host: Some(HOST),
                address: AddressField::Whole(X_REAL_IP),
            },
            Preset::IngressNginx => Self {
                target: TargetField::Field(X_ORIGINAL_URL),
                method: Some(X_ORIGINAL_METHOD),
                host: None,
                address: AddressField::Whole(X_REAL_IP),
            },
            Preset::Caddy | Preset::Traefik => Self {
                target: TargetField::Field(X_FORWARDED_URI),
                method: Some(X_FORWARDED_METHOD),
                host: Some(X_FORWARDED_HOST),
                address: AddressField::Last(X_FORWARDED_FOR),
            },
            // `EnvoyGrpc` has no fields, because its decision requests are messages.
            Preset::Envoy | Preset::EnvoyGrpc => Self {
                target: TargetField::Below,
                method: None,
                host: Some(HOST),
                address: AddressField::Last(X_FORWARDED_FOR),
            },
        }
    }
}

pub(super) fn label(name: &HeaderName) -> &'static str {
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

/// Converts the value of a header field in a proxy's message. Invalid bytes are replaced. If fields
/// with invalid bytes were dropped instead, a crawler might not be recognised.
pub(super) fn value_of(bytes: &[u8]) -> HeaderValue {
    HeaderValue::from_bytes(bytes).unwrap_or_else(|_| {
        let replaced = |byte: &u8| if byte.is_ascii_control() { b'?' } else { *byte };
        let bytes: Vec<u8> = bytes.iter().map(replaced).collect();
        HeaderValue::from_bytes(&bytes).unwrap_or_else(|_| HeaderValue::from_static("?"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_name_is_matched_as_a_complete_path_segment() {
        assert_eq!(Preset::named("nginx"), Some((Preset::Nginx, 5)));
        assert_eq!(Preset::named("caddy?a=b"), Some((Preset::Caddy, 5)));
        assert_eq!(Preset::named("envoy//x"), Some((Preset::Envoy, 5)));
        for preset in Preset::IN_PATHS {
            assert_eq!(Preset::named(preset.as_str()).map(|(named, _)| named), Some(preset));
        }
        for name in ["", "nginx2", "apache/nginx", "Nginx", "envoy*", "envoy-grpc"] {
            assert_eq!(Preset::named(name), None, "{name}");
        }
    }
}
