//! An answer that holds a connection to an upstream, as seen by those who write it to the client.
//!
//! A body is asked for data only when the client can take it, so it cannot see that a client does not read. The writers
//! can: they report each stall here, where what stands behind the edge may read on without the client, or end the answer
//! because its connection is needed elsewhere. The report is made only when a write has to wait; a client that reads costs
//! nothing.

use std::fmt;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

/// What stands behind an answer that holds a connection.
pub(crate) trait StallObserver: Send + Sync {
    /// The client does not take what it was handed. Ready once the answer is to be ended; else the task is woken for what
    /// is left to do.
    fn poll_stalled(&self, cx: &mut Context<'_>) -> Poll<()>;

    /// The client has taken something after a stall.
    fn moved(&self);
}

/// A response extension of answers that hold a connection.
// Weak: the connection belongs to the body alone, and is closed when that is dropped.
#[derive(Clone)]
pub(crate) struct Transfer(Weak<dyn StallObserver>);

impl Transfer {
    pub(crate) fn new<S: StallObserver + 'static>(behind: &Arc<S>) -> Self {
        let behind: Weak<S> = Arc::downgrade(behind);
        Self(behind)
    }

    /// See [`StallObserver::poll_stalled`].
    pub(crate) fn poll_stalled(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.upgrade().map_or(Poll::Pending, |behind| behind.poll_stalled(cx))
    }

    /// See [`StallObserver::moved`].
    pub(crate) fn moved(&self) {
        if let Some(behind) = self.0.upgrade() {
            behind.moved();
        }
    }
}

impl fmt::Debug for Transfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transfer")
    }
}
