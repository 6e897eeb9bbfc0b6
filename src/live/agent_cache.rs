//! Agents by the whole header they were recognised from.
//!
//! A site sees the same few hundred headers again and again. The cache belongs to one version of a file, so a reload
//! cannot be answered from the version before; it compares whole headers, because a hash that stood for a header once
//! blocked everyone; and each place holds the last header that fell on it, so nothing a client sends makes it grow past
//! its bound.
//!
//! Of thousands of sites most see few headers, so a cache starts small and grows while headers push each other out, as
//! far as the places go round that all caches of a [`CompileCache`](super::CompileCache) have together.

use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;

use crate::agent::Agent;

/// The places of a cache, when it is new and as it grows; powers of two.
const SMALL: usize = 8;
const MIDDLE: usize = 64;
const LARGE: usize = 1024;

/// The longest header that is kept, in octets. Real ones are shorter than half of it; a longer one is recognised anew.
const MAX_HEADER: usize = 512;

/// A bounded map from headers to agents.
pub(super) struct AgentCache {
    /// In place; the larger ones are made in turn, as each gets too small.
    small: [Place; SMALL],
    middle: OnceLock<Places>,
    large: OnceLock<Places>,
    /// Headers that were pushed out by others from the largest places there are.
    lost: AtomicU32,
    budget: Arc<Budget>,
    hasher: foldhash::fast::RandomState,
}

type Place = ArcSwapOption<Entry>;
type Places = Box<[Place]>;

struct Entry {
    header: Box<[u8]>,
    agent: Agent,
}

/// How many places the caches of many versions may have together, past those each begins with.
#[derive(Debug)]
pub(super) struct Budget {
    left: AtomicUsize,
}

impl Budget {
    pub(super) fn new(places: usize) -> Arc<Self> {
        Arc::new(Self { left: AtomicUsize::new(places) })
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
            small: Default::default(),
            middle: OnceLock::new(),
            large: OnceLock::new(),
            lost: AtomicU32::new(0),
            budget,
            hasher: Default::default(),
        }
    }

    /// Reads the agent of a header, recognising it where it is not known yet.
    pub(super) fn with<R>(
        &self,
        header: &[u8],
        recognise: impl FnOnce(&[u8]) -> Agent,
        read: impl FnOnce(&Agent) -> R,
    ) -> R {
        if header.len() > MAX_HEADER {
            return read(&recognise(header));
        }
        let places = self.largest();
        // The low bits of the hash, whatever the width of `usize`.
        let place = &places[self.hash(header) as usize & (places.len() - 1)];
        let before = place.load();
        if let Some(entry) = &*before
            && *entry.header == *header
        {
            return read(&entry.agent);
        }
        let is_taken = before.is_some();
        drop(before);
        let entry = Arc::new(Entry { header: header.into(), agent: recognise(header) });
        place.store(Some(entry.clone()));
        if is_taken {
            self.grow_if_crowded(places);
        }
        read(&entry.agent)
    }

    fn largest(&self) -> &[Place] {
        match self.middle.get() {
            None => &self.small,
            Some(middle) => self.large.get().unwrap_or(middle),
        }
    }

    /// More places once as many headers were pushed out as there are places; a header or two that meet call for nothing.
    fn grow_if_crowded(&self, places: &[Place]) {
        let lost = self.lost.fetch_add(1, Ordering::Relaxed);
        let (next, size) = match places.len() {
            SMALL => (&self.middle, MIDDLE),
            MIDDLE => (&self.large, LARGE),
            _ => return,
        };
        if (lost as usize) < places.len() || next.get().is_some() || !self.budget.take(size) {
            return;
        }
        if next.set(empty(size)).is_err() {
            // Another thread was quicker.
            self.budget.give_back(size);
            return;
        }
        self.lost.store(0, Ordering::Relaxed);
        // What stands in the smaller ones is not looked for again.
        places.iter().for_each(|place| place.store(None));
    }

    fn hash(&self, header: &[u8]) -> u64 {
        // The octets alone: `hash_one` would mix in the length as well.
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

impl fmt::Debug for AgentCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentCache").finish_non_exhaustive()
    }
}

fn empty(places: usize) -> Places {
    (0..places).map(|_| ArcSwapOption::empty()).collect()
}

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
    fn each_header_gets_its_own_agent_however_many_there_are() {
        let recognizer = recognizer();
        let cache = AgentCache::new(Budget::new(LARGE * 2));
        let asked = Cell::new(0);
        let name = |header: &str| {
            let recognise = |header: &[u8]| {
                asked.set(asked.get() + 1);
                recognizer.identify(header)
            };
            cache.with(header.as_bytes(), recognise, |agent| agent.crawler().map(str::to_owned))
        };
        // Several times as many as there are places, so that most fall on one that is taken.
        for round in 0..3 {
            for number in 0..LARGE * 4 {
                let header = format!("Bot{number}/1.0 (+https://example.com/bot)");
                assert_eq!(name(&header), Some(format!("Bot{number}")), "round {round}");
            }
        }
        asked.set(0);
        assert_eq!((name("GPTBot/1.2"), name("GPTBot/1.2")), (Some("GPTBot".into()), Some("GPTBot".into())));
        assert_eq!(asked.get(), 1);
        let long = format!("GPTBot/1.2 {}", "x".repeat(MAX_HEADER));
        assert_eq!((name(&long), name(&long)), (Some("GPTBot".into()), Some("GPTBot".into())));
        assert_eq!(asked.get(), 3);
    }

    #[test]
    fn caches_grow_while_there_are_places_left_and_give_them_back() {
        let recognizer = recognizer();
        let budget = Budget::new(MIDDLE + LARGE);
        let fill = |cache: &AgentCache| {
            for number in 0..LARGE * 4 {
                let header = format!("Bot{number}/1.0");
                cache.with(header.as_bytes(), |header| recognizer.identify(header), |_| ());
            }
            cache.largest().len()
        };
        let few = AgentCache::new(budget.clone());
        few.with(b"GPTBot/1.2", |header| recognizer.identify(header), |_| ());
        assert_eq!(few.largest().len(), SMALL);
        let first = AgentCache::new(budget.clone());
        assert_eq!(fill(&first), LARGE);
        assert_eq!(fill(&few), SMALL, "nothing is left");
        drop(first);
        assert_eq!(fill(&few), LARGE);
    }
}
