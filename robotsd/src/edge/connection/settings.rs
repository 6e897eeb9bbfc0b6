//! The settings of every connection of a listener: its bounds, each with its default, and how heads are parsed.
//!
//! **One parser policy** holds for the fast path and for hyper: the form of a head, and its size. A head of HTTP/1.1 is
//! what httparse accepts in its strict default. There is one space between the parts of a request line, no folded
//! lines, no space before a colon, and no invalid field line that is skipped. hyper parses with the same crate and the
//! same default, and sets nothing else here. The bounds of a head are [`EdgeLimits::head_bytes`] and
//! [`EdgeLimits::fields`]. Targets that `http::Uri` refuses are escaped [before](crate::edge::http1_fast) either parser
//! reads them. The fast path takes a narrower set of requests than hyper, not another reading of them.
//!
//! A property test sends the same octets through the edge and through hyper alone: the responses, their framing and
//! the state of the connection are the same.

use std::mem::MaybeUninit;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use httparse::{Header, ParserConfig, Status};
use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;
use tokio::sync::watch;

use crate::date;
use crate::edge::request::access_record::OnAccess;
use crate::exchange::Flag;

pub(crate) struct ConnectionSettings {
    pub(crate) limits: EdgeLimits,
    pub(crate) on_access: Option<OnAccess>,
    /// For connections that hyper speaks on.
    pub(crate) http1: http1::Builder,
    /// Another process accepts by now, for all settings of a process: clients are sent there.
    pub(crate) successor: Arc<Flag>,
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

    /// How long a connection without a request in progress is kept once its listener has stopped.
    ///
    /// A client that sends a request while its connection is being closed gets no answer. So where another process accepts,
    /// a connection is closed behind an answer that says so, and only one that stays idle is closed without.
    pub(crate) fn farewell(&self, has_served: bool) -> Duration {
        match (self.successor.is_set(), has_served) {
            // The other half is for requests that come at its end.
            (true, _) => self.limits.drain / 2,
            (false, true) => Duration::ZERO,
            (false, false) => self.limits.greeting,
        }
    }
}

/// Completes once a listener has stopped. A sender that is gone means the same.
pub(crate) async fn stopped(mut stop: watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
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

/// The limits of one listener's clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EdgeLimits {
    /// Which callers the listener has, and so which fields its requests may carry.
    pub(crate) callers: Callers,
    /// Connections open at once; at the limit the longest idle is closed for a new one, else it waits.
    pub(crate) connections: usize,
    /// TLS handshakes under way at once; further connections wait.
    pub(crate) handshakes: NonZeroUsize,
    /// How long a TLS handshake may take, the client's silence before it included.
    pub(crate) tls_handshake: Duration,
    /// How long a new connection may stay silent.
    pub(crate) first_byte: Duration,
    /// How long a request head may take, from its first byte to its last.
    pub(crate) header_read: Duration,
    /// How long a connection may stay open between two requests.
    pub(crate) keep_alive: Duration,
    /// How long a body may stand still, in either direction. A body that moves has no deadline.
    pub(crate) body_idle: Duration,
    /// How long a tunnel (WebSocket) may stand still.
    pub(crate) tunnel_idle: Duration,
    /// The largest request head, and the buffer for a body.
    pub(crate) head_bytes: usize,
    /// The longest path and query.
    pub(crate) target_bytes: usize,
    /// The most header fields of a request.
    pub(crate) fields: usize,
    /// Streams open at once on an HTTP/2 connection.
    pub(crate) streams: u32,
    /// The flow-control window of an HTTP/2 stream, and the buffer for one.
    pub(crate) window_bytes: usize,
    /// How long a connection on which nothing has come yet stays open once a shutdown has begun: its request may be on the
    /// way, and a client whose first request is cut off does not know that it may retry.
    pub(crate) greeting: Duration,
    /// How long requests in progress may take to finish once a shutdown has begun.
    pub(crate) drain: Duration,
}

/// The callers of a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Callers {
    /// Any client: the fields that only a proxy may send are removed, and written by us.
    #[default]
    Clients,
    /// A proxy that asks for decisions about its clients' requests: its fields about them stay as they are, and the
    /// target, which may be the client's, is not held against the proxy.
    AskingProxies,
}

impl Default for EdgeLimits {
    fn default() -> Self {
        Self {
            callers: Callers::Clients,
            connections: 16_384,
            // More than a core can answer in a second. A hello under way may have 16 KiB, so these are 16 MiB at the very
            // most; all other connections have 4 KiB of a hello at most, 64 MiB in all.
            handshakes: const { NonZeroUsize::new(1024).unwrap() },
            tls_handshake: Duration::from_secs(10),
            first_byte: Duration::from_secs(10),
            header_read: Duration::from_secs(10),
            keep_alive: Duration::from_secs(75),
            body_idle: Duration::from_secs(60),
            tunnel_idle: Duration::from_secs(600),
            head_bytes: 64 * 1024,
            target_bytes: 8 * 1024,
            // hyper keeps the fields of up to a hundred on the stack; a larger bound would cost an allocation a request.
            fields: 100,
            streams: 100,
            window_bytes: 64 * 1024,
            greeting: Duration::from_secs(1),
            drain: Duration::from_secs(30),
        }
    }
}
