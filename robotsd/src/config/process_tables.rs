//! The tables of the process and its listeners (`[limits]`, `[log]`, `[identity]`, `[[listener]]`), key by key, with every default.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toml::Spanned;
use tower_robots::policy::{IdentityNeeded, Impostors};

use super::values::{Address, Size, Span};
use crate::edge;
use crate::upstream;

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
    pub(super) upgrade: Spanned<Span>,
}

/// A config of ten thousand sites is opened within seconds.
const UPGRADE: Duration = Duration::from_secs(30);

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
            upgrade: unplaced(Span(UPGRADE)),
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

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawIdentity {
    pub(super) impostors: Spanned<Impostors>,
    pub(super) needed: IdentityNeeded,
    pub(super) wait: Spanned<Span>,
    pub(super) rdns: bool,
    pub(super) resolvers: Vec<Spanned<String>>,
    pub(super) directories: Vec<Spanned<String>>,
    #[serde(rename = "list")]
    pub(super) lists: Vec<RawListCopy>,
}

impl Default for RawIdentity {
    fn default() -> Self {
        Self {
            impostors: Spanned::new(0..0, Impostors::default()),
            needed: IdentityNeeded::default(),
            wait: Spanned::new(0..0, Span::seconds(0)),
            rdns: true,
            resolvers: Vec::new(),
            directories: Vec::new(),
            lists: Vec::new(),
        }
    }
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
    Spanned::new(0..0, false)
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

/// What a listener for decisions does with questions that leave something open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QuestionSettings {
    pub(crate) on_error: OnError,
    pub(crate) unknown_host: UnknownHost,
}

/// What becomes of a request for a host that no site has, where its question names no site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum UnknownHost {
    #[default]
    Pass,
    /// Every site judges it, and the strictest of them decides.
    Strictest,
}

/// The answer to a question that does not identify the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnError {
    #[default]
    Pass,
    Refuse,
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
