//! The URL of a robots.txt.
//!
//! The `url` crate is not used, because it silently corrects typing errors of operators and accepts
//! URLs that this client cannot fetch. Only three operations are needed: parsing, resolving a
//! `Location`, and displaying a URL without its secrets.

use std::borrow::Cow;
use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use http::uri::PathAndQuery;

use crate::rules::{Authority, Port, ValueError};
use crate::source::hosts::{Scheme, to_ascii};

/// An `http` or `https` URL that can be fetched.
///
/// The query is not displayed, because it may contain a secret:
/// `https://bucket.example/robots.txt?…`. With the feature `idn`, the host may be a Unicode name,
/// which is converted to its ASCII form (`xn--…`).
///
/// ```
/// use tower_robots::source::fetch::FetchUrl;
///
/// let url: FetchUrl = "https://Example.com:443/robots.txt?v=1#top".parse()?;
/// assert_eq!(url.to_string(), "https://example.com/robots.txt?…");
/// assert!("ftp://example.com/robots.txt".parse::<FetchUrl>().is_err());
/// # Ok::<(), tower_robots::rules::ValueError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct FetchUrl {
    scheme: Scheme,
    /// Host in lower case; an IPv6 address is in brackets.
    host: String,
    port: u16,
    target: PathAndQuery,
}

impl FetchUrl {
    pub(super) const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Reports whether the URL is requested over TLS.
    pub const fn is_https(&self) -> bool {
        matches!(self.scheme, Scheme::Https)
    }

    /// Returns the host in lower case, without the brackets of an IPv6 address.
    pub fn host(&self) -> &str {
        self.host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&self.host)
    }

    /// Returns the port, or the scheme's default port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns the path and the query, as in a request line.
    pub const fn target(&self) -> &PathAndQuery {
        &self.target
    }

    /// Returns host and port as in a `Host` field. The scheme's default port is omitted.
    pub fn authority(&self) -> String {
        if self.port == self.scheme.port() { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }

    /// Returns the URL with its query, for use as a key. The returned string must not be displayed,
    /// because the query may contain a secret.
    pub(in crate::source) fn unredacted(&self) -> String {
        format!("{}://{}{}", self.scheme.as_str(), self.authority(), self.target)
    }

    /// Returns a URL on the same host with another path and query.
    pub fn with_target(&self, target: PathAndQuery) -> Self {
        Self { target, ..self.clone() }
    }

    /// Resolves the value of a `Location` field against this URL (RFC 9110, section 10.2.2; RFC
    /// 3986, section 5.2).
    ///
    /// # Errors
    ///
    /// Returns an error if the result is not a URL that can be fetched.
    pub fn join(&self, location: &[u8]) -> Result<Self, ValueError> {
        let location = escaped(location);
        let reference = location.split('#').next().unwrap_or_default();
        if has_scheme(reference) {
            return reference.parse();
        }
        if reference.starts_with("//") {
            return format!("{}:{reference}", self.scheme.as_str()).parse();
        }
        let path = self.target.path();
        let target = if reference.is_empty() {
            self.target.to_string()
        } else if reference.starts_with('/') {
            reference.to_owned()
        } else if reference.starts_with('?') {
            format!("{path}{reference}")
        } else {
            let folder = path.rfind('/').map_or("", |at| &path[..at]);
            format!("{folder}/{reference}")
        };
        let (path, query) = target.split_at(target.find('?').unwrap_or(target.len()));
        let target = PathAndQuery::try_from(without_dots(path) + query).map_err(|_| fault(reference, TARGET))?;
        Ok(self.with_target(target))
    }
}

impl FromStr for FetchUrl {
    type Err = ValueError;

    fn from_str(url: &str) -> Result<Self, ValueError> {
        let error = |what| fault(url, what);
        let (scheme, authority, target) = Authority::of_url(url.as_bytes())
            .ok_or_else(|| error(if has_other_scheme(url) { OTHER_SCHEME } else { NO_SCHEME }))?;
        let scheme = match std::str::from_utf8(scheme).ok().and_then(Scheme::from_name) {
            Some(scheme @ (Scheme::Http | Scheme::Https)) => scheme,
            Some(Scheme::Ftp) => return Err(error(FTP)),
            None if scheme.eq_ignore_ascii_case(b"ftps") || scheme.eq_ignore_ascii_case(b"sftp") => {
                return Err(error(FTP));
            }
            None => return Err(error(OTHER_SCHEME)),
        };
        if cfg!(not(feature = "tls")) && scheme == Scheme::Https {
            return Err(error(NO_TLS));
        }
        if authority.userinfo.is_some() {
            return Err(error(USERINFO));
        }
        let port = match authority.port {
            Port::Number(port) if port != 0 => port,
            // `example.com:` is equivalent to `example.com` (RFC 3986, section 6.2.3).
            Port::Absent | Port::Empty => scheme.port(),
            Port::Number(_) | Port::Malformed => return Err(error(PORT)),
        };
        let host = std::str::from_utf8(authority.host).unwrap_or_default();
        let host = match host.is_ascii() {
            true => Cow::Borrowed(host),
            false if cfg!(feature = "idn") => to_ascii(host).ok_or_else(|| error(HOST))?,
            false => return Err(error(NON_ASCII_HOST)),
        };
        if !is_host(&host) {
            return Err(error(HOST));
        }
        let end = memchr::memchr(b'#', target).unwrap_or(target.len());
        let target = escaped(&target[..end]);
        let target = if target.starts_with('/') { target } else { format!("/{target}") };
        let target = PathAndQuery::try_from(target).map_err(|_| error(TARGET))?;
        Ok(Self { scheme, host: host.to_ascii_lowercase(), port, target })
    }
}

impl fmt::Display for FetchUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme.as_str(), self.authority(), self.target.path())?;
        if self.target.query().is_some() { f.write_str("?…") } else { Ok(()) }
    }
}

impl fmt::Debug for FetchUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FetchUrl({self})")
    }
}

// Problems with a URL. An error message consists of the URL and one of the following strings.
const NO_SCHEME: &str = "has no scheme: write it as \"https://example.com/robots.txt\"";
const FTP: &str = "cannot be fetched: ftp is not supported; use http or https";
const OTHER_SCHEME: &str = "cannot be fetched: use http or https";
const USERINFO: &str = "contains a user name: remove the user name, because robots.txt is public";
pub(super) const HOST: &str = "has no valid host: write a name such as \"example.com\", or an address";
const NON_ASCII_HOST: &str = "has a host that is not ASCII: write the host in its \"xn--\" form";
const PORT: &str = "has an invalid port: write a number from 1 to 65535";
const TARGET: &str = "has a path with characters that a request cannot contain";
const NO_TLS: &str = "cannot be fetched: https needs the feature `tls` of this crate";

/// Creates the error for an invalid URL. The message quotes the URL, but contains `…` instead of
/// the user information and the query, because both may contain secrets.
pub(super) fn fault(url: &str, what: &'static str) -> ValueError {
    ValueError::new(without_secrets(url).chars().take(256).collect::<String>(), what)
}

pub(in crate::source) fn without_secrets(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    // If a password contains a delimiter such as `/`, the text between `:` and the delimiter looks
    // like an invalid port. In this case, the `@` is after the delimiter, so the rest of the URL is
    // searched, too.
    let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
    let is_cut = !port.bytes().all(|byte| byte.is_ascii_digit());
    let shown = match (if is_cut { rest } else { authority }).rfind('@') {
        Some(at) => format!("…{}", &rest[at..]),
        None => rest.to_owned(),
    };
    let shown = shown.split_once('?').map_or(shown.clone(), |(path, _)| format!("{path}?…"));
    if scheme.is_empty() { shown } else { format!("{scheme}://{shown}") }
}

pub(super) fn has_scheme(reference: &str) -> bool {
    let Some((scheme, _)) = reference.split_once(':') else { return false };
    scheme.starts_with(|char: char| char.is_ascii_alphabetic())
        && scheme.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '+' | '-' | '.'))
}

/// Reports whether the URL has an unsupported scheme, as in `javascript:`. Returns `false` for a
/// name with a port, such as `localhost:3000`, and for `http:/example.com`, which only lacks a
/// slash.
fn has_other_scheme(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once(':') else { return false };
    let is_web = ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web));
    let is_port = rest.starts_with(|char: char| char.is_ascii_digit());
    has_scheme(url) && !is_web && !is_port && !scheme.contains('.')
}

fn is_host(host: &str) -> bool {
    if let Some(address) = host.strip_prefix('[') {
        return address.strip_suffix(']').is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
    }
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    (1..=255).contains(&host.len()) && host.bytes().all(is_fine) && !host.starts_with('.')
}

/// Percent-encodes bytes that are not allowed in a URL, because some servers send such bytes in
/// `Location`.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            0..=0x20 | 0x7F.. | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => {
                text.push_str(&format!("%{byte:02X}"));
            }
            _ => text.push(char::from(*byte)),
        }
    }
    text
}

/// Removes dot segments (RFC 3986, section 5.2.4).
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => kept.truncate(kept.len().saturating_sub(1)),
            segment => kept.push(segment),
        }
    }
    if path.ends_with("/.") || path.ends_with("/..") {
        kept.push("");
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> FetchUrl {
        text.parse().expect(text)
    }

    fn said(error: &ValueError) -> String {
        let quoted = format!("{:?} ", error.text());
        error.to_string().strip_prefix(&quoted).expect("a text that is quoted").to_owned()
    }

    fn refused(text: &str) -> String {
        said(&text.parse::<FetchUrl>().expect_err(text))
    }

    fn joined(base: &str, location: &str) -> String {
        url(base).join(location.as_bytes()).map_or_else(|error| error.to_string(), |url| url.unredacted())
    }

    #[test]
    fn urls_are_normalised_and_displayed_without_the_query() {
        assert_eq!(url("http://EXAMPLE.com").unredacted(), "http://example.com/");
        assert_eq!(url("HTTP://example.com:80/a?b#c").unredacted(), "http://example.com/a?b");
        assert_eq!(url("http://[::1]:8080/r").unredacted(), "http://[::1]:8080/r");
        assert_eq!(url("http://[::1]/").host(), "::1");
        assert_eq!(url("http://a.example?x y").unredacted(), "http://a.example/?x%20y");
        assert_eq!(url("http://a.example/r?token=secret").to_string(), "http://a.example/r?…");
    }

    #[test]
    fn an_invalid_or_unsupported_url_is_refused_with_a_reason() {
        for text in
            ["example.com/robots.txt", "localhost:3000", "example.com:x", "http:/example.com", "HTTPS:example.com"]
        {
            assert_eq!(refused(text), NO_SCHEME, "{text}");
        }
        assert_eq!(refused("javascript:alert(1)"), OTHER_SCHEME);
        assert_eq!(refused("file:///etc/passwd"), OTHER_SCHEME);
        assert_eq!(refused("http://user:secret@example.com/"), USERINFO);
        assert_eq!(refused("http:///robots.txt"), HOST);
        assert_eq!(refused("http://a b/"), HOST);
        assert_eq!(refused("http://[::g]/"), HOST);
        assert_eq!(refused("http://example.com:0/"), PORT);
        assert_eq!(refused("http://example.com:99999/"), PORT);
        assert_eq!(refused("http://example.com:+80/"), PORT);
        let ftp = "ftp://example.com/robots.txt".parse::<FetchUrl>().expect_err("ftp").to_string();
        assert_eq!(ftp, "\"ftp://example.com/robots.txt\" cannot be fetched: ftp is not supported; use http or https");
        let secret = "http://user:secret@example.com/?key=k".parse::<FetchUrl>().expect_err("userinfo").to_string();
        assert!(!secret.contains("secret") && !secret.contains("key"), "{secret}");
    }

    #[test]
    fn a_non_ascii_host_is_converted_to_ascii_or_refused_without_the_idn_feature() {
        let named = "http://Müller.example/r".parse::<FetchUrl>().map(|url| url.to_string());
        if cfg!(feature = "idn") {
            assert_eq!(named.as_deref(), Ok("http://xn--mller-kva.example/r"));
        } else {
            assert_eq!(said(&named.expect_err("no idn")), NON_ASCII_HOST);
        }
    }

    #[cfg(not(feature = "tls"))]
    #[test]
    fn the_error_for_https_without_the_tls_feature_contains_the_feature() {
        assert!("https://a.example/".parse::<FetchUrl>().expect_err("no tls").to_string().contains("feature `tls`"));
    }

    #[test]
    fn rfc_3986_5_2_references_are_resolved() {
        let base = "http://a.example:8080/x/y?z";
        assert_eq!(joined(base, "http://b.example/r"), "http://b.example/r");
        assert_eq!(joined(base, "//b.example/r"), "http://b.example/r");
        assert_eq!(joined(base, "/r?q"), "http://a.example:8080/r?q");
        assert_eq!(joined(base, "r"), "http://a.example:8080/x/r");
        assert_eq!(joined(base, "../r"), "http://a.example:8080/r");
        assert_eq!(joined(base, "../../../r/./"), "http://a.example:8080/r/");
        assert_eq!(joined(base, "?q"), "http://a.example:8080/x/y?q");
        assert_eq!(joined(base, "/a/.."), "http://a.example:8080/");
        assert_eq!(joined(base, "#top"), "http://a.example:8080/x/y?z");
        assert_eq!(joined(base, "/ä b"), "http://a.example:8080/%C3%A4%20b");
        assert!(joined(base, "mailto:a@b").contains("use http or https"));
        assert!(joined(base, "ftp://b.example/").contains("ftp is not supported"));
    }

    #[test]
    fn unusual_location_values_do_not_cause_a_panic() {
        let base = url("http://a.example/");
        for location in
            [&b""[..], b"\xff\xfe", b"://", b"http://", b"http:", b":", b"[", b"//[", b"//]:", b"?#?", b"..", b"\0"]
        {
            let _ = base.join(location);
        }
    }
}
