//! A response that holds a connection to an upstream, as seen by the writers that send it to the client.
//!
//! A body is polled for data only when the client can take it, so it cannot see that a client does not read. The writers
//! can: they report each stall here, and the upstream side may then read on without the client, or end the response
//! because its connection is needed elsewhere. The report is made only when a write has to wait; a client that reads costs
//! nothing.

use std::fmt;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

/// The upstream side of a response that holds a connection.
pub(crate) trait StallObserver: Send + Sync {
    /// The client does not take the data that it was sent. Ready once the response is to be ended; else wakes the task when
    /// it is to poll again.
    fn poll_stalled(&self, cx: &mut Context<'_>) -> Poll<()>;

    /// The client has taken something after a stall.
    fn resumed(&self);
}

/// A response extension of responses that hold a connection.
// Weak: the connection belongs to the body alone, and closes when that is dropped.
#[derive(Clone)]
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

impl fmt::Debug for Transfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transfer")
    }
}
