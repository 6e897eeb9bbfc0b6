//! Targets that are due, by file system.
//!
//! At most [`MOST_WORKERS`] work on one file system at a time: one that hangs holds up no target of another.

use std::collections::{BTreeMap, VecDeque};

use super::routes::WatchId;
use crate::source::file_system::FileSystemId;

/// Workers at a time for each file system.
pub(super) const MOST_WORKERS: usize = 4;

#[derive(Debug, Default)]
pub(super) struct ReadyTargets {
    systems: BTreeMap<FileSystemId, ReadyOfSystem>,
}

#[derive(Debug, Default)]
struct ReadyOfSystem {
    due: VecDeque<WatchId>,
    running: usize,
}

impl ReadyTargets {
    pub(super) fn push(&mut self, system: FileSystemId, id: WatchId) {
        self.systems.entry(system).or_default().due.push_back(id);
    }

    /// The next target that a worker may take; [`ReadyTargets::finish`] has to follow.
    pub(super) fn pop(&mut self) -> Option<(FileSystemId, WatchId)> {
        let mut free = self.systems.iter_mut().filter(|(_, ready)| ready.running < MOST_WORKERS);
        free.find_map(|(system, ready)| {
            let id = ready.due.pop_front()?;
            ready.running += 1;
            Some((*system, id))
        })
    }

    pub(super) fn finish(&mut self, system: FileSystemId) {
        if let Some(ready) = self.systems.get_mut(&system) {
            ready.running = ready.running.saturating_sub(1);
            if ready.running == 0 && ready.due.is_empty() {
                self.systems.remove(&system);
            }
        }
    }

    /// How many workers there is work for, those at work included.
    pub(super) fn workers(&self) -> usize {
        self.systems.values().map(|ready| (ready.running + ready.due.len()).min(MOST_WORKERS)).sum()
    }

    /// Whether a worker could take a target now.
    pub(super) fn has_some(&self) -> bool {
        self.systems.values().any(|ready| ready.running < MOST_WORKERS && !ready.due.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_that_hangs_takes_no_more_than_its_own_workers() {
        let mut ready = ReadyTargets::default();
        (0..10).for_each(|id| ready.push(1, id));
        for id in 0..4 {
            assert_eq!(ready.pop(), Some((1, id)));
        }
        assert_eq!(ready.pop(), None, "four are at work there");
        assert!(!ready.has_some());
        ready.push(2, 100);
        assert_eq!(ready.workers(), 5);
        assert_eq!(ready.pop(), Some((2, 100)));
        ready.finish(2);
        assert_eq!(ready.workers(), 4);
        ready.finish(1);
        assert_eq!(ready.pop(), Some((1, 4)), "one has come back");
    }
}
