//! One sitemap: XML with pages or with further sitemaps, a feed, or a text with a URL a line; packed or not (sitemaps.org).

use std::borrow::Cow;
use std::io::Read as _;

use flate2::read::MultiGzDecoder;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use super::sitemap_fault::{MOST_OCTETS, SitemapFault};

/// Elements in each other: no sitemap has more than a handful.
const DEEPEST: usize = 32;

/// Octets of a location that is read.
pub(super) const LONGEST: usize = 4096;

/// What a sitemap lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listed {
    Page,
    Sitemap,
}

/// An element whose location counts. Those of images and videos are in elements of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Located {
    Url,
    Sitemap,
    /// Of RSS: its link is text.
    Item,
    /// Of Atom: its link is an attribute.
    Entry,
}

/// Hands over every location of a sitemap.
///
/// # Errors
///
/// If it is none; what stood before the fault was handed over.
pub(crate) fn read_sitemap(octets: &[u8], mut list: impl FnMut(Listed, &[u8])) -> Result<(), SitemapFault> {
    let octets = unpacked(octets)?;
    let octets = octets.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&octets);
    // Octets of another encoding stand in titles, not in locations.
    let text = String::from_utf8_lossy(octets);
    if text.trim_ascii_start().starts_with('<') {
        return read_xml(&text, &mut list);
    }
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let url = line.trim_ascii();
        match url {
            "" => {}
            _ if is_url(url) && url.len() <= LONGEST => list(Listed::Page, url.as_bytes()),
            _ => return Err(SitemapFault::at(&text, start, &"neither XML nor a URL: a list has a URL a line")),
        }
        start += line.len();
    }
    Ok(())
}

fn is_url(text: &str) -> bool {
    let begins = |scheme: &str| text.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme));
    begins("http://") || begins("https://")
}

fn unpacked(octets: &[u8]) -> Result<Cow<'_, [u8]>, SitemapFault> {
    if !octets.starts_with(&[0x1F, 0x8B]) {
        return Ok(Cow::Borrowed(octets));
    }
    let mut unpacked = Vec::new();
    let read = MultiGzDecoder::new(octets).take(MOST_OCTETS as u64 + 1).read_to_end(&mut unpacked);
    read.map_err(|error| SitemapFault::of_document(&format_args!("it cannot be unpacked: {error}")))?;
    if unpacked.len() > MOST_OCTETS {
        return Err(SitemapFault::TooLarge);
    }
    Ok(Cow::Owned(unpacked))
}

fn read_xml(text: &str, list: &mut impl FnMut(Listed, &[u8])) -> Result<(), SitemapFault> {
    let mut reader = Reader::from_str(text);
    let mut within: Vec<Option<Located>> = Vec::new();
    let mut location: Option<(Listed, Vec<u8>)> = None;
    let mut is_sitemap = false;
    loop {
        let at = |octet: u64| usize::try_from(octet).unwrap_or(text.len());
        let event = reader.read_event().map_err(|error| SitemapFault::at(text, at(reader.error_position()), &error))?;
        let parent = within.last().copied().flatten();
        match event {
            Event::Empty(element) => {
                is_sitemap |= within.is_empty() && is_root(&element);
                if let Some(link) = link_of_entry(parent, &element) {
                    list(Listed::Page, link.trim_ascii().as_bytes());
                }
            }
            Event::Start(element) => {
                is_sitemap |= within.is_empty() && is_root(&element);
                if let Some(link) = link_of_entry(parent, &element) {
                    list(Listed::Page, link.trim_ascii().as_bytes());
                }
                location = match (parent, element.local_name().as_ref()) {
                    (Some(Located::Url), "loc") | (Some(Located::Item), "link") => Some((Listed::Page, Vec::new())),
                    (Some(Located::Sitemap), "loc") => Some((Listed::Sitemap, Vec::new())),
                    _ => location,
                };
                within.push(Located::of(&element));
                if within.len() > DEEPEST {
                    let message = format_args!("it has more than {DEEPEST} elements in each other");
                    return Err(SitemapFault::at(text, at(reader.buffer_position()), &message));
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
            Event::Eof if !is_sitemap => {
                let message = "it is no sitemap: write <urlset> or <sitemapindex>, or name a feed of RSS or Atom";
                return Err(SitemapFault::of_document(&message));
            }
            Event::Eof if within.is_empty() => return Ok(()),
            Event::Eof => return Err(SitemapFault::at(text, text.len(), &"it is cut: elements are not closed")),
            _ => {}
        }
    }
}

impl Located {
    fn of(element: &BytesStart<'_>) -> Option<Self> {
        match element.local_name().as_ref() {
            "url" => Some(Self::Url),
            "sitemap" => Some(Self::Sitemap),
            "item" => Some(Self::Item),
            "entry" => Some(Self::Entry),
            _ => None,
        }
    }
}

fn is_root(element: &BytesStart<'_>) -> bool {
    matches!(element.local_name().as_ref(), "urlset" | "sitemapindex" | "rss" | "feed")
}

/// The page of an entry of Atom (RFC 4287, 4.2.7.2): a link without `rel` is `alternate`; others lead to enclosures and comments.
fn link_of_entry<'a>(parent: Option<Located>, element: &'a BytesStart<'_>) -> Option<Cow<'a, str>> {
    if parent != Some(Located::Entry) || element.local_name().as_ref() != "link" {
        return None;
    }
    let value = |name| element.try_get_attribute(name).ok().flatten()?.normalized_value(XmlVersion::Implicit1_0).ok();
    let is_page = value("rel").is_none_or(|rel| rel == "alternate");
    value("href").filter(|href| is_page && href.len() <= LONGEST)
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
        let read = read_sitemap(octets, |listed, url| all.push((listed, String::from_utf8_lossy(url).into_owned())));
        (all, read.map_err(|fault| fault.in_document(&"s.xml")))
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
        assert_eq!(bomb, Err("s.xml: it is larger than 50 MiB".to_owned()));
        assert!(listed(b"\x1f\x8bno").1.is_err());
    }

    #[test]
    fn what_is_no_sitemap_is_named_with_its_place() {
        for (octets, want) in [
            (&b"<html><body>404</body></html>"[..], "s.xml: it is no sitemap: write <urlset> or <sitemapindex>"),
            (b"{\"urls\": []}", "s.xml:1:1: neither XML nor a URL"),
            (b"https://a.example/\r\n\r\n/news/\n", "s.xml:3:1: neither XML nor a URL"),
            (b"<urlset>\n<url><loc>https://a.example/</loc>\n", "s.xml:3:1: it is cut"),
            (b"\xEF\xBB\xBF\n<urlset>\n <url></loc></urlset>", "s.xml:3:7: ill-formed document"),
            (b"<urlset>\n<url>\n<loc", "s.xml:3:1: syntax error"),
        ] {
            let error = listed(octets).1.expect_err("none");
            assert!(error.starts_with(want), "{error}");
        }
        assert_eq!(listed(b"").1, Ok(()), "an empty list");
        assert_eq!(listed(b"<urlset xmlns=\"x\"/>").1, Ok(()), "a site without pages");
    }

    #[test]
    fn a_document_that_would_cost_much_costs_little() {
        let deep = listed("<a>".repeat(100_000).as_bytes()).1;
        assert_eq!(deep, Err("s.xml:1:100: it has more than 32 elements in each other".to_owned()));
        // Entities that a document declares are not expanded, from a file neither.
        let bomb = "<!DOCTYPE urlset [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;\"><!ENTITY f SYSTEM \"file:///etc/hostname\">]>\
            <urlset><url><loc>https://a.example/&b;&f;x</loc></url></urlset>";
        assert_eq!(listed(bomb.as_bytes()), (vec![(Listed::Page, "https://a.example/x".to_owned())], Ok(())));
        let name = "n".repeat(1 << 20);
        let error = listed(format!("<urlset><{name}></{name}x></urlset>").as_bytes()).1.expect_err("other names");
        assert!(error.len() < 300, "{}", error.len());
        let (pages, read) =
            listed(format!("<urlset><url><loc>https://a.example/{name}</loc></url></urlset>").as_bytes());
        assert_eq!((pages.len(), pages[0].1.len(), read), (1, LONGEST, Ok(())));
    }

    #[test]
    fn the_pages_of_feeds_count_and_their_other_links_do_not() {
        let rss = "<rss version=\"2.0\" xmlns:atom=\"http://www.w3.org/2005/Atom\"><channel><link>https://a.example/</link>\
            <atom:link href=\"https://a.example/feed\" rel=\"self\"/><item><title>x</title><link>https://a.example/1?a&amp;b</link>\
            <guid>https://a.example/?p=1</guid><enclosure url=\"https://a.example/1.mp3\"/></item></channel></rss>";
        assert_eq!(listed(rss.as_bytes()), (vec![(Listed::Page, "https://a.example/1?a&b".to_owned())], Ok(())));
        let atom = "<feed xmlns=\"http://www.w3.org/2005/Atom\"><link href=\"https://a.example/\"/><entry>\
            <link rel=\"alternate\" href=\" https://a.example/1?a&amp;b\"/><link rel=\"edit\" href=\"https://a.example/edit\"/></entry>\
            <entry><link href='https://a.example/2'></link><source><link href=\"https://b.example/\"/></source></entry></feed>";
        let pages = ["https://a.example/1?a&b", "https://a.example/2"].map(|url| (Listed::Page, url.to_owned()));
        assert_eq!(listed(atom.as_bytes()), (pages.to_vec(), Ok(())));
    }
}
