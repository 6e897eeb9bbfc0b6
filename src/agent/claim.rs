//! What a header that names no registered crawler says of itself: where it declares a product, and its class.

use super::header::{Header, Marks, Part, Word};
use super::kind::{Category, Class};
use super::words::{Kinds, Trade};

/// What an unregistered agent says it is.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) class: Class,
    pub(super) category: Option<Category>,
    /// The product that makes the claim.
    pub(super) product: Option<String>,
}

/// Parts in which a header may name who is asking: all of them, or in a browser's only those that declare something.
pub(super) fn declared_parts<'a>(header: &'a Header<'_>) -> impl Iterator<Item = &'a Part> {
    let browser = header.browser().unwrap_or(usize::MAX);
    header
        .parts()
        .iter()
        .enumerate()
        .filter(move |(at, part)| *at < browser || declares(header, part))
        .map(|(_, part)| part)
}

/// Whether a part of a browser's header declares a product: after `compatible;`, with or before a contact, or by
/// calling it a crawler. A comment with `MSIE` or `Konqueror` needs the last: toolbars leave their addresses there.
fn declares(header: &Header<'_>, part: &Part) -> bool {
    if part.marks.has(Marks::MODEL) {
        return false;
    }
    let addressed = part.marks.has(Marks::CONTACT) || part.marks.has(Marks::ADDRESSED);
    let compatible = part.marks.has(Marks::COMPATIBLE);
    (addressed || compatible) && !part.marks.has(Marks::OLD_BROWSER) || crawls(header, part)
}

fn crawls(header: &Header<'_>, part: &Part) -> bool {
    !part.marks.has(Marks::MODEL) && header.trades(part).any(|trade| matches!(trade, Trade::Crawls | Trade::IsBot))
}

fn speaking<'a>(header: &'a Header<'_>, part: &Part) -> impl Iterator<Item = &'a Word> {
    header.words_of(part).iter().filter(|word| word.may_name_a_crawler())
}

/// The word that stands first where a header says who is asking; only there do general words count as names.
pub(super) fn leading_word<'a>(header: &'a Header<'_>) -> Option<&'a Word> {
    let costume = |word: &&Word| word.kinds.is_costume();
    let first = header.words().find(|word| word.may_name_a_crawler())?;
    if !costume(&first) {
        return Some(first);
    }
    header
        .parts()
        .iter()
        .filter(|part| part.marks.has(Marks::COMPATIBLE))
        .flat_map(|part| speaking(header, part))
        .find(|word| !word.text(header.bytes()).eq_ignore_ascii_case(b"compatible"))
}

/// Places a header that names no registered crawler.
pub(super) fn claim(header: &Header<'_>) -> Claim {
    let nothing = |class| Claim { class, category: None, product: None };
    if header.is_blank() {
        return nothing(Class::Empty);
    }
    let kinds = header.kinds();
    let evidence = Evidence::gather(header);
    if kinds.has(Kinds::HEADLESS) && evidence.crawls.is_none() {
        let product = header.words().find(|word| word.kinds.has(Kinds::HEADLESS));
        let product = product.map(|word| String::from_utf8_lossy(word.text(header.bytes())).into_owned());
        return Claim { class: Class::Headless, category: None, product };
    }
    if let Some(claim) = evidence.claim(header) {
        return claim;
    }
    nothing(if header.browser() == Some(0) {
        Class::Browser
    } else if kinds.has(Kinds::APP) || header.browser().is_some() {
        Class::App
    } else {
        match header.words().next() {
            Some(first) if first.kinds.has(Kinds::LIBRARY) => Class::Library,
            Some(first) if first.kinds.has(Kinds::PLAIN_BROWSER) => Class::Browser,
            Some(first) if first.kinds.has(Kinds::BROWSER) && kinds.has(Kinds::PLATFORM) => Class::Browser,
            _ => Class::NonBrowser,
        }
    })
}

/// What the declared parts of a header hold.
#[derive(Default)]
struct Evidence<'a> {
    serves: Option<&'a Part>,
    crawls: Option<&'a Part>,
    /// It says crawler, not merely bot: then it is one, whatever it crawls for.
    is_crawler: bool,
    collects: Option<&'a Part>,
    addressed: Option<&'a Part>,
    category: Option<Category>,
}

impl<'a> Evidence<'a> {
    fn gather(header: &'a Header<'_>) -> Self {
        let mut evidence = Self::default();
        let browser = header.browser().unwrap_or(usize::MAX);
        for (at, part) in header.parts().iter().enumerate() {
            if part.marks.has(Marks::MODEL) {
                continue;
            }
            let mut free = at < browser;
            for trade in header.trades(part) {
                free = free || declares(header, part);
                match trade {
                    Trade::Serves if free => evidence.serves = evidence.serves.or(Some(part)),
                    Trade::Crawls => {
                        evidence.crawls = evidence.crawls.or(Some(part));
                        evidence.is_crawler = true;
                    }
                    Trade::IsBot => evidence.crawls = evidence.crawls.or(Some(part)),
                    Trade::Collects(category) if free => {
                        evidence.collects = evidence.collects.or(Some(part));
                        evidence.category = evidence.category.or(category);
                    }
                    _ => {}
                }
            }
            if (part.marks.has(Marks::CONTACT) || part.marks.has(Marks::ADDRESSED))
                && !part.marks.has(Marks::OLD_BROWSER)
                && evidence.addressed.is_none_or(|part| header.product(part).is_empty())
            {
                evidence.addressed = Some(part);
            }
        }
        evidence
    }

    fn claim(&self, header: &Header<'_>) -> Option<Claim> {
        let product = |part: &Part| Some(header.product(part)).filter(|product| !product.is_empty());
        if let Some(part) = self.serves.filter(|_| !self.is_crawler) {
            let category = Some(Category::Infrastructure);
            return Some(Claim { class: Class::Infrastructure, category, product: product(part) });
        }
        let is_app = header.kinds().has(Kinds::APP);
        let leads_library = header.words().next().is_some_and(|first| first.kinds.has(Kinds::LIBRARY));
        let part = self
            .crawls
            .or(self.addressed.filter(|part| !leads_library || part.is_comment()))
            .or(self.collects.filter(|_| !is_app && !leads_library))
            .or_else(|| sole_product(header))?;
        let category = self.category.filter(|_| !self.is_crawler);
        Some(Claim { class: Class::Declared, category, product: product(part) })
    }
}

/// `Mozilla/5.0 (compatible; Product/1.0)`: a browser would name its platform.
fn sole_product<'a>(header: &'a Header<'_>) -> Option<&'a Part> {
    let part = header.parts().iter().find(|part| {
        part.marks.has(Marks::COMPATIBLE)
            && speaking(header, part).any(|word| !word.text(header.bytes()).eq_ignore_ascii_case(b"compatible"))
    })?;
    (header.browser().is_none() && !header.kinds().has(Kinds::PLATFORM) && !header.kinds().has(Kinds::ENGINE))
        .then_some(part)
}
