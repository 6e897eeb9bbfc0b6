//! The TOML, key by key, with every default.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::value::Datetime;
use tower_robots::agent::Category;
use tower_robots::live::DEFAULT_MAX_AGE;
use tower_robots::policy::{
    EmptyAgent, IdentityNeeded, Impostors, Mode, Policy, RateMode, StarExceptions, StarScope, SuspectHuman,
};
use tower_robots::rules::PathForm;

use super::board::RawBoard;
use super::identity_table::RawIdentity;
use super::keys::Document;
use super::rate_store::{RawRate, RawRateStore};
use super::values::{Address, Size, Span};
use crate::edge;
use crate::upstream;

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawConfig {
    #[serde(default)]
    pub(super) mode: Mode,
    pub(super) workers: Option<Spanned<NonZeroUsize>>,
    pub(super) state_dir: Option<Spanned<PathBuf>>,
    #[serde(default)]
    pub(super) listener: Vec<RawListener>,
    #[serde(default)]
    pub(super) site: Vec<Spanned<RawSite>>,
    #[serde(default)]
    pub(super) agents: RawAgents,
    #[serde(default)]
    pub(super) exempt: RawExempt,
    /// Its presence starts the checks of who sends requests.
    pub(super) identity: Option<RawIdentity>,
    #[serde(default)]
    pub(super) check: RawCheck,
    pub(super) admin: Option<RawAdmin>,
    #[serde(default)]
    pub(super) board: RawBoard,
    /// Where processes share what they count.
    #[serde(default)]
    pub(super) rate: RawRateStore,
    #[serde(default)]
    pub(super) gate: RawGate,
    #[serde(default)]
    pub(super) limits: RawLimits,
    #[serde(default)]
    pub(super) log: RawLog,
}

impl RawConfig {
    /// What becomes of impostors, and what exemptions need.
    pub(super) fn identity_rules(&self) -> (Impostors, IdentityNeeded) {
        self.identity.as_ref().map(|identity| (identity.impostors, identity.needed)).unwrap_or_default()
    }
}

impl Document for RawConfig {
    const TABLES: &'static [&'static str] = &[
        "listener[]",
        "listener.certificate[]",
        "site[]",
        "site.upstream",
        "site.robots",
        "site.enforcement",
        "site.rate",
        "site.override[]",
        "site.refusal",
        "agents",
        "exempt",
        "identity",
        "identity.list[]",
        "check",
        "gate",
        "gate.must_allow[]",
        "admin",
        "admin.listener[]",
        "board",
        "rate",
        "limits",
        "log",
    ];
    const NAME: &'static str = "the config";
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawListener {
    pub(super) name: Option<Spanned<String>>,
    pub(super) address: Spanned<Address>,
    #[serde(default)]
    pub(super) kind: ListenerKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) on_error: Option<Spanned<OnError>>,
    #[serde(default)]
    pub(super) trusted_proxies: Vec<Spanned<String>>,
    pub(super) agent_header: Option<Spanned<String>>,
    #[serde(default, rename = "certificate")]
    pub(super) certificates: Vec<RawCertificate>,
}

/// A certificate with those of its issuers, and its key.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCertificate {
    pub(super) chain: Spanned<PathBuf>,
    pub(super) key: Spanned<PathBuf>,
}

/// The service of a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ListenerKind {
    #[default]
    Proxy,
    /// Answers the questions of other proxies.
    Decision,
}

impl ListenerKind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Proxy => "proxy",
            Self::Decision => "decision",
        }
    }
}

/// The answer to a question that does not identify the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnError {
    #[default]
    Pass,
    Refuse,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSite {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) hosts: Vec<Spanned<String>>,
    pub(super) upstreams: Option<Vec<Spanned<String>>>,
    pub(super) root: Option<Spanned<PathBuf>>,
    pub(super) dotfiles: Option<Spanned<Dotfiles>>,
    #[serde(default)]
    pub(super) upstream: RawUpstream,
    #[serde(default)]
    pub(super) robots: RawRobots,
    #[serde(default)]
    pub(super) enforcement: RawEnforcement,
    #[serde(default)]
    pub(super) rate: RawRate,
    #[serde(default, rename = "override")]
    pub(super) overrides: Vec<Spanned<RawOverride>>,
    #[serde(default)]
    pub(super) refusal: RawRefusal,
}

/// The response to refused requests.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawRefusal {
    pub(super) file: Option<Spanned<PathBuf>>,
    pub(super) status: Option<Spanned<u16>>,
    pub(super) language: Option<Spanned<String>>,
    pub(super) contact: Option<Spanned<String>>,
}

/// Files and folders of a root whose name begins with a dot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Dotfiles {
    /// 404, except below `/.well-known/`.
    #[default]
    Hide,
    Serve,
}

/// Settings of all upstreams of a site.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawUpstream {
    pub(super) max_fails: u32,
    pub(super) fail_window: Span,
    pub(super) eject: Spanned<Span>,
    pub(super) eject_max: Span,
    pub(super) http2: Option<Spanned<bool>>,
    pub(super) ca: Option<Spanned<PathBuf>>,
    pub(super) server_name: Option<Spanned<String>>,
}

impl Default for RawUpstream {
    fn default() -> Self {
        let health = upstream::HealthPolicy::default();
        Self {
            max_fails: health.max_fails,
            fail_window: Span(health.fail_window),
            eject: Spanned::new(0..0, Span(health.eject)),
            eject_max: Span(health.eject_max),
            http2: None,
            ca: None,
            server_name: None,
        }
    }
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawRobots {
    pub(super) source: Option<Spanned<SourceKind>>,
    pub(super) path: Option<Spanned<PathBuf>>,
    pub(super) fallback: Option<Spanned<String>>,
    pub(super) text: Option<Spanned<String>>,
    pub(super) url: Option<Spanned<String>>,
    pub(super) ca: Option<Spanned<PathBuf>>,
    pub(super) host: Option<Spanned<String>>,
    pub(super) refresh: Option<Spanned<Span>>,
    pub(super) hold: Option<Spanned<Span>>,
    pub(super) max_age: Spanned<Span>,
    pub(super) on_missing: OnMissing,
    pub(super) expectations: Option<Spanned<PathBuf>>,
}

impl Default for RawRobots {
    fn default() -> Self {
        Self {
            source: None,
            path: None,
            fallback: None,
            text: None,
            url: None,
            ca: None,
            host: None,
            refresh: None,
            hold: None,
            max_age: Spanned::new(0..0, Span(DEFAULT_MAX_AGE)),
            on_missing: OnMissing::default(),
            expectations: None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum SourceKind {
    #[default]
    File,
    Directory,
    Inline,
    Upstream,
    Url,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum OnMissing {
    #[default]
    LastGood,
    Upstream,
    Fail,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawEnforcement {
    pub(super) mode: Option<Mode>,
    pub(super) grace: Span,
    pub(super) forms: Vec<Spanned<PathForm>>,
}

impl Default for RawEnforcement {
    fn default() -> Self {
        let forms = PathForm::OPTIONAL.into_iter().map(|form| Spanned::new(0..0, form)).collect();
        Self { mode: None, grace: Span::seconds(0), forms }
    }
}

/// Requests that come sooner than the delay of robots.txt lets them.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawOverride {
    pub(super) category: Option<Category>,
    pub(super) agent: Option<Spanned<String>>,
    pub(super) pattern: Option<Spanned<String>>,
    pub(super) index: Option<bool>,
    /// Of disallowed requests; this, `rate` or both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mode: Option<Mode>,
    /// Of requests that come too soon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rate: Option<RateMode>,
    pub(super) until: Option<Spanned<Datetime>>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawAgents {
    pub(super) star_scope: StarScope,
    pub(super) star_methods: Vec<Spanned<String>>,
    pub(super) star_exempt: Vec<Category>,
    pub(super) star_exceptions: StarExceptions,
    pub(super) star_empty: EmptyAgent,
    pub(super) family: Family,
    pub(super) ignore: Vec<Spanned<String>>,
    pub(super) registry_extra: Option<Spanned<PathBuf>>,
    pub(super) registry_url: Option<Spanned<String>>,
    pub(super) registry_ca: Option<Spanned<PathBuf>>,
    pub(super) registry_accept: Vec<Spanned<String>>,
    pub(super) session_cookies: Vec<Spanned<String>>,
    pub(super) suspect_human: SuspectHuman,
}

impl Default for RawAgents {
    fn default() -> Self {
        Self {
            star_scope: StarScope::default(),
            star_methods: unplaced(Policy::DEFAULT_STAR_METHODS),
            star_exempt: Policy::DEFAULT_STAR_EXEMPT.into(),
            star_exceptions: StarExceptions::default(),
            star_empty: EmptyAgent::default(),
            family: Family::default(),
            ignore: Vec::new(),
            registry_extra: None,
            registry_url: None,
            registry_ca: None,
            registry_accept: Vec::new(),
            session_cookies: Vec::new(),
            suspect_human: SuspectHuman::default(),
        }
    }
}

/// Whether a crawler that no group names obeys the groups of its family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Family {
    #[default]
    Follow,
    Ignore,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawExempt {
    pub(super) paths: Vec<Spanned<String>>,
    pub(super) cidrs: Vec<Spanned<String>>,
    pub(super) cookies: Vec<Spanned<String>>,
}

impl Default for RawExempt {
    fn default() -> Self {
        Self { paths: unplaced(Policy::DEFAULT_EXEMPT_PATHS), cidrs: Vec::new(), cookies: Vec::new() }
    }
}

/// A default has no place in the file.
fn unplaced<const N: usize>(texts: [&str; N]) -> Vec<Spanned<String>> {
    texts.into_iter().map(|text| Spanned::new(0..0, text.to_owned())).collect()
}

/// Lints by code: findings that are errors, and lints that are off.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawCheck {
    pub(super) deny: Vec<Spanned<String>>,
    pub(super) allow: Vec<Spanned<String>>,
}

/// Conditions for a version to go live by itself.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawGate {
    pub(super) mode: GateMode,
    pub(super) refuse_findings: RefuseFindings,
    pub(super) must_allow: Vec<RawMustAllow>,
    pub(super) accept: Vec<Spanned<String>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum GateMode {
    #[default]
    On,
    Off,
}

/// The lowest severity of findings that hold a version back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RefuseFindings {
    #[default]
    None,
    Error,
    Warning,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawMustAllow {
    pub(super) agents: Spanned<Vec<String>>,
    pub(super) paths: Spanned<Vec<String>>,
}

/// The admin interface; on a socket in the runtime folder where the table is absent.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawAdmin {
    pub(super) mode: AdminMode,
    pub(super) address: Option<Spanned<Address>>,
    pub(super) socket: Option<Spanned<PathBuf>>,
    pub(super) hosts: Vec<Spanned<String>>,
    pub(super) reach: Reach,
    #[serde(rename = "listener")]
    pub(super) listeners: Vec<RawAdminListener>,
}

/// A further address of the admin interface.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawAdminListener {
    pub(super) address: Spanned<Address>,
    /// Default: `full` on a loopback address, `read` on any other.
    pub(super) access: Option<AdminAccess>,
}

/// What a client of an admin listener may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AdminAccess {
    /// Nothing is changed.
    Read,
    /// Versions are accepted and rolled back, enforcement is switched, files are read again.
    Full,
}

/// Whether there is an admin interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum AdminMode {
    #[default]
    On,
    Off,
}

/// From where the admin address can be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Reach {
    /// This machine.
    #[default]
    Loopback,
    /// Every machine that the network lets through.
    Network,
}

/// Every resource has a bound.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawLimits {
    /// Default: as many as the descriptors of the process allow.
    pub(super) connections: Option<Spanned<NonZeroUsize>>,
    pub(super) handshakes: Spanned<NonZeroUsize>,
    pub(super) tls_handshake: Spanned<Span>,
    pub(super) first_byte: Spanned<Span>,
    pub(super) header_read: Spanned<Span>,
    pub(super) keep_alive: Spanned<Span>,
    pub(super) body_idle: Spanned<Span>,
    pub(super) tunnel_idle: Spanned<Span>,
    pub(super) head_size: Spanned<Size>,
    pub(super) target_size: Spanned<Size>,
    pub(super) fields: Spanned<usize>,
    pub(super) streams: Spanned<u32>,
    pub(super) window: Spanned<Size>,
    pub(super) connect: Spanned<Span>,
    pub(super) response: Spanned<Span>,
    pub(super) buffer: Spanned<Size>,
    pub(super) buffer_total: Spanned<Size>,
    pub(super) upstream_connections: NonZeroUsize,
    pub(super) upstream_address_connections: NonZeroUsize,
    pub(super) upstream_idle: usize,
    pub(super) upstream_idle_time: Span,
    pub(super) greeting: Span,
    pub(super) drain: Span,
}

impl Default for RawLimits {
    fn default() -> Self {
        // A default has no place in the file.
        fn unplaced<T>(value: T) -> Spanned<T> {
            Spanned::new(0..0, value)
        }
        let edge = edge::EdgeLimits::default();
        let upstream = upstream::UpstreamLimits::default();
        Self {
            connections: None,
            handshakes: unplaced(NonZeroUsize::new(edge.handshakes).unwrap_or(NonZeroUsize::MIN)),
            tls_handshake: unplaced(Span(edge.tls_handshake)),
            first_byte: unplaced(Span(edge.first_byte)),
            header_read: unplaced(Span(edge.header_read)),
            keep_alive: unplaced(Span(edge.keep_alive)),
            body_idle: unplaced(Span(edge.body_idle)),
            tunnel_idle: unplaced(Span(edge.tunnel_idle)),
            head_size: unplaced(Size(edge.head_bytes)),
            target_size: unplaced(Size(edge.target_bytes)),
            fields: unplaced(edge.fields),
            streams: unplaced(edge.streams),
            window: unplaced(Size(edge.window_bytes as usize)),
            connect: unplaced(Span(upstream.connect)),
            response: unplaced(Span(upstream.response_header)),
            buffer: unplaced(Size(upstream.buffer)),
            buffer_total: unplaced(Size(upstream.buffer_total)),
            upstream_connections: NonZeroUsize::new(upstream.connections).unwrap_or(NonZeroUsize::MIN),
            upstream_address_connections: NonZeroUsize::new(upstream.address_connections).unwrap_or(NonZeroUsize::MIN),
            upstream_idle: upstream.idle_connections,
            upstream_idle_time: Span(upstream.idle_timeout),
            greeting: Span(edge.greeting),
            drain: Span(edge.drain),
        }
    }
}

/// The log, and what it leaves out.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawLog {
    pub(super) format: LogFormat,
    pub(super) query: QueryLogging,
    pub(super) address: AddressLogging,
    pub(super) access: AccessLogging,
    pub(super) access_path: Option<Spanned<PathBuf>>,
}

/// The log of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum AccessLogging {
    #[default]
    Off,
    Combined,
    Json,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    #[default]
    Json,
    Text,
}

/// The part of a query that log lines hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum QueryLogging {
    Keep,
    /// Names without their values.
    #[default]
    Redact,
    Drop,
}

/// The part of the client's address that log lines hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AddressLogging {
    Keep,
    /// Its /24 or /48.
    #[default]
    Truncate,
    Drop,
}
