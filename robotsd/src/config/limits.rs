//! The table `[limits]`, which limits every resource that clients and upstreams use.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;

use toml::Spanned;

use super::values::{Bound, nonzero_time, within};
use super::{Fault, Faults, Placed, Size, Span, bound, tables, unplaced};
use crate::edge::EdgeLimits;
use crate::upstream::UpstreamLimits;

#[derive(Default)]
pub(super) struct Limits {
    pub(super) edge: EdgeLimits,
    pub(super) upstream: UpstreamLimits,
}

/// Declares `[limits]`. Each row contains a key, its type, the field that the key sets, and the
/// range of its values. If the key is absent, the field keeps its default.
macro_rules! limits {
    ($($(#[doc = $doc:literal])* $key:ident: $written:ident => $side:ident.$field:ident $(in $bound:expr)?,)*) => {
        tables! {
            RawLimits {
                /// Maximum number of client connections. Default: as many as the file descriptors
                /// of the process allow.
                connections: Option<Spanned<NonZeroUsize>> => bound(
                    NonZeroUsize::MIN..=MAX_CONNECTIONS,
                    format!("\"connections\" is {{}}: write at most {MAX_CONNECTIONS}"),
                ),
                $(
                    $(#[doc = $doc])*
                    $key: Spanned<$written> = unplaced(Limits::default().$side.$field.into()) $(=> $bound)?,
                )*
                /// Maximum time of each step of an upgrade. A process opens even a config of ten
                /// thousand sites within seconds.
                upgrade: Spanned<Span> = unplaced(Span::seconds(30)) => timeout_bound(),
            }
        }

        impl RawLimits {
            fn limits(&self) -> Limits {
                let mut limits = Limits::default();
                $(limits.$side.$field = (*self.$key.get_ref()).into();)*
                limits
            }
        }
    };
}

limits! {
    /// Maximum number of concurrent TLS handshakes. Each handshake may keep a whole ClientHello in
    /// memory.
    handshakes: NonZeroUsize => edge.handshakes in within(NonZeroUsize::MIN..=MAX_HANDSHAKES),
    tls_handshake: Span => edge.tls_handshake in timeout_bound(),
    first_byte: Span => edge.first_byte in timeout_bound(),
    header_read: Span => edge.header_read in timeout_bound(),
    keep_alive: Span => edge.keep_alive in timeout_bound(),
    body_idle: Span => edge.body_idle in timeout_bound(),
    tunnel_idle: Span => edge.tunnel_idle in timeout_bound(),
    head_size: Size => edge.head_bytes in within(HEAD_SIZES),
    target_size: Size => edge.target_bytes in within(TARGET_SIZES),
    /// Maximum number of header fields. The minimum suffices for the simplest browser, and the
    /// maximum is more than proxies usually accept.
    fields: usize => edge.fields in within(16..=1000),
    streams: u32 => edge.streams in within(1..=10_000),
    /// Size of the HTTP/2 flow-control window. The minimum is the size of one frame (RFC 9113,
    /// section 4.2). The maximum suffices for a fast connection over a long distance.
    window: Size => edge.window_bytes in within(Size(16 * 1024)..=Size(16 * 1024 * 1024)),
    connect: Span => upstream.connect in timeout_bound(),
    response: Span => upstream.response_header in timeout_bound(),
    buffer: Size => upstream.buffer in within(BUFFER_SIZES),
    buffer_total: Size => upstream.buffer_total,
    upstream_connections: NonZeroUsize => upstream.connections,
    upstream_address_connections: NonZeroUsize => upstream.address_connections,
    upstream_idle: usize => upstream.idle_connections,
    upstream_idle_time: Span => upstream.idle_timeout,
    greeting: Span => edge.greeting,
    drain: Span => edge.drain,
}

/// Allowed sizes of a request's head. The minimum is the smallest buffer of the HTTP library. With
/// a larger maximum, a few thousand clients could use up the memory.
const HEAD_SIZES: RangeInclusive<Size> = Size(8 * 1024)..=Size(1024 * 1024);

/// Allowed sizes of a request's target. The minimum suffices for the path of a simple page. The
/// maximum is the same as for the whole head.
const TARGET_SIZES: RangeInclusive<Size> = Size(256)..=Size(1024 * 1024);

/// Allowed sizes of a response buffer. 0 disables buffering. Buffers above the maximum would waste
/// memory, because the upstream can wait until a smaller buffer has space again.
const BUFFER_SIZES: RangeInclusive<Size> = Size(0)..=Size(16 * 1024 * 1024);

const MAX_HANDSHAKES: NonZeroUsize = NonZeroUsize::new(1_000_000).unwrap();

/// Maximum number of connections, more than any machine has ports and memory for.
const MAX_CONNECTIONS: NonZeroUsize = NonZeroUsize::new(10_000_000).unwrap();

/// Returns the range of a timeout, which excludes zero, because a timeout of zero would abort every
/// request.
fn timeout_bound() -> Bound<Span> {
    nonzero_time("\"{key}\" is zero: write a duration such as \"10s\"")
}

impl RawLimits {
    pub(super) fn resolve(&self, faults: &mut Faults) -> Limits {
        let is_in = |size: &Spanned<Size>, range: &RangeInclusive<Size>| range.contains(size.get_ref());
        if is_in(&self.head_size, &HEAD_SIZES) && is_in(&self.target_size, &TARGET_SIZES) {
            faults.keep(check_part(("target_size", &self.target_size), ("head_size", &self.head_size), ""));
        }
        if is_in(&self.buffer, &BUFFER_SIZES) && *self.buffer_total.get_ref() != Size(0) {
            let advice = ", or write 0 to disable buffering";
            faults.keep(check_part(("buffer", &self.buffer), ("buffer_total", &self.buffer_total), advice));
        }
        let mut limits = self.limits();
        limits.upstream.body_idle = limits.edge.body_idle;
        limits.edge.connections = self.connections().unwrap_or(limits.edge.connections);
        limits
    }

    pub(super) fn connections(&self) -> Option<usize> {
        self.connections.as_ref().map(|connections| connections.get_ref().get())
    }
}

/// Returns an error if the limit `part` is larger than the limit `whole`. The position of the error
/// is the key that comes later in the file.
fn check_part(
    (key, part): (&str, &Spanned<Size>),
    (of, whole): (&str, &Spanned<Size>),
    advice: &str,
) -> Result<(), Fault> {
    if part.get_ref() <= whole.get_ref() {
        return Ok(());
    }
    let (part_size, size) = (part.get_ref(), whole.get_ref());
    let message = format!(
        "{key:?} is {part_size}, but it is part of {of:?}, which is only {size}: reduce {key:?} or increase \
         {of:?}{advice}"
    );
    let written = if part.span().end >= whole.span().end { part } else { whole };
    Err(written.fault(message))
}
