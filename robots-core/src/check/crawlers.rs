//! The crawlers of a registry, by token, and suggestions for misspelled names.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use strsim::{damerau_levenshtein, generic_damerau_levenshtein};

use crate::agent::{Category, Crawler, Registry};
use crate::rules::{Name, ProductToken, RobotsTxt};

/// Minimum length, in bytes, of a name that is treated as a misspelling. Shorter names are similar
/// to the names of too many crawlers. Names with a misspelled ending `bot`, such as `GPTBt` and
/// `CCBott`, may be one byte shorter.
const MIN_GUESS_LENGTH: usize = 6;

/// Minimum length, in bytes, of an unknown name for which crawlers are suggested, because it may be
/// the name of a service or an operator. For example, `ClaudeBot` and `Claude-User` are suggested
/// for `Claude`.
const MIN_BRAND_LENGTH: usize = 3;

/// Endings that turn the name of a search engine or an assistant into the name of its crawler.
const ENDINGS: [&str; 5] = ["bot", "spider", "crawler", "-user", "-searchbot"];

/// Maximum number of crawlers that are suggested if a name is the name of an operator.
const MAX_SUGGESTIONS: usize = 3;

/// Maximum number of unknown names per file that are compared with known names, to bound the cost.
const MAX_COMPARED_NAMES: usize = 64;

/// The crawlers of a registry, by their own tokens. A crawler's own token is the first one in
/// [`Crawler::tokens`].
pub(super) struct CrawlersByToken<'r> {
    pub(super) registry: &'r Registry,
    by_token: OnceCell<HashMap<&'r [u8], &'r Crawler>>,
}

impl<'r> CrawlersByToken<'r> {
    pub(super) const fn new(registry: &'r Registry) -> Self {
        Self { registry, by_token: OnceCell::new() }
    }

    /// Returns the crawler that a name in a robots.txt refers to. Compares the name with the
    /// crawlers' own tokens.
    pub(super) fn named(&self, name: Name<'_>) -> Option<&'r Crawler> {
        self.of_token(&ProductToken::from_name(name.value())?)
    }

    pub(super) fn of_token(&self, token: &ProductToken) -> Option<&'r Crawler> {
        self.by_token().get(token.as_bytes()).copied()
    }

    /// Returns the crawler name in a value that contains more than this name, such as
    /// `Googlebot 2.1` or a whole `User-Agent` header.
    pub(super) fn declared_by(&self, name_value: &[u8]) -> Option<String> {
        let declared = self.registry.stands_for(name_value).into_iter().next()?;
        let named = self.of_token(&declared);
        Some(named.map_or_else(|| declared.to_string(), |crawler| crawler.name.to_owned()))
    }

    pub(super) fn is_read_by_search(&self, name: Name<'_>) -> bool {
        name.is_star() || self.named(name).is_some_and(|crawler| crawler.category == Category::Search)
    }

    /// Returns the unknown names that are similar to names of crawlers, each with the names that
    /// were probably meant.
    pub(super) fn misspelled<'a>(
        &self,
        names: impl Iterator<Item = Name<'a>>,
    ) -> impl Iterator<Item = (Name<'a>, Vec<&'r str>)> {
        let mut seen = HashSet::new();
        // Values with several names are left out, because the author must first split them.
        let is_list = |name: &Name<'_>| name.value().iter().any(|byte| matches!(byte, b',' | b';'));
        names
            .filter(move |name| !name.is_star() && !is_list(name))
            .filter_map(|name| Some((name, ProductToken::from_name(name.value())?)))
            .filter(|(_, token)| self.is_unknown(token))
            .filter(move |(_, token)| seen.insert(token.clone()))
            .take(MAX_COMPARED_NAMES)
            .filter_map(|(name, token)| Some((name, self.likely_names(&token)?)))
    }

    /// Reports whether similar names may be suggested for a token: the token is unknown and not too
    /// short. A token with spaces is not treated as a typing error.
    fn is_unknown(&self, token: &ProductToken) -> bool {
        let text = token.as_bytes();
        !self.registry.knows(token) && text.len() >= MIN_BRAND_LENGTH && !text.contains(&b' ')
    }

    fn likely_names(&self, token: &ProductToken) -> Option<Vec<&'r str>> {
        let named = |ending: &&str| self.by_token().get(&*[token.as_bytes(), ending.as_bytes()].concat());
        let of_brand: Vec<_> = ENDINGS.iter().filter_map(named).map(|crawler| &*crawler.name).collect();
        let likely_names = if of_brand.is_empty() { self.nearest(token).into_iter().collect() } else { of_brand };
        let likely_names = if likely_names.is_empty() {
            self.of_operator(token).take(MAX_SUGGESTIONS).collect()
        } else {
            likely_names
        };
        Some(likely_names).filter(|likely_names| !likely_names.is_empty())
    }

    /// Returns the crawlers that people probably mean if they write the name of an operator.
    /// Mozilla is left out, because many `User-Agent` headers begin with this word.
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

    pub(super) fn nearest(&self, token: &ProductToken) -> Option<&'r str> {
        let token = token.as_bytes();
        let known = self.by_token().iter();
        let near = known
            .filter(|(known, _)| known.len().abs_diff(token.len()) <= 2 && is_long_enough(token, known))
            .map(|(known, crawler)| (generic_damerau_levenshtein(token, known), known.len(), *crawler))
            .filter(|(distance, length, _)| *distance <= max_wrong_letters((*length).min(token.len())))
            .min_by_key(|(distance, _, crawler)| (*distance, &crawler.name));
        near.map(|(_, _, crawler)| crawler.name.as_str())
    }

    fn by_token(&self) -> &HashMap<&'r [u8], &'r Crawler> {
        self.by_token.get_or_init(|| {
            let mut by_token: HashMap<&[u8], &Crawler> = HashMap::new();
            for crawler in self.registry.crawlers() {
                let Some(own) = crawler.tokens.first() else { continue };
                // If several crawlers have the same token, the map contains the crawler whose name
                // equals the token.
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
    /// Returns the names of the crawlers that were probably meant by a name, as in
    /// `"ClaudeBot" or "Claude-User"`. `None` if the name is in the registry or in the file, or is
    /// not similar to any crawler's name.
    #[doc(hidden)]
    pub fn meant(&self, name: &str, robots: &RobotsTxt) -> Option<String> {
        let token = ProductToken::from_name(name.as_bytes())?;
        let mut names = robots.groups().flat_map(|group| group.names());
        let mut has_group = || names.any(|group| ProductToken::from_name(group.value()).as_ref() == Some(&token));
        if self.crawler(name.trim()).is_some() {
            return None;
        }
        if let Some(crawler) = self.crawler_without_spaces(name) {
            return Some(any_of(&[&crawler.name]));
        }
        let crawlers = CrawlersByToken::new(self);
        if !crawlers.is_unknown(&token) || has_group() {
            return None;
        }
        crawlers.likely_names(&token).map(|likely_names| any_of(&likely_names))
    }

    /// Returns a suggestion for a wrong `name`; `None` if no mistake is known. A correct name is
    /// one crawler's name, a header or `*`. A name is wrong in these cases:
    ///
    /// - It contains no product token, for example because it is empty.
    /// - It selects several crawlers, as `category:search` does in a config of robotsd.
    /// - [`Registry::meant`] returns another name.
    #[doc(hidden)]
    pub fn one_crawler_meant(&self, name: &str, robots: &RobotsTxt) -> Option<String> {
        // A selection has its colon in the first word. The first word of a header contains no
        // colon.
        let is_many = || name.split_whitespace().next().is_some_and(|first| first.contains(':'));
        if name != "*" && (ProductToken::from_name(name.as_bytes()).is_none() || is_many()) {
            return Some("the name of one crawler, such as \"Googlebot\"".to_owned());
        }
        self.meant(name, robots)
    }

    /// Reports whether a crawler has this operator. Ignores case.
    #[doc(hidden)]
    pub fn has_operator(&self, operator: &str) -> bool {
        self.crawlers().any(|crawler| crawler.operator.eq_ignore_ascii_case(operator))
    }

    /// Returns the known operator whose name is most similar to `operator`; `None` if no known name
    /// is similar.
    #[doc(hidden)]
    pub fn similar_operator(&self, operator: &str) -> Option<&str> {
        let operator = operator.to_lowercase();
        let distance = |known: &str| damerau_levenshtein(&operator, &known.to_lowercase());
        let known = self.crawlers().map(|crawler| &*crawler.operator).map(|known| (distance(known), known));
        let is_near =
            |(distance, known): &(usize, &str)| *distance <= max_wrong_letters(known.len().min(operator.len()));
        known.filter(is_near).min().map(|(_, known)| known)
    }
}

pub(super) fn any_of(names: &[&str]) -> String {
    names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(" or ")
}

/// Reports whether a possibly misspelled `token` and the token of a registered crawler (`known`)
/// are long enough to be compared.
fn is_long_enough(token: &[u8], known: &[u8]) -> bool {
    let has_wrong_ending = known.ends_with(b"bot") && !token.ends_with(b"bot");
    token.len().min(known.len()) + usize::from(has_wrong_ending) >= MIN_GUESS_LENGTH
}

/// Returns the maximum number of wrong letters in a misspelled name of this length.
const fn max_wrong_letters(length: usize) -> usize {
    if length < 10 { 1 } else { 2 }
}
