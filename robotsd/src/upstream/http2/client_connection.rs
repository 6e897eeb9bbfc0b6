//! One HTTP/2 connection to a server, which several requests use at a time, and the PING that asks whether the server
//! is there.
//!
//! A PING, and a deadline for its answer, say whether a server that sends nothing is still there. Servers of gRPC close
//! a connection that is sent more than a PING in five minutes while they send no DATA and no HEADERS. So one is sent
//! when a request has run into its deadline in silence, which says more than the time, and else after [`QUIET`]. Until
//! it is answered no new request is sent on the connection. If it is too early for a PING, none is sent on it any more.
//!
//! **The window of a connection has room for all its streams**, 128 of them, so a client that does not read stops its
//! own stream and no other. The price is bounded: 32 MiB a connection whose 128 clients all stand still.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{self, SendRequest};
use h2::{Ping, PingPong};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep, timeout};

use super::connection_activity::ConnectionActivity;
use crate::exchange::frames::Frames;
use crate::exchange::{Flag, FrameBudget};
use crate::socket::{Socket, poll_write_slices};
use crate::upstream::connection_limit::Permit;
use crate::upstream::endpoint::UpstreamLimits;
use crate::upstream::usage::{ClientKey, Usage};

/// Streams on one connection, where the server takes as many.
///
/// The connection's window has room for all of them, so that clients which do not read hold their own streams up and no others.
pub(super) const STREAMS: usize = 128;

/// Streams that were reset and are remembered for a second, so that frames which were under way are no errors: more than clients
/// can cancel in that time. A stream that is remembered takes a few hundred octets.
const REMEMBERED: usize = 4096;

/// Errors of the server on single streams, in the life of a connection, before it counts as hostile. A frame for a stream that was
/// reset and is no longer remembered is one of them.
const STREAM_ERRORS: usize = 8192;

/// Each error resets its stream. After so many resets, for whatever reason, a connection takes no further request, and those on it
/// have room for as many again before they meet [`STREAM_ERRORS`].
const RESETS: usize = STREAM_ERRORS / 2;

/// DATA frames without octets, half of those at which h2 ends a connection: after so many it takes no further request.
const EMPTY: usize = 50;

/// The most that h2 charges for an octet that waits to be read: 256 for a frame, less its length, if frames have at least
/// sixteen octets. So streams full of small messages that nobody reads do not end the connection for the others.
const CHARGE_PER_OCTET: usize = 16;

/// A connection, for as long as the pool or a request has it.
#[derive(Debug)]
pub(in crate::upstream) struct Http2ClientConnection {
    sender: SendRequest<Bytes>,
    usage: Arc<Usage>,
    doubt: Arc<Doubt>,
    pub(super) activity: Arc<ConnectionActivity>,
    /// Requests on it.
    streams: AtomicUsize,
    /// Whether a response has come.
    pub(in crate::upstream) has_answered: Flag,
    /// Whether it has broken before that, and the server has been blamed.
    is_blamed: AtomicBool,
    pub(super) opened: Instant,
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

impl Http2ClientConnection {
    /// Speaks HTTP/2 on a new connection. Whether the server does shows with the first response.
    pub(super) async fn open(socket: Socket, permit: Permit, limits: &UpstreamLimits) -> Result<Self, h2::Error> {
        let opened = Instant::now();
        let (usage, doubt) = (Arc::clone(&permit.usage), Arc::<Doubt>::default());
        let activity = Arc::new(ConnectionActivity::new(opened));
        let window = u32::try_from(limits.buffer_bytes).unwrap_or(u32::MAX).min(i32::MAX as u32);
        let io = GuardedSocket::new(socket, permit, Arc::clone(&activity));
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
            let death = death(ping, Arc::clone(&activity), Arc::clone(&doubt), limits.connect);
            tokio::spawn(drive(connection, death, is_released, limits.connect));
        }
        Ok(Self {
            sender,
            usage,
            doubt,
            activity,
            streams: AtomicUsize::new(0),
            has_answered: Flag::default(),
            is_blamed: AtomicBool::new(false),
            opened,
            idle_since: AtomicU64::new(0),
            _released: released,
        })
    }

    /// A stream on a connection that may have `most`, counted until [`leave`](Self::leave).
    pub(super) fn enter(&self, most: usize) -> Admission {
        let streams = self.streams.load(Ordering::Relaxed);
        // Until the server has said how many it takes, it may be one.
        let most = if self.activity.settled.initialized() { most } else { 1 };
        // First, because it costs least: without sharing there are many connections, and most have a request.
        if streams >= most {
            return Admission::Full;
        }
        let mut sender = self.sender.clone();
        let is_closed = matches!(sender.poll_ready(&mut Context::from_waker(Waker::noop())), Poll::Ready(Err(_)));
        // Or so much has been said on it that it comes near a limit for its whole life.
        let is_worn = self.activity.resets() >= RESETS || self.activity.empty() >= EMPTY;
        if is_closed || is_worn || self.doubt.is_kept() {
            return Admission::Closed;
        }
        if self.doubt.is_raised() || streams >= sender.current_max_send_streams() {
            return Admission::Full;
        }
        if self.streams.fetch_add(1, Ordering::Relaxed) == 0 {
            // Requests of several clients share it, so it counts for none of them and is not given up for others.
            self.usage.begin(ClientKey::default());
        }
        Admission::Stream(sender)
    }

    /// A request has ended. Whether it was the only one.
    pub(super) fn leave(&self) -> bool {
        if self.streams.fetch_sub(1, Ordering::Relaxed) > 1 {
            return false;
        }
        self.idle_since.store(self.opened.elapsed().as_millis() as u64, Ordering::Relaxed);
        self.usage.rest();
        true
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
        if !self.has_answered.is_set() {
            self.has_answered.set(true);
        }
    }

    /// Blames the server. Whether nobody has done so before.
    pub(in crate::upstream) fn blame(&self) -> bool {
        !self.is_blamed.swap(true, Ordering::Relaxed)
    }

    /// A request has waited in vain since then. The server is asked whether it is there, unless it has said anything in the second
    /// half of that time.
    pub(super) fn doubt(&self, since: Instant) {
        if self.activity.received_at().elapsed() >= since.elapsed() / 2 {
            self.doubt.raise();
        }
    }
}

/// Moves the frames of a connection until it has ended. Once nothing uses it, it says goodbye, for which it has `patience`.
async fn drive(
    connection: client::Connection<GuardedSocket, Bytes>,
    death: impl Future<Output = ()>,
    released: oneshot::Receiver<()>,
    patience: Duration,
) {
    let left = async {
        let _ = released.await;
        sleep(patience).await;
    };
    tokio::select! {
        biased;
        // The requests learn of an error by themselves.
        _ = connection => {}
        () = death => {}
        () = left => {}
    }
}

/// After so long without an octet the server is asked.
const QUIET: Duration = Duration::from_secs(310);

/// Doubts about a connection, between the requests on it and the task that drives it.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    is_raised: AtomicBool,
    /// Whether the server could not be asked, so that the doubt stays.
    is_kept: AtomicBool,
    raised: Notify,
}

impl Doubt {
    /// A request has waited in vain: the server is asked whether it is there.
    pub(super) fn raise(&self) {
        if !self.is_raised.swap(true, Ordering::SeqCst) {
            self.raised.notify_one();
        }
    }

    pub(super) fn is_raised(&self) -> bool {
        self.is_raised.load(Ordering::SeqCst)
    }

    /// Whether the connection is to be used for no further request.
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept.load(Ordering::SeqCst)
    }

    fn keep(&self) {
        self.is_kept.store(true, Ordering::SeqCst);
        self.settle();
    }

    fn settle(&self) {
        self.is_raised.store(false, Ordering::SeqCst);
    }

    async fn raised(&self) {
        while !self.is_raised() {
            self.raised.notified().await;
        }
    }
}

/// Asks the server where there is reason to, and waits for its answer. Ends once it has not answered within `patience`, or the
/// connection has ended.
async fn death(mut ping: PingPong, activity: Arc<ConnectionActivity>, doubt: Arc<Doubt>, patience: Duration) {
    // When the last PING was sent, and how many frames of messages had come until then.
    let mut last: Option<(Instant, usize)> = None;
    loop {
        tokio::select! {
            biased;
            () = doubt.raised() => {}
            () = activity.quiet(QUIET) => {}
        }
        let (now, content) = (Instant::now(), activity.content());
        if last.is_some_and(|(at, before)| content == before && now < at + QUIET) {
            doubt.keep();
            continue;
        }
        last = Some((now, content));
        if ping.send_ping(Ping::opaque()).is_err() {
            return;
        }
        let mut asked = now;
        loop {
            match timeout(patience, poll_fn(|cx| ping.poll_pong(cx))).await {
                Ok(Ok(_)) => break doubt.settle(),
                // Octets that it sends meanwhile show that it is there; its answer may be behind them.
                Err(_) if activity.received_at() > asked => asked = activity.received_at(),
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }
}

/// The socket of a connection: it holds the permit of the connection, notes what has passed, and ends the connection to a
/// server that floods it with frames.
#[derive(Debug)]
pub(super) struct GuardedSocket {
    socket: Socket,
    activity: Arc<ConnectionActivity>,
    /// Frames that h2 does not bound have the budget that clients have.
    budget: FrameBudget,
    received: Frames,
    sent: Frames,
    /// Octets of the preface that have not been sent.
    preface: usize,
    // After the socket, so that it is free only once that is closed.
    _permit: Permit,
}

/// The octets of a client before its first frame (RFC 9113, section 3.4).
const PREFACE: usize = 24;

impl GuardedSocket {
    fn new(socket: Socket, permit: Permit, activity: Arc<ConnectionActivity>) -> Self {
        let ((received, sent), budget) = (Default::default(), FrameBudget::new(Instant::now()));
        Self { socket, activity, budget, received, sent, preface: PREFACE, _permit: permit }
    }
}

impl Drop for GuardedSocket {
    fn drop(&mut self) {
        let _ = self.activity.settled.set(());
    }
}

impl AsyncRead for GuardedSocket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.socket).poll_read(cx, buffer))?;
        this.activity.note_octets();
        let mut is_flooded = false;
        this.received.pass(&buffer.filled()[before..], |frame| {
            this.activity.note_received(frame);
            is_flooded |= !this.budget.received(frame, Instant::now);
        });
        if is_flooded {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "it sends too many frames")));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for GuardedSocket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(poll_write_slices(&mut this.socket, cx, slices))?;
        let mut left = written;
        for slice in slices {
            let octets = &slice[..left.min(slice.len())];
            left -= octets.len();
            let preface = this.preface.min(octets.len());
            this.preface -= preface;
            this.sent.pass(&octets[preface..], |frame| {
                this.budget.sent(frame);
                this.activity.note_sent(frame);
            });
        }
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }
}
