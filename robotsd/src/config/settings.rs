//! The settings of a valid config file, which the program runs on.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tower_robots::live::{Gate, VersionHashPrefix, WhenMissing};
use tower_robots::policy::Policy;
use tower_robots::source::fetch::FetchUrl;

use super::admin::AdminSettings;
use super::board::BoardConfig;
use super::check::CheckSettings;
use super::gate::GateBasis;
use super::identity::IdentityConfig;
use super::tables::{AddressLogging, Dotfiles, ListenerKind, LogFormat, QueryLogging, QuestionSettings, RawConfig};
use crate::edge;
use crate::publish_hook::HookSettings;
use crate::refusal::RefusalPage;
use crate::shared_rate::StoreSettings;
use crate::upstream;

/// A valid config.
#[derive(Debug)]
pub(crate) struct Config {
    /// The file, for the next one to be compared with.
    pub(crate) text: Arc<str>,
    /// For [`Config::review`].
    pub(crate) reviewable: Option<Arc<Reviewable>>,
    /// Threads that serve.
    pub(crate) workers: NonZeroUsize,
    pub(crate) listeners: Vec<ListenerConfig>,
    pub(crate) sites: Vec<SiteConfig>,
    /// Keeps accepted and waiting versions and the kill switch over restarts.
    pub(crate) state_dir: Option<PathBuf>,
    /// What names it in the text.
    pub(crate) state_dir_span: Range<usize>,
    /// The gate of every site, without its expectations; `None` where it is off.
    pub(crate) gate: Option<Gate>,
    /// What the registry has besides the built-in rows.
    pub(crate) registry: RegistrySources,
    /// Versions of the published registry that are used whatever they change.
    pub(crate) registry_accept: Vec<VersionHashPrefix>,
    /// What names the file of further crawlers in the text.
    pub(crate) registry_extra_span: Range<usize>,
    /// How the senders of requests are checked; `None` where they are not checked.
    pub(crate) identity: Option<IdentityConfig>,
    /// The admin interface; `None` where it is off.
    pub(crate) admin: Option<AdminSettings>,
    /// What is kept about crawlers; `None` where nothing is.
    pub(crate) board: Option<BoardConfig>,
    /// Where processes share what they count of crawlers; `None` where each counts for itself.
    pub(crate) rate_store: Option<StoreSettings>,
    /// Why it is never asked, where that is so.
    pub(crate) rate_store_unasked: Option<&'static str>,
    /// The configured bound on connections; `None` for as many as the process has descriptors for, up to the bound in `edge`.
    pub(crate) connections: Option<usize>,
    pub(crate) edge: edge::EdgeLimits,
    /// How long the new process of an upgrade may take for each of its steps.
    pub(crate) upgrade: Duration,
    pub(crate) upstream: upstream::UpstreamLimits,
    pub(crate) log: LogConfig,
}

/// What the registry has besides the built-in rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RegistrySources {
    /// Crawlers to add to, change in or remove from the others.
    pub(crate) extra: Option<PathBuf>,
    pub(crate) published: Option<PublishedSettings>,
}

/// Where a registry or a part of a robots.txt is published, and where it is kept.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PublishedSettings {
    pub(crate) url: FetchUrl,
    /// The certificate authorities to trust, as PEM, in place of those the system trusts.
    pub(crate) ca: Option<Arc<[u8]>>,
    /// The folder of the last good one; none without a state directory.
    pub(crate) saved_in: Option<PathBuf>,
}

/// The log.
#[derive(Debug, PartialEq)]
pub(crate) struct LogConfig {
    pub(crate) format: LogFormat,
    pub(crate) query: QueryLogging,
    pub(crate) address: AddressLogging,
    /// `None` where only events are logged.
    pub(crate) access: Option<AccessSettings>,
}

/// A line for every request.
#[derive(Debug, PartialEq)]
pub(crate) struct AccessSettings {
    pub(crate) format: AccessFormat,
    /// `None` for standard output, where the events go.
    pub(crate) path: Option<PathBuf>,
}

/// The format of the log of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessFormat {
    Combined,
    Json,
}

/// Where requests come in.
#[derive(Clone, Debug)]
pub(crate) struct ListenerConfig {
    /// The name that a supervisor gives its socket.
    pub(crate) name: Option<String>,
    pub(crate) address: SocketAddr,
    pub(crate) kind: ListenerKind,
    /// For decisions.
    pub(crate) questions: QuestionSettings,
    /// `None` without TLS.
    pub(crate) certificates: Option<edge::LiveCertificates>,
    pub(crate) trusted: Arc<edge::Trusted>,
    /// Whether every connection begins with a PROXY header, of a trusted proxy.
    pub(crate) proxy_protocol: bool,
}

/// One site.
#[derive(Clone, Debug)]
pub(crate) struct SiteConfig {
    pub(crate) name: String,
    /// Host patterns; none means every host.
    pub(crate) hosts: Vec<String>,
    /// `None` where no listener forwards requests.
    pub(crate) backend: Option<Backend>,
    pub(crate) robots: RobotsSource,
    /// What names it in the text.
    pub(crate) robots_span: Range<usize>,
    /// What is appended to it, in order.
    pub(crate) append: Vec<AppendSettings>,
    /// What is sent when a version goes live.
    pub(crate) on_publish: Vec<Arc<HookSettings>>,
    pub(crate) max_age: Duration,
    pub(crate) when_missing: WhenMissing,
    /// A file of expectations.
    pub(crate) expectations: Option<PathBuf>,
    /// What names that in the text.
    pub(crate) expectations_span: Range<usize>,
    /// What its gate compares versions with, and by which pages.
    pub(crate) gate_basis: GateBasis,
    pub(crate) grace: Duration,
    pub(crate) policy: Policy,
    pub(crate) check: CheckSettings,
    /// `None`: the default of the layer.
    pub(crate) refusal: Option<Arc<RefusalPage>>,
    /// The values that policy, checks and gate are made from, as text: equal text means equal settings.
    pub(crate) terms: String,
}

/// The origin servers or the files behind a site.
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
    /// Fetched from the upstreams.
    Upstream {
        upstreams: Vec<String>,
        /// The `Host` of the request.
        host: String,
        /// The name that the upstreams' certificates are for, in place of their hosts.
        server_name: Option<String>,
        remote: Remote,
    },
    Url {
        url: String,
        remote: Remote,
    },
}

impl RobotsSource {
    /// The word for it in `source = "…"`.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::File(_) => "file",
            Self::Inline(_) => "inline",
            Self::Directory { .. } => "directory",
            Self::Upstream { .. } => "upstream",
            Self::Url { .. } => "url",
        }
    }
}

/// A part that is appended to a robots.txt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AppendSettings {
    /// What comments in the file that is served call it.
    pub(crate) title: String,
    pub(crate) source: AppendSource,
}

/// Where such a part is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AppendSource {
    File(PathBuf),
    Url(PublishedSettings),
}

/// For people.
impl fmt::Display for AppendSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Url(published) => published.url.fmt(f),
        }
    }
}

/// How a robots.txt is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remote {
    /// The interval, where the response has no max-age.
    pub(crate) refresh: Duration,
    /// How long it must be missing before it counts as removed.
    pub(crate) hold: Duration,
    /// PEM: certificate authorities in place of those of the system.
    pub(crate) ca: Option<Arc<[u8]>>,
}

/// For people.
impl fmt::Display for RegistrySources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.published, &self.extra) {
            (Some(published), Some(extra)) => write!(f, "{} with {}", published.url, extra.display()),
            (Some(published), None) => published.url.fmt(f),
            (None, Some(extra)) => extra.display().fmt(f),
            (None, None) => f.write_str("the built-in registry"),
        }
    }
}

impl fmt::Debug for PublishedSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublishedSettings").field("url", &self.url.to_string()).finish_non_exhaustive()
    }
}

/// The tables of a config file and its name, kept for its review.
///
/// The [review](super::review) reads files that the config names, whose file system may hang, so it is no part of loading.
pub(crate) struct Reviewable {
    pub(super) name: String,
    pub(super) file: RawConfig,
}

impl fmt::Debug for Reviewable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reviewable").finish_non_exhaustive()
    }
}
