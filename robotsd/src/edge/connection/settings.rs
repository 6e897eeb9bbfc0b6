//! What holds for every connection of a listener.
//!
//! **One parser policy** holds for the fast path and for hyper: what a head may be, and how large. A head of HTTP/1.1
//! is what httparse accepts in its strict default. There is one space between the parts of a request line, no folded
//! lines, no space before a colon, and no invalid field line that is skipped. hyper parses with the same crate and the
//! same default, and sets nothing else here. The bounds of a head are [`EdgeLimits::head_bytes`] and
//! [`EdgeLimits::fields`]. Targets that `http::Uri` refuses are escaped [before](crate::edge::http1_fast) either parser
//! reads them. Whatever the fast path leaves to hyper is a narrower set of requests, not another reading of them.
//!
//! A property test sends the same octets through the edge and through hyper alone: the responses, their framing and
//! what becomes of the connection are the same.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use httparse::{Header, ParserConfig, Status};
use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;

use crate::date;
use crate::edge::limits::EdgeLimits;
use crate::edge::request::access_record::OnAccess;

pub(crate) struct ConnectionSettings {
    pub(crate) limits: EdgeLimits,
    pub(crate) on_access: Option<OnAccess>,
    /// For connections that hyper speaks on.
    pub(crate) http1: http1::Builder,
    /// Whether another process accepts by now, for all settings of a process.
    successor: Arc<AtomicBool>,
}

impl ConnectionSettings {
    pub(crate) fn new(limits: EdgeLimits, on_access: Option<OnAccess>) -> Self {
        let http1 = http1(&limits);
        Self { limits, on_access, http1, successor: Arc::default() }
    }

    /// The same with other limits.
    pub(crate) fn with(&self, limits: EdgeLimits) -> Self {
        Self { successor: Arc::clone(&self.successor), ..Self::new(limits, self.on_access.clone()) }
    }

    /// Another process accepts: clients are told to connect to that.
    pub(crate) fn set_successor(&self) {
        self.successor.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_successor(&self) -> bool {
        self.successor.load(Ordering::Relaxed)
    }

    /// How long a connection without a request in progress is kept once its listener has stopped.
    ///
    /// A client that sends a request while its connection is being closed gets no answer. So where another process accepts,
    /// a connection is closed behind an answer that says so, and only one that stays idle is closed without.
    pub(crate) fn farewell(&self, has_served: bool) -> Duration {
        match (self.has_successor(), has_served) {
            // The other half is for requests that come at its end.
            (true, _) => self.limits.drain / 2,
            (false, true) => Duration::ZERO,
            (false, false) => self.limits.greeting,
        }
    }
}

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
