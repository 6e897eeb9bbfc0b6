//! What must not change: a crawler and a part of the site.

use std::fmt;

use super::change::Change;
use super::subject::Subject;
use crate::agent::Recognizer;
use crate::rules::{PathPattern, Reading, RequestPath};

/// Paths of a crawler under which no verdict may change, written `Googlebot:/products/`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Guard {
    /// The crawler, as written.
    pub crawler: String,
    /// The path pattern, as written.
    pub pattern: String,
}

/// A [`Guard`] and what changes in spite of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Breach {
    /// What was not to change.
    pub guard: Guard,
    /// What does: the change that is about the most paths.
    pub change: Change,
}

impl Guard {
    /// Reads `crawler:pattern`: a name as for [`Recognizer::resolve`](crate::agent::Recognizer::resolve) (`*`: one that no
    /// group names), then a path pattern as in robots.txt. `None` where the colon or the leading slash is missing.
    pub fn parse(text: &str) -> Option<Self> {
        let (crawler, pattern) = text.split_once(':')?;
        let (crawler, pattern) = (crawler.trim(), pattern.trim());
        let fits = !crawler.is_empty() && (pattern.starts_with('/') || pattern.starts_with('*'));
        fits.then(|| Self { crawler: crawler.to_owned(), pattern: pattern.to_owned() })
    }

    pub(super) fn covers(&self, path: &[u8]) -> bool {
        PathPattern::new(self.pattern.as_bytes(), Reading::Standard).matches(RequestPath::new(path).as_bytes())
    }

    pub(super) fn subject(&self, recognizer: &Recognizer) -> Subject {
        Subject::named(&self.crawler, &recognizer.resolve(&self.crawler))
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.crawler, self.pattern)
    }
}
