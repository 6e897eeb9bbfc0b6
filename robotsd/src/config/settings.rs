//! What the program runs on: the settings of a config file that makes sense.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tower_robots::live::{GateBuilder, WhenMissing};
use tower_robots::policy::Policy;

use super::admin::AdminSettings;
use super::check::CheckSettings;
use super::raw::{Dotfiles, ListenerKind, LogFormat, OnError};
use crate::log::LogPrivacy;
use crate::{edge, upstream};

/// A config that makes sense.
#[derive(Debug)]
pub(crate) struct Config {
    /// Threads that serve.
    pub(crate) workers: NonZeroUsize,
    pub(crate) listeners: Vec<ListenerConfig>,
    pub(crate) sites: Vec<SiteConfig>,
    /// Where what was accepted, what waits and the kill switch are kept.
    pub(crate) state_dir: Option<PathBuf>,
    /// What a version must not do; the expectations of each site come to it.
    pub(crate) gate: Option<GateBuilder>,
    /// Crawlers to add to, change in or remove from the built-in registry.
    pub(crate) registry_extra: Option<PathBuf>,
    /// Where the operator asks and tells; none where that is off.
    pub(crate) admin: Option<AdminSettings>,
    /// The connections that were asked for; none for as many as the process has descriptors for, up to the bound in
    /// `edge`.
    pub(crate) connections: Option<usize>,
    pub(crate) edge: edge::EdgeLimits,
    pub(crate) upstream: upstream::UpstreamLimits,
    pub(crate) log: LogConfig,
}

/// What is logged.
#[derive(Debug, PartialEq)]
pub(crate) struct LogConfig {
    pub(crate) format: LogFormat,
    pub(crate) privacy: LogPrivacy,
    /// None where only events are logged.
    pub(crate) access: Option<AccessSettings>,
}

/// A line for every request.
#[derive(Debug, PartialEq)]
pub(crate) struct AccessSettings {
    pub(crate) format: AccessFormat,
    /// None for standard output, where the events go.
    pub(crate) path: Option<PathBuf>,
}

/// How a request is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessFormat {
    Combined,
    Json,
}

/// Where requests come in.
#[derive(Clone, Debug)]
pub(crate) struct ListenerConfig {
    /// What a supervisor calls its socket.
    pub(crate) name: Option<String>,
    pub(crate) address: SocketAddr,
    pub(crate) kind: ListenerKind,
    /// For decisions.
    pub(crate) on_error: OnError,
    /// None where it speaks no TLS.
    pub(crate) certificates: Option<edge::LiveCertificates>,
    pub(crate) trusted: Arc<edge::Trusted>,
}

/// One site.
#[derive(Clone, Debug)]
pub(crate) struct SiteConfig {
    pub(crate) name: String,
    /// Host patterns; none means every host.
    pub(crate) hosts: Vec<String>,
    /// None where no listener forwards anything.
    pub(crate) backend: Option<Backend>,
    pub(crate) robots: RobotsSource,
    pub(crate) max_age: Duration,
    pub(crate) when_missing: WhenMissing,
    /// A file of what robots.txt must allow and disallow.
    pub(crate) expectations: Option<PathBuf>,
    pub(crate) grace: Duration,
    pub(crate) policy: Policy,
    pub(crate) check: CheckSettings,
    /// All that was written about judging its requests and checking its file, in one form: what is equal here is equal
    /// there.
    pub(crate) terms: String,
}

/// What stands behind a site.
#[derive(Clone, Debug)]
pub(crate) enum Backend {
    Upstreams(upstream::OriginsSettings),
    Files(StaticFiles),
}

/// A folder of static files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StaticFiles {
    pub(crate) root: PathBuf,
    pub(crate) dotfiles: Dotfiles,
}

/// Where a site's robots.txt comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RobotsSource {
    File(PathBuf),
    Inline(String),
    /// A folder with a file for each host.
    Directory {
        path: PathBuf,
        /// The name of the file for every other host.
        fallback: String,
    },
    /// What the upstreams answer to a request for it.
    Upstream {
        upstreams: Vec<String>,
        /// What the request's `Host` says.
        host: String,
        /// Whom the upstreams' certificates are for, in place of their hosts.
        server_name: Option<String>,
        remote: Remote,
    },
    Url {
        url: String,
        remote: Remote,
    },
}

/// How a robots.txt is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remote {
    /// How often, where its server does not say.
    pub(crate) refresh: Duration,
    /// How long it must be gone before that is believed.
    pub(crate) hold: Duration,
    /// PEM: who is trusted in place of whom the system trusts.
    pub(crate) ca: Option<Arc<[u8]>>,
}
