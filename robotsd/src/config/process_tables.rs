//! The tables `[limits]` and `[log]`, key by key, with every default.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::values::{Size, Span};
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
