//! The steps of a schedule, and the messages that they send.

use super::super::super::document::{Document, WriteCall};

#[derive(Clone, Debug)]
pub(super) enum Step {
    /// An operator turns a scope off at one replica. With `direct`, the other replicas are called,
    /// too.
    Off {
        at: usize,
        mark: u8,
        direct: bool,
    },
    /// An operator lifts all off switches of one replica.
    On {
        at: usize,
        direct: bool,
    },
    Accept {
        at: usize,
        site: usize,
    },
    /// An operator restores the entries of a replica into the store.
    Restore {
        at: usize,
    },
    /// An operator repairs the fields that cannot be read.
    Repair {
        at: usize,
    },
    /// A field of the document is damaged.
    Damage(usize),
    /// Hooks of a replica send requests about notices for some milliseconds, without a pause.
    Notices {
        at: usize,
        time: u64,
    },
    /// Some milliseconds pass, and replicas read when it is time.
    Pass(u64),
    /// A replica reads the store, and writes back what is lost.
    Read {
        at: usize,
    },
    /// A replica reads the store, and the document is delivered later.
    Ask {
        at: usize,
    },
    /// A message is delivered.
    Deliver(usize),
    Lose(usize),
    Double(usize),
    /// The store loses everything, or goes back to an earlier state.
    Wipe,
    GoBack(usize),
    /// Somebody replaces the document with another one.
    Replace,
    /// The disk of a replica stops or resumes accepting writes.
    Disk {
        at: usize,
        works: bool,
    },
    /// A replica restarts.
    Restart {
        at: usize,
        with_disk: bool,
    },
    /// Somebody checks which replicas are synced.
    Status,
    /// Each replica reads until nothing is left to be written back.
    Settle,
}

/// A message that has not arrived yet.
#[derive(Clone, Debug)]
pub(super) enum Message {
    Document { to: usize, read: Option<Document> },
    Write(WriteCall),
    Off { to: usize, mark: u8 },
    On { to: usize, mark: u8 },
}
