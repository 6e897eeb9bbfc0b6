//! Values that a policy refuses.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;

use crate::agent::NetworkError;
use crate::rules::PathPatternError;

/// A value that would match nothing. The message quotes it and says what would be right.
#[derive(Clone, PartialEq, Eq)]
pub struct PolicyError {
    kind: PolicyErrorKind,
    value: String,
    network: Option<NetworkError>,
    /// The name of the crawler that was meant.
    meant: Option<String>,
}

/// The setting a [`PolicyError`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PolicyErrorKind {
    /// A path pattern that begins with neither `/` nor `*`.
    PathPattern,
    /// A method that is not made of letters and hyphens.
    Method,
    /// A text that is no network.
    Network,
    /// A text that names no agent: nothing but `*` or blanks, a whole `User-Agent` field, a name with blanks in it.
    AgentName,
    /// The name of a cookie that no `Cookie` field can hold.
    CookieName,
}

impl PolicyError {
    pub(super) fn new(kind: PolicyErrorKind, value: &[u8]) -> Self {
        Self { kind, value: String::from_utf8_lossy(value).into_owned(), network: None, meant: None }
    }

    /// Of a text that is no crawler's name, and the name that was meant by it.
    pub(super) fn agent_name(name: &str, meant: Option<&str>) -> Self {
        Self { meant: meant.map(str::to_owned), ..Self::new(PolicyErrorKind::AgentName, name.as_bytes()) }
    }

    /// The setting it is about.
    pub const fn kind(&self) -> PolicyErrorKind {
        self.kind
    }

    /// The value that was refused.
    pub fn value(&self) -> &str {
        &self.value
    }
}

impl From<PathPatternError> for PolicyError {
    fn from(error: PathPatternError) -> Self {
        Self::new(PolicyErrorKind::PathPattern, error.value().as_bytes())
    }
}

impl From<NetworkError> for PolicyError {
    fn from(error: NetworkError) -> Self {
        Self { network: Some(error.clone()), ..Self::new(PolicyErrorKind::Network, error.text().as_bytes()) }
    }
}

/// For a list of values that need no reading.
impl From<Infallible> for PolicyError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(network) = &self.network {
            return write!(f, "{network}");
        }
        let (what, right) = match self.kind {
            PolicyErrorKind::PathPattern => ("path pattern", "it matches nothing unless it begins with \"/\" or \"*\""),
            PolicyErrorKind::Network => ("network", "write one such as \"10.0.0.0/8\""),
            PolicyErrorKind::Method => ("method", "write one such as \"GET\""),
            PolicyErrorKind::AgentName => ("crawler's name", "write one such as \"GPTBot\""),
            PolicyErrorKind::CookieName => ("cookie's name", "write the part before \"=\", such as \"session\""),
        };
        match &self.meant {
            Some(meant) => write!(f, "{:?} is not a {what}: write {meant:?}", self.value),
            None => write!(f, "{:?} is not a {what}: {right}", self.value),
        }
    }
}

impl fmt::Debug for PolicyError {
    /// As it is displayed, because that is what the operator sees of an error that `main` returns.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for PolicyError {}

#[cfg(test)]
mod tests {
    use crate::policy::{Mode, Override, Policy, PolicyErrorKind};

    #[test]
    fn a_value_that_matches_nothing_is_refused_with_the_right_one() {
        let builder = Policy::builder;
        for (refused, kind, message) in [
            (
                builder().exempt_paths(["/a", "healthz"]).err(),
                PolicyErrorKind::PathPattern,
                "\"healthz\" is not a path pattern: it matches nothing unless it begins with \"/\" or \"*\"",
            ),
            (builder().exempt_paths([""]).err(), PolicyErrorKind::PathPattern, "\"\" is not a path pattern"),
            (
                Override::pattern("a/", Mode::Off).err(),
                PolicyErrorKind::PathPattern,
                "\"a/\" is not a path pattern: it matches nothing",
            ),
            (
                builder().star_methods(["GET", "G T"]).err(),
                PolicyErrorKind::Method,
                "\"G T\" is not a method: write one such as \"GET\"",
            ),
            (
                builder().exempt_networks(["10.0.0.0/8".to_owned(), "10.0.0.1/8".to_owned()]).err(),
                PolicyErrorKind::Network,
                "\"10.0.0.1/8\" is not a network: bits after the length must be zero",
            ),
            (builder().star_methods([""]).err(), PolicyErrorKind::Method, "\"\" is not a method"),
            (
                builder().exempt_agents(["GPTBot", "*"]).err(),
                PolicyErrorKind::AgentName,
                "\"*\" is not a crawler's name: write one such as \"GPTBot\"",
            ),
            (Override::agent(" ", Mode::Off).err(), PolicyErrorKind::AgentName, "\" \" is not a crawler's name"),
            (
                builder().exempt_cookies(["sid=1"]).err(),
                PolicyErrorKind::CookieName,
                "\"sid=1\" is not a cookie's name: write the part before \"=\", such as \"session\"",
            ),
            (builder().session_cookies([""]).err(), PolicyErrorKind::CookieName, "\"\" is not a cookie's name"),
            (builder().session_cookies([" a"]).err(), PolicyErrorKind::CookieName, "\" a\" is not a cookie's name"),
            (builder().session_cookies(["a;b"]).err(), PolicyErrorKind::CookieName, "\"a;b\" is not a cookie's name"),
        ] {
            let error = refused.expect(message);
            assert_eq!(error.kind(), kind);
            assert!(error.to_string().starts_with(message), "{error}");
            assert!(message.starts_with(&format!("{:?}", error.value())), "{error}");
        }
        let policy = builder()
            .exempt_paths(["/.well-known/", "*.css$"])
            .and_then(|policy| policy.star_methods(["get", "VERSION-CONTROL"]))
            .and_then(|policy| policy.exempt_agents(["GPTBot/1.2", "Screaming Frog SEO Spider"]))
            .and_then(|policy| policy.exempt_cookies(["__Host-sid", "caf\u{e9}"]));
        assert_eq!(policy.err(), None);
    }
}
