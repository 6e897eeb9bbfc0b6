//! Exceptions from a site's mode.
//!
//! **The last override that fits wins**, as in `.gitignore`: one rule to remember, and an exception is written below
//! what it is an exception from. An override for an agent means that agent's own token, not its family: an override for
//! Googlebot is not meant for Applebot, which obeys Googlebot's group where it has none of its own.

use std::fmt;
use std::time::SystemTime;

use super::facts::RequestFacts;
use crate::agent::{Agent, Category, NamedAs, Recognizer, Registry};
use crate::keyword_enum;
use crate::rules::{PathPattern, ProductToken, Reading, RobotsTxt, ValueError};

/// Another mode for some requests: a [`Mode`] for disallowed ones, or a [`RateMode`](super::RateMode) for limiting. Of several
/// that fit, the last one counts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Override<M = Mode> {
    covers: OverrideFor,
    /// The mode it sets.
    pub mode: M,
    /// When it ends, if it does.
    pub until: Option<SystemTime>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum OverrideFor {
    Agent(ProductToken),
    Category(Category),
    IndexEngines,
    Pattern(Box<[u8]>, PathPattern),
}

impl Override {
    /// For one rule, by its path pattern in any of its spellings: `/%40x` and `/@x` are one. It is the rule as the file has it, and no
    /// path: to let a path pass, exempt it ([`PolicyBuilder::exempt_paths`](super::PolicyBuilder::exempt_paths)) or write an `Allow`
    /// line. If a pattern without a leading slash counts ([`Reading::Legacy`]), it is written with one here.
    ///
    /// # Errors
    ///
    /// If the pattern begins with neither `/` nor `*`: no rule with such a pattern disallows a path.
    pub fn pattern(pattern: impl AsRef<[u8]>, mode: Mode) -> Result<Self, ValueError> {
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
    pub fn agent(name: &str, mode: M) -> Result<Self, ValueError> {
        Ok(Self { covers: OverrideFor::Agent(called(name)?), mode, until: None })
    }

    /// The crawler that it is for, where it is for one.
    pub(super) const fn agent_name(&self) -> Option<&ProductToken> {
        match &self.covers {
            OverrideFor::Agent(name) => Some(name),
            _ => None,
        }
    }

    /// For the registered crawlers of a category.
    pub const fn category(category: Category, mode: M) -> Self {
        Self { covers: OverrideFor::Category(category), mode, until: None }
    }

    /// For the crawlers of search engines that people use ([`Agent::is_index_engine`]), which are tagged where the mode
    /// refuses and no override fits.
    pub const fn index_engines(mode: M) -> Self {
        Self { covers: OverrideFor::IndexEngines, mode, until: None }
    }

    /// Ends it: from this moment on it fits nothing. Default: it does not end. If a request comes without a clock
    /// (see [`RequestFacts::clock`]), it still applies.
    pub const fn until(mut self, end: SystemTime) -> Self {
        self.until = Some(end);
        self
    }

    /// The pattern of the rule that it is for, where it is for one.
    #[doc(hidden)]
    pub fn rule_pattern(&self) -> Option<&[u8]> {
        match &self.covers {
            OverrideFor::Pattern(pattern, _) => Some(pattern),
            _ => None,
        }
    }

    /// Whether it has not ended. The clock is looked at only for one that ends.
    pub(super) fn holds(&self, request: &RequestFacts<'_>) -> bool {
        self.until.is_none_or(|end| request.now().is_none_or(|now| now < end))
    }

    /// Whether it is for what a rule with this pattern disallows to an agent; none is a rule that no override names.
    pub(super) fn fits(&self, agent: &Agent, rule: Option<&[u8]>) -> bool {
        match &self.covers {
            OverrideFor::Agent(name) => is_called(agent, name),
            OverrideFor::Category(category) => agent.category() == Some(*category),
            OverrideFor::IndexEngines => agent.is_index_engine(),
            OverrideFor::Pattern(..) => rule.is_some_and(|rule| self.is_for_rule(rule)),
        }
    }

    /// Whether it is for a rule with this pattern.
    #[doc(hidden)]
    pub fn is_for_rule(&self, rule: &[u8]) -> bool {
        matches!(&self.covers, OverrideFor::Pattern(pattern, compared)
            if *rule == **pattern || PathPattern::new(rule, Reading::Legacy).is_spelling_of(compared))
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

/// The token of a configured name: as in robots.txt, `GPTBot/1.2` is `GPTBot`.
///
/// A policy has no registry, so a name that is unknown to the built-in one may be right.
pub(super) fn called(name: &str) -> Result<ProductToken, ValueError> {
    let token = ProductToken::from_name(name.as_bytes()).ok_or_else(|| no_name(name, None))?;
    let registry = Registry::builtin();
    let (named_as, agents) = Recognizer::new(registry.clone(), &RobotsTxt::parse(&b""[..])).resolve(name);
    if named_as == NamedAs::Registered {
        return Ok(token);
    }
    if is_header(name) {
        return Err(no_name(name, agents.first().crawler()));
    }
    let joined: String = name.split_whitespace().collect();
    match registry.crawler(&joined) {
        Some(crawler) if joined != name.trim() => Err(no_name(name, Some(&crawler.name))),
        _ => Ok(token),
    }
}

/// A text that names no agent: nothing but `*` or blanks, a whole `User-Agent` field, a name with blanks in it. `meant` is the name
/// of the crawler that was meant.
fn no_name(name: &str, meant: Option<&str>) -> ValueError {
    let right = meant.map_or("one such as \"GPTBot\"".to_owned(), |meant| format!("{meant:?}"));
    ValueError::new(name, format_args!("is not a crawler's name: write {right}"))
}

/// Whether an agent goes by this name: its crawler's, its own token, or one that its crawler sends. Not its whole chain: an
/// entry for Googlebot is not for Applebot.
pub(super) fn is_called(agent: &Agent, name: &ProductToken) -> bool {
    let is_name = |other: &str| other.as_bytes().eq_ignore_ascii_case(name.as_bytes());
    agent.tokens().first() == Some(name)
        || agent.crawler().is_some_and(is_name)
        || agent.registered().is_some_and(|crawler| crawler.header_names.iter().any(|name| is_name(name)))
}

/// Whether a text is more than a name and its version: `Mozilla/5.0 (compatible; …)`, `FooBot/1.0 BarBot/2.0`.
fn is_header(name: &str) -> bool {
    let behind_name = name.trim().split_once('/').map_or("", |(_, behind)| behind);
    name.contains(['(', ';', ',']) || behind_name.contains(|char: char| char == '/' || char.is_whitespace())
}

keyword_enum! {
    /// How a request that robots.txt disallows is handled; the later ones are stricter.
    ///
    /// It is the most that is done about any request: under [`Mode::Off`] and [`Mode::Observe`] an impostor's request and one that
    /// comes too soon pass as well, whatever [`Impostors`](super::Impostors) and [`RateMode`](super::RateMode) say.
    #[derive(Default, PartialOrd, Ord)]
    Mode, "a mode", {
        /// It passes, and observers of disallowed requests are not notified.
        Off = "off",
        /// It is recorded and passes unchanged. The default.
        #[default]
        Observe = "observe",
        /// It passes with a field for the application behind.
        Tag = "tag",
        /// It is answered with a refusal.
        Refuse = "refuse",
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

    #[test]
    fn a_name_that_no_agent_can_have_is_refused_with_the_right_one() {
        const ANY: &str = "write one such as \"GPTBot\"";
        for (name, right) in [
            ("GPT Bot", "write \"GPTBot\""),
            ("google bot", "write \"Googlebot\""),
            ("Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)", "write \"GPTBot\""),
            ("GPTBot/1.2 (+https://openai.com/gptbot)", "write \"GPTBot\""),
            ("AcmeBot/1.0 (+https://acme.example/bot)", "write \"AcmeBot\""),
            ("Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/128.0", ANY),
            ("*", ANY),
            ("", ANY),
        ] {
            let error = called(name).expect_err(name).to_string();
            assert_eq!(error, format!("{name:?} is not a crawler's name: {right}"));
        }
    }

    #[test]
    fn names_that_an_agent_can_have_are_taken() {
        let identify = |header: &str| {
            Recognizer::new(Registry::builtin().clone(), &RobotsTxt::parse(&b""[..])).identify(header.as_bytes())
        };
        for (name, header) in [
            ("gptbot", "GPTBot/1.2"),
            ("GPTBot/1.2", "GPTBot/1.2"),
            (" Better Uptime Bot ", "Better Uptime Bot/1.0"),
            // A name that a crawler sends, not the one it is listed under.
            ("HaosouSpider", "360Spider"),
            ("Yahoo! Slurp", "Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)"),
            ("AcmeBot", "AcmeBot/1.0 (+https://acme.example/bot)"),
            ("Acme Crawler", "Acme Crawler/1.0"),
        ] {
            assert!(is_called(&identify(header), &called(name).expect(name)), "{name}");
        }
    }
}
