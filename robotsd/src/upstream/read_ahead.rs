//! Reads responses faster than their clients do, so that a client that does not read does not
//! occupy an upstream connection.
//!
//! A response is read ahead only if its client has stalled. All responses that are read ahead share
//! one budget. When the budget is used up, other responses stay at their upstreams until their
//! clients read.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use bytes::{Bytes, BytesMut};

use super::endpoint::UpstreamLimits;

#[derive(Debug, Default)]
pub(super) struct BufferBudget {
    pub(super) used: AtomicUsize,
}

#[derive(Debug)]
pub(super) struct ReadAhead {
    pub(super) bytes: BytesMut,
    /// Number of bytes that this response has taken from the shared budget.
    taken: usize,
    most: usize,
    total: usize,
    buffers: Arc<BufferBudget>,
}

/// Maximum size of a piece for the client, in bytes. Pieces are small, so that the HTTP library
/// buffers only little data.
const PIECE: usize = 16 * 1024;

impl BufferBudget {
    /// Returns the budget of the process. The budget is static, so that it also limits responses
    /// that began before a configuration reload.
    pub(super) fn of_process() -> Arc<Self> {
        static BUFFERS: LazyLock<Arc<BufferBudget>> = LazyLock::new(Arc::default);
        Arc::clone(&BUFFERS)
    }
}

impl ReadAhead {
    pub(super) fn new(limits: &UpstreamLimits, buffers: &Arc<BufferBudget>) -> Self {
        let (most, total) = (limits.buffer, limits.buffer_total);
        Self { bytes: BytesMut::new(), taken: 0, most, total, buffers: Arc::clone(buffers) }
    }

    /// Reports whether more bytes may be read. If the number of remaining bytes is known, takes
    /// this number from the budget immediately. If it is unknown, the budget may be exceeded
    /// slightly.
    pub(super) fn has_room(&mut self, left: Option<u64>) -> bool {
        let Some(left) = left else {
            return self.bytes.len() < self.most && self.buffers.used.load(Ordering::Relaxed) < self.total;
        };
        let Some(whole) = usize::try_from(left).ok().and_then(|left| left.checked_add(self.bytes.len())) else {
            return false;
        };
        if whole > self.most {
            return false;
        }
        let more = whole.saturating_sub(self.taken);
        let fits = |used: usize| used.checked_add(more).filter(|used| *used <= self.total);
        if more > 0 && self.buffers.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_err() {
            return false;
        }
        self.taken += more;
        if self.bytes.capacity() < whole {
            self.bytes.reserve(whole - self.bytes.len());
        }
        true
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // A response of unknown length is read in steps, and the last step may exceed the budget.
        let more = self.bytes.len().saturating_sub(self.taken);
        self.buffers.used.fetch_add(more, Ordering::Relaxed);
        self.taken += more;
    }

    pub(super) fn take(&mut self) -> Bytes {
        let piece = self.bytes.split_to(self.bytes.len().min(PIECE)).freeze();
        if self.bytes.is_empty() {
            self.release();
        }
        piece
    }

    fn release(&mut self) {
        self.bytes = BytesMut::new();
        self.buffers.used.fetch_sub(self.taken, Ordering::Relaxed);
        self.taken = 0;
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ahead(buffers: &Arc<BufferBudget>) -> ReadAhead {
        let limits = UpstreamLimits { buffer: 100, buffer_total: 150, ..UpstreamLimits::default() };
        ReadAhead::new(&limits, buffers)
    }

    fn used(buffers: &BufferBudget) -> usize {
        buffers.used.load(Ordering::Relaxed)
    }

    #[test]
    fn the_total_buffer_budget_is_shared_and_given_back() {
        let buffers = Arc::default();
        let (mut a, mut b) = (ahead(&buffers), ahead(&buffers));
        assert!(!a.has_room(Some(101)));
        assert!(a.has_room(Some(100)));
        assert!(!b.has_room(Some(51)));
        assert!(b.has_room(Some(50)));
        assert_eq!(used(&buffers), 150);
        a.push(&[0; 40]);
        // `a` has already taken the remaining bytes from the budget.
        assert!(a.has_room(Some(60)));
        a.push(&[0; 60]);
        assert_eq!((a.take().len(), used(&buffers)), (100, 50));
        drop(b);
        assert_eq!(used(&buffers), 0);
    }

    #[test]
    fn a_body_of_unknown_length_is_read_ahead_up_to_the_limit() {
        let buffers = Arc::default();
        let (mut a, mut b) = (ahead(&buffers), ahead(&buffers));
        assert!(a.has_room(None));
        a.push(&[0; 120]);
        assert!(!a.has_room(None));
        assert!(b.has_room(None));
        b.push(&[0; 70]);
        assert!(!b.has_room(None));
        assert!(!ahead(&buffers).has_room(None));
        assert!(!ahead(&buffers).has_room(Some(1)));
        drop((a, b));
        assert_eq!(used(&buffers), 0);
    }

    #[test]
    fn nothing_is_read_ahead_if_buffering_is_off() {
        for (buffer, buffer_total) in [(0, 150), (100, 0)] {
            let limits = UpstreamLimits { buffer, buffer_total, ..UpstreamLimits::default() };
            let mut off = ReadAhead::new(&limits, &Arc::default());
            assert!(!off.has_room(None) && !off.has_room(Some(1)));
        }
    }
}
