//! Parses the values of lines that are neither rules nor sitemaps.

use std::fmt;
use std::time::Duration;

use super::authority::{Authority, Port};
use super::line::{is_space, starts_with};

/// The value of a host line: a host name, optionally with a scheme and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Host<'r> {
    /// Whether the scheme of the value is `https`.
    pub is_https: bool,
    /// Host name as written.
    pub name: &'r str,
    /// Port; `None` if the value has no port.
    pub port: Option<u16>,
}

impl<'r> Host<'r> {
    /// Parses an optional `https://` or `http://`, a name of letters, digits, hyphens and dots, and
    /// an optional port. Returns `None` if the value has another form, such as a numeric address or
    /// a URL with a path.
    pub fn parse(value: &'r [u8]) -> Option<Self> {
        let value = std::str::from_utf8(value).ok()?;
        let scheme = |scheme: &str| {
            let (head, rest) = value.split_at_checked(scheme.len())?;
            head.eq_ignore_ascii_case(scheme).then_some(rest)
        };
        let (is_https, rest) = match (scheme("https://"), scheme("http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => (false, value),
        };
        let authority = Authority::of_host_field(rest.as_bytes());
        let port = match authority.port {
            Port::Absent => None,
            Port::Number(port) if port > 0 => Some(port),
            Port::Empty | Port::Number(_) | Port::Malformed => return None,
        };
        let name = std::str::from_utf8(authority.host).ok()?;
        is_host_name(name).then_some(Self { is_https, name, port })
    }
}

/// Writes the origin: `http://example.com:8080`.
impl fmt::Display for Host<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.is_https { "https" } else { "http" }, self.name)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// Parses the value of a clean-param line, such as `sid&ref /shop/`, into the names of the
/// parameters and the path prefix of the pages.
pub(super) fn clean_param(value: &[u8]) -> Option<(Vec<&[u8]>, &[u8])> {
    let (parameters, path) = first_word(value);
    let names = parameters.split(|byte| *byte == b'&').filter(|name| !name.is_empty());
    (!parameters.is_empty()).then(|| (names.collect(), path))
}

type Preferences<'v> = Vec<(&'v [u8], &'v [u8])>;

/// Parses the value of a content-usage or content-signal line, such as `/path train-ai=n,
/// search=y`, into the path and the preferences.
pub(super) fn preferences(value: &[u8]) -> Option<(&[u8], Preferences<'_>)> {
    let (path, pairs) = match value {
        [b'/', ..] => first_word(value),
        _ => (&value[..0], value),
    };
    let named = pairs.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|pair| !pair.is_empty());
    let named = named.map(|pair| {
        let at = memchr::memchr(b'=', pair).unwrap_or(pair.len());
        (pair[..at].trim_ascii(), pair.get(at + 1..).unwrap_or_default().trim_ascii())
    });
    (!pairs.is_empty()).then(|| (path, named.collect()))
}

/// Parses a number of seconds, optionally with a fraction.
pub(crate) fn delay(value: &[u8]) -> Option<Duration> {
    let is_number = !value.is_empty() && value.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let seconds = std::str::from_utf8(value).ok().filter(|_| is_number)?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

pub(crate) fn is_absolute_url(address: &[u8]) -> bool {
    [&b"http://"[..], b"https://"]
        .iter()
        .any(|scheme| starts_with(address, scheme) && !matches!(address[scheme.len()..], [] | [b'/' | b'?' | b'#', ..]))
}

/// Reports whether a name can be the host name of a URL: it is ASCII and not a numeric address.
fn is_host_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let inside = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        inside && (1..=63).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-')
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    name.len() <= 253 && name.split('.').all(is_label) && !last.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn first_word(value: &[u8]) -> (&[u8], &[u8]) {
    let (word, rest) = value.split_at(value.iter().position(|byte| is_space(*byte)).unwrap_or(value.len()));
    (word, rest.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_a_plain_number() {
        for value in ["", "-1", "1e9", "inf", "NaN", "1s", "1 2", "."] {
            assert_eq!(delay(value.as_bytes()), None, "{value}");
        }
        assert_eq!(delay(b"10."), Some(Duration::from_secs(10)));
        assert_eq!(delay("9".repeat(400).as_bytes()), None);
    }

    #[test]
    fn a_host_value_is_a_host_name_with_optional_scheme_and_port() {
        for value in
            ["", ":80", "a..b", "a.b:", "a.b:0", "a.b:65536", "a.b:+1", "1.2.3.4", "a.b/", "http://", "m\u{fc}.eu"]
        {
            assert_eq!(Host::parse(value.as_bytes()), None, "{value}");
        }
        for (value, name, port, is_https, origin) in [
            ("HTTPS://A.b:443", "A.b", Some(443), true, "https://A.b:443"),
            ("a.b", "a.b", None, false, "http://a.b"),
            ("http://a.b:1", "a.b", Some(1), false, "http://a.b:1"),
        ] {
            let host = Host::parse(value.as_bytes()).unwrap();
            assert_eq!((host.name, host.port, host.is_https), (name, port, is_https), "{value}");
            assert_eq!(host.to_string(), origin, "{value}");
        }
    }
}
