//! The activity of an HTTP/2 connection. The socket records this activity. The code that keeps,
//! shares or closes the connection reads the records.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::SetOnce;
use tokio::time::{Instant, sleep_until};

use crate::http_common::frames::Frame;

#[derive(Debug)]
pub(super) struct ConnectionActivity {
    opened: Instant,
    /// Time when the server last sent something, in milliseconds since `opened`.
    received_at: AtomicU64,
    /// Number of RST_STREAM frames sent to the server.
    resets: AtomicUsize,
    /// Number of DATA and HEADERS frames from the server.
    content: AtomicUsize,
    /// Number of empty DATA frames from the server.
    empty: AtomicUsize,
    /// Set when the server's SETTINGS have been applied, so that the server's stream limit is
    /// known. Also set when the connection ends, so that nobody waits any longer.
    pub(super) settled: SetOnce<()>,
}

impl ConnectionActivity {
    pub(super) fn new(opened: Instant) -> Self {
        let (received_at, resets, content, empty, settled) = Default::default();
        Self { opened, received_at, resets, content, empty, settled }
    }

    pub(super) fn received_at(&self) -> Instant {
        self.opened + Duration::from_millis(self.received_at.load(Ordering::Relaxed))
    }

    pub(super) async fn quiet(&self, time: Duration) {
        loop {
            let due = self.received_at() + time;
            if due <= Instant::now() {
                return;
            }
            sleep_until(due).await;
        }
    }

    pub(super) fn resets(&self) -> usize {
        self.resets.load(Ordering::Relaxed)
    }

    pub(super) fn content(&self) -> usize {
        self.content.load(Ordering::Relaxed)
    }

    pub(super) fn empty(&self) -> usize {
        self.empty.load(Ordering::Relaxed)
    }

    pub(super) fn note_received(&self, frame: Frame) {
        if frame.is_content() {
            self.content.fetch_add(1, Ordering::Relaxed);
        }
        if frame.is_empty_data() {
            self.empty.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn note_bytes(&self) {
        self.received_at.store(self.opened.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    pub(super) fn note_sent(&self, frame: Frame) {
        if frame.is_reset() {
            self.resets.fetch_add(1, Ordering::Relaxed);
        }
        // h2 acknowledges SETTINGS only after it has applied them.
        if frame.is_settings_ack() {
            let _ = self.settled.set(());
        }
    }
}
