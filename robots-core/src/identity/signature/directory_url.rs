//! The URL of an operator's key directory.
//!
//! **A directory's URL has one canonical form** (`DirectoryUrl`). A key is looked up by this URL
//! and the `keyid`. If a key were looked up by its `keyid` alone, one operator could sign in the
//! name of another operator.

use std::error::Error;
use std::fmt;
use std::net::Ipv6Addr;

use crate::identity::name_pattern::{is_label_byte, is_name};
use crate::rules::{Authority, Port};

/// Well-known path of the key directory on a host.
const WELL_KNOWN: &str = "/.well-known/http-message-signatures-directory";

/// Maximum length of a URL, in bytes.
const MAX_BYTES: usize = 2048;

/// The canonical URL of a key directory. It identifies the directory in lookups, in the registry
/// and in configurations. A key directory is a JWK Set.
///
/// A URL without a path refers to the directory at the well-known path of its origin. Any other
/// `https` URL is the URL of the JWK Set itself. In the canonical form, the scheme and the host are
/// in lower case, and the default port is left out.
///
/// ```
/// use robots_core::identity::DirectoryUrl;
///
/// let url = DirectoryUrl::parse("https://Signature-Agent.test:443/")?;
/// assert_eq!(url.as_str(), "https://signature-agent.test/.well-known/http-message-signatures-directory");
/// let url = DirectoryUrl::parse("https://signature-agent.test/jwks.json")?;
/// assert_eq!(url.as_str(), "https://signature-agent.test/jwks.json");
/// # Ok::<(), robots_core::identity::DirectoryUrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DirectoryUrl(Box<str>);

/// The reason why a string is not a valid [`DirectoryUrl`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DirectoryUrlError {
    /// The scheme is not `https`.
    NotHttps,
    /// The string is not a URL, or contains user information, a fragment or bytes that are not
    /// allowed in a URL.
    Malformed,
}

impl DirectoryUrl {
    /// Parses the URL of an origin or of a JWK Set.
    ///
    /// # Errors
    ///
    /// Returns an error if the string is not an `https` URL, or if URL parsers could interpret the
    /// string in different ways.
    pub fn parse(text: &str) -> Result<Self, DirectoryUrlError> {
        let is_url_byte = |byte: u8| {
            byte.is_ascii_graphic()
                && !matches!(byte, b'"' | b'#' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}')
        };
        if text.len() > MAX_BYTES || !text.bytes().all(is_url_byte) {
            return Err(DirectoryUrlError::Malformed);
        }
        let (scheme, rest) = text.split_once(':').ok_or(DirectoryUrlError::Malformed)?;
        if !scheme.eq_ignore_ascii_case("https") {
            return Err(DirectoryUrlError::NotHttps);
        }
        let rest = rest.strip_prefix("//").ok_or(DirectoryUrlError::Malformed)?;
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        let split = Authority::split(authority.as_bytes());
        let port = match split.port {
            Port::Absent | Port::Empty | Port::Number(443) => None,
            Port::Number(port) if port != 0 => Some(port),
            _ => return Err(DirectoryUrlError::Malformed),
        };
        let host = std::str::from_utf8(split.host).unwrap_or_default();
        if split.userinfo.is_some() || !is_host(host) {
            return Err(DirectoryUrlError::Malformed);
        }
        let mut url = format!("https://{}", host.to_ascii_lowercase());
        if let Some(port) = port {
            url.push_str(&format!(":{port}"));
        }
        match target {
            "" | "/" => url.push_str(WELL_KNOWN),
            // A URL with a query but no path has the path `/` (RFC 3986, section 6.2.3).
            query if query.starts_with('?') => url.push_str(&format!("/{query}")),
            target => url.push_str(target),
        }
        Ok(Self(url.into()))
    }

    /// Returns the URL in its canonical form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Reports whether a string is a host name or an IP address. Internationalized names must be in
/// their `xn--` form.
fn is_host(host: &str) -> bool {
    if let Some(address) = host.strip_prefix('[') {
        return address.strip_suffix(']').is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
    }
    is_name(host, is_label_byte)
}

impl fmt::Display for DirectoryUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for DirectoryUrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotHttps => {
                "the URL of a key directory must begin with \"https://\", as in \"https://agent.example\""
            }
            Self::Malformed => "this is not the URL of a key directory: write one such as \"https://agent.example\"",
        })
    }
}

impl Error for DirectoryUrlError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_means_its_well_known_directory_and_another_url_means_a_jwk_set() {
        for (text, path) in [
            ("https://a.example", WELL_KNOWN),
            ("https://a.example/", WELL_KNOWN),
            ("HTTPS://A.Example:443", WELL_KNOWN),
            ("https://a.example:/", WELL_KNOWN),
            ("https://a.example/.well-known/http-message-signatures-directory", WELL_KNOWN),
            ("https://a.example/jwks.json", "/jwks.json"),
            ("https://a.example/A/../b", "/A/../b"),
            ("https://a.example//", "//"),
            ("https://a.example/?v=1", "/?v=1"),
            ("https://a.example?v=1", "/?v=1"),
        ] {
            let url = DirectoryUrl::parse(text).expect(text);
            assert_eq!(url.as_str(), format!("https://a.example{path}"), "{text}");
            assert_eq!(DirectoryUrl::parse(url.as_str()), Ok(url));
        }
        let port = DirectoryUrl::parse("https://[2001:DB8::1]:8443/").expect("a URL");
        assert_eq!(port.as_str(), format!("https://[2001:db8::1]:8443{WELL_KNOWN}"));
    }

    #[test]
    fn an_ambiguous_or_non_https_directory_url_is_refused() {
        let texts = "a.example~https:a.example~https:/a.example~https:///~https://~https://user@a.example/~\
            https://a.example@b.example/~https://a.example\\@b.example/~https://a.example/#x~\
            https://a.example/ x~ https://a.example~https://a.example\t~https://a..example/~\
            https://.a.example/~https://a.example./~https://ä.example/~https://a.example:0/~\
            https://a.example:99999/~https://a.example:+443/~https://[::1/~https://[::1%25eth0]/";
        for text in texts.split('~').chain([""]) {
            assert_eq!(DirectoryUrl::parse(text), Err(DirectoryUrlError::Malformed), "{text}");
        }
        for text in
            ["http://a.example/", "data:application/jwk-set+json,x", "javascript:x", "ftp://a.example", "x-https://a"]
        {
            assert_eq!(DirectoryUrl::parse(text), Err(DirectoryUrlError::NotHttps), "{text}");
        }
        assert!(DirectoryUrl::parse(&format!("https://a.example/{}", "x".repeat(MAX_BYTES))).is_err());
    }
}
