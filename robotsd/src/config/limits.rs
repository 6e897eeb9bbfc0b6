//! Limits, a row each: every resource has a bound.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;

use toml::Spanned;

use super::values::{Bound, some_time, within};
use super::{Fault, Faults, Placed, Size, Span, bound, tables, unplaced};
use crate::edge::EdgeLimits;
use crate::upstream::UpstreamLimits;

/// The limits of clients and of upstreams.
#[derive(Default)]
pub(super) struct Limits {
    pub(super) edge: EdgeLimits,
    pub(super) upstream: UpstreamLimits,
}

/// Declares the table: keys, how each is written, the field that it becomes, whose default it has, and its bound.
macro_rules! limits {
    ($($(#[doc = $doc:literal])* $key:ident: $written:ident => $side:ident.$field:ident $(in $bound:expr)?,)*) => {
        tables! {
            RawLimits {
                /// Default: as many as the descriptors of the process allow.
                connections: Option<Spanned<NonZeroUsize>> => bound(
                    NonZeroUsize::MIN..=MOST_CONNECTIONS,
                    format!("{{}} connections are more than {MOST_CONNECTIONS}"),
                ),
                $(
                    $(#[doc = $doc])*
                    $key: Spanned<$written> = unplaced(Limits::default().$side.$field.into()) $(=> $bound)?,
                )*
                /// A config of ten thousand sites is opened within seconds.
                upgrade: Spanned<Span> = unplaced(Span::seconds(30)) => deadline(),
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
    /// Each may hold a whole hello.
    handshakes: NonZeroUsize => edge.handshakes in within(NonZeroUsize::MIN..=MOST_HANDSHAKES),
    tls_handshake: Span => edge.tls_handshake in deadline(),
    first_byte: Span => edge.first_byte in deadline(),
    header_read: Span => edge.header_read in deadline(),
    keep_alive: Span => edge.keep_alive in deadline(),
    body_idle: Span => edge.body_idle in deadline(),
    tunnel_idle: Span => edge.tunnel_idle in deadline(),
    head_size: Size => edge.head_bytes in within(HEAD),
    target_size: Size => edge.target_bytes in within(TARGET),
    /// From the fields of the plainest browser to more than proxies on the way pass.
    fields: usize => edge.fields in within(16..=1000),
    streams: u32 => edge.streams in within(1..=10_000),
    /// From one frame (RFC 9113, section 4.2) to the window of a fast line across the world.
    window: Size => edge.window_bytes in within(Size(16 * 1024)..=Size(16 * 1024 * 1024)),
    connect: Span => upstream.connect in deadline(),
    response: Span => upstream.response_header in deadline(),
    buffer: Size => upstream.buffer in within(BUFFER),
    buffer_total: Size => upstream.buffer_total,
    upstream_connections: NonZeroUsize => upstream.connections,
    upstream_address_connections: NonZeroUsize => upstream.address_connections,
    upstream_idle: usize => upstream.idle_connections,
    upstream_idle_time: Span => upstream.idle_timeout,
    greeting: Span => edge.greeting,
    drain: Span => edge.drain,
}

/// Less than this the HTTP library does not buffer; more would let a few thousand clients take all memory.
const HEAD: RangeInclusive<Size> = Size(8 * 1024)..=Size(1024 * 1024);

/// From the path of a plain page to all of the largest head.
const TARGET: RangeInclusive<Size> = Size(256)..=Size(1024 * 1024);

/// From none to where the upstream had better wait.
const BUFFER: RangeInclusive<Size> = Size(0)..=Size(16 * 1024 * 1024);

const MOST_HANDSHAKES: NonZeroUsize = NonZeroUsize::new(1_000_000).unwrap();

/// More than any machine has ports and memory for.
const MOST_CONNECTIONS: NonZeroUsize = NonZeroUsize::new(10_000_000).unwrap();

/// Zero would end every request.
fn deadline() -> Bound<Span> {
    some_time("{key} is zero: write a time such as \"10s\"")
}

impl RawLimits {
    /// The limits; sizes that do not go together are noted.
    pub(super) fn resolve(&self, faults: &mut Faults) -> Limits {
        let is_in = |size: &Spanned<Size>, range: &RangeInclusive<Size>| range.contains(size.get_ref());
        if is_in(&self.head_size, &HEAD) && is_in(&self.target_size, &TARGET) {
            faults.keep(part_of(("target_size", &self.target_size), ("head_size", &self.head_size), ""));
        }
        if is_in(&self.buffer, &BUFFER) && *self.buffer_total.get_ref() != Size(0) {
            let advice = ": 0 turns buffering off";
            faults.keep(part_of(("buffer", &self.buffer), ("buffer_total", &self.buffer_total), advice));
        }
        let mut limits = self.limits();
        limits.upstream.body_idle = limits.edge.body_idle;
        limits.edge.connections = self.connections().unwrap_or(limits.edge.connections);
        limits
    }

    /// The configured bound on connections.
    pub(super) fn connections(&self) -> Option<usize> {
        self.connections.as_ref().map(|connections| connections.get_ref().get())
    }
}

/// A size is at most the one that it is a part of. The place is that of the key which the file has.
fn part_of(
    (key, part): (&str, &Spanned<Size>),
    (of, whole): (&str, &Spanned<Size>),
    advice: &str,
) -> Result<(), Fault> {
    if part.get_ref() <= whole.get_ref() {
        return Ok(());
    }
    let (part_size, size) = (part.get_ref(), whole.get_ref());
    let message = format!("{key} {part_size} is more than {of} {size}, of which it is a part{advice}");
    let written = if part.span().end >= whole.span().end { part } else { whole };
    Err(written.fault(message))
}
