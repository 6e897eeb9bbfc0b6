//! The crawlers in a comparison of two files: the crawlers of the registry, other names in the
//! files, and a crawler that is not named in any group.

use std::collections::HashSet;
use std::fmt;

use crate::agent::{Agents, Category, Crawler, NamedAs, Registry};
use crate::check::quote::Quoted;
use crate::rules::keyword::first_few;
use crate::rules::{Fallback, ProductToken, Reading, RobotsTxt, RuleSet, Selection};

/// Maximum number of crawlers in a message about a change.
const NAMES: usize = 2;

/// A crawler whose verdicts in two files are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Subject {
    /// Name of the crawler; `None` for a crawler that no group names.
    pub name: Option<String>,
    /// Purpose of the crawler's requests; `None` if the crawler is not in the registry.
    pub category: Option<Category>,
    /// Whether the crawler feeds the index of a search engine that people use
    /// ([`Crawler::is_index_engine`]).
    pub is_index_engine: bool,
    /// Whether one of the files names the crawler.
    pub named: bool,
    #[cfg_attr(feature = "serde", serde(skip))]
    tokens: Vec<ProductToken>,
    #[cfg_attr(feature = "serde", serde(skip))]
    fallback: Fallback,
}

impl Subject {
    pub(in crate::check) fn select<'r>(&self, rules: &'r RuleSet) -> Selection<'r> {
        rules.select(&self.tokens, self.fallback)
    }

    pub(in crate::check) fn own_token(&self) -> Option<&ProductToken> {
        self.tokens.first()
    }

    /// Returns the sort key. Search engines come first, then other crawlers that a file names, then
    /// the subject for all crawlers that no group names, then the remaining crawlers.
    pub(super) fn rank(&self) -> (u8, String) {
        let first = match (self.is_index_engine, self.named, &self.name) {
            (true, _, _) => 0,
            (_, true, _) => 1,
            (_, _, None) => 2,
            _ => 3,
        };
        // The two search engines that send the most visitors come before all others. Other crawlers
        // of the same kind are sorted by name.
        let leading = ["Googlebot", "bingbot"].iter().position(|known| self.name.as_deref() == Some(*known));
        let name = self.name.as_deref().unwrap_or_default().to_ascii_lowercase();
        (first, leading.map_or(name, |at| char::from(at as u8).to_string()))
    }

    pub(super) fn of(crawler: &Crawler, named: bool) -> Self {
        Self {
            name: Some(crawler.name.to_owned()),
            category: Some(crawler.category),
            is_index_engine: crawler.is_index_engine,
            named,
            tokens: crawler.tokens.to_vec(),
            fallback: crawler.obeys_star.fallback(),
        }
    }

    pub(in crate::check) fn named(name: &str, (named_as, agents): &(NamedAs, Agents)) -> Self {
        if *named_as == NamedAs::Star {
            return Self::unnamed();
        }
        let agent = agents.first();
        Self {
            name: Some(agent.registered().map_or(name, |crawler| &crawler.name).to_owned()),
            category: agent.category(),
            is_index_engine: agent.is_index_engine(),
            named: true,
            tokens: agent.tokens().to_vec(),
            fallback: agent.fallback(),
        }
    }

    pub(super) const fn unnamed() -> Self {
        Self {
            name: None,
            category: None,
            is_index_engine: false,
            named: false,
            tokens: Vec::new(),
            fallback: Fallback::Star,
        }
    }
}

/// Formats the names of the first crawlers, and the number of the remaining crawlers. The alternate
/// form (`{:#}`) also contains the names of all crawlers that a file names.
pub(super) fn first_crawlers(f: &fmt::Formatter<'_>, crawlers: &[Subject]) -> String {
    let shown = |crawler: &Subject| match &crawler.name {
        Some(name) => Quoted(name.as_bytes()).to_string(),
        None => "crawlers that are not named in any group".to_owned(),
    };
    let is_first = |(at, crawler): &(usize, &Subject)| *at < NAMES || (f.alternate() && crawler.named);
    let (first, rest): (Vec<_>, Vec<_>) = crawlers.iter().enumerate().partition(is_first);
    let few = first.len();
    first_few([first, rest].concat().into_iter().map(|(_, crawler)| shown(crawler)), few)
}

pub(super) fn sorted(mut crawlers: Vec<Subject>) -> Vec<Subject> {
    crawlers.sort_by_cached_key(Subject::rank);
    crawlers
}

/// Returns all crawlers of the registry, all other names in the files (as this [`Reading`]
/// interprets them), and one crawler that no group names.
pub(super) fn all(reading: Reading, old: &RobotsTxt, new: &RobotsTxt, registry: &Registry) -> Vec<Subject> {
    let token_of = |name: &[u8]| match reading {
        Reading::Reference => Some(ProductToken::cut(name)).filter(|token| !token.as_bytes().is_empty()),
        _ => ProductToken::from_name(name),
    };
    let stands_for = |name: &[u8]| if reading == Reading::Reference { Vec::new() } else { registry.stands_for(name) };
    let mut named: HashSet<ProductToken> = HashSet::new();
    let mut unregistered = Vec::new();
    for name in [old, new].into_iter().flat_map(RobotsTxt::groups).flat_map(|group| group.names()) {
        let Some(token) = token_of(name.value()).filter(|_| !name.is_star()) else { continue };
        let stands_for = stands_for(name.value());
        let is_new = named.insert(token.clone());
        if is_new && stands_for.is_empty() && !registry.knows(&token) {
            let name = Some(String::from_utf8_lossy(name.value()).into_owned());
            unregistered.push(Subject { name, named: true, tokens: vec![token], ..Subject::unnamed() });
        }
        named.extend(stands_for);
    }
    let registered = registry.crawlers().map(|crawler| {
        let own = crawler.tokens.first();
        Subject::of(crawler, own.is_some_and(|own| named.contains(own)))
    });
    registered.chain(unregistered).chain([Subject::unnamed()]).collect()
}
