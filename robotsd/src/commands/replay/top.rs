//! The most frequent of many things, in bounded memory.

use std::collections::HashMap;
use std::hash::Hash;

/// Counts of which the frequent are kept (Misra and Gries): whatever makes up more than a `capacity`th of all is in it,
/// and no count is higher than the truth. Exact as long as no more than `capacity` things are seen.
#[derive(Clone, Debug)]
pub(super) struct Top<K> {
    capacity: usize,
    counts: HashMap<K, u64>,
}

impl<K: Eq + Hash + Ord + Clone> Top<K> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, counts: HashMap::new() }
    }

    /// Counts something; it is only made into a key where it is new.
    pub(super) fn add<Q: Eq + Hash + ToOwned<Owned = K> + ?Sized>(&mut self, what: &Q, times: u64)
    where
        K: std::borrow::Borrow<Q>,
    {
        if let Some(count) = self.counts.get_mut(what) {
            *count += times;
            return;
        }
        if self.counts.len() >= self.capacity {
            self.shrink();
        }
        self.counts.insert(what.to_owned(), times);
    }

    pub(super) fn merge(&mut self, other: Self) {
        for (what, times) in other.counts {
            *self.counts.entry(what).or_default() += times;
        }
        while self.counts.len() > self.capacity {
            self.shrink();
        }
    }

    /// The most frequent first.
    pub(super) fn sorted(&self, most: usize) -> Vec<(&K, u64)> {
        let mut all: Vec<_> = self.counts.iter().map(|(what, count)| (what, *count)).collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        all.truncate(most);
        all
    }

    /// Takes the median off every count, so that half of the things go: each costs as many others as it is long ago.
    fn shrink(&mut self) {
        let mut counts: Vec<u64> = self.counts.values().copied().collect();
        let middle = counts.len() / 2;
        let (_, median, _) = counts.select_nth_unstable(middle);
        let less = *median;
        self.counts.retain(|_, count| {
            *count = count.saturating_sub(less);
            *count > 0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frequent_survive_the_many() {
        let mut top: Top<String> = Top::new(100);
        for at in 0..100_000 {
            top.add("often", 1);
            top.add(format!("once {at}").as_str(), 1);
        }
        let first = top.sorted(1);
        assert_eq!(first[0].0, "often");
        assert!((80_000..=100_000).contains(&first[0].1), "{first:?}");
        assert!(top.counts.len() <= 100);
    }

    #[test]
    fn few_are_counted_exactly() {
        let mut top: Top<String> = Top::new(4);
        let mut other: Top<String> = Top::new(4);
        for (what, times) in [("a", 1), ("b", 3), ("a", 1)] {
            top.add(what, times);
            other.add(what, times);
        }
        top.merge(other);
        assert_eq!(top.sorted(9), [(&"b".to_owned(), 6), (&"a".to_owned(), 4)]);
    }
}
