//! The activity of one connection, so that its deadline is known without a timer for each request.
//!
//! The socket reports octets, the service reports when requests begin and end, and the driver of the connection reads the
//! deadline whenever it wakes. hyper's own header timer is not used: it is off until a first octet has decided the
//! protocol, it also ends idle kept-alive connections, and it costs a timer for every request.
//!
//! **Between requests a connection is parked.** After a second it has given up everything but its socket and its
//! checks: octets are read through the stack, and the memory for responses is kept only while requests come. An idle
//! connection takes 3 KiB where hyper's takes 21.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::edge::connection::settings::EdgeLimits;
use crate::edge::listener_counts::ResponseCounts;
use crate::exchange::tunnel::PendingTunnel;
use crate::exchange::{Flag, InterimClient, InterimQueue, Transfer};

/// The state of one connection, shared by its socket, its service and its driver.
///
/// Only the claim of the slot is also for other threads. Everything is atomic, because a task may change its thread.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    opened: Instant,
    first_byte: Duration,
    header_read: Duration,
    keep_alive: Duration,
    /// The counts of its responses.
    pub(crate) counts: Arc<ResponseCounts>,
    /// Wakes the connection's task, from any thread.
    task: OnceLock<Waker>,

    // What the connection waits for. Written by socket and service.
    /// The phase in the lowest two bits, the microsecond it began (counted from `opened`) above them.
    phase: AtomicU64,
    /// Requests in progress. While there are any, the phase does not count.
    in_progress: AtomicUsize,
    /// The microsecond in which the frame or field section began that has come in part; [`NEVER`] between frames.
    partial: AtomicU64,
    /// The same of the first one in its phase, so that a client wins no time if it begins again.
    first_partial: AtomicU64,

    // The claim of the slot. Written by whoever needs a slot, and by the driver.
    /// The phase in which a new connection claimed the slot of this one; [`NEVER`] until then. A connection that goes on is in
    /// another phase, so a request does not have to take anything back.
    claimed_in: AtomicU64,
    /// The slot was claimed although a head or a frame has come in part.
    is_claimed_as_slow: Flag,
    /// The microsecond in which a claim last failed: since then the connection counts as idle, so that others go first.
    declined: AtomicU64,
    pub(crate) has_ended: Flag,

    // What socket, service and driver tell each other.
    /// The client has sent the preface of HTTP/2, or a request on it.
    pub(crate) is_http2: Flag,
    /// Bytes have come since this was last looked at, on the paths without the fast one.
    pub(crate) heard: Flag,
    /// The type of frame that the client floods the connection with, which closes for it.
    pub(crate) flood: OnceLock<u8>,
    /// The driver asks the socket to close the connection if the next read finds nothing.
    pub(crate) close_if_idle: Flag,
    /// The socket has closed it.
    pub(crate) is_closed_as_idle: Flag,
    /// The connection is to close behind its next response on HTTP/1.1, which says so.
    pub(crate) is_leaving: Flag,
    pub(crate) delivery: Delivery,
    /// The interim responses of the request in progress, on HTTP/1.1.
    interim: InterimQueue,
    /// For the driver to run once the connection has switched.
    pub(crate) tunnel: Mutex<Option<PendingTunnel>>,
}

/// The event that a connection without a request in progress waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Idleness {
    /// A request, or the handshake before it.
    Idle,
    /// The rest of a request's head, or of a frame of HTTP/2.
    Slow,
}

/// Nothing has been read yet.
const SILENT: u64 = 0;
/// Some octets of a request head have been read.
const HEAD: u64 = 1;
/// A request has been answered.
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
            heard: Flag::default(),
            flood: OnceLock::new(),
            close_if_idle: Flag::default(),
            is_closed_as_idle: Flag::default(),
            is_leaving: Flag::default(),
            delivery: Delivery::default(),
            interim: InterimQueue::default(),
            tunnel: Mutex::default(),
        }
    }

    /// Octets came from the client.
    pub(crate) fn octets_read(&self) {
        self.heard.set(true);
        if !self.is_idle() {
            return;
        }
        match self.phase.load(Ordering::Relaxed) & 3 {
            SILENT => self.enter(HEAD),
            // On HTTP/2 these may be a ping or a window update; a connection without streams has the longer deadline.
            BETWEEN if !self.is_http2.is_set() => self.enter(HEAD),
            _ => {}
        }
    }

    /// The head of a request is complete; the request is in progress until the returned value is dropped.
    pub(crate) fn begin(self: &Arc<Self>, http2: bool) -> RequestInProgress {
        if http2 {
            self.is_http2.set(true);
        }
        self.in_progress.fetch_add(1, Ordering::AcqRel);
        RequestInProgress(Arc::clone(self))
    }

    /// When the connection is overdue, should nothing change until then; none while requests are in progress, whose
    /// bodies have deadlines of their own.
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

    /// Whether no request is in progress.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_progress.load(Ordering::Acquire) == 0
    }

    /// Whether nothing has come from the client yet.
    pub(crate) fn is_silent(&self) -> bool {
        self.phase.load(Ordering::Relaxed) & 3 == SILENT
    }

    /// Whether the connection waits for another request, having answered at least one.
    pub(crate) fn has_served(&self) -> bool {
        self.phase.load(Ordering::Relaxed) & 3 == BETWEEN
    }

    /// Notes which task the connection is; that task calls it first of all. A task has one waker for all its life, so this
    /// is done once a connection and not at each wait.
    pub(crate) async fn enter_task(&self) {
        poll_fn(|cx| {
            let _ = self.task.set(cx.waker().clone());
            Poll::Ready(())
        })
        .await;
    }

    /// The part before a request, a PROXY header or the TLS handshake; none where the connection ended in it or gave its slot to
    /// another. The wait for the next one begins at its end. It is pinned, so that it takes its room once.
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

    /// Whether a frame of HTTP/2, or a field section of several, has come in part. Called when that changes.
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

    /// The event that the connection waits for, and since when; nothing while requests are in progress, or once its
    /// slot has been claimed.
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

    /// Claims the slot of the connection, from any thread: the connection closes unless something happens on it first.
    /// Returns false if that is the case already.
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

    /// Whether the slot has been claimed, and nothing has happened since.
    pub(crate) fn is_reclaimed(&self) -> bool {
        self.is_claimed_in(self.phase.load(Ordering::Relaxed)) && self.is_idle()
    }

    fn is_claimed_in(&self, phase: u64) -> bool {
        self.claimed_in.load(Ordering::Acquire) == phase
    }

    /// Whether the slot was claimed although something has come in part.
    pub(crate) fn is_reclaimed_as_slow(&self) -> bool {
        self.is_claimed_as_slow.is_set()
    }

    /// The connection cannot close now: the claim lapses, and others go before the connection is claimed again.
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

    /// The microseconds that the connection has been open.
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

/// A request in progress. When the last one is dropped, the wait for the next request begins.
#[derive(Debug)]
pub(crate) struct RequestInProgress(pub(crate) Arc<ConnectionState>);

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        if self.0.in_progress.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.enter(BETWEEN);
        }
    }
}

/// The octets that the client has not taken yet. The HTTP libraries count a response as finished once they have the whole body; here it
/// is finished once the socket or the stream has taken it.
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    unsent: AtomicU64,
    /// The upstream connection that the current response of HTTP/1.1 holds.
    pub(crate) transfer: Mutex<Option<Transfer>>,
    /// How often the client's socket has taken something after a wait.
    taken: AtomicUsize,
}

/// Which part of a response still has to be sent while no request is in progress any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsent {
    Nothing,
    /// The client's socket takes nothing, which has a deadline of its own.
    Socket,
    /// Streams of HTTP/2 wait for their client's window. The number changes whenever the first of them moves.
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

    /// The upstream connection that the current response holds.
    pub(crate) fn transfer(&self) -> Option<Transfer> {
        self.transfer.lock().clone()
    }

    /// The client's socket has taken something after a wait.
    pub(crate) fn note_taken(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// Changes whenever the client's socket has taken something after a wait.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

/// No phase, and no microsecond.
const NEVER: u64 = u64::MAX;
