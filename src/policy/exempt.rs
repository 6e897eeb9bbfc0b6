//! Requests that are never judged.

use crate::rules::{PathPattern, Reading, RequestPath};

/// Path patterns whose requests pass unjudged.
#[derive(Clone, Debug)]
pub(super) struct Exemptions {
    patterns: Vec<PathPattern>,
}

impl Exemptions {
    pub(super) fn new<P: AsRef<[u8]>>(patterns: impl IntoIterator<Item = P>) -> Self {
        let patterns = patterns.into_iter().map(|pattern| PathPattern::new(pattern.as_ref(), Reading::Standard));
        // An empty pattern would exempt everything; in a list of paths it can only be a slip.
        Self { patterns: patterns.filter(|pattern| pattern.priority() > 0).collect() }
    }

    /// Every form has to be exempt: `/.well-known/..%2fprivate/x` is `/private/x` to some servers.
    pub(super) fn covers(&self, path: &RequestPath<'_>) -> bool {
        path.is_robots_txt() || path.forms().all(|(_, form)| self.patterns.iter().any(|pattern| pattern.matches(form)))
    }
}
