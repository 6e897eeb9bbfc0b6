//! Lists of pages that matter to a site: an operator's list of URLs, and sitemaps.
//!
//! The gate watches them, `diff` measures a change by them, and the live check looks at the sitemaps that a file names.
//!
//! The caller chooses the source of documents; everything that is read of them is bounded: documents, octets, pages. Pages of other
//! hosts are none of the site's and are left out. This room judges nothing.

mod page_set;
mod sitemap;
mod sitemap_text;
mod sitemap_walk;
#[cfg(any(test, fuzzing))]
pub(crate) mod test_octets;

pub(crate) use self::page_set::{OwnHosts, PageSet, held_octets, read_urls};
pub(crate) use self::sitemap::{Listed, read_sitemap};
pub(crate) use self::sitemap_text::{MOST_OCTETS, SitemapFault};
pub(crate) use self::sitemap_walk::{SitemapSource, SitemapWalk};
