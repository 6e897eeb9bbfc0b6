//! The steps of a schedule, and the messages that they put on their way.

use super::super::super::document::{Document, WriteCall};

#[derive(Clone, Debug)]
pub(super) enum Step {
    /// An operator turns a scope off at one replica; with `direct` the others are called too.
    Off {
        at: usize,
        mark: u8,
        direct: bool,
    },
    /// An operator lifts each mark that one replica has.
    On {
        at: usize,
        direct: bool,
    },
    Accept {
        at: usize,
        site: usize,
    },
    /// A person has the entries of a replica written into the store.
    Restore {
        at: usize,
    },
    /// A person has the fields mended that cannot be read.
    Repair {
        at: usize,
    },
    /// A field of the document is damaged.
    Damage(usize),
    /// Hooks of a replica ask about notices, without a pause, for some milliseconds.
    Notices {
        at: usize,
        time: u64,
    },
    /// Some milliseconds pass: replicas read when it is time.
    Pass(u64),
    /// A replica reads the store, and writes back what is lost.
    Read {
        at: usize,
    },
    /// The same, and the document is on its way.
    Ask {
        at: usize,
    },
    /// One that is on its way arrives.
    Deliver(usize),
    Lose(usize),
    Double(usize),
    /// The store has nothing any more, or an earlier state.
    Wipe,
    GoBack(usize),
    /// Somebody makes another document in its place.
    Replace,
    /// The disk of a replica takes no writes, or takes them again.
    Disk {
        at: usize,
        works: bool,
    },
    /// A replica ends and begins again.
    Restart {
        at: usize,
        with_disk: bool,
    },
    /// Somebody looks which replicas are synced.
    Status,
    /// Each replica reads until nothing is left to be written back.
    Settle,
}

/// What is on its way.
#[derive(Clone, Debug)]
pub(super) enum Message {
    Document { to: usize, read: Option<Document> },
    Write(WriteCall),
    Off { to: usize, mark: u8 },
    On { to: usize, mark: u8 },
}
