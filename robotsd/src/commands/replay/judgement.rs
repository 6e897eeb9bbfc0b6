//! What a robots.txt would have done to a request, under the policy that is enforced.

use tower_robots::agent::Agents;
use tower_robots::policy::Decision;
use tower_robots::rules::{Access, RequestPath};

use crate::evaluator::{Evaluator, KnownSender};

/// The agents of a header, and whether any group of the file applies to one of them.
#[derive(Clone, Debug)]
pub(super) struct JudgedAgents {
    pub(super) agents: Agents,
    pub(super) is_judged: bool,
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
        Self { agents, is_judged }
    }

    /// The decision of the policy; `None` where no group applies.
    pub(super) fn decide<'e>(
        &self,
        evaluator: &'e Evaluator,
        sender: KnownSender,
        method: &str,
        path: &RequestPath<'_>,
    ) -> Option<Decision<'e>> {
        self.is_judged.then(|| evaluator.decide_for_sender(&self.agents, sender, method, path))
    }
}

impl Judgement {
    pub(super) fn of(decision: Option<&Decision<'_>>) -> Self {
        match decision.and_then(Decision::verdict) {
            Some(verdict) if verdict.access() == Access::Disallow => Self::Disallowed(verdict.line()),
            _ => Self::Allowed,
        }
    }

    pub(super) const fn is_disallowed(self) -> bool {
        matches!(self, Self::Disallowed(_))
    }
}
