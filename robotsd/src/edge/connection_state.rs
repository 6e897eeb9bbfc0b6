//! The state of one connection: what the connection is waiting for, and since when. The deadline of
//! the connection is computed from this state, so requests need no timers.
//!
//! hyper's own header timer is not used, for three reasons: it starts only after the first bytes
//! have shown the protocol, it also closes idle keep-alive connections, and it costs a timer per
//! request.
//!
//! **An idle connection is parked.** After one second without requests, a connection keeps only its
//! socket and its state. Bytes are read into a buffer on the stack. A parked connection uses 3 KiB;
//! in hyper, an idle connection uses 21 KiB.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::edge::connection::settings::EdgeLimits;
use crate::edge::listener_counts::ResponseCounts;
use crate::http_common::tunnel::PendingTunnel;
use crate::http_common::{Flag, InterimClient, InterimQueue, Transfer};

/// The state of one connection, shared by its socket, its service and its driver.
///
/// Other threads write only the fields for claiming the slot. The remaining fields are atomic as
/// well, because a connection's task may move between threads.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    opened: Instant,
    first_byte: Duration,
    header_read: Duration,
    keep_alive: Duration,
    pub(crate) counts: Arc<ResponseCounts>,
    task: OnceLock<Waker>,

    // The next fields describe what the connection is waiting for. The socket and the service write
    // these fields.
    /// The lowest two bits contain the phase. The higher bits contain the start time of the phase,
    /// in microseconds since `opened`.
    phase: AtomicU64,
    /// Number of requests in progress. While requests are in progress, `phase` has no meaning.
    in_progress: AtomicUsize,
    /// Time when the current incomplete frame or field section began, in microseconds; [`NEVER`] if
    /// no frame is incomplete.
    partial: AtomicU64,
    /// Time when the first incomplete frame of this phase began, in microseconds. The idle time is
    /// counted from this time, so that a client cannot keep its slot by starting another frame.
    first_partial: AtomicU64,

    // The next fields describe the claim on this connection's slot. The driver writes these fields,
    // and so do new connections that need a slot.
    /// The value that `phase` had when the slot was claimed; [`NEVER`] if the slot is not claimed.
    /// If a request arrives, `phase` changes, which cancels the claim without a write to this
    /// field.
    claimed_in: AtomicU64,
    /// Whether the connection had an incomplete head or frame when its slot was claimed.
    is_claimed_as_slow: Flag,
    /// Time of the last declined claim, in microseconds. The idle time of the connection is counted
    /// from this time, so that the slots of other connections are claimed first.
    declined: AtomicU64,
    pub(crate) has_ended: Flag,

    // The next fields are signals between the socket, the service and the driver.
    /// Whether the client has sent the HTTP/2 preface, or a request on HTTP/2.
    pub(crate) is_http2: Flag,
    /// Whether bytes have arrived since this flag was last checked. The fast path of HTTP/1.1 does
    /// not set this flag.
    pub(crate) has_received_bytes: Flag,
    /// Type of the frames that flood the connection. Once a type is set, the connection is closed.
    pub(crate) flood: OnceLock<u8>,
    /// The driver sets this flag. While the flag is set, the socket closes the connection if a read
    /// finds no bytes.
    pub(crate) close_if_idle: Flag,
    /// The socket sets this flag when it has closed an idle connection.
    pub(crate) is_closed_as_idle: Flag,
    /// Whether the next HTTP/1.1 response must announce the end of the connection.
    pub(crate) is_leaving: Flag,
    pub(crate) delivery: Delivery,
    interim: InterimQueue,
    pub(crate) tunnel: Mutex<Option<PendingTunnel>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Idleness {
    /// The connection waits for the first byte of a request, or for a handshake.
    Idle,
    /// The connection waits for the rest of an incomplete request head or HTTP/2 frame.
    Slow,
}

/// Phase: nothing has been read yet.
const SILENT: u64 = 0;
/// Phase: a request head is incomplete.
const HEAD: u64 = 1;
/// Phase: all requests so far (at least one) have been answered.
const BETWEEN: u64 = 2;

impl ConnectionState {
    pub(crate) fn new(limits: &EdgeLimits) -> Self {
        Self {
            opened: Instant::now(),
            first_byte: limits.first_byte,
            header_read: limits.header_read,
            keep_alive: limits.keep_alive,
            counts: Arc::default(),
            task: OnceLock::new(),
            phase: AtomicU64::new(SILENT),
            in_progress: AtomicUsize::new(0),
            partial: AtomicU64::new(NEVER),
            first_partial: AtomicU64::new(NEVER),
            claimed_in: AtomicU64::new(NEVER),
            is_claimed_as_slow: Flag::default(),
            declined: AtomicU64::new(0),
            has_ended: Flag::default(),
            is_http2: Flag::default(),
            has_received_bytes: Flag::default(),
            flood: OnceLock::new(),
            close_if_idle: Flag::default(),
            is_closed_as_idle: Flag::default(),
            is_leaving: Flag::default(),
            delivery: Delivery::default(),
            interim: InterimQueue::default(),
            tunnel: Mutex::default(),
        }
    }

    pub(crate) fn bytes_read(&self) {
        self.has_received_bytes.set(true);
        if !self.is_idle() {
            return;
        }
        match self.phase.load(Ordering::Relaxed) & 3 {
            SILENT => self.enter(HEAD),
            // On HTTP/2, the bytes may be a PING or a WINDOW_UPDATE frame. So on HTTP/2, bytes
            // between requests do not start the shorter deadline for heads.
            BETWEEN if !self.is_http2.is_set() => self.enter(HEAD),
            _ => {}
        }
    }

    /// Records that the head of a request is complete. The request is in progress until the
    /// returned value is dropped.
    pub(crate) fn begin(self: &Arc<Self>, http2: bool) -> RequestInProgress {
        if http2 {
            self.is_http2.set(true);
        }
        self.in_progress.fetch_add(1, Ordering::AcqRel);
        RequestInProgress(Arc::clone(self))
    }

    /// Returns the time when the connection becomes overdue, unless its state changes earlier.
    /// Returns `None` if requests are in progress, because their bodies have their own deadlines.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if !self.is_idle() {
            return None;
        }
        let state = self.phase.load(Ordering::Acquire);
        let since = self.at(state >> 2);
        let deadline = match state & 3 {
            SILENT => since + self.first_byte,
            HEAD => since + self.header_read,
            _ => since + self.keep_alive,
        };
        match self.partial.load(Ordering::Relaxed) {
            NEVER => Some(deadline),
            partial => Some(deadline.min(self.at(partial) + self.header_read)),
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.in_progress.load(Ordering::Acquire) == 0
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.phase.load(Ordering::Relaxed) & 3 == SILENT
    }

    pub(crate) fn has_served(&self) -> bool {
        self.phase.load(Ordering::Relaxed) & 3 == BETWEEN
    }

    /// Stores the waker of the connection's task. The task must call this function first. A task
    /// has the same waker for its whole life, so the waker need not be stored again at each wait.
    pub(crate) async fn enter_task(&self) {
        poll_fn(|cx| {
            let _ = self.task.set(cx.waker().clone());
            Poll::Ready(())
        })
        .await;
    }

    /// Waits for `part`, a step before the first request: receiving the PROXY header, or the TLS
    /// handshake. Returns `None` if the connection ended before `part` completed, or if a new
    /// connection claimed its slot. When the step ends, the deadline for the next step starts.
    /// `part` must be `Unpin` (boxed). If `part` were not `Unpin`, this future would contain `part`
    /// twice.
    pub(crate) async fn before_request<T, E>(
        &self,
        part: impl Future<Output = Result<Option<T>, E>> + Unpin,
    ) -> Result<Option<T>, E> {
        let ended = tokio::select! {
            biased;
            ended = part => ended,
            () = poll_fn(|_| if self.is_reclaimed() { Poll::Ready(()) } else { Poll::Pending }) => Ok(None),
        };
        self.enter(SILENT);
        ended
    }

    /// Records whether an HTTP/2 frame or a multi-frame field section is incomplete. The socket
    /// calls this function when a frame or section begins and when it is complete.
    pub(crate) fn set_partial(&self, is_partial: bool) {
        if !is_partial {
            self.partial.store(NEVER, Ordering::Relaxed);
            return;
        }
        let now = self.now();
        let first = self.first_partial.load(Ordering::Relaxed);
        if first == NEVER || first < self.phase.load(Ordering::Relaxed) >> 2 {
            self.first_partial.store(now, Ordering::Relaxed);
        }
        self.partial.store(now, Ordering::Release);
    }

    /// Returns what the connection waits for, and since when. Returns `None` if requests are in
    /// progress or the slot has been claimed.
    pub(crate) fn idle(&self) -> Option<(Idleness, Instant)> {
        let state = self.phase.load(Ordering::Acquire);
        if !self.is_idle() || self.is_unsent() || self.is_claimed_in(state) {
            return None;
        }
        let mut since = state >> 2;
        let is_partial = self.partial.load(Ordering::Acquire) != NEVER;
        if is_partial {
            since = since.max(self.first_partial.load(Ordering::Relaxed));
        }
        let is_slow = is_partial || state & 3 == HEAD && !self.is_http2.is_set();
        let idleness = if is_slow { Idleness::Slow } else { Idleness::Idle };
        Some((idleness, self.at(since.max(self.declined.load(Ordering::Relaxed)))))
    }

    /// Claims the slot of the connection, from any thread. The connection then closes, unless a
    /// request arrives first. Returns `false` if the connection is not idle any more.
    pub(crate) fn reclaim(&self, idleness: Idleness) -> bool {
        let state = self.phase.load(Ordering::Acquire);
        if !self.is_idle() || self.is_unsent() {
            return false;
        }
        self.is_claimed_as_slow.set(idleness == Idleness::Slow);
        self.claimed_in.store(state, Ordering::Release);
        if let Some(task) = self.task.get() {
            task.wake_by_ref();
        }
        true
    }

    /// Reports whether a new connection has claimed the slot of this connection. A claim ends if
    /// the phase changes.
    pub(crate) fn is_reclaimed(&self) -> bool {
        self.is_claimed_in(self.phase.load(Ordering::Relaxed)) && self.is_idle()
    }

    fn is_claimed_in(&self, phase: u64) -> bool {
        self.claimed_in.load(Ordering::Acquire) == phase
    }

    pub(crate) fn is_reclaimed_as_slow(&self) -> bool {
        self.is_claimed_as_slow.is_set()
    }

    /// Withdraws the claim because the connection cannot be closed now. The slots of other idle
    /// connections are claimed before this slot is claimed again.
    pub(crate) fn decline(&self) {
        self.declined.store(self.now(), Ordering::Relaxed);
        self.claimed_in.store(NEVER, Ordering::Release);
    }

    fn is_unsent(&self) -> bool {
        self.delivery.unsent() != Unsent::Nothing
    }

    fn enter(&self, phase: u64) {
        self.phase.store(self.now() << 2 | phase, Ordering::Release);
    }

    /// Returns the time since the connection was opened, in microseconds.
    fn now(&self) -> u64 {
        self.opened.elapsed().as_micros() as u64
    }

    fn at(&self, microsecond: u64) -> Instant {
        self.opened + Duration::from_micros(microsecond)
    }
}

impl InterimClient for ConnectionState {
    fn interim(&self) -> &InterimQueue {
        &self.interim
    }
}

/// A request in progress. When the last request in progress is dropped, the deadline for the next
/// request starts.
#[derive(Debug)]
pub(crate) struct RequestInProgress(pub(crate) Arc<ConnectionState>);

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        if self.0.in_progress.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.enter(BETWEEN);
        }
    }
}

/// Tracks how much of the responses the client has received. An HTTP library considers a response
/// finished when the library has read the whole body. In this type, a response counts as finished
/// when the socket or the stream has accepted all bytes.
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    unsent: AtomicU64,
    /// The upstream connection that the current HTTP/1.1 response occupies.
    pub(crate) transfer: Mutex<Option<Transfer>>,
    /// Number of times that the client's socket has accepted bytes after a write had to wait.
    taken: AtomicUsize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsent {
    Nothing,
    /// The client's socket accepts no bytes. [`WatchedSocket`](super::connection::watched_socket)
    /// has a deadline for this state.
    Socket,
    /// HTTP/2 streams wait for their flow-control window. The number changes whenever the first
    /// open stream makes progress.
    Streams(u32),
}

impl Unsent {
    const fn number(self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Socket => 1,
            Self::Streams(turn) => 2 + turn as u64,
        }
    }
}

impl Delivery {
    pub(crate) fn set_unsent(&self, unsent: Unsent) {
        self.unsent.store(unsent.number(), Ordering::Relaxed);
    }

    pub(crate) fn unsent(&self) -> Unsent {
        match self.unsent.load(Ordering::Relaxed) {
            0 => Unsent::Nothing,
            1 => Unsent::Socket,
            number => Unsent::Streams((number - 2) as u32),
        }
    }

    pub(crate) fn transfer(&self) -> Option<Transfer> {
        self.transfer.lock().clone()
    }

    pub(crate) fn note_taken(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns a number that changes whenever the client's socket has accepted bytes after a write
    /// had to wait.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

/// Value that means "no phase" or "no time".
const NEVER: u64 = u64::MAX;
