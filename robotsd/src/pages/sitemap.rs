//! Parses one sitemap (sitemaps.org). A sitemap is a feed, a list with one URL per line, or an XML
//! file that lists pages or further sitemaps. Every kind of sitemap may be compressed.

use std::borrow::Cow;
use std::io::Read;

use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use super::sitemap_text::{LineColumn, SitemapFault, SitemapText};

/// Maximum nesting of elements. Real sitemaps have only a few levels.
const MAX_DEPTH: usize = 32;

/// Maximum length of a location, in bytes; longer locations are truncated.
pub(super) const MAX_LOCATION_LENGTH: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listed {
    Page,
    Sitemap,
}

/// An XML element that lists a page or a sitemap. Elements of other kinds, such as elements for
/// images and videos, are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Located {
    Url,
    Sitemap,
    /// RSS item. The link is the text of a child element.
    Item,
    /// Atom entry. The link is an attribute of a child element.
    Entry,
}

/// Reads a sitemap, and passes each location to `list`.
///
/// # Errors
///
/// Returns an error if the document is not a sitemap or cannot be read to its end. Locations before
/// the error have already been passed to `list`.
pub(crate) fn read_sitemap(bytes: impl Read, mut list: impl FnMut(Listed, &[u8])) -> Result<(), SitemapFault> {
    let mut text = SitemapText::of(bytes)?;
    if text.skip_blank()? == Some(b'<') {
        return read_xml(text, &mut list);
    }
    let mut line = Vec::new();
    loop {
        let place = text.place;
        let Some(line) = text.line(&mut line)? else { return Ok(()) };
        let url = line.trim_ascii();
        match url {
            b"" => {}
            _ if is_url(url) && url.len() <= MAX_LOCATION_LENGTH => {
                check_encoding(&String::from_utf8_lossy(url), None, place)?;
                list(Listed::Page, url);
            }
            _ => {
                return Err(SitemapFault::at(
                    place,
                    &"this line is not a URL: write XML, or a list with one URL per line",
                ));
            }
        }
    }
}

fn is_url(text: &[u8]) -> bool {
    let begins = |scheme: &[u8]| text.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme));
    begins(b"http://") || begins(b"https://")
}

fn read_xml(text: SitemapText<'_>, list: &mut impl FnMut(Listed, &[u8])) -> Result<(), SitemapFault> {
    let mut reader = Reader::from_reader(text);
    let mut buffer = Vec::new();
    let mut open_elements: Vec<Option<Located>> = Vec::new();
    let mut location: Option<(Listed, Vec<u8>)> = None;
    let mut is_sitemap = false;
    // Encoding that the document declares; `None` if it is compatible with UTF-8.
    let mut encoding: Option<String> = None;
    loop {
        buffer.clear();
        reader.get_mut().begin_part();
        let event = reader.read_event_into(&mut buffer);
        let text = reader.get_ref();
        let event = event.map_err(|error| match error {
            quick_xml::Error::Io(error) => SitemapFault::from_io_error(&error),
            error => SitemapFault::at(text.part, &error),
        })?;
        let parent = open_elements.last().copied().flatten();
        if let Event::Empty(element) | Event::Start(element) = &event {
            is_sitemap |= open_elements.is_empty() && is_root(element);
            if let Some(link) = link_of_entry(parent, element) {
                check_encoding(&link, encoding.as_deref(), text.part)?;
                list(Listed::Page, link.trim_ascii().as_bytes());
            }
        }
        match event {
            Event::Decl(_) if text.part != (1, 1) => {
                let advice = "remove the blank line or other text before it (XML 1.0, 2.8)";
                return Err(SitemapFault::at(text.part, &format_args!("<?xml is not at the very beginning: {advice}")));
            }
            Event::Decl(declaration) => {
                let declared = declaration.encoding().and_then(Result::ok);
                encoding = declared.filter(|name| !is_utf8(name)).map(Cow::into_owned);
            }
            Event::Start(element) => {
                location = match (parent, element.local_name().as_ref()) {
                    (Some(Located::Url), "loc") | (Some(Located::Item), "link") => Some((Listed::Page, Vec::new())),
                    (Some(Located::Sitemap), "loc") => Some((Listed::Sitemap, Vec::new())),
                    _ => location,
                };
                open_elements.push(Located::of(&element));
                if open_elements.len() > MAX_DEPTH {
                    let message = format_args!("elements are nested more than {MAX_DEPTH} levels deep");
                    return Err(SitemapFault::at(text.place, &message));
                }
                // The parser stores the names of open elements, so their length must be limited.
                if element.name().as_ref().len() > MAX_LOCATION_LENGTH {
                    let message = format_args!("the name of an element is longer than {MAX_LOCATION_LENGTH} bytes");
                    return Err(SitemapFault::at(text.part, &message));
                }
            }
            Event::End(_) => {
                open_elements.pop();
                if let Some((listed, url)) = location.take() {
                    list(listed, url.trim_ascii());
                }
            }
            Event::Text(part) => add_text(&mut location, &part, encoding.as_deref(), text.part)?,
            Event::CData(part) => add_text(&mut location, &part, encoding.as_deref(), text.part)?,
            Event::GeneralRef(reference) => {
                let char = reference.resolve_char_ref().ok().flatten();
                let named = resolve_predefined_entity(&reference);
                let text = char.map(String::from).or_else(|| named.map(str::to_owned)).unwrap_or_default();
                extend(&mut location, text.as_bytes());
            }
            Event::Eof if !is_sitemap => {
                let message =
                    "the document is not a sitemap: write <urlset> or <sitemapindex>, or give an RSS or Atom feed";
                return Err(SitemapFault::of_document(&message));
            }
            Event::Eof if open_elements.is_empty() => return Ok(()),
            Event::Eof => {
                return Err(SitemapFault::at(
                    text.place,
                    &"the sitemap is incomplete: some of its elements are not closed",
                ));
            }
            _ => {}
        }
    }
}

fn is_utf8(name: &str) -> bool {
    ["utf-8", "utf8", "us-ascii", "ascii"].iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Returns an error if part of a location is not UTF-8, which the protocol requires. Decoding with
/// the wrong encoding would result in a different location. ASCII characters are accepted in every
/// declared encoding.
fn check_encoding(part: &str, declared: Option<&str>, place: LineColumn) -> Result<(), SitemapFault> {
    if part.is_ascii() {
        return Ok(());
    }
    let encoding = match declared {
        Some(name) => format!("in the encoding {name:?}"),
        None if part.contains(char::REPLACEMENT_CHARACTER) => "not in UTF-8".to_owned(),
        None => return Ok(()),
    };
    let message = format!("a location is {encoding}: write the sitemap as UTF-8, which the protocol requires");
    Err(SitemapFault::at(place, &message))
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

/// Returns the page of an Atom entry (RFC 4287, 4.2.7.2): a link whose `rel` is `alternate` or
/// missing. Links with another `rel` lead to enclosures and comments.
fn link_of_entry<'a>(parent: Option<Located>, element: &'a BytesStart<'_>) -> Option<Cow<'a, str>> {
    if parent != Some(Located::Entry) || element.local_name().as_ref() != "link" {
        return None;
    }
    let value = |name| element.try_get_attribute(name).ok().flatten()?.normalized_value(XmlVersion::Implicit1_0).ok();
    let is_page = value("rel").is_none_or(|rel| rel == "alternate");
    value("href").filter(|href| is_page && href.len() <= MAX_LOCATION_LENGTH)
}

fn add_text(
    location: &mut Option<(Listed, Vec<u8>)>,
    part: &str,
    declared: Option<&str>,
    place: LineColumn,
) -> Result<(), SitemapFault> {
    if location.is_some() {
        check_encoding(part, declared, place)?;
        extend(location, part.as_bytes());
    }
    Ok(())
}

fn extend(location: &mut Option<(Listed, Vec<u8>)>, bytes: &[u8]) {
    if let Some((_, url)) = location {
        let room = MAX_LOCATION_LENGTH.saturating_sub(url.len());
        url.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write as _};

    use proptest::prelude::*;

    use super::super::sitemap_text::MAX_PART_BYTES;
    use super::*;
    use crate::pages::sitemap_text::MAX_BYTES;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    fn listed(bytes: impl Read) -> (Vec<(Listed, String)>, Result<(), String>) {
        let mut all = Vec::new();
        let read = read_sitemap(bytes, |listed, url| all.push((listed, String::from_utf8_lossy(url).into_owned())));
        (all, read.map_err(|fault| fault.in_document(&"s.xml")))
    }

    #[test]
    fn pages_and_sitemaps_are_distinguished_and_other_locations_are_ignored() {
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
        let (pages, read) = listed(&b"https://a.example/1\r\nhttps://a.example/2\n"[..]);
        assert_eq!((pages.len(), read), (2, Ok(())));
    }

    #[test]
    fn compressed_sitemaps_are_decompressed_up_to_a_size_limit() {
        let good = packed(b"<urlset><url><loc>https://a.example/</loc></url></urlset>");
        assert_eq!((listed(&good[..]).0.len(), listed(&good[..]).1), (1, Ok(())));
        let bomb = listed(&packed(&vec![b' '; MAX_BYTES + 1])[..]).1;
        assert_eq!(bomb, Err("s.xml: the sitemap is larger than 50 MiB".to_owned()));
        assert_eq!(listed(io::repeat(b' ')).1, bomb, "plain");
        assert!(listed(&b"\x1f\x8bno"[..]).1.is_err());
        // Pages before the error are returned.
        for damaged in [&good[..good.len() - 4], &[&good[..], b"garbage"].concat()] {
            let (pages, read) = listed(damaged);
            let fault = read.expect_err("damaged");
            assert!(
                fault.starts_with("s.xml: the sitemap cannot be decompressed: ") && pages.len() == 1,
                "{fault}, {pages:?}"
            );
        }
    }

    #[test]
    fn the_error_for_an_invalid_sitemap_contains_its_place() {
        for (bytes, want) in [
            (
                &b"<html><body>404</body></html>"[..],
                "s.xml: the document is not a sitemap: write <urlset> or <sitemapindex>",
            ),
            (b"{\"urls\": []}", "s.xml:1:1: this line is not a URL"),
            (b"https://a.example/\r\n\r\n/news/\n", "s.xml:3:1: this line is not a URL"),
            (b"\xFF\xFE<\0u\0", "s.xml: the sitemap is UTF-16: save it as UTF-8"),
            (b"\xFE\xFF\0<", "s.xml: the sitemap is UTF-16: save it as UTF-8"),
            (b"<urlset>\n<url><loc>https://a.example/</loc>\n", "s.xml:3:1: the sitemap is incomplete"),
            (b"\xEF\xBB\xBF\n<urlset>\n <url></loc></urlset>", "s.xml:3:7: ill-formed document"),
            (b"<urlset>\n<url>\n<loc", "s.xml:3:1: syntax error"),
        ] {
            let error = listed(bytes).1.expect_err("none");
            assert!(error.starts_with(want), "{error}");
        }
        assert_eq!(listed(&b""[..]).1, Ok(()), "an empty list");
        assert_eq!(listed(&b"<urlset xmlns=\"x\"/>"[..]).1, Ok(()), "a site without pages");
    }

    #[test]
    fn the_error_for_a_misplaced_xml_declaration_contains_its_place() {
        let rest = "<?xml version=\"1.0\"?><urlset><url><loc>https://a.example/</loc></url></urlset>";
        for (before, place) in
            [("\n", "2:1"), ("\u{feff} \r\n ", "2:2"), ("<!-- made -->", "1:14"), ("<br/>\n", "2:1"), (rest, "1:79")]
        {
            let fault = listed(format!("{before}{rest}").as_bytes()).1.expect_err(before);
            assert!(fault.starts_with(&format!("s.xml:{place}: <?xml is not at the very beginning: ")), "{fault}");
        }
        for before in ["", "\u{feff}"] {
            assert_eq!(listed(format!("{before}{rest}").as_bytes()).1, Ok(()), "{before:?}");
        }
    }

    #[test]
    fn a_location_in_another_encoding_is_refused_but_other_content_may_use_it() {
        let document = |declared: &str, before: &[u8], loc: &[u8]| {
            let declaration = format!("<?xml version=\"1.0\"{declared}?>\n<urlset><url><x>");
            let parts = [declaration.as_bytes(), before, b"</x><loc>https://a.example/", loc, b"</loc></url></urlset>"];
            listed(&parts.concat()[..])
        };
        let (latin, cyrillic) = (" encoding=\"ISO-8859-1\"", " encoding='windows-1251'");
        for (declared, loc, want) in [
            (latin, &b"caf\xE9"[..], "a location is in the encoding \"ISO-8859-1\": write the sitemap as UTF-8"),
            (cyrillic, b"\xF8", "a location is in the encoding \"windows-1251\": write"),
            (cyrillic, b"<![CDATA[\xF8]]>", "a location is in the encoding \"windows-1251\": write"),
            // The bytes are one character in UTF-8, and two characters in the declared encoding.
            (latin, b"caf\xC3\xA9", "a location is in the encoding \"ISO-8859-1\": write"),
            ("", b"caf\xE9", "a location is not in UTF-8: write the sitemap as UTF-8, which the protocol requires"),
            (" encoding=\"UTF-8\"", b"caf\xE9", "a location is not in UTF-8: write"),
        ] {
            let (pages, read) = document(declared, b"", loc);
            let fault = read.expect_err(declared);
            assert!(fault.starts_with("s.xml:2:") && fault.contains(want) && pages.is_empty(), "{fault} {pages:?}");
        }
        for (declared, loc, want) in [
            ("", &b"caf\xC3\xA9"[..], "caf\u{e9}"),
            (" encoding='utf-8'", b"caf\xC3\xA9", "caf\u{e9}"),
            (latin, b"caf%C3%A9", "caf%C3%A9"),
            (latin, b"caf&#233;", "caf\u{e9}"),
            (" encoding=\"UTF-16\"", b"plain", "plain"),
        ] {
            let page = (Listed::Page, format!("https://a.example/{want}"));
            assert_eq!(document(declared, b"caf\xE9", loc), (vec![page], Ok(())), "{declared}");
        }
        let list = listed(&b"https://a.example/1\nhttps://a.example/\xE9\n"[..]);
        assert_eq!(list.0.len(), 1);
        assert!(list.1.is_err_and(|fault| fault.starts_with("s.xml:2:1: a location is not in UTF-8: ")));
        let atom = "<?xml version=\"1.0\" encoding=\"koi8-r\"?><feed><entry><link href=\"https://a.example/\u{448}\"/></entry></feed>";
        assert!(listed(atom.as_bytes()).1.is_err_and(|fault| fault.contains("in the encoding \"koi8-r\"")));
        // These documents have no byte order mark.
        for wide in [&b"<\0?\0x\0"[..], b"\0<\0?\0x", b"h\0t\0"] {
            assert_eq!(listed(wide).1, Err("s.xml: the sitemap is UTF-16: save it as UTF-8".to_owned()));
        }
    }

    #[test]
    fn hostile_documents_cannot_use_much_memory() {
        let deep = listed("<a>".repeat(100_000).as_bytes()).1;
        assert_eq!(deep, Err("s.xml:1:100: elements are nested more than 32 levels deep".to_owned()));
        // Entities that a document declares are not expanded, including external entities.
        let bomb = "<!DOCTYPE urlset [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;\"><!ENTITY f SYSTEM \"file:///etc/hostname\">]>\
            <urlset><url><loc>https://a.example/&b;&f;x</loc></url></urlset>";
        assert_eq!(listed(bomb.as_bytes()), (vec![(Listed::Page, "https://a.example/x".to_owned())], Ok(())));
        let name = "n".repeat(1 << 20);
        let error = listed(format!("<urlset><{name}></{name}x></urlset>").as_bytes()).1;
        assert_eq!(error, Err("s.xml:1:9: the name of an element is longer than 4096 bytes".to_owned()));
        let name = &name[..4000];
        let error = listed(format!("<urlset><{name}></{name}x></urlset>").as_bytes()).1.expect_err("other names");
        assert!(error.len() < 300, "{}", error.len());
        let (pages, read) =
            listed(format!("<urlset><url><loc>https://a.example/{name}</loc></url></urlset>").as_bytes());
        assert_eq!((pages.len(), pages[0].1.len(), read), (1, MAX_LOCATION_LENGTH.min(name.len() + 18), Ok(())));
        // An endless part must not be collected in memory.
        for begin in ["<!--", "<![CDATA[", "<!DOCTYPE urlset [", "<", "<a b=\"", "", "&", "<url><loc>", "<?a "] {
            let endless = listed(format!("<urlset>\n{begin}").as_bytes().chain(io::repeat(b'x')));
            let fault = endless.1.expect_err("no end");
            assert!(fault.ends_with(": a tag, comment or text is longer than 2 MiB"), "{begin}: {fault}");
        }
        let endless = listed(b"https://a.example/".chain(io::repeat(b'x'))).1;
        assert_eq!(endless, Err("s.xml:1:1: a tag, comment or text is longer than 2 MiB".to_owned()));
        let text = "x".repeat(MAX_PART_BYTES - 100);
        assert_eq!(listed(format!("<urlset><url><x>{text}</x></url></urlset>").as_bytes()).1, Ok(()));
    }

    /// A reader that returns pieces of the given lengths, cyclically.
    struct Pieces<'a>(&'a [u8], std::iter::Cycle<std::slice::Iter<'a, usize>>);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let room = buffer.len().min(*self.1.next().unwrap());
            self.0.read(&mut buffer[..room])
        }
    }

    proptest! {
        #[test]
        fn a_sitemap_that_arrives_in_pieces_lists_the_same_locations(
            parts in prop::collection::vec(prop::sample::select(&[
                "<urlset>", "</urlset>", "<sitemapindex>", "<url>", "</url>", "<sitemap>", "</sitemap>", "<loc>", "</loc>", "<rss>", "<item>",
                "<link>", "</link>", "<feed><entry><link href=\"/a&amp;b\"/>", "https://a.example/\u{e9}", "http://", "\n", "\r\n", " ",
                "&amp;", "&#x20AC;", "&", "<!-- - -->", "<!--", "-->", "<![CDATA[", "]]>", "]", "<!DOCTYPE a [<!ENTITY b \"c\">]>", "<?xml", "?>",
                "\u{1f600}", "\u{feff}",
            ][..]), 0..30),
            noise in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
            lengths in prop::collection::vec(1_usize..9, 1..5),
            is_whole in any::<bool>(),
        ) {
            let mut bytes = parts.concat().into_bytes();
            if is_whole {
                bytes = [b"<urlset><url><loc>https://a.example/1</loc>", &bytes[..], b"</url></urlset>"].concat();
            }
            for (at, byte) in noise.iter().filter(|_| !bytes.is_empty()).collect::<Vec<_>>() {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            for bytes in [packed(&bytes), bytes] {
                let pieces = Pieces(&bytes, lengths.iter().cycle());
                prop_assert_eq!(listed(pieces), listed(&bytes[..]));
            }
        }

        #[test]
        fn bytes_that_arrive_in_pieces_are_decoded_in_the_same_way_as_the_whole(
            bytes in prop::collection::vec(prop::sample::select(&b"a\n\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xFF\xED\xA0"[..]), 4..60),
            lengths in prop::collection::vec(1_usize..5, 1..4),
        ) {
            // With this prefix, the input has neither a byte order mark nor a compression header.
            let bytes = [b"text", &bytes[..]].concat();
            let mut text = SitemapText::of(Pieces(&bytes, lengths.iter().cycle())).unwrap();
            let mut read = String::new();
            text.read_to_string(&mut read).unwrap();
            prop_assert_eq!(&read, &String::from_utf8_lossy(&bytes));
            prop_assert_eq!(text.place, crate::input::place(&read, read.len()));
        }
    }

    #[test]
    fn the_page_links_of_feeds_are_listed_and_other_links_are_ignored() {
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
