//! The keys of requests in JSON logs. The known keys are the keys in nginx's documentation, and the
//! keys of Caddy, Traefik, Envoy, Cloudflare, Google Cloud and the Elastic Common Schema. An
//! operator can specify other keys with `--json-keys`.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json_borrow::{ObjectAsVec, Value};

use crate::word_enum::word_enum;

word_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum JsonField {
        Agent = "ua",
        Request = "request",
        Method = "method",
        Path = "path",
        Host = "host",
        Address = "address",
        Time = "time",
        Status = "status",
        Referer = "referer",
    }
}

impl JsonField {
    /// Returns the known keys of this field. The first key that an object contains is used. A `.`
    /// in a key separates the keys of nested objects.
    #[expect(clippy::too_many_lines, reason = "a table")]
    const fn known_keys(self) -> &'static [&'static str] {
        match self {
            Self::Agent => &[
                "http_user_agent",
                "request.headers.User-Agent",
                "user_agent",
                "request_User-Agent",
                "user-agent",
                "agent",
                "ClientRequestUserAgent",
                "httpRequest.userAgent",
                "user_agent.original",
            ],
            Self::Request => &["request"],
            Self::Method => &[
                "request.method",
                "request_method",
                "RequestMethod",
                "method",
                "ClientRequestMethod",
                "httpRequest.requestMethod",
                "http.request.method",
            ],
            Self::Path => &[
                "request.uri",
                "request_uri",
                "RequestPath",
                "uri",
                "path",
                "target",
                "ClientRequestURI",
                "httpRequest.requestUrl",
                "url.original",
            ],
            // Keys whose value includes a port come first.
            Self::Host => &[
                "http_host",
                "RequestAddr",
                "authority",
                "host",
                "request.host",
                "RequestHost",
                "server_name",
                "vhost",
                "ClientRequestHost",
                "url.domain",
            ],
            Self::Address => &[
                "client_ip",
                "remote_addr",
                "request.client_ip",
                "request.remote_ip",
                "request.remote_addr",
                "ClientHost",
                "remote_ip",
                "client",
                "address",
                "downstream_remote_address",
                "ClientAddr",
                "ClientIP",
                "httpRequest.remoteIp",
                "client.ip",
                "source.ip",
            ],
            Self::Time => &[
                "time_iso8601",
                "StartUTC",
                "start_time",
                "time",
                "time_local",
                "timestamp",
                "@timestamp",
                "ts",
                "msec",
                "EdgeStartTimestamp",
            ],
            Self::Status => &[
                "status",
                "DownstreamStatus",
                "response_code",
                "status_code",
                "EdgeResponseStatus",
                "httpRequest.status",
                "http.response.status_code",
            ],
            Self::Referer => &[
                "http_referer",
                "request.headers.Referer",
                "referer",
                "request_Referer",
                "http_referrer",
                "referrer",
                "ClientRequestReferer",
                "httpRequest.referer",
                "http.request.referrer",
            ],
        }
    }
}

/// A key that the operator gave, written as `ua=userAgent`.
#[derive(Clone, Debug, PartialEq, Eq, derive_more::Display)]
#[display("{}={key}", field.as_str())]
pub(in crate::commands) struct JsonKey {
    field: JsonField,
    key: String,
}

impl FromStr for JsonKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (word, key) = text.split_once('=').unwrap_or((text, ""));
        let field = JsonField::ALL.into_iter().find(|field| field.as_str() == word);
        let named = field.filter(|_| !key.is_empty()).map(|field| Self { field, key: key.to_owned() });
        named.ok_or_else(|| {
            let words = JsonField::ALL.map(JsonField::as_str).join(", ");
            format!("write VALUE=KEY, such as ua=userAgent; the values are {words}")
        })
    }
}

/// The keys to look for in JSON objects: the known keys, and the keys that the operator gave.
#[derive(Debug, Default)]
pub(in crate::commands) struct JsonKeys {
    /// The keys that the operator gave, each with a flag that is set when an object contains the
    /// key.
    operator_keys: Vec<(JsonKey, AtomicBool)>,
}

impl JsonKeys {
    pub(in crate::commands) fn with_operator_keys(keys: &[JsonKey]) -> Self {
        Self { operator_keys: keys.iter().map(|key| (key.clone(), AtomicBool::new(false))).collect() }
    }

    pub(in crate::commands) fn has_operator_keys(&self) -> bool {
        !self.operator_keys.is_empty()
    }

    /// Returns the operator's keys that no object contained.
    pub(in crate::commands) fn unused_keys(&self) -> impl Iterator<Item = &JsonKey> {
        self.operator_keys.iter().filter(|(_, is_found)| !is_found.load(Ordering::Relaxed)).map(|(key, _)| key)
    }

    pub(super) fn note(&self, object: &ObjectAsVec<'_>) {
        let missing = self.operator_keys.iter().filter(|(_, is_found)| !is_found.load(Ordering::Relaxed));
        let found = missing.filter(|(key, _)| find(object, &key.key).is_some());
        found.for_each(|(_, is_found)| is_found.store(true, Ordering::Relaxed));
    }

    pub(super) fn has_key_for(&self, field: JsonField) -> bool {
        self.operator_keys.iter().any(|(key, _)| key.field == field)
    }

    /// Returns the known keys of a field, or no keys if the operator gave a key for the field.
    fn known(&self, field: JsonField) -> &'static [&'static str] {
        let is_named = match field {
            // The request line contains the method and the path. The known keys of the request line
            // are not used if the operator gave a key for the method or the path.
            JsonField::Request => {
                [field, JsonField::Method, JsonField::Path].into_iter().any(|field| self.has_key_for(field))
            }
            field => self.has_key_for(field),
        };
        if is_named { &[] } else { field.known_keys() }
    }

    pub(super) fn values<'o, 'a, T>(
        &'o self,
        object: &'o ObjectAsVec<'a>,
        field: JsonField,
        read: impl Fn(&Value<'a>) -> Option<T> + 'o,
    ) -> impl Iterator<Item = T> + 'o
    where
        'a: 'o,
        T: 'o,
    {
        let operator_keys =
            self.operator_keys.iter().filter(move |(key, _)| key.field == field).map(|(key, _)| &*key.key);
        let keys = operator_keys.chain(self.known(field).iter().copied());
        keys.filter_map(|key| find(object, key)).filter_map(read)
    }
}

impl fmt::Display for JsonKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("these keys of JSON objects are read (--json-keys VALUE=KEY adds others):")?;
        for field in JsonField::ALL {
            let operator_keys =
                self.operator_keys.iter().filter(|(key, _)| key.field == field).map(|(key, _)| &*key.key);
            let keys: Vec<_> = operator_keys.chain(self.known(field).iter().copied()).collect();
            write!(f, "\n  {}: {}", field.as_str(), keys.join(", "))?;
        }
        Ok(())
    }
}

/// Returns the value under a key, ignoring case. Dots in `key` may separate the keys of nested
/// objects.
fn find<'o, 'a>(object: &'o ObjectAsVec<'a>, key: &str) -> Option<&'o Value<'a>> {
    let member = |key: &str| object.iter().find(|(known, _)| known.eq_ignore_ascii_case(key)).map(|(_, value)| value);
    member(key).or_else(|| {
        let point = memchr::memchr(b'.', key.as_bytes())?;
        match member(&key[..point])? {
            Value::Object(inner) => find(inner, &key[point + 1..]),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_names_every_known_key() {
        let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/reference/replay-formats.md");
        let page = std::fs::read_to_string(page).expect("the page exists");
        for field in JsonField::ALL {
            let word = field.as_str();
            let keys: Vec<_> = field.known_keys().iter().map(|key| format!("`{key}`")).collect();
            let (start, end) = (format!("| `{word}` |"), format!("| {} |", keys.join(", ")));
            let has_row = page.lines().any(|line| line.starts_with(&start) && line.ends_with(&end));
            assert!(has_row, "no row {start} … {end}");
        }
    }

    #[test]
    fn a_json_key_must_name_a_known_value() {
        let key = |text: &str| text.parse::<JsonKey>().map(|key| key.to_string());
        assert_eq!(key("ua=a.b=c").as_deref(), Ok("ua=a.b=c"));
        for text in ["ua", "ua=", "agent=x", "=x", ""] {
            let fault = key(text).expect_err(text);
            assert!(fault.contains("such as ua=userAgent; the values are ua, request, method"), "{fault}");
        }
    }
}
