//! The TOML, key by key, with every default.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::value::Datetime;
use tower_robots::agent::Category;
use tower_robots::live::LiveRobots;
use tower_robots::policy::{
    EmptyAgent, IdentityNeeded, Impostors, Mode, Policy, RateMode, StarExceptions, StarScope, SuspectHuman,
};
use tower_robots::rules::PathForm;

use super::keys::Document;
use super::values::{Address, Size, Span, StoreText};
use crate::edge::EdgeLimits;
use crate::publish_hook;
use crate::shared_rate::StoreSettings;
use crate::upstream::{HealthPolicy, UpstreamLimits};

/// Declares tables, none of whose keys has to be there: a missing one has the default beside it, or that of its type.
macro_rules! tables {
    ($($(#[$about:meta])* $table:ident {
        $($(#[$of_key:meta])* $key:ident: $type:ty $(= $default:expr)?,)*
    })*) => {$(
        $(#[$about])*
        #[derive(Debug, Deserialize, Serialize)]
        #[serde(deny_unknown_fields, default)]
        pub(super) struct $table {
            $($(#[$of_key])* pub(super) $key: $type,)*
        }

        impl Default for $table {
            fn default() -> Self {
                Self { $($key: tables!(@default $($default)?),)* }
            }
        }
    )*};
    (@default) => { Default::default() };
    (@default $default:expr) => { $default };
}

/// Declares the values of keys that are one of several words.
macro_rules! words {
    ($($(#[$about:meta])* $name:ident { $($(#[$of_word:meta])* $word:ident,)+ })*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub(crate) enum $name { $($(#[$of_word])* $word,)+ }
    )*};
}

/// A default has no place in the file.
fn unplaced<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

fn unplaced_texts<const N: usize>(texts: [&str; N]) -> Vec<Spanned<String>> {
    texts.into_iter().map(|text| unplaced(text.to_owned())).collect()
}

fn at_least_one(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN)
}

tables! {
    RawConfig {
        mode: Mode,
        workers: Option<Spanned<NonZeroUsize>>,
        state_dir: Option<Spanned<PathBuf>>,
        listener: Vec<RawListener>,
        site: Vec<Spanned<RawSite>>,
        agents: RawAgents,
        exempt: RawExempt,
        /// Its presence starts the checks of who sends requests.
        identity: Option<RawIdentity>,
        check: RawCheck,
        admin: Option<RawAdmin>,
        board: RawBoard,
        /// Where processes share what they count.
        rate: RawRateStore,
        gate: RawGate,
        limits: RawLimits,
        log: RawLog,
    }

    RawAgents {
        star_scope: StarScope,
        star_methods: Vec<Spanned<String>> = unplaced_texts(Policy::DEFAULT_STAR_METHODS),
        star_exempt: Vec<Category> = Policy::DEFAULT_STAR_EXEMPT.into(),
        star_exceptions: StarExceptions,
        star_empty: EmptyAgent,
        family: Family,
        ignore: Vec<Spanned<String>>,
        registry_extra: Option<Spanned<PathBuf>>,
        registry_url: Option<Spanned<String>>,
        registry_ca: Option<Spanned<PathBuf>>,
        registry_accept: Vec<Spanned<String>>,
        session_cookies: Vec<Spanned<String>>,
        suspect_human: SuspectHuman,
    }

    RawExempt {
        paths: Vec<Spanned<String>> = unplaced_texts(Policy::DEFAULT_EXEMPT_PATHS),
        cidrs: Vec<Spanned<String>>,
        cookies: Vec<Spanned<String>>,
    }

    RawIdentity {
        impostors: Spanned<Impostors> = unplaced(Impostors::default()),
        needed: IdentityNeeded,
        wait: Spanned<Span> = unplaced(Span(Duration::ZERO)),
        rdns: bool = true,
        resolvers: Vec<Spanned<String>>,
        directories: Vec<Spanned<String>>,
        #[serde(rename = "list")]
        lists: Vec<RawListCopy>,
    }

    /// Lints by code: findings that are errors, and lints that are off.
    RawCheck {
        deny: Vec<Spanned<String>>,
        allow: Vec<Spanned<String>>,
    }

    /// The admin interface; on a socket in the runtime folder where the table is absent.
    RawAdmin {
        mode: OnOff,
        address: Option<Spanned<Address>>,
        socket: Option<Spanned<PathBuf>>,
        hosts: Vec<Spanned<String>>,
        reach: Reach,
        #[serde(rename = "listener")]
        listeners: Vec<RawAdminListener>,
    }

    RawBoard {
        mode: OnOff,
        sees_all: bool,
        replicas: NonZeroUsize = NonZeroUsize::MIN,
        keep: Spanned<Span> = unplaced(Span::days(14)),
        keep_days: Spanned<u64> = unplaced(400),
        size: Size = Size(1 << 30),
    }

    RawRateStore {
        #[serde(skip_serializing_if = "Option::is_none")]
        store: Option<Spanned<StoreText>>,
        cluster: bool,
        password_file: Option<Spanned<PathBuf>>,
        ca: Option<Spanned<PathBuf>>,
        prefix: Spanned<String> = unplaced(StoreSettings::PREFIX.to_owned()),
        wait: Spanned<Span> = unplaced(Span(StoreSettings::DEADLINE)),
        batch: Spanned<u32> = unplaced(StoreSettings::BATCH),
    }

    /// Conditions for a version to go live by itself.
    RawGate {
        mode: OnOff,
        refuse_findings: RefuseFindings,
        /// Whether the pages of a site's own sitemaps count.
        sitemaps: bool = true,
        /// A list of pages that count, of every site.
        urls: Option<Spanned<PathBuf>>,
        must_allow: Vec<RawMustAllow>,
        accept: Vec<Spanned<String>>,
    }

    /// Every resource has a bound.
    RawLimits {
        /// Default: as many as the descriptors of the process allow.
        connections: Option<Spanned<NonZeroUsize>>,
        handshakes: Spanned<NonZeroUsize> = unplaced(at_least_one(EdgeLimits::default().handshakes)),
        tls_handshake: Spanned<Span> = unplaced(Span(EdgeLimits::default().tls_handshake)),
        first_byte: Spanned<Span> = unplaced(Span(EdgeLimits::default().first_byte)),
        header_read: Spanned<Span> = unplaced(Span(EdgeLimits::default().header_read)),
        keep_alive: Spanned<Span> = unplaced(Span(EdgeLimits::default().keep_alive)),
        body_idle: Spanned<Span> = unplaced(Span(EdgeLimits::default().body_idle)),
        tunnel_idle: Spanned<Span> = unplaced(Span(EdgeLimits::default().tunnel_idle)),
        head_size: Spanned<Size> = unplaced(Size(EdgeLimits::default().head_bytes)),
        target_size: Spanned<Size> = unplaced(Size(EdgeLimits::default().target_bytes)),
        fields: Spanned<usize> = unplaced(EdgeLimits::default().fields),
        streams: Spanned<u32> = unplaced(EdgeLimits::default().streams),
        window: Spanned<Size> = unplaced(Size(EdgeLimits::default().window_bytes as usize)),
        connect: Spanned<Span> = unplaced(Span(UpstreamLimits::default().connect)),
        response: Spanned<Span> = unplaced(Span(UpstreamLimits::default().response_header)),
        buffer: Spanned<Size> = unplaced(Size(UpstreamLimits::default().buffer)),
        buffer_total: Spanned<Size> = unplaced(Size(UpstreamLimits::default().buffer_total)),
        upstream_connections: NonZeroUsize = at_least_one(UpstreamLimits::default().connections),
        upstream_address_connections: NonZeroUsize = at_least_one(UpstreamLimits::default().address_connections),
        upstream_idle: usize = UpstreamLimits::default().idle_connections,
        upstream_idle_time: Span = Span(UpstreamLimits::default().idle_timeout),
        greeting: Span = Span(EdgeLimits::default().greeting),
        drain: Span = Span(EdgeLimits::default().drain),
        /// A config of ten thousand sites is opened within seconds.
        upgrade: Spanned<Span> = unplaced(Span(Duration::from_secs(30))),
    }

    /// The log, and what it leaves out.
    RawLog {
        format: LogFormat,
        query: QueryLogging,
        address: AddressLogging,
        access: AccessLogging,
        access_path: Option<Spanned<PathBuf>>,
    }

    /// Settings of all upstreams of a site.
    RawUpstream {
        max_fails: u32 = HealthPolicy::default().max_fails,
        fail_window: Span = Span(HealthPolicy::default().fail_window),
        eject: Spanned<Span> = unplaced(Span(HealthPolicy::default().eject)),
        eject_max: Span = Span(HealthPolicy::default().eject_max),
        http2: Option<Spanned<bool>>,
        ca: Option<Spanned<PathBuf>>,
        server_name: Option<Spanned<String>>,
    }

    RawRobots {
        source: Option<Spanned<SourceKind>>,
        path: Option<Spanned<PathBuf>>,
        fallback: Option<Spanned<String>>,
        text: Option<Spanned<String>>,
        url: Option<Spanned<String>>,
        ca: Option<Spanned<PathBuf>>,
        host: Option<Spanned<String>>,
        refresh: Option<Spanned<Span>>,
        hold: Option<Spanned<Span>>,
        max_age: Spanned<Span> = unplaced(Span(LiveRobots::DEFAULT_MAX_AGE)),
        on_missing: OnMissing,
        expectations: Option<Spanned<PathBuf>>,
        /// The version in version control that new ones are compared with.
        baseline: Option<Spanned<PathBuf>>,
        /// In place of that of the gate.
        urls: Option<Spanned<PathBuf>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        append: Vec<Spanned<RawAppend>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        on_publish: Vec<Spanned<RawPublishHook>>,
    }

    /// A part that is appended to the robots.txt.
    RawAppend {
        path: Option<Spanned<PathBuf>>,
        url: Option<Spanned<String>>,
        name: Option<Spanned<String>>,
        ca: Option<Spanned<PathBuf>>,
    }

    RawEnforcement {
        mode: Option<Mode>,
        grace: Span = Span(Duration::ZERO),
        forms: Vec<Spanned<PathForm>> = PathForm::OPTIONAL.into_iter().map(unplaced).collect(),
    }

    RawRate {
        mode: Spanned<RateMode> = unplaced(RateMode::default()),
        burst: Spanned<NonZeroU32> = unplaced(Policy::DEFAULT_BURST),
    }

    /// Requests of some crawlers, or for some rule, that are treated in another way.
    RawOverride {
        category: Option<Category>,
        agent: Option<Spanned<String>>,
        pattern: Option<Spanned<String>>,
        index: Option<bool>,
        /// Of disallowed requests; this, `rate` or both.
        #[serde(skip_serializing_if = "Option::is_none")]
        mode: Option<Mode>,
        /// Of requests that come too soon.
        #[serde(skip_serializing_if = "Option::is_none")]
        rate: Option<Spanned<RateMode>>,
        until: Option<Spanned<Datetime>>,
    }

    /// The response to refused requests.
    RawRefusal {
        file: Option<Spanned<PathBuf>>,
        status: Option<Spanned<u16>>,
        language: Option<Spanned<String>>,
        contact: Option<Spanned<String>>,
    }
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unknown_host: Option<Spanned<UnknownHost>>,
    #[serde(default)]
    pub(super) trusted_proxies: Vec<Spanned<String>>,
    pub(super) agent_header: Option<Spanned<String>>,
    #[serde(default = "no")]
    pub(super) proxy_protocol: Spanned<bool>,
    #[serde(default, rename = "certificate")]
    pub(super) certificates: Vec<RawCertificate>,
}

fn no() -> Spanned<bool> {
    unplaced(false)
}

/// A certificate with those of its issuers, and its key.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCertificate {
    pub(super) chain: Spanned<PathBuf>,
    pub(super) key: Spanned<PathBuf>,
}

/// A further address of the admin interface.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawAdminListener {
    pub(super) address: Spanned<Address>,
    /// Default: `full` on a loopback address, `read` on any other.
    pub(super) access: Option<AdminAccess>,
}

/// The operator's copy of a published list.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawListCopy {
    pub(super) url: Spanned<String>,
    pub(super) path: Spanned<PathBuf>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawMustAllow {
    pub(super) agents: Spanned<Vec<String>>,
    pub(super) paths: Spanned<Vec<String>>,
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

/// A request that is sent when a version goes live.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPublishHook {
    pub(super) url: Spanned<String>,
    pub(super) method: Option<Spanned<String>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) headers: BTreeMap<String, Spanned<RawHeader>>,
    pub(super) body: Option<Spanned<String>>,
    #[serde(default = "hook_timeout")]
    pub(super) timeout: Spanned<Span>,
    pub(super) ca: Option<Spanned<PathBuf>>,
}

fn hook_timeout() -> Spanned<Span> {
    unplaced(Span(publish_hook::DEFAULT_TIMEOUT))
}

/// The value of a field, or the file that holds it.
#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged, expecting = "the value of a header is a text, or names the file that holds it: { file = \"…\" }")]
pub(super) enum RawHeader {
    Text(String),
    Secret(RawSecret),
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSecret {
    pub(super) file: PathBuf,
}

words! {
    /// Whether there is something: an admin interface, a board, a gate.
    OnOff {
        #[default]
        On,
        Off,
    }

    /// The log of requests.
    AccessLogging {
        #[default]
        Off,
        Combined,
        Json,
    }

    LogFormat {
        #[default]
        Json,
        Text,
    }

    /// The part of a query that log lines hold.
    QueryLogging {
        Keep,
        /// Names without their values.
        #[default]
        Redact,
        Drop,
    }

    /// The part of the client's address that log lines hold.
    AddressLogging {
        Keep,
        /// Its /24 or /48.
        #[default]
        Truncate,
        Drop,
    }

    /// The service of a listener.
    ListenerKind {
        #[default]
        Proxy,
        /// Answers the questions of other proxies.
        Decision,
    }

    /// What becomes of a request for a host that no site has, where its question names no site.
    UnknownHost {
        #[default]
        Pass,
        /// Every site judges it, and the strictest of them decides.
        Strictest,
    }

    /// The answer to a question that does not identify the request.
    OnError {
        #[default]
        Pass,
        Refuse,
    }

    /// From where the admin address can be reached.
    Reach {
        /// This machine.
        #[default]
        Loopback,
        /// Every machine that the network lets through.
        Network,
    }

    /// What a client of an admin listener may do.
    AdminAccess {
        /// Nothing is changed.
        #[default]
        Read,
        /// Versions are accepted and rolled back, enforcement is switched, files are read again.
        Full,
    }

    /// Files and folders of a root whose name begins with a dot.
    Dotfiles {
        /// 404, except below `/.well-known/`.
        #[default]
        Hide,
        Serve,
    }

    SourceKind {
        #[default]
        File,
        Directory,
        Inline,
        Upstream,
        Url,
    }

    OnMissing {
        #[default]
        LastGood,
        Upstream,
        Fail,
    }

    /// Whether a crawler that no group names obeys the groups of its family.
    Family {
        #[default]
        Follow,
        Ignore,
    }

    /// The lowest severity of findings that hold a version back.
    RefuseFindings {
        #[default]
        None,
        Error,
        Warning,
    }
}

impl ListenerKind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Proxy => "proxy",
            Self::Decision => "decision",
        }
    }
}

/// What a listener for decisions does with questions that leave something open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QuestionSettings {
    pub(crate) on_error: OnError,
    pub(crate) unknown_host: UnknownHost,
}

impl RawConfig {
    /// The mode of a site, where no override fits.
    pub(super) fn mode_of(&self, site: &RawSite) -> Mode {
        site.enforcement.mode.unwrap_or(self.mode)
    }

    /// What becomes of impostors, and what exemptions need.
    pub(super) fn identity_rules(&self) -> (Impostors, IdentityNeeded) {
        self.identity.as_ref().map(|identity| (*identity.impostors.get_ref(), identity.needed)).unwrap_or_default()
    }
}

impl Document for RawConfig {
    const TABLES: &'static [&'static str] = &[
        "listener[]",
        "listener.certificate[]",
        "site[]",
        "site.upstream",
        "site.robots",
        "site.robots.append[]",
        "site.robots.on_publish[]",
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
