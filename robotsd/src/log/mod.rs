//! The log: one line an event, written by a thread of its own. [`access`] is the log of requests.
//!
//! Every field from a request is escaped, so that one event is one line whatever a client sends.

mod access;
mod entry;
mod event;
mod privacy;
mod queue;

pub(crate) use self::access::{AccessLog, LostLines};
pub(crate) use self::entry::LogEntry;
pub(crate) use self::event::{LogEvent, LogLevel};
pub(crate) use self::privacy::LogPrivacy;

use std::io::Write as _;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use self::queue::{Queue, Taken};
use crate::config::LogFormat;

/// Writes events. Cheap to clone; the thread ends with the last clone.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    format: LogFormat,
    queue: Arc<OpenQueue>,
}

/// A queue that is closed when the last writer is dropped.
#[derive(Debug)]
struct OpenQueue(Arc<Queue>);

impl Log {
    pub(crate) fn start(format: LogFormat) -> Self {
        let queue = Arc::new(Queue::default());
        let taken_from = Arc::clone(&queue);
        std::thread::spawn(move || write_all(format, &taken_from));
        Self { format, queue: Arc::new(OpenQueue(queue)) }
    }

    /// A log without output: its queue fills, and further lines are dropped.
    pub(crate) fn nowhere() -> Self {
        Self { format: LogFormat::default(), queue: Arc::new(OpenQueue(Arc::default())) }
    }

    pub(crate) fn write(&self, entry: &LogEntry<'_>) {
        self.queue.0.push(&entry.to_line(self.format));
    }

    /// Writes an event that is only a message, at its usual level.
    pub(crate) fn say(&self, event: LogEvent, message: impl Into<String>) {
        self.say_at(event.level(), event, message);
    }

    /// Writes an event that matters more, or less, than it usually does.
    pub(crate) fn say_at(&self, level: LogLevel, event: LogEvent, message: impl Into<String>) {
        self.write(&LogEntry { level, message: Some(message.into()), ..LogEntry::now(event) });
    }

    /// How many lines were dropped so far, because the log is slower than the events.
    pub(crate) fn dropped(&self) -> u64 {
        self.queue.0.dropped()
    }

    /// Waits until everything written so far is out, but not for a reader that has stopped reading.
    pub(crate) fn flush(&self) {
        let (done, wait) = sync_channel(1);
        self.queue.0.flush(done);
        let _ = wait.recv_timeout(Duration::from_secs(1));
    }
}

impl Drop for OpenQueue {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Writes until the queue is closed, everything that came within a pause at once.
fn write_all(format: LogFormat, queue: &Queue) {
    let mut block = String::new();
    while let Some(Taken { lost, flushes }) = queue.take(&mut block) {
        if lost > 0 {
            let entry = LogEntry {
                message: Some(format!("{lost} lines were not written: the log is slower than the events")),
                ..LogEntry::now(LogEvent::LogOverflow)
            };
            block.push_str(&entry.to_line(format));
        }
        let mut out = std::io::stdout().lock();
        // A closed standard output is no reason to stop serving.
        let _ = out.write_all(block.as_bytes()).and_then(|()| out.flush());
        drop(out);
        block.clear();
        for done in flushes {
            let _ = done.send(());
        }
        queue.pause();
    }
}
