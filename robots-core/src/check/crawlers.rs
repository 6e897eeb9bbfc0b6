//! The crawlers of the registry, by the token that is theirs.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use strsim::generic_damerau_levenshtein;

use crate::agent::{Category, Crawler, Registry};
use crate::rules::{Name, ProductToken, RobotsTxt};

/// Names shorter than this are near to too many others.
const SHORTEST_GUESS: usize = 6;

/// The shortest name that may be a search engine or an assistant, whose crawlers are named after it.
const SHORTEST_BRAND: usize = 3;

/// The endings of the names of such crawlers.
const ENDINGS: [&str; 5] = ["bot", "spider", "crawler", "-user", "-searchbot"];

/// Crawlers of an operator that are proposed for its name.
const OF_OPERATOR: usize = 3;

/// Unknown names of one file that are compared with the known ones: a bound on the cost.
const GUESSES: usize = 64;

/// The crawlers of a registry.
pub(super) struct CrawlersByToken<'r> {
    pub(super) registry: &'r Registry,
    by_token: OnceCell<HashMap<&'r [u8], &'r Crawler>>,
}

impl<'r> CrawlersByToken<'r> {
    pub(super) const fn new(registry: &'r Registry) -> Self {
        Self { registry, by_token: OnceCell::new() }
    }

    /// The crawler that a name stands for: the one whose own token it is.
    pub(super) fn named(&self, name: Name<'_>) -> Option<&'r Crawler> {
        self.of_token(&ProductToken::from_name(name.value())?)
    }

    /// The crawler whose own token this is.
    pub(super) fn of_token(&self, token: &ProductToken) -> Option<&'r Crawler> {
        self.by_token().get(token.as_bytes()).copied()
    }

    /// The name of the crawler that a value declares besides other text: a whole header, or one with a version.
    pub(super) fn declared_by(&self, name_value: &[u8]) -> Option<String> {
        let declared = self.registry.stands_for(name_value).into_iter().next()?;
        let named = self.of_token(&declared);
        Some(named.map_or_else(|| declared.to_string(), |crawler| crawler.name.to_owned()))
    }

    /// Whether a name is for every crawler or for a search engine.
    pub(super) fn is_read_by_search(&self, name: Name<'_>) -> bool {
        name.is_star() || self.named(name).is_some_and(|crawler| crawler.category == Category::Search)
    }

    /// Unknown names that are nearly known ones, each with those.
    pub(super) fn misspelled<'a>(
        &self,
        names: impl Iterator<Item = Name<'a>>,
    ) -> impl Iterator<Item = (Name<'a>, Vec<&'r str>)> {
        let mut seen = HashSet::new();
        // A line with several names is told apart first.
        let is_list = |name: &Name<'_>| name.value().iter().any(|octet| matches!(octet, b',' | b';'));
        names
            .filter(move |name| !name.is_star() && !is_list(name))
            .filter_map(|name| Some((name, ProductToken::from_name(name.value())?)))
            .filter(|(_, token)| self.is_unknown(token))
            .filter(move |(_, token)| seen.insert(token.clone()))
            .take(GUESSES)
            .filter_map(|(name, token)| Some((name, self.likely(&token)?)))
    }

    /// Whether no crawler obeys a token that is long enough for a guess. Blanks are no slip of the finger.
    fn is_unknown(&self, token: &ProductToken) -> bool {
        let text = token.as_bytes();
        !self.registry.knows(token) && text.len() >= SHORTEST_BRAND && !text.contains(&b' ')
    }

    /// The crawlers that are probably meant.
    fn likely(&self, token: &ProductToken) -> Option<Vec<&'r str>> {
        let named = |ending: &&str| self.by_token().get(&*[token.as_bytes(), ending.as_bytes()].concat());
        let of_brand: Vec<_> = ENDINGS.iter().filter_map(named).map(|crawler| &*crawler.name).collect();
        let likely = if of_brand.is_empty() { self.nearest(token).into_iter().collect() } else { of_brand };
        let likely = if likely.is_empty() { self.of_operator(token).take(OF_OPERATOR).collect() } else { likely };
        Some(likely).filter(|likely| !likely.is_empty())
    }

    /// The crawlers of an operator that people mean by its name: those of search and of AI. Mozilla's is how headers begin.
    fn of_operator(&self, token: &ProductToken) -> impl Iterator<Item = &'r str> {
        const MEANT: [Category; 3] = [Category::Search, Category::AiTraining, Category::AiSearch];
        let is_meant = |crawler: &&Crawler| {
            let operator = crawler.operator.as_bytes();
            operator.eq_ignore_ascii_case(token.as_bytes())
                && operator != b"Mozilla"
                && MEANT.contains(&crawler.category)
        };
        self.registry.crawlers().filter(is_meant).map(|crawler| &*crawler.name)
    }

    /// The crawler whose name is nearly this token.
    pub(super) fn nearest(&self, token: &ProductToken) -> Option<&'r str> {
        let token = token.as_bytes();
        if token.len() < SHORTEST_GUESS {
            return None;
        }
        let known = self.by_token().iter();
        let near = known
            .filter(|(known, _)| known.len() >= SHORTEST_GUESS && known.len().abs_diff(token.len()) <= 2)
            .map(|(known, crawler)| (generic_damerau_levenshtein(token, known), known.len(), *crawler))
            .filter(|(distance, length, _)| *distance <= allowance((*length).min(token.len())))
            .min_by_key(|(distance, _, crawler)| (*distance, &crawler.name));
        near.map(|(_, _, crawler)| crawler.name.as_str())
    }

    fn by_token(&self) -> &HashMap<&'r [u8], &'r Crawler> {
        self.by_token.get_or_init(|| {
            let mut by_token: HashMap<&[u8], &Crawler> = HashMap::new();
            for crawler in self.registry.crawlers() {
                let Some(own) = crawler.tokens.first() else { continue };
                // Of several that share a token, the one that bears it as its name.
                let bears = own.as_bytes().eq_ignore_ascii_case(crawler.name.as_bytes());
                if bears || !by_token.contains_key(own.as_bytes()) {
                    by_token.insert(own.as_bytes(), crawler);
                }
            }
            by_token
        })
    }
}

impl Registry {
    /// The crawlers that were probably meant by a name, where neither a crawler nor a group of the file has it, as in
    /// `"ClaudeBot" or "Claude-User"`.
    #[doc(hidden)]
    pub fn meant(&self, name: &str, robots: &RobotsTxt) -> Option<String> {
        let token = ProductToken::from_name(name.as_bytes())?;
        let mut names = robots.groups().flat_map(|group| group.names());
        // Every group is looked at only for a name that no crawler has.
        let mut has_group = || names.any(|group| ProductToken::from_name(group.value()).as_ref() == Some(&token));
        let crawlers = CrawlersByToken::new(self);
        if self.crawler(name.trim()).is_some() || !crawlers.is_unknown(&token) || has_group() {
            return None;
        }
        crawlers.likely(&token).map(|likely| any_of(&likely))
    }
}

/// As in `"ClaudeBot" or "Claude-User"`.
pub(super) fn any_of(names: &[&str]) -> String {
    names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(" or ")
}

/// How many letters of a name may be wrong.
const fn allowance(length: usize) -> usize {
    if length < 10 { 1 } else { 2 }
}
