//! What is done about a request, and why.

use super::evidence::HumanSigns;
use crate::rules::Verdict;

/// What is done about a request; it carries the verdict and the reason.
#[derive(Clone, Copy, Debug)]
pub struct Decision<'r> {
    action: Action,
    reason: Reason,
    verdict: Option<Verdict<'r>>,
    agent: usize,
    signs: HumanSigns,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Action {
    /// The request goes on unchanged.
    Pass,
    /// It goes on with a mark.
    Tag,
    /// It is answered with a refusal.
    Refuse,
}

/// Why it is done; the later ones are the stricter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Reason {
    /// Nothing is known of the site's robots.txt yet.
    NothingKnown,
    /// The kill switch is off: nothing is judged.
    KillSwitch,
    /// The path, the agent, the client's address or one of its cookies is exempt.
    Exempt,
    /// No group is for this agent.
    NoGroup,
    /// The rules allow it.
    Allowed,
    /// The rules disallow it; enforcement is off.
    Off,
    /// The rules disallow it; a person seems to be behind it, and that is exempt.
    SuspectHuman,
    /// The rules disallow it; it is only observed.
    Observed,
    /// The rules disallow it, but have not for long enough; it is only observed.
    Grace,
    /// The rules disallow it.
    Disallowed,
}

impl Action {
    /// The action's name in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Tag => "tag",
            Self::Refuse => "refuse",
        }
    }
}

impl Reason {
    /// The reason's name in kebab-case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NothingKnown => "nothing-known",
            Self::KillSwitch => "kill-switch",
            Self::Exempt => "exempt",
            Self::NoGroup => "no-group",
            Self::Allowed => "allowed",
            Self::Off => "off",
            Self::SuspectHuman => "suspect-human",
            Self::Observed => "observed",
            Self::Grace => "grace",
            Self::Disallowed => "disallowed",
        }
    }
}

impl<'r> Decision<'r> {
    /// What is done.
    #[must_use]
    pub const fn action(&self) -> Action {
        self.action
    }

    /// Why.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        self.reason
    }

    /// What the rules say, where they were asked.
    #[must_use]
    pub const fn verdict(&self) -> Option<Verdict<'r>> {
        self.verdict
    }

    /// Which of the agents it is about, as an index into those given to [`Policy::decide`](super::Policy::decide).
    #[must_use]
    pub const fn agent(&self) -> usize {
        self.agent
    }

    /// What suggests that a person is behind a disallowed request, once [`Policy::weigh`](super::Policy::weigh) has
    /// been asked.
    #[must_use]
    pub const fn signs(&self) -> HumanSigns {
        self.signs
    }

    /// Whether the rules disallow the request and the mode is not off: observers are notified of it.
    #[cfg(feature = "layer")]
    pub(crate) const fn is_reported(&self) -> bool {
        matches!(self.reason, Reason::Disallowed | Reason::Grace | Reason::Observed | Reason::SuspectHuman)
    }

    pub(super) const fn with_signs(self, signs: HumanSigns) -> Self {
        Self { signs, ..self }
    }

    pub(super) const fn passed(self, reason: Reason) -> Self {
        Self { action: Action::Pass, reason, ..self }
    }

    pub(crate) const fn unjudged(reason: Reason) -> Self {
        Self { action: Action::Pass, reason, verdict: None, agent: 0, signs: HumanSigns::NONE }
    }

    pub(super) const fn judged(action: Action, reason: Reason, verdict: Verdict<'r>) -> Self {
        Self { action, reason, verdict: Some(verdict), agent: 0, signs: HumanSigns::NONE }
    }

    pub(super) const fn for_agent(self, agent: usize) -> Self {
        Self { agent, ..self }
    }

    pub(super) fn stricter(self, other: Self) -> Self {
        if (other.action, other.reason) > (self.action, self.reason) { other } else { self }
    }
}
