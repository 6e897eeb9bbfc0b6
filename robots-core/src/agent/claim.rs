//! Determines the class, the category and the product that an unregistered agent claims, from the
//! words of its header.

use std::cell::OnceCell;
use std::ops::Range;

use super::crawler::{Category, Class};
use super::header::{Header, Marks, Part, Word, WordRole};
use super::name_index::{Kinds, is_host};
use super::program::{
    declares_on_device, has_contact, has_crawlers_contact, has_home_page_of_product, has_only_media_urls,
    has_only_source_code_urls, is_contact_of_maker, is_desktop_program, is_in_web_view, is_on_device, is_program,
};
use super::purpose::{Purpose, continues_with_other_word, crawls, is_address_of_service, is_media_host, purposes};

#[derive(Debug)]
pub(super) struct ClaimReader<'a, 'h> {
    header: &'a Header<'h>,
    /// The purposes that words of the header suggest, each with the index of its part, in the order
    /// of the parts. A purpose is stored only once per part, because a part of a crafted header may
    /// contain thousands of words that suggest the same purpose.
    purposes: Vec<(usize, Purpose)>,
    is_in_web_view: OnceCell<bool>,
    is_desktop_program: OnceCell<bool>,
    has_crawlers_contact: OnceCell<bool>,
}

#[derive(Debug)]
pub(super) struct Claim {
    pub(super) class: Class,
    pub(super) category: Option<Category>,
    pub(super) product: Option<String>,
}

impl<'a, 'h> ClaimReader<'a, 'h> {
    pub(super) fn of(header: &'a Header<'h>) -> Self {
        let (is_in_web_view, is_desktop_program, has_crawlers_contact) = Default::default();
        let mut reader =
            Self { header, purposes: Vec::new(), is_in_web_view, is_desktop_program, has_crawlers_contact };
        for (at, part) in header.parts.iter().enumerate() {
            if is_address_of_service(header.address(part)) {
                reader.add(at, Purpose::Serves);
            }
            // Device models, and words that all browsers send, suggest no purpose.
            if part.marks.has(Marks::OWN_WORD) && !part.marks.has(Marks::MODEL) {
                reader.search(at, part);
            }
        }
        reader
    }

    fn search(&mut self, at: usize, part: &Part) {
        let words = self.header.words_of(part);
        let (Some(first), Some(last)) = (words.first(), words.last()) else { return };
        let start = first.start;
        let mut words = words.iter().peekable();
        for (place, purpose) in purposes(&self.header.bytes[start..last.end]) {
            while words.next_if(|word| word.end <= start + place).is_some() {}
            let Some(word) = words.peek().filter(|word| word.may_name_a_crawler()) else { continue };
            // In names of known programs, such as `urlgrabber` and `libfetch`, the pieces `url` and
            // `fetch` do not suggest a purpose.
            let is_known = word.kinds.has(Kinds::LIBRARY.with(Kinds::PROGRAM)) && !word.kinds.has(Kinds::GENERIC);
            if !is_known || !matches!(purpose, Purpose::Collects(_)) {
                self.add(at, purpose);
            }
        }
    }

    fn add(&mut self, at: usize, purpose: Purpose) {
        if !self.suggests(at, |known| known == purpose) {
            self.purposes.push((at, purpose));
        }
    }

    /// Reports whether a word of the part at this index suggests a purpose that `is_sought`
    /// accepts.
    fn suggests(&self, at: usize, is_sought: impl Fn(Purpose) -> bool) -> bool {
        let first = self.purposes.partition_point(|(part, _)| *part < at);
        let mut own = self.purposes[first..].iter().take_while(|(part, _)| *part == at);
        own.any(|(_, purpose)| is_sought(*purpose))
    }

    /// Returns the parts that may contain the agent's name. In a browser's header, only parts
    /// before [`Header::browser`] and parts that declare a product may contain this name.
    pub(super) fn declared_parts(&self) -> impl Iterator<Item = &'a Part> {
        let header = self.header;
        header.parts.iter().enumerate().filter(|(at, _)| self.may_contain_name(*at)).map(|(_, part)| part)
    }

    /// Returns the first word that may be the agent's name. Callers accept an everyday word as a
    /// name only if it is this first word.
    pub(super) fn leading_word(&self) -> Option<&'a Word> {
        let header = self.header;
        let names = |word: &Word| word.may_name_a_crawler() || word.role == WordRole::Registered;
        let mut first = header.words().find(|word| names(word))?;
        if first.kinds.is_common_to_browsers() && first.role != WordRole::Registered {
            let compatible = header.parts.iter().filter(|part| part.marks.has(Marks::COMPATIBLE));
            let mut words = compatible.flat_map(|part| header.words_of(part));
            first = words.find(|word| names(word) && !is_compatible(header, word))?;
        }
        if first.may_name_a_crawler() { Some(first) } else { None }
    }

    pub(super) fn claim(&self) -> Claim {
        let header = self.header;
        let nothing = |class| Claim { class, category: None, product: None };
        if header.is_blank() {
            return nothing(Class::Empty);
        }
        let evidence = self.evidence();
        if header.kinds.has(Kinds::HEADLESS) && evidence.crawls.is_none() {
            let product = header.words().find(|word| word.kinds.has(Kinds::HEADLESS));
            let product = product.map(|word| String::from_utf8_lossy(word.text(header.bytes)).into_owned());
            return Claim { class: Class::Headless, category: None, product };
        }
        evidence.claim(header).unwrap_or_else(|| nothing(class_without_claim(header)))
    }

    /// Reports whether the part at this index may contain the agent's name.
    fn may_contain_name(&self, at: usize) -> bool {
        self.header.browser.is_none_or(|browser| at < browser) || self.declares_product(at)
    }

    /// Reports whether a part of a browser's header declares a product: the part follows
    /// `compatible;`, contains or precedes a contact, or calls itself a crawler. In comments with
    /// `MSIE` or `Konqueror`, a part must call itself a crawler, because toolbars add their
    /// addresses to such comments.
    fn declares_product(&self, at: usize) -> bool {
        let marks = self.header.parts[at].marks;
        let points = marks.has(Marks::CONTACT) || marks.has(Marks::CONTACT_FOLLOWS) || marks.has(Marks::COMPATIBLE);
        !marks.has(Marks::MODEL) && (points && !marks.has(Marks::OLD_BROWSER) || self.crawls(at))
    }

    fn crawls(&self, at: usize) -> bool {
        self.suggests(at, |purpose| matches!(purpose, Purpose::Crawls | Purpose::IsBot))
    }

    fn evidence(&self) -> DeclaredEvidence<'a> {
        let header = self.header;
        let on_device = is_on_device(header);
        let mut evidence =
            DeclaredEvidence { on_device, contact_part: self.part_with_contact(), ..DeclaredEvidence::default() };
        for (at, purpose) in &self.purposes {
            let (at, part) = (*at, &header.parts[*at]);
            match purpose {
                Purpose::Crawls | Purpose::IsBot if !self.names_application(at, on_device) => {
                    evidence.crawls.get_or_insert(part);
                    evidence.is_crawler |= *purpose == Purpose::Crawls;
                }
                Purpose::Presents => evidence.suggests_viewer = true,
                // `Archive Viewer/2.0 (Mac OS X)` is a program on a person's computer. So the word
                // `Archive` suggests the program's category, but does not declare a crawler.
                Purpose::Collects(category) if self.is_desktop_program() && !has_contact(part) => {
                    evidence.category = evidence.category.or(*category);
                }
                Purpose::Collects(category) if self.may_contain_name(at) => {
                    evidence.collects.get_or_insert(part);
                    evidence.category = evidence.category.or(*category);
                }
                Purpose::Serves if self.may_contain_name(at) => {
                    evidence.serves.get_or_insert(part);
                }
                _ => {}
            }
        }
        evidence
    }

    /// Reports whether a part with a word such as "spider" or "bot" names an application or a
    /// toolbar, not a crawler.
    fn names_application(&self, at: usize, on_device: bool) -> bool {
        let header = self.header;
        let part = &header.parts[at];
        // Phones send headers such as `SpiderSolitaire/3 CFNetwork/1399` and `CUBOT_X9 MAUI/11A`.
        let is_in_web_view = || *self.is_in_web_view.get_or_init(|| is_in_web_view(header));
        let has_crawlers_contact = || *self.has_crawlers_contact.get_or_init(|| has_crawlers_contact(header));
        if (on_device || is_in_web_view()) && !declares_on_device(part, has_crawlers_contact) {
            return true;
        }
        // Desktop programs send headers such as `SpiderOak/7.2 (Windows)`.
        if self.is_desktop_program() && !has_contact(part) && continues_with_other_word(header.product(part).as_bytes())
        {
            return true;
        }
        // The comment of an old browser may name a toolbar, such as `Bot Toolbar 2`.
        part.marks.has(Marks::OLD_BROWSER) && self.suggests(at, |purpose| purpose == Purpose::Presents)
    }

    fn is_desktop_program(&self) -> bool {
        *self.is_desktop_program.get_or_init(|| is_desktop_program(self.header))
    }

    /// Returns the first part with a product and a contact. If there is no such part, returns the
    /// first part with a contact. Ignores contacts of programs that are not crawlers, such as
    /// toolbars.
    fn part_with_contact(&self) -> Option<&'a Part> {
        let header = self.header;
        let of_program = has_only_source_code_urls(header) || has_home_page_of_product(header);
        let mut first = None;
        for part in &header.parts {
            let is_of_program = part.marks.has(Marks::OLD_BROWSER) || of_program && !part.marks.has(Marks::COMPATIBLE);
            if !has_contact(part) || is_of_program {
                continue;
            }
            if header.names_product(part) {
                return Some(part);
            }
            first.get_or_insert(part);
        }
        first
    }
}

#[derive(Default)]
struct DeclaredEvidence<'a> {
    serves: Option<&'a Part>,
    crawls: Option<&'a Part>,
    /// Whether a word contains `crawl`, `spider` or a similar string; `bot` alone does not count. A
    /// client with such a word is a crawler even if other words suggest another purpose.
    is_crawler: bool,
    collects: Option<&'a Part>,
    contact_part: Option<&'a Part>,
    category: Option<Category>,
    /// Whether a word suggests a media player, a feed reader or a browser.
    suggests_viewer: bool,
    on_device: bool,
}

impl<'a> DeclaredEvidence<'a> {
    fn claim(&self, header: &'a Header<'_>) -> Option<Claim> {
        if let (Some(part), false) = (self.serves, self.is_crawler) {
            let category = Some(Category::Infrastructure);
            return Some(Claim { class: Class::Infrastructure, category, product: self.product(header, part) });
        }
        let part = self.claiming_part(header)?;
        let mut category = if self.is_crawler { None } else { self.category };
        if category.is_none() && self.crawls.is_none() && is_for_media(header, part) {
            category = Some(Category::Feed);
        }
        Some(Claim { class: Class::Declared, category, product: self.product(header, part) })
    }

    fn claiming_part(&self, header: &'a Header<'_>) -> Option<&'a Part> {
        if self.crawls.is_some() {
            return self.crawls;
        }
        let is_app = self.on_device || header.kinds.has(Kinds::APP);
        let leads_library = header.words().next().is_some_and(|first| first.kinds.has(Kinds::LIBRARY));
        let is_contact_of_maker = |part: &Part| is_contact_of_maker(header, part, self.suggests_viewer);
        if let Some(part) = self.contact_part
            && (!leads_library || part.is_comment())
            && !is_contact_of_maker(part)
        {
            return Some(part);
        }
        if self.collects.is_some() && !is_app && !leads_library && !is_program(header) {
            return self.collects;
        }
        if let Some(part) = named_after_host(header)
            && !is_app
            && !is_contact_of_maker(part)
        {
            return Some(part);
        }
        if self.suggests_viewer { None } else { sole_product(header) }
    }

    fn product(&self, header: &'a Header<'_>, part: &'a Part) -> Option<String> {
        let product = header.product(self.name(header, part));
        if product.is_empty() { None } else { Some(product) }
    }
}

/// Reports whether the header has URLs and all of them belong to audio services, or the part's
/// product is named after the host of an audio service. The client of an audio service fetches
/// feeds or streams. The URLs are ignored if one of them leads to a page about a crawler.
fn is_for_media(header: &Header<'_>, part: &Part) -> bool {
    let named = header.product(part);
    has_only_media_urls(header) || is_host(named.as_bytes()) && is_media_host(named.as_bytes())
}

impl DeclaredEvidence<'_> {
    /// Returns the part that contains the name of the crawler that `part` declares. Returns `part`
    /// itself if it is outside comments and calls itself a crawler. Otherwise usually returns the
    /// part with the leading product. Skips parts that begin with a library's name or an everyday
    /// word.
    fn name<'a>(&self, header: &'a Header<'_>, part: &'a Part) -> &'a Part {
        let everyday = Kinds::LIBRARY.with(Kinds::GENERIC);
        let lead = |part: &Part| header.product_lead(part).filter(|word| !word.kinds.has(everyday));
        if self.crawls.is_some() && !part.is_comment() && lead(part).is_some() {
            return part;
        }
        let names =
            |other: &&Part| lead(other).is_some_and(|word| word.text(header.bytes).iter().any(u8::is_ascii_alphabetic));
        if header.browser != Some(0) && !self.on_device {
            let before_browser = &header.parts[..header.browser.unwrap_or(header.parts.len())];
            let free = before_browser.iter().filter(|other| !other.is_comment());
            let mut leading = free.take_while(|other| other.words.start < part.words.start);
            if let Some(leading) = leading.find(names) {
                return leading;
            }
        }
        let neighbours = header.parts.iter().filter(|other| other.comment == part.comment);
        let mut compatible = neighbours.filter(|other| other.marks.has(Marks::COMPATIBLE));
        compatible.find(names).unwrap_or(part)
    }
}

/// Finds a product that is named after a host, such as `example.com/1.0`. Such a product counts as
/// a contact.
fn named_after_host<'a>(header: &'a Header<'_>) -> Option<&'a Part> {
    let free = header.browser.unwrap_or(header.parts.len());
    header.parts[..free].iter().find(|part| {
        let words = header.words_of(part).iter().filter(|word| word.may_name_a_crawler());
        !part.marks.has(Marks::MODEL) && words.into_iter().any(|word| is_host(word.text(header.bytes)))
    })
}

/// Finds the only product of a header such as `Mozilla/5.0 (compatible; Product/1.0)`. Such a
/// header is not from a browser, because browsers name their platform.
fn sole_product<'a>(header: &'a Header<'_>) -> Option<&'a Part> {
    let part = header.parts.iter().find(|part| {
        part.marks.has(Marks::COMPATIBLE)
            && header.words_of(part).iter().any(|word| word.may_name_a_crawler() && !is_compatible(header, word))
    })?;
    let browsers = Kinds::PLATFORM
        .with(Kinds::ENGINE)
        .with(Kinds::PLAIN_BROWSER)
        .with(Kinds::APPLIANCE)
        .with(Kinds::PROGRAM)
        .with(Kinds::APP);
    (header.browser.is_none() && !header.kinds.has(browsers)).then_some(part)
}

fn is_compatible(header: &Header<'_>, word: &Word) -> bool {
    word.text(header.bytes).eq_ignore_ascii_case(b"compatible")
}

fn class_without_claim(header: &Header<'_>) -> Class {
    let kinds = header.kinds;
    if header.browser == Some(0) || kinds.has(Kinds::APPLIANCE) {
        return Class::Browser;
    }
    if kinds.has(Kinds::APP) || header.browser.is_some() {
        return Class::App;
    }
    match header.words().next() {
        Some(first) if first.kinds.has(Kinds::LIBRARY) => Class::Library,
        Some(first) if first.kinds.has(Kinds::BROWSER) && kinds.has(Kinds::PLATFORM.with(Kinds::PLAIN_BROWSER)) => {
            Class::Browser
        }
        Some(_) if kinds.has(Kinds::ENGINE) && kinds.has(Kinds::PLATFORM) => Class::Browser,
        _ => Class::NonBrowser,
    }
}

// The following functions find an unregistered crawler in a header that also contains registered
// names. Without these functions, such a crawler could hide behind a registered name. But words
// outside registered names may also describe a registered crawler:
// `serpstatbot/1.0 (advanced backlink tracking bot; …)`, `PingdomPageSpeed/1.0 (pingbot/2.0; …)`,
// `Dazzle BlueSky Bot/1.1`. So in a header with a registered name, an unregistered crawler must be
// declared more clearly than in other headers.
impl Header<'_> {
    /// Reports whether the header contains a word that may belong to a product's name and is
    /// outside the byte ranges `places`. The ranges must be sorted.
    pub(super) fn has_own_word_outside(&self, places: &[Range<usize>]) -> bool {
        let mut places = places.iter().peekable();
        self.words().filter(|word| word.may_name_a_crawler() && !word.kinds.is_common_to_browsers()).any(|word| {
            while places.next_if(|place| place.end <= word.start).is_some() {}
            let is_named = places.peek().is_some_and(|place| place.start < word.end);
            !is_named && word.text(self.bytes).iter().any(u8::is_ascii_alphabetic)
        })
    }

    /// Marks the words in the byte ranges `places` as registered names. Removes
    /// [`Marks::CONTACT_FOLLOWS`] and [`Marks::COMPATIBLE`] from the parts with registered names,
    /// because these marks belong to the registered crawler.
    pub(super) fn without(mut self, places: &[Range<usize>]) -> Self {
        let mut places = places.iter().peekable();
        for part in &mut self.parts {
            for word in &mut self.words[part.words.clone()] {
                while places.next_if(|place| place.end <= word.start).is_some() {}
                if places.peek().is_some_and(|place| place.start < word.end) {
                    word.role = WordRole::Registered;
                    part.marks.remove(Marks::CONTACT_FOLLOWS);
                    part.marks.remove(Marks::COMPATIBLE);
                }
            }
        }
        self
    }

    /// Sets the role [`WordRole::Ignored`] for words that may describe a registered crawler.
    /// Expects a header from [`Header::without`]. The following words keep their role:
    ///
    /// - outside comments: products with a version (`MyBot/1.0`), and words that contain `bot`,
    ///   `crawl` or similar;
    /// - in comments: versioned products that call themselves a crawler, unless the comment follows
    ///   a product with a registered name.
    pub(super) fn ignore_descriptions(&mut self) {
        let bytes = self.bytes;
        let is_crawler = |word: &Word| word.may_name_a_crawler() && crawls(word.text(bytes));
        let mut is_of_named = false;
        for part in &self.parts {
            let words = &mut self.words[part.words.clone()];
            let holds_name = words.iter().any(|word| word.role == WordRole::Registered);
            if !part.is_comment() {
                is_of_named = holds_name;
            }
            let is_product = has_version(words, self.bytes) && !holds_name && !begins_with_everyday_word(words);
            let is_left = is_product && (!part.is_comment() || !is_of_named && words.iter().any(is_crawler));
            if is_left {
                continue;
            }
            let is_left = |word: &Word| !part.is_comment() && !word.kinds.has(Kinds::GENERIC) && is_crawler(word);
            for word in words.iter_mut().filter(|word| word.role == WordRole::Candidate && !is_left(word)) {
                word.role = WordRole::Ignored;
            }
        }
    }
}

/// Reports whether one of the words is a version with a digit. The digit is required because a `/`
/// may also separate two ordinary words (`addresses/domains`).
fn has_version(words: &[Word], header: &[u8]) -> bool {
    let mut versions = words.iter().filter(|word| word.role == WordRole::Version);
    versions.any(|word| word.text(header).iter().any(u8::is_ascii_digit))
}

fn begins_with_everyday_word(words: &[Word]) -> bool {
    let first = words.iter().find(|word| word.may_name_a_crawler() && !word.kinds.is_common_to_browsers());
    first.is_some_and(|first| first.kinds.has(Kinds::GENERIC))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{Agent, Recognizer, Registry};
    use crate::rules::RobotsTxt;

    fn claim(header: &str) -> (Class, Option<Category>, Option<String>) {
        let header = Header::read(header.as_bytes());
        let Claim { class, category, product } = ClaimReader::of(&header).claim();
        (class, category, product)
    }

    #[test]
    fn a_product_at_the_end_of_a_browser_header_is_declared_only_in_a_compatible_comment() {
        let browser = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141 Safari/537.36";
        for product in ["ExampleProbe/1", "PageFetch/1", "FeedThing/2"] {
            assert_eq!(claim(&format!("{browser} {product}")), (Class::Browser, None, None), "{product}");
            let declared = claim(&format!("{browser} (compatible; {product}; +https://example.test/)"));
            assert_ne!(declared.0, Class::Browser, "{product}");
        }
    }

    #[test]
    fn parts_before_a_browser_and_bots_in_its_comment_are_declared() {
        let may_contain_name = |header: &str| {
            let header = Header::read(header.as_bytes());
            let reader = ClaimReader::of(&header);
            (0..header.parts.len()).map(|at| reader.may_contain_name(at)).collect::<Vec<_>>()
        };
        assert_eq!(may_contain_name("Foo/1.0 Mozilla/5.0 (X11) Gecko/1 Quux/2"), [true, false, false, false, false]);
        assert_eq!(may_contain_name("Foo/1.0 (Bar) Quux/2"), [true, true, true]);
        // The parts are Mozilla, X11, FooBot, Bar, BazBot and Gecko.
        let bots = may_contain_name("Mozilla/5.0 (X11; FooBot; Bar; BazBot) Gecko/1");
        assert_eq!(bots, [false, false, true, false, true, false]);
    }

    #[test]
    fn device_models_are_not_declared_and_an_old_browser_declares_only_crawlers() {
        let declared = |header: &str| {
            let header = Header::read(header.as_bytes());
            let reader = ClaimReader::of(&header);
            reader.declared_parts().map(|part| header.product(part)).collect::<Vec<_>>()
        };
        let browser = |comment: &str| format!("Mozilla/5.0 ({comment}) AppleWebKit/537 Safari/537");
        assert_eq!(declared(&browser("Linux; Android 9; Pixel; compatible; Foo/1")), ["", "Foo"]);
        assert_eq!(declared(&browser("compatible; Foo/1; Android 9; Pixel")), ["", "Foo", "9"]);
        assert_eq!(declared(&browser("MSIE 6.0; Foo/1; +http://x.test/; Foobot/2")), ["Foobot"]);
    }

    #[test]
    fn the_leading_word_of_a_mozilla_header_is_the_product_after_compatible() {
        let leading = |text: &str| {
            let header = Header::read(text.as_bytes());
            let reader = ClaimReader::of(&header);
            reader.leading_word().map(|word| String::from_utf8_lossy(word.text(text.as_bytes())).into_owned())
        };
        assert_eq!(leading("Mozilla/5.0 (compatible; Foo/1.0)").as_deref(), Some("Foo"));
        assert_eq!(leading("Mozilla/5.0 (compatible)"), None);
        assert_eq!(leading("Foo/1.0 (compatible; Bar)").as_deref(), Some("Foo"));
    }

    #[test]
    fn a_product_that_is_a_host_name_is_declared() {
        assert_eq!(claim("example.com/1.0"), (Class::Declared, None, Some("example.com".to_owned())));
        assert_eq!(claim("Example/1.0").0, Class::NonBrowser);
    }

    #[test]
    fn an_agent_is_named_after_its_leading_product_unless_a_later_one_declares_itself() {
        for (header, product) in [
            // The words next to the contact describe the crawler, but are not its name.
            ("Example Client/18.3.0 (kit-18.1.3; linux; +https://example.test)", "Example Client"),
            ("Searchie/1.0 (a Storm-based crawler; https://searchie.test; admin@searchie.test)", "Searchie"),
            ("Example (bot; +https://example.test/synapse)", "Example"),
            ("Roboter (Version: 1.06, powered by www.example.test +http://www.example.test/bot.html)", "Roboter"),
            ("Example (example.com/about)", "Example"),
            ("Mozilla/4.0 (compatible; Foo-1.0.7; Crawl your own stuff with http://foo.test)", "Foo-1.0.7"),
            ("Mozilla/5.0 (compatible; Foo/2.2; Website Thumbnail Generator; +http://foo.test)", "Foo"),
            ("Metacast/1.0 Crawler +https://metacast.test", "Metacast"),
            ("Pageling http://pageling.test curl www", "Pageling"),
            // The agent is not the leading product. The agent is a product that calls itself a bot,
            // follows a library or a device, or is inside the header of a browser.
            ("Example/5.0 (linux) Example_Bot/2.3.1", "Example_Bot"),
            ("curl/8.0 (Example; +https://example.test/)", "Example"),
            ("DoCoMo/2.0 N902iS(c100;TB)(compatible; foo-crawler; http://foo.test/)", "foo-crawler"),
            ("Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.0; Example Bot 1.0)", "Example Bot 1.0"),
            ("Mozilla/5.0 (X11; Linux) Gecko/1 Foo Analyzer (http://foo.test/)", "Foo Analyzer"),
        ] {
            let (class, _, found) = claim(header);
            assert_eq!((class, found.as_deref()), (Class::Declared, Some(product)), "{header}");
        }
    }

    #[test]
    fn programs_that_people_run_are_not_declared_crawlers() {
        for header in [
            // These headers name the runtime or the machine of the program.
            "Example/1.3 (+https://example.test/; go1.12; linux/amd64)",
            "Example/2.4 (+https://example.test; ruby3.1.4)",
            "Example Collector/0.1 (linux/amd64)",
            "Example Checker/1.0 (x86_64-pc-linux-gnu; +https://example.test)",
            // The address is the location of the program's source code.
            "Example/1.0 (+https://github.com/example/example)",
            "Example +https://gitlab.com/example/example",
            "example/5.26 (github.com/example/example)",
            // The address is a home page with the name of the product.
            "Acme Example/1.9.0 (+https://www.example.test)",
            "Debian APT-CURL/1.0 (1.2.32)",
            "urlgrabber/3.10 yum/3.4.3",
            "Mozilla/4.0 (compatible; ms-office; MSOffice 16)",
            "URL/Emacs Emacs/28.2 (TTY)",
        ] {
            assert_eq!(claim(header).0, Class::NonBrowser, "{header}");
        }
        for crawler in [
            "ExampleBot/1.3 (+https://example.test/; go1.12; linux/amd64)",
            "Example/1.0 (+https://github.com/example/example-crawler)",
            "Example/1.0 (+https://github.com/example/example; contact@example.test)",
            "Mozilla/5.0 (compatible; Example/1.0; +https://github.com/example/example)",
            "Example/1.0 (golang; +https://example.test/)",
            "Example/1.0 (+https://github.example.test/)",
        ] {
            assert_eq!(claim(crawler).0, Class::Declared, "{crawler}");
        }
    }

    #[test]
    fn a_product_named_crawler_is_declared_without_the_category_of_its_other_words() {
        let some = |category, product: &str| (Class::Declared, category, Some(product.to_owned()));
        assert_eq!(claim("SiteMonitor/1 (+https://x.test)"), some(Some(Category::Monitoring), "SiteMonitor"));
        assert_eq!(claim("MonitorCrawler/1 (+https://x.test)"), some(None, "MonitorCrawler"));
        assert_eq!(claim("WebhookCrawler/1"), some(None, "WebhookCrawler"));
        assert_eq!(claim("ExampleWebhook/1").0, Class::Infrastructure);
    }

    #[test]
    fn a_contact_declares_a_leading_product_or_one_in_its_comment_but_not_a_library() {
        // The only product of the third header is a library, so the contact declares no crawler.
        assert_eq!(claim("curl/8.0 (Example; +https://example.test/)").0, Class::Declared);
        assert_eq!(claim("Example/8.0 +https://example.test/").0, Class::Declared);
        assert_eq!(claim("curl/8.0 +https://example.test/").0, Class::Library);
    }

    #[test]
    fn the_word_bot_alone_does_not_declare_a_mobile_app_as_a_crawler() {
        // `ChatBot` runs on a person's telephone.
        assert_eq!(claim("ChatBot/5 CFNetwork/1399 Darwin/22").0, Class::App);
        assert_eq!(claim("ChatBot/5 (+https://x.test) CFNetwork/1399 Darwin/22").0, Class::Declared);
        let telephone =
            "Mozilla/5.0 (iPhone; CPU iPhone OS 15_3 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)";
        assert_eq!(claim(&format!("{telephone} Mobile/15E148 ChatBotAI/97")).0, Class::Browser);
        assert_eq!(claim(&format!("{telephone} Mobile/15E148 Safari/604.1 FooBot/9")).0, Class::Declared);
        let view =
            "Mozilla/5.0 (Linux; Android 9; X; wv) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/91 Safari/537.36";
        assert_eq!(claim(&format!("{view} ChatBotAI/97")).0, Class::Browser);
        assert_eq!(claim(&format!("{view} (compatible; FooBot/1.0; +https://x.test/bot)")).0, Class::Declared);
    }

    #[test]
    fn a_word_such_as_spider_alone_does_not_declare_a_desktop_program_as_a_crawler() {
        for program in ["SpiderOak/7.24 (Windows)", "Archive Viewer/2.18 (Mac OS X)", "UrlSnapper/1 (Windows NT 10.0)"]
        {
            assert_eq!(claim(program).0, Class::NonBrowser, "{program}");
        }
        let crawlers = "SpiderBot/7.24 (Windows) | SpiderOak/7.24 | \
            Archive Viewer/2.18 (+https://x.test; Mac OS X) | LinkExtractor/1 (Linux x86_64) | \
            Mozilla/5.0 (Windows NT 6.1; WOW64) acunetix-product/wvs (Acunetix Web Vulnerability Scanner)";
        for crawler in crawlers.split(" | ") {
            assert_eq!(claim(crawler).0, Class::Declared, "{crawler}");
        }
    }

    #[test]
    fn a_url_of_an_audio_service_gives_the_category_feed_unless_a_bot_is_named() {
        for (header, category) in [
            ("Bullhorn/1.0 (+http://bullhorn.fm/)", Some(Category::Feed)),
            ("Podvine/3.3.1 (www.podvine.com)", None),
            ("https://audioboom.com/boos/", Some(Category::Feed)),
            ("RadioBot/1.0 (+https://radio.example/)", None),
            ("Example/1.0 (+https://radio.example/bot)", None),
        ] {
            assert_eq!(claim(header).1, category, "{header}");
        }
    }

    #[test]
    fn a_header_with_both_a_platform_and_an_engine_is_a_browser() {
        assert_eq!(claim("Foo (Windows NT 10.0) Gecko/20100101").0, Class::Browser);
        assert_eq!(claim("Foo Gecko/20100101").0, Class::NonBrowser);
        assert_eq!(claim("Foo (Windows NT 10.0)").0, Class::NonBrowser);
        assert_eq!(claim("").0, Class::Empty);
    }

    /// Returns the name of the agent that is found in addition to the registered agents.
    fn unregistered_name(file: &str, header: &str) -> Option<String> {
        let recognizer = Recognizer::new(Registry::builtin().clone(), &RobotsTxt::parse(file.as_bytes()));
        let agents = recognizer.agents(header.as_bytes());
        assert!(agents.first().is_registered(), "{header}");
        let own: Vec<&Agent> = agents.iter().filter(|agent| !agent.is_registered()).collect();
        assert!(own.len() < 2, "{header}: {own:?}");
        own.first().map(|own| own.crawler().map_or_else(|| own.tokens()[0].to_string(), str::to_owned))
    }

    #[test]
    fn a_declared_crawler_is_recognized_next_to_a_registered_name() {
        let headers = "MyBot/1.0 (+https://my.example/bot) UptimeRobot | UptimeRobot/2.0 MyBot/1.0 | \
            MyBot UptimeRobot/2.0 | UptimeRobot MyBot | GPTBot/1.2 CCBot/2.0 MyBot/1.0 | \
            MyBot/beta UptimeRobot | Mozilla/5.0 (compatible; MyBot/1.0; UptimeRobot/2.0) | \
            Mozilla/5.0 (X11) AppleWebKit/5 Chrome/1 Safari/5 (compatible; MyBot/1.0; +https://x.example/) UptimeRobot";
        for header in headers.split(" | ") {
            assert_eq!(unregistered_name("", header).as_deref(), Some("MyBot"), "{header}");
        }
        assert_eq!(
            unregistered_name("", "Example/1.0 (+https://my.example/about) UptimeRobot").as_deref(),
            Some("Example")
        );
    }

    #[test]
    fn the_description_of_a_registered_crawler_is_not_another_crawler() {
        for header in [
            "serpstatbot/1.0 (advanced backlink tracking bot; http://serpstatbot.com/; abuse@serpstatbot.com)",
            "Mozilla/5.0 (X11; Linux) Chrome/59.0 Safari/537.36 PingdomPageSpeed/1.0 (pingbot/2.0; +http://www.pingdom.com/)",
            "Mozilla/5.0 (compatible; YandexBot/3.0; MirrorDetector; +http://yandex.com/bots)",
            "Mastodon/4.3.9 (http.rb/5.2.0; +https://social.example/)",
            "Dazzle BlueSky Bot/1.1",
            "Crawler Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)",
            "Expanse, a Palo Alto Networks company, searches. Please send IP addresses/domains to: scaninfo@paloaltonetworks.com",
            "UptimeRobot/2.0 Example/1.0",
            "Scrapy/2.11 (+https://scrapy.org) UptimeRobot/2.0",
        ] {
            assert_eq!(unregistered_name("", header), None, "{header}");
        }
    }

    #[test]
    fn a_name_from_the_file_is_recognized_next_to_a_registered_name() {
        let file = "User-agent: AcmeBot\nUser-agent: Quux\nUser-agent: bot\nDisallow: /\n";
        for (header, name) in [
            ("CCBot AcmeBot/1.0", Some("AcmeBot")),
            ("UptimeRobot/2.0 AcmeBot/1.0", Some("AcmeBot")),
            ("facebookexternalhit/1.1 AcmeBot/1.0", Some("AcmeBot")),
            ("PingdomPageSpeed/1.0 (pingbot/2.0; AcmeBot; +http://www.pingdom.com/)", Some("acmebot")),
            ("Quux UptimeRobot/2.0", Some("quux")),
            ("UptimeRobot/2.0 (like Quux)", None),
            // An everyday word is a name only if it is the leading word.
            ("UptimeRobot bot", None),
            ("facebookexternalhit/1.1 Facebot Twitterbot/1.0", None),
        ] {
            assert_eq!(unregistered_name(file, header).as_deref(), name, "{header}");
        }
    }
}
