//! What a robots.txt would have done to a request, under the policy that is enforced.

use tower_robots::agent::Agents;
use tower_robots::rules::{Access, Fallback, RequestPath};

use super::pace_counts::LoggedDelay;
use crate::evaluator::Evaluator;

/// The agents of a header, and whether any group of the file applies to one of them.
#[derive(Clone, Debug)]
pub(super) struct JudgedAgents {
    pub(super) agents: Agents,
    pub(super) is_judged: bool,
    /// The delay of the first agent's groups.
    pub(super) delay: Option<LoggedDelay>,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// No rule applies, or the rules allow it.
    Allowed,
    /// Disallowed, by the rule in this line where a rule decides.
    Disallowed(Option<usize>),
}

impl JudgedAgents {
    pub(super) fn identify(evaluator: &Evaluator, field: &[u8]) -> Self {
        let agents = evaluator.agents(field);
        let is_judged = agents.iter().any(|agent| evaluator.has_group_for(agent));
        let agent = agents.first();
        let fallback = if evaluator.holds_to_star(agent) { Fallback::Star } else { Fallback::Nothing };
        let delay = evaluator.rules().select(agent.tokens(), fallback).crawl_delay();
        let burst = evaluator.rate_burst();
        let delay = delay.map(|delay| LoggedDelay { interval: delay.interval(), line: delay.line(), burst });
        Self { agents, is_judged, delay }
    }

    pub(super) fn judge(&self, evaluator: &Evaluator, method: &str, path: &RequestPath<'_>) -> Judgement {
        if !self.is_judged {
            return Judgement::Allowed;
        }
        match evaluator.decide(&self.agents, method, path).verdict() {
            Some(verdict) if verdict.access() == Access::Disallow => Judgement::Disallowed(verdict.line()),
            _ => Judgement::Allowed,
        }
    }
}

impl Judgement {
    pub(super) const fn is_disallowed(self) -> bool {
        matches!(self, Self::Disallowed(_))
    }
}
