//! A crawler of the registry, and the scales it is placed on: what it is for, and whether it obeys.

use crate::keyword_enum;
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
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names found in its `User-Agent` headers; none for a control token.
    pub fn header_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.header.iter().map(AsRef::as_ref)
    }

    /// The product tokens it obeys, the first that a file names first; never empty.
    pub fn tokens(&self) -> &[ProductToken] {
        &self.tokens
    }

    /// Its operator.
    pub fn operator(&self) -> &str {
        &self.operator
    }

    /// The purpose it fetches pages for.
    pub const fn category(&self) -> Category {
        self.category
    }

    /// Whether it obeys groups that name it.
    pub const fn obeys_robots(&self) -> Obeys {
        self.robots
    }

    /// Whether it obeys the groups of `*`.
    pub const fn obeys_star(&self) -> Obeys {
        self.star
    }

    /// Whether it obeys a `Crawl-delay`. Never [`Obeys::Partial`].
    pub const fn obeys_crawl_delay(&self) -> Obeys {
        self.crawl_delay
    }

    /// Whether its token appears in robots.txt only, never in a request: it cannot be enforced.
    pub const fn is_control(&self) -> bool {
        self.control
    }

    /// Whether it feeds the index of a search engine that people use, or tests pages for one (`index` in the data file).
    /// A page that it is refused leaves the index, so a [`Policy`](crate::policy::Policy) does not refuse it unless an
    /// override says so.
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
    pub const fn is_reverse_dns_weak(&self) -> bool {
        self.weak_rdns
    }

    /// Whether others build crawlers with it: the product in front of its name is the crawler's.
    pub const fn is_framework(&self) -> bool {
        self.framework
    }

    /// Where the keys of its HTTP message signatures are.
    pub fn signature(&self) -> Option<&str> {
        self.signature.as_deref()
    }

    /// The documentation these facts come from.
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// Whether the operator's documentation was read for these facts. Otherwise they are general knowledge, and flags
    /// that could refuse what should pass are [`Obeys::Unknown`].
    pub const fn is_checked(&self) -> bool {
        self.checked.is_some()
    }

    /// The day on which the operator's documentation was read for these facts, as `2026-11-22`.
    pub fn checked_on(&self) -> Option<&str> {
        self.checked.as_deref()
    }

    /// Headers it sends.
    pub fn examples(&self) -> impl ExactSizeIterator<Item = &str> {
        self.examples.iter().map(AsRef::as_ref)
    }
}

keyword_enum! {
    /// How an agent is known.
    Class, "a class of agents", {
        /// A crawler of the [`Registry`](super::Registry).
        Registered = "registered",
        /// Not in the registry, but it says that it is a robot: a crawler word, a contact address, or a
        /// `compatible; Product` that names no platform.
        Declared = "declared",
        /// Not in the registry, but it calls itself a health probe, a validator or a webhook.
        Infrastructure = "infrastructure",
        /// A browser that runs without a person in front of it, and says so.
        Headless = "headless",
        /// An HTTP library or command line client that says nothing of who uses it.
        Library = "library",
        /// An application on a person's device.
        App = "app",
        /// Neither shaped like a browser nor anything of the above.
        NonBrowser = "non-browser",
        /// A browser, or what looks like one.
        Browser = "browser",
        /// Nothing but blanks, or no field at all.
        Empty = "empty",
    }
}

keyword_enum! {
    /// The purpose an agent fetches pages for.
    Category, "a category of crawlers", {
        /// A search engine.
        Search = "search",
        /// Collecting material to train models on.
        AiTraining = "ai-training",
        /// An index that answers are made from.
        AiSearch = "ai-search",
        /// One page at a person's request.
        UserFetch = "user-fetch",
        /// Links and rankings, for site owners and their rivals.
        Seo = "seo",
        /// Keeping pages for later.
        Archive = "archive",
        /// A card or picture for a link that a person shared.
        Preview = "preview",
        /// Uptime, speed or validity, mostly for the site's own people.
        Monitoring = "monitoring",
        /// Feeds and podcasts that people subscribed to.
        Feed = "feed",
        /// Surveys of what is reachable or vulnerable.
        Security = "security",
        /// Advertisements and where they stand.
        Ads = "ads",
        /// Health probes, certificate validators, webhooks, load balancers.
        Infrastructure = "infrastructure",
        /// Anything else.
        Other = "other",
    }
}

keyword_enum! {
    /// Whether an agent obeys robots.txt, or the groups of `*` in it.
    Obeys, "an answer to whether an agent obeys", {
        /// Its operator says so.
        Yes = "yes",
        /// Its operator says it does not.
        No = "no",
        /// In part, or only for some of its requests.
        Partial = "partial",
        /// Not documented, or not checked.
        Unknown = "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_forms_read_back() {
        for class in Class::ALL {
            assert_eq!(class.as_str().parse(), Ok(*class));
        }
        for category in Category::ALL {
            assert_eq!(category.as_str().parse(), Ok(*category));
        }
        for obeys in Obeys::ALL {
            assert_eq!(obeys.as_str().parse(), Ok(*obeys));
        }
        let error = "ai-user".parse::<Obeys>().expect_err("unknown").to_string();
        let message =
            "\"ai-user\" is not an answer to whether an agent obeys: write \"yes\", \"no\", \"partial\" or \"unknown\"";
        assert_eq!(error, message);
        assert!("Search".parse::<Category>().is_err() && "".parse::<Class>().is_err());
    }
}
