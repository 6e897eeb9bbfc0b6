//! Pages as they are found, with a bound on how many are kept.

use tower_robots::check::Page;

use super::own_hosts::OwnHosts;
use crate::target_url::TargetUrl;

/// Pages of a list that are kept: as many as a sitemap may have.
pub(super) const MOST: usize = 50_000;

/// Octets of a page that is kept.
const LONGEST: usize = 2048;

/// Pages of one site. Of more than [`MOST`] every second is kept, or every fourth, and so on: so they stand for all of them, in
/// whichever order sections are listed.
#[derive(Debug)]
pub(super) struct PageSet {
    pages: Vec<Page>,
    /// Every how many-th is kept.
    stride: usize,
    /// How many were found.
    pub(super) found: usize,
    /// How many were of other hosts.
    pub(super) of_others: usize,
}

impl Default for PageSet {
    fn default() -> Self {
        Self { pages: Vec::new(), stride: 1, found: 0, of_others: 0 }
    }
}

impl PageSet {
    /// Adds the page of a URL that is the site's own.
    pub(super) fn add(&mut self, url: &TargetUrl<'_>, hosts: &OwnHosts) {
        if !url.host().is_none_or(|host| hosts.has(host)) {
            self.of_others += 1;
            return;
        }
        let path = url.path();
        let end = memchr::memchr(b'#', path).unwrap_or(path.len());
        if end > LONGEST {
            return;
        }
        let is_kept = self.found.is_multiple_of(self.stride);
        self.found += 1;
        if !is_kept {
            return;
        }
        self.pages.push(Page::new(&path[..end]));
        if self.pages.len() > MOST {
            let mut at = 0;
            self.pages.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.stride *= 2;
        }
    }

    /// The pages, each once.
    pub(super) fn into_pages(self) -> Vec<Page> {
        let mut pages = self.pages;
        pages.sort_unstable();
        pages.dedup();
        pages
    }
}
