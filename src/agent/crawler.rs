//! A crawler of the registry.

use super::kind::{Category, Obeys};
use crate::rules::ProductToken;

/// A crawler that exists, and what is known of it.
#[derive(Clone, Debug)]
pub struct Crawler {
    pub(super) name: Box<str>,
    pub(super) header: Vec<Box<str>>,
    pub(super) tokens: Box<[ProductToken]>,
    pub(super) operator: Box<str>,
    pub(super) category: Category,
    pub(super) robots: Obeys,
    pub(super) star: Obeys,
    pub(super) crawl_delay: Obeys,
    pub(super) control: bool,
    pub(super) index: bool,
    pub(super) requires: Vec<Box<str>>,
    pub(super) ranges: Vec<Box<str>>,
    pub(super) rdns: Vec<Box<str>>,
    pub(super) weak_rdns: bool,
    pub(super) framework: bool,
    pub(super) signature: Option<Box<str>>,
    pub(super) source: Option<Box<str>>,
    pub(super) checked: Option<Box<str>>,
    pub(super) examples: Vec<Box<str>>,
}

impl Crawler {
    /// The name it is listed under.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names found in its `User-Agent` headers; none for a control token.
    pub fn header_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.header.iter().map(AsRef::as_ref)
    }

    /// The product tokens it obeys, the first that a file names first; never empty.
    #[must_use]
    pub fn tokens(&self) -> &[ProductToken] {
        &self.tokens
    }

    /// Its operator.
    #[must_use]
    pub fn operator(&self) -> &str {
        &self.operator
    }

    /// The purpose it fetches pages for.
    #[must_use]
    pub const fn category(&self) -> Category {
        self.category
    }

    /// Whether it obeys groups that name it.
    #[must_use]
    pub const fn obeys_robots(&self) -> Obeys {
        self.robots
    }

    /// Whether it obeys the groups of `*`.
    #[must_use]
    pub const fn obeys_star(&self) -> Obeys {
        self.star
    }

    /// Whether it obeys a `Crawl-delay`. Never [`Obeys::Partial`].
    #[must_use]
    pub const fn obeys_crawl_delay(&self) -> Obeys {
        self.crawl_delay
    }

    /// Whether its token appears in robots.txt only, never in a request: it cannot be enforced.
    #[must_use]
    pub const fn is_control(&self) -> bool {
        self.control
    }

    /// Whether it feeds the index of a search engine that people use, or tests pages for one (`index` in the data file).
    /// A page that it is refused leaves the index, so a [`Policy`](crate::policy::Policy) does not refuse it unless an
    /// override says so.
    #[must_use]
    pub const fn is_index_engine(&self) -> bool {
        self.index
    }

    /// Texts of which a header must hold one besides the name, because the name is also a word.
    pub fn requires(&self) -> impl ExactSizeIterator<Item = &str> {
        self.requires.iter().map(AsRef::as_ref)
    }

    /// Where its operator publishes the address ranges it uses.
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = &str> {
        self.ranges.iter().map(AsRef::as_ref)
    }

    /// Suffixes of the reverse DNS names of its addresses, or patterns where they hold a `*`.
    pub fn reverse_dns(&self) -> impl ExactSizeIterator<Item = &str> {
        self.rdns.iter().map(AsRef::as_ref)
    }

    /// Whether the names of its addresses are often missing or unconfirmed. Such names verify a request; that an address
    /// has none of them refutes nothing.
    #[must_use]
    pub const fn is_reverse_dns_weak(&self) -> bool {
        self.weak_rdns
    }

    /// Whether others build crawlers with it: the product in front of its name is the crawler's.
    #[must_use]
    pub const fn is_framework(&self) -> bool {
        self.framework
    }

    /// Where the keys of its HTTP message signatures are.
    #[must_use]
    pub fn signature(&self) -> Option<&str> {
        self.signature.as_deref()
    }

    /// The documentation these facts come from.
    #[must_use]
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// Whether the operator's documentation was read for these facts. Otherwise they are general knowledge, and flags
    /// that could refuse what should pass are [`Obeys::Unknown`].
    #[must_use]
    pub const fn is_checked(&self) -> bool {
        self.checked.is_some()
    }

    /// The day on which the operator's documentation was read for these facts, as `2026-11-22`.
    #[must_use]
    pub fn checked_on(&self) -> Option<&str> {
        self.checked.as_deref()
    }

    /// Headers it sends.
    pub fn examples(&self) -> impl ExactSizeIterator<Item = &str> {
        self.examples.iter().map(AsRef::as_ref)
    }
}
