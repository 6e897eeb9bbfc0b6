//! Exceptions from a site's mode.

use std::fmt;
use std::time::SystemTime;

use super::agent_name::{called, is_called};
use super::error::PolicyError;
use super::facts::Facts;
use super::mode::Mode;
use crate::agent::{Agent, Category};
use crate::rules::{PathPattern, ProductToken, Reading};

/// Another mode for some requests: a [`Mode`] for disallowed ones, or a [`RateMode`](super::RateMode) for limiting. Of several
/// that fit, the last one counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override<M = Mode> {
    covers: OverrideFor,
    mode: M,
    until: Option<SystemTime>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum OverrideFor {
    Agent(ProductToken),
    Category(Category),
    IndexEngines,
    Pattern(Box<[u8]>, PathPattern),
}

impl Override {
    /// For one rule, by its path pattern in any of its spellings: `/%40x` and `/@x` are one. Where a pattern without a
    /// leading slash counts ([`Reading::Legacy`]), it is written with one here.
    ///
    /// # Errors
    ///
    /// If the pattern begins with neither `/` nor `*`: no rule with such a pattern disallows a path.
    pub fn pattern(pattern: impl AsRef<[u8]>, mode: Mode) -> Result<Self, PolicyError> {
        let pattern = pattern.as_ref();
        let compared = PathPattern::parse(pattern)?;
        Ok(Self { covers: OverrideFor::Pattern(pattern.into(), compared), mode, until: None })
    }
}

impl<M: Copy> Override<M> {
    /// For one crawler, by its name, its own product token or a name that it sends, without case and with a version or
    /// without.
    ///
    /// # Errors
    ///
    /// If no request can be from an agent of this name: a whole `User-Agent` field, `*`, the name of a registered crawler
    /// with blanks in it (`GPT Bot`). The error says which name is right, where one is.
    pub fn agent(name: &str, mode: M) -> Result<Self, PolicyError> {
        Ok(Self { covers: OverrideFor::Agent(called(name)?), mode, until: None })
    }

    /// For the registered crawlers of a category.
    #[must_use]
    pub const fn category(category: Category, mode: M) -> Self {
        Self { covers: OverrideFor::Category(category), mode, until: None }
    }

    /// For the crawlers of search engines that people use ([`Agent::is_index_engine`]), which are tagged where the mode
    /// refuses and no override fits.
    #[must_use]
    pub const fn index_engines(mode: M) -> Self {
        Self { covers: OverrideFor::IndexEngines, mode, until: None }
    }

    /// Ends it: from this moment on it fits nothing. Default: it does not end. Where a request comes without a clock
    /// (see [`Facts::with_clock`]), it holds still.
    #[must_use]
    pub const fn until(mut self, end: SystemTime) -> Self {
        self.until = Some(end);
        self
    }

    /// When it ends, if it does.
    #[must_use]
    pub const fn end(&self) -> Option<SystemTime> {
        self.until
    }

    /// The mode it sets.
    #[must_use]
    pub const fn mode(&self) -> M {
        self.mode
    }

    /// The pattern of the rule that it is for, where it is for one.
    #[must_use]
    pub fn rule_pattern(&self) -> Option<&[u8]> {
        match &self.covers {
            OverrideFor::Pattern(pattern, _) => Some(pattern),
            _ => None,
        }
    }

    /// Whether it is for one crawler.
    pub(super) const fn is_for_agent(&self) -> bool {
        matches!(self.covers, OverrideFor::Agent(_))
    }

    /// Whether it is for a name, which a request may only claim to have.
    pub(super) const fn is_for_claim(&self) -> bool {
        !matches!(self.covers, OverrideFor::Pattern(..))
    }

    /// Whether it has not ended. The clock is looked at only for one that ends.
    pub(super) fn holds(&self, request: &Facts<'_>) -> bool {
        self.until.is_none_or(|end| request.now().is_none_or(|now| now < end))
    }

    /// Whether it is for what a rule with this pattern disallows to an agent; none is a rule that no override names.
    pub(super) fn fits(&self, agent: &Agent, rule: Option<&[u8]>) -> bool {
        match &self.covers {
            OverrideFor::Agent(name) => is_called(agent, name),
            OverrideFor::Category(category) => agent.category() == Some(*category),
            OverrideFor::IndexEngines => agent.is_index_engine(),
            OverrideFor::Pattern(pattern, compared) => rule.is_some_and(|rule| {
                *rule == **pattern || PathPattern::new(rule, Reading::Legacy).is_spelling_of(compared)
            }),
        }
    }
}

/// The requests it is for, as a configuration names them: `agent "gptbot"`, `category "ai-training"` or `pattern "/private/"`.
impl<M> fmt::Display for Override<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.covers {
            OverrideFor::Agent(name) => write!(f, "agent \"{}\"", name.as_bytes().escape_ascii()),
            OverrideFor::Category(category) => write!(f, "category \"{}\"", category.as_str()),
            OverrideFor::IndexEngines => f.write_str("index engines"),
            OverrideFor::Pattern(pattern, _) => write!(f, "pattern \"{}\"", pattern.escape_ascii()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_override_names_the_requests_it_is_for() {
        let mode = Mode::Observe;
        for (over, want) in [
            (Override::agent("GPTBot/1.2", mode), "agent \"gptbot\""),
            (Ok(Override::category(Category::Search, mode)), "category \"search\""),
            (Ok(Override::index_engines(mode)), "index engines"),
            (Override::pattern("/a\x1b/*$", mode), "pattern \"/a\\x1b/*$\""),
        ] {
            assert_eq!(over.expect(want).to_string(), want);
        }
    }
}
