//! Entries for fuzzing: sitemaps, as a stranger's server sends them.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::own_hosts::OwnHosts;
use super::sitemap::{LONGEST, Listed, read_sitemap};
use super::sitemap_walk::{MOST_SITEMAPS, SitemapWalk};

/// A document as a sitemap: packed it says the same, its locations and its fault are bounded, and a walk that meets it everywhere
/// ends.
pub fn sitemap(octets: &[u8]) {
    let plain = listed(octets);
    if !octets.starts_with(&[0x1F, 0x8B]) {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        let packed = packer.write_all(octets).and_then(|()| packer.finish());
        assert!(packed.is_ok_and(|packed| listed(&packed) == plain), "another list when packed");
    }
    let hosts = OwnHosts::of(&["a.example".to_owned()]);
    let mut walk = SitemapWalk::of(&hosts);
    let root = "https://a.example/sitemap.xml".parse();
    assert!(root.is_ok(), "the URL of a sitemap");
    let mut fetched = 0;
    walk.walk(root, |_| {
        fetched += 1;
        Ok(Some(octets.to_vec()))
    });
    assert!(fetched <= MOST_SITEMAPS, "{fetched} sitemaps");
    assert!(walk.trouble().is_none_or(|trouble| trouble.len() < 32 << 10), "a long message");
    for page in walk.into_pages() {
        assert!(page.target().starts_with(b"/") && !page.target().contains(&b'#'), "{page:?} is no path");
    }
}

/// Everything that a document lists, and its fault.
fn listed(octets: &[u8]) -> (Vec<(Listed, Vec<u8>)>, Option<String>) {
    let mut all = Vec::new();
    let read = read_sitemap(octets, |listed, url| {
        assert!(url.len() <= LONGEST, "{} octets of a location", url.len());
        all.push((listed, url.to_vec()));
    });
    let fault = read.err().map(|fault| fault.in_document(&"sitemap.xml"));
    if let Some(fault) = &fault {
        assert!(fault.len() < 2048 && !fault.contains(char::is_control), "{fault:?}");
    }
    (all, fault)
}
