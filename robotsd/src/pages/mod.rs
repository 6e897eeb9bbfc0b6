//! Lists of pages that matter to a site: an operator's list of URLs, and sitemaps.
//!
//! The gate watches them, `diff` measures a change by them, and the live check looks at the sitemaps that a file names.
//!
//! Where documents come from is the caller's affair; everything that is read of them is bounded: documents, octets, pages. Pages of
//! other hosts are none of the site's and are left out. This room judges nothing.

pub(crate) mod fuzzing;
mod own_hosts;
mod page_set;
mod sitemap;
mod sitemap_fault;
mod sitemap_walk;
mod url_list;

pub(crate) use self::own_hosts::OwnHosts;
pub(crate) use self::sitemap::{Listed, read_sitemap};
pub(crate) use self::sitemap_fault::{MOST_OCTETS, SitemapFault};
pub(crate) use self::sitemap_walk::{SitemapSource, SitemapWalk};
pub(crate) use self::url_list::read_urls;
