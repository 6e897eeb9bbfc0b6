//! The registered crawlers of one header, each once.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::crawler::Crawler;
use super::header::Header;
use super::kind::Category;
use super::registry::Registry;

/// The registered crawlers that a header names, and where. A header has no more of them than the registry has rows.
#[derive(Debug, Default)]
pub(super) struct NamedCrawlers<'r> {
    /// In the order of the header, each once; without frameworks, and without previewers behind another one.
    pub(super) crawlers: Vec<&'r Arc<Crawler>>,
    /// The places of all registered names, in the order of the header.
    pub(super) places: Vec<Range<usize>>,
    /// Whether it names a framework.
    pub(super) framework: bool,
    /// The further crawlers by their addresses: a header of 64 KiB repeats thousands of names.
    further: HashSet<*const Crawler>,
    previewer: bool,
}

impl<'r> NamedCrawlers<'r> {
    pub(super) fn of(registry: &'r Registry, header: &Header<'_>) -> Self {
        let mut named = Self::default();
        for (crawler, place) in registry.find_places(header) {
            named.places.push(place);
            named.add(crawler);
        }
        named
    }

    fn add(&mut self, crawler: &'r Arc<Crawler>) {
        if crawler.is_framework() {
            self.framework = true;
            return;
        }
        let is_previewer = crawler.category() == Category::Preview;
        let is_new = match self.crawlers.first() {
            None => true,
            Some(first) => !Arc::ptr_eq(first, crawler) && self.further.insert(Arc::as_ptr(crawler)),
        };
        // Messengers list those whose cards they read.
        if is_new && !(is_previewer && self.previewer) {
            self.previewer |= is_previewer;
            self.crawlers.push(crawler);
        }
    }
}
