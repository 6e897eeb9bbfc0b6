//! HTTP/2 connections, which concurrent requests share, and the PINGs that check whether a silent
//! server is still reachable.
//!
//! gRPC servers close a connection if the client sends more than one PING in five minutes without
//! DATA or HEADERS frames from the server in between. So a PING is sent only if the server has been
//! silent for [`QUIET`], or if a request got no response before its deadline, which is a stronger
//! sign of an unreachable server. Until the PING is answered, the connection gets no new requests.
//! If it is too early for another PING, the connection gets no more requests at all.
//!
//! **The window of a connection has room for all of its 128 streams.** So a client that does not
//! read blocks only its own stream. In the worst case, all 128 clients stall, and the connection
//! uses 32 MiB.

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
use crate::http_common::frames::Frames;
use crate::http_common::{Flag, FrameBudget};
use crate::socket::{Socket, poll_write_slices};
use crate::upstream::connection_limit::Permit;
use crate::upstream::endpoint::UpstreamLimits;
use crate::upstream::usage::{ClientKey, Usage};

/// Maximum number of streams on one connection, unless the server sets a lower limit.
pub(super) const STREAMS: usize = 128;

/// Number of reset streams that h2 remembers for a second, so that late frames on these streams are
/// not errors. Each stream uses a few hundred bytes. Clients cannot cancel this many requests in a
/// second.
const REMEMBERED: usize = 4096;

/// Number of stream errors at which h2 treats the server as hostile and ends the connection. For
/// example, a frame for a reset stream is an error if the stream is no longer remembered.
const STREAM_ERRORS: usize = 8192;

/// Number of resets, for any reason, after which a connection gets no more requests. Each stream
/// error resets its stream, so half of [`STREAM_ERRORS`] is left for errors of the requests in
/// progress.
const RESETS: usize = STREAM_ERRORS / 2;

/// Number of empty DATA frames after which a connection gets no more requests. h2 ends the
/// connection at twice this number.
const EMPTY: usize = 50;

/// Size of h2's budget for small unread DATA frames, in bytes per byte of the connection's window.
/// For each of these frames, h2 charges 256 bytes minus the length of the frame, and it ends the
/// connection when the budget is used up. Frames of 16 bytes cost 15 bytes per byte of content, so
/// a window full of such frames does not end the connection.
const CHARGE_PER_OCTET: usize = 16;

#[derive(Debug)]
pub(in crate::upstream) struct Http2ClientConnection {
    sender: SendRequest<Bytes>,
    usage: Arc<Usage>,
    doubt: Arc<Doubt>,
    pub(super) activity: Arc<ConnectionActivity>,
    /// Number of requests in progress on the connection.
    streams: AtomicUsize,
    pub(in crate::upstream) has_answered: Flag,
    /// Whether a failure of this connection has been counted against the server. At most one
    /// failure is counted.
    is_blamed: AtomicBool,
    pub(super) opened: Instant,
    /// Time when the last request ended, in milliseconds since `opened`.
    idle_since: AtomicU64,
    /// Tells the connection's task that this value has been dropped, so that the task does not wait
    /// for the server indefinitely.
    _released: oneshot::Sender<()>,
}

pub(super) enum Admission {
    Stream(SendRequest<Bytes>),
    Full,
    /// The connection gets no more requests, because it has ended or is about to end.
    Closed,
}

impl Http2ClientConnection {
    /// Starts HTTP/2 on a new connection. Whether the server speaks HTTP/2 is known only after its
    /// first response.
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
            // The capacity of a stream never exceeds its send window, so the size of the send
            // buffer limits only frames that wait behind other streams.
            .max_send_buffer_size(limits.buffer_bytes)
            .initial_max_send_streams(STREAMS)
            .max_concurrent_reset_streams(REMEMBERED)
            .max_local_error_reset_streams(Some(STREAM_ERRORS))
            .enable_push(false)
            .handshake::<_, Bytes>(io)
            .await?;
        let (released, is_released) = oneshot::channel();
        if let Some(ping) = connection.ping_pong() {
            let ping_timeout = ping_timeout(ping, Arc::clone(&activity), Arc::clone(&doubt), limits.connect);
            tokio::spawn(drive(connection, ping_timeout, is_released, limits.connect));
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

    /// Reserves a stream if fewer than `most` streams are in use. The stream is counted until
    /// [`leave`](Self::leave).
    pub(super) fn enter(&self, most: usize) -> Admission {
        let streams = self.streams.load(Ordering::Relaxed);
        // Until the server's stream limit is known, only one stream is used.
        let most = if self.activity.settled.initialized() { most } else { 1 };
        // Free streams are checked first, because this check is the cheapest. While requests do not
        // share connections, most of the many connections have no free stream.
        if streams >= most {
            return Admission::Full;
        }
        let mut sender = self.sender.clone();
        let is_closed = matches!(sender.poll_ready(&mut Context::from_waker(Waker::noop())), Poll::Ready(Err(_)));
        // A connection that is close to a limit on its total number of resets or empty DATA frames
        // gets no more requests.
        let is_worn = self.activity.resets() >= RESETS || self.activity.empty() >= EMPTY;
        if is_closed || is_worn || self.doubt.is_kept() {
            return Admission::Closed;
        }
        if self.doubt.is_raised() || streams >= sender.current_max_send_streams() {
            return Admission::Full;
        }
        if self.streams.fetch_add(1, Ordering::Relaxed) == 0 {
            // Several clients share the connection, so it is not counted for any client, and it is
            // never closed to make room for another client.
            self.usage.begin(ClientKey::default());
        }
        Admission::Stream(sender)
    }

    /// Records that a request has ended. Returns true if this request was the only one on the
    /// connection.
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

    /// Reports whether the connection has been idle for `timeout`, or gets no more requests.
    pub(super) fn is_expired(&self, now: Instant, timeout: Duration) -> bool {
        let idle_since = self.opened + Duration::from_millis(self.idle_since.load(Ordering::Relaxed));
        let is_closed = || {
            let ready = self.sender.clone().poll_ready(&mut Context::from_waker(Waker::noop()));
            matches!(ready, Poll::Ready(Err(_)))
        };
        (self.is_idle() && now.saturating_duration_since(idle_since) >= timeout) || is_closed()
    }

    pub(super) fn answered(&self) {
        if !self.has_answered.is_set() {
            self.has_answered.set(true);
        }
    }

    /// Records that the failure of this connection is counted against the server. Returns true only
    /// for the first failure.
    pub(in crate::upstream) fn blame(&self) -> bool {
        !self.is_blamed.swap(true, Ordering::Relaxed)
    }

    /// Records that a request, sent at `since`, got no response in time. Causes a PING, unless the
    /// server has sent something in the second half of the time since the request was sent.
    pub(super) fn doubt(&self, since: Instant) {
        if self.activity.received_at().elapsed() >= since.elapsed() / 2 {
            self.doubt.raise();
        }
    }
}

/// Drives a connection until it ends. When no pool or request refers to the connection any more,
/// waits at most `patience` for a clean shutdown.
async fn drive(
    connection: client::Connection<GuardedSocket, Bytes>,
    ping_timeout: impl Future<Output = ()>,
    released: oneshot::Receiver<()>,
    patience: Duration,
) {
    let left = async {
        let _ = released.await;
        sleep(patience).await;
    };
    tokio::select! {
        biased;
        // The error is ignored, because h2 also reports it to the requests of the connection.
        _ = connection => {}
        () = ping_timeout => {}
        () = left => {}
    }
}

/// Time without bytes from the server until a PING is sent.
const QUIET: Duration = Duration::from_secs(310);

/// The suspicion that the server of a connection is unreachable. Requests raise the suspicion, and
/// the task that drives the connection then checks the server with a PING.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    is_raised: AtomicBool,
    /// Whether the suspicion is permanent, because it was too early to send a PING.
    is_kept: AtomicBool,
    raised: Notify,
}

impl Doubt {
    pub(super) fn raise(&self) {
        if !self.is_raised.swap(true, Ordering::SeqCst) {
            self.raised.notify_one();
        }
    }

    pub(super) fn is_raised(&self) -> bool {
        self.is_raised.load(Ordering::SeqCst)
    }

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

/// Sends a PING if a request raises the suspicion, or if the server has been silent for [`QUIET`].
/// Completes if a PING is not answered within `patience`, or when the connection has ended.
async fn ping_timeout(mut ping: PingPong, activity: Arc<ConnectionActivity>, doubt: Arc<Doubt>, patience: Duration) {
    // Time of the last PING, and the number of DATA and HEADERS frames received before the PING.
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
                // If bytes have arrived since the PING, the server is alive. The answer to the PING
                // may be queued behind these bytes.
                Err(_) if activity.received_at() > asked => asked = activity.received_at(),
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }
}

/// The socket of an HTTP/2 connection. The socket holds the permit, records activity, and ends the
/// connection if the server floods it with frames.
#[derive(Debug)]
pub(super) struct GuardedSocket {
    socket: Socket,
    activity: Arc<ConnectionActivity>,
    /// Budget for frames without message content. The budget has the same size as the budget of
    /// each client connection.
    budget: FrameBudget,
    received: Frames,
    sent: Frames,
    /// Number of bytes of the client's preface that have not been sent yet.
    preface: usize,
    // Must be after the socket, so that the permit is released only after the socket is closed.
    _permit: Permit,
}

/// Length of the client's preface, in bytes (RFC 9113, section 3.4).
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
        this.activity.note_bytes();
        let mut is_flooded = false;
        this.received.inspect(&buffer.filled()[before..], |frame| {
            this.activity.note_received(frame);
            is_flooded |= !this.budget.received(frame, Instant::now);
        });
        if is_flooded {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "the server sent too many frames")));
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
            let bytes = &slice[..left.min(slice.len())];
            left -= bytes.len();
            let preface = this.preface.min(bytes.len());
            this.preface -= preface;
            this.sent.inspect(&bytes[preface..], |frame| {
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
