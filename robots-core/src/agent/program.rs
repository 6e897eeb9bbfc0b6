//! Programs that people use on telephones, televisions and computers: applications, players and
//! readers.
//!
//! Headers of many programs contain a URL of the maker, just as headers of crawlers contain a URL
//! of the operator. Some headers also contain the syllable "bot", which suggests a crawler, as in
//! `CUBOT` (a maker of telephones) and `BOTECH` (a maker of televisions). So in the header of such
//! a program, neither a URL alone nor the syllable alone declares a crawler.

use super::header::{Header, Marks, Part, Word};
use super::name_index::{Kinds, ends_with, is_forge};
use super::purpose::{crawls, ends_as_program, is_media_host};
use crate::rules::starts_with;

pub(super) fn has_contact(part: &Part) -> bool {
    part.marks.has(Marks::CONTACT) || part.marks.has(Marks::CONTACT_FOLLOWS)
}

/// Returns `false` if the header looks like the header of a browser that calls itself Mozilla or
/// Opera.
fn is_plain(header: &Header<'_>) -> bool {
    let Some(first) = header.words().next() else { return true };
    let costume = || [&b"mozilla"[..], b"opera"].iter().any(|name| first.text(header.bytes).eq_ignore_ascii_case(name));
    let may_be = header.browser.is_none_or(|part| part == 0 && first.kinds.has(Kinds::PLAIN_BROWSER));
    may_be && !costume()
}

/// Reports whether the header is from a telephone, a television or an application on such a device.
pub(super) fn is_on_device(header: &Header<'_>) -> bool {
    let kinds = header.kinds;
    let leads_there = || {
        let first = header.words().next().map_or(&b""[..], |first| first.text(header.bytes));
        ends_with(first, b"-ios") || ends_with(first, b"-android")
    };
    kinds.has(Kinds::RUNTIME.with(Kinds::APPLIANCE).with(Kinds::WEB_VIEW))
        || is_plain(header) && (kinds.has(Kinds::APP) || leads_there())
}

/// Reports whether the header is from the web view of an application on an iPhone, iPad or iPod. A
/// web view does not send the word `Safari`, which browsers on these devices send.
pub(super) fn is_in_web_view(header: &Header<'_>) -> bool {
    header.browser.is_some()
        && [&b"(iphone"[..], b"(ipad", b"(ipod"].iter().any(|device| header.contains(device))
        && !header.contains(b"safari/")
}

/// Reports whether the header is from a program, other than a browser, on a person's computer.
pub(super) fn is_desktop_program(header: &Header<'_>) -> bool {
    header.kinds.has(Kinds::PERSONAL) && !header.kinds.has(Kinds::ENGINE) && is_plain(header)
}

/// Reports whether a part of a device's header declares a crawler. The part must have a contact. A
/// contact alone is not enough, because it may be a URL of the application's maker. So the part
/// must also follow `compatible;`, or the header must have a contact in a form that crawlers use
/// (`has_crawlers_contact`).
pub(super) fn declares_on_device(part: &Part, has_crawlers_contact: impl FnOnce() -> bool) -> bool {
    has_contact(part) && (part.marks.has(Marks::COMPATIBLE) || has_crawlers_contact())
}

/// Reports whether the contact in a part belongs to the maker of a program. `suggests_viewer` is
/// true if a word of the header suggests a player, a reader or a browser.
pub(super) fn is_contact_of_maker(header: &Header<'_>, part: &Part, suggests_viewer: bool) -> bool {
    let programs = Kinds::PROGRAM.with(Kinds::PLAIN_BROWSER);
    if !is_plain(header) {
        return header.words_of(part).iter().any(|word| word.kinds.has(programs));
    }
    // Desktop programs name their platform. Headers of some crawlers also name a platform, but only
    // headers of crawlers have a contact in a form that `has_crawlers_contact` accepts.
    let leads = header.words().next().is_some_and(|first| first.kinds.has(programs)) || is_program(header);
    let on_desk = suggests_viewer || header.kinds.has(Kinds::PLATFORM);
    leads || is_on_device(header) || is_named_like_program(header) || on_desk && !has_crawlers_contact(header)
}

/// Reports whether the header is from a tool that people run on their own machines. Headers of such
/// tools contain the name of a known program, a runtime (`go1.20.5`, `ruby3.1.4`) or a machine
/// (`linux/amd64`, `x86_64-pc-linux-gnu`).
pub(super) fn is_program(header: &Header<'_>) -> bool {
    let is_known = |part: &Part| header.product_lead(part).is_some_and(|lead| lead.kinds.has(Kinds::PROGRAM));
    header
        .parts
        .iter()
        .any(|part| if part.is_comment() { names_runtime_or_machine(header, part) } else { is_known(part) })
}

/// Reports whether a part names a runtime or a machine.
fn names_runtime_or_machine(header: &Header<'_>, part: &Part) -> bool {
    let mut system = false;
    header.words_of(part).iter().any(|word| {
        let text = word.text(header.bytes);
        let rest = |start: &[u8]| starts_with(text, start).then(|| &text[start.len()..]);
        let is_runtime = rest(b"go1.").or_else(|| rest(b"ruby-")).or_else(|| rest(b"ruby"));
        let is_machine =
            [&b"x86_64-"[..], b"aarch64-", b"arm64-", b"i686-"].iter().any(|start| starts_with(text, start));
        let is_pair = system && [&b"amd64"[..], b"arm64", b"386", b"arm"].contains(&text);
        system = word.kinds.has(Kinds::PLATFORM);
        is_runtime.and_then(<[u8]>::first).is_some_and(u8::is_ascii_digit) || is_machine || is_pair
    })
}

/// Reports whether the header has contacts, and all of them are URLs of the program's source code.
/// The URL in a crawler's header is usually an ordinary web page.
pub(super) fn has_only_source_code_urls(header: &Header<'_>) -> bool {
    let mut contacts = header.parts.iter().filter(|part| part.marks.has(Marks::CONTACT)).peekable();
    contacts.peek().is_some() && contacts.all(|part| is_source_code_url(header.address(part)))
}

/// Reports whether a URL leads to a project on a site for source code ([`is_forge`]). Returns
/// `false` if the project's name suggests a crawler.
fn is_source_code_url(address: &[u8]) -> bool {
    let project = address.strip_suffix(b"/").unwrap_or(address).rsplit(|byte| *byte == b'/').next();
    is_forge(host(address)) && !project.is_some_and(crawls)
}

/// Reports whether the header has contacts, and all of them are home pages of versioned products,
/// as in `HashiCorp Terraform/1.9.0 (+https://www.terraform.io)`. The URL in a crawler's header
/// usually leads to a page about the crawler, or to a site that is not named like the crawler.
/// Returns `false` if the header contains `search`, because a search engine's crawler may be named
/// like the search engine's home page.
pub(super) fn has_home_page_of_product(header: &Header<'_>) -> bool {
    let contacts = || header.parts.iter().filter(|part| part.marks.has(Marks::CONTACT));
    (1..=MAX_HOME_PAGES).contains(&contacts().take(MAX_HOME_PAGES + 1).count())
        && is_plain(header)
        && !header.contains(b"search")
        && contacts().all(|part| is_home_page(header, part))
}

/// Maximum number of contacts in a header that [`has_home_page_of_product`] accepts. Each URL is
/// compared with all products of the header, so a crafted header with thousands of URLs would
/// otherwise take too long.
const MAX_HOME_PAGES: usize = 8;

/// Reports whether a part is a comment such as `(+https://www.terraform.io)`: a `+` and a URL with
/// no path except `/`, whose host is named like a versioned product in the header. Returns `false`
/// for hosts of audio services, because the clients of these services are treated as feed fetchers.
fn is_home_page(header: &Header<'_>, part: &Part) -> bool {
    let address = header.address(part);
    let host = host(address);
    let page = &address[start_of_host(address) + host.len()..];
    let is_marked = part.address.start.checked_sub(1).is_some_and(|before| header.bytes[before] == b'+');
    let site = if starts_with(host, b"www.") { &host[4..] } else { host };
    let name = &site[..memchr::memchr(b'.', site).unwrap_or(0)];
    let is_named = |word: &Word| word.may_name_a_crawler() && name.eq_ignore_ascii_case(word.text(header.bytes));
    let mut products = header.parts.iter().filter(|part| part.marks.has(Marks::VERSIONED));
    part.is_comment()
        && is_marked
        && matches!(page, b"" | b"/")
        && !crawls(host)
        && !is_media_host(host)
        && header.parts.iter().filter(|other| other.comment == part.comment).count() == 1
        && products.any(|part| header.words_of(part).iter().any(is_named))
}

/// Reports whether the name of the leading product ends with `player` or a similar word, as in
/// `MediaPlayer/1.0 (+https://…)`, and the header does not contain the URL of a page about a
/// crawler.
fn is_named_like_program(header: &Header<'_>) -> bool {
    let leading = header.parts.iter().find(|part| header.names_product(part));
    leading.is_some_and(|part| ends_as_program(header.product(part).as_bytes())) && !has_page_of_crawler(header)
}

pub(super) fn has_only_media_urls(header: &Header<'_>) -> bool {
    let mut addresses = header.parts.iter().map(|part| header.address(part)).filter(|text| !text.is_empty()).peekable();
    addresses.peek().is_some() && addresses.all(|text| is_media_host(host(text))) && !has_page_of_crawler(header)
}

/// Reports whether the header has a contact in a form that crawlers use: an e-mail address,
/// `+http://…`, or the URL of a page about a crawler.
pub(super) fn has_crawlers_contact(header: &Header<'_>) -> bool {
    let marked = |part: &Part| {
        part.address.start.checked_sub(1).is_some_and(|before| header.bytes[before] == b'+')
            || header.address(part).is_empty()
    };
    header.parts.iter().filter(|part| part.marks.has(Marks::CONTACT)).any(marked) || has_page_of_crawler(header)
}

/// Reports whether the header contains the URL of a page about a crawler, such as
/// `https://example.com/about/bot.html`.
fn has_page_of_crawler(header: &Header<'_>) -> bool {
    header.parts.iter().any(|part| {
        let address = header.address(part);
        crawls(&address[start_of_host(address) + host(address).len()..])
    })
}

/// Returns the host in a URL, with its port, if any. The URL may have no scheme.
fn host(address: &[u8]) -> &[u8] {
    let rest = &address[start_of_host(address)..];
    &rest[..memchr::memchr(b'/', rest).unwrap_or(rest.len())]
}

fn start_of_host(address: &[u8]) -> usize {
    memchr::memmem::find(address, b"//").map_or(0, |slashes| slashes + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(text: &str) -> Header<'_> {
        Header::read(text.as_bytes())
    }

    fn of_maker(text: &str) -> bool {
        let header = header(text);
        let part = header.parts.iter().find(|part| has_contact(part)).unwrap();
        is_contact_of_maker(&header, part, false)
    }

    #[test]
    fn devices_are_recognized_by_their_platform_or_their_product() {
        let devices = "Spice_M-5365/MAUI/11A1046MP;INDEX/004;SPICE | HbbTV/1.1.1 (;BOTECH;;;;) | \
            SpiderSolitaire/3 CFNetwork/1399 Darwin/22 | iRobot/3.1 (iPhone; iOS 13.3; Scale/2.00) | \
            Podbean/Android App 8.3.2 | Fetch-iOS/25";
        for device in devices.split(" | ") {
            assert!(is_on_device(&header(device)), "{device}");
        }
        let browser = "Mozilla/5.0 (iPhone; CPU iPhone OS 15_2 like Mac OS X) AppleWebKit/605 Mobile/15E148 FooBot/1";
        for other in ["FooBot/1.0 (Linux; x86_64)", "FooBot/1.0", "", browser] {
            assert!(!is_on_device(&header(other)), "{other}");
        }
    }

    #[test]
    fn a_url_belongs_to_the_maker_in_a_programs_header_but_not_in_a_crawlers() {
        let programs = "Podbean/Android App 8.3.2 (http://podbean.example) | \
            Fountain/0.2.6 iOS https://fountain.example | XBMC/11.0 Git:2012 (http://xbmc.example) | \
            gPodder/3.10.1 (+http://gpodder.example/) Linux | Foo/1.0 (Windows NT 10.0; http://foo.example) | \
            Lynx/2.8 (http://lynx.example) | Mozilla/5.0 (X11; Linux) WebKit/531 uzbl (http://uzbl.example)";
        for program in programs.split(" | ") {
            assert!(of_maker(program), "{program}");
        }
        let crawlers = "Foo/1.0 (http://foo.example) | Foo/1.0 (Linux; +http://foo.example) | \
            Foo/1.0 (Linux; foo@foo.example) | Foo/1.0 (Linux; http://foo.example/about/bot.html) | \
            Mozilla/5.0 (X11; Linux) Gecko/1 Foo/1.0 (http://foo.example)";
        for crawler in crawlers.split(" | ") {
            assert!(!of_maker(crawler), "{crawler}");
        }
        // A word such as `bot` counts in the path of the URL, but not in the host name.
        assert!(of_maker("Foo/1.0 (Linux; http://bot.example)"));
    }

    #[test]
    fn a_plain_home_page_named_after_the_product_identifies_a_program() {
        for program in [
            "HashiCorp Terraform/1.9.0 (+https://www.terraform.io)",
            "Foo/1.0 (+http://foo.example/)",
            "Foo/1.0 (+http://WWW.foo.co.example)",
            "Foo Bar/2 (+https://bar.example) Baz/1.0",
        ] {
            assert!(has_home_page_of_product(&header(program)), "{program}");
        }
        for other in [
            "Foo/1.0",
            "Foo/1.0 (http://foo.example)",
            "Foo (+http://foo.example)",
            "Foo/1.0 (+http://bar.example)",
            "Foo/1.0 (+http://foo.example/about)",
            "Foo/1.0 (+http://foo.example; foo@foo.example)",
            "Foo/1.0 (+http://foo.example; +http://bar.example)",
            "Foo/1.0 (+http://crawler.foo.example)",
            "Foo/1.0 (+http://foo.fm)",
            "Foo/1.0 +http://foo.example",
            "Foo/1.0; +http://foo.example",
            // The products of the next two headers are search engines. In the headers after them,
            // the host is not named after a product, the comment contains other words, or the
            // header is from a browser.
            "Foo-Search/0.86 (+http://www.foo-search.example)",
            "Foo/1.0 (image search) (+http://foo.example)",
            "Foo/1.0 (+http://help.foo.example)",
            "Foo/1.0 (+http://example.foo)",
            "Foo/1.0 (+http://foo)",
            "Foo/1.0 (made with Go; +http://foo.example)",
            "Example/1.0 (+http://foo.example)",
            "Mozilla/5.0 (X11; Linux) Gecko/1 Foo/1.0 (+http://foo.example)",
        ] {
            assert!(!has_home_page_of_product(&header(other)), "{other}");
        }
    }

    #[test]
    fn a_crawler_in_the_header_of_a_device_declares_itself_with_a_contact() {
        let declares = |text: &str| {
            let header = header(text);
            header.parts.iter().any(|part| declares_on_device(part, || has_crawlers_contact(&header)))
        };
        assert!(declares("DoCoMo/2.0 N902iS(c100;TB;W24H12)(compatible; foo-crawler; http://foo.example/)"));
        assert!(declares("ChatBot/5 (+https://x.test) CFNetwork/1399 Darwin/22"));
        assert!(!declares("ChatBot/5 CFNetwork/1399 Darwin/22"));
        assert!(!declares("ChatBot Android/5 https://chatbot.example"));
    }
}
