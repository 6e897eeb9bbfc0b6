//! The deadline for a client that does not read, and its effect on the upstream side.
//!
//! The one mechanism for every writer: the fast path, the socket below the HTTP libraries and the streams of HTTP/2. A
//! write that has to wait is reported to the response's [`Transfer`], so that its upstream connection can be used
//! without the client or taken away, and expires after `body_idle`.
//!
//! An [`IdleTimeout`] costs nothing until something has to wait: most small bodies are complete at the first poll, so
//! the timer is only made at the first wait and kept for the next one.
//!
//! A body is polled for data only when the client can take it, so it cannot see that a client does not read. The writers
//! can: they report each stall here, and the upstream side may then read on without the client, or end the response
//! because its connection is needed elsewhere. The report is made only when a write has to wait; a client that reads costs
//! nothing.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// Expires after a wait of a given time without a [`reset`](Self::reset).
#[derive(Debug)]
pub(crate) struct IdleTimeout {
    limit: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    /// There has been a wait since the last reset.
    pub(crate) is_waiting: bool,
}

impl IdleTimeout {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, timer: None, is_waiting: false }
    }

    /// Something moved: the next wait starts anew.
    pub(crate) fn reset(&mut self) {
        self.is_waiting = false;
    }

    /// Ready once the current wait has lasted too long.
    pub(crate) fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.limit)));
        if !self.is_waiting {
            self.is_waiting = true;
            timer.as_mut().reset(Instant::now() + self.limit);
        }
        timer.as_mut().poll(cx)
    }

    /// The client has taken something. Returns whether it had to be waited for; `transfer` is only called then.
    pub(crate) fn progressed(&mut self, transfer: impl FnOnce() -> Option<Transfer>) -> bool {
        let has_waited = self.is_waiting;
        if has_waited && let Some(transfer) = transfer() {
            transfer.resumed();
        }
        self.reset();
        has_waited
    }

    /// A write has to wait. Ready once that has lasted too long, or once the upstream connection is needed elsewhere.
    pub(crate) fn poll_stalled(&mut self, transfer: Option<&Transfer>, cx: &mut Context<'_>) -> Poll<()> {
        let is_revoked = transfer.is_some_and(|transfer| transfer.poll_stalled(cx).is_ready());
        if is_revoked { Poll::Ready(()) } else { self.poll_expired(cx) }
    }
}

/// The error of a write that has waited too long.
pub(crate) fn client_does_not_read() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the client does not read from its connection")
}

/// Ready once a moment has come that may be put off while the timer for it runs.
pub(crate) fn poll_due(
    mut timer: Pin<&mut Sleep>,
    cx: &mut Context<'_>,
    mut due: impl FnMut(Instant) -> Instant,
) -> Poll<()> {
    loop {
        ready!(timer.as_mut().poll(cx));
        let now = Instant::now();
        let due = due(now);
        if due <= now {
            return Poll::Ready(());
        }
        timer.as_mut().reset(due);
    }
}

/// The upstream side of a response that holds a connection.
pub(crate) trait StallObserver: Send + Sync {
    /// The client does not take the data that it was sent. Ready once the response is to be ended; else wakes the task when
    /// it is to poll again.
    fn poll_stalled(&self, cx: &mut Context<'_>) -> Poll<()>;

    /// The client has taken something after a stall.
    fn resumed(&self);
}

/// A response extension of responses that hold a connection. It is weak: the connection belongs to the body alone, and
/// closes when that is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Transfer(Weak<dyn StallObserver>);

impl Transfer {
    pub(crate) fn new<S: StallObserver + 'static>(observer: &Arc<S>) -> Self {
        let observer: Weak<S> = Arc::downgrade(observer);
        Self(observer)
    }

    /// See [`StallObserver::poll_stalled`].
    pub(crate) fn poll_stalled(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.upgrade().map_or(Poll::Pending, |observer| observer.poll_stalled(cx))
    }

    /// See [`StallObserver::resumed`].
    pub(crate) fn resumed(&self) {
        if let Some(observer) = self.0.upgrade() {
            observer.resumed();
        }
    }
}
