//! One HTTP/2 connection to a server, which several requests use at a time.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{self, SendRequest};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::super::connection_limit::Permit;
use super::super::limits::UpstreamLimits;
use super::super::usage::{ClientKey, Usage};
use super::connection_io::{ConnectionIo, Passed};
use super::keep_alive::{Doubt, KeepAlive};
use crate::socket::Socket;

/// Streams on one connection, where the server takes as many.
///
/// The connection's window has room for all of them, so that clients which do not read hold their own streams up and no others.
const STREAMS: usize = 128;

/// Streams that were reset and are remembered for a second, so that frames which were under way are no errors: more than clients
/// can cancel in that time. A stream that is remembered takes a few hundred octets.
const REMEMBERED: usize = 4096;

/// Errors of the server on single streams, in the life of a connection, before it counts as hostile. A frame for a stream that was
/// reset and is no longer remembered is one of them.
const STREAM_ERRORS: usize = 8192;

/// Each error resets its stream. After so many resets, for whatever reason, a connection takes no further request, and those on it
/// have room for as many again before they meet [`STREAM_ERRORS`].
const RESETS: usize = STREAM_ERRORS / 2;

/// A connection takes no further request after so many DATA frames without octets. h2 ends it after a hundred.
const EMPTY: usize = 50;

/// What h2 charges at most for an octet that waits to be read: 256 for a frame, less its length, where frames have at least
/// sixteen octets. So streams full of small messages that nobody reads do not end the connection for the others.
const CHARGE_PER_OCTET: usize = 16;

/// A connection, for as long as the pool or a request has it.
#[derive(Debug)]
pub(super) struct Http2Connection {
    sender: SendRequest<Bytes>,
    usage: Arc<Usage>,
    doubt: Arc<Doubt>,
    passed: Arc<Passed>,
    /// Requests on it.
    streams: AtomicUsize,
    /// Whether a response has come.
    has_answered: AtomicBool,
    /// Whether it has broken before that, and the server has been blamed.
    is_blamed: AtomicBool,
    opened: Instant,
    /// When the last request ended, in milliseconds since `opened`.
    idle_since: AtomicU64,
    /// Dropped with the connection, so that its task does not wait for the server for ever.
    _released: oneshot::Sender<()>,
}

/// Whether a connection takes a request.
pub(super) enum Admission {
    Stream(SendRequest<Bytes>),
    /// Not now.
    Full,
    /// Never again: it has ended, or is about to.
    Closed,
}

impl Http2Connection {
    /// Speaks HTTP/2 on a new connection. Whether the server does shows with the first response.
    pub(super) async fn open(socket: Socket, permit: Permit, limits: &UpstreamLimits) -> Result<Self, h2::Error> {
        let opened = Instant::now();
        let (usage, doubt) = (Arc::clone(permit.usage()), Arc::<Doubt>::default());
        let passed = Arc::new(Passed::new(opened));
        let io = ConnectionIo::new(socket, permit, Arc::clone(&passed));
        let window = u32::try_from(limits.buffer_bytes).unwrap_or(u32::MAX).min(i32::MAX as u32);
        let connection_window = window.saturating_mul(STREAMS as u32).min(i32::MAX as u32);
        let (sender, mut connection) = client::Builder::new()
            .initial_window_size(window)
            .initial_connection_window_size(connection_window)
            .data_frame_budget((connection_window as usize).saturating_mul(CHARGE_PER_OCTET))
            .max_header_list_size(window)
            // A stream is never written further than its window, so this is only for frames of others that wait.
            .max_send_buffer_size(limits.buffer_bytes)
            .initial_max_send_streams(STREAMS)
            .max_concurrent_reset_streams(REMEMBERED)
            .max_local_error_reset_streams(Some(STREAM_ERRORS))
            .enable_push(false)
            .handshake::<_, Bytes>(io)
            .await?;
        let (released, is_released) = oneshot::channel();
        if let Some(ping) = connection.ping_pong() {
            let keep_alive = KeepAlive::new(ping, Arc::clone(&passed), Arc::clone(&doubt), limits.connect);
            tokio::spawn(drive(connection, keep_alive, is_released, limits.connect));
        }
        Ok(Self {
            sender,
            usage,
            doubt,
            passed,
            streams: AtomicUsize::new(0),
            has_answered: AtomicBool::new(false),
            is_blamed: AtomicBool::new(false),
            opened,
            idle_since: AtomicU64::new(0),
            _released: released,
        })
    }

    pub(super) fn opened(&self) -> Instant {
        self.opened
    }

    /// What has passed on it.
    pub(super) fn passed(&self) -> &Arc<Passed> {
        &self.passed
    }

    /// A stream, counted until [`leave`](Self::leave).
    pub(super) fn enter(&self) -> Admission {
        let mut sender = self.sender.clone();
        let is_closed = matches!(sender.poll_ready(&mut Context::from_waker(Waker::noop())), Poll::Ready(Err(_)));
        if is_closed || self.doubt.is_kept() || self.is_worn() {
            return Admission::Closed;
        }
        // Until the server has said how many it takes, it may be one.
        let most = if self.passed.is_settled() { sender.current_max_send_streams().min(STREAMS) } else { 1 };
        if self.doubt.is_raised() || self.streams.load(Ordering::Relaxed) >= most {
            return Admission::Full;
        }
        if self.streams.fetch_add(1, Ordering::Relaxed) == 0 {
            // Requests of several clients share it, so it counts for none of them and is not given up for others.
            self.usage.begin(ClientKey::default());
        }
        Admission::Stream(sender)
    }

    /// Whether so much has been said on it that it comes near a limit for its whole life.
    fn is_worn(&self) -> bool {
        self.passed.resets() >= RESETS || self.passed.empty() >= EMPTY
    }

    /// A request has ended. Whether it was the only one.
    pub(super) fn leave(&self) -> StreamsLeft {
        if self.streams.fetch_sub(1, Ordering::Relaxed) > 1 {
            return StreamsLeft::Some;
        }
        self.idle_since.store(self.opened.elapsed().as_millis() as u64, Ordering::Relaxed);
        self.usage.rest();
        StreamsLeft::None
    }

    pub(super) fn is_idle(&self) -> bool {
        self.streams.load(Ordering::Relaxed) == 0
    }

    /// Whether it has been idle for so long, or is of no more use.
    pub(super) fn is_expired(&self, now: Instant, timeout: Duration) -> bool {
        let idle_since = self.opened + Duration::from_millis(self.idle_since.load(Ordering::Relaxed));
        let is_closed = || {
            let ready = self.sender.clone().poll_ready(&mut Context::from_waker(Waker::noop()));
            matches!(ready, Poll::Ready(Err(_)))
        };
        (self.is_idle() && now.saturating_duration_since(idle_since) >= timeout) || is_closed()
    }

    /// A response has come.
    pub(super) fn answered(&self) {
        if !self.has_answered.load(Ordering::Relaxed) {
            self.has_answered.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }

    /// Blames the server. Whether nobody has done so before.
    pub(super) fn blame(&self) -> bool {
        !self.is_blamed.swap(true, Ordering::Relaxed)
    }

    /// A request has waited in vain since then. The server is asked whether it is there, unless it has said anything in the second
    /// half of that time.
    pub(super) fn doubt(&self, since: Instant) {
        if self.passed.received_at().elapsed() >= since.elapsed() / 2 {
            self.doubt.raise();
        }
    }
}

/// Whether other requests are on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamsLeft {
    Some,
    None,
}

/// Moves the frames of a connection until it has ended. Once nothing uses it, it says goodbye, for which it has `patience`.
async fn drive(
    connection: client::Connection<ConnectionIo, Bytes>,
    mut keep_alive: KeepAlive,
    released: oneshot::Receiver<()>,
    patience: Duration,
) {
    let mut connection = pin!(connection);
    let mut released = pin!(released);
    let mut leaving = None;
    poll_fn(|cx| {
        // The requests learn of an error by themselves.
        if connection.as_mut().poll(cx).is_ready() || keep_alive.poll_dead(cx).is_ready() {
            return Poll::Ready(());
        }
        if leaving.is_none() && released.as_mut().poll(cx).is_ready() {
            leaving = Some(Box::pin(sleep(patience)));
        }
        leaving.as_mut().map_or(Poll::Pending, |leaving| Pin::new(leaving).poll(cx))
    })
    .await;
}
