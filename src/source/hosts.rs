//! Hosts: the ASCII form of a name, origins, the patterns of a config, and values by host.
//!
//! **Values by host are numbers into a list**: the ASCII form of a name, its own script and its ports lead to one
//! value.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::Ipv6Addr;

use crate::rules::{Authority, Port, ValueError};

/// The longest host name there is, in octets (RFC 1035, section 2.3.4), in its own script too.
const MAX_NAME: usize = 253 * 2;

/// Values by host: exact names before wildcards, the longest wildcard first, then one for every other host.
///
/// Names are compared without case and without a final dot, and an IPv6 address is the same however it is written. A value
/// with a port goes before one without, which holds for every other port.
///
/// A host that no pattern fits has no value: a [`RobotsLayer`](https://docs.rs/tower-robots/latest/tower_robots/layer/struct.RobotsLayer.html)
/// lets its requests pass. An application that answers under any host wants a value for `*`, or a crawler walks around the
/// rules with a host of its own.
///
/// With the feature `idn` a name of another script is the same as its ASCII form. Without it a pattern is written in the
/// ASCII form (`xn--mnchen-3ya.example`), which is what clients send.
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
    /// By the name behind `*.`.
    wildcard: Names,
    addresses: HashMap<Ipv6Addr, Ports, foldhash::fast::RandomState>,
    any: Option<usize>,
    /// The most dots a name behind `*.` has: no deeper name has to be looked for.
    deepest: usize,
}

type Names = HashMap<Box<[u8]>, Ports, foldhash::fast::RandomState>;

/// The places of a host's values.
#[derive(Clone, Debug, Default)]
struct Ports {
    other: Option<usize>,
    ports: Vec<(u16, usize)>,
}

// The fault of a pattern, written behind it.
const MALFORMED: &str =
    "is not a host: write a name such as \"example.com\", \"*.example.com\" or \"*\", or an address";
const OTHER_SCRIPT: &str = "is not ASCII: write the host in its ASCII form, which begins with \"xn--\", or turn on the feature \
                            \"idn\" of tower-robots";
const REPEATED: &str = "stands here twice: a host belongs to one site";

impl<T> HostMap<T> {
    /// An empty map.
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

    /// Adds a value for `example.com`, `example.com:8080`, `*.example.com` (any depth below, not the name itself) or
    /// `*` (every other host).
    ///
    /// # Errors
    ///
    /// If the pattern is malformed, or has a value already, or is not ASCII and the feature `idn` is off.
    pub fn insert(&mut self, pattern: &str, value: T) -> Result<(), ValueError> {
        let error = |fault| ValueError::new(pattern, fault);
        let place = self.values.len();
        let (pattern, wildcard) = pattern.strip_prefix("*.").map_or((pattern, false), |below| (below, true));
        let authority = Authority::of_host_field(pattern.as_bytes());
        let port = authority.port;
        // Text that is split at an ASCII octet stays text.
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
        let name = canonical(host).ok_or_else(|| error(MALFORMED))?;
        let port = match port {
            Port::Number(port) if port != 0 => Some(port),
            Port::Absent => None,
            _ => return Err(error(MALFORMED)),
        };
        let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')?.parse().ok());
        // A wildcard stands for names, whatever their port.
        if wildcard && (port.is_some() || address.is_some()) {
            return Err(error(MALFORMED));
        }
        let names = if wildcard { &mut self.wildcard } else { &mut self.exact };
        let ports = match address {
            Some(address) => self.addresses.entry(address).or_default(),
            None => names.entry(name.as_bytes().into()).or_default(),
        };
        ports.add(port, place).map_err(|()| error(REPEATED))?;
        if wildcard {
            self.deepest = self.deepest.max(survey(name.as_bytes()).0);
        }
        // A client may send the name in its own script, whatever the standards say.
        #[cfg(feature = "idn")]
        if let Some(name) = unicode(&name) {
            let _ = names.entry(name.as_bytes().into()).or_default().add(port, place);
        }
        self.values.push(value);
        Ok(())
    }

    /// The value for a host, with or without a port, as in a `Host` field.
    ///
    /// If no port is written it is one of the default ports: a value for `example.com:443` is found as `example.com` if
    /// that has no value without a port, nor one for port 80. [`HostMap::get_for`] knows better.
    pub fn get(&self, host: impl AsRef<[u8]>) -> Option<&T> {
        self.find(host.as_ref(), None)
    }

    /// As [`HostMap::get`] for a request of a known scheme: a port that is not written is the scheme's, 80 or 443.
    pub fn get_for(&self, default_port: u16, host: impl AsRef<[u8]>) -> Option<&T> {
        self.find(host.as_ref(), Some(default_port))
    }

    pub(super) fn find(&self, host: &[u8], default_port: Option<u16>) -> Option<&T> {
        let place = self.place(host, default_port).or(self.any)?;
        self.values.get(place)
    }

    /// The value for every host that has none of its own.
    pub fn any(&self) -> Option<&T> {
        self.values.get(self.any?)
    }

    /// Every value, in the order they were added.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    fn place(&self, host: &[u8], default_port: Option<u16>) -> Option<usize> {
        let authority = Authority::of_host_field(host);
        let port = match authority.port {
            Port::Absent | Port::Empty => default_port,
            Port::Number(port) => Some(port),
            // The name says whose it is: a text that is no port must not be a way past a site's rules.
            Port::Malformed => None,
        };
        let name = authority.host;
        if let [b'[', address @ .., b']'] = name {
            // Parsing takes no more than 45 octets of it.
            let address = std::str::from_utf8(address).ok()?.parse().ok()?;
            return self.addresses.get(&address)?.at(port);
        }
        let name = name.strip_suffix(b".").unwrap_or(name);
        if name.len() > MAX_NAME {
            return None;
        }
        let (dots, has_capitals) = survey(name);
        if !has_capitals {
            return self.named(name, dots, port);
        }
        // On the stack: a host in capitals costs no allocation.
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
        // Names are short: octet by octet costs less than calling for the next dot.
        for (at, _) in name.iter().enumerate().filter(|(_, byte)| **byte == b'.') {
            dots -= 1;
            // A name of a thousand labels is looked up no more often than the wildcards are deep.
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
            // Either default port may be meant; where both have a value it stays open.
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

/// How many dots a name has, and whether it has capitals: without a branch, so that it takes 16 octets at a time.
fn survey(name: &[u8]) -> (usize, bool) {
    let (mut dots, mut capitals) = (0_u16, 0_u8);
    for byte in name.iter().take(MAX_NAME) {
        dots += u16::from(*byte == b'.');
        capitals |= u8::from(byte.is_ascii_uppercase());
    }
    (dots.into(), capitals != 0)
}

/// The scheme of a request, which decides the port where none is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scheme {
    Http,
    Https,
    Ftp,
}

/// The origin that a robots.txt is valid for: a scheme, a host and a port (RFC 9309, section 2.3; RFC 6454, section 4).
///
/// Hosts are compared without case and without a final dot, names of other scripts by their ASCII form, IPv6 addresses by
/// what they are, and a port that is not written is the scheme's. Without the feature `idn` a host has to be written in its
/// ASCII form (`xn--…`): a URL with another has no origin.
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
    /// `http`, `https` or `ftp`.
    pub scheme: &'static str,
    /// The host in ASCII and lower case; an IPv6 address in brackets.
    pub host: String,
    /// The port, written or not.
    pub port: u16,
}

impl Scheme {
    /// The port that is meant where none is written.
    pub(crate) const fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
            Self::Ftp => 21,
        }
    }

    /// The scheme's name in lower case.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Ftp => "ftp",
        }
    }

    /// Reads a name without regard to case; `None` for other schemes.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Http, Self::Https, Self::Ftp].into_iter().find(|scheme| name.eq_ignore_ascii_case(scheme.as_str()))
    }
}

impl Origin {
    /// The origin of an absolute URL; `None` if it is no URL of one of these schemes.
    pub fn of(url: &str) -> Option<Self> {
        Self::split(url).map(|(origin, _)| origin)
    }

    /// The origin that the robots.txt at a URL is valid for; `None` if no robots.txt has that URL, whose
    /// path is always `/robots.txt`.
    pub fn of_robots_txt(url: &str) -> Option<Self> {
        Self::split(url).filter(|(_, rest)| *rest == "/robots.txt").map(|(origin, _)| origin)
    }

    /// Whether a URL is of this origin, and so whether its robots.txt is the one that counts.
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

/// A host in the form it is compared in: ASCII, lower case, no final dot; `None` if it is no host.
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
    fn exact_before_longest_wildcard_before_any() {
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
    fn what_is_no_host_is_refused() {
        let mut hosts = HostMap::new();
        for pattern in [
            "",
            "*.",
            "a b",
            "http://a",
            "a/b",
            "*a",
            "a.*",
            ".a",
            "a..b",
            "[::1",
            "[x]",
            "a:",
            "a:0",
            "a:99999",
            "*.a:80",
            "*:80",
            "*.*",
            "*.[::1]",
            #[cfg(feature = "idn")]
            "m\u{fc}nchen..de",
            "a\u{0}b",
        ] {
            let error = hosts.insert(pattern, ()).expect_err(pattern);
            assert_eq!(error.to_string(), format!("{pattern:?} {MALFORMED}"));
        }
        hosts.insert("a", ()).expect("a host");
        for again in ["A.", "a"] {
            let error = hosts.insert(again, ()).expect_err("repeated");
            assert_eq!(error.to_string(), format!("{again:?} stands here twice: a host belongs to one site"));
        }
        hosts.insert("[::1]", ()).expect("an address");
        let repeated = hosts.insert("[0::1]", ()).expect_err("repeated").to_string();
        assert_eq!(repeated, format!("\"[0::1]\" {REPEATED}"));
    }

    #[cfg(feature = "idn")]
    #[test]
    fn a_name_of_another_script_is_its_ascii_form() {
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
    fn a_name_of_another_script_names_the_feature_that_it_takes() {
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
