//! A crawler of the registry, and the scales it is placed on: what it is for, and whether it obeys.

use crate::keyword_enum;
use crate::rules::ProductToken;

/// A crawler that exists, and what is known of it: a row of a [`Registry`](super::Registry).
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
    /// Whether it obeys groups that name it.
    pub obeys_robots: Obeys,
    /// Whether it obeys the groups of `*`. [`Obeys::Unknown`] is held to `*`.
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
    /// Where its operator publishes the address ranges it uses.
    pub ranges: Vec<String>,
    /// Suffixes of the reverse DNS names of its addresses, or patterns where they hold a `*`.
    pub reverse_dns: Vec<String>,
    /// Whether the names of its addresses are often missing or unconfirmed. Such names verify a request; that an address
    /// has none of them refutes nothing.
    pub is_reverse_dns_weak: bool,
    /// Whether others build crawlers with it: the product in front of its name is the crawler's.
    pub is_framework: bool,
    /// Where the keys of its HTTP message signatures are.
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
