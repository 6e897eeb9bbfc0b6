//! The fields of a question that each preset reads.
//!
//! A preset reads its own fields only: nginx passes a client's own `X-Forwarded-Uri` through, so its preset ignores that
//! field.

use http::header::{HOST, HeaderName, HeaderValue};

use super::preset::Preset;

/// The parts of a question that a preset reads.
pub(super) struct PresetFields {
    pub(super) target: TargetField,
    /// None: the question has the original method.
    pub(super) method: Option<HeaderName>,
    /// None: in the target, where it is a whole URL.
    pub(super) host: Option<HeaderName>,
    pub(super) address: AddressField,
}

/// Where the original target is.
pub(super) enum TargetField {
    /// What follows the preset in the question's own target.
    Below,
    Field(HeaderName),
}

/// Where the client's address is.
pub(super) enum AddressField {
    /// The field is the address.
    Whole(HeaderName),
    /// The proxy itself adds the last address of a list; clients may send those before it.
    Last(HeaderName),
}

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
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
            // The latter is not asked: its messages have fields of their own.
            Preset::Envoy | Preset::EnvoyGrpc => Self {
                target: TargetField::Below,
                method: None,
                host: Some(HOST),
                address: AddressField::Last(X_FORWARDED_FOR),
            },
        }
    }
}

/// The usual spelling of a field name, for messages.
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

/// A value that a message of a proxy holds, as it is, but for octets that no field may hold: left out, the field would say less.
pub(super) fn value_of(octets: &[u8]) -> HeaderValue {
    HeaderValue::from_bytes(octets).unwrap_or_else(|_| {
        let replaced = |octet: &u8| if octet.is_ascii_control() { b'?' } else { *octet };
        let octets: Vec<u8> = octets.iter().map(replaced).collect();
        HeaderValue::from_bytes(&octets).unwrap_or_else(|_| HeaderValue::from_static("?"))
    })
}
