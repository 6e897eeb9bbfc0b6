//! Rows that change a registry: a crawler to add or replace, or the name of one to remove.

use std::fmt;

use super::crawler::{Category, Crawler, Obeys};
use crate::rules::ProductToken;

/// A change of a [`Registry`](super::Registry): a [`CrawlerRow`], or a removal.
#[derive(Clone, Debug)]
#[must_use]
pub struct RegistryRow(RowChange);

#[derive(Clone, Debug)]
pub(super) enum RowChange {
    Put(Box<CrawlerRow>),
    Remove(String),
}

/// A crawler to add to a [`Registry`](super::Registry), or to put in the place of the one with the same name.
///
/// Defaults: its header name and its product token are its name, it obeys groups [`Obeys::Unknown`], and everything else
/// is empty. [`Registry::extended_with`](super::Registry::extended_with) checks the values.
///
/// ```
/// use robots_core::agent::{Category, CrawlerRow, Obeys, Registry};
///
/// let row = CrawlerRow::new("OurBot", Category::Search).obeys_star(Obeys::Yes);
/// let registry = Registry::builtin().extended_with([row])?;
/// assert!(registry.crawler("OurBot").is_some());
/// # Ok::<(), robots_core::agent::RegistryError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct CrawlerRow {
    name: String,
    category: Category,
    header: Option<Vec<String>>,
    tokens: Option<Vec<String>>,
    operator: String,
    robots: Obeys,
    star: Obeys,
    crawl_delay: Obeys,
    control: bool,
    index: bool,
    requires: Vec<String>,
    ranges: Vec<String>,
    rdns: Vec<String>,
    signature: Option<String>,
    source: Option<String>,
    checked: Option<String>,
    weak_rdns: bool,
    framework: bool,
    examples: Vec<String>,
}

/// A value that no crawler can have.
#[derive(Debug)]
pub(super) struct WrongField {
    pub(super) field: &'static str,
    pub(super) message: String,
}

impl RegistryRow {
    /// Removes the crawler with this name, whatever the case.
    pub fn remove(name: impl Into<String>) -> Self {
        Self(RowChange::Remove(name.into()))
    }

    pub(super) fn into_change(self) -> RowChange {
        self.0
    }
}

impl RowChange {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Put(row) => &row.name,
            Self::Remove(name) => name,
        }
    }
}

impl From<CrawlerRow> for RegistryRow {
    fn from(row: CrawlerRow) -> Self {
        Self(RowChange::Put(Box::new(row)))
    }
}

impl CrawlerRow {
    /// A crawler with this name, listed under this category.
    pub fn new(name: impl Into<String>, category: Category) -> Self {
        Self {
            name: name.into(),
            category,
            header: None,
            tokens: None,
            operator: String::new(),
            robots: Obeys::Unknown,
            star: Obeys::Unknown,
            crawl_delay: Obeys::Unknown,
            control: false,
            index: false,
            requires: Vec::new(),
            ranges: Vec::new(),
            rdns: Vec::new(),
            signature: None,
            source: None,
            checked: None,
            weak_rdns: false,
            framework: false,
            examples: Vec::new(),
        }
    }

    /// The names found in its `User-Agent` headers, between boundaries. Default: its name.
    pub fn header_names<T: Into<String>>(self, names: impl IntoIterator<Item = T>) -> Self {
        Self { header: Some(strings(names)), ..self }
    }

    /// The product tokens it obeys, the first that a file names first. Default: its name.
    pub fn tokens<T: Into<String>>(self, tokens: impl IntoIterator<Item = T>) -> Self {
        Self { tokens: Some(strings(tokens)), ..self }
    }

    /// Its operator. Default: empty.
    pub fn operator(self, operator: impl Into<String>) -> Self {
        Self { operator: operator.into(), ..self }
    }

    /// Whether it obeys groups that name it. Default: [`Obeys::Unknown`].
    pub fn obeys_robots(self, robots: Obeys) -> Self {
        Self { robots, ..self }
    }

    /// Whether it obeys the groups of `*`. Default: [`Obeys::Unknown`], which is held to `*`.
    pub fn obeys_star(self, star: Obeys) -> Self {
        Self { star, ..self }
    }

    /// Whether it obeys a `Crawl-delay`: [`Obeys::Partial`] is not said of one. Default: [`Obeys::Unknown`].
    pub fn obeys_crawl_delay(self, crawl_delay: Obeys) -> Self {
        Self { crawl_delay, ..self }
    }

    /// Its token appears in robots.txt only, never in a request. Such a row has no header names.
    pub fn control_token(self) -> Self {
        Self { control: true, ..self }
    }

    /// It feeds the index of a search engine that people use, or tests pages for one: unless an override says so, it is
    /// not refused. Default: it does not.
    pub fn index_engine(self) -> Self {
        Self { index: true, ..self }
    }

    /// The name is also a word: a header must hold one of these texts too. Default: none.
    pub fn requires<T: Into<String>>(self, texts: impl IntoIterator<Item = T>) -> Self {
        Self { requires: strings(texts), ..self }
    }

    /// Where its operator publishes the address ranges it uses. Default: nowhere.
    pub fn ranges<T: Into<String>>(self, addresses: impl IntoIterator<Item = T>) -> Self {
        Self { ranges: strings(addresses), ..self }
    }

    /// Suffixes of the reverse DNS names of its addresses, or patterns where they hold a `*`. Default: none.
    pub fn reverse_dns<T: Into<String>>(self, names: impl IntoIterator<Item = T>) -> Self {
        Self { rdns: strings(names), ..self }
    }

    /// Where the keys of its HTTP message signatures are. Default: nowhere.
    pub fn signature(self, address: impl Into<String>) -> Self {
        Self { signature: Some(address.into()), ..self }
    }

    /// The documentation these facts come from. Default: none.
    pub fn source(self, address: impl Into<String>) -> Self {
        Self { source: Some(address.into()), ..self }
    }

    /// The day on which the operator's documentation was read for these facts, as `2026-11-22`. Default: it was not.
    pub fn checked(self, day: impl Into<String>) -> Self {
        Self { checked: Some(day.into()), ..self }
    }

    /// The names of its addresses are often missing or unconfirmed. Default: they are not.
    pub fn weak_reverse_dns(self) -> Self {
        Self { weak_rdns: true, ..self }
    }

    /// Others build crawlers with it: the product in front of its name is the crawler's. Default: it is a crawler itself.
    pub fn framework(self) -> Self {
        Self { framework: true, ..self }
    }

    /// Headers it sends. Default: none.
    pub fn examples<T: Into<String>>(self, headers: impl IntoIterator<Item = T>) -> Self {
        Self { examples: strings(headers), ..self }
    }

    /// The crawler this row describes.
    pub(super) fn build(self) -> Result<Crawler, WrongField> {
        if self.name.trim().is_empty() {
            return Err(WrongField::new("name", "a crawler has a name: add one"));
        }
        let header = match (self.header, self.control) {
            (Some(header), true) if !header.is_empty() => {
                return Err(WrongField::new(
                    "header",
                    "a control token is never sent in a header: drop control or header",
                ));
            }
            (_, true) => Vec::new(),
            (Some(header), false) => header,
            (None, false) => vec![self.name.clone()],
        };
        if let Some(name) = header.iter().find(|name| !name.bytes().any(|byte| byte.is_ascii_alphanumeric())) {
            let message = format!(
                "\"{name}\" holds neither letter nor digit, so no header can be found by it: write a name that does"
            );
            return Err(WrongField::new("header", message));
        }
        let tokens = self.tokens.filter(|tokens| !tokens.is_empty()).unwrap_or_else(|| vec![self.name.clone()]);
        if let Some(token) = tokens.iter().find(|token| token.trim().is_empty()) {
            let message =
                format!("\"{token}\" is not a product token: write the name that a group has for this crawler");
            return Err(WrongField::new("tokens", message));
        }
        if let Some(day) = self.checked.as_ref().filter(|day| !is_day(day)) {
            let message = format!("\"{day}\" is no day: write it as \"2026-11-22\"");
            return Err(WrongField::new("checked", message));
        }
        if self.crawl_delay == Obeys::Partial {
            let message = "\"partial\" is not said of a delay: write \"yes\", \"no\" or \"unknown\"";
            return Err(WrongField::new("crawl_delay", message));
        }
        if self.weak_rdns && self.rdns.is_empty() {
            return Err(WrongField::new("weak", "the row has no rdns that could be weak: drop weak or add rdns"));
        }
        Ok(Crawler {
            name: self.name.into(),
            header: boxed(header),
            tokens: tokens.iter().map(ProductToken::new).collect(),
            operator: self.operator.into(),
            category: self.category,
            robots: self.robots,
            star: self.star,
            crawl_delay: self.crawl_delay,
            control: self.control,
            index: self.index,
            requires: boxed(self.requires),
            ranges: boxed(self.ranges),
            rdns: boxed(self.rdns),
            signature: self.signature.map(Into::into),
            source: self.source.map(Into::into),
            checked: self.checked.map(Into::into),
            weak_rdns: self.weak_rdns,
            framework: self.framework,
            examples: boxed(self.examples),
        })
    }
}

/// A row that makes this very crawler: a start for changing one of its values.
impl From<&Crawler> for CrawlerRow {
    fn from(crawler: &Crawler) -> Self {
        Self {
            name: crawler.name().to_owned(),
            category: crawler.category(),
            header: Some(strings(crawler.header_names())),
            tokens: Some(crawler.tokens().iter().map(ToString::to_string).collect()),
            operator: crawler.operator().to_owned(),
            robots: crawler.obeys_robots(),
            star: crawler.obeys_star(),
            crawl_delay: crawler.obeys_crawl_delay(),
            control: crawler.is_control(),
            index: crawler.is_index_engine(),
            requires: strings(crawler.requires()),
            ranges: strings(crawler.ranges()),
            rdns: strings(crawler.reverse_dns()),
            signature: crawler.signature().map(str::to_owned),
            source: crawler.source().map(str::to_owned),
            checked: crawler.checked_on().map(str::to_owned),
            weak_rdns: crawler.is_reverse_dns_weak(),
            framework: crawler.is_framework(),
            examples: strings(crawler.examples()),
        }
    }
}

impl WrongField {
    fn new(field: &'static str, message: impl Into<String>) -> Self {
        Self { field, message: message.into() }
    }
}

/// Whether a text is a day as `2026-11-22`.
fn is_day(text: &str) -> bool {
    let number = |range: std::ops::Range<usize>| {
        text.get(range).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let in_range = |range, days: std::ops::RangeInclusive<u8>| {
        number(range).and_then(|digits| digits.parse().ok()).is_some_and(|value| days.contains(&value))
    };
    text.len() == 10
        && number(0..4).is_some()
        && [4, 7].iter().all(|at| text.as_bytes()[*at] == b'-')
        && in_range(5..7, 1..=12)
        && in_range(8..10, 1..=31)
}

fn strings<T: Into<String>>(list: impl IntoIterator<Item = T>) -> Vec<String> {
    list.into_iter().map(Into::into).collect()
}

fn boxed(list: Vec<String>) -> Vec<Box<str>> {
    list.into_iter().map(Into::into).collect()
}

/// Why a [`Registry`](super::Registry) cannot be extended with the given rows.
#[derive(Clone, PartialEq, Eq)]
pub struct RegistryError {
    row: usize,
    field: &'static str,
    kind: RegistryErrorKind,
    message: String,
}

/// The kind of mistake that a [`RegistryError`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RegistryErrorKind {
    /// A field has a value that no crawler can have.
    WrongValue,
    /// Two of the rows have one name.
    RepeatedName,
    /// Two crawlers have one header name.
    SharedHeaderName,
    /// The crawler to remove does not exist.
    NotFound,
}

impl RegistryError {
    pub(super) fn new(row: usize, field: &'static str, kind: RegistryErrorKind, message: impl Into<String>) -> Self {
        Self { row, field, kind, message: message.into() }
    }

    /// Which of the rows is wrong, from 0.
    pub const fn row(&self) -> usize {
        self.row
    }

    /// The field of the row that is wrong, by its key in a registry file: `name`, `header` or `tokens`.
    pub const fn field(&self) -> &'static str {
        self.field
    }

    /// The kind of mistake.
    pub const fn kind(&self) -> RegistryErrorKind {
        self.kind
    }

    /// The mistake and its correction, without the place.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// `row 2, header: what is wrong`, rows counted from 1.
impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "row {}, {}: {}", self.row + 1, self.field, self.message)
    }
}

impl fmt::Debug for RegistryError {
    /// As it is displayed, because that is what the operator sees of an error that `main` returns.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for RegistryError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_follow_from_the_name() {
        let crawler = CrawlerRow::new("A Bot", Category::Seo).build().unwrap();
        assert_eq!(crawler.header_names().collect::<Vec<_>>(), ["A Bot"]);
        assert_eq!(crawler.tokens(), [ProductToken::new("a bot")]);
        assert_eq!((crawler.obeys_robots(), crawler.obeys_star()), (Obeys::Unknown, Obeys::Unknown));
        assert!(!crawler.is_control() && !crawler.is_index_engine() && !crawler.is_checked());
    }

    #[test]
    fn a_wrong_value_is_refused_with_its_field_and_what_would_be_right() {
        let row = || CrawlerRow::new("A", Category::Seo);
        for (row, field, right) in [
            (CrawlerRow::new(" ", Category::Seo), "name", "add one"),
            (row().header_names(["A", "!"]), "header", "write a name that does"),
            (row().header_names(["A"]).control_token(), "header", "drop control or header"),
            (row().tokens(["A", ""]), "tokens", "write the name"),
            (row().checked("yesterday"), "checked", "2026-11-22"),
            (row().checked("2026-13-01"), "checked", "2026-11-22"),
            (row().weak_reverse_dns(), "weak", "add rdns"),
            (row().obeys_crawl_delay(Obeys::Partial), "crawl_delay", "write \"yes\""),
        ] {
            let error = row.build().unwrap_err();
            assert_eq!(error.field, field);
            assert!(error.message.contains(right), "{}", error.message);
        }
        assert!(row().control_token().header_names([""; 0]).build().is_ok());
    }

    #[test]
    fn a_row_made_from_a_crawler_makes_the_same_crawler() {
        let row = CrawlerRow::new("A", Category::Ads)
            .header_names(["A", "A Bot"])
            .tokens(["a", "b"])
            .operator("O")
            .obeys_robots(Obeys::Yes)
            .obeys_star(Obeys::No)
            .obeys_crawl_delay(Obeys::Yes)
            .index_engine()
            .requires(["r"])
            .ranges(["https://a.test/ranges"])
            .reverse_dns([".a.test"])
            .signature("https://a.test/keys")
            .source("https://a.test")
            .checked("2026-11-22")
            .weak_reverse_dns()
            .framework()
            .examples(["A/1"]);
        let crawler = row.build().unwrap();
        let again = CrawlerRow::from(&crawler).build().unwrap();
        assert_eq!(format!("{again:?}"), format!("{crawler:?}"));
        assert!(
            crawler.is_index_engine() && crawler.is_checked() && crawler.signature() == Some("https://a.test/keys")
        );
    }
}
