//! One sitemap: XML with pages or with further sitemaps, or a text with a URL a line; packed or not (sitemaps.org).

use std::borrow::Cow;
use std::io::Read as _;

use flate2::read::MultiGzDecoder;
use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;

/// Octets of a sitemap, unpacked: what the protocol allows.
pub(crate) const MOST_OCTETS: usize = 50 << 20;

/// Elements in each other: no sitemap has more than a handful.
const DEEPEST: usize = 32;

/// Octets of a location that is read.
const LONGEST: usize = 4096;

/// What a sitemap lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listed {
    Page,
    Sitemap,
}

/// Hands over every location of a sitemap.
///
/// # Errors
///
/// If it is none; what stood before the fault was handed over.
pub(super) fn read(octets: &[u8], mut list: impl FnMut(Listed, &[u8])) -> Result<(), String> {
    let octets = unpacked(octets)?;
    let octets = octets.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&octets);
    let text = octets.trim_ascii_start();
    if text.starts_with(b"<") {
        return read_xml(text, &mut list);
    }
    for line in text.split(|octet| *octet == b'\n').map(<[u8]>::trim_ascii) {
        let is_url = line.starts_with(b"http://") || line.starts_with(b"https://");
        match line {
            [] => {}
            _ if is_url && line.len() <= LONGEST => list(Listed::Page, line),
            _ => return Err("it is neither XML nor a list of URLs".to_owned()),
        }
    }
    Ok(())
}

fn unpacked(octets: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    if !octets.starts_with(&[0x1F, 0x8B]) {
        return Ok(Cow::Borrowed(octets));
    }
    let mut unpacked = Vec::new();
    let read = MultiGzDecoder::new(octets).take(MOST_OCTETS as u64 + 1).read_to_end(&mut unpacked);
    read.map_err(|error| format!("it cannot be unpacked: {error}"))?;
    if unpacked.len() > MOST_OCTETS {
        return Err(format!("it is larger than {} MiB unpacked", MOST_OCTETS >> 20));
    }
    Ok(Cow::Owned(unpacked))
}

/// A location counts in `url` and `sitemap`: those of images and videos are in elements of their own.
fn read_xml(text: &[u8], list: &mut impl FnMut(Listed, &[u8])) -> Result<(), String> {
    // Octets of another encoding stand in titles, not in locations.
    let text = String::from_utf8_lossy(text);
    let mut reader = Reader::from_str(&text);
    let mut within: Vec<Option<Listed>> = Vec::new();
    let mut location: Option<(Listed, Vec<u8>)> = None;
    let mut is_sitemap = false;
    loop {
        let event = reader.read_event().map_err(|error| format!("octet {}: {error}", reader.error_position()))?;
        match event {
            Event::Start(start) => {
                let name = start.local_name();
                let parent = within.last().copied().flatten();
                if within.is_empty() {
                    is_sitemap = matches!(name.as_ref(), "urlset" | "sitemapindex");
                }
                location = match parent {
                    Some(listed) if name.as_ref() == "loc" => Some((listed, Vec::new())),
                    _ => location,
                };
                within.push(match name.as_ref() {
                    "url" => Some(Listed::Page),
                    "sitemap" => Some(Listed::Sitemap),
                    _ => None,
                });
                if within.len() > DEEPEST {
                    return Err(format!("it has more than {DEEPEST} elements in each other"));
                }
            }
            Event::End(_) => {
                within.pop();
                if let Some((listed, url)) = location.take() {
                    list(listed, url.trim_ascii());
                }
            }
            Event::Text(part) => extend(&mut location, part.as_bytes()),
            Event::CData(part) => extend(&mut location, part.as_bytes()),
            Event::GeneralRef(reference) => {
                let char = reference.resolve_char_ref().ok().flatten();
                let named = resolve_predefined_entity(&reference);
                let text = char.map(String::from).or_else(|| named.map(str::to_owned)).unwrap_or_default();
                extend(&mut location, text.as_bytes());
            }
            Event::Eof if is_sitemap && within.is_empty() => return Ok(()),
            Event::Eof if is_sitemap => return Err("it is cut: elements are not closed".to_owned()),
            Event::Eof => return Err("it is no sitemap: write <urlset> or <sitemapindex>".to_owned()),
            _ => {}
        }
    }
}

fn extend(location: &mut Option<(Listed, Vec<u8>)>, octets: &[u8]) {
    if let Some((_, url)) = location {
        let room = LONGEST.saturating_sub(url.len());
        url.extend_from_slice(&octets[..octets.len().min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn listed(octets: &[u8]) -> (Vec<(Listed, String)>, Result<(), String>) {
        let mut all = Vec::new();
        let read = read(octets, |listed, url| all.push((listed, String::from_utf8_lossy(url).into_owned())));
        (all, read)
    }

    #[test]
    fn pages_and_sitemaps_are_told_apart_and_other_locations_are_neither() {
        let xml = "\u{feff}<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- made -->\n\
            <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:image=\"http://www.google.com/schemas/sitemap-image/1.1\">\
            <url>\n<loc>\n https://a.example/?a=1&amp;b=&#50; </loc><lastmod>2026-05-01</lastmod>\
            <image:image><image:loc>https://a.example/x.png</image:loc></image:image></url>\
            <url><loc><![CDATA[https://a.example/c]]></loc></url><url/></urlset>";
        let (pages, read) = listed(xml.as_bytes());
        assert_eq!(read, Ok(()));
        assert_eq!(
            pages,
            [(Listed::Page, "https://a.example/?a=1&b=2".to_owned()), (Listed::Page, "https://a.example/c".to_owned())]
        );
        let index = "<s:sitemapindex xmlns:s=\"x\"><s:sitemap><s:loc>https://a.example/1.xml</s:loc></s:sitemap></s:sitemapindex>";
        let (sitemaps, read) = listed(index.as_bytes());
        assert_eq!((sitemaps, read), (vec![(Listed::Sitemap, "https://a.example/1.xml".to_owned())], Ok(())));
        let (pages, read) = listed(b"https://a.example/1\r\nhttps://a.example/2\n");
        assert_eq!((pages.len(), read), (2, Ok(())));
    }

    #[test]
    fn packed_ones_are_unpacked_within_a_bound() {
        let pack = |octets: &[u8]| {
            let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packer.write_all(octets).unwrap();
            packer.finish().unwrap()
        };
        let (pages, read) = listed(&pack(b"<urlset><url><loc>https://a.example/</loc></url></urlset>"));
        assert_eq!((pages.len(), read), (1, Ok(())));
        let bomb = listed(&pack(&vec![b' '; MOST_OCTETS + 1])).1;
        assert_eq!(bomb, Err("it is larger than 50 MiB unpacked".to_owned()));
        assert!(listed(b"\x1f\x8bno").1.is_err());
    }

    #[test]
    fn what_is_no_sitemap_is_named() {
        for (octets, want) in [
            (&b"<html><body>404</body></html>"[..], "it is no sitemap"),
            (b"{\"urls\": []}", "neither XML nor a list"),
            (b"<urlset><url><loc>https://a.example/</loc>", "it is cut"),
            (b"<urlset><url></loc></urlset>", "octet"),
        ] {
            let error = listed(octets).1.expect_err("none");
            assert!(error.contains(want), "{error}");
        }
        let deep = "<a>".repeat(100_000);
        assert!(listed(deep.as_bytes()).1.is_err());
        assert_eq!(listed(b"").1, Ok(()), "an empty list");
    }
}
