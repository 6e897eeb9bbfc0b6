//! Lists of pages that matter to a site: an operator's list of URLs, and sitemaps.
//!
//! The gate protects these pages, `diff` shows the effect of a change on them, and the live check
//! reads the sitemaps that a robots.txt lists.
//!
//! Callers provide the function that reads documents. The number and size of documents and the
//! number of pages are limited. Pages on other hosts are left out.

mod page_set;
mod sitemap;
mod sitemap_text;
mod sitemap_walk;
#[cfg(any(test, fuzzing))]
pub(crate) mod test_any_input;

pub(crate) use self::page_set::{OwnHosts, PageSet, memory_of_pages, read_urls};
pub(crate) use self::sitemap::{Listed, read_sitemap};
pub(crate) use self::sitemap_text::{MAX_BYTES, SitemapFault};
pub(crate) use self::sitemap_walk::{SitemapSource, SitemapWalk};
