//! A crawler of the registry, and the scales it is placed on: its purpose, and whether it obeys. And rows that change a
//! registry: a crawler to add or replace, or the name of one to remove.

use std::fmt;

use super::referrer::is_host;
use crate::keyword_enum;
use crate::rules::{Fallback, ProductToken};

/// A crawler that exists, and the facts about it: a row of a [`Registry`](super::Registry).
///
/// To add one, write what differs from [`Crawler::new`]. [`Registry::extended_with`](super::Registry::extended_with)
/// checks the values.
///
/// ```
/// use robots_core::agent::{Category, Crawler, Obeys, Registry};
///
/// let row = Crawler { obeys_star: Obeys::Yes, ..Crawler::new("OurBot", Category::Search) };
/// let registry = Registry::builtin().extended_with([row])?;
/// assert!(registry.crawler("OurBot").is_some());
/// # Ok::<(), robots_core::agent::RegistryError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Crawler {
    /// The name it is listed under.
    pub name: String,
    /// The names found in its `User-Agent` headers, between boundaries; none for a control token.
    pub header_names: Vec<String>,
    /// The product tokens it obeys, the first that a file names first. In a registry never empty.
    pub tokens: Vec<ProductToken>,
    /// Its operator.
    pub operator: String,
    /// The purpose it fetches pages for.
    pub category: Category,
    /// The purposes that what it collects is published for, or known to be used for by others, besides its own.
    pub supplies: Vec<Category>,
    /// Whether it obeys groups that name it.
    pub obeys_robots: Obeys,
    /// Whether it obeys the groups of `*`. `*` applies to [`Obeys::Unknown`].
    pub obeys_star: Obeys,
    /// Whether it obeys a `Crawl-delay`. Never [`Obeys::Partial`].
    pub obeys_crawl_delay: Obeys,
    /// Whether its token appears in robots.txt only, never in a request: it cannot be enforced.
    pub is_control: bool,
    /// Whether it feeds the index of a search engine that people use, or tests pages for one (`index` in the data file).
    /// A page that it is refused leaves the index, so a [`Policy`](crate::policy::Policy) does not refuse it unless an
    /// override says so.
    pub is_index_engine: bool,
    /// Texts of which a header must hold one besides the name, because the name is also a word.
    pub requires: Vec<String>,
    /// The URLs at which its operator publishes the address ranges it uses.
    pub ranges: Vec<String>,
    /// Suffixes of the reverse DNS names of its addresses, or patterns where they hold a `*`.
    pub reverse_dns: Vec<String>,
    /// Whether the names of its addresses are often missing or unconfirmed. Such names verify a request; that an address
    /// has none of them refutes nothing.
    pub is_reverse_dns_weak: bool,
    /// Whether others build crawlers with it: the product in front of its name is the crawler's.
    pub is_framework: bool,
    /// Hosts of its operator's services that send people to the pages they show, as a `Referer` names them: `chatgpt.com`,
    /// with `.bing.com` those under it too, and with `google.*` the name in every country. One row of an operator has them.
    pub referers: Vec<String>,
    /// The URL of the keys of its HTTP message signatures.
    pub signature: Option<String>,
    /// The documentation these facts come from.
    pub source: Option<String>,
    /// The day on which the operator's documentation was read for these facts, as `2026-11-22`. Without one they are
    /// general knowledge, and flags that could refuse what should pass are [`Obeys::Unknown`].
    pub checked_on: Option<String>,
    /// Headers it sends.
    pub examples: Vec<String>,
}

impl Crawler {
    /// A crawler whose header name and product token are its name. It obeys groups [`Obeys::Unknown`], and everything else
    /// is empty.
    pub fn new(name: impl Into<String>, category: Category) -> Self {
        let name = name.into();
        Self {
            header_names: vec![name.clone()],
            tokens: vec![ProductToken::new(&name)],
            name,
            category,
            ..Self::default()
        }
    }

    /// A name for robots.txt only: it has no header names.
    pub fn control_token(name: impl Into<String>, category: Category) -> Self {
        Self { header_names: Vec::new(), is_control: true, ..Self::new(name, category) }
    }

    /// The crawler as a registry has it, or the field whose value no crawler can have, and why.
    pub(super) fn checked(mut self) -> Result<Self, (&'static str, String)> {
        let wrong = |field, message: &str| Err((field, message.to_owned()));
        if self.name.trim().is_empty() {
            return wrong("name", "a crawler has a name: add one");
        }
        if self.is_control && !self.header_names.is_empty() {
            return wrong("header", "a control token is never sent in a header: drop control or header");
        }
        let is_findable = |name: &&String| name.bytes().any(|byte| byte.is_ascii_alphanumeric());
        if let Some(name) = self.header_names.iter().find(|name| !is_findable(name)) {
            let message = format!(
                "\"{name}\" holds neither letter nor digit, so no header can be found by it: write a name that does"
            );
            return wrong("header", &message);
        }
        if self.tokens.is_empty() {
            self.tokens.push(ProductToken::new(&self.name));
        }
        if let Some(token) = self.tokens.iter().map(ToString::to_string).find(|token| token.trim().is_empty()) {
            let message =
                format!("\"{token}\" is not a product token: write the name that a group has for this crawler");
            return wrong("tokens", &message);
        }
        if let Some(day) = self.checked_on.as_ref().filter(|day| !is_day(day)) {
            return wrong("checked", &format!("\"{day}\" is no day: write it as \"2026-11-22\""));
        }
        if let Some(host) = self.referers.iter().find(|host| !is_host(host)) {
            let message = format!(
                "\"{host}\" is no host of a service: write it as \"chatgpt.com\", with those under it as \".bing.com\", or for all countries as \"google.*\""
            );
            return wrong("referers", &message);
        }
        if self.obeys_crawl_delay == Obeys::Partial {
            return wrong("crawl_delay", "\"partial\" is not said of a delay: write \"yes\", \"no\" or \"unknown\"");
        }
        if self.is_reverse_dns_weak && self.reverse_dns.is_empty() {
            return wrong("weak", "the row has no rdns that could be weak: drop weak or add rdns");
        }
        Ok(self)
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
    #[derive(Default)]
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
        #[default]
        Other = "other",
    }
}

keyword_enum! {
    /// Whether an agent obeys robots.txt, or the groups of `*` in it.
    #[derive(Default)]
    Obeys, "an answer to whether an agent obeys", {
        /// Its operator says so.
        Yes = "yes",
        /// Its operator says it does not.
        No = "no",
        /// In part, or only for some of its requests.
        Partial = "partial",
        /// Not documented, or not checked.
        #[default]
        Unknown = "unknown",
    }
}

impl Class {
    /// Whether its agents are crawlers: the registry knows them, or they say so.
    pub const fn is_crawler(self) -> bool {
        matches!(self, Self::Registered | Self::Declared)
    }
}

impl Obeys {
    /// The groups of `*` as a crawler takes them of which this says whether it obeys them: they apply unless its operator says no.
    pub(crate) fn fallback(self) -> Fallback {
        if self == Self::No { Fallback::Nothing } else { Fallback::Star }
    }
}

/// A change of a [`Registry`](super::Registry).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RegistryRow {
    /// Adds a crawler, or puts it in the place of the one with the same name, whatever the case.
    Put(Box<Crawler>),
    /// Removes the crawler with this name, whatever the case.
    Remove(String),
}

impl RegistryRow {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Put(crawler) => &crawler.name,
            Self::Remove(name) => name,
        }
    }
}

impl From<Crawler> for RegistryRow {
    fn from(crawler: Crawler) -> Self {
        Self::Put(Box::new(crawler))
    }
}

/// Whether a text is a day as `2026-11-22`.
fn is_day(text: &str) -> bool {
    let is_number = |digits: &str, length: usize, range: std::ops::RangeInclusive<u16>| {
        let is_plain = digits.len() == length && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_plain && digits.parse().is_ok_and(|number| range.contains(&number))
    };
    let parts: Vec<_> = text.split('-').collect();
    matches!(parts[..], [year, month, day]
        if is_number(year, 4, 0..=9999) && is_number(month, 2, 1..=12) && is_number(day, 2, 1..=31))
}

/// Why a [`Registry`](super::Registry) cannot be extended with the given rows.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegistryError {
    /// Which of the rows is wrong, from 0.
    pub row: usize,
    /// The field of the row that is wrong, by its key in a registry file: `name`, `header` or `tokens`.
    pub field: &'static str,
    /// The mistake and its correction, without the place.
    pub message: String,
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "row {}, {}: {}", self.row + 1, self.field, self.message)
    }
}

crate::debug_as_displayed!(RegistryError);

impl std::error::Error for RegistryError {}

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

    #[test]
    fn defaults_follow_from_the_name() {
        let crawler = Crawler::new("A Bot", Category::Seo).checked().unwrap();
        assert_eq!(crawler.header_names, ["A Bot"]);
        assert_eq!(crawler.tokens, [ProductToken::new("a bot")]);
        assert_eq!((crawler.obeys_robots, crawler.obeys_star), (Obeys::Unknown, Obeys::Unknown));
        assert!(!crawler.is_control && !crawler.is_index_engine && crawler.checked_on.is_none());
        let without = Crawler { tokens: Vec::new(), ..Crawler::new("A Bot", Category::Seo) }.checked().unwrap();
        assert_eq!(without.tokens, crawler.tokens);
    }

    #[test]
    fn a_wrong_value_is_refused_with_its_field_and_what_would_be_right() {
        let row = || Crawler::new("A", Category::Seo);
        let checked_on = |day: &str| Crawler { checked_on: Some(day.into()), ..row() };
        for (row, field, right) in [
            (Crawler::new(" ", Category::Seo), "name", "add one"),
            (Crawler { header_names: vec!["A".into(), "!".into()], ..row() }, "header", "write a name that does"),
            (Crawler { is_control: true, ..row() }, "header", "drop control or header"),
            (Crawler { tokens: ["A", ""].map(ProductToken::new).into(), ..row() }, "tokens", "write the name"),
            (checked_on("yesterday"), "checked", "2026-11-22"),
            (checked_on("2026-13-01"), "checked", "2026-11-22"),
            (Crawler { is_reverse_dns_weak: true, ..row() }, "weak", "add rdns"),
            (Crawler { obeys_crawl_delay: Obeys::Partial, ..row() }, "crawl_delay", "write \"yes\""),
        ] {
            let (wrong, message) = row.checked().unwrap_err();
            assert_eq!(wrong, field);
            assert!(message.contains(right), "{message}");
        }
        assert!(Crawler::control_token("A", Category::Seo).checked().is_ok());
    }

    #[test]
    fn a_row_with_every_value_is_kept_as_it_is() {
        let row = Crawler {
            header_names: vec!["A".into(), "A Bot".into()],
            tokens: ["a", "b"].map(ProductToken::new).into(),
            operator: "O".into(),
            supplies: vec![Category::AiTraining],
            obeys_robots: Obeys::Yes,
            obeys_star: Obeys::No,
            obeys_crawl_delay: Obeys::Yes,
            is_index_engine: true,
            requires: vec!["r".into()],
            ranges: vec!["https://a.test/ranges".into()],
            reverse_dns: vec![".a.test".into()],
            is_reverse_dns_weak: true,
            is_framework: true,
            referers: vec!["a.test".into()],
            signature: Some("https://a.test/keys".into()),
            source: Some("https://a.test".into()),
            checked_on: Some("2026-11-22".into()),
            examples: vec!["A/1".into()],
            ..Crawler::new("A", Category::Ads)
        };
        assert_eq!(format!("{:?}", row.clone().checked().unwrap()), format!("{row:?}"));
    }
}
