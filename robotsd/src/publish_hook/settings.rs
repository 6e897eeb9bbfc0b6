//! The settings of a hook, and the version that it announces.

use std::fmt::{self, Write as _};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::header::{HeaderName, HeaderValue};
use http::uri::{PathAndQuery, Scheme};
use http::{Method, Uri};
use tower_robots::live::VersionHash;

use super::body_template::BodyTemplate;
use crate::upstream::Trust;

/// How long one attempt may take.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// What is sent, and where.
#[derive(Debug, PartialEq)]
pub(crate) struct HookSettings {
    pub(crate) target: HookTarget,
    pub(crate) method: Method,
    pub(crate) headers: Vec<(HeaderName, HookHeader)>,
    pub(crate) body: Option<BodyTemplate>,
    pub(crate) timeout: Duration,
    pub(crate) trust: Trust,
}

/// The value of a header field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HookHeader {
    Text(HeaderValue),
    /// The file that holds it, read for each attempt.
    File(PathBuf),
}

/// The URL of a hook. It is shown without its path, which may hold a secret.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct HookTarget {
    pub(crate) is_secure: bool,
    host: String,
    port: Option<u16>,
    pub(super) path: PathAndQuery,
}

impl HookSettings {
    /// What tells it from other hooks of a site, also after a restart: a request with the same is the same.
    pub(crate) fn fingerprint(&self) -> String {
        let mut text = format!("{} {}{}\n", self.method, self.target, self.target.path);
        for (name, value) in &self.headers {
            let _ = writeln!(text, "{name}: {value:?}");
        }
        text.push_str(self.body.as_ref().map_or("", |body| &body.text));
        VersionHash::of(text.as_bytes()).to_string()
    }

    /// What tells one of its requests from another: the version, and the hosts where the body names them.
    pub(super) fn announcement(&self, version: &PublishedVersion) -> String {
        match self.needs_host() {
            true => format!("{} {}", version.version, VersionHash::of(version.hosts.join(" ").as_bytes()).short()),
            false => version.version.clone(),
        }
    }

    pub(super) fn needs_host(&self) -> bool {
        self.body.as_ref().is_some_and(BodyTemplate::needs_host)
    }
}

impl HookTarget {
    /// The target of an absolute URL, or what is wrong with it.
    pub(crate) fn new(uri: Uri) -> Result<Self, &'static str> {
        let is_secure = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            _ => return Err("it begins neither with \"https://\" nor with \"http://\""),
        };
        let authority = uri.authority().ok_or("it has no host")?;
        if authority.as_str().contains('@') {
            return Err("it holds a name or a password: put them in the header Authorization, from a file");
        }
        let host = authority.host();
        if host.is_empty() {
            return Err("it has no host");
        }
        let port = match authority.as_str().strip_prefix(host) {
            None | Some("") => None,
            Some(_) => Some(authority.port_u16().filter(|port| *port > 0).ok_or("its port is none")?),
        };
        let path = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        Ok(Self { is_secure, host: host.to_owned(), port, path })
    }

    /// Whether what is sent can be read on its way, and changed.
    pub(crate) fn is_open(&self) -> bool {
        let is_loopback = |address: IpAddr| address.is_loopback();
        !self.is_secure && self.host != "localhost" && !self.host().parse().is_ok_and(is_loopback)
    }

    /// As it is connected to and as a certificate has it: without the brackets of an IPv6 address.
    pub(super) fn host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    pub(super) fn port(&self) -> u16 {
        self.port.unwrap_or(if self.is_secure { 443 } else { 80 })
    }

    /// For the field `Host`.
    pub(super) fn authority(&self) -> String {
        self.port.map_or_else(|| self.host.clone(), |port| format!("{}:{port}", self.host))
    }
}

impl fmt::Display for HookTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.is_secure { "https" } else { "http" }, self.authority())
    }
}

impl fmt::Debug for HookTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A version that is live.
#[derive(Clone, Debug)]
pub(crate) struct PublishedVersion {
    /// The site, by which its hooks are known.
    pub(crate) site: String,
    /// The name of the robots.txt: `SITE`, or `SITE/HOST`.
    pub(crate) name: String,
    /// Its hosts, patterns left out.
    pub(crate) hosts: Vec<String>,
    /// Its hash; `none` where there is no robots.txt any more.
    pub(crate) version: String,
}

impl PublishedVersion {
    /// The hash as the log shows it.
    pub(crate) fn short(&self) -> &str {
        let hash = self.version.rsplit(':').next().unwrap_or_default();
        hash.get(..16).unwrap_or(hash)
    }
}
