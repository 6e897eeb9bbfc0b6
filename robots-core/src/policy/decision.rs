//! The decision about a request, its reason, and the action for requests whose claim is refuted.

use std::time::{Duration, SystemTime};

use super::human_evidence::HumanSigns;
use super::overrides::Mode;
use super::rate::{Pace, RateMode};
use crate::agent::{Agent, Identity};
use crate::keyword_enum;
use crate::keywords;
use crate::rules::Verdict;

/// The decision about a request, with its verdict and reason. It borrows the rules, so it costs nothing to make.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Decision<'r> {
    /// The action it takes.
    pub action: Action,
    /// The reason for it.
    pub reason: Reason,
    /// The verdict of the rules, where the path was judged.
    pub verdict: Option<Verdict<'r>>,
    /// Which of the agents it is about, as an index into those given to [`Policy::decide`](super::Policy::decide).
    pub agent: usize,
    /// The signs that a person is behind a disallowed request, as [`Policy::weigh`](super::Policy::weigh) found them.
    pub signs: HumanSigns,
    /// The delay that applies to the request, if the policy limits: that of the groups that allow it. Of several agents the
    /// strictest one, even where another agent is disallowed. A request that is refused has none.
    pub pace: Option<Pace<'r>>,
    /// How long to wait; zero for a request that did not come too soon.
    pub wait: Duration,
    /// Until when, at the latest, the request is only observed whatever the mode, because the file did not disallow it, or did not
    /// limit it, before; `None` where no grace holds. [`Decision::would`] says what comes then.
    pub grace_end: Option<SystemTime>,
    /// Set if it differs from what the decision does.
    pub(super) would: Option<UnderRefuse>,
}

/// The action a decision takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
pub enum Action {
    /// The request goes on unchanged.
    Pass,
    /// It goes on with a mark.
    Tag,
    /// It is answered with a refusal; where the reason is [`Reason::Limited`], with 429.
    Refuse,
}

keyword_enum! {
    /// The action that the mode [`Mode::Refuse`] would take about a request once no grace holds any more, whatever the mode of the
    /// site is; the later ones are stricter.
    #[derive(PartialOrd, Ord)]
    UnderRefuse, "an action of the mode that refuses", {
        /// It would pass unchanged: it is allowed or exempt, or an override says so.
        Pass = "pass",
        /// It would be tagged, as that of a search engine is.
        Tag = "tag",
        /// It would be answered with 429, because it comes too soon.
        Limit = "limit",
        /// It would be answered with a refusal.
        Refuse = "refuse",
    }
}

keyword_enum! {
    /// The reason of a decision; the later ones are the stricter.
    #[derive(PartialOrd, Ord)]
    Reason, "a reason of a decision", {
        /// Nothing is known of the site's robots.txt yet.
        NothingKnown = "nothing-known",
        /// The kill switch has turned enforcement off: nothing is judged.
        KillSwitch = "kill-switch",
        /// The path, the agent, the client's address or one of its cookies is exempt, or the application exempts the request.
        Exempt = "exempt",
        /// No group is for this agent.
        NoGroup = "no-group",
        /// The rules allow it.
        Allowed = "allowed",
        /// The rules allow it, it comes sooner than their delay, and the mode of limiting or the mode of the site only observes.
        LimitObserved = "limit-observed",
        /// The rules disallow it, and the mode is [`Mode::Off`].
        Off = "off",
        /// The rules disallow it; there are signs of a person, and the policy exempts those.
        SuspectHuman = "suspect-human",
        /// The rules disallow it, and the mode only observes.
        Observed = "observed",
        /// The rules disallow it, but not for long enough yet; it is only observed.
        Grace = "grace",
        /// The rules disallow it, and the mode refuses; it is tagged only, because it names a crawler that feeds the index of a
        /// search engine, and no override is for it.
        SearchEngine = "search-engine",
        /// The rules allow it, and it comes sooner than their delay.
        Limited = "limited",
        /// The rules disallow it.
        Disallowed = "disallowed",
        /// It claims to be a crawler that it is not, and the policy tags or refuses impostors. If the mode only observes, it passes.
        Impostor = "impostor",
    }
}

keywords!(Action, "an action", {
    Pass = "pass",
    Tag = "tag",
    Refuse = "refuse",
});

impl Mode {
    /// The action under this mode.
    pub(super) const fn action(self) -> Action {
        match self {
            Self::Off | Self::Observe => Action::Pass,
            Self::Tag => Action::Tag,
            Self::Refuse => Action::Refuse,
        }
    }
}

impl UnderRefuse {
    const fn of(action: Action) -> Self {
        match action {
            Action::Pass => Self::Pass,
            Action::Tag => Self::Tag,
            Action::Refuse => Self::Refuse,
        }
    }
}

impl Reason {
    /// Whether the observers of disallowed requests (`RobotsLayer::on_disallowed`) are
    /// notified of a decision for this reason.
    pub const fn is_reported(self) -> bool {
        !matches!(
            self,
            Self::NothingKnown | Self::KillSwitch | Self::Exempt | Self::NoGroup | Self::Allowed | Self::Off
        )
    }
}

impl<'r> Decision<'r> {
    /// The action that the mode [`Mode::Refuse`] would take about the request, with the same overrides and exemptions. A grace does
    /// not count, because it ends: [`Decision::grace_end`].
    pub fn would(&self) -> UnderRefuse {
        self.would.unwrap_or(if self.reason == Reason::Limited {
            UnderRefuse::Limit
        } else {
            UnderRefuse::of(self.action)
        })
    }

    /// The same, where the other one is the decision under the mode [`Mode::Refuse`].
    pub(super) fn with_refusing(self, refusing: &Self) -> Self {
        let pace = self.pace.map(|pace| refusing.pace.map_or(pace, |refusing| pace.with_refusing(refusing)));
        Self { would: Some(refusing.would()), grace_end: refusing.grace_end, pace, ..self }
    }

    /// The decision about a request that is in grace until then: it passes, and this would be the action.
    pub(super) fn in_grace(end: SystemTime, would: Action, verdict: Verdict<'r>) -> Self {
        let decision = Self::judged(Action::Pass, Reason::Grace, verdict);
        Self { grace_end: Some(end), would: Some(UnderRefuse::of(would)), ..decision }
    }

    /// The same for a request that came too soon, by so much.
    #[doc(hidden)]
    pub fn too_soon(self, wait: Duration) -> Self {
        let Some(pace) = self.pace else { return self };
        let is_limited = pace.refusing == RateMode::Refuse;
        let would = if is_limited { Some(self.would().max(UnderRefuse::Limit)) } else { self.would };
        let limited = |action, reason| {
            let (agent, verdict) = (pace.agent, Some(pace.verdict));
            Self { action, reason, agent, verdict, wait, would, ..self }
        };
        match self.reason {
            _ if pace.mode == RateMode::Refuse => limited(Action::Refuse, Reason::Limited),
            Reason::Allowed | Reason::Off => limited(self.action, Reason::LimitObserved),
            // An impostor stays one, and so does what is observed for another reason.
            _ => Self { would, ..self },
        }
    }

    /// The same for an impostor that is handled so, if it is one.
    pub(super) fn of_impostor(self, handling: Option<Mode>) -> Self {
        let Some(mode) = handling.filter(|mode| *mode > Mode::Off) else { return self };
        let is_allowed = matches!(self.reason, Reason::Allowed | Reason::NoGroup);
        if mode.action() <= self.action && !is_allowed {
            return self;
        }
        let would = self.would.map(|would| would.max(UnderRefuse::of(mode.action())));
        Self { action: mode.action(), reason: Reason::Impostor, would, ..self }.with_pace(self.pace)
    }

    /// A refused request is not limited by a delay: it takes nothing from what the sender may fetch.
    pub(super) fn with_pace(self, pace: Option<Pace<'r>>) -> Self {
        Self { pace: pace.filter(|_| self.action != Action::Refuse), ..self }
    }

    pub(super) const fn passed(self, reason: Reason) -> Self {
        Self { action: Action::Pass, reason, would: None, grace_end: None, ..self }
    }

    #[doc(hidden)]
    pub const fn unjudged(reason: Reason) -> Self {
        let (pace, wait) = (None, Duration::ZERO);
        let (signs, grace_end) = (HumanSigns::NONE, None);
        Self { action: Action::Pass, reason, verdict: None, agent: 0, signs, pace, wait, grace_end, would: None }
    }

    pub(super) const fn judged(action: Action, reason: Reason, verdict: Verdict<'r>) -> Self {
        Self { action, verdict: Some(verdict), ..Self::unjudged(reason) }
    }

    pub(super) fn for_agent(self, agent: usize) -> Self {
        Self { agent, pace: self.pace.map(|pace| Pace { agent, ..pace }), ..self }
    }

    pub(super) fn stricter(self, other: Self) -> Self {
        let pace = match (self.pace, other.pace) {
            (Some(one), Some(other)) => Some(one.stricter(other)),
            (one, other) => one.or(other),
        };
        let rank = |of: &Self| (of.action, of.reason);
        // The agent in grace may be the one that is refused when it ends.
        let would = self.grace_end.or(other.grace_end).map(|_| self.would().max(other.would()));
        let strictest = if rank(&other) > rank(&self) { other } else { self };
        let grace_end = self.grace_end.or(other.grace_end);
        // A further name must not switch limiting off, whatever its outcome.
        Self { would: would.or(strictest.would), grace_end, ..strictest }.with_pace(pace)
    }
}

keyword_enum! {
    /// The action for an impostor: a request that claims to be a crawler, and whose [`Identity`] is refuted.
    ///
    /// Under every variant an impostor is judged by the file like any other crawler, without what is granted to the
    /// crawler's name: the default tag of search engines, overrides that are milder than the mode, and the exemption of
    /// agents.
    ///
    /// The [`Mode`] bounds it: where that is [`Mode::Tag`], an impostor is tagged at most, and under [`Mode::Observe`] it passes and is
    /// recorded.
    #[derive(Default)]
    Impostors, "a rule for impostors", {
        /// It passes where the file allows it. The default.
        #[default]
        Observe = "observe",
        /// It is tagged at least, whatever the file says, where the mode tags or refuses.
        Tag = "tag",
        /// It is refused, whatever the file says, where the mode refuses.
        Refuse = "refuse",
    }
}

keyword_enum! {
    /// The identity that is needed for what is granted to a crawler by its name: overrides that are milder than the mode, and
    /// the exemption of agents.
    #[derive(Default)]
    IdentityNeeded, "a need for an identity", {
        /// A claim that is not refuted. The default: without evidence nothing changes.
        #[default]
        Claimed = "claimed",
        /// A claim that is verified or undecided. Crawlers whose operator publishes no method get nothing.
        Undecided = "undecided",
        /// A claim that is verified.
        Verified = "verified",
    }
}

/// The part of a policy that is about identities.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IdentityRules {
    pub(super) impostors: Impostors,
    pub(super) needed: IdentityNeeded,
}

impl IdentityRules {
    /// Whether what is granted to the name of a crawler is granted to this request.
    pub(super) const fn believe(self, identity: Identity) -> bool {
        match (identity, self.needed) {
            (Identity::Verified(_), _) | (Identity::Undecided(_), IdentityNeeded::Undecided) => true,
            (Identity::Refuted(_), _) => false,
            (_, needed) => matches!(needed, IdentityNeeded::Claimed),
        }
    }

    /// How an agent's request is handled for its sender, whatever the file says, as far as the mode lets it; `None` where the file
    /// alone counts. A signature can be refuted without the name of a crawler; a browser that sends one may still be a person's.
    pub(super) fn handling(self, agent: &Agent, identity: Identity) -> Option<Mode> {
        let mode = match self.impostors {
            Impostors::Observe => None,
            Impostors::Tag => Some(Mode::Tag),
            Impostors::Refuse => Some(Mode::Refuse),
        };
        mode.filter(|_| matches!(identity, Identity::Refuted(_)) && agent.class().is_crawler())
    }
}
