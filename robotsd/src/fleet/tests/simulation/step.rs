//! The steps of a schedule, and the messages that they send.

use super::super::super::document::{Document, WriteCall};

#[derive(Clone, Debug)]
pub(super) enum Step {
    /// An operator turns a scope off on one replica; with `direct`, also on the other replicas.
    Off {
        at: usize,
        mark: u8,
        direct: bool,
    },
    /// An operator lifts all off switches that the replica knows.
    On {
        at: usize,
        direct: bool,
    },
    Accept {
        at: usize,
        site: usize,
    },
    /// An operator lets a replica write its lost entries back to the store.
    Restore {
        at: usize,
    },
    /// An operator repairs the damaged fields.
    Repair {
        at: usize,
    },
    /// A field of the document is damaged.
    Damage(usize),
    /// Hooks of a replica ask about notices without a pause, for some milliseconds.
    Notices {
        at: usize,
        time: u64,
    },
    /// Some milliseconds pass, and replicas read when their timers are due.
    Pass(u64),
    /// A replica reads the store, and writes lost entries back.
    Read {
        at: usize,
    },
    /// A replica reads the store, but the document is delivered later.
    Ask {
        at: usize,
    },
    Deliver(usize),
    Lose(usize),
    Double(usize),
    /// The store loses everything, or is reset to an earlier state (`GoBack`).
    Wipe,
    GoBack(usize),
    /// The document is replaced with a new one that has another epoch.
    Replace,
    /// The disk of a replica becomes full, or accepts writes again.
    Disk {
        at: usize,
        works: bool,
    },
    Restart {
        at: usize,
        with_disk: bool,
    },
    /// An operator checks which replicas are synced.
    Status,
    /// Each replica reads until there is no lost entry left to write back.
    Settle,
}

/// A message that has not been delivered yet.
#[derive(Clone, Debug)]
pub(super) enum Message {
    Document { to: usize, read: Option<Document> },
    Write(WriteCall),
    Off { to: usize, mark: u8 },
    On { to: usize, mark: u8 },
}
