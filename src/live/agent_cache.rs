//! A cache of agents, keyed by the whole `User-Agent` header that they were recognised from.
//!
//! A site sees the same few hundred headers again and again. Each version of the robots.txt has its
//! own cache, so no result outlives a reload. A lookup compares whole headers. If a lookup compared
//! only hashes, two headers with the same hash could cause a crawler's rules to be applied to a
//! browser.
//!
//! The hash of a header selects a slot of a table. A slot holds only the first and the latest
//! header that selected it, so clients cannot grow the cache beyond its limit. The first header is
//! never replaced, so a lookup can borrow its agents without updating a reference count. The latest
//! header may be replaced by another thread during a lookup, so the lookup holds a guard that keeps
//! this header in memory.
//!
//! Most sites see few headers. A cache therefore starts small and grows when headers replace each
//! other too often. A [`CompileCache`](crate::internals::CompileCache) limits the total number of
//! slots that all its agent caches may add when they grow ([`Budget`]).

use std::hash::{BuildHasher, Hasher};
use std::ops::Deref;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, Guard};

use crate::agent::{Agent, Agents};

/// Numbers of slots in a new cache's table, and in the two larger tables that may replace it. Each
/// number is a power of two.
const SMALL: usize = 8;
const MIDDLE: usize = 64;
const LARGE: usize = 1024;

/// Maximum size of a cached header, in bytes. Real headers are less than half as long. Agents in a
/// longer header are recognised again for each request.
const MAX_HEADER: usize = 512;

pub(super) struct AgentCache {
    /// The first table, stored inline.
    small: [CacheSlot; SMALL],
    middle: OnceLock<Box<[CacheSlot]>>,
    large: OnceLock<Box<[CacheSlot]>>,
    /// Number of times that a header has replaced another header in the table in use.
    lost: AtomicU32,
    budget: Arc<Budget>,
    hasher: foldhash::fast::RandomState,
}

struct CacheSlot {
    first: OnceLock<Arc<CachedAgents>>,
    last: ArcSwap<CachedAgents>,
}

pub(crate) struct CachedAgents {
    header: Box<[u8]>,
    agents: Agents,
}

/// Agents from the cache, or agents that were recognised for this lookup only.
pub(crate) enum FoundAgents<'c> {
    Borrowed(&'c CachedAgents),
    Shared(Guard<Arc<CachedAgents>>),
}

impl Deref for FoundAgents<'_> {
    type Target = Agents;

    fn deref(&self) -> &Agents {
        match self {
            Self::Borrowed(found) => &found.agents,
            Self::Shared(found) => &found.agents,
        }
    }
}

/// Number of slots that all caches together may still allocate. The first table of each cache is
/// not counted.
pub(super) struct Budget {
    left: AtomicUsize,
    /// The content of an unused slot: the agents of an empty header. With this value, a slot needs
    /// no `Option`.
    unused: Arc<CachedAgents>,
}

impl Budget {
    pub(super) fn new(places: usize) -> Arc<Self> {
        let unused = Arc::new(CachedAgents { header: Box::default(), agents: Agent::empty().into() });
        Arc::new(Self { left: AtomicUsize::new(places), unused })
    }

    fn unused_slot(&self) -> CacheSlot {
        CacheSlot { first: OnceLock::new(), last: ArcSwap::new(self.unused.clone()) }
    }

    fn take(&self, places: usize) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(places)).is_ok()
    }

    fn give_back(&self, places: usize) {
        self.left.fetch_add(places, Ordering::Relaxed);
    }
}

impl AgentCache {
    pub(super) fn new(budget: Arc<Budget>) -> Self {
        Self {
            small: std::array::from_fn(|_| budget.unused_slot()),
            middle: OnceLock::new(),
            large: OnceLock::new(),
            lost: AtomicU32::new(0),
            budget,
            hasher: Default::default(),
        }
    }

    /// Returns the agents in a header. If the header is not in the cache, recognises the agents.
    pub(super) fn get(
        &self,
        header: &[u8],
        lookups: Option<&AgentLookups>,
        recognise: impl FnOnce(&[u8]) -> Agents,
    ) -> FoundAgents<'_> {
        if header.len() > MAX_HEADER {
            lookups.map(AgentLookups::miss).unwrap_or_default();
            let found = CachedAgents { header: Box::default(), agents: recognise(header) };
            return FoundAgents::Shared(Guard::from_inner(Arc::new(found)));
        }
        let slots = self.largest();
        // The low bits of the hash are used, so the slot is the same on 32-bit and 64-bit machines.
        let slot = &slots[self.hash(header) as usize & (slots.len() - 1)];
        if let Some(first) = slot.first.get()
            && *first.header == *header
        {
            lookups.map(AgentLookups::hit).unwrap_or_default();
            return FoundAgents::Borrowed(first);
        }
        let before = slot.last.load();
        if *before.header == *header {
            lookups.map(AgentLookups::hit).unwrap_or_default();
            return FoundAgents::Shared(before);
        }
        lookups.map(AgentLookups::miss).unwrap_or_default();
        let is_taken = !before.header.is_empty();
        drop(before);
        let entry = Arc::new(CachedAgents { header: header.into(), agents: recognise(header) });
        if slot.first.set(entry.clone()).is_err() {
            slot.last.store(entry.clone());
            if is_taken {
                self.grow_if_crowded(slots);
            }
        }
        FoundAgents::Shared(Guard::from_inner(entry))
    }

    fn largest(&self) -> &[CacheSlot] {
        match self.middle.get() {
            None => &self.small,
            Some(middle) => self.large.get().unwrap_or(middle),
        }
    }

    /// Allocates the next larger table if headers have replaced each other as often as the table
    /// has slots. A slot holds two headers, so two headers that share a slot do not replace each
    /// other.
    fn grow_if_crowded(&self, slots: &[CacheSlot]) {
        let lost = self.lost.fetch_add(1, Ordering::Relaxed);
        let (next, size) = match slots.len() {
            SMALL => (&self.middle, MIDDLE),
            MIDDLE => (&self.large, LARGE),
            _ => return,
        };
        if (lost as usize) < slots.len() || next.get().is_some() || !self.budget.take(size) {
            return;
        }
        if next.set((0..size).map(|_| self.budget.unused_slot()).collect()).is_err() {
            // Another thread has already allocated the larger table.
            self.budget.give_back(size);
            return;
        }
        self.lost.store(0, Ordering::Relaxed);
        // The smaller table is not read any more, so the latest header of each slot is freed.
        slots.iter().for_each(|slot| slot.last.store(self.budget.unused.clone()));
    }

    fn hash(&self, header: &[u8]) -> u64 {
        // Hashes only the bytes; `hash_one` would also hash the length.
        let mut hasher = self.hasher.build_hasher();
        hasher.write(header);
        hasher.finish()
    }
}

impl Drop for AgentCache {
    fn drop(&mut self) {
        let grown = [(&self.middle, MIDDLE), (&self.large, LARGE)];
        self.budget.give_back(grown.iter().filter(|(places, _)| places.get().is_some()).map(|(_, size)| size).sum());
    }
}

robots_core::debug_as!(|_it| AgentCache {});

/// Counters of cache lookups. Each `User-Agent` line is one lookup.
///
/// Each thread that serves requests needs a layer with its own counters. A counter is incremented
/// with a load and a store, because this is cheaper than an atomic addition to memory that all
/// cores write. If two threads share counters, some lookups are not counted, but none is counted
/// twice. Any thread may read the counters.
#[derive(Default)]
#[repr(align(64))]
pub struct AgentLookups {
    hits: AtomicU64,
    misses: AtomicU64,
}

impl AgentLookups {
    /// Returns the number of cache hits: lookups whose agents were in the cache.
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// Returns the number of cache misses: lookups that had to recognise the agents in the line.
    /// Such a line is new, was replaced in the cache, or is too long to be cached.
    pub fn misses(&self) -> u64 {
        self.misses.load(Ordering::Relaxed)
    }

    pub(super) fn hit(&self) {
        add_one(&self.hits);
    }

    pub(super) fn miss(&self) {
        add_one(&self.misses);
    }
}

fn add_one(count: &AtomicU64) {
    count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

robots_core::debug_as!(|it| AgentLookups { hits: it.hits(), misses: it.misses() });

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::agent::{Recognizer, Registry};
    use crate::rules::RobotsTxt;

    fn recognizer() -> Recognizer {
        Recognizer::new(Registry::builtin().clone(), &RobotsTxt::parse(&b"User-agent: *\nDisallow: /\n"[..]))
    }

    #[test]
    fn each_header_gets_its_own_agent_when_there_are_more_headers_than_slots() {
        let recognizer = recognizer();
        let cache = AgentCache::new(Budget::new(LARGE * 2));
        let asked = Cell::new(0);
        let lookups = AgentLookups::default();
        let name = |header: &str| {
            let recognise = |header: &[u8]| {
                asked.set(asked.get() + 1);
                recognizer.agents(header)
            };
            cache.get(header.as_bytes(), Some(&lookups), recognise).first().crawler().map(str::to_owned)
        };
        // There are several times as many headers as slots, so most headers select an occupied
        // slot.
        for round in 0..3 {
            for number in 0..LARGE * 4 {
                let header = format!("Bot{number}/1.0 (+https://example.com/bot)");
                assert_eq!(name(&header), Some(format!("Bot{number}")), "round {round}");
            }
        }
        assert_eq!((lookups.hits() + lookups.misses(), lookups.misses()), (3 * LARGE as u64 * 4, asked.replace(0)));
        let hits = lookups.hits();
        assert_eq!((name("GPTBot/1.2"), name("GPTBot/1.2")), (Some("GPTBot".into()), Some("GPTBot".into())));
        assert_eq!(asked.get(), 1);
        let long = format!("GPTBot/1.2 {}", "x".repeat(MAX_HEADER));
        assert_eq!((name(&long), name(&long)), (Some("GPTBot".into()), Some("GPTBot".into())));
        assert_eq!(asked.get(), 3);
        assert_eq!(lookups.hits(), hits + 1, "long ones are not kept");
    }

    #[test]
    fn an_empty_header_is_recognised_before_and_after_its_slot_is_used() {
        let recognizer = recognizer();
        let cache = AgentCache::new(Budget::new(0));
        let class = |header: &[u8]| cache.get(header, None, |header| recognizer.agents(header)).first().class();
        let empty = recognizer.agents(b"").first().class();
        assert_eq!(class(b""), empty);
        // Each slot now contains another header, so the agents of the empty header are recognised
        // and cached again.
        (0..SMALL * 8).for_each(|number| assert_ne!(class(format!("Bot{number}/1.0").as_bytes()), empty));
        assert_eq!(class(b""), empty);
    }

    #[test]
    fn a_cache_grows_within_the_shared_budget_and_returns_its_share_when_dropped() {
        let recognizer = recognizer();
        let budget = Budget::new(MIDDLE + LARGE);
        let fill = |cache: &AgentCache| {
            for number in 0..LARGE * 4 {
                let header = format!("Bot{number}/1.0");
                cache.get(header.as_bytes(), None, |header| recognizer.agents(header));
            }
            cache.largest().len()
        };
        let few = AgentCache::new(budget.clone());
        few.get(b"GPTBot/1.2", None, |header| recognizer.agents(header));
        assert_eq!(few.largest().len(), SMALL);
        let first = AgentCache::new(budget.clone());
        assert_eq!(fill(&first), LARGE);
        assert_eq!(fill(&few), SMALL, "nothing is left");
        drop(first);
        assert_eq!(fill(&few), LARGE);
    }
}
