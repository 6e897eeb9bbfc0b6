//! Limits how long a client may leave its response unread, and reports stalled clients to the
//! upstream side.
//!
//! If a write has to wait, the wait is reported to the [`Transfer`] of the response, and the write
//! fails after `body_idle`. The response body itself cannot detect a waiting write, because the
//! body is polled only when the client can receive more data. When the upstream side learns of a
//! stall, it may read ahead, or end the response because another request needs the connection.
//!
//! The timer is created when a write has to wait for the first time, because most small bodies are
//! written without waiting.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// Limits the time that writes to a client may wait. Each [`reset`](Self::reset) restarts the time.
#[derive(Debug)]
pub(crate) struct IdleTimeout {
    limit: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    /// Whether a write has had to wait since the last reset.
    pub(crate) is_waiting: bool,
}

impl IdleTimeout {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, timer: None, is_waiting: false }
    }

    /// Records progress, so that the next wait may take the full time again.
    pub(crate) fn reset(&mut self) {
        self.is_waiting = false;
    }

    /// Records that a write has to wait. Completes when this wait has reached the limit.
    pub(crate) fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.limit)));
        if !self.is_waiting {
            self.is_waiting = true;
            timer.as_mut().reset(Instant::now() + self.limit);
        }
        timer.as_mut().poll(cx)
    }

    /// Records that the client has received bytes. Returns whether a write had to wait before. If a
    /// write had to wait, reports the end of the stall to the `Transfer` that `transfer` returns.
    pub(crate) fn progressed(&mut self, transfer: impl FnOnce() -> Option<Transfer>) -> bool {
        let has_waited = self.is_waiting;
        if has_waited && let Some(transfer) = transfer() {
            transfer.resumed();
        }
        self.reset();
        has_waited
    }

    /// Records that a write has to wait. Completes when this wait has reached the limit, or if
    /// another request needs the upstream connection.
    pub(crate) fn poll_stalled(&mut self, transfer: Option<&Transfer>, cx: &mut Context<'_>) -> Poll<()> {
        let is_revoked = transfer.is_some_and(|transfer| transfer.poll_stalled(cx).is_ready());
        if is_revoked { Poll::Ready(()) } else { self.poll_expired(cx) }
    }
}

pub(crate) fn client_does_not_read() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the client does not read its response")
}

/// Completes when the deadline that `due` returns has passed. `due` is called again whenever the
/// timer fires, because the deadline may have changed.
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

pub(crate) trait StallObserver: Send + Sync {
    /// Records that the client does not read its response. Completes if the response must end now.
    /// If the response need not end yet, wakes the task when this method must be called again.
    fn poll_stalled(&self, cx: &mut Context<'_>) -> Poll<()>;

    /// Records that the client has received bytes after a stall.
    fn resumed(&self);
}

/// The upstream side of a response, stored in the response's extensions. The reference is weak,
/// because dropping the body must close the upstream connection.
#[derive(Clone, Debug)]
pub(crate) struct Transfer(Weak<dyn StallObserver>);

impl Transfer {
    pub(crate) fn new<S: StallObserver + 'static>(observer: &Arc<S>) -> Self {
        let observer: Weak<S> = Arc::downgrade(observer);
        Self(observer)
    }

    pub(crate) fn poll_stalled(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.upgrade().map_or(Poll::Pending, |observer| observer.poll_stalled(cx))
    }

    pub(crate) fn resumed(&self) {
        if let Some(observer) = self.0.upgrade() {
            observer.resumed();
        }
    }
}
