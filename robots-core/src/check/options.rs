//! Options of a check: the lints that run, the severities of their findings, and facts about the
//! site.

use std::sync::Arc;

use super::finding::Severity;
use super::lint::Lint;
use crate::agent::Registry;
use crate::rules::{Fallback, PathPattern, Reading, Rule, ValueError};

/// Options of a check. By default, all lints run with their usual severities, the registry is the
/// built-in one, only `/.well-known/` is exempt, and no crawler is refused.
///
/// Equal options produce the same findings for the same file. Two `Options` are equal only if they
/// share one [`Registry`] object. Options with equal copies of a registry are not equal.
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
    /// Creates the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Turns a lint off.
    pub fn allow(self, lint: &'static Lint) -> Self {
        self.with_level(lint, Level::Off)
    }

    /// Sets the severity of all findings of a lint.
    pub fn report_as(self, lint: &'static Lint, severity: Severity) -> Self {
        self.with_level(lint, Level::At(severity))
    }

    /// Sets the registry of known crawlers. Default: [`Registry::builtin`].
    pub fn with_registry(mut self, registry: Arc<Registry>) -> Self {
        self.site.registry = registry;
        self
    }

    /// Adds patterns, as in robots.txt, of paths that are exempt from enforcement. Default:
    /// `/.well-known/`. Each call adds to the existing patterns.
    ///
    /// # Errors
    ///
    /// Returns an error if a pattern begins with neither `/` nor `*`, because such a pattern
    /// matches no path. Also returns an error if a pattern contains braces, because such a pattern
    /// was probably meant for a router (`/api/{*rest}`).
    pub fn exempt_paths<P: AsRef<[u8]>>(mut self, patterns: impl IntoIterator<Item = P>) -> Result<Self, ValueError> {
        self.site.exempt.extend(PathPattern::parse_exempt(patterns)?);
        Ok(self)
    }

    /// Sets the crawlers whose disallowed requests the site refuses. Each crawler is identified by
    /// its name in the registry. Default: none. Only crawlers that feed the index of a search
    /// engine that people use
    /// ([`Crawler::is_index_engine`](crate::agent::Crawler::is_index_engine)) lead to findings. A
    /// [`Policy`](crate::policy::Policy) refuses the requests of these crawlers only if an override
    /// requires it.
    pub fn refused_crawlers<C: Into<RefusedCrawler>>(mut self, crawlers: impl IntoIterator<Item = C>) -> Self {
        self.site.refused = crawlers.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the site's host name. Lints use this name to recognise URLs of the site, and to
    /// complete URLs without a host. Default: none.
    pub fn site_host(mut self, host: impl Into<String>) -> Self {
        self.site.host = Some(host.into());
        self
    }

    /// Sets the maximum number of findings per lint and severity in the report. Findings beyond the
    /// limit are only counted. Default: [`Finding::MAX_PER_LINT`](super::Finding::MAX_PER_LINT).
    pub const fn findings_per_lint(mut self, most: usize) -> Self {
        self.most = Some(most);
        self
    }

    fn with_level(mut self, lint: &'static Lint, level: Level) -> Self {
        self.levels.retain(|(code, _)| *code != lint.code);
        self.levels.push((lint.code, level));
        self
    }

    pub(super) fn level(&self, lint: &Lint) -> Option<Level> {
        self.levels.iter().find(|(code, _)| *code == lint.code).map(|(_, level)| *level)
    }
}

impl Lint {
    /// Returns the options for the examples of this lint. Few lints need options other than the
    /// defaults.
    #[doc(hidden)]
    pub fn example_options(&self) -> Options {
        Options::new().refused_crawlers(self.bad.refused.iter().copied())
    }
}

#[derive(Clone, Debug)]
pub(super) struct SiteContext {
    pub(super) registry: Arc<Registry>,
    pub(super) exempt: Vec<PathPattern>,
    pub(super) refused: Vec<RefusedCrawler>,
    pub(super) host: Option<String>,
}

impl Default for SiteContext {
    fn default() -> Self {
        let exempt = PathPattern::exempt_by_default();
        Self { registry: Registry::builtin().clone(), exempt, refused: Vec::new(), host: None }
    }
}

/// Registries are compared by pointer.
impl PartialEq for SiteContext {
    fn eq(&self, other: &Self) -> bool {
        let Self { registry, exempt, refused, host } = self;
        let is_same = *exempt == other.exempt && *refused == other.refused && *host == other.host;
        is_same && Arc::ptr_eq(registry, &other.registry)
    }
}

/// A registered crawler whose disallowed requests the site refuses, for
/// [`Options::refused_crawlers`](super::Options::refused_crawlers).
///
/// By default, all disallowed requests of the crawler are refused. This includes requests that a
/// group for `*` disallows, unless the crawler ignores `*` according to the registry. The name of a
/// crawler can be converted to a `RefusedCrawler`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct RefusedCrawler {
    pub(super) name: Box<str>,
    pub(super) fallback: Fallback,
    rules: RefusedRules,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum RefusedRules {
    AllBut(Vec<PathPattern>),
    Only(Vec<PathPattern>),
}

impl RefusedCrawler {
    /// Creates a refused crawler from its name in the registry.
    pub fn new(name: impl Into<Box<str>>) -> Self {
        Self { name: name.into(), fallback: Fallback::Star, rules: RefusedRules::AllBut(Vec::new()) }
    }

    /// Excludes rules in groups for `*`. Use this method if the site enforces only groups that name
    /// the crawler.
    pub fn ignore_wildcard_group(self) -> Self {
        Self { fallback: Fallback::Nothing, ..self }
    }

    /// Excludes rules whose pattern is one of `patterns`, possibly in another spelling. Requests
    /// that an excluded rule disallows are not refused.
    ///
    /// # Errors
    ///
    /// Returns an error if a pattern begins with neither `/` nor `*`, because a rule with such a
    /// pattern disallows nothing.
    pub fn except_rules<P: AsRef<[u8]>>(self, patterns: impl IntoIterator<Item = P>) -> Result<Self, ValueError> {
        Ok(Self { rules: RefusedRules::AllBut(parsed(patterns)?), ..self })
    }

    /// Includes only rules whose pattern is one of `patterns`, possibly in another spelling.
    /// Requests that other rules disallow are not refused.
    ///
    /// # Errors
    ///
    /// Returns an error if a pattern begins with neither `/` nor `*`, because a rule with such a
    /// pattern disallows nothing.
    pub fn only_rules<P: AsRef<[u8]>>(self, patterns: impl IntoIterator<Item = P>) -> Result<Self, ValueError> {
        Ok(Self { rules: RefusedRules::Only(parsed(patterns)?), ..self })
    }

    pub(super) fn is_refused_by(&self, rule: Rule<'_>) -> bool {
        let names = |patterns: &[PathPattern]| {
            // The rule's pattern is parsed only if `patterns` is not empty. For most sites, it is
            // empty.
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
