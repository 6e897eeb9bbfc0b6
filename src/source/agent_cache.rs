//! Agents by the whole header they were recognised from.
//!
//! A site sees the same few hundred headers again and again. The cache belongs to one version of a file, so a reload
//! cannot be answered from the version before; it has a fixed number of places, each of which holds the last header that
//! fell on it, so nothing a client sends makes it grow; and it compares whole headers, because a hash that stood for a
//! header once blocked everyone.

use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;

use crate::agent::Agent;

/// Places; a power of two.
const PLACES: usize = 1024;

/// The longest header that is kept, in octets. Real ones are shorter than half of it; a longer one is recognised anew.
const MAX_HEADER: usize = 512;

/// A bounded map from headers to agents.
#[derive(Default)]
pub(super) struct AgentCache {
    /// Made at the first header: of thousands of sites most are asked for seldom.
    places: OnceLock<Box<[ArcSwapOption<Entry>; PLACES]>>,
    hasher: foldhash::fast::RandomState,
}

struct Entry {
    header: Box<[u8]>,
    agent: Agent,
}

impl AgentCache {
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
        let places = self.places.get_or_init(|| Box::new(std::array::from_fn(|_| ArcSwapOption::empty())));
        // The low bits of the hash, whatever the width of `usize`.
        let place = &places[self.hash(header) as usize % PLACES];
        if let Some(entry) = &*place.load()
            && *entry.header == *header
        {
            return read(&entry.agent);
        }
        let entry = Arc::new(Entry { header: header.into(), agent: recognise(header) });
        place.store(Some(entry.clone()));
        read(&entry.agent)
    }

    fn hash(&self, header: &[u8]) -> u64 {
        // The octets alone: `hash_one` would mix in the length as well.
        let mut hasher = self.hasher.build_hasher();
        hasher.write(header);
        hasher.finish()
    }
}

impl fmt::Debug for AgentCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentCache").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::agent::{Recognizer, Registry};
    use crate::rules::RobotsTxt;

    #[test]
    fn each_header_gets_its_own_agent_however_many_there_are() {
        let file = RobotsTxt::parse(&b"User-agent: *\nDisallow: /\n"[..]);
        let recognizer = Recognizer::new(Registry::builtin().clone(), &file);
        let cache = AgentCache::default();
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
            for number in 0..PLACES * 4 {
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
}
