//! The ledgers of all buckets, bounded in number: the least recently used one goes first.
//!
//! Clients choose how many networks there are, so their ledgers are apart from those of crawlers: a flood of addresses makes a process
//! forget other addresses, never what a crawler has left.

use std::collections::{BTreeMap, HashMap};

use parking_lot::{Mutex, MutexGuard};

use super::bucket::{BucketOwner, SharedBucket, SharedKey, StoreAnswer, StoreQuestion};
use super::ledger::{BucketLedger, LedgerStep};

/// Each with a lock, held for a few operations.
const SHARDS: usize = 16;

/// Ledgers of crawlers in each shard, 16,384 in all, and of networks, 49,152: about 15 MB together.
const MOST_CRAWLERS: usize = 1024;
const MOST_NETWORKS: usize = 3072;

/// The ledgers by key.
#[derive(Debug)]
pub(super) struct BucketLedgers {
    crawlers: [Mutex<LedgerShard>; SHARDS],
    networks: [Mutex<LedgerShard>; SHARDS],
}

/// Ledgers in the order in which they were used.
#[derive(Debug)]
struct LedgerShard {
    ledgers: HashMap<SharedKey, UsedLedger>,
    /// By `UsedLedger::used`.
    order: BTreeMap<u64, SharedKey>,
    uses: u64,
    most: usize,
}

#[derive(Debug)]
struct UsedLedger {
    ledger: BucketLedger,
    used: u64,
}

/// A batch, for the bucket of a key.
pub(super) type KeyReport = (SharedKey, StoreQuestion);

impl BucketLedgers {
    /// A request. If another ledger has to go for it, the requests that that one has not reported are reported to the store.
    pub(super) fn request(
        &self,
        key: SharedKey,
        now: i64,
        bucket: SharedBucket,
        batch: u32,
    ) -> (LedgerStep, Option<KeyReport>) {
        let mut shard = self.shard(key);
        let evicted = shard.make_room(key, now, batch);
        (shard.used(key, now, bucket).request(now, bucket, batch), evicted)
    }

    pub(super) fn answered(&self, key: SharedKey, asked: i64, answer: StoreAnswer) {
        if let Some(held) = self.shard(key).ledgers.get_mut(&key) {
            held.ledger.answered(asked, answer);
        }
    }

    /// Requests that were not reported to the store for long, of so many buckets at `most`; those of crawlers first. The rest stays for
    /// the next call. Forgets buckets that are full.
    pub(super) fn overdue(&self, now: i64, batch: u32, most: usize) -> Vec<KeyReport> {
        let mut overdue = Vec::new();
        for shard in self.crawlers.iter().chain(&self.networks) {
            let LedgerShard { ledgers, order, .. } = &mut *shard.lock();
            ledgers.retain(|key, held| {
                if overdue.len() < most {
                    overdue.extend(held.ledger.overdue(now, batch).map(|question| (*key, question)));
                }
                let is_kept = !held.ledger.is_idle(now);
                if !is_kept {
                    order.remove(&held.used);
                }
                is_kept
            });
        }
        overdue
    }

    fn shard(&self, key: SharedKey) -> MutexGuard<'_, LedgerShard> {
        let shards = match key.owner {
            BucketOwner::Crawler => &self.crawlers,
            BucketOwner::Network => &self.networks,
        };
        shards[key.shard(SHARDS)].lock()
    }
}

impl Default for BucketLedgers {
    fn default() -> Self {
        let shards = |most| std::array::from_fn(|_| Mutex::new(LedgerShard::new(most)));
        Self { crawlers: shards(MOST_CRAWLERS), networks: shards(MOST_NETWORKS) }
    }
}

impl LedgerShard {
    fn new(most: usize) -> Self {
        Self { ledgers: HashMap::new(), order: BTreeMap::new(), uses: 0, most }
    }

    /// Forgets the least recently used ledger where there is no room for one more. Returns what it has not reported.
    fn make_room(&mut self, key: SharedKey, now: i64, batch: u32) -> Option<KeyReport> {
        if self.ledgers.len() < self.most || self.ledgers.contains_key(&key) {
            return None;
        }
        let (_, evicted) = self.order.pop_first()?;
        let mut held = self.ledgers.remove(&evicted)?;
        Some((evicted, held.ledger.unreported(now, batch)?))
    }

    fn used(&mut self, key: SharedKey, now: i64, bucket: SharedBucket) -> &mut BucketLedger {
        self.uses += 1;
        let used = self.uses;
        let held =
            self.ledgers.entry(key).or_insert_with(|| UsedLedger { ledger: BucketLedger::new(now, bucket), used });
        self.order.remove(&held.used);
        self.order.insert(used, key);
        held.used = used;
        &mut held.ledger
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::shared_rate::bucket::QuestionKind;

    const BATCH: u32 = 10;

    fn bucket() -> SharedBucket {
        SharedBucket::new(Duration::from_millis(100), 50)
    }

    fn crawler(name: &str) -> SharedKey {
        SharedKey::new(BucketOwner::Crawler, &[name.as_bytes()])
    }

    fn network(number: u32) -> SharedKey {
        SharedKey::new(BucketOwner::Network, &[&number.to_le_bytes()])
    }

    fn count(ledgers: &BucketLedgers) -> usize {
        let count = |shards: &[Mutex<LedgerShard>]| {
            let counts = shards.iter().map(|shard| {
                let shard = shard.lock();
                assert_eq!(shard.ledgers.len(), shard.order.len());
                shard.ledgers.len()
            });
            counts.sum::<usize>()
        };
        count(&ledgers.crawlers) + count(&ledgers.networks)
    }

    /// A crawler that is busy, whose last request was not reported.
    fn busy(ledgers: &BucketLedgers, key: SharedKey) {
        for now in 0..11 {
            let (step, _) = ledgers.request(key, now, bucket(), BATCH);
            if now < 10 {
                assert!(matches!(step, LedgerStep::Ask(_)), "{step:?}");
            } else {
                assert_eq!(step, LedgerStep::Allow);
            }
        }
    }

    #[test]
    fn a_flood_of_networks_is_bounded_and_takes_nothing_from_a_crawler() {
        let ledgers = BucketLedgers::default();
        busy(&ledgers, crawler("verified"));
        for number in 0..150_000 {
            ledgers.request(network(number), 20, bucket(), BATCH);
        }
        assert_eq!(count(&ledgers), 1 + SHARDS * MOST_NETWORKS);
        // It still need not ask.
        assert_eq!(ledgers.request(crawler("verified"), 30, bucket(), BATCH), (LedgerStep::Allow, None));
        // Full buckets are forgotten.
        assert_eq!(ledgers.overdue(60_000_000, BATCH, 256).len(), 1);
        assert_eq!(count(&ledgers), 0);
    }

    #[test]
    fn what_is_overdue_is_reported_a_part_at_a_time_and_none_is_lost() {
        let ledgers = BucketLedgers::default();
        for key in [network(1), crawler("one"), network(2), crawler("other")] {
            busy(&ledgers, key);
        }
        let reported =
            || -> Vec<_> { ledgers.overdue(60_000_000, BATCH, 2).into_iter().map(|(key, _)| key.owner).collect() };
        assert_eq!(reported(), [BucketOwner::Crawler, BucketOwner::Crawler]);
        assert_eq!(reported(), [BucketOwner::Network, BucketOwner::Network]);
        assert_eq!(reported(), []);
    }

    #[test]
    fn the_least_recently_used_goes_first_and_one_at_a_time() {
        let ledgers = BucketLedgers::default();
        busy(&ledgers, network(0));
        busy(&ledgers, network(1));
        let mut reports = Vec::new();
        for number in 2..100_000 {
            let (_, evicted) = ledgers.request(network(number), 20, bucket(), BATCH);
            reports.extend(evicted);
            if number % 500 == 0 {
                ledgers.request(network(1), 20, bucket(), BATCH);
            }
        }
        assert!(ledgers.shard(network(1)).ledgers.contains_key(&network(1)));
        assert!(!ledgers.shard(network(0)).ledgers.contains_key(&network(0)));
        // The requests that the evicted one had not reported are not lost.
        let [(key, report)] = &reports[..] else { panic!("{reports:?}") };
        assert_eq!((*key, report.kind, report.count), (network(0), QuestionKind::Report, 1));
        assert_eq!(count(&ledgers), SHARDS * MOST_NETWORKS);
    }

    #[test]
    fn crawlers_are_bounded_too() {
        let ledgers = BucketLedgers::default();
        for number in 0..40_000 {
            ledgers.request(crawler(&format!("{number}")), 0, bucket(), BATCH);
        }
        assert_eq!(count(&ledgers), SHARDS * MOST_CRAWLERS);
    }
}
