//! Reads sitemaps, including the sitemaps that they list, and collects their pages.

use std::collections::{HashSet, VecDeque};
use std::io::Read;
use std::path::PathBuf;
use std::str::FromStr;

use tower_robots::check::Page;
use tower_robots::source::fetch::FetchUrl;

use super::page_set::{OwnHosts, PageSet};
use super::sitemap::{Listed, read_sitemap};
use crate::render::printable_path;
use crate::target_url::TargetUrl;

/// Maximum number of sitemaps that are read for a site.
pub(super) const MAX_SITEMAPS: usize = 200;

/// Maximum nesting of sitemaps. The protocol allows two levels: an index and its sitemaps.
const MAX_DEPTH: usize = 3;

/// Maximum number of problems in a message; further problems are only counted.
const MAX_NAMED_PROBLEMS: usize = 3;

#[derive(Clone, Debug, PartialEq, Eq, derive_more::Display)]
pub(crate) enum SitemapSource {
    #[display("{}", printable_path(_0))]
    File(PathBuf),
    /// A URL. The URL is displayed without its query, which may contain a secret.
    Url(FetchUrl),
}

#[derive(Debug)]
pub(crate) struct SitemapWalk<'a> {
    hosts: &'a OwnHosts,
    pages: PageSet,
    pub(crate) read: usize,
    left_out: usize,
    problems: Vec<String>,
}

impl<'a> SitemapWalk<'a> {
    /// Creates a walk that uses at most `max_memory` bytes of memory to store the listed pages.
    pub(crate) fn within(hosts: &'a OwnHosts, max_memory: usize) -> Self {
        Self { hosts, pages: PageSet::within(max_memory), read: 0, left_out: 0, problems: Vec::new() }
    }

    /// Reads the sitemaps in `roots`. Also reads the sitemaps that are listed in these sitemaps and
    /// are on the site's own hosts. Each sitemap is parsed while it is received. `fetch` returns
    /// `None` for a missing document.
    pub(crate) fn walk<R: Read>(
        &mut self,
        roots: impl IntoIterator<Item = SitemapSource>,
        mut fetch: impl FnMut(&SitemapSource) -> Result<Option<R>, String>,
    ) {
        let mut queue = SitemapQueue::default();
        roots.into_iter().for_each(|root| queue.add(0, root));
        while let Some((depth, source)) = queue.waiting.pop_front() {
            let bytes = match fetch(&source) {
                Ok(Some(bytes)) => bytes,
                Ok(None) if depth == 0 => continue,
                missing => {
                    self.problems.push(missing.err().unwrap_or_else(|| format!("{source}: not found")));
                    continue;
                }
            };
            let (pages, hosts) = (&mut self.pages, self.hosts);
            let before = (pages.found, pages.on_other_hosts);
            let listed = read_sitemap(bytes, |listed, url| match listed {
                Listed::Page => {
                    if let Ok(url) = TargetUrl::parse(url) {
                        pages.add(&url, hosts);
                    }
                }
                Listed::Sitemap => {
                    let url = std::str::from_utf8(url).ok().and_then(|url| url.parse::<FetchUrl>().ok());
                    let is_own = |url: &FetchUrl| hosts.has(url.authority().as_bytes());
                    if let Some(url) = url.filter(|url| depth + 1 < MAX_DEPTH && is_own(url)) {
                        queue.add(depth + 1, SitemapSource::Url(url));
                    }
                }
            });
            if let Err(fault) = listed {
                self.problems.push(fault.in_document(&source));
                continue;
            }
            if pages.found == before.0 && pages.on_other_hosts > before.1 {
                self.problems.push(format!("{source}: all pages in this sitemap are on other hosts"));
            }
            self.read += 1;
        }
        self.left_out += queue.left_out;
    }

    pub(crate) fn problem(&self) -> Option<String> {
        let mut parts: Vec<String> = self.problems.iter().take(MAX_NAMED_PROBLEMS).cloned().collect();
        if self.problems.len() > MAX_NAMED_PROBLEMS {
            parts.push(format!("and {} more", self.problems.len() - MAX_NAMED_PROBLEMS));
        }
        if self.left_out > 0 {
            parts.push(format!(
                "only {MAX_SITEMAPS} of {count} sitemaps are read",
                count = self.left_out + MAX_SITEMAPS
            ));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Returns the number of pages found, including pages that were not kept.
    pub(crate) const fn listed(&self) -> usize {
        self.pages.found
    }

    pub(crate) fn into_pages(self) -> Vec<Page> {
        self.pages.into_pages()
    }
}

/// The sitemaps to read, in the order of discovery, without duplicates, up to the limit.
#[derive(Default)]
struct SitemapQueue {
    waiting: VecDeque<(usize, SitemapSource)>,
    seen: HashSet<String>,
    left_out: usize,
}

impl SitemapQueue {
    fn add(&mut self, depth: usize, source: SitemapSource) {
        let key = source.key();
        if self.seen.contains(&key) {
            return;
        }
        if self.seen.len() == MAX_SITEMAPS {
            self.left_out += 1;
            return;
        }
        self.seen.insert(key);
        self.waiting.push_back((depth, source));
    }
}

impl FromStr for SitemapSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Values with a scheme are never file names. An unsupported scheme is therefore an error.
        if text.contains("://") {
            return text.parse().map(Self::Url).map_err(|error: tower_robots::rules::ValueError| error.to_string());
        }
        Ok(Self::File(text.into()))
    }
}

impl SitemapSource {
    /// Returns a key that identifies the sitemap. The key includes the query, because the URLs of
    /// two sitemaps may differ only in the query.
    fn key(&self) -> String {
        match self {
            Self::File(path) => path.to_string_lossy().into_owned(),
            Self::Url(url) => {
                let scheme = if url.is_https() { "https" } else { "http" };
                format!("{scheme}://{}{}", url.authority(), url.target())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::io::Cursor;

    use super::super::page_set::MAX_PAGES;
    use super::*;

    fn hosts() -> OwnHosts {
        OwnHosts::of(&["a.example".to_owned()])
    }

    fn url(text: &str) -> SitemapSource {
        text.parse().expect(text)
    }

    fn urlset(urls: impl IntoIterator<Item = String>) -> Cursor<Vec<u8>> {
        let urls = urls.into_iter().fold(String::new(), |mut all, url| {
            let _ = write!(all, "<url><loc>{url}</loc></url>");
            all
        });
        Cursor::new(format!("<urlset>{urls}</urlset>").into_bytes())
    }

    #[test]
    fn an_index_leads_only_to_new_sitemaps_on_hosts_of_the_site() {
        let hosts = hosts();
        let mut walk = SitemapWalk::within(&hosts, usize::MAX);
        let mut fetched = Vec::new();
        walk.walk([url("https://a.example/sitemap.xml")], |source| {
            fetched.push(source.key());
            Ok(Some(match &*source.to_string() {
                "https://a.example/sitemap.xml" => {
                    let named =
                        ["https://a.example/1.xml?part=1", "https://b.example/2.xml", "https://a.example/sitemap.xml"];
                    let named: String =
                        named.iter().map(|url| format!("<sitemap><loc>{url}</loc></sitemap>")).collect();
                    Cursor::new(format!("<sitemapindex>{named}</sitemapindex>").into_bytes())
                }
                _ => urlset(["https://a.example/x".to_owned(), "https://b.example/y".to_owned()]),
            }))
        });
        assert_eq!(fetched, ["https://a.example/sitemap.xml", "https://a.example/1.xml?part=1"]);
        assert_eq!((walk.read, walk.problem()), (2, None));
        assert_eq!(walk.into_pages(), [Page::new("/x")]);
    }

    #[test]
    fn many_pages_are_thinned_evenly_across_sitemaps() {
        let hosts = hosts();
        let mut walk = SitemapWalk::within(&hosts, usize::MAX);
        let sections = ["news", "shop", "guide"];
        walk.walk(sections.map(|section| url(&format!("https://a.example/{section}.xml"))), |source| {
            let section = sections.iter().find(|section| source.to_string().contains(**section)).unwrap();
            Ok(Some(urlset((0..50_000).map(|number| format!("https://a.example/{section}/{number}")))))
        });
        let pages = walk.into_pages();
        assert!(pages.len() <= MAX_PAGES && pages.len() > MAX_PAGES / 2, "{}", pages.len());
        let of = |section: &str| pages.iter().filter(|page| page.target().starts_with(section.as_bytes())).count();
        for section in ["/news/", "/shop/", "/guide/"] {
            assert!(of(section).abs_diff(pages.len() / 3) < 10, "{section}: {}", of(section));
        }
    }

    #[test]
    fn unreadable_sitemaps_are_reported_and_the_other_sitemaps_are_used() {
        let hosts = hosts();
        let mut walk = SitemapWalk::within(&hosts, usize::MAX);
        let roots =
            ["none", "broken", "good", "other", "late"].map(|name| url(&format!("https://a.example/{name}.xml")));
        walk.walk(roots, |source| match source.to_string() {
            name if name.contains("none") => Ok(None),
            name if name.contains("broken") => Ok(Some(Cursor::new(b"<html></html>".to_vec()))),
            name if name.contains("other") => Ok(Some(urlset(["https://b.example/".to_owned()]))),
            name if name.contains("late") => Err("late".to_owned()),
            _ => Ok(Some(urlset(["https://a.example/good".to_owned()]))),
        });
        let problem = walk.problem().unwrap();
        assert!(problem.starts_with("https://a.example/broken.xml: the document is not a sitemap"), "{problem}");
        assert!(problem.contains("other.xml: all pages in this sitemap are on other hosts; late"), "{problem}");
        assert_eq!(walk.into_pages(), [Page::new("/good")]);
    }

    #[test]
    fn the_number_of_fetched_sitemaps_is_limited() {
        let hosts = hosts();
        let mut walk = SitemapWalk::within(&hosts, usize::MAX);
        let mut fetched = 0;
        walk.walk([url("https://a.example/0.xml")], |_| {
            fetched += 1;
            let named: String = (0..300)
                .map(|number| format!("<sitemap><loc>https://a.example/{fetched}/{number}.xml</loc></sitemap>"))
                .collect();
            Ok(Some(Cursor::new(format!("<sitemapindex>{named}</sitemapindex>").into_bytes())))
        });
        assert!(fetched <= MAX_SITEMAPS, "{fetched}");
        assert!(walk.problem().unwrap().starts_with("only 200 of "));
    }
}
