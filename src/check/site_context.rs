//! What lints take from outside the file: the crawlers that exist, and how the site enforces the file.

use std::sync::Arc;

use crate::agent::Registry;
use crate::rules::{PathPattern, Reading};

/// Path patterns whose requests are never judged, where the options name no others.
const EXEMPT: [&str; 1] = ["/.well-known/"];

/// What the options say of the site.
#[derive(Clone, Debug)]
pub(super) struct SiteContext {
    pub(super) registry: Arc<Registry>,
    /// Patterns of paths whose requests are never judged.
    pub(super) exempt: Vec<PathPattern>,
    /// Names of crawlers that are refused what the file disallows.
    pub(super) refused: Vec<Box<str>>,
}

impl SiteContext {
    /// Patterns that match nothing are dropped.
    pub(super) fn patterns<P: AsRef<[u8]>>(patterns: impl IntoIterator<Item = P>) -> Vec<PathPattern> {
        let patterns = patterns.into_iter().map(|pattern| PathPattern::new(pattern.as_ref(), Reading::Standard));
        patterns.filter(|pattern| pattern.priority() > 0).collect()
    }
}

impl Default for SiteContext {
    fn default() -> Self {
        Self { registry: Registry::builtin().clone(), exempt: Self::patterns(EXEMPT), refused: Vec::new() }
    }
}

/// Registries are equal only if they are one.
impl PartialEq for SiteContext {
    fn eq(&self, other: &Self) -> bool {
        let Self { registry, exempt, refused } = self;
        Arc::ptr_eq(registry, &other.registry) && *exempt == other.exempt && *refused == other.refused
    }
}
