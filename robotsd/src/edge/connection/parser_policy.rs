//! What the parsers of HTTP accept: one policy, for the fast path and for hyper.
//!
//! A head of HTTP/1.1 is what httparse accepts in its strict default. There is one space between the parts of a request
//! line, no folded lines, no space before a colon, and no invalid field line that is skipped. hyper parses with the same
//! crate and the same default, and sets nothing else here. The bounds of a head are [`EdgeLimits::head_bytes`] and
//! [`EdgeLimits::fields`]. Targets that `http::Uri` refuses are escaped [before](super::super::http1_fast) either parser
//! reads them. Whatever the fast path leaves to hyper is a narrower set of requests, not another reading of them.

use httparse::{Header, ParserConfig, Status};
use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;
use hyper_util::server::conn::auto;

use std::mem::MaybeUninit;

use crate::date;
use crate::edge::http2::stream_timeout::StreamExecutor;
use crate::edge::limits::EdgeLimits;

/// How many fields hyper lets a head have by default.
const USUAL_FIELDS: usize = 100;

/// Parses octets that are one whole head, and nothing more.
pub(crate) fn parse_whole<'h, 'b>(
    octets: &'b [u8],
    fields: &'h mut [MaybeUninit<Header<'b>>],
) -> Option<httparse::Request<'h, 'b>> {
    let mut head = httparse::Request::new(&mut []);
    let parsed = ParserConfig::default().parse_request_with_uninit_headers(&mut head, octets, fields);
    matches!(parsed, Ok(Status::Complete(length)) if length == octets.len()).then_some(head)
}

/// Sets hyper's side of the limits of HTTP/1.1. A macro, because its two builders have these methods but no trait.
macro_rules! configure_http1 {
    ($http1:expr, $limits:expr) => {{
        let http1 = $http1;
        http1
            .timer(TokioTimer::new())
            // One deadline for heads, first octets and idle connections alike: see `connection_state`.
            .header_read_timeout(None)
            .max_buf_size($limits.head_bytes);
        // Set only where it must be: a bound of one's own costs an allocation for each request.
        if $limits.fields > USUAL_FIELDS {
            http1.max_headers($limits.fields);
        }
        if !date::is_clock_set() {
            http1.auto_date_header(false);
        }
    }};
}

/// hyper for a connection that speaks HTTP/1.1 for certain.
pub(crate) fn http1(limits: &EdgeLimits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    configure_http1!(&mut builder, limits);
    builder
}

/// hyper for a connection whose first octets decide between HTTP/1.1 and HTTP/2.
pub(crate) fn http1_or_2(limits: &EdgeLimits) -> auto::Builder<StreamExecutor> {
    let mut builder = auto::Builder::new(StreamExecutor { idle: limits.body_idle });
    configure_http1!(&mut builder.http1(), limits);
    if !date::is_clock_set() {
        builder.http2().auto_date_header(false);
    }
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        .initial_stream_window_size(limits.window_bytes)
        // Four streams' worth: one upload that its upstream does not take must not stop the others.
        .initial_connection_window_size(limits.window_bytes.saturating_mul(4))
        .max_send_buf_size(limits.window_bytes as usize)
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
        // A peer that has gone silently is noticed also while its streams wait for something.
        .keep_alive_interval(limits.keep_alive)
        .keep_alive_timeout(limits.header_read);
    builder
}
