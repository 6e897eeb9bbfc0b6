//! A crawler that the site refuses what its robots.txt disallows.

use crate::rules::{Fallback, PathPattern, PathPatternError, Reading, Rule};

/// A registered crawler that the site refuses what the file disallows to it, for
/// [`Options::refused_crawlers`](super::Options::refused_crawlers).
///
/// Default: it is refused whatever the rule, and held to the groups of `*` if its row says that it obeys them. A name alone
/// becomes one of these.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct RefusedCrawler {
    name: Box<str>,
    fallback: Fallback,
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

    /// The site does not hold it to the groups of `*`.
    pub fn where_named(self) -> Self {
        Self { fallback: Fallback::Nothing, ..self }
    }

    /// It is refused by every rule but those with these patterns, in any of their spellings.
    ///
    /// # Errors
    ///
    /// If one of them begins with neither `/` nor `*`: no rule with such a pattern disallows a path.
    pub fn except_rules<P: AsRef<[u8]>>(self, patterns: impl IntoIterator<Item = P>) -> Result<Self, PathPatternError> {
        Ok(Self { rules: RefusedRules::AllBut(parsed(patterns)?), ..self })
    }

    /// It is refused only by rules with these patterns, in any of their spellings.
    ///
    /// # Errors
    ///
    /// If one of them begins with neither `/` nor `*`: no rule with such a pattern disallows a path.
    pub fn only_rules<P: AsRef<[u8]>>(self, patterns: impl IntoIterator<Item = P>) -> Result<Self, PathPatternError> {
        Ok(Self { rules: RefusedRules::Only(parsed(patterns)?), ..self })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) const fn fallback(&self) -> Fallback {
        self.fallback
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

fn parsed<P: AsRef<[u8]>>(patterns: impl IntoIterator<Item = P>) -> Result<Vec<PathPattern>, PathPatternError> {
    patterns.into_iter().map(PathPattern::parse).collect()
}
