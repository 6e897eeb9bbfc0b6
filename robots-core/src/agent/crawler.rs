//! A row of the registry: a crawler, its purpose and the rules that it obeys. Also defines
//! `RegistryRow`, which adds, replaces or removes a row.

use std::fmt;

use super::referrer::is_host;
use crate::keyword_enum;
use crate::rules::{Fallback, ProductToken};

/// A row of a [`Registry`](super::Registry): a crawler and the known facts about it.
///
/// To add a crawler, start with [`Crawler::new`] and set the fields that differ from the defaults.
/// [`Registry::extended_with`](super::Registry::extended_with) checks the values of the fields.
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
    /// Name of the crawler in the registry, in settings and in reports.
    pub name: String,
    /// The names that identify the crawler in `User-Agent` headers; empty for a control token. A
    /// name must match whole words of the header, but a version may follow the last word
    /// (`ExampleBot2`).
    pub header_names: Vec<String>,
    /// Product tokens whose groups the crawler obeys. If a file has groups for several of these
    /// tokens, the crawler obeys only the group for the token that comes first in this list. In a
    /// registry, this list is never empty.
    pub tokens: Vec<ProductToken>,
    /// Name of the company or organisation that operates the crawler.
    pub operator: String,
    /// Purpose of the crawler's requests.
    pub category: Category,
    /// Purposes for which other organisations use the data that the operator publishes. Does not
    /// contain `category`.
    pub supplies: Vec<Category>,
    /// Whether the crawler obeys groups that name it.
    pub obeys_robots: Obeys,
    /// Whether the crawler obeys the groups for `*`. [`Obeys::Unknown`] is treated like
    /// [`Obeys::Yes`].
    pub obeys_star: Obeys,
    /// Whether the crawler obeys a `Crawl-delay`. Never [`Obeys::Partial`].
    pub obeys_crawl_delay: Obeys,
    /// Whether the row is a control token. A control token appears only in robots.txt, never in a
    /// request, so its rules cannot be enforced.
    pub is_control: bool,
    /// Whether the crawler feeds the index of a search engine that people use, or tests pages for
    /// such a search engine (`index` in the data file). If a site refuses the crawler's requests
    /// for a page, the search engine removes the page from the index. So a
    /// [`Policy`](crate::policy::Policy) refuses requests of this crawler only if an override
    /// refuses them.
    pub is_index_engine: bool,
    /// Additional strings for a crawler whose name is also an ordinary word. The crawler is found
    /// only if the header contains the name and at least one of these strings. If the list is
    /// empty, the name is enough.
    pub requires: Vec<String>,
    /// URLs of the address lists that the operator publishes for the crawler.
    pub ranges: Vec<String>,
    /// Suffixes of the reverse DNS names of the crawler's addresses. An element with a `*` is a
    /// pattern for whole names.
    pub reverse_dns: Vec<String>,
    /// Whether reverse DNS names of the crawler's addresses are often missing or wrong. If so, a
    /// check by reverse DNS can verify a claim, but not refute it.
    pub is_reverse_dns_weak: bool,
    /// Whether the row is a framework for building crawlers. If a product comes before the
    /// framework's name in a header, that product is the crawler.
    pub is_framework: bool,
    /// Hosts in the `Referer` of visitors who come from the operator's services. Examples are
    /// `chatgpt.com`, `.bing.com` for the host and its subdomains, and `google.*` for `google`
    /// under every country's domain. If an operator has several rows, only one row contains the
    /// hosts.
    pub referers: Vec<String>,
    /// URL of the directory with the keys for the crawler's signatures.
    pub signature: Option<String>,
    /// URL of the operator's documentation.
    pub source: Option<String>,
    /// Day when the facts were taken from the operator's documentation, such as `2026-11-22`.
    /// `None` if the day is unknown, or if the facts are general knowledge. In built-in rows with
    /// neither a day nor a `source`, `obeys_star` is never [`Obeys::Yes`], and `obeys_crawl_delay`
    /// is [`Obeys::Unknown`], because unconfirmed facts must not lead to refusals of legitimate
    /// requests.
    pub checked_on: Option<String>,
    /// Examples of the crawler's `User-Agent` headers.
    pub examples: Vec<String>,
}

impl Crawler {
    /// Creates a crawler whose header name and product token are `name`. The `obeys_…` fields are
    /// [`Obeys::Unknown`], and the remaining fields are empty.
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

    /// Creates a control token, which has no header names.
    #[doc(hidden)]
    pub fn control_token(name: impl Into<String>, category: Category) -> Self {
        Self { header_names: Vec::new(), is_control: true, ..Self::new(name, category) }
    }

    /// Checks the fields of the crawler. If the crawler has no tokens, adds its name as a token. If
    /// a field is invalid, returns the field's key and a message.
    pub(super) fn checked(mut self) -> Result<Self, (&'static str, String)> {
        let wrong = |field, message: &str| Err((field, message.to_owned()));
        if self.name.trim().is_empty() {
            return wrong("name", "the name is empty: write the name of the crawler");
        }
        if self.is_control && !self.header_names.is_empty() {
            return wrong(
                "header",
                "a control token never occurs in a header: remove either \"control\" or \"header\"",
            );
        }
        let is_findable = |name: &&String| name.bytes().any(|byte| byte.is_ascii_alphanumeric());
        if let Some(name) = self.header_names.iter().find(|name| !is_findable(name)) {
            let message = format!(
                "\"{name}\" contains neither a letter nor a digit, so it cannot be found in headers: write a name with a letter or a digit"
            );
            return wrong("header", &message);
        }
        if self.tokens.is_empty() {
            self.tokens = vec![ProductToken::new(&self.name)];
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
                "\"{host}\" is not a host: write a host such as \"chatgpt.com\", \".bing.com\" to include subdomains, \
                 or \"google.*\" for every country domain"
            );
            return wrong("referers", &message);
        }
        if self.obeys_crawl_delay == Obeys::Partial {
            return wrong("crawl_delay", "\"crawl_delay\" cannot be \"partial\": write \"yes\", \"no\" or \"unknown\"");
        }
        if self.is_reverse_dns_weak && self.reverse_dns.is_empty() {
            return wrong("weak", "\"weak\" has no effect without \"rdns\": remove \"weak\" or add \"rdns\"");
        }
        Ok(self)
    }
}

keyword_enum! {
    /// The class of an agent, which tells how it was recognised.
    Class, "a class of agents", {
        /// A crawler of the [`Registry`](super::Registry).
        Registered = "registered",
        /// An agent that is not in the registry, but declares itself as a crawler: with a word such
        /// as crawler, a contact address, or `compatible; Product` without a platform.
        Declared = "declared",
        /// An agent that is not in the registry, but calls itself a health probe, a validator or a
        /// webhook.
        Infrastructure = "infrastructure",
        /// A headless browser that identifies itself as such.
        Headless = "headless",
        /// An HTTP library or command line client. Its purpose is unknown.
        Library = "library",
        /// An application on a person's device.
        App = "app",
        /// An agent that does not look like a browser and belongs to none of the classes above.
        NonBrowser = "non-browser",
        /// A browser, or a client that looks like one.
        Browser = "browser",
        /// An agent without a `User-Agent`, or whose `User-Agent` is only white space.
        Empty = "empty",
    }
}

keyword_enum! {
    /// The purpose of an agent's requests.
    #[derive(Default)]
    Category, "a category of crawlers", {
        /// Building the index of a search engine.
        Search = "search",
        /// Collecting data for training AI models.
        AiTraining = "ai-training",
        /// Building an index for generated answers.
        AiSearch = "ai-search",
        /// Fetching one page at a person's request.
        UserFetch = "user-fetch",
        /// Analysing links and rankings, for site owners and their competitors.
        Seo = "seo",
        /// Preserving copies of pages in an archive.
        Archive = "archive",
        /// Creating a preview card for a link that a person shared.
        Preview = "preview",
        /// Checking uptime, speed or validity, usually for the site's owner.
        Monitoring = "monitoring",
        /// Fetching feeds and podcasts that people subscribed to.
        Feed = "feed",
        /// Searching the internet for reachable or vulnerable services.
        Security = "security",
        /// Placing and checking advertisements.
        Ads = "ads",
        /// Probing health, validating certificates or domains, delivering webhooks, or balancing
        /// load.
        Infrastructure = "infrastructure",
        /// Any other purpose.
        #[default]
        Other = "other",
    }
}

keyword_enum! {
    /// Whether an agent obeys robots.txt, or a part of robots.txt such as the groups for `*`.
    #[derive(Default)]
    Obeys, "a value for whether an agent obeys rules", {
        /// The operator documents that the agent obeys the rules.
        Yes = "yes",
        /// The operator documents that the agent ignores the rules.
        No = "no",
        /// The agent obeys some of the rules, or obeys them only for some of its requests.
        Partial = "partial",
        /// The operator does not document this, or the documentation was not checked.
        #[default]
        Unknown = "unknown",
    }
}

impl Class {
    /// Reports whether agents of this class are crawlers: either registered crawlers, or agents
    /// that declare themselves as crawlers.
    pub const fn is_crawler(self) -> bool {
        matches!(self, Self::Registered | Self::Declared)
    }
}

impl Obeys {
    pub(crate) fn fallback(self) -> Fallback {
        if self == Self::No { Fallback::Nothing } else { Fallback::Star }
    }
}

/// A change to a registry, for [`Registry::extended_with`](super::Registry::extended_with).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RegistryRow {
    /// Adds a crawler, or replaces the crawler with the same name, ignoring case.
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

fn is_day(text: &str) -> bool {
    let is_number = |digits: &str, length: usize, range: std::ops::RangeInclusive<u16>| {
        let is_plain = digits.len() == length && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_plain && digits.parse().is_ok_and(|number| range.contains(&number))
    };
    let parts: Vec<_> = text.split('-').collect();
    matches!(parts[..], [year, month, day]
        if is_number(year, 4, 0..=9999) && is_number(month, 2, 1..=12) && is_number(day, 2, 1..=31))
}

/// Error for an invalid row in [`Registry::extended_with`](super::Registry::extended_with).
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegistryError {
    /// Index of the invalid row, from 0.
    pub row: usize,
    /// Key of the invalid field in a registry file, such as `name`, `header` or `tokens`.
    pub field: &'static str,
    /// The problem and how to correct it. The message does not contain the row and the field.
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
    fn classes_categories_and_obeys_values_parse_back_from_their_strings() {
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
        let message = "\"ai-user\" is not a value for whether an agent obeys rules: write \"yes\", \"no\", \"partial\" \
            or \"unknown\"";
        assert_eq!(error, message);
        assert!("Search".parse::<Category>().is_err() && "".parse::<Class>().is_err());
    }

    #[test]
    fn header_names_and_tokens_default_to_the_name() {
        let crawler = Crawler::new("A Bot", Category::Seo).checked().unwrap();
        assert_eq!(crawler.header_names, ["A Bot"]);
        assert_eq!(crawler.tokens, [ProductToken::new("a bot")]);
        assert_eq!((crawler.obeys_robots, crawler.obeys_star), (Obeys::Unknown, Obeys::Unknown));
        assert!(!crawler.is_control && !crawler.is_index_engine && crawler.checked_on.is_none());
        let without = Crawler { tokens: Vec::new(), ..Crawler::new("A Bot", Category::Seo) }.checked().unwrap();
        assert_eq!(without.tokens, crawler.tokens);
    }

    #[test]
    fn the_error_for_a_wrong_value_contains_its_field_and_a_correction() {
        let row = || Crawler::new("A", Category::Seo);
        let checked_on = |day: &str| Crawler { checked_on: Some(day.into()), ..row() };
        for (row, field, right) in [
            (Crawler::new(" ", Category::Seo), "name", "write the name of the crawler"),
            (
                Crawler { header_names: vec!["A".into(), "!".into()], ..row() },
                "header",
                "write a name with a letter or a digit",
            ),
            (Crawler { is_control: true, ..row() }, "header", "remove either \"control\" or \"header\""),
            (Crawler { tokens: ["A", ""].map(ProductToken::new).into(), ..row() }, "tokens", "write the name"),
            (checked_on("yesterday"), "checked", "2026-11-22"),
            (checked_on("2026-13-01"), "checked", "2026-11-22"),
            (Crawler { is_reverse_dns_weak: true, ..row() }, "weak", "add \"rdns\""),
            (Crawler { obeys_crawl_delay: Obeys::Partial, ..row() }, "crawl_delay", "write \"yes\""),
        ] {
            let (wrong, message) = row.checked().unwrap_err();
            assert_eq!(wrong, field);
            assert!(message.contains(right), "{message}");
        }
        assert!(Crawler::control_token("A", Category::Seo).checked().is_ok());
    }

    #[test]
    fn checking_a_valid_row_with_every_field_set_does_not_change_it() {
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
