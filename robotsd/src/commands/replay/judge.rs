//! What a robots.txt would have said to a request, under a policy: the same that is enforced.

use tower_robots::agent::{Agent, Recognizer, Registry};
use tower_robots::policy::{Facts, Policy};
use tower_robots::rules::{Access, Fallback, Reading, RequestPath, RobotsTxt, RuleSet};

/// A robots.txt, ready to be asked.
#[derive(Debug)]
pub(super) struct Book {
    rules: RuleSet,
    recognizer: Recognizer,
    policy: Policy,
}

/// An agent, and whether any group of the file is for it.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) agent: Agent,
    pub(super) is_judged: bool,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// Nobody asked the rules, or they allow it.
    Allowed,
    /// Disallowed by the rule in this line.
    Disallowed(usize),
}

impl Book {
    pub(super) fn new(bytes: Vec<u8>, policy: Policy) -> Self {
        let robots = RobotsTxt::parse(bytes);
        let registry = Registry::builtin();
        let rules = robots.compile_with(Reading::Standard, |name| registry.stands_for(name.value()));
        Self { rules, recognizer: Recognizer::new(registry.clone(), &robots), policy }
    }

    pub(super) const fn robots(&self) -> &RobotsTxt {
        self.rules.document()
    }

    pub(super) fn know(&self, field: &[u8]) -> Known {
        let agent = if field.is_empty() { Agent::empty() } else { self.recognizer.identify(field) };
        let fallback = if self.policy.holds_to_star(&agent) { Fallback::Star } else { Fallback::Nothing };
        let is_judged = self.rules.select(agent.tokens(), fallback).applies();
        Known { agent, is_judged }
    }

    /// The path of a request, in the forms that are judged.
    pub(super) fn path<'t>(&self, target: &'t [u8]) -> RequestPath<'t> {
        self.policy.path(target)
    }

    pub(super) fn judge(&self, known: &Known, method: &str, path: &RequestPath<'_>) -> Judgement {
        if !known.is_judged {
            return Judgement::Allowed;
        }
        let decision = self.policy.decide(&self.rules, std::slice::from_ref(&known.agent), Facts::new(method, path));
        match decision.verdict() {
            Some(verdict) if verdict.access() == Access::Disallow => {
                Judgement::Disallowed(verdict.line().unwrap_or_default())
            }
            _ => Judgement::Allowed,
        }
    }
}

impl Judgement {
    pub(super) const fn is_disallowed(self) -> bool {
        matches!(self, Self::Disallowed(_))
    }
}
