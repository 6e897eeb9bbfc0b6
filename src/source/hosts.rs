//! Maps hosts to values by the host patterns of a configuration. Also converts names to their ASCII
//! form, and finds the origins of URLs.
//!
//! **The maps of a [`HostMap`] contain indices into a list of values.** So two keys, such as the
//! ASCII and the Unicode form of a name, can have the same value.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::Ipv6Addr;

use crate::rules::{Authority, Port, ValueError};

/// Maximum length of a host name, in bytes: twice the limit for ASCII names (253; RFC 1035, section
/// 2.3.4), because the Unicode form of a name may be longer.
const MAX_NAME: usize = 253 * 2;

/// A map from host patterns to values. Exact names take precedence over wildcards, longer wildcards
/// take precedence over shorter ones, and `*` matches every other host.
///
/// Names are compared case-insensitively and without a final dot. IPv6 addresses are compared by
/// value. A pattern with a port takes precedence over the same pattern without a port, which
/// applies to all other ports.
///
/// If a host matches no pattern, a [`RobotsLayer`] does not judge requests for this host. If your
/// application accepts requests with any host, insert a value for `*`, so that a crawler cannot
/// bypass the rules by sending an arbitrary `Host`.
///
/// [`RobotsLayer`]: https://docs.rs/tower-robots/latest/tower_robots/layer/struct.RobotsLayer.html
///
/// With the feature `idn`, a Unicode name is equivalent to its ASCII form. Without this feature,
/// write patterns in the ASCII form (`xn--mnchen-3ya.example`), which clients send.
///
/// ```
/// use tower_robots::source::HostMap;
///
/// let mut hosts = HostMap::new();
/// hosts.insert("example.com", 1)?;
/// hosts.insert("*.example.com", 2)?;
/// hosts.insert("example.com:8080", 3)?;
/// # #[cfg(feature = "idn")]
/// hosts.insert("münchen.example", 4)?;
/// hosts.insert("[::1]", 5)?;
/// assert_eq!(hosts.get("EXAMPLE.com."), Some(&1));
/// assert_eq!(hosts.get("a.b.example.com:80"), Some(&2));
/// assert_eq!(hosts.get("example.com:8080"), Some(&3));
/// # #[cfg(feature = "idn")]
/// assert_eq!(hosts.get("xn--mnchen-3ya.example"), Some(&4));
/// assert_eq!(hosts.get("[0:0::1]:443"), Some(&5));
/// assert_eq!(hosts.get("example.org"), None);
/// # Ok::<(), tower_robots::rules::ValueError>(())
/// ```
#[derive(Clone, Debug)]
pub struct HostMap<T> {
    values: Vec<T>,
    exact: Names,
    /// The values for wildcards. The key is the part of the pattern after `*.`.
    wildcard: Names,
    addresses: HashMap<Ipv6Addr, Ports, foldhash::fast::RandomState>,
    any: Option<usize>,
    /// Maximum number of dots in a key of `wildcard`. A suffix of a host name with more dots than
    /// this need not be looked up.
    deepest: usize,
}

type Names = HashMap<Box<[u8]>, Ports, foldhash::fast::RandomState>;

/// The values for one host, by port. Each `usize` is an index into `HostMap::values`.
#[derive(Clone, Debug, Default)]
struct Ports {
    other: Option<usize>,
    ports: Vec<(u16, usize)>,
}

// Problems with a pattern. An error message consists of the pattern and one of these strings.
const MALFORMED: &str =
    "is not a host: write a name such as \"example.com\", \"*.example.com\" or \"*\", or an address";
pub(super) const OTHER_SCRIPT: &str = "is not ASCII: write the host in its ASCII form, which begins with \"xn--\", or turn \
                                       on the feature \"idn\" of tower-robots";
const WITH_SCHEME: &str = "is a URL instead of a host: leave out the scheme and the path";
const WITH_PATH: &str = "has a path: write only the host";
const WITH_PORT: &str = "has a port, although a wildcard applies to all ports: leave out the port";
const REPEATED: &str = "is listed twice: a host can belong to only one site";

impl<T> HostMap<T> {
    /// Creates an empty map.
    pub fn new() -> Self {
        Self {
            values: Vec::new(),
            exact: Names::default(),
            wildcard: Names::default(),
            addresses: HashMap::default(),
            any: None,
            deepest: 0,
        }
    }

    /// Adds a value for `example.com`, `example.com:8080`, `*.example.com` (names below it at any
    /// depth, but not the name itself) or `*` (every other host).
    ///
    /// If you add a host both with port 80 and with port 443, also add it without a port.
    /// Otherwise, HTTP/1 requests match neither pattern, because they do not name these ports.
    ///
    /// # Errors
    ///
    /// Returns an error if the pattern is malformed or already has a value, or if it is not ASCII
    /// and the feature `idn` is off.
    pub fn insert(&mut self, pattern: &str, value: T) -> Result<(), ValueError> {
        let error = |fault| ValueError::new(pattern, fault);
        let malformed = || error(fault_in(pattern));
        let place = self.values.len();
        let (pattern, wildcard) = pattern.strip_prefix("*.").map_or((pattern, false), |below| (below, true));
        let authority = Authority::of_host_field(pattern.as_bytes());
        let port = authority.port;
        // The pattern was split at an ASCII byte, so the host is still valid UTF-8.
        let host = std::str::from_utf8(authority.host).unwrap_or_default();
        if host == "*" && port == Port::Absent && !wildcard {
            if self.any.is_some() {
                return Err(error(REPEATED));
            }
            self.any = Some(place);
            self.values.push(value);
            return Ok(());
        }
        if !cfg!(feature = "idn") && !host.is_ascii() {
            return Err(error(OTHER_SCRIPT));
        }
        let name = canonical(host).ok_or_else(malformed)?;
        let port = match port {
            Port::Number(port) if port != 0 => Some(port),
            Port::Absent => None,
            _ => return Err(malformed()),
        };
        let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')?.parse().ok());
        // A wildcard applies to all ports and only to names, so neither a port nor an address is
        // allowed.
        if wildcard && (port.is_some() || address.is_some()) {
            return Err(malformed());
        }
        let names = if wildcard { &mut self.wildcard } else { &mut self.exact };
        let ports = match address {
            Some(address) => self.addresses.entry(address).or_default(),
            None => names.entry(name.as_bytes().into()).or_default(),
        };
        ports.add(port, place).map_err(|()| error(REPEATED))?;
        if wildcard {
            self.deepest = self.deepest.max(scan_name(name.as_bytes()).0);
        }
        // The Unicode form is inserted, too, because some clients send this form, although the
        // standards do not allow it.
        #[cfg(feature = "idn")]
        if let Some(name) = unicode(&name) {
            let _ = names.entry(name.as_bytes().into()).or_default().add(port, place);
        }
        self.values.push(value);
        Ok(())
    }

    /// Returns the value for a host. `host` may include a port, as in a `Host` field.
    ///
    /// If `host` has no port and only patterns with a port match, returns the value for port 80 or
    /// 443, or `None` if both of these ports have a value. For example, `get("example.com")` can
    /// return the value of `example.com:443`. If the default port is known, use
    /// [`HostMap::get_for`].
    pub fn get(&self, host: impl AsRef<[u8]>) -> Option<&T> {
        self.find(host.as_ref(), None)
    }

    /// Returns the value for a host. If `host` has no port, the port is `default_port`, which is 80
    /// or 443.
    pub fn get_for(&self, default_port: u16, host: impl AsRef<[u8]>) -> Option<&T> {
        self.find(host.as_ref(), Some(default_port))
    }

    pub(super) fn find(&self, host: &[u8], default_port: Option<u16>) -> Option<&T> {
        let place = self.place(host, default_port).or(self.any)?;
        self.values.get(place)
    }

    /// Returns the value for `*`, that is, for every host that no other pattern matches.
    pub fn any(&self) -> Option<&T> {
        self.values.get(self.any?)
    }

    /// Returns all values in insertion order.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Reports whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the names that have values for both ports 80 and 443, but no value for requests that
    /// do not name a port.
    #[cfg(feature = "tracing")]
    pub(super) fn ambiguous_names(&self) -> impl Iterator<Item = &str> {
        let has_both = |ports: &Ports| [80, 443].iter().all(|port| ports.at(Some(*port)).is_some());
        let names = self.exact.iter().filter(move |(name, ports)| has_both(ports) && self.find(name, None).is_none());
        // Unicode names are skipped: each has an ASCII form with the same value.
        names.filter_map(|(name, _)| std::str::from_utf8(name).ok().filter(|name| name.is_ascii()))
    }

    fn place(&self, host: &[u8], default_port: Option<u16>) -> Option<usize> {
        let authority = Authority::of_host_field(host);
        let port = match authority.port {
            Port::Absent | Port::Empty => default_port,
            Port::Number(port) => Some(port),
            // An invalid port is ignored, so that a client cannot bypass the rules of a site by
            // sending an invalid port.
            Port::Malformed => None,
        };
        let name = authority.host;
        if let [b'[', address @ .., b']'] = name {
            // Parsing is cheap even if the string is long, because the parser reads at most 45
            // bytes.
            let address = std::str::from_utf8(address).ok()?.parse().ok()?;
            return self.addresses.get(&address)?.at(port);
        }
        let name = name.strip_suffix(b".").unwrap_or(name);
        if name.len() > MAX_NAME {
            return None;
        }
        let (dots, has_capitals) = scan_name(name);
        if !has_capitals {
            return self.named(name, dots, port);
        }
        // The name is copied to the stack, so a host with capital letters causes no allocation.
        let mut lower = [0; MAX_NAME];
        let lower = &mut lower[..name.len()];
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        self.named(lower, dots, port)
    }

    fn named(&self, name: &[u8], mut dots: usize, port: Option<u16>) -> Option<usize> {
        if let Some(place) = self.exact.get(name).and_then(|ports| ports.at(port)) {
            return Some(place);
        }
        if self.wildcard.is_empty() {
            return None;
        }
        // Names are short, so this loop is cheaper than `memchr`.
        for (at, _) in name.iter().enumerate().filter(|(_, byte)| **byte == b'.') {
            dots -= 1;
            // A suffix with more than `deepest` dots is not looked up, so a name with hundreds of
            // labels causes only few lookups.
            if dots <= self.deepest
                && let Some(place) = self.wildcard.get(&name[at + 1..]).and_then(|ports| ports.at(port))
            {
                return Some(place);
            }
        }
        None
    }
}

impl Ports {
    fn add(&mut self, port: Option<u16>, place: usize) -> Result<(), ()> {
        match port {
            None if self.other.is_none() => self.other = Some(place),
            Some(port) if self.ports.iter().all(|(other, _)| *other != port) => self.ports.push((port, place)),
            _ => return Err(()),
        }
        Ok(())
    }

    fn at(&self, port: Option<u16>) -> Option<usize> {
        if self.ports.is_empty() {
            return self.other;
        }
        let at = |port: u16| self.ports.iter().find(|(other, _)| *other == port).map(|(_, place)| *place);
        match port {
            Some(port) => at(port).or(self.other),
            // The port is unknown, and may be 80 or 443. If both ports have a value, the host is
            // ambiguous, and the result is `None`.
            None => self.other.or_else(|| match (at(80), at(443)) {
                (Some(place), None) | (None, Some(place)) => Some(place),
                _ => None,
            }),
        }
    }
}

impl<T> Default for HostMap<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns what is wrong with a malformed pattern.
fn fault_in(pattern: &str) -> &'static str {
    if pattern.contains("://") {
        WITH_SCHEME
    } else if pattern.contains('/') {
        WITH_PATH
    } else if pattern.starts_with('*') && pattern.contains(':') && !pattern.contains('[') {
        WITH_PORT
    } else {
        MALFORMED
    }
}

/// Returns the number of dots in a name, and whether it has capital letters. The loop has no
/// branches, so the compiler can vectorise it (16 bytes at a time).
fn scan_name(name: &[u8]) -> (usize, bool) {
    let (mut dots, mut capitals) = (0_u16, 0_u8);
    for byte in name.iter().take(MAX_NAME) {
        dots += u16::from(*byte == b'.');
        capitals |= u8::from(byte.is_ascii_uppercase());
    }
    (dots.into(), capitals != 0)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scheme {
    Http,
    Https,
    Ftp,
}

/// The scope of a robots.txt: a scheme, a host and a port (RFC 9309, section 2.3; RFC 6454, section
/// 4).
///
/// Hosts are compared case-insensitively and without a final dot. Unicode names are compared by
/// their ASCII form, and IPv6 addresses by value. A URL without a port has the scheme's default
/// port. Without the feature `idn`, a URL has an origin only if its host is in ASCII form
/// (`xn--…`).
///
/// ```
/// use tower_robots::internals::Origin;
///
/// let origin = Origin::of_robots_txt("http://example.com:80/robots.txt").expect("a robots.txt");
/// assert!(origin.covers("http://EXAMPLE.com/folder/file"));
/// assert!(!origin.covers("https://example.com/"));
/// assert!(!origin.covers("http://other.example.com/"));
/// assert_eq!(Origin::of_robots_txt("http://example.com/folder/robots.txt"), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Origin {
    /// The scheme: `http`, `https` or `ftp`.
    pub scheme: &'static str,
    /// The host in lower-case ASCII; an IPv6 address is in brackets.
    pub host: String,
    /// The port; the scheme's default port if the URL contains no port.
    pub port: u16,
}

impl Scheme {
    pub(crate) const fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
            Self::Ftp => 21,
        }
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Ftp => "ftp",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Http, Self::Https, Self::Ftp].into_iter().find(|scheme| name.eq_ignore_ascii_case(scheme.as_str()))
    }
}

impl Origin {
    /// Returns the origin of an absolute URL; `None` if it is not an `http`, `https` or `ftp` URL.
    pub fn of(url: &str) -> Option<Self> {
        Self::split(url).map(|(origin, _)| origin)
    }

    /// Returns the origin that the robots.txt at this URL applies to; `None` if the path of the URL
    /// is not `/robots.txt`.
    pub fn of_robots_txt(url: &str) -> Option<Self> {
        Self::split(url).filter(|(_, rest)| *rest == "/robots.txt").map(|(origin, _)| origin)
    }

    /// Reports whether the robots.txt of this origin applies to a URL. It applies to all URLs with
    /// the same origin.
    pub fn covers(&self, url: &str) -> bool {
        Self::of(url).is_some_and(|origin| origin == *self)
    }

    fn split(url: &str) -> Option<(Self, &str)> {
        let (scheme, authority, rest) = Authority::of_url(url.as_bytes())?;
        let scheme = Scheme::from_name(std::str::from_utf8(scheme).ok()?)?;
        let port = match authority.port {
            Port::Absent | Port::Empty => scheme.port(),
            Port::Number(port) => port,
            Port::Malformed => return None,
        };
        let host = canonical(std::str::from_utf8(authority.host).ok()?)?;
        Some((Self { scheme: scheme.as_str(), host, port }, std::str::from_utf8(rest).ok()?))
    }
}

/// Returns a host in lower-case ASCII without a final dot; `None` if it is not a valid host.
fn canonical(host: &str) -> Option<String> {
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

#[cfg(feature = "idn")]
pub(super) fn to_ascii(host: &str) -> Option<Cow<'_, str>> {
    idna::domain_to_ascii_cow(host.as_bytes(), idna::AsciiDenyList::EMPTY).ok()
}

#[cfg(not(feature = "idn"))]
pub(super) fn to_ascii(_: &str) -> Option<Cow<'_, str>> {
    None
}

/// Returns the Unicode form of an ASCII name, if it differs from the name.
#[cfg(feature = "idn")]
fn unicode(ascii: &str) -> Option<String> {
    if !ascii.contains("xn--") {
        return None;
    }
    let (name, result) = idna::domain_to_unicode(ascii);
    result.is_ok().then_some(name).filter(|name| name != ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_host_precedes_the_longest_wildcard_which_precedes_any_host() {
        let mut hosts = HostMap::new();
        for (pattern, value) in [
            ("a.example.com", 1),
            ("*.example.com", 2),
            ("*.b.example.com", 3),
            ("*", 4),
            ("[::1]", 5),
            ("127.0.0.1:81", 6),
            ("c.test:8080", 7),
            ("xn--mnchen-3ya.example", 8),
            ("*.xn--mnchen-3ya.example", 9),
            ("[2001:db8::1]:8080", 10),
            ("secure.test:443", 11),
            ("both.test:80", 12),
            ("both.test:443", 13),
            ("three.test:443", 14),
            ("three.test", 15),
        ] {
            hosts.insert(pattern, value).expect("a host");
        }
        for (host, value) in [
            ("A.Example.Com:443", 1),
            ("b.example.com", 2),
            ("x.b.example.com.", 3),
            ("x.b.example.com.:80", 3),
            ("x.y.z.b.example.com", 3),
            ("x.y.example.com", 2),
            ("example.com", 4),
            ("[::1]:80", 5),
            ("[0:0::0001]", 5),
            ("127.0.0.1:81", 6),
            ("c.test.:8080", 7),
            ("127.0.0.1", 4),
            ("", 4),
            ("xn--mnchen-3ya.example", 8),
            ("XN--MNCHEN-3YA.example.", 8),
            #[cfg(feature = "idn")]
            ("m\u{fc}nchen.example", 8),
            #[cfg(feature = "idn")]
            ("www.m\u{fc}nchen.example", 9),
            ("munchen.example", 4),
            ("[2001:DB8:0:0::1]:8080", 10),
            ("[2001:db8::1]", 4),
            ("secure.test", 11),
            ("secure.test:", 11),
            ("secure.test:443", 11),
            ("secure.test:80", 4),
            ("both.test", 4),
            ("both.test:80", 12),
            ("three.test", 15),
            ("three.test:443", 14),
            ("three.test:99999", 15),
            ("a.example.com:http", 1),
        ] {
            assert_eq!(hosts.get(host), Some(&value), "{host}");
        }
        assert_eq!(hosts.get_for(80, "secure.test"), Some(&4));
        assert_eq!(hosts.get_for(443, "three.test"), Some(&14));
        assert_eq!(hosts.get_for(80, "both.test"), Some(&12));
        assert_eq!(hosts.get(b"a.example.com\xff"), Some(&4));
        assert_eq!(hosts.get("a.".repeat(2000)), Some(&4));
    }

    #[test]
    fn an_invalid_or_repeated_host_pattern_is_refused() {
        let mut hosts = HostMap::new();
        for pattern in [
            "",
            "*.",
            "a b",
            "*a",
            "a.*",
            ".a",
            "a..b",
            "[::1",
            "[x]",
            "a:",
            "a:0",
            "a:99999",
            "*.*",
            "*.[::1]",
            #[cfg(feature = "idn")]
            "m\u{fc}nchen..de",
            "a\u{0}b",
        ] {
            let error = hosts.insert(pattern, ()).expect_err(pattern);
            assert_eq!(error.to_string(), format!("{pattern:?} {MALFORMED}"));
        }
        for (pattern, fault) in [
            ("http://a", WITH_SCHEME),
            ("https://a:80/b", WITH_SCHEME),
            ("a/", WITH_PATH),
            ("a/b", WITH_PATH),
            ("*.a:80", WITH_PORT),
            ("*:80", WITH_PORT),
        ] {
            let error = hosts.insert(pattern, ()).expect_err(pattern);
            assert_eq!(error.to_string(), format!("{pattern:?} {fault}"));
        }
        hosts.insert("a", ()).expect("a host");
        for again in ["A.", "a"] {
            let error = hosts.insert(again, ()).expect_err("repeated");
            assert_eq!(error.to_string(), format!("{again:?} is listed twice: a host can belong to only one site"));
        }
        hosts.insert("[::1]", ()).expect("an address");
        let repeated = hosts.insert("[0::1]", ()).expect_err("repeated").to_string();
        assert_eq!(repeated, format!("\"[0::1]\" {REPEATED}"));
    }

    #[cfg(feature = "idn")]
    #[test]
    fn a_non_ascii_host_name_equals_its_ascii_form() {
        let mut hosts = HostMap::new();
        hosts.insert("M\u{fc}nchen.de", 1).expect("a host");
        let repeated = hosts.insert("xn--mnchen-3ya.de", 2).expect_err("repeated").to_string();
        assert_eq!(repeated, format!("\"xn--mnchen-3ya.de\" {REPEATED}"));
        for host in ["xn--mnchen-3ya.de", "m\u{fc}nchen.de", "XN--MNCHEN-3YA.de:80"] {
            assert_eq!(hosts.get(host), Some(&1), "{host}");
        }
    }

    #[cfg(not(feature = "idn"))]
    #[test]
    fn the_error_for_a_non_ascii_host_contains_the_idn_feature() {
        let mut hosts = HostMap::new();
        let error = hosts.insert("*.m\u{fc}nchen.de", ()).expect_err("the feature is off");
        assert_eq!(
            error.to_string(),
            "\"*.m\u{fc}nchen.de\" is not ASCII: write the host in its ASCII form, which begins with \"xn--\", or turn on the \
             feature \"idn\" of tower-robots"
        );
        assert!(hosts.is_empty());
        hosts.insert("*.xn--mnchen-3ya.de", ()).expect("its ASCII form");
    }
}
