//! When addresses first claimed to be a crawler whose lists lack them.

use std::hash::BuildHasher;
use std::time::SystemTime;

use foldhash::fast::RandomState;

use super::generations::Generations;
use super::recent_marks::RecentMarks;
use crate::identity::PublicAddress;

/// Addresses that are remembered.
const MOST: usize = 65_536;

/// When addresses were first seen.
#[derive(Debug)]
pub(super) struct FirstSeen {
    times: Generations<PublicAddress, SystemTime>,
    noted: RecentMarks,
    hasher: RandomState,
}

impl Default for FirstSeen {
    fn default() -> Self {
        Self { times: Generations::new(MOST), noted: RecentMarks::default(), hasher: RandomState::default() }
    }
}

impl FirstSeen {
    /// When an address was first seen; `None` if that is now.
    pub(super) fn time(&self, address: PublicAddress, now: SystemTime) -> Option<SystemTime> {
        let known = self.times.get(&address);
        if known.is_none() {
            self.times.insert(address, now);
        }
        known
    }

    /// Remembers an address, and keeps one that comes again from being forgotten: once a minute, so that its other requests take
    /// no lock.
    pub(super) fn note(&self, address: PublicAddress, now: SystemTime) {
        let minute = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() / 60);
        if self.noted.is_new(self.hasher.hash_one((address, minute))) {
            let _ = self.time(address, now);
        }
    }
}
