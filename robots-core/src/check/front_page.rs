//! The access of search engines and AI crawlers to the front page of a site.

use crate::agent::{Category, Crawler, Obeys, Registry};
use crate::keyword_enum;
use crate::rules::{Access, RequestPath, RuleSet};

/// Access of a crawler to the front page.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct FrontPageAccess {
    /// Name of the crawler in the registry.
    pub crawler: String,
    /// Kind of the crawler.
    pub kind: CrawlerKind,
    /// Whether the crawler may fetch the front page.
    pub access: Access,
    /// Line of the deciding rule; `None` if no rule decides.
    pub line: Option<usize>,
    /// Whether the crawler ignores robots.txt.
    pub ignores_robots: bool,
}

keyword_enum! {
    /// The kinds of crawlers that site owners are most interested in.
    CrawlerKind, "a kind of crawlers", {
        /// Crawlers that feed the index of a search engine that people use.
        SearchEngine = "search-engine",
        /// Crawlers that build an index for generated answers.
        AiSearch = "ai-search",
        /// Crawlers that collect data for training AI models.
        AiTraining = "ai-training",
    }
}

impl CrawlerKind {
    /// Returns the name of the kind for output, such as `search engines`.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::SearchEngine => "search engines",
            Self::AiSearch => "AI search",
            Self::AiTraining => "AI training",
        }
    }

    fn of(crawler: &Crawler) -> Option<Self> {
        match crawler.category {
            _ if crawler.is_index_engine => Some(Self::SearchEngine),
            Category::AiSearch => Some(Self::AiSearch),
            Category::AiTraining => Some(Self::AiTraining),
            _ => None,
        }
    }
}

impl FrontPageAccess {
    /// Returns the access of each crawler that has a [`CrawlerKind`], according to the rules of a
    /// file.
    pub fn by_rules(rules: &RuleSet, registry: &Registry) -> Vec<Self> {
        let path = RequestPath::new("/");
        Self::each(registry, |crawler| {
            let verdict = rules.select(&crawler.tokens, crawler.obeys_star.fallback()).verdict(&path);
            let line = verdict.rule().filter(|rule| !rule.pattern().is_empty()).map(|rule| rule.line());
            (verdict.access(), line)
        })
    }

    /// Returns an element with the given `access` for each crawler that has a [`CrawlerKind`]. Use
    /// this function if a site has no rules.
    pub fn without_rules(registry: &Registry, access: Access) -> Vec<Self> {
        Self::each(registry, |_| (access, None))
    }

    /// Returns an element for each crawler that has a [`CrawlerKind`]. `decide` returns the access
    /// and the line of the deciding rule.
    fn each(registry: &Registry, decide: impl Fn(&Crawler) -> (Access, Option<usize>)) -> Vec<Self> {
        let access_of = |crawler: &Crawler| {
            let kind = CrawlerKind::of(crawler)?;
            let ((access, line), ignores_robots) = (decide(crawler), crawler.obeys_robots == Obeys::No);
            Some(Self { crawler: crawler.name.to_owned(), kind, access, line, ignores_robots })
        };
        registry.crawlers().filter_map(access_of).collect()
    }
}
