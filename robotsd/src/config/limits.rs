//! Limits, and the range of each.

use std::fmt::Display;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;

use toml::Spanned;

use super::error::{Fault, Faults, Placed};
use super::tables::RawLimits;
use super::values::Size;
use crate::edge::{Callers, EdgeLimits};
use crate::upstream::UpstreamLimits;

/// Less than this the HTTP library does not buffer; more would let a few thousand clients take all memory.
const HEAD: RangeInclusive<Size> = Size(8 * 1024)..=Size(1024 * 1024);

/// From the path of a plain page to all of the largest head.
const TARGET: RangeInclusive<Size> = Size(256)..=Size(1024 * 1024);

/// From the fields of the plainest browser to more than proxies on the way pass.
const FIELDS: RangeInclusive<usize> = 16..=1000;

/// Each may hold a whole hello.
const HANDSHAKES: RangeInclusive<NonZeroUsize> = NonZeroUsize::MIN..=NonZeroUsize::new(1_000_000).unwrap();

const STREAMS: RangeInclusive<u32> = 1..=10_000;

/// From one frame (RFC 9113, section 4.2) to the window of a fast line across the world.
const WINDOW: RangeInclusive<Size> = Size(16 * 1024)..=Size(16 * 1024 * 1024);

/// From none to where the upstream had better wait.
const BUFFER: RangeInclusive<Size> = Size(0)..=Size(16 * 1024 * 1024);

/// More than any machine has ports and memory for.
const MOST_CONNECTIONS: usize = 10_000_000;

/// The limits of clients and of upstreams; their problems are noted.
pub(super) fn resolve(limits: &RawLimits, faults: &mut Faults) -> (EdgeLimits, UpstreamLimits) {
    // A deadline of zero would end every request.
    for (key, span) in [
        ("tls_handshake", &limits.tls_handshake),
        ("first_byte", &limits.first_byte),
        ("header_read", &limits.header_read),
        ("keep_alive", &limits.keep_alive),
        ("body_idle", &limits.body_idle),
        ("tunnel_idle", &limits.tunnel_idle),
        ("connect", &limits.connect),
        ("response", &limits.response),
        ("upgrade", &limits.upgrade),
    ] {
        if span.get_ref().0.is_zero() {
            faults.push(span.fault(format!("{key} is no time at all: write one such as \"10s\"")));
        }
    }
    let are_sizes = [
        faults.keep(within("head_size", &limits.head_size, &HEAD)),
        faults.keep(within("target_size", &limits.target_size, &TARGET)),
    ];
    if are_sizes == [Some(()); 2] {
        faults.keep(part_of(("target_size", &limits.target_size), ("head_size", &limits.head_size), ""));
    }
    if faults.keep(within("buffer", &limits.buffer, &BUFFER)).is_some() && *limits.buffer_total.get_ref() != Size(0) {
        let advice = ": 0 turns buffering off";
        faults.keep(part_of(("buffer", &limits.buffer), ("buffer_total", &limits.buffer_total), advice));
    }
    faults.keep(within("handshakes", &limits.handshakes, &HANDSHAKES));
    faults.keep(within("fields", &limits.fields, &FIELDS));
    faults.keep(within("streams", &limits.streams, &STREAMS));
    faults.keep(within("window", &limits.window, &WINDOW));
    if let Some(many) = limits.connections.as_ref().filter(|count| count.get_ref().get() > MOST_CONNECTIONS) {
        faults.push(many.fault(format!("{} connections are more than {MOST_CONNECTIONS}", many.get_ref())));
    }
    let edge = EdgeLimits {
        callers: Callers::Clients,
        connections: connections(limits).unwrap_or(EdgeLimits::default().connections),
        handshakes: limits.handshakes.get_ref().get(),
        tls_handshake: limits.tls_handshake.get_ref().0,
        first_byte: limits.first_byte.get_ref().0,
        header_read: limits.header_read.get_ref().0,
        keep_alive: limits.keep_alive.get_ref().0,
        body_idle: limits.body_idle.get_ref().0,
        tunnel_idle: limits.tunnel_idle.get_ref().0,
        head_bytes: limits.head_size.get_ref().0,
        target_bytes: limits.target_size.get_ref().0,
        fields: *limits.fields.get_ref(),
        streams: *limits.streams.get_ref(),
        window_bytes: u32::try_from(limits.window.get_ref().0).unwrap_or(u32::MAX),
        greeting: limits.greeting.0,
        drain: limits.drain.0,
    };
    let upstream = UpstreamLimits {
        connect: limits.connect.get_ref().0,
        response_header: limits.response.get_ref().0,
        body_idle: limits.body_idle.get_ref().0,
        buffer: limits.buffer.get_ref().0,
        buffer_total: limits.buffer_total.get_ref().0,
        connections: limits.upstream_connections.get(),
        address_connections: limits.upstream_address_connections.get(),
        idle_connections: limits.upstream_idle,
        idle_timeout: limits.upstream_idle_time.0,
        ..UpstreamLimits::default()
    };
    (edge, upstream)
}

/// The configured bound on connections.
pub(super) fn connections(limits: &RawLimits) -> Option<usize> {
    limits.connections.as_ref().map(|connections| connections.get_ref().get())
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

fn within<T: PartialOrd + Display>(key: &str, value: &Spanned<T>, range: &RangeInclusive<T>) -> Result<(), Fault> {
    let (least, most) = (range.start(), range.end());
    match range.contains(value.get_ref()) {
        true => Ok(()),
        false => Err(value.fault(format!("{key} is {}: it may be from {least} to {most}", value.get_ref()))),
    }
}
