//! Expected verdicts of a file: the agents that may or may not fetch certain paths.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::diff::{Decider, Subject};
use crate::agent::{Recognizer, Registry};
use crate::rules::{Access, Reading, RequestPath, RobotsTxt};

/// A list of expectations: the verdicts that certain agents must have on certain paths.
///
/// An agent is a registered name, a product token, `*` for a crawler that is not named in any
/// group, or a whole `User-Agent` header.
///
/// ```
/// use robots_core::agent::Registry;
/// use robots_core::check::Expectations;
/// use robots_core::rules::{Access, RobotsTxt};
///
/// let robots = RobotsTxt::parse(&b"User-agent: *\nDisallow: /drafts/\n"[..]);
/// let outcome = Expectations::new(Registry::builtin().clone())
///     .expect(Access::Allow, ["Googlebot"], ["/", "/drafts/novel"])
///     .evaluate(&robots);
/// assert_eq!(outcome.evaluated, 2);
/// assert!(!outcome.is_met());
/// let unmet = "\"/drafts/novel\" must be allowed for \"Googlebot\" but is disallowed by line 2\n";
/// assert_eq!(outcome.to_string(), unmet);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Expectations {
    registry: Arc<Registry>,
    list: Vec<Expectation>,
}

#[derive(Clone, Debug)]
struct Expectation {
    access: Access,
    agents: Vec<String>,
    paths: Vec<String>,
}

/// The result of comparing the verdicts of a file with the expected verdicts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[must_use]
#[non_exhaustive]
pub struct ExpectationOutcome {
    /// Number of pairs of agent and path that were evaluated.
    pub evaluated: usize,
    /// The pairs whose verdict is not the expected one, in the order of the expectations.
    pub unmet: Vec<Unmet>,
    /// Messages about expectations that protect nothing:
    ///
    /// - The agent is unknown, but similar to the name of a crawler. The message suggests this
    ///   name.
    /// - The agent is empty, a path or a selection of several crawlers.
    /// - There is no expectation at all, or an expectation has no agents or no paths.
    pub misspelled: Vec<String>,
}

/// A pair of agent and path whose verdict is not as expected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Unmet {
    /// Index of the expectation: the number of earlier calls to [`Expectations::expect`].
    pub expectation: usize,
    /// Agent, as written in the expectation.
    pub agent: String,
    /// Path, as written in the expectation.
    pub path: String,
    /// Actual verdict, which differs from the expected one.
    pub access: Access,
    /// Whether a group of the file applies to the agent: a group that names the agent, or the group
    /// for `*` if the agent obeys `*`.
    pub has_group: bool,
    /// The deciding rule; `None` if no rule matches, or if the path is `/robots.txt`, which is
    /// always allowed.
    pub rule: Option<Decider>,
}

/// Writes a message with the agent, the path, the expected verdict and, if a rule causes another
/// verdict, the line number of this rule. The message has one line.
impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { agent, path, .. } = self;
        let (wanted, found) = match self.access {
            Access::Allow => ("disallowed", "allowed"),
            Access::Disallow => ("allowed", "disallowed"),
        };
        match &self.rule {
            Some(Decider { line, .. }) => {
                write!(f, "{path:?} must be {wanted} for {agent:?} but is {found} by line {line}")
            }
            None if self.is_about_robots_txt() => {
                write!(f, "{path:?} must be {wanted} for {agent:?}, but every crawler may always fetch robots.txt")
            }
            None => write!(f, "{path:?} must be {wanted} for {agent:?}, but no rule applies to this path"),
        }
    }
}

impl Unmet {
    /// Reports whether the path is `/robots.txt`, which is always allowed.
    #[doc(hidden)]
    pub fn is_about_robots_txt(&self) -> bool {
        RequestPath::new(self.path.as_bytes()).is_robots_txt()
    }
}

impl Expectations {
    /// Creates an empty list. The registry is used to recognise the agents.
    pub const fn new(registry: Arc<Registry>) -> Self {
        Self { registry, list: Vec::new() }
    }

    /// Returns the agents of all expectations, as written.
    #[doc(hidden)]
    pub fn agents(&self) -> impl Iterator<Item = &str> {
        self.list.iter().flat_map(|expectation| &expectation.agents).map(String::as_str)
    }

    /// Reports whether there is no expectation, or an expectation without agents or paths.
    #[doc(hidden)]
    pub fn is_incomplete(&self) -> bool {
        self.list.is_empty() || self.list.iter().any(|expected| expected.agents.is_empty() || expected.paths.is_empty())
    }

    /// Adds an expectation: the verdict must be `access` for each of these agents and paths.
    pub fn expect<A: Into<String>, P: Into<String>>(
        mut self,
        access: Access,
        agents: impl IntoIterator<Item = A>,
        paths: impl IntoIterator<Item = P>,
    ) -> Self {
        let agents = agents.into_iter().map(Into::into).collect();
        let paths = paths.into_iter().map(Into::into).collect();
        self.list.push(Expectation { access, agents, paths });
        self
    }

    /// Compares the verdict of a file with the expected verdict for every pair of agent and path.
    pub fn evaluate(&self, robots: &RobotsTxt) -> ExpectationOutcome {
        let rules = robots.compile_with(Reading::Standard, |name| self.registry.stands_for(name.value()));
        let recognizer = Recognizer::new(self.registry.clone(), robots);
        let misspelled = self.agents().collect::<BTreeSet<_>>().into_iter().filter_map(|agent| {
            let meant = self.registry.one_crawler_meant(agent, robots)?;
            Some(format!("no crawler and no group is called {agent:?}: did you mean {meant}?"))
        });
        let empty = self
            .is_incomplete()
            .then(|| "an expectation has no agents or no paths: pass at least one of each".to_owned());
        let misspelled = misspelled.chain(empty).collect();
        let mut outcome = ExpectationOutcome { misspelled, ..ExpectationOutcome::default() };
        for (at, expectation) in self.list.iter().enumerate() {
            for agent in &expectation.agents {
                let subject = Subject::named(agent, &recognizer.resolve(agent));
                for path in &expectation.paths {
                    outcome.evaluated += 1;
                    let request = RequestPath::new(path.as_bytes());
                    // `/robots.txt` is always allowed (RFC 9309, section 2.2.2).
                    let verdict = subject.select(&rules).verdict(&request);
                    let access = if request.is_robots_txt() { Access::Allow } else { verdict.access() };
                    if access != expectation.access {
                        outcome.unmet.push(Unmet {
                            expectation: at,
                            agent: agent.clone(),
                            path: path.clone(),
                            access,
                            has_group: verdict.group().is_some(),
                            rule: Decider::of(verdict).filter(|_| verdict.access() == access),
                        });
                    }
                }
            }
        }
        outcome
    }
}

impl ExpectationOutcome {
    /// Reports whether each agent has the expected verdict on each path, and
    /// [`misspelled`](Self::misspelled) is empty.
    pub fn is_met(&self) -> bool {
        self.unmet.is_empty() && self.misspelled.is_empty()
    }
}

/// Writes one line per message in `misspelled`, and one line per pair in `unmet`. Writes nothing if
/// the expectations are met.
impl fmt::Display for ExpectationOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.misspelled.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        self.unmet.iter().try_for_each(|unmet| writeln!(f, "{unmet}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unmet(file: &str, access: Access, agents: &[&str], paths: &[&str]) -> Vec<String> {
        let expectations = Expectations::new(Registry::builtin().clone());
        let outcome = expectations
            .expect(access, agents.iter().copied(), paths.iter().copied())
            .evaluate(&RobotsTxt::parse(file.as_bytes()));
        assert_eq!(outcome.evaluated, agents.len() * paths.len());
        assert_eq!(outcome.is_met(), outcome.unmet.is_empty());
        outcome.unmet.iter().map(|unmet| format!("{} {}", unmet.agent, unmet.path)).collect()
    }

    #[test]
    fn expectations_accept_names_tokens_star_and_headers_as_agents() {
        let file = "User-agent: *\nDisallow: /x\n\nUser-agent: GPTBot\nDisallow: /y\n";
        let all = ["Googlebot", "nobody", "*", "GPTBot", "AdsBot-Google", "Mozilla/5.0 (X11) Firefox/1", "GPTBot/1.2"];
        assert_eq!(unmet(file, Access::Allow, &all, &["/x"]), ["Googlebot /x", "nobody /x", "* /x"]);
        assert_eq!(unmet(file, Access::Allow, &all, &["/y"]), ["GPTBot /y", "GPTBot/1.2 /y"]);
        assert_eq!(unmet(file, Access::Disallow, &["*"], &["/x", "/z", "/a/../x"]), ["* /z"]);
    }

    #[test]
    fn an_expectation_for_a_misspelled_crawler_is_not_met() {
        let outcome = |file: &str, agent: &str| {
            let expectations =
                Expectations::new(Registry::builtin().clone()).expect(Access::Allow, [agent], ["/", "/x"]);
            expectations.evaluate(&RobotsTxt::parse(file))
        };
        let shut = "User-agent: Googlebot\nDisallow: /\n";
        assert!(!outcome(shut, "GPTBt").is_met() && !outcome(shut, "CCBott").is_met());
        let slip = outcome(shut, "Goglebot");
        assert!(slip.unmet.is_empty() && !slip.is_met());
        assert_eq!(slip.to_string(), "no crawler and no group is called \"Goglebot\": did you mean \"Googlebot\"?\n");
        // `Google` is a common short name of a crawler, and `Claude` is the name of an assistant.
        for (name, meant) in
            [("Google", "\"Googlebot\""), ("Claude", "\"ClaudeBot\" or \"Claude-User\" or \"Claude-SearchBot\"")]
        {
            let want = format!("no crawler and no group is called {name:?}: did you mean {meant}?\n");
            assert_eq!(outcome(shut, name).to_string(), want);
        }
        let operator = outcome(shut, "Anthropic").to_string();
        assert!(operator.contains("did you mean \"ClaudeBot\" or"), "{operator}");
        for (name, meant) in [
            ("Google bot", "\"Googlebot\""),
            ("category:search", "the name of one crawler, such as \"Googlebot\""),
            ("", "the name of one crawler, such as \"Googlebot\""),
            ("/", "the name of one crawler, such as \"Googlebot\""),
        ] {
            let want = format!("no crawler and no group is called {name:?}: did you mean {meant}?\n");
            assert_eq!(outcome(shut, name).to_string(), want);
        }
        // None of these agents is misspelled.
        let own = "User-agent: Goglebot\nAllow: /\n";
        for (file, agent) in [(shut, "HouseBot"), (shut, "*"), (own, "Goglebot"), (shut, "Mozilla/5.0 (X11) Firefox/1")]
        {
            assert!(outcome(file, agent).is_met(), "{agent}");
        }
    }

    #[test]
    fn expectations_without_agents_or_paths_are_not_met() {
        let none = Expectations::new(Registry::builtin().clone());
        let pair = || none.clone().expect(Access::Allow, ["*"], ["/"]);
        let nothing = [""; 0];
        let empty =
            [none.clone(), pair().expect(Access::Allow, nothing, ["/"]), pair().expect(Access::Allow, ["*"], nothing)];
        for empty in empty {
            let outcome = empty.evaluate(&RobotsTxt::parse(""));
            assert!(!outcome.is_met());
            assert_eq!(outcome.to_string(), "an expectation has no agents or no paths: pass at least one of each\n");
        }
        assert!(pair().evaluate(&RobotsTxt::parse("")).is_met());
    }

    #[test]
    fn robots_txt_may_always_be_fetched() {
        let shut = "User-agent: *\nDisallow: /\n";
        assert_eq!(unmet(shut, Access::Allow, &["*"], &["/robots.txt", "/"]), ["* /"]);
        let expectations = Expectations::new(Registry::builtin().clone());
        let outcome = expectations.expect(Access::Disallow, ["*"], ["/robots.txt"]).evaluate(&RobotsTxt::parse(shut));
        let want = "\"/robots.txt\" must be disallowed for \"*\", but every crawler may always fetch robots.txt\n";
        assert_eq!(outcome.to_string(), want);
    }

    #[test]
    fn an_unmet_expectation_contains_the_rule_that_decided() {
        let robots = RobotsTxt::parse(&b"User-agent: *\nDisallow: /x\n"[..]);
        let outcome = Expectations::new(Registry::builtin().clone())
            .expect(Access::Disallow, ["*"], ["/x"])
            .expect(Access::Allow, ["*"], ["/x/1"])
            .evaluate(&robots);
        let unmet = &outcome.unmet[0];
        assert_eq!(
            (unmet.expectation, unmet.access, unmet.rule.as_ref().map(|decider| decider.line), unmet.has_group),
            (1, Access::Disallow, Some(2), true)
        );
        // AdsBot does not obey the group for `*`.
        let outcome = Expectations::new(Registry::builtin().clone())
            .expect(Access::Disallow, ["AdsBot-Google"], ["/x"])
            .evaluate(&robots);
        assert_eq!((outcome.unmet[0].rule.as_ref(), outcome.unmet[0].has_group), (None, false));
    }
}
