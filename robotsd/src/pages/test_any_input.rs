//! Fuzzing entry points for sitemaps, which come from other people's servers.

use std::io::{self, Read, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::page_set::OwnHosts;
use super::sitemap::{Listed, MAX_LOCATION_LENGTH, read_sitemap};
use super::sitemap_walk::{MAX_SITEMAPS, SitemapWalk};

/// Parses a document as a sitemap. The result must not depend on compression or on how the input is
/// split. Locations and errors must have a limited length. A walk must end even if every URL
/// returns this document.
pub fn sitemap(bytes: &[u8]) {
    let plain = listed(bytes);
    let length = bytes.len() % 7 + 1;
    let is_packed = bytes.starts_with(&[0x1F, 0x8B]);
    let (in_pieces, fault) = listed(Pieces { bytes, length });
    if is_packed && plain.1.is_some() {
        // If compressed bytes are truncated, a decoder that gets all bytes at once returns less
        // text.
        assert!(fault.is_some(), "no fault in pieces of {length}");
        assert!(
            in_pieces.starts_with(&plain.0) || plain.0.starts_with(&in_pieces),
            "another list in pieces of {length}"
        );
    } else {
        assert!((in_pieces, fault) == plain, "another list in pieces of {length}");
    }
    if !is_packed {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        let packed = packer.write_all(bytes).and_then(|()| packer.finish());
        assert!(packed.is_ok_and(|packed| listed(&packed[..]) == plain), "another list when packed");
    }
    let hosts = OwnHosts::of(&["a.example".to_owned()]);
    let mut walk = SitemapWalk::within(&hosts, usize::MAX);
    let root = "https://a.example/sitemap.xml".parse();
    assert!(root.is_ok(), "the URL of a sitemap");
    let mut fetched = 0;
    walk.walk(root, |_| {
        fetched += 1;
        Ok(Some(bytes))
    });
    assert!(fetched <= MAX_SITEMAPS, "{fetched} sitemaps");
    assert!(walk.problem().is_none_or(|problem| problem.len() < 32 << 10), "a long message");
    for page in walk.into_pages() {
        assert!(page.target().starts_with(b"/") && !page.target().contains(&b'#'), "{page:?} is no path");
    }
}

/// A reader that returns bytes in pieces of `length` bytes.
struct Pieces<'a> {
    bytes: &'a [u8],
    length: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = buffer.len().min(self.length);
        self.bytes.read(&mut buffer[..room])
    }
}

/// Returns every location in a document, and the error that ended parsing.
fn listed(bytes: impl Read) -> (Vec<(Listed, Vec<u8>)>, Option<String>) {
    let mut all = Vec::new();
    let read = read_sitemap(bytes, |listed, url| {
        assert!(url.len() <= MAX_LOCATION_LENGTH, "{} bytes of a location", url.len());
        all.push((listed, url.to_vec()));
    });
    let fault = read.err().map(|fault| fault.in_document(&"sitemap.xml"));
    if let Some(fault) = &fault {
        assert!(fault.len() < 2048 && !fault.contains(char::is_control), "{fault:?}");
    }
    (all, fault)
}
