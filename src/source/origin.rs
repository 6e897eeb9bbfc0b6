//! Hosts and origins as URLs write them, in the one form they are compared in.

use std::borrow::Cow;
use std::net::Ipv6Addr;

use crate::rules::{Authority, Port};

/// The scheme of a request, which decides the port where none is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scheme {
    /// `http`, port 80.
    Http,
    /// `https`, port 443.
    Https,
    /// `ftp`, port 21.
    Ftp,
}

/// What a robots.txt is valid for: a scheme, a host and a port (RFC 9309, section 2.3; RFC 6454, section 4).
///
/// Hosts are compared without case and without a final dot, names of other scripts by their ASCII form, IPv6 addresses by
/// what they are, and a port that is not written is the scheme's. Without the feature `idn` a host has to be written in its
/// ASCII form (`xn--…`): a URL with another has no origin.
///
/// ```
/// use tower_robots::source::Origin;
///
/// let origin = Origin::of_robots_txt("http://example.com:80/robots.txt").expect("a robots.txt");
/// assert!(origin.covers("http://EXAMPLE.com/folder/file"));
/// assert!(!origin.covers("https://example.com/"));
/// assert!(!origin.covers("http://other.example.com/"));
/// assert_eq!(Origin::of_robots_txt("http://example.com/folder/robots.txt"), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    scheme: Scheme,
    host: String,
    port: u16,
}

impl Scheme {
    /// The port that is meant where none is written.
    #[must_use]
    pub const fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
            Self::Ftp => 21,
        }
    }

    /// The scheme's name in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Ftp => "ftp",
        }
    }

    /// Reads a name without regard to case; `None` for other schemes.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Http, Self::Https, Self::Ftp].into_iter().find(|scheme| name.eq_ignore_ascii_case(scheme.as_str()))
    }
}

impl Origin {
    /// The origin of an absolute URL; `None` if it is no URL of a [`Scheme`].
    #[must_use]
    pub fn of(url: &str) -> Option<Self> {
        Self::split(url).map(|(origin, _)| origin)
    }

    /// What the robots.txt at a URL is valid for; `None` if no robots.txt has that URL, whose path is always
    /// `/robots.txt`.
    #[must_use]
    pub fn of_robots_txt(url: &str) -> Option<Self> {
        Self::split(url).filter(|(_, rest)| *rest == "/robots.txt").map(|(origin, _)| origin)
    }

    /// Whether a URL is of this origin, and so whether its robots.txt is the one that counts.
    #[must_use]
    pub fn covers(&self, url: &str) -> bool {
        Self::of(url).is_some_and(|origin| origin == *self)
    }

    /// How it is spoken to.
    #[must_use]
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host in ASCII and lower case; an IPv6 address in brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, written or not.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    fn split(url: &str) -> Option<(Self, &str)> {
        let (scheme, authority, rest) = Authority::of_url(url.as_bytes())?;
        let scheme = Scheme::from_name(std::str::from_utf8(scheme).ok()?)?;
        let port = match authority.port() {
            Port::Absent | Port::Empty => scheme.port(),
            Port::Number(port) => port,
            Port::Malformed => return None,
        };
        let host = canonical(std::str::from_utf8(authority.host()).ok()?)?;
        Some((Self { scheme, host, port }, std::str::from_utf8(rest).ok()?))
    }
}

/// A host in the form it is compared in: ASCII, lower case, no final dot; `None` if it is no host.
pub(super) fn canonical(host: &str) -> Option<String> {
    if let Some(address) = host.strip_prefix('[') {
        let address: Ipv6Addr = address.strip_suffix(']')?.parse().ok()?;
        return Some(format!("[{address}]"));
    }
    let host = host.strip_suffix('.').unwrap_or(host);
    let ascii = if host.is_ascii() { Cow::Owned(host.to_ascii_lowercase()) } else { to_ascii(host)? };
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let is_host = !ascii.is_empty()
        && ascii.len() <= 253
        && ascii.bytes().all(legal)
        && !ascii.starts_with('.')
        && !ascii.ends_with('.')
        && !ascii.contains("..");
    is_host.then(|| ascii.into_owned())
}

/// The ASCII form of a name of another script.
#[cfg(feature = "idn")]
pub(super) fn to_ascii(host: &str) -> Option<Cow<'_, str>> {
    idna::domain_to_ascii_cow(host.as_bytes(), idna::AsciiDenyList::EMPTY).ok()
}

#[cfg(not(feature = "idn"))]
pub(super) fn to_ascii(_: &str) -> Option<Cow<'_, str>> {
    None
}

/// The form of an ASCII name in its own script, where it has another.
#[cfg(feature = "idn")]
pub(super) fn unicode(ascii: &str) -> Option<String> {
    if !ascii.contains("xn--") {
        return None;
    }
    let (name, result) = idna::domain_to_unicode(ascii);
    result.is_ok().then_some(name).filter(|name| name != ascii)
}
