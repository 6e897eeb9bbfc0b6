//! Exceptions from a site's mode.

use super::mode::Mode;
use crate::agent::{Agent, Category};
use crate::rules::{ProductToken, Verdict};

/// Another mode for some disallowed requests. Of several that fit, the last one counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    whom: Whom,
    mode: Mode,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Whom {
    Agent(ProductToken),
    Category(Category),
    Pattern(Box<[u8]>),
}

impl Override {
    /// For one crawler, by its name or its own product token, without case.
    #[must_use]
    pub fn agent(name: &str, mode: Mode) -> Self {
        Self { whom: Whom::Agent(called(name)), mode }
    }

    /// For the registered crawlers of a category.
    #[must_use]
    pub const fn category(category: Category, mode: Mode) -> Self {
        Self { whom: Whom::Category(category), mode }
    }

    /// For one rule, by its path pattern as written in robots.txt.
    #[must_use]
    pub fn pattern(pattern: impl AsRef<[u8]>, mode: Mode) -> Self {
        Self { whom: Whom::Pattern(pattern.as_ref().into()), mode }
    }

    /// The mode it sets.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    pub(super) fn fits(&self, agent: &Agent, verdict: &Verdict<'_>) -> bool {
        match &self.whom {
            Whom::Agent(name) => is_called(agent, name),
            Whom::Category(category) => agent.category() == Some(*category),
            Whom::Pattern(pattern) => verdict.rule().is_some_and(|rule| *rule.pattern() == **pattern),
        }
    }
}

/// What a name in a configuration means: as in robots.txt, `GPTBot/1.2` is `GPTBot`.
pub(super) fn called(name: &str) -> ProductToken {
    ProductToken::from_name(name.as_bytes()).unwrap_or_else(|| ProductToken::new(name))
}

/// Whether an agent goes by this name: its crawler's, or its own token. Not its whole chain: what is said of Googlebot
/// is not meant for Applebot.
pub(super) fn is_called(agent: &Agent, name: &ProductToken) -> bool {
    agent.tokens().first() == Some(name)
        || agent.crawler().is_some_and(|crawler| crawler.as_bytes().eq_ignore_ascii_case(name.as_bytes()))
}
