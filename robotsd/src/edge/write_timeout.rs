//! The deadline for a client that does not read.
//!
//! The one mechanism for every writer: the fast path, the socket below the HTTP libraries and the streams of HTTP/2. A write that has
//! to wait is reported to the response's [`Transfer`], so that its upstream connection can be used without the client or
//! taken away, and expires after `body_idle`.

use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::edge::idle_timeout::IdleTimeout;
use crate::edge::transfer::Transfer;

#[derive(Debug)]
pub(crate) struct WriteTimeout(IdleTimeout);

impl WriteTimeout {
    pub(crate) fn new(limit: Duration) -> Self {
        Self(IdleTimeout::new(limit))
    }

    /// Whether a write has had to wait since the client last took something.
    pub(crate) fn is_waiting(&self) -> bool {
        self.0.is_waiting()
    }

    /// The client has taken something. Returns whether it had to be waited for; `transfer` is only called then.
    pub(crate) fn progressed(&mut self, transfer: impl FnOnce() -> Option<Transfer>) -> bool {
        let has_waited = self.0.is_waiting();
        if has_waited && let Some(transfer) = transfer() {
            transfer.resumed();
        }
        self.0.reset();
        has_waited
    }

    /// A write has to wait. Ready once that has lasted too long, or once the upstream connection is needed elsewhere.
    pub(crate) fn poll_stalled(&mut self, transfer: Option<&Transfer>, cx: &mut Context<'_>) -> Poll<()> {
        let is_revoked = transfer.is_some_and(|transfer| transfer.poll_stalled(cx).is_ready());
        if is_revoked { Poll::Ready(()) } else { self.0.poll_expired(cx) }
    }

    /// The error of a write that has waited too long.
    pub(crate) fn error() -> io::Error {
        io::Error::new(io::ErrorKind::TimedOut, "the client does not read from its connection")
    }
}
