//! Which lints run, how bad their findings are, and what lints take from outside the file.

use std::sync::Arc;

use super::finding::Severity;
use super::lint::Lint;
use crate::agent::Registry;
use crate::rules::{Fallback, PathPattern, Reading, Rule, ValueError};

/// How to check. The default runs every lint with its own severity, knows the built-in crawlers, takes `/.well-known/`
/// for exempt and no crawler for refused.
///
/// Equal options find the same in the same file. Registries are equal only if they are one.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct Options {
    levels: Vec<(&'static str, Level)>,
    pub(super) most: Option<usize>,
    pub(super) site: SiteContext,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Off,
    At(Severity),
}

impl Options {
    /// Every lint on, each with its own severity.
    pub fn new() -> Self {
        Self::default()
    }

    /// Turns a lint off.
    pub fn allow(self, lint: &'static Lint) -> Self {
        self.with_level(lint, Level::Off)
    }

    /// Gives every finding of a lint this severity.
    pub fn report_as(self, lint: &'static Lint, severity: Severity) -> Self {
        self.with_level(lint, Level::At(severity))
    }

    /// The crawlers that exist. Default: [`Registry::builtin`].
    pub fn with_registry(mut self, registry: Arc<Registry>) -> Self {
        self.site.registry = registry;
        self
    }

    /// Adds path patterns (as in robots.txt) whose requests are never judged. Default: `/.well-known/`. A second call adds to the first.
    ///
    /// # Errors
    ///
    /// If one of them begins with neither `/` nor `*`: it would match no path.
    pub fn exempt_paths<P: AsRef<[u8]>>(mut self, patterns: impl IntoIterator<Item = P>) -> Result<Self, ValueError> {
        self.site.exempt.extend(PathPattern::parse_all(patterns)?);
        Ok(self)
    }

    /// The crawlers that are refused what the file disallows to them, by their registered names. Default: none. Only those of
    /// search engines that people use ([`Crawler::is_index_engine`](crate::agent::Crawler::is_index_engine)) are worth a
    /// finding; a [`Policy`](crate::policy::Policy) refuses these where an override says so.
    pub fn refused_crawlers<C: Into<RefusedCrawler>>(mut self, crawlers: impl IntoIterator<Item = C>) -> Self {
        self.site.refused = crawlers.into_iter().map(Into::into).collect();
        self
    }

    /// A host of the site, which help about addresses without one names. Default: none.
    pub fn site_host(mut self, host: impl Into<String>) -> Self {
        self.site.host = Some(host.into());
        self
    }

    /// How many findings of each lint the report holds; the rest are only counted. Default:
    /// [`Finding::MAX_PER_LINT`](super::Finding::MAX_PER_LINT).
    pub const fn findings_per_lint(mut self, most: usize) -> Self {
        self.most = Some(most);
        self
    }

    fn with_level(mut self, lint: &'static Lint, level: Level) -> Self {
        self.levels.retain(|(code, _)| *code != lint.code);
        self.levels.push((lint.code, level));
        self
    }

    /// The level that is configured for a lint. A severity holds for every finding of it.
    pub(super) fn level(&self, lint: &Lint) -> Option<Level> {
        self.levels.iter().find(|(code, _)| *code == lint.code).map(|(_, level)| *level)
    }
}

impl Lint {
    /// The options under which its examples show it: a few lints speak only of what the configuration says.
    pub fn example_options(&self) -> Options {
        Options::new().refused_crawlers(self.bad.refused.iter().copied())
    }
}

/// The facts about the site in the options.
#[derive(Clone, Debug)]
pub(super) struct SiteContext {
    pub(super) registry: Arc<Registry>,
    /// Patterns of paths whose requests are never judged.
    pub(super) exempt: Vec<PathPattern>,
    /// Crawlers that are refused what the file disallows.
    pub(super) refused: Vec<RefusedCrawler>,
    /// A host of the site.
    pub(super) host: Option<String>,
}

impl Default for SiteContext {
    fn default() -> Self {
        let exempt = PathPattern::exempt_by_default();
        Self { registry: Registry::builtin().clone(), exempt, refused: Vec::new(), host: None }
    }
}

/// Registries are equal only if they are one.
impl PartialEq for SiteContext {
    fn eq(&self, other: &Self) -> bool {
        let Self { registry, exempt, refused, host } = self;
        let is_same = *exempt == other.exempt && *refused == other.refused && *host == other.host;
        is_same && Arc::ptr_eq(registry, &other.registry)
    }
}

/// A registered crawler that the site refuses what the file disallows to it, for
/// [`Options::refused_crawlers`](super::Options::refused_crawlers).
///
/// Default: it is refused whatever the rule, and the groups of `*` apply to it if its row says that it obeys them. A name alone
/// becomes one of these.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct RefusedCrawler {
    pub(super) name: Box<str>,
    pub(super) fallback: Fallback,
    rules: RefusedRules,
}

/// The rules that it is refused by.
#[derive(Clone, Debug, PartialEq, Eq)]
enum RefusedRules {
    AllBut(Vec<PathPattern>),
    Only(Vec<PathPattern>),
}

impl RefusedCrawler {
    /// The crawler with this name in the registry.
    pub fn new(name: impl Into<Box<str>>) -> Self {
        Self { name: name.into(), fallback: Fallback::Star, rules: RefusedRules::AllBut(Vec::new()) }
    }

    /// The site does not apply the groups of `*` to it.
    pub fn where_named(self) -> Self {
        Self { fallback: Fallback::Nothing, ..self }
    }

    /// It is refused by every rule but those with these patterns, in any of their spellings.
    ///
    /// # Errors
    ///
    /// If one of them begins with neither `/` nor `*`: no rule with such a pattern disallows a path.
    pub fn except_rules<P: AsRef<[u8]>>(self, patterns: impl IntoIterator<Item = P>) -> Result<Self, ValueError> {
        Ok(Self { rules: RefusedRules::AllBut(parsed(patterns)?), ..self })
    }

    /// It is refused only by rules with these patterns, in any of their spellings.
    ///
    /// # Errors
    ///
    /// If one of them begins with neither `/` nor `*`: no rule with such a pattern disallows a path.
    pub fn only_rules<P: AsRef<[u8]>>(self, patterns: impl IntoIterator<Item = P>) -> Result<Self, ValueError> {
        Ok(Self { rules: RefusedRules::Only(parsed(patterns)?), ..self })
    }

    pub(super) fn is_refused_by(&self, rule: Rule<'_>) -> bool {
        let names = |patterns: &[PathPattern]| {
            // Most sites have no override for a pattern, and then nothing is parsed.
            !patterns.is_empty() && {
                let rule = PathPattern::new(rule.pattern(), Reading::Standard);
                patterns.iter().any(|pattern| pattern.is_spelling_of(&rule))
            }
        };
        match &self.rules {
            RefusedRules::AllBut(patterns) => !names(patterns),
            RefusedRules::Only(patterns) => names(patterns),
        }
    }
}

impl<N: Into<Box<str>>> From<N> for RefusedCrawler {
    fn from(name: N) -> Self {
        Self::new(name)
    }
}

fn parsed<P: AsRef<[u8]>>(patterns: impl IntoIterator<Item = P>) -> Result<Vec<PathPattern>, ValueError> {
    patterns.into_iter().map(PathPattern::parse).collect()
}
