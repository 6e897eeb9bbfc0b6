//! What a connection is doing, so that its deadline is known without a timer a request.
//!
//! The stream says when bytes arrive, the service when requests begin and end, and the driver of the connection asks
//! for the deadline whenever it wakes. hyper's own header timer is not used: it is off until a first byte has decided
//! the protocol, it also ends idle kept-alive connections, and it costs a timer for every request.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio::time::Instant;

use crate::edge::limits::EdgeLimits;
use crate::edge::request::access_record::PendingRecord;
use crate::edge::transfer::Transfer;
use crate::edge::tunnel::PendingTunnel;

/// The state of one connection, shared by its stream, its service and its driver.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    opened: Instant,
    first_byte: Duration,
    header_read: Duration,
    keep_alive: Duration,
    /// The phase in the lowest two bits, the millisecond it began (counted from `opened`) above them.
    phase: AtomicU64,
    /// Requests being answered. While there are any, the phase does not count.
    in_flight: AtomicUsize,
    http2: AtomicBool,
    /// The preface of HTTP/2 has been read; [`http2`](Self::http2) waits for a request.
    preface: AtomicBool,
    /// The phase in which a new connection claimed the place of this one; [`NEVER`] until one does. A connection that
    /// goes on is in another phase, so nothing has to be taken back when a request begins.
    reclaimed: AtomicU64,
    /// The place was claimed although something has come in part.
    reclaimed_slow: AtomicBool,
    /// The millisecond in which a claim last failed: since then the connection counts as idle, so that others go first.
    declined: AtomicU64,
    /// The millisecond in which the frame or field section began that has come in part; [`NEVER`] between frames.
    partial: AtomicU64,
    /// The same of the first one in its phase, so that beginning anew wins no time.
    first_partial: AtomicU64,
    goodbye: Goodbye,
    ended: AtomicBool,
    /// What of an answer is still to be sent: what hyper has taken of a body counts as answered here.
    unsent: AtomicU64,
    flood: AtomicBool,
    /// Wakes the connection's task, from any thread.
    task: OnceLock<Waker>,
    tunnel: Mutex<Option<PendingTunnel>>,
    /// What the answer being written holds behind the edge; of HTTP/1.1.
    transfer: Mutex<Option<Transfer>>,
    /// How often the client's socket has taken something that had to wait for it.
    taken: AtomicUsize,
}

/// How an idle connection that hyper has is brought to its end: its driver asks, its stream answers.
#[derive(Debug, Default)]
pub(crate) struct Goodbye {
    wanted: AtomicBool,
    said: AtomicBool,
}

/// What a connection without a request in progress waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Idleness {
    /// A request, or the handshake before it.
    Idle,
    /// The rest of a request's head, or of a frame of HTTP/2.
    Slow,
}

/// What of an answer is still to be sent while no request is in progress any more.
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

/// Nothing has been read yet.
const SILENT: u64 = 0;
/// Some bytes of a request head have been read.
const HEAD: u64 = 1;
/// A request has been answered.
const BETWEEN: u64 = 2;
/// No phase.
const NEVER: u64 = u64::MAX;

impl ConnectionState {
    pub(crate) fn new(limits: &EdgeLimits) -> Self {
        Self {
            opened: Instant::now(),
            first_byte: limits.first_byte,
            header_read: limits.header_read,
            keep_alive: limits.keep_alive,
            phase: AtomicU64::new(SILENT),
            in_flight: AtomicUsize::new(0),
            http2: AtomicBool::new(false),
            preface: AtomicBool::new(false),
            reclaimed: AtomicU64::new(NEVER),
            reclaimed_slow: AtomicBool::new(false),
            declined: AtomicU64::new(0),
            partial: AtomicU64::new(NEVER),
            first_partial: AtomicU64::new(NEVER),
            goodbye: Goodbye::default(),
            ended: AtomicBool::new(false),
            unsent: AtomicU64::new(Unsent::Nothing.number()),
            flood: AtomicBool::new(false),
            task: OnceLock::new(),
            tunnel: Mutex::new(None),
            transfer: Mutex::new(None),
            taken: AtomicUsize::new(0),
        }
    }

    /// Bytes came from the client.
    pub(crate) fn bytes_read(&self) {
        if !self.is_idle() {
            return;
        }
        match self.phase.load(Ordering::Relaxed) & 3 {
            SILENT => self.enter(HEAD),
            // On HTTP/2 these may be a ping or a window update; a connection without streams has the longer deadline.
            BETWEEN if !self.is_http2() => self.enter(HEAD),
            _ => {}
        }
    }

    /// A request is complete as far as its head goes; the returned guard ends it.
    pub(crate) fn begin(self: &Arc<Self>, http2: bool) -> Exchange {
        if http2 {
            self.http2.store(true, Ordering::Relaxed);
        }
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        Exchange { activity: Arc::clone(self), has_transfer: false, visit: None }
    }

    pub(crate) fn is_http2(&self) -> bool {
        self.http2.load(Ordering::Relaxed)
    }

    /// When the connection is overdue, should nothing change until then; none while requests are answered, whose
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

    /// Whether no request is being answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight.load(Ordering::Acquire) == 0
    }

    /// Whether nothing has come from the client yet.
    pub(crate) fn is_silent(&self) -> bool {
        self.phase.load(Ordering::Relaxed) & 3 == SILENT
    }

    /// Whether the connection waits for another request, having answered at least one.
    pub(crate) fn has_served(&self) -> bool {
        self.phase.load(Ordering::Relaxed) & 3 == BETWEEN
    }

    /// Notes which task the connection is, to be called first of all by that task. A task has one waker for all its life,
    /// so this is done once a connection and not at each wait.
    pub(crate) async fn enter_task(&self) {
        poll_fn(|cx| {
            let _ = self.task.set(cx.waker().clone());
            Poll::Ready(())
        })
        .await;
    }

    /// The connection has been secured: only now is its request waited for.
    pub(crate) fn secured(&self) {
        self.enter(SILENT);
    }

    /// The client has sent the preface of HTTP/2.
    pub(crate) fn preface_read(&self) {
        self.preface.store(true, Ordering::Relaxed);
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

    /// What the connection waits for and since when; nothing while requests are answered, or once its place has been
    /// claimed.
    pub(crate) fn idle(&self) -> Option<(Idleness, Instant)> {
        let state = self.phase.load(Ordering::Acquire);
        if !self.is_idle() || self.is_unsent() || state == self.reclaimed.load(Ordering::Relaxed) {
            return None;
        }
        let mut since = state >> 2;
        let is_partial = self.partial.load(Ordering::Acquire) != NEVER;
        if is_partial {
            since = since.max(self.first_partial.load(Ordering::Relaxed));
        }
        let is_slow = is_partial || state & 3 == HEAD && !self.preface.load(Ordering::Relaxed);
        let idleness = if is_slow { Idleness::Slow } else { Idleness::Idle };
        Some((idleness, self.at(since.max(self.declined.load(Ordering::Relaxed)))))
    }

    /// Claims the place of the connection, from any thread: it ends unless something happens on it first. Returns false
    /// if that is the case already.
    pub(crate) fn reclaim(&self, idleness: Idleness) -> bool {
        let state = self.phase.load(Ordering::Acquire);
        if !self.is_idle() || self.is_unsent() {
            return false;
        }
        self.reclaimed_slow.store(idleness == Idleness::Slow, Ordering::Relaxed);
        self.reclaimed.store(state, Ordering::Release);
        if let Some(task) = self.task.get() {
            task.wake_by_ref();
        }
        true
    }

    /// Whether the place has been claimed, and nothing has happened since.
    pub(crate) fn is_reclaimed(&self) -> bool {
        self.reclaimed.load(Ordering::Acquire) == self.phase.load(Ordering::Relaxed) && self.is_idle()
    }

    /// The connection has ended.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Whether the place was claimed although something has come in part.
    pub(crate) fn is_reclaimed_as_slow(&self) -> bool {
        self.reclaimed_slow.load(Ordering::Relaxed)
    }

    /// The connection cannot end now: the claim lapses, and others go before the connection is claimed again.
    pub(crate) fn decline(&self) {
        self.declined.store(self.now(), Ordering::Relaxed);
        self.reclaimed.store(NEVER, Ordering::Release);
    }

    /// Completes when the place has been claimed.
    pub(crate) async fn reclaimed(&self) {
        poll_fn(|_| if self.is_reclaimed() { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    pub(crate) fn goodbye(&self) -> &Goodbye {
        &self.goodbye
    }

    /// Notes what of an answer is still to be sent.
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

    fn is_unsent(&self) -> bool {
        self.unsent() != Unsent::Nothing
    }

    /// The client floods the connection with frames, which is closed for it.
    pub(crate) fn flooded(&self) {
        self.flood.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_flooded(&self) -> bool {
        self.flood.load(Ordering::Relaxed)
    }

    /// Leaves a tunnel for the driver to run once the connection has switched.
    pub(crate) fn leave_tunnel(&self, tunnel: PendingTunnel) {
        *self.tunnel.lock().unwrap_or_else(PoisonError::into_inner) = Some(tunnel);
    }

    pub(crate) fn take_tunnel(&self) -> Option<PendingTunnel> {
        self.tunnel.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What the answer being written holds behind the edge.
    pub(crate) fn transfer(&self) -> Option<Transfer> {
        self.transfer.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_transfer(&self, transfer: Option<Transfer>) {
        *self.transfer.lock().unwrap_or_else(PoisonError::into_inner) = transfer;
    }

    /// The client's socket has taken something that had to wait for it.
    pub(crate) fn note_taken(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// Another number whenever the client's socket has taken something that had to wait for it.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    fn enter(&self, phase: u64) {
        self.phase.store(self.now() << 2 | phase, Ordering::Release);
    }

    /// The milliseconds that the connection has been open.
    fn now(&self) -> u64 {
        self.opened.elapsed().as_millis() as u64
    }

    fn at(&self, millisecond: u64) -> Instant {
        self.opened + Duration::from_millis(millisecond)
    }
}

impl Goodbye {
    /// The next read that finds nothing ends the connection.
    pub(crate) fn ask(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }

    /// Something has been read instead.
    pub(crate) fn withdraw(&self) {
        self.wanted.store(false, Ordering::Relaxed);
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    pub(crate) fn say(&self) {
        self.said.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_said(&self) -> bool {
        self.said.load(Ordering::Relaxed)
    }
}

/// One request being answered. Ends when dropped: with the last byte of the response body, or when the client leaves.
#[derive(Debug)]
pub(crate) struct Exchange {
    activity: Arc<ConnectionState>,
    has_transfer: bool,
    /// The account of it, where one is kept.
    pub(crate) visit: Option<Box<PendingRecord>>,
}

impl Exchange {
    pub(crate) fn activity(&self) -> &Arc<ConnectionState> {
        &self.activity
    }

    /// The answer holds a connection to an upstream.
    pub(crate) fn carries(&mut self, transfer: Transfer) {
        self.has_transfer = true;
        self.activity.set_transfer(Some(transfer));
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if self.has_transfer {
            self.activity.set_transfer(None);
        }
        if self.activity.in_flight.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.activity.enter(BETWEEN);
        }
    }
}
