//! Collects pages of a site, up to a limit, and reads an operator's list of pages.

use std::path::Path;

use tower_robots::check::Page;
use tower_robots::rules::RobotsTxt;
use tower_robots::source::HostMap;
use tower_robots::source::fetch::FetchUrl;

use crate::input::ReadInput;
use crate::target_url::{TargetUrl, listed};

/// Maximum number of pages in a [`PageSet`]. The sitemap protocol has the same limit per sitemap.
pub(super) const MAX_PAGES: usize = 50_000;

/// Maximum length of path and query together, in bytes; longer pages are left out.
const MAX_PAGE_LENGTH: usize = 2048;

/// Memory per page in addition to the bytes of the page: pointer, reference count and allocator
/// overhead.
const OVERHEAD: usize = 48;

pub(crate) fn memory_of_pages(pages: &[Page]) -> usize {
    pages.iter().map(memory_of_page).sum()
}

fn memory_of_page(page: &Page) -> usize {
    page.target().len() + OVERHEAD
}

/// Pages of one site. If there are more than [`MAX_PAGES`] pages, or if the pages take more than
/// `max_memory` bytes, only every second page is kept, then every fourth, and so on. The kept pages
/// are therefore a sample of the whole list, not only of its beginning.
#[derive(Debug)]
pub(crate) struct PageSet {
    pages: Vec<Page>,
    /// Memory that the pages take, in bytes.
    memory: usize,
    /// Maximum memory for the pages, in bytes.
    max_memory: usize,
    /// Interval of kept pages: every `stride`-th page is kept.
    stride: usize,
    /// Number of pages found, including pages that were not kept.
    pub(super) found: usize,
    pub(super) on_other_hosts: usize,
}

impl PageSet {
    /// Creates an empty set for at most `max_memory` bytes of memory.
    pub(crate) const fn within(max_memory: usize) -> Self {
        Self { pages: Vec::new(), memory: 0, max_memory, stride: 1, found: 0, on_other_hosts: 0 }
    }

    /// Adds the page of a URL if it is on a host of the site. URLs on other hosts are only counted.
    pub(super) fn add(&mut self, url: &TargetUrl<'_>, hosts: &OwnHosts) {
        if url.host().is_none_or(|host| hosts.has(host)) {
            self.add_target(url.path());
        } else {
            self.on_other_hosts += 1;
        }
    }

    /// Adds the page with this path and query. Drops the fragment, if any.
    pub(crate) fn add_target(&mut self, target: &[u8]) {
        let end = memchr::memchr(b'#', target).unwrap_or(target.len());
        let target = &target[..end];
        if target.len() > MAX_PAGE_LENGTH {
            return;
        }
        let is_kept = self.found.is_multiple_of(self.stride);
        self.found += 1;
        if !is_kept {
            return;
        }
        let page = Page::new(target);
        self.memory += memory_of_page(&page);
        self.pages.push(page);
        while self.pages.len() > MAX_PAGES || (self.memory > self.max_memory && !self.pages.is_empty()) {
            self.drop_every_second();
        }
    }

    fn drop_every_second(&mut self) {
        if self.pages.len() == 1 {
            self.pages.clear();
        }
        self.pages = self.pages.drain(..).step_by(2).collect();
        self.stride = self.stride.saturating_mul(2);
        self.memory = memory_of_pages(&self.pages);
    }

    /// Returns the pages, sorted and without duplicates.
    pub(crate) fn into_pages(self) -> Vec<Page> {
        let mut pages = self.pages;
        pages.sort_unstable();
        pages.dedup();
        pages
    }
}

#[derive(Debug)]
pub(crate) struct OwnHosts {
    /// Host patterns; `None` if the site serves every host.
    patterns: Option<HostMap<()>>,
    /// The first host without a wildcard, if any. Requests to the site can use this host.
    pub(crate) name: Option<String>,
}

impl OwnHosts {
    pub(crate) fn of(hosts: &[String]) -> Self {
        let mut patterns = HostMap::new();
        for host in hosts {
            // Errors are ignored, because a config with an invalid host is rejected earlier.
            let _ = patterns.insert(host, ());
        }
        let name = hosts.iter().find(|host| !host.contains('*')).cloned();
        Self { patterns: (!hosts.is_empty()).then_some(patterns), name }
    }

    pub(crate) fn has(&self, host: &[u8]) -> bool {
        self.patterns.as_ref().is_none_or(|patterns| patterns.get(host).is_some())
    }

    /// Returns the sitemaps that a robots.txt lists: first the sitemaps on the site's hosts, then
    /// the sitemaps on other hosts.
    pub(crate) fn sitemaps_of(&self, robots: &RobotsTxt) -> (Vec<FetchUrl>, Vec<FetchUrl>) {
        let named = robots.sitemaps().filter_map(|sitemap| sitemap.as_str()?.parse().ok());
        named.partition(|url: &FetchUrl| self.has(url.authority().as_bytes()))
    }

    /// Returns a message about the first sitemap on another host, which the gate does not read.
    /// `None` if all sitemaps are on hosts of the site.
    pub(crate) fn foreign_sitemap_message(&self, robots: &RobotsTxt) -> Option<String> {
        self.sitemaps_of(robots).1.first().map(|url| format!("the sitemap {url} is not on a host of the site"))
    }
}

/// Reads a list of pages. URLs on other hosts are skipped, because several sites may share one
/// list.
pub(crate) fn read_urls(path: &Path, read: ReadInput, hosts: &[String]) -> Result<Vec<Page>, String> {
    let bytes = read(path).map_err(|error| error.to_string())?;
    let hosts = OwnHosts::of(hosts);
    let mut pages = PageSet::within(usize::MAX);
    let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes);
    for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let column = line.len() - line.trim_ascii_start().len() + 1;
        let Some(target) = listed(line) else {
            continue;
        };
        let url =
            TargetUrl::parse(target).map_err(|error| format!("{}:{}:{column}: {error}", path.display(), number + 1))?;
        pages.add(&url, &hosts);
    }
    match (pages.found, pages.on_other_hosts) {
        (0, 0) => Err(format!("{}: the list contains no pages", path.display())),
        (0, _) => Err(format!("{}: all pages in this list are on other hosts", path.display())),
        _ => Ok(pages.into_pages()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input;

    #[test]
    fn long_pages_are_thinned_to_fit_the_memory_limit() {
        let pages = |max_memory: usize| {
            let mut set = PageSet::within(max_memory);
            (0..12_500).for_each(|number| set.add_target(format!("/{number:0>2047}").as_bytes()));
            set.into_pages()
        };
        let kept = pages(2 << 20);
        let memory = memory_of_pages(&kept);
        assert!(memory <= 2 << 20 && memory > 1 << 20, "{memory} bytes");
        // Every 16th page is kept, from the first to the last.
        let numbers: Vec<usize> =
            kept.iter().map(|page| std::str::from_utf8(&page.target()[1..]).unwrap().parse().unwrap()).collect();
        assert!(numbers.iter().enumerate().all(|(at, number)| at * 16 == *number), "{numbers:?}");
        assert_eq!(numbers.len(), 782);
        assert_eq!(pages(0), []);
        assert_eq!(pages(3000).len(), 1);
    }

    #[test]
    fn every_second_page_of_a_too_long_sitemap_is_kept() {
        let kept = |count: usize| {
            let mut set = PageSet::within(usize::MAX);
            (0..count).for_each(|number| set.add_target(format!("/{number}").as_bytes()));
            set.into_pages().len()
        };
        assert_eq!([kept(MAX_PAGES), kept(MAX_PAGES + 100)], [50_000, 25_050]);
    }

    fn read(text: &str) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("urls.txt");
        std::fs::write(&path, text).unwrap();
        let pages = read_urls(&path, input::read, &["shop.example".to_owned(), "*.shop.example".to_owned()])?;
        Ok(pages.iter().map(|page| String::from_utf8_lossy(page.target()).into_owned()).collect())
    }

    #[test]
    fn paths_and_urls_of_the_site_count_once_each() {
        let text = "\u{feff}# what matters\n/\n/news/\r\nhttps://shop.example/news/#top\nhttp://www.shop.example:80/a?b=1\n\n\
                    https://other.example/elsewhere\n/hats # the best\n/hats\t# twice\n";
        assert_eq!(read(text).unwrap(), ["/", "/a?b=1", "/hats", "/news/"]);
    }

    #[test]
    fn a_list_without_pages_of_the_site_is_an_error() {
        let error = read("# none\n\n").unwrap_err();
        assert!(error.ends_with("urls.txt: the list contains no pages"), "{error}");
        let error = read("https://www.shop.test/\n").unwrap_err();
        assert!(error.ends_with("urls.txt: all pages in this list are on other hosts"), "{error}");
    }

    #[test]
    fn the_error_for_an_invalid_entry_contains_its_line_and_column() {
        let error = read("/news/\n  news/today\n").unwrap_err();
        assert!(error.contains("urls.txt:2:3: \"news/today\""), "{error}");
        let error = read_urls(Path::new("/none/urls.txt"), input::read, &[]).unwrap_err();
        assert!(error.contains("/none/urls.txt"), "{error}");
    }
}
