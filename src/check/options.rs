//! Which lints run, and how bad their findings are.

use std::sync::Arc;

use super::finding::Severity;
use super::lint::Lint;
use super::refused_crawler::RefusedCrawler;
use super::sink::MAX_FINDINGS_PER_LINT;
use super::site_context::SiteContext;
use crate::agent::Registry;
use crate::rules::{PathPattern, PathPatternError};

/// How to check. The default runs every lint with its own severity, knows the built-in crawlers, takes `/.well-known/`
/// for exempt and no crawler for refused.
///
/// Equal options find the same in the same file. Registries are equal only if they are one.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct Options {
    levels: Vec<(&'static str, Level)>,
    most: Option<usize>,
    site: SiteContext,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
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
        self.level(lint, Level::Off)
    }

    /// Gives every finding of a lint this severity.
    pub fn report_as(self, lint: &'static Lint, severity: Severity) -> Self {
        self.level(lint, Level::At(severity))
    }

    /// The crawlers that exist. Default: [`Registry::builtin`].
    pub fn with_registry(mut self, registry: Arc<Registry>) -> Self {
        self.site.registry = registry;
        self
    }

    /// The path patterns (as in robots.txt) whose requests are never judged, in place of the default, `/.well-known/`.
    ///
    /// # Errors
    ///
    /// If one of them begins with neither `/` nor `*`: it would match no path.
    pub fn exempt_paths<P: AsRef<[u8]>>(
        mut self,
        patterns: impl IntoIterator<Item = P>,
    ) -> Result<Self, PathPatternError> {
        self.site.exempt = patterns.into_iter().map(PathPattern::parse).collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// The crawlers that are refused what the file disallows to them, by their registered names. Default: none. Only those of
    /// search engines that people use ([`Crawler::is_index_engine`](crate::agent::Crawler::is_index_engine)) are worth a
    /// finding; a [`Policy`](crate::policy::Policy) refuses these where an override says so.
    pub fn refused_crawlers<C: Into<RefusedCrawler>>(mut self, crawlers: impl IntoIterator<Item = C>) -> Self {
        self.site.refused = crawlers.into_iter().map(Into::into).collect();
        self
    }

    /// How many findings of each lint the report holds; the rest are only counted. Default: [`MAX_FINDINGS_PER_LINT`].
    pub const fn findings_per_lint(mut self, most: usize) -> Self {
        self.most = Some(most);
        self
    }

    pub(super) fn most_findings(&self) -> usize {
        self.most.unwrap_or(MAX_FINDINGS_PER_LINT)
    }

    pub(super) const fn site(&self) -> &SiteContext {
        &self.site
    }

    fn level(mut self, lint: &'static Lint, level: Level) -> Self {
        self.levels.retain(|(code, _)| *code != lint.code());
        self.levels.push((lint.code(), level));
        self
    }

    pub(super) fn is_off(&self, lint: &Lint) -> bool {
        self.find(lint) == Some(Level::Off)
    }

    /// The configured severity, which then holds for every finding of the lint.
    pub(super) fn severity(&self, lint: &Lint) -> Option<Severity> {
        match self.find(lint) {
            Some(Level::At(severity)) => Some(severity),
            Some(Level::Off) | None => None,
        }
    }

    fn find(&self, lint: &Lint) -> Option<Level> {
        self.levels.iter().find(|(code, _)| *code == lint.code()).map(|(_, level)| *level)
    }
}

impl Lint {
    /// The options under which its examples show it: a few lints speak only of what the configuration says.
    pub fn example_options(&self) -> Options {
        Options::new().refused_crawlers(self.bad.refused.iter().copied())
    }
}
