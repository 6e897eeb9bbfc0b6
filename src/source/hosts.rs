//! Which site a host belongs to.

use std::borrow::Cow;
use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use super::live::LiveRobots;

/// Values by host: exact names before wildcards, the longest wildcard first, then one for every other host.
///
/// Names are compared without case, without a trailing dot, and first with their port.
///
/// ```
/// use tower_robots::source::HostMap;
///
/// let mut hosts = HostMap::new();
/// hosts.insert("example.com", 1)?;
/// hosts.insert("*.example.com", 2)?;
/// hosts.insert("example.com:8080", 3)?;
/// assert_eq!(hosts.get("EXAMPLE.com."), Some(&1));
/// assert_eq!(hosts.get("a.b.example.com:80"), Some(&2));
/// assert_eq!(hosts.get("example.com:8080"), Some(&3));
/// assert_eq!(hosts.get("example.org"), None);
/// # Ok::<(), tower_robots::source::HostPatternError>(())
/// ```
#[derive(Clone, Debug)]
pub struct HostMap<T> {
    exact: HashMap<String, T>,
    /// By the name behind `*.`.
    wildcard: HashMap<String, T>,
    any: Option<T>,
}

/// A text that is no host name, no `*.` and a host name, and no `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPatternError {
    pattern: String,
    fault: Fault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Malformed,
    Repeated,
}

impl<T> HostMap<T> {
    /// An empty map.
    #[must_use]
    pub fn new() -> Self {
        Self { exact: HashMap::new(), wildcard: HashMap::new(), any: None }
    }

    /// Adds a value for `example.com`, `example.com:8080`, `*.example.com` (any depth below, not the name itself) or
    /// `*` (every other host).
    ///
    /// # Errors
    ///
    /// If the pattern is malformed, or has a value already.
    pub fn insert(&mut self, pattern: &str, value: T) -> Result<(), HostPatternError> {
        let error = |fault| Err(HostPatternError { pattern: pattern.to_owned(), fault });
        let name = normal(pattern);
        let below = name.strip_prefix("*.");
        let (map, name) = match below {
            Some(below) => (&mut self.wildcard, below),
            None if pattern == "*" => {
                return match self.any.replace(value) {
                    None => Ok(()),
                    Some(_) => error(Fault::Repeated),
                };
            }
            None => (&mut self.exact, &*name),
        };
        // A wildcard stands for names, whatever their port.
        if !is_host(name) || below.is_some() && without_port(name) != name {
            return error(Fault::Malformed);
        }
        match map.insert(name.to_owned(), value) {
            None => Ok(()),
            Some(_) => error(Fault::Repeated),
        }
    }

    /// The value for a host, with or without a port, as in a `Host` field.
    #[must_use]
    pub fn get(&self, host: &str) -> Option<&T> {
        if self.exact.is_empty() && self.wildcard.is_empty() {
            return self.any.as_ref();
        }
        let with_port = normal(host);
        let name = without_port(&with_port);
        self.exact.get(&*with_port).or_else(|| self.exact.get(name)).or_else(|| self.below(name)).or(self.any.as_ref())
    }

    /// The value for every host that has none of its own.
    #[must_use]
    pub const fn any(&self) -> Option<&T> {
        self.any.as_ref()
    }

    /// Every value.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.exact.values().chain(self.wildcard.values()).chain(&self.any)
    }

    fn below(&self, name: &str) -> Option<&T> {
        let mut rest = name;
        while let Some((_, above)) = rest.split_once('.') {
            if let Some(value) = self.wildcard.get(above) {
                return Some(value);
            }
            rest = above;
        }
        None
    }
}

impl<T> Default for HostMap<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for HostPatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fault {
            Fault::Malformed => {
                write!(
                    f,
                    "{:?} is not a host: write an ASCII name such as \"example.com\", \"*.example.com\" or \"*\"",
                    self.pattern
                )
            }
            Fault::Repeated => write!(f, "{:?} stands here twice: a host belongs to one site", self.pattern),
        }
    }
}

impl Error for HostPatternError {}

/// Sites by host: what a [`RobotsLayer`](crate::layer::RobotsLayer) takes. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Sites(Arc<HostMap<LiveRobots>>);

impl Sites {
    /// The site a host belongs to; a request without a host belongs to the site of every other host.
    #[cfg(feature = "layer")]
    pub(crate) fn get<'h>(&self, host: impl FnOnce() -> Option<&'h str>) -> Option<&LiveRobots> {
        // One site for every host is what most applications have: then nobody has to look for the host.
        if self.0.exact.is_empty() && self.0.wildcard.is_empty() {
            return self.0.any();
        }
        match host() {
            Some(host) => self.0.get(host),
            None => self.0.any(),
        }
    }
}

/// One robots.txt for every host.
impl From<LiveRobots> for Sites {
    fn from(live: LiveRobots) -> Self {
        Self(Arc::new(HostMap { any: Some(live), ..HostMap::new() }))
    }
}

impl From<HostMap<LiveRobots>> for Sites {
    fn from(hosts: HostMap<LiveRobots>) -> Self {
        Self(Arc::new(hosts))
    }
}

/// Lower case, without the dot that may end a name; borrows what is so already.
fn normal(host: &str) -> Cow<'_, str> {
    let host = host.strip_suffix('.').unwrap_or(host);
    let dotted = host.contains(".:");
    if dotted || host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        host.to_ascii_lowercase().replacen(".:", ":", 1).into()
    } else {
        host.into()
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // The colons inside `[::1]` part no port.
        Some((name, port))
            if (name.ends_with(']') || !name.contains(':')) && port.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            name
        }
        _ => host,
    }
}

fn is_host(name: &str) -> bool {
    let inner = without_port(name);
    let port = name.strip_prefix(inner).unwrap_or_default();
    if !port.is_empty() && !port[1..].parse::<u16>().is_ok_and(|port| port != 0) {
        return false;
    }
    let literal = inner.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
    match literal {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            // Other scripts come in their ASCII form, on the wire and here: `xn--mnchen-3ya.de`.
            let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
            !inner.is_empty() && inner.bytes().all(legal) && !inner.starts_with('.') && !inner.contains("..")
        }
    }
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
        ] {
            hosts.insert(pattern, value).expect("a host");
        }
        for (host, value) in [
            ("A.Example.Com:443", 1),
            ("b.example.com", 2),
            ("x.b.example.com.", 3),
            ("x.b.example.com.:80", 3),
            ("example.com", 4),
            ("[::1]:80", 5),
            ("127.0.0.1:81", 6),
            ("c.test.:8080", 7),
            ("127.0.0.1", 4),
            ("", 4),
        ] {
            assert_eq!(hosts.get(host), Some(&value), "{host}");
        }
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
            "m\u{fc}nchen.de",
        ] {
            let error = hosts.insert(pattern, ()).expect_err(pattern);
            assert_eq!(error.fault, Fault::Malformed, "{pattern}");
        }
        hosts.insert("a", ()).expect("a host");
        let error = hosts.insert("A.", ()).expect_err("repeated");
        assert_eq!(error.to_string(), "\"A.\" stands here twice: a host belongs to one site");
    }
}
