//! Lines on their way to the thread that writes them.
//!
//! They wait behind one another in one text. A message of its own for each would be allocated by the thread that serves
//! and freed by the one that writes, which costs a request more than the line itself.

use std::sync::mpsc::SyncSender;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Lines that wait to be written; when there are so many a line is dropped and counted, so that a slow disk slows no
/// request.
const MOST: usize = 4096;

/// How long lines may wait for others to be written with: too short for a reader of the log to notice, and
/// too short for [`MOST`] of them to come at any rate a core can refuse at.
const PAUSE: Duration = Duration::from_millis(5);

/// Octets of room that are kept for the lines of the next pause.
const KEPT: usize = 512 * 1024;

#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Mutex<PendingLines>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct PendingLines {
    lines: String,
    count: usize,
    /// Lines that were dropped since lines were taken last.
    lost: u64,
    /// Lines that were dropped so far.
    dropped: u64,
    /// Notified once the waiting lines are written.
    flushes: Vec<SyncSender<()>>,
    /// Whether the thread that writes has to be woken.
    is_awaited: bool,
    is_closed: bool,
}

/// What there is besides lines.
pub(super) struct Taken {
    pub(super) lost: u64,
    pub(super) flushes: Vec<SyncSender<()>>,
}

impl Queue {
    /// Adds a line, unless there are too many.
    pub(super) fn push(&self, line: &str) {
        let mut waiting = self.waiting();
        if waiting.count == MOST {
            waiting.lost += 1;
            waiting.dropped += 1;
            return;
        }
        waiting.count += 1;
        waiting.lines.push_str(line);
        // Waking a thread costs more than the line; one that pauses finds all of them at once.
        let is_awaited = std::mem::take(&mut waiting.is_awaited);
        drop(waiting);
        if is_awaited {
            self.news.notify_one();
        }
    }

    /// How many lines were dropped so far.
    pub(super) fn dropped(&self) -> u64 {
        self.waiting().dropped
    }

    /// Notifies `done` once everything added so far is written.
    pub(super) fn flush(&self, done: SyncSender<()>) {
        self.waiting().flushes.push(done);
        self.news.notify_one();
    }

    /// Nothing more will be added.
    pub(super) fn close(&self) {
        self.waiting().is_closed = true;
        self.news.notify_one();
    }

    /// Waits until there is something and exchanges the lines for `block`, which is empty. None once the queue is
    /// closed and nothing is left.
    pub(super) fn take(&self, block: &mut String) -> Option<Taken> {
        block.shrink_to(KEPT);
        let mut waiting = self.waiting();
        while waiting.is_empty() {
            if waiting.is_closed {
                return None;
            }
            waiting.is_awaited = true;
            waiting = self.news.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        waiting.is_awaited = false;
        waiting.count = 0;
        std::mem::swap(&mut waiting.lines, block);
        Some(Taken { lost: std::mem::take(&mut waiting.lost), flushes: std::mem::take(&mut waiting.flushes) })
    }

    /// Waits for lines to gather, unless a flush waits for them.
    pub(super) fn pause(&self) {
        let is_quiet = |waiting: &mut PendingLines| waiting.flushes.is_empty() && !waiting.is_closed;
        drop(self.news.wait_timeout_while(self.waiting(), PAUSE, is_quiet));
    }

    fn waiting(&self) -> MutexGuard<'_, PendingLines> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingLines {
    fn is_empty(&self) -> bool {
        self.count == 0 && self.lost == 0 && self.flushes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_in_order_and_what_is_too_many_is_counted() {
        let queue = Queue::default();
        for line in 0..MOST + 3 {
            queue.push(&format!("{line}\n"));
        }
        let mut block = String::new();
        assert_eq!(queue.take(&mut block).map(|taken| taken.lost), Some(3));
        assert!(block.lines().map(str::to_owned).eq((0..MOST).map(|line| line.to_string())));
        block.clear();
        queue.push("last\n");
        queue.close();
        assert_eq!(queue.take(&mut block).map(|taken| taken.lost), Some(0));
        assert_eq!(queue.dropped(), 3);
        assert_eq!(block, "last\n");
        block.clear();
        assert!(queue.take(&mut block).is_none());
    }
}
