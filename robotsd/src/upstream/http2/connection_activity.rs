//! The activity of an HTTP/2 connection: its socket notes it, and the code that keeps, shares or gives up the connection asks.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::SetOnce;
use tokio::time::{Instant, sleep_until};

use crate::exchange::frames::Frame;

/// The activity of a connection.
#[derive(Debug)]
pub(super) struct ConnectionActivity {
    opened: Instant,
    /// When the server last sent something, in milliseconds since `opened`.
    received_at: AtomicU64,
    /// RST_STREAM frames to the server.
    resets: AtomicUsize,
    /// DATA and HEADERS frames from the server.
    content: AtomicUsize,
    /// DATA frames from the server without octets.
    empty: AtomicUsize,
    /// Set once it is known how many streams the server takes, because its SETTINGS are in force, or the connection has ended.
    pub(super) settled: SetOnce<()>,
}

impl ConnectionActivity {
    pub(super) fn new(opened: Instant) -> Self {
        let (received_at, resets, content, empty, settled) = Default::default();
        Self { opened, received_at, resets, content, empty, settled }
    }

    /// When the server last sent something.
    pub(super) fn received_at(&self) -> Instant {
        self.opened + Duration::from_millis(self.received_at.load(Ordering::Relaxed))
    }

    /// Ends once no octet has come for so long.
    pub(super) async fn quiet(&self, time: Duration) {
        loop {
            let due = self.received_at() + time;
            if due <= Instant::now() {
                return;
            }
            sleep_until(due).await;
        }
    }

    /// How many streams were reset, or frames refused after the reset of their stream was sent.
    pub(super) fn resets(&self) -> usize {
        self.resets.load(Ordering::Relaxed)
    }

    /// How many DATA and HEADERS frames came.
    pub(super) fn content(&self) -> usize {
        self.content.load(Ordering::Relaxed)
    }

    /// How many DATA frames without octets came.
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

    pub(super) fn note_octets(&self) {
        self.received_at.store(self.opened.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    pub(super) fn note_sent(&self, frame: Frame) {
        if frame.is_reset() {
            self.resets.fetch_add(1, Ordering::Relaxed);
        }
        // It is sent once they are applied.
        if frame.is_settings_ack() {
            let _ = self.settled.set(());
        }
    }
}
