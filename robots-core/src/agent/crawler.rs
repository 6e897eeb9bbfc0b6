//! A crawler of the registry, with its purpose and whether it obeys. Also rows that change a
//! registry: a crawler to add or replace, or the name of one to remove.

use std::fmt;

use super::referrer::is_host;
use crate::keyword_enum;
use crate::rules::{Fallback, ProductToken};

/// An existing crawler and the facts about it: a row of a [`Registry`](super::Registry).
///
/// To add a crawler, set the fields that differ from [`Crawler::new`].
/// [`Registry::extended_with`](super::Registry::extended_with) checks the values.
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
    /// Name of the crawler in lists.
    pub name: String,
    /// Names to be found between boundaries in its `User-Agent` headers; empty for a control token.
    pub header_names: Vec<String>,
    /// Product tokens that it obeys; of those that a file names, the first one counts. Never empty
    /// in a registry.
    pub tokens: Vec<ProductToken>,
    /// Operator of the crawler.
    pub operator: String,
    /// Purpose of its requests.
    pub category: Category,
    /// Further purposes that the collected data is published for, or known to be used for by
    /// others.
    pub supplies: Vec<Category>,
    /// Whether the crawler obeys groups that name it.
    pub obeys_robots: Obeys,
    /// Whether it obeys the groups of `*`. `*` applies to [`Obeys::Unknown`].
    pub obeys_star: Obeys,
    /// Whether it obeys a `Crawl-delay`. Never [`Obeys::Partial`].
    pub obeys_crawl_delay: Obeys,
    /// Whether its token appears only in robots.txt and never in a request, so that it cannot be
    /// enforced.
    pub is_control: bool,
    /// Whether it feeds the index of a search engine that people use, or tests pages for one
    /// (`index` in the data file). A page that is refused to it leaves the index, so a
    /// [`Policy`](crate::policy::Policy) does not refuse it unless an override requires that.
    pub is_index_engine: bool,
    /// A header must contain at least one of these strings in addition to the name, because the
    /// name is also a word.
    pub requires: Vec<String>,
    /// URLs of the operator's lists of the crawler's address ranges.
    pub ranges: Vec<String>,
    /// Suffixes of its addresses' reverse DNS names, or patterns if they contain a `*`.
    pub reverse_dns: Vec<String>,
    /// Whether the names of its addresses are often missing or unconfirmed. Such names verify a
    /// request, but the lack of one refutes nothing.
    pub is_reverse_dns_weak: bool,
    /// Whether others build crawlers with it. The crawler is then the product in front of its name.
    pub is_framework: bool,
    /// Hosts, as in a `Referer`, of the operator's services that send people to the pages they
    /// show. Examples: `chatgpt.com`; `.bing.com` for the host and its subdomains; `google.*` for
    /// the name in every country. Only one row per operator has them.
    pub referers: Vec<String>,
    /// URL of the keys of its HTTP message signatures.
    pub signature: Option<String>,
    /// URL of the documentation behind these facts.
    pub source: Option<String>,
    /// Day when the operator's documentation was read for these facts, such as `2026-11-22`. If it
    /// is `None`, they are general knowledge, and flags that could refuse legitimate requests are
    /// [`Obeys::Unknown`].
    pub checked_on: Option<String>,
    /// Examples of its headers.
    pub examples: Vec<String>,
}

impl Crawler {
    /// Creates a crawler with this name as header name and product token. It obeys groups
    /// [`Obeys::Unknown`], and all other fields are empty.
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

    /// Creates a name for robots.txt only, without header names.
    #[doc(hidden)]
    pub fn control_token(name: impl Into<String>, category: Category) -> Self {
        Self { header_names: Vec::new(), is_control: true, ..Self::new(name, category) }
    }

    /// Returns the crawler in the form that a registry contains, or the invalid field and the
    /// reason.
    pub(super) fn checked(mut self) -> Result<Self, (&'static str, String)> {
        let wrong = |field, message: &str| Err((field, message.to_owned()));
        if self.name.trim().is_empty() {
            return wrong("name", "the name is empty: write one");
        }
        if self.is_control && !self.header_names.is_empty() {
            return wrong("header", "a control token is never sent in a header: remove control or header");
        }
        let is_findable = |name: &&String| name.bytes().any(|byte| byte.is_ascii_alphanumeric());
        if let Some(name) = self.header_names.iter().find(|name| !is_findable(name)) {
            let message = format!(
                "\"{name}\" contains neither a letter nor a digit, so it cannot be found in headers: write a name that does"
            );
            return wrong("header", &message);
        }
        if self.tokens.is_empty() {
            self.tokens.push(ProductToken::new(&self.name));
        }
        if let Some(token) = self.tokens.iter().map(ToString::to_string).find(|token| token.trim().is_empty()) {
            let message =
                format!("\"{token}\" is not a product token: write the name that groups use for this crawler");
            return wrong("tokens", &message);
        }
        if let Some(day) = self.checked_on.as_ref().filter(|day| !is_day(day)) {
            return wrong("checked", &format!("\"{day}\" is not a date: write it as \"2026-11-22\""));
        }
        if let Some(host) = self.referers.iter().find(|host| !is_host(host)) {
            let message = format!(
                "\"{host}\" is not a host: write it as \"chatgpt.com\", with its subdomains as \".bing.com\", or for all countries as \"google.*\""
            );
            return wrong("referers", &message);
        }
        if self.obeys_crawl_delay == Obeys::Partial {
            return wrong(
                "crawl_delay",
                "\"partial\" is not allowed for a delay: write \"yes\", \"no\" or \"unknown\"",
            );
        }
        if self.is_reverse_dns_weak && self.reverse_dns.is_empty() {
            return wrong("weak", "weak applies to rdns, which the row does not have: remove weak or add rdns");
        }
        Ok(self)
    }
}

keyword_enum! {
    /// How an agent is known.
    Class, "a class of agents", {
        /// A crawler of the [`Registry`](super::Registry).
        Registered = "registered",
        /// Not in the registry, but it declares that it is a robot: by a crawler word, a contact
        /// address, or a `compatible; Product` without a platform.
        Declared = "declared",
        /// Not in the registry, but it calls itself a health probe, a validator or a webhook.
        Infrastructure = "infrastructure",
        /// A browser that declares that it runs without a person in front of it.
        Headless = "headless",
        /// An HTTP library or command line client that does not name its user.
        Library = "library",
        /// An application on a person's device.
        App = "app",
        /// Not shaped like a browser, and none of the above.
        NonBrowser = "non-browser",
        /// A browser, or a client that looks like one.
        Browser = "browser",
        /// Only blanks, or no field at all.
        Empty = "empty",
    }
}

keyword_enum! {
    /// The purpose of an agent's requests.
    #[derive(Default)]
    Category, "a category of crawlers", {
        /// A search engine.
        Search = "search",
        /// Collecting material for training models.
        AiTraining = "ai-training",
        /// Building an index for generated answers.
        AiSearch = "ai-search",
        /// Fetching one page at a person's request.
        UserFetch = "user-fetch",
        /// Analysing links and rankings, for site owners and their competitors.
        Seo = "seo",
        /// Preserving pages.
        Archive = "archive",
        /// Creating a card or picture for a link that a person shared.
        Preview = "preview",
        /// Checking uptime, speed or validity, usually for the site's owner.
        Monitoring = "monitoring",
        /// Fetching feeds and podcasts that people subscribed to.
        Feed = "feed",
        /// Surveying what is reachable or vulnerable.
        Security = "security",
        /// Advertisements and their placement.
        Ads = "ads",
        /// Health probes, certificate validators, webhooks, load balancers.
        Infrastructure = "infrastructure",
        /// Anything else.
        #[default]
        Other = "other",
    }
}

keyword_enum! {
    /// Whether an agent obeys robots.txt, or its groups of `*`.
    #[derive(Default)]
    Obeys, "an answer to whether an agent obeys", {
        /// Documented by its operator.
        Yes = "yes",
        /// Its operator documents that it does not.
        No = "no",
        /// It obeys in part, or only for some of its requests.
        Partial = "partial",
        /// Not documented, or not checked.
        #[default]
        Unknown = "unknown",
    }
}

impl Class {
    /// Reports whether agents of this class are crawlers: registered, or declared by themselves.
    pub const fn is_crawler(self) -> bool {
        matches!(self, Self::Registered | Self::Declared)
    }
}

impl Obeys {
    /// Returns whether the groups of `*` apply to a crawler with this value: they do, unless its
    /// operator says no.
    pub(crate) fn fallback(self) -> Fallback {
        if self == Self::No { Fallback::Nothing } else { Fallback::Star }
    }
}

/// A change of a [`Registry`](super::Registry).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RegistryRow {
    /// Adds a crawler, or replaces the one with the same name, ignoring case.
    Put(Box<Crawler>),
    /// Removes the crawler with this name, ignoring case.
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

/// Whether the string is a day such as `2026-11-22`.
fn is_day(text: &str) -> bool {
    let is_number = |digits: &str, length: usize, range: std::ops::RangeInclusive<u16>| {
        let is_plain = digits.len() == length && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_plain && digits.parse().is_ok_and(|number| range.contains(&number))
    };
    let parts: Vec<_> = text.split('-').collect();
    matches!(parts[..], [year, month, day]
        if is_number(year, 4, 0..=9999) && is_number(month, 2, 1..=12) && is_number(day, 2, 1..=31))
}

/// The reason why a [`Registry`](super::Registry) cannot be extended with the given rows.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegistryError {
    /// Index of the invalid row, from 0.
    pub row: usize,
    /// The invalid field of the row, by its key in a registry file: `name`, `header` or `tokens`.
    pub field: &'static str,
    /// The mistake and its correction, without the position.
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
            (Crawler::new(" ", Category::Seo), "name", "write one"),
            (Crawler { header_names: vec!["A".into(), "!".into()], ..row() }, "header", "write a name that does"),
            (Crawler { is_control: true, ..row() }, "header", "remove control or header"),
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
