//! From a header to an agent.

use std::sync::Arc;

use super::claim::Testimony;
use super::crawler::Crawler;
use super::file_names::{FileNames, may_claim};
use super::header::Header;
use super::kind::{Category, Class, Obeys};
use super::registry::Registry;
use crate::rules::{ProductToken, RobotsTxt};

/// The agent that a request claims to be from. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Agent {
    class: Class,
    recognized: RecognizedAs,
}

#[derive(Clone, Debug)]
enum RecognizedAs {
    Registered(Arc<Crawler>),
    Claimed(Arc<Claimed>),
    Unnamed,
}

#[derive(Debug)]
struct Claimed {
    product: Option<String>,
    category: Option<Category>,
    tokens: Vec<ProductToken>,
}

/// Recognises the agents of one robots.txt: the crawlers of the registry, and those the file names besides.
///
/// ```
/// use tower_robots::agent::{Class, Recognizer, Registry};
/// use tower_robots::rules::{ProductToken, RobotsTxt};
///
/// let file = RobotsTxt::parse(&b"User-agent: ExampleBot\nDisallow: /\n"[..]);
/// let recognizer = Recognizer::new(Registry::builtin().clone(), &file);
///
/// let agent = recognizer.identify(b"Mozilla/5.0 (compatible; Googlebot-Image/1.0; +http://www.google.com/bot.html)");
/// assert_eq!(agent.class(), Class::Registered);
/// assert_eq!(agent.tokens(), [ProductToken::new("googlebot-image"), ProductToken::new("googlebot")]);
///
/// let agent = recognizer.identify(b"ExampleBot/2.1 (+https://example.com/bot)");
/// assert_eq!((agent.class(), agent.crawler()), (Class::Declared, Some("ExampleBot")));
/// ```
#[derive(Debug)]
pub struct Recognizer {
    registry: Arc<Registry>,
    names: FileNames,
}

impl Recognizer {
    /// Prepares the names of a file. The registry is shared, not copied.
    #[must_use]
    pub fn new(registry: Arc<Registry>, file: &RobotsTxt) -> Self {
        let names = FileNames::new(&registry, file);
        Self { registry, names }
    }

    /// The registry it recognises by.
    #[must_use]
    pub const fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// The agent that one field line of `User-Agent` names.
    ///
    /// Any octets will do, and the whole line counts, however long.
    #[must_use]
    pub fn identify(&self, field: &[u8]) -> Agent {
        let header = Header::read(field);
        if let Some(crawler) = self.registry.find(&header) {
            return Agent::of(crawler.clone());
        }
        let testimony = Testimony::of(&header);
        let name = self.names.find(&header, &testimony);
        let claim = testimony.claim();
        if name.is_none() && claim.product.is_none() && claim.category.is_none() {
            return Agent { class: claim.class, recognized: RecognizedAs::Unnamed };
        }
        let own = claim.product.as_deref().and_then(|product| ProductToken::from_name(product.as_bytes()));
        let own = own.filter(|own| Some(own) != name && may_claim(own));
        let tokens = name.cloned().into_iter().chain(own).collect();
        let claimed = Claimed { product: claim.product, category: claim.category, tokens };
        Agent { class: claim.class, recognized: RecognizedAs::Claimed(Arc::new(claimed)) }
    }
}

impl Agent {
    /// An agent whose request has no `User-Agent` field.
    #[must_use]
    pub const fn empty() -> Self {
        Self { class: Class::Empty, recognized: RecognizedAs::Unnamed }
    }

    pub(super) const fn of(crawler: Arc<Crawler>) -> Self {
        Self { class: Class::Registered, recognized: RecognizedAs::Registered(crawler) }
    }

    /// A crawler that is not registered, by the tokens that it obeys.
    pub(super) fn named(product: Option<String>, tokens: Vec<ProductToken>) -> Self {
        let claimed = Claimed { product, category: None, tokens };
        Self { class: Class::Declared, recognized: RecognizedAs::Claimed(Arc::new(claimed)) }
    }

    /// How it is known.
    #[must_use]
    pub const fn class(&self) -> Class {
        self.class
    }

    /// The purpose it fetches pages for, where the registry or the header states one.
    #[must_use]
    pub fn category(&self) -> Option<Category> {
        match &self.recognized {
            RecognizedAs::Registered(crawler) => Some(crawler.category()),
            RecognizedAs::Claimed(claimed) => claimed.category,
            RecognizedAs::Unnamed => None,
        }
    }

    /// The registered name, or the product that declared itself.
    #[must_use]
    pub fn crawler(&self) -> Option<&str> {
        match &self.recognized {
            RecognizedAs::Registered(crawler) => Some(crawler.name()),
            RecognizedAs::Claimed(claimed) => claimed.product.as_deref(),
            RecognizedAs::Unnamed => None,
        }
    }

    /// The product tokens it obeys, in order; for [`RuleSet::select`](crate::rules::RuleSet::select).
    #[must_use]
    pub fn tokens(&self) -> &[ProductToken] {
        match &self.recognized {
            RecognizedAs::Registered(crawler) => crawler.tokens(),
            RecognizedAs::Claimed(claimed) => &claimed.tokens,
            RecognizedAs::Unnamed => &[],
        }
    }

    /// Whether it obeys the groups of `*`; [`Obeys::Unknown`] for all but registered crawlers.
    #[must_use]
    pub fn obeys_star(&self) -> Obeys {
        match &self.recognized {
            RecognizedAs::Registered(crawler) => crawler.obeys_star(),
            _ => Obeys::Unknown,
        }
    }

    /// Whether it is registered as a crawler of a search engine that people use, or as a tester for one: see
    /// [`Crawler::is_index_engine`].
    #[must_use]
    pub fn is_index_engine(&self) -> bool {
        matches!(&self.recognized, RecognizedAs::Registered(crawler) if crawler.is_index_engine())
    }

    /// Whether the registry knows it.
    #[must_use]
    pub const fn is_registered(&self) -> bool {
        matches!(self.recognized, RecognizedAs::Registered(_))
    }

    /// The registry's row for it.
    #[must_use]
    pub fn registered(&self) -> Option<&Crawler> {
        match &self.recognized {
            RecognizedAs::Registered(crawler) => Some(crawler),
            _ => None,
        }
    }
}

/// The agent of a crawler, for questions about it without a request.
impl From<&Crawler> for Agent {
    fn from(crawler: &Crawler) -> Self {
        Self::of(Arc::new(crawler.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(file: &str, header: &str) -> Agent {
        Recognizer::new(Registry::builtin().clone(), &RobotsTxt::parse(file.as_bytes())).identify(header.as_bytes())
    }

    #[test]
    fn a_product_without_a_category_is_kept_and_so_is_a_name_without_a_product() {
        let unknown = agent("", "NeverSeenBot/1.0");
        assert_eq!(
            (unknown.class(), unknown.crawler(), unknown.category()),
            (Class::Declared, Some("NeverSeenBot"), None)
        );
        assert_eq!(unknown.tokens(), [ProductToken::new("neverseenbot")]);
        let named = agent("User-agent: Foo\nDisallow: /\n", "Foo/1.0");
        assert_eq!((named.class(), named.crawler()), (Class::NonBrowser, None));
        assert_eq!(named.tokens(), [ProductToken::new("foo")]);
        let browser = agent("", "Mozilla/5.0 (X11; Linux) Gecko/1 Firefox/2");
        assert_eq!((browser.class(), browser.crawler(), browser.tokens().len()), (Class::Browser, None, 0));
    }

    #[test]
    fn a_registered_crawler_has_its_row_and_no_other_agent_has_one() {
        let registered = agent("", "GPTBot/1.2");
        assert!(registered.is_registered());
        assert_eq!(registered.registered().map(Crawler::name), Some("GPTBot"));
        assert_eq!(registered.category(), registered.registered().map(Crawler::category));
        for other in [agent("", "NeverSeenBot/1.0"), agent("", ""), Agent::empty()] {
            assert!(!other.is_registered() && other.registered().is_none(), "{other:?}");
        }
    }

    #[test]
    fn of_names_that_fit_alike_the_first_of_the_header_counts() {
        let file = "User-agent: Foo\nUser-agent: Bar\nDisallow: /\n";
        assert_eq!(agent(file, "Foo/1 Bar/1").tokens()[0], ProductToken::new("foo"));
        assert_eq!(agent(file, "Bar/1 Foo/1").tokens()[0], ProductToken::new("bar"));
    }

    #[test]
    fn a_product_named_by_the_file_and_by_itself_has_one_token() {
        let agent = agent("User-agent: NeverSeenBot\nDisallow: /\n", "NeverSeenBot/1.0");
        assert_eq!(agent.tokens(), [ProductToken::new("neverseenbot")]);
    }
}
