//! Overrides: exceptions to a policy's mode.
//!
//! **The last override that applies decides**, as in `.gitignore`. So if one override is an
//! exception to another override, add the exception last.
//!
//! An override for a crawler applies only to that crawler, not to other crawlers that obey the
//! crawler's group. For example, an override for Googlebot does not apply to Applebot, although
//! Applebot obeys Googlebot's group if the file has no group for Applebot.

use std::fmt;
use std::time::SystemTime;

use super::facts::RequestFacts;
use crate::agent::{Agent, Category, NamedAs, Recognizer, Registry};
use crate::keyword_enum;
use crate::rules::{PathPattern, ProductToken, Reading, RobotsTxt, ValueError};

/// Sets another mode for some requests: a [`Mode`] for disallowed requests, or a
/// [`RateMode`](super::RateMode) for rate limiting. If several overrides apply, the last one
/// decides.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Override<M = Mode> {
    covers: OverrideFor,
    /// The mode that the override sets.
    pub mode: M,
    /// Time when the override ends; `None` if it does not end.
    pub until: Option<SystemTime>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum OverrideFor {
    Crawlers(Crawlers),
    Pattern(Box<[u8]>, PathPattern),
}

/// The crawlers that a setting applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Crawlers {
    /// One crawler. To create this variant, call [`Crawlers::agent`].
    Agent(ProductToken),
    /// The registered crawlers of a category. Unregistered agents do not count, even if their
    /// headers suggest this category ([`Agent::category`]).
    Category(Category),
    /// The registered crawlers of an operator.
    Operator(Box<str>),
    /// The crawlers of search engines that people use ([`Agent::is_index_engine`]).
    IndexEngines,
}

impl Crawlers {
    /// Selects one crawler. `name` is the crawler's name in the registry, its own product token, or
    /// a name that it sends. Case is ignored, and the name may include a version.
    ///
    /// # Errors
    ///
    /// Returns an error if `name` is not a crawler's name: for example, a whole `User-Agent` value,
    /// `*`, or the name of a registered crawler with added spaces (`GPT Bot`). If the right name is
    /// known, the error suggests it.
    pub fn agent(name: &str) -> Result<Self, ValueError> {
        parse_crawler_name(name).map(Self::Agent)
    }

    /// Reports whether an agent is one of these crawlers. Ignores the tokens of other crawlers
    /// whose groups the agent may obey: a setting for Googlebot does not apply to Applebot.
    pub fn contains(&self, agent: &Agent) -> bool {
        match self {
            Self::Agent(name) => has_crawler_name(agent, name),
            Self::Category(category) => agent.registered().is_some_and(|crawler| crawler.category == *category),
            Self::Operator(operator) => {
                agent.registered().is_some_and(|crawler| crawler.operator.eq_ignore_ascii_case(operator))
            }
            Self::IndexEngines => agent.is_index_engine(),
        }
    }
}

impl Override {
    /// Creates an override for the rules with this path pattern, in any spelling: `/%40x` and `/@x`
    /// are equal. The value must be the pattern of a rule in the file, not the path of a request.
    /// To let requests for a path pass, exempt the path
    /// ([`PolicyBuilder::exempt_paths`](super::PolicyBuilder::exempt_paths)) or write an `Allow`
    /// line.
    ///
    /// A file that is parsed with [`Reading::Legacy`] may contain patterns without a leading slash.
    /// Write these patterns with a leading slash here.
    ///
    /// # Errors
    ///
    /// Returns an error if the pattern begins with neither `/` nor `*`.
    pub fn pattern(pattern: impl AsRef<[u8]>, mode: Mode) -> Result<Self, ValueError> {
        let pattern = pattern.as_ref();
        let compared = PathPattern::parse(pattern)?;
        Ok(Self { covers: OverrideFor::Pattern(pattern.into(), compared), mode, until: None })
    }
}

impl<M: Copy> Override<M> {
    /// Creates an override for one crawler.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Crawlers::agent`].
    pub fn agent(name: &str, mode: M) -> Result<Self, ValueError> {
        Ok(Self::crawlers(Crawlers::agent(name)?, mode))
    }

    /// Creates an override for these crawlers.
    pub const fn crawlers(crawlers: Crawlers, mode: M) -> Self {
        Self { covers: OverrideFor::Crawlers(crawlers), mode, until: None }
    }

    /// Returns the crawlers that the override is for; `None` if the override is for a pattern.
    pub(super) const fn selection(&self) -> Option<&Crawlers> {
        match &self.covers {
            OverrideFor::Crawlers(crawlers) => Some(crawlers),
            OverrideFor::Pattern(..) => None,
        }
    }

    /// Returns the crawler that the override is for; `None` if the override is for several crawlers
    /// or for a pattern.
    #[doc(hidden)]
    pub const fn agent_name(&self) -> Option<&ProductToken> {
        match self.selection() {
            Some(Crawlers::Agent(name)) => Some(name),
            _ => None,
        }
    }

    /// Creates an override for the registered crawlers of a category.
    pub const fn category(category: Category, mode: M) -> Self {
        Self::crawlers(Crawlers::Category(category), mode)
    }

    /// Creates an override for the crawlers of search engines that people use
    /// ([`Agent::is_index_engine`]). If no override applies, [`Mode::Refuse`] only tags the
    /// disallowed requests of these crawlers. With a rate mode, this override refuses only
    /// impostors, because only an override by name ([`agent`](Self::agent)) can limit the rate of a
    /// real search engine.
    pub const fn index_engines(mode: M) -> Self {
        Self::crawlers(Crawlers::IndexEngines, mode)
    }

    /// Sets the end of the override. Default: no end. The end is ignored if the [`RequestFacts`]
    /// have no [`clock`](RequestFacts::clock).
    pub const fn until(mut self, end: SystemTime) -> Self {
        self.until = Some(end);
        self
    }

    /// Reports whether the override applies to all search engines. Returns `false` if the override
    /// names a single search engine.
    #[doc(hidden)]
    pub const fn is_for_unnamed_engines(&self) -> bool {
        matches!(self.covers, OverrideFor::Crawlers(Crawlers::IndexEngines | Crawlers::Category(Category::Search)))
    }

    /// Returns the rule pattern that the override is for; `None` if the override is for crawlers.
    #[doc(hidden)]
    pub fn rule_pattern(&self) -> Option<&[u8]> {
        match &self.covers {
            OverrideFor::Pattern(pattern, _) => Some(pattern),
            _ => None,
        }
    }

    pub(super) fn has_not_ended(&self, request: &RequestFacts<'_>) -> bool {
        self.until.is_none_or(|end| request.now().is_none_or(|now| now < end))
    }

    /// Reports whether the override applies to an agent's request that is disallowed by a rule with
    /// the pattern `rule`. If `rule` is `None`, overrides for patterns do not apply.
    #[doc(hidden)]
    pub fn fits(&self, agent: &Agent, rule: Option<&[u8]>) -> bool {
        match &self.covers {
            OverrideFor::Crawlers(crawlers) => crawlers.contains(agent),
            OverrideFor::Pattern(..) => rule.is_some_and(|rule| self.is_for_rule(rule)),
        }
    }

    /// Reports whether the override is for rules with this pattern.
    #[doc(hidden)]
    pub fn is_for_rule(&self, rule: &[u8]) -> bool {
        matches!(&self.covers, OverrideFor::Pattern(pattern, compared)
            if *rule == **pattern || PathPattern::new(rule, Reading::Legacy).is_spelling_of(compared))
    }
}

/// Writes what the override is for, as in a configuration: `agent "gptbot"`, `category
/// "ai-training"` or `pattern "/private/"`.
impl<M> fmt::Display for Override<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.covers {
            OverrideFor::Crawlers(Crawlers::Agent(name)) => write!(f, "agent \"{}\"", name.as_bytes().escape_ascii()),
            OverrideFor::Crawlers(Crawlers::Category(category)) => write!(f, "category \"{}\"", category.as_str()),
            OverrideFor::Crawlers(Crawlers::Operator(operator)) => write!(f, "operator {operator:?}"),
            OverrideFor::Crawlers(Crawlers::IndexEngines) => f.write_str("index engines"),
            OverrideFor::Pattern(pattern, _) => write!(f, "pattern \"{}\"", pattern.escape_ascii()),
        }
    }
}

/// Returns the product token of a configured name. Ignores a version in the name: `GPTBot/1.2` is
/// the same as `GPTBot`.
///
/// Accepts names that are not in the built-in registry, because the application may use its own
/// registry.
pub(super) fn parse_crawler_name(name: &str) -> Result<ProductToken, ValueError> {
    let token = ProductToken::from_name(name.as_bytes()).ok_or_else(|| invalid_name(name, None))?;
    let registry = Registry::builtin();
    let (named_as, agents) = Recognizer::new(registry.clone(), &RobotsTxt::parse(&b""[..])).resolve(name);
    if named_as == NamedAs::Registered {
        return Ok(token);
    }
    if is_header(name) {
        return Err(invalid_name(name, agents.first().crawler()));
    }
    if name.contains([':', '*']) {
        let fault = "is not a crawler's name: for several crawlers, use Override::category, Override::index_engines or \
                     Crawlers::Operator";
        return Err(ValueError::new(name, fault));
    }
    match registry.crawler_without_spaces(name) {
        Some(crawler) => Err(invalid_name(name, Some(&crawler.name))),
        None => Ok(token),
    }
}

/// Creates the error for a string that is not a crawler's name. `meant` is the name that the
/// message suggests.
fn invalid_name(name: &str, meant: Option<&str>) -> ValueError {
    let right = meant.map_or("one such as \"GPTBot\"".to_owned(), |meant| format!("{meant:?}"));
    ValueError::new(name, format_args!("is not a crawler's name: write {right}"))
}

/// Reports whether `name` is the crawler's name in the registry, the agent's own token, or a name
/// that the crawler sends. Googlebot is not a name of Applebot, although Applebot may obey a group
/// for Googlebot.
pub(super) fn has_crawler_name(agent: &Agent, name: &ProductToken) -> bool {
    let is_name = |other: &str| other.as_bytes().eq_ignore_ascii_case(name.as_bytes());
    agent.tokens().first() == Some(name)
        || agent.crawler().is_some_and(is_name)
        || agent.registered().is_some_and(|crawler| crawler.header_names.iter().any(|name| is_name(name)))
}

/// Reports whether a string contains more than a name and a version, for example `Mozilla/5.0
/// (compatible; …)` or `FooBot/1.0 BarBot/2.0`.
fn is_header(name: &str) -> bool {
    let behind_name = name.trim().split_once('/').map_or("", |(_, behind)| behind);
    name.contains(['(', ';', ',']) || behind_name.contains(|char: char| char == '/' || char.is_whitespace())
}

keyword_enum! {
    /// How a request that robots.txt disallows is handled. Later variants are stricter.
    ///
    /// The mode also limits the policy's other actions. Under [`Mode::Off`] and [`Mode::Observe`],
    /// requests from impostors also pass, whatever [`Impostors`](super::Impostors) is set to. Under
    /// these two modes, requests that come before the crawl delay has passed also pass, whatever
    /// the policy's [`RateMode`](super::RateMode) is.
    #[derive(Default, PartialOrd, Ord)]
    Mode, "a mode", {
        /// The request passes and is not recorded.
        Off = "off",
        /// The request is recorded and passes unchanged. The default.
        #[default]
        Observe = "observe",
        /// The request passes with an additional header field that contains the verdict for the
        /// application.
        Tag = "tag",
        /// The request is refused.
        Refuse = "refuse",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_override_displays_the_requests_that_it_applies_to() {
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
    fn an_impossible_agent_name_is_refused_with_a_suggestion() {
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
            let error = parse_crawler_name(name).expect_err(name).to_string();
            assert_eq!(error, format!("{name:?} is not a crawler's name: {right}"));
        }
    }

    #[test]
    fn possible_agent_names_are_accepted_and_match_their_agents() {
        let identify = |header: &str| {
            Recognizer::new(Registry::builtin().clone(), &RobotsTxt::parse(&b""[..])).identify(header.as_bytes())
        };
        for (name, header) in [
            ("gptbot", "GPTBot/1.2"),
            ("GPTBot/1.2", "GPTBot/1.2"),
            (" Better Uptime Bot ", "Better Uptime Bot/1.0"),
            // `HaosouSpider` is a name that the crawler sends, not its name in the registry.
            ("HaosouSpider", "360Spider"),
            ("Yahoo! Slurp", "Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)"),
            ("AcmeBot", "AcmeBot/1.0 (+https://acme.example/bot)"),
            ("Acme Crawler", "Acme Crawler/1.0"),
        ] {
            assert!(has_crawler_name(&identify(header), &parse_crawler_name(name).expect(name)), "{name}");
        }
    }
}
