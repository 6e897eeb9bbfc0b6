//! How far a client is behind with the responses of a connection.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::edge::transfer::Transfer;

/// What the client has not taken yet. The HTTP libraries count a response as finished once they have the whole body; here it is finished
/// once the socket or the stream has taken it.
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    unsent: AtomicU64,
    /// The upstream connection that the current response of HTTP/1.1 holds.
    transfer: Mutex<Option<Transfer>>,
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
        self.transfer.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_transfer(&self, transfer: Option<Transfer>) {
        *self.transfer.lock().unwrap_or_else(PoisonError::into_inner) = transfer;
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
