//! What was noted lately, without a lock.

use std::sync::atomic::{AtomicU64, Ordering};

/// Marks that are remembered: a power of two.
const SLOTS: usize = 8_192;

/// Remembers hashes of what was noted, so that what comes again and again is noted once.
///
/// A mark is forgotten when another one takes its slot; then the same is noted again. Two marks that are equal for different
/// things have one of them not noted: only what may be missed is kept track of here.
#[derive(Debug)]
pub(super) struct RecentMarks(Box<[AtomicU64]>);

impl Default for RecentMarks {
    fn default() -> Self {
        Self(std::iter::repeat_with(AtomicU64::default).take(SLOTS).collect())
    }
}

impl RecentMarks {
    /// Whether a mark is new, which it is not from here on.
    pub(super) fn is_new(&self, mark: u64) -> bool {
        // The upper bits choose the slot. No mark is 0, which stands for none.
        let (mark, at) = (mark | 1, (mark >> 51) as usize % SLOTS);
        let Some(slot) = self.0.get(at) else { return true };
        // A load first: a line that no core writes is in the cache of every core.
        slot.load(Ordering::Relaxed) != mark && slot.swap(mark, Ordering::Relaxed) != mark
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_new_once_and_again_after_another_in_its_slot() {
        let marks = RecentMarks::default();
        for mark in [0, 7 << 51, u64::MAX, 9 << 51 | 2] {
            assert_eq!((marks.is_new(mark), marks.is_new(mark)), (true, false), "{mark}");
        }
        assert_eq!((marks.is_new(7 << 51 | 4), marks.is_new(7 << 51)), (true, true));
    }
}
