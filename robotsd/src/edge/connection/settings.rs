//! The settings of a listener's connections: limits with their defaults, and how request heads are
//! parsed.
//!
//! **The fast path and hyper accept the same heads.** An HTTP/1.1 head must satisfy the strict
//! default of httparse: single spaces in the request line, no folded lines, no space before a
//! colon, and no invalid field lines. hyper uses httparse with the same default. The size of a head
//! is limited by [`EdgeLimits::head_bytes`] and [`EdgeLimits::fields`]. The fast path
//! [escapes](crate::edge::http1_fast::request) the bytes in a target that `http::Uri` rejects, even
//! in a head that it then hands over to hyper. The fast path hands over some requests to hyper, but
//! never interprets a request differently from hyper.
//!
//! A property test sends the same bytes through the edge and through hyper alone, and compares the
//! responses, their framing and the state of the connection.

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
use crate::http_common::Flag;

pub(crate) struct ConnectionSettings {
    pub(crate) limits: EdgeLimits,
    pub(crate) on_access: Option<OnAccess>,
    pub(crate) http1: http1::Builder,
    /// Whether another process now accepts connections instead of this process. If so, clients must
    /// reconnect. All connection settings of this process share this flag.
    pub(crate) successor: Arc<Flag>,
}

impl ConnectionSettings {
    pub(crate) fn new(limits: EdgeLimits, on_access: Option<OnAccess>) -> Self {
        let http1 = http1(&limits);
        Self { limits, on_access, http1, successor: Arc::default() }
    }

    pub(crate) fn with(&self, limits: EdgeLimits) -> Self {
        Self { successor: Arc::clone(&self.successor), ..Self::new(limits, self.on_access.clone()) }
    }

    /// Returns how long an idle connection is kept open after its listener has stopped.
    ///
    /// A client that sends a request while its connection is being closed gets no response. So if
    /// another process has begun to accept connections, this process waits for one more request,
    /// and announces the end of the connection in the response. If no request arrives, the
    /// connection is closed without an announcement.
    pub(crate) fn idle_drain_time(&self, has_served: bool) -> Duration {
        match (self.successor.is_set(), has_served) {
            // A request may arrive at the end of the first half of the drain time. In this case,
            // the second half is left for the response.
            (true, _) => self.limits.drain / 2,
            (false, true) => Duration::ZERO,
            (false, false) => self.limits.greeting,
        }
    }
}

/// Completes when the listener has stopped, or when the sender of `stop` has been dropped.
pub(crate) async fn stopped(mut stop: watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// hyper's default limit for the number of header fields.
const USUAL_FIELDS: usize = 100;

pub(crate) fn parse_whole<'h, 'b>(
    bytes: &'b [u8],
    fields: &'h mut [MaybeUninit<Header<'b>>],
) -> Option<httparse::Request<'h, 'b>> {
    let mut head = httparse::Request::new(&mut []);
    let parsed = ParserConfig::default().parse_request_with_uninit_headers(&mut head, bytes, fields);
    matches!(parsed, Ok(Status::Complete(length)) if length == bytes.len()).then_some(head)
}

pub(crate) fn http1(limits: &EdgeLimits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        // `ConnectionState` provides the deadlines for heads, first bytes and idle connections.
        .header_read_timeout(None)
        .max_buf_size(limits.head_bytes);
    // The limit on fields is set only if it is not hyper's default, because a custom limit costs an
    // allocation per request.
    if limits.fields > USUAL_FIELDS {
        builder.max_headers(limits.fields);
    }
    if !date::is_clock_set() {
        builder.auto_date_header(false);
    }
    builder
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EdgeLimits {
    /// Who sends the requests, which determines the fields that the requests may contain.
    pub(crate) callers: Callers,
    /// Maximum number of open connections. At the limit, the connection that has been idle for
    /// longest is closed to make room for a new connection. If no connection is idle, the new
    /// connection waits.
    pub(crate) connections: usize,
    /// Maximum number of concurrent TLS handshakes. At the limit, new connections wait.
    pub(crate) handshakes: NonZeroUsize,
    /// Maximum duration of a TLS handshake, including the time before the client sends its first
    /// byte.
    pub(crate) tls_handshake: Duration,
    /// Maximum time until the client of a new connection sends its first byte.
    pub(crate) first_byte: Duration,
    /// Maximum time between the first and the last byte of a request head.
    pub(crate) header_read: Duration,
    /// Maximum time that a connection may stay open between two requests.
    pub(crate) keep_alive: Duration,
    /// Maximum time without progress in the transfer of a request or response body. The total time
    /// is not limited.
    pub(crate) body_idle: Duration,
    /// Maximum time without data in a tunnel (WebSocket).
    pub(crate) tunnel_idle: Duration,
    /// Maximum size of a request head, in bytes. The buffer for a body has the same size.
    pub(crate) head_bytes: usize,
    /// Maximum length of path and query together, in bytes.
    pub(crate) target_bytes: usize,
    /// Maximum number of header fields in a request.
    pub(crate) fields: usize,
    /// Maximum number of open streams on an HTTP/2 connection.
    pub(crate) streams: u32,
    /// Flow-control window and buffer size of an HTTP/2 stream, in bytes.
    pub(crate) window_bytes: usize,
    /// Time that the client of a new connection has to send its first byte after a shutdown has
    /// begun. A request may already be on its way to robotsd. If the connection were closed
    /// immediately, the client could not know whether it may repeat the request.
    pub(crate) greeting: Duration,
    /// Time for requests in progress to finish after a shutdown has begun.
    pub(crate) drain: Duration,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Callers {
    /// Any client. Fields that only a proxy may send are removed, and robotsd adds its own fields.
    #[default]
    Clients,
    /// A proxy that asks for decisions about its clients' requests. The fields that describe the
    /// clients' requests are kept. robotsd does not reject a decision request with invalid bytes in
    /// the target, because the bytes may come from the client.
    AskingProxies,
}

impl Default for EdgeLimits {
    fn default() -> Self {
        Self {
            callers: Callers::Clients,
            connections: 16_384,
            // A core cannot perform this many handshakes in a second. Each handshake may buffer up
            // to 16 KiB of a ClientHello, so all handshakes buffer at most 16 MiB. The 16,384
            // connections buffer at most 4 KiB each before their handshakes, 64 MiB in total.
            handshakes: const { NonZeroUsize::new(1024).unwrap() },
            tls_handshake: Duration::from_secs(10),
            first_byte: Duration::from_secs(10),
            header_read: Duration::from_secs(10),
            keep_alive: Duration::from_secs(75),
            body_idle: Duration::from_secs(60),
            tunnel_idle: Duration::from_secs(600),
            head_bytes: 64 * 1024,
            target_bytes: 8 * 1024,
            // hyper keeps up to 100 fields on the stack. With a higher limit, each request would
            // need an allocation.
            fields: 100,
            streams: 100,
            window_bytes: 64 * 1024,
            greeting: Duration::from_secs(1),
            drain: Duration::from_secs(30),
        }
    }
}
