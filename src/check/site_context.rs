//! What lints take from outside the file: the crawlers that exist, and how the site enforces the file.

use std::sync::Arc;

use super::refused_crawler::RefusedCrawler;
use crate::agent::Registry;
use crate::rules::{PathPattern, Reading};

/// What the options say of the site.
#[derive(Clone, Debug)]
pub(super) struct SiteContext {
    pub(super) registry: Arc<Registry>,
    /// Patterns of paths whose requests are never judged.
    pub(super) exempt: Vec<PathPattern>,
    /// Crawlers that are refused what the file disallows.
    pub(super) refused: Vec<RefusedCrawler>,
}

impl Default for SiteContext {
    fn default() -> Self {
        let exempt = vec![PathPattern::new(PathPattern::WELL_KNOWN.as_bytes(), Reading::Standard)];
        Self { registry: Registry::builtin().clone(), exempt, refused: Vec::new() }
    }
}

/// Registries are equal only if they are one.
impl PartialEq for SiteContext {
    fn eq(&self, other: &Self) -> bool {
        let Self { registry, exempt, refused } = self;
        Arc::ptr_eq(registry, &other.registry) && *exempt == other.exempt && *refused == other.refused
    }
}
