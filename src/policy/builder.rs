//! Putting a policy together.

use super::Policy;
use super::exempt::Exemptions;
use super::mode::Mode;
use super::overrides::Override;
use super::scope::{Star, StarScope};
use crate::agent::Category;

/// Builds a [`Policy`].
#[derive(Clone, Debug)]
#[must_use]
pub struct PolicyBuilder {
    mode: Mode,
    star: Star,
    exempt: Vec<Box<[u8]>>,
    overrides: Vec<Override>,
}

impl Default for PolicyBuilder {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            star: Star::default(),
            exempt: vec![b"/.well-known/"[..].into()],
            overrides: Vec::new(),
        }
    }
}

impl PolicyBuilder {
    /// What is done about disallowed requests. Default: [`Mode::Observe`].
    pub const fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Whom the groups for `*` are for. Default: [`StarScope::Declared`].
    pub const fn star_scope(mut self, scope: StarScope) -> Self {
        self.star.scope = scope;
        self
    }

    /// The methods the groups for `*` are for, in upper case. Default: `GET` and `HEAD`. A group that names an agent
    /// holds for every method.
    pub fn star_methods<M: AsRef<str>>(mut self, methods: impl IntoIterator<Item = M>) -> Self {
        self.star.methods = methods.into_iter().map(|method| method.as_ref().into()).collect();
        self
    }

    /// Categories of registered crawlers that the groups for `*` are not for. Default: infrastructure, monitoring,
    /// preview, feed and user-fetch.
    pub fn star_exempt(mut self, categories: impl IntoIterator<Item = Category>) -> Self {
        self.star.exempt = categories.into_iter().collect();
        self
    }

    /// Path patterns (as in robots.txt: prefixes, with `*` and `$`) whose requests pass unjudged, in place of the
    /// default, `/.well-known/`. `/robots.txt` is always exempt.
    pub fn exempt_paths<P: AsRef<[u8]>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.exempt = patterns.into_iter().map(|pattern| pattern.as_ref().into()).collect();
        self
    }

    /// Adds another mode for some disallowed requests; of several that fit, the last one added counts. Default: none.
    pub fn with_override(mut self, over: Override) -> Self {
        self.overrides.push(over);
        self
    }

    /// The policy.
    #[must_use]
    pub fn build(self) -> Policy {
        Policy { mode: self.mode, star: self.star, exempt: Exemptions::new(self.exempt), overrides: self.overrides }
    }
}
