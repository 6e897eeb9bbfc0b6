//! The ledgers of all buckets, bounded in number.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::bucket::{SharedBucket, SharedKey};
use super::ledger::{BucketLedger, LedgerStep};
use super::script::{StoreAnswer, StoreQuestion};

/// Each with a lock, held for a few operations.
const SHARDS: usize = 16;

/// Ledgers in each shard: 65,536 in all, about 10 MB.
const MOST: usize = 4096;

/// The ledgers by key.
#[derive(Debug, Default)]
pub(super) struct BucketLedgers {
    shards: [Mutex<HashMap<SharedKey, BucketLedger>>; SHARDS],
}

impl BucketLedgers {
    pub(super) fn request(&self, key: SharedKey, now: i64, bucket: SharedBucket, batch: u32) -> LedgerStep {
        let mut shard = self.shard(key);
        if shard.len() >= MOST && !shard.contains_key(&key) {
            shard.retain(|_, ledger| !ledger.is_idle(now));
            if shard.len() >= MOST {
                // A flood of addresses: what is forgotten is asked of the store.
                shard.clear();
            }
        }
        shard.entry(key).or_insert_with(|| BucketLedger::new(now, bucket)).request(now, bucket, batch)
    }

    pub(super) fn answered(&self, key: SharedKey, asked: i64, answer: StoreAnswer) {
        if let Some(ledger) = self.shard(key).get_mut(&key) {
            ledger.answered(asked, answer);
        }
    }

    /// What the store has not been told of for long. Forgets buckets that are full.
    pub(super) fn overdue(&self, now: i64, batch: u32) -> Vec<(SharedKey, StoreQuestion)> {
        let mut overdue = Vec::new();
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.retain(|key, ledger| {
                overdue.extend(ledger.overdue(now, batch).map(|question| (*key, question)));
                !ledger.is_idle(now)
            });
        }
        overdue
    }

    fn shard(&self, key: SharedKey) -> MutexGuard<'_, HashMap<SharedKey, BucketLedger>> {
        self.shards[key.shard(SHARDS)].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_flood_of_keys_is_bounded_and_idle_ones_are_forgotten() {
        let (ledgers, bucket) = (BucketLedgers::default(), SharedBucket::new(Duration::from_secs(1), 5));
        for number in 0..200_000u32 {
            ledgers.request(SharedKey::new(&[&number.to_le_bytes()]), 0, bucket, 10);
        }
        let count = || ledgers.shards.iter().map(|shard| shard.lock().unwrap().len()).sum::<usize>();
        assert!((1..=SHARDS * MOST).contains(&count()), "{}", count());
        assert!(ledgers.overdue(60_000_000, 10).is_empty());
        assert_eq!(count(), 0);
    }
}
