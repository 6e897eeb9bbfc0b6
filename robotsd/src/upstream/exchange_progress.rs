//! What is known about the current exchange on a connection.
//!
//! hyper does not say whether any octet of an answer has come, how much of an answer's head (interim responses have no
//! bound), or when the upstream last took something. The [`TrackedIo`](super::tracked_io::TrackedIo) and the request body on it see it
//! all and note it here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::usage::Usage;
use crate::edge::RequestBodyError;

/// Notes about the current exchange on a connection, which a single task keeps and reads; atomic so that the task may
/// change threads.
#[derive(Debug)]
pub(super) struct ExchangeProgress {
    usage: Arc<Usage>,
    opened: Instant,
    /// Octets that came since the request began.
    received: AtomicUsize,
    /// How many may come before the head of the final response is complete; `usize::MAX` once it is.
    before_head: AtomicUsize,
    /// When the upstream last took something, in milliseconds since `opened`.
    taken: AtomicU64,
    /// Whether the upstream waits for the client to go on with its request body.
    awaits_client: AtomicBool,
    body_failure: AtomicU8,
    /// Whether the next read must ask the kernel, not the event loop, what has become of the connection.
    look: AtomicBool,
    /// Whether the request has been sent before, and is only written once more for hyper's sake.
    replays: AtomicBool,
}

/// Values of `body_failure`; zero for none.
const IDLE: u8 = 1;
const BROKEN: u8 = 2;

impl ExchangeProgress {
    pub(super) fn new(usage: Arc<Usage>) -> Self {
        Self {
            usage,
            opened: Instant::now(),
            received: AtomicUsize::new(0),
            before_head: AtomicUsize::new(usize::MAX),
            taken: AtomicU64::new(0),
            awaits_client: AtomicBool::new(false),
            body_failure: AtomicU8::new(0),
            look: AtomicBool::new(false),
            replays: AtomicBool::new(false),
        }
    }

    /// A request begins.
    pub(super) fn begin(&self, before_head: usize, now: Instant) {
        self.received.store(0, Ordering::Relaxed);
        self.before_head.store(before_head, Ordering::Relaxed);
        self.awaits_client.store(false, Ordering::Relaxed);
        self.body_failure.store(0, Ordering::Relaxed);
        self.replays.store(false, Ordering::Relaxed);
        self.note_taken_at(now);
    }

    /// How the connection is used.
    pub(super) fn usage(&self) -> &Arc<Usage> {
        &self.usage
    }

    /// Whether the head of the final response is still to come.
    pub(super) fn awaits_head(&self) -> bool {
        self.before_head.load(Ordering::Relaxed) != usize::MAX
    }

    /// The head of the final response has come.
    pub(super) fn has_head(&self) {
        self.usage.moved();
        self.before_head.store(usize::MAX, Ordering::Relaxed);
    }

    pub(super) fn nothing_received(&self) -> bool {
        self.received.load(Ordering::Relaxed) == 0
    }

    pub(super) fn is_flooded(&self) -> bool {
        self.received.load(Ordering::Relaxed) >= self.before_head.load(Ordering::Relaxed)
    }

    pub(super) fn last_taken(&self) -> Instant {
        self.opened + Duration::from_millis(self.taken.load(Ordering::Relaxed))
    }

    pub(super) fn awaits_client(&self) -> bool {
        self.awaits_client.load(Ordering::Relaxed)
    }

    /// How the request body ended early, if it did.
    pub(super) fn body_failure(&self) -> Option<BodyFailure> {
        match self.body_failure.load(Ordering::Relaxed) {
            IDLE => Some(BodyFailure::Idle),
            BROKEN => Some(BodyFailure::Broken),
            _ => None,
        }
    }

    /// For the rest of this exchange what is written has been sent already.
    pub(super) fn replay(&self) {
        self.replays.store(true, Ordering::Relaxed);
    }

    pub(super) fn replays(&self) -> bool {
        self.replays.load(Ordering::Relaxed)
    }

    /// Makes the next read ask the kernel.
    pub(super) fn look(&self) {
        self.look.store(true, Ordering::Relaxed);
    }

    /// Whether this read has to ask the kernel.
    pub(super) fn has_to_look(&self) -> bool {
        self.look.swap(false, Ordering::Relaxed)
    }

    pub(super) fn note_received(&self, octets: usize) {
        self.received.fetch_add(octets, Ordering::Relaxed);
    }

    pub(super) fn note_awaits_client(&self, awaits: bool) {
        self.awaits_client.store(awaits, Ordering::Relaxed);
    }

    pub(super) fn note_body_failure(&self, error: &RequestBodyError) {
        let failure = if matches!(error, RequestBodyError::Idle) { IDLE } else { BROKEN };
        self.body_failure.store(failure, Ordering::Relaxed);
    }

    pub(super) fn note_taken(&self) {
        self.note_taken_at(Instant::now());
    }

    fn note_taken_at(&self, now: Instant) {
        self.taken.store(now.duration_since(self.opened).as_millis() as u64, Ordering::Relaxed);
    }
}

/// What a client did to its own request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyFailure {
    /// It stopped sending.
    Idle,
    /// It left, or broke the framing.
    Broken,
}
