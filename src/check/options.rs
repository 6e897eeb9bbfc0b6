//! Which lints run, and how bad their findings are.

use std::sync::Arc;

use super::finding::Severity;
use super::lint::Lint;
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

    /// The registered names of crawlers that are refused what the file disallows to them. Default: none. Only search
    /// engines among them are worth a finding.
    pub fn refused_crawlers<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.site.refused = names.into_iter().map(|name| name.as_ref().into()).collect();
        self
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
        Options::new().refused_crawlers(self.bad.refused)
    }
}
