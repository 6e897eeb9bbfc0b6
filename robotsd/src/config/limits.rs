//! Limits, and the range of each.

use std::fmt::Display;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::time::Duration;

use toml::Spanned;

use super::error::{Fault, Faults};
use super::values::{Size, Span};
use super::{toml_tables, upstreams};
use crate::edge;
use crate::upstream;

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

/// The limits of clients and of upstreams, or none once their problems are noted.
pub(super) fn resolve(
    limits: &toml_tables::RawLimits,
    faults: &mut Faults,
) -> Option<(edge::EdgeLimits, upstream::UpstreamLimits)> {
    let head_size = faults.keep(within("head_size", &limits.head_size, &HEAD));
    let target_size = faults.keep(within("target_size", &limits.target_size, &TARGET));
    if let (Some(head_size), Some(target_size)) = (head_size, target_size)
        && target_size > head_size
    {
        let message = format!("target_size {target_size} is more than head_size {head_size}, of which it is a part");
        // The place is that of the key which the file has.
        let span = [&limits.target_size, &limits.head_size].map(Spanned::span).into_iter().max_by_key(|span| span.end);
        faults.push(Fault::new(span.unwrap_or(0..0), message));
    }
    let mut time = |key, span| faults.keep(some_time(key, span));
    let tls_handshake = time("tls_handshake", &limits.tls_handshake);
    let first_byte = time("first_byte", &limits.first_byte);
    let header_read = time("header_read", &limits.header_read);
    let keep_alive = time("keep_alive", &limits.keep_alive);
    let body_idle = time("body_idle", &limits.body_idle);
    let tunnel_idle = time("tunnel_idle", &limits.tunnel_idle);
    time("connect", &limits.connect);
    time("response", &limits.response);
    time("upgrade", &limits.upgrade);
    faults.keep(buffers(limits));
    let handshakes = faults.keep(within("handshakes", &limits.handshakes, &HANDSHAKES));
    let fields = faults.keep(within("fields", &limits.fields, &FIELDS));
    let streams = faults.keep(within("streams", &limits.streams, &STREAMS));
    let window = faults.keep(within("window", &limits.window, &WINDOW));
    // A bound that is none is noted by the caller.
    let connections = limits.connections.as_ref().map(|connections| connections.get_ref().get());
    let edge = edge::EdgeLimits {
        callers: edge::Callers::Clients,
        connections: connections.unwrap_or(edge::EdgeLimits::default().connections),
        handshakes: handshakes?.get(),
        tls_handshake: tls_handshake?,
        first_byte: first_byte?,
        header_read: header_read?,
        keep_alive: keep_alive?,
        body_idle: body_idle?,
        tunnel_idle: tunnel_idle?,
        head_bytes: head_size?.0,
        target_bytes: target_size?.0,
        fields: fields?,
        streams: streams?,
        window_bytes: u32::try_from(window?.0).unwrap_or(u32::MAX),
        greeting: limits.greeting.0,
        drain: limits.drain.0,
    };
    Some((edge, upstreams::limits(limits)))
}

/// The buffer of one response is a part of the buffer of all.
fn buffers(limits: &toml_tables::RawLimits) -> Result<(), Fault> {
    let buffer = within("buffer", &limits.buffer, &BUFFER)?;
    let total = limits.buffer_total.get_ref();
    if *total != Size(0) && buffer > *total {
        let message =
            format!("buffer {buffer} is more than buffer_total {total}, of which it is a part: 0 turns buffering off");
        let span = [&limits.buffer, &limits.buffer_total].map(Spanned::span).into_iter().max_by_key(|span| span.end);
        return Err(Fault::new(span.unwrap_or(0..0), message));
    }
    Ok(())
}

/// The configured bound on connections.
pub(super) fn connections(limits: &toml_tables::RawLimits) -> Result<Option<usize>, Fault> {
    match &limits.connections {
        Some(connections) if connections.get_ref().get() > MOST_CONNECTIONS => {
            let message = format!("{} connections are more than {MOST_CONNECTIONS}", connections.get_ref());
            Err(Fault::new(connections.span(), message))
        }
        connections => Ok(connections.as_ref().map(|connections| connections.get_ref().get())),
    }
}

/// A deadline of zero would end every request.
fn some_time(key: &str, span: &Spanned<Span>) -> Result<Duration, Fault> {
    match span.get_ref().0 {
        Duration::ZERO => Err(Fault::new(span.span(), format!("{key} is no time at all: write one such as \"10s\""))),
        duration => Ok(duration),
    }
}

fn within<T: Copy + PartialOrd + Display>(
    key: &str,
    value: &Spanned<T>,
    range: &RangeInclusive<T>,
) -> Result<T, Fault> {
    if range.contains(value.get_ref()) {
        return Ok(*value.get_ref());
    }
    let (least, most) = (range.start(), range.end());
    Err(Fault::new(value.span(), format!("{key} is {}: it may be from {least} to {most}", value.get_ref())))
}
