//! The decision about a request, and its reason.

use std::time::Duration;

use super::human_evidence::HumanSigns;
use super::rate::Pace;
#[cfg(feature = "layer")]
use super::rate::RateMode;
use crate::rules::Verdict;

/// The decision about a request, with its verdict and reason. It borrows the rules, so it costs nothing to make.
#[derive(Clone, Copy, Debug)]
pub struct Decision<'r> {
    action: Action,
    reason: Reason,
    verdict: Option<Verdict<'r>>,
    agent: usize,
    signs: HumanSigns,
    pace: Option<Pace<'r>>,
    /// How long to wait; zero for a request that did not come too soon.
    wait: Duration,
}

/// The action a decision takes.
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

/// The reason of a decision; the later ones are the stricter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Reason {
    /// Nothing is known of the site's robots.txt yet.
    NothingKnown,
    /// The kill switch has turned enforcement off: nothing is judged.
    KillSwitch,
    /// The path, the agent, the client's address or one of its cookies is exempt.
    Exempt,
    /// No group is for this agent.
    NoGroup,
    /// The rules allow it.
    Allowed,
    /// The rules allow it, it comes sooner than their delay, and the mode only observes.
    LimitObserved,
    /// The rules disallow it; enforcement is off.
    Off,
    /// The rules disallow it; there are signs of a person, and the policy exempts those.
    SuspectHuman,
    /// The rules disallow it, and the mode only observes.
    Observed,
    /// The rules disallow it, but not for long enough yet; it is only observed.
    Grace,
    /// The rules disallow it, and the mode refuses; it is tagged only, because it names a crawler that feeds the index of a
    /// search engine, and no override is for it.
    SearchEngine,
    /// The rules allow it, and it comes sooner than their delay.
    Limited,
    /// The rules disallow it.
    Disallowed,
    /// It claims to be a crawler that it is not, and the policy tags or refuses impostors.
    Impostor,
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
    /// Whether the observers of disallowed requests ([`RobotsLayer::observe`](crate::layer::RobotsLayer::observe)) are
    /// notified of a decision for this reason.
    #[cfg(feature = "layer")]
    #[cfg_attr(docsrs, doc(cfg(feature = "layer")))]
    #[must_use]
    pub const fn is_reported(self) -> bool {
        matches!(
            self,
            Self::Disallowed
                | Self::SearchEngine
                | Self::Grace
                | Self::Observed
                | Self::SuspectHuman
                | Self::Impostor
                | Self::Limited
                | Self::LimitObserved
        )
    }

    /// The reason's name in kebab-case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NothingKnown => "nothing-known",
            Self::KillSwitch => "kill-switch",
            Self::Exempt => "exempt",
            Self::NoGroup => "no-group",
            Self::Allowed => "allowed",
            Self::LimitObserved => "limit-observed",
            Self::Off => "off",
            Self::SuspectHuman => "suspect-human",
            Self::Observed => "observed",
            Self::Grace => "grace",
            Self::SearchEngine => "search-engine",
            Self::Limited => "limited",
            Self::Disallowed => "disallowed",
            Self::Impostor => "impostor",
        }
    }
}

impl<'r> Decision<'r> {
    /// The action it takes.
    #[must_use]
    pub const fn action(&self) -> Action {
        self.action
    }

    /// The reason for it.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        self.reason
    }

    /// The verdict of the rules, where the path was judged.
    #[must_use]
    pub const fn verdict(&self) -> Option<Verdict<'r>> {
        self.verdict
    }

    /// Which of the agents it is about, as an index into those given to [`Policy::decide`](super::Policy::decide).
    #[must_use]
    pub const fn agent(&self) -> usize {
        self.agent
    }

    /// The signs that a person is behind a disallowed request, as [`Policy::weigh`](super::Policy::weigh) found them.
    #[must_use]
    pub const fn signs(&self) -> HumanSigns {
        self.signs
    }

    /// The delay that the request is held to, where the policy limits: that of the groups that allow it. Of several agents the
    /// strictest one, even where another agent is disallowed. A request that is refused has none.
    #[must_use]
    pub const fn pace(&self) -> Option<Pace<'r>> {
        self.pace
    }

    /// How long to wait before the next request; zero unless this one came too soon.
    #[must_use]
    pub const fn wait(&self) -> Duration {
        self.wait
    }

    /// The same for a request that came too soon, by so much.
    #[cfg(feature = "layer")]
    pub(crate) fn too_soon(self, wait: Duration) -> Self {
        let limited = |pace: Pace<'r>, action, reason| {
            let (agent, verdict) = (pace.agent(), Some(pace.verdict()));
            Self { action, reason, agent, verdict, wait, ..self }
        };
        match self.pace {
            Some(pace) if pace.mode() == RateMode::Refuse => limited(pace, Action::Refuse, Reason::Limited),
            // An impostor stays one, and so does what is observed for another reason.
            Some(pace) if matches!(self.reason, Reason::Allowed | Reason::Off) => {
                limited(pace, self.action, Reason::LimitObserved)
            }
            _ => self,
        }
    }

    /// Whether the rules disallow the request and the mode is not off, or the policy tags or refuses an impostor: observers are
    /// notified of it.
    #[cfg(feature = "layer")]
    pub(crate) const fn is_reported(&self) -> bool {
        self.reason.is_reported()
    }

    /// The same for an impostor, about whom at least this is done.
    pub(super) fn at_least(self, action: Action) -> Self {
        let decision = if action > self.action { Self { action, reason: Reason::Impostor, ..self } } else { self };
        decision.with_pace(self.pace)
    }

    pub(super) const fn with_signs(self, signs: HumanSigns) -> Self {
        Self { signs, ..self }
    }

    /// What is refused is not held to a delay: it takes nothing from what the sender may fetch.
    pub(super) fn with_pace(self, pace: Option<Pace<'r>>) -> Self {
        Self { pace: pace.filter(|_| self.action != Action::Refuse), ..self }
    }

    pub(super) const fn passed(self, reason: Reason) -> Self {
        Self { action: Action::Pass, reason, ..self }
    }

    pub(crate) const fn unjudged(reason: Reason) -> Self {
        let (pace, wait) = (None, Duration::ZERO);
        Self { action: Action::Pass, reason, verdict: None, agent: 0, signs: HumanSigns::NONE, pace, wait }
    }

    pub(super) const fn judged(action: Action, reason: Reason, verdict: Verdict<'r>) -> Self {
        let (pace, wait) = (None, Duration::ZERO);
        Self { action, reason, verdict: Some(verdict), agent: 0, signs: HumanSigns::NONE, pace, wait }
    }

    pub(super) fn for_agent(self, agent: usize) -> Self {
        Self { agent, pace: self.pace.map(|pace| pace.for_agent(agent)), ..self }
    }

    pub(super) fn stricter(self, other: Self) -> Self {
        let pace = match (self.pace, other.pace) {
            (Some(one), Some(other)) => Some(one.stricter(other)),
            (one, other) => one.or(other),
        };
        let rank = |of: &Self| (of.action, of.reason);
        // A further name must not switch limiting off, whatever becomes of it.
        (if rank(&other) > rank(&self) { other } else { self }).with_pace(pace)
    }
}
