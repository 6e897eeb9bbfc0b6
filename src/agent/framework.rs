//! Crawlers that are built with a framework: `FooBot/Nutch-1.10`, `FooBot/1.0 (Scrapy 2.11; …)`.
//!
//! The framework is how a crawler is made, not which one it is. The product in front of the framework's name is the
//! crawler's, in whatever way the two are joined.

use std::sync::Arc;

use super::claim::Testimony;
use super::crawler::Crawler;
use super::header::{Header, Voice, Word};
use super::registry::Registry;
use super::words::Kinds;

impl Registry {
    /// The first framework that a header names, and where. Where versions stand it is always looked for; among the words
    /// that name crawlers only if one of them is known to be there, because those were looked up before.
    pub(super) fn framework<'r>(&'r self, header: &Header<'_>, speaks: bool) -> Option<(&'r Arc<Crawler>, usize)> {
        if !speaks && !header.has_named_version {
            return None;
        }
        let mut refused = Vec::new();
        let may_name = |word: &&Word| {
            let is_place = word.voice == Voice::Version || speaks && word.may_name_a_crawler();
            is_place && word.text(header.bytes()).first().is_some_and(u8::is_ascii_alphabetic)
        };
        header.words().filter(may_name).find_map(|word| {
            let (crawler, _) = self.named_at(word, header, &mut refused)?;
            crawler.is_framework().then_some((crawler, word.start))
        })
    }
}

/// The first product that a header declares before a place.
pub(super) fn product_in_front(header: &Header<'_>, testimony: &Testimony<'_, '_>, place: usize) -> Option<String> {
    let mut parts = testimony.declared_parts().filter(|part| {
        let is_library = |word: &Word| word.kinds.has(Kinds::LIBRARY);
        !header.words_of(part).iter().find(|word| word.may_name_a_crawler()).is_some_and(is_library)
    });
    parts.find_map(|part| Some(header.product_before(part, place)).filter(|product| !product.is_empty()))
}
