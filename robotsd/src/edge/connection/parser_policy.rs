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

use std::mem::MaybeUninit;

use crate::date;
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

/// hyper with its side of the limits of HTTP/1.1.
pub(crate) fn http1(limits: &EdgeLimits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        // One deadline for heads, first octets and idle connections alike: see `connection_state`.
        .header_read_timeout(None)
        .max_buf_size(limits.head_bytes);
    // Set only where it must be: a bound of one's own costs an allocation for each request.
    if limits.fields > USUAL_FIELDS {
        builder.max_headers(limits.fields);
    }
    if !date::is_clock_set() {
        builder.auto_date_header(false);
    }
    builder
}
