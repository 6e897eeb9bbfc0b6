//! The decision on a request, its reason, and the handling of impostors.

use std::time::{Duration, SystemTime};

use super::human_evidence::HumanSigns;
use super::overrides::Mode;
use super::rate::{RateLimit, RateMode};
use crate::agent::{Agent, Identity};
use crate::keyword_enum;
use crate::keywords;
use crate::rules::Verdict;

/// The decision on a request. It borrows the rules, so it is cheap to create.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Decision<'r> {
    /// Action to take.
    pub action: Action,
    /// Reason for the action.
    pub reason: Reason,
    /// Verdict of the rules; `None` if the path was not compared with the rules.
    pub verdict: Option<Verdict<'r>>,
    /// Index of the agent that the decision is about, among the agents given to
    /// [`Policy::decide`](super::Policy::decide).
    pub agent: usize,
    /// Signs that a person made the request. [`Policy::weigh`](super::Policy::weigh) finds these
    /// signs.
    pub signs: HumanSigns,
    /// Crawl delay that the policy enforces, from the groups that allow the request. If the request
    /// has several agents, this is the strictest delay of all agents, even if the decision is about
    /// another agent. `None` if the request is refused or no delay applies.
    pub rate_limit: Option<RateLimit<'r>>,
    /// Time until the crawler's next request would pass; zero unless this request arrived too soon
    /// for its crawl delay.
    pub wait: Duration,
    /// Latest possible end of the grace period; `None` if no grace period applies. During the grace
    /// period, the new rule or delay never causes a tag or a refusal, whatever the mode, because
    /// earlier versions of the file allowed the request or did not limit its rate.
    /// [`Decision::would`] returns the action under [`Mode::Refuse`] after the grace period.
    pub grace_end: Option<SystemTime>,
    /// Action under [`Mode::Refuse`]; if `None`, it is the same as `action`.
    pub(super) would: Option<UnderRefuse>,
}

/// How a server handles a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
pub enum Action {
    /// The request is forwarded unchanged.
    Pass,
    /// The request is forwarded with a tag.
    Tag,
    /// The request is refused. If the reason is [`Reason::Limited`], the response has status 429.
    Refuse,
}

keyword_enum! {
    /// The action for a request under [`Mode::Refuse`] after all grace periods. It does not depend
    /// on the site's mode. Later variants are stricter.
    #[derive(PartialOrd, Ord)]
    UnderRefuse, "an action for disallowed requests", {
        /// The request would pass unchanged, because the rules allow it, because it is exempt, or
        /// because an override lets it pass.
        Pass = "pass",
        /// The request would be tagged, like disallowed requests of search engines.
        Tag = "tag",
        /// The request would be refused with status 429, because it arrived too soon for its crawl
        /// delay.
        Limit = "limit",
        /// The request would be refused.
        Refuse = "refuse",
    }
}

keyword_enum! {
    /// The reason for a decision; later variants are stricter.
    #[derive(PartialOrd, Ord)]
    Reason, "a reason of a decision", {
        /// The site's robots.txt is not known yet.
        NothingKnown = "nothing-known",
        /// The kill switch has turned enforcement off, so the rules are not applied.
        KillSwitch = "kill-switch",
        /// The path, the agent, the client's address or a cookie of the request is exempt, or the
        /// application has exempted the request.
        Exempt = "exempt",
        /// No group applies to this agent.
        NoGroup = "no-group",
        /// The rules allow the request.
        Allowed = "allowed",
        /// The rules allow the request, but it arrived too soon for its crawl delay. It passes,
        /// because the rate mode or the site's mode does not refuse such requests.
        LimitObserved = "limit-observed",
        /// The rules disallow the request, and the mode is [`Mode::Off`].
        Off = "off",
        /// The rules disallow the request. It shows signs of a human sender, and the policy exempts
        /// requests with such signs.
        SuspectHuman = "suspect-human",
        /// The rules disallow the request, and the mode is [`Mode::Observe`].
        Observed = "observed",
        /// The rules disallow the request, but only since a recent version of the file. The request
        /// is only observed until the end of its grace period.
        Grace = "grace",
        /// The rules disallow the request, and the mode is [`Mode::Refuse`]. The request is only
        /// tagged, because its agent feeds the index of a search engine and no override applies.
        SearchEngine = "search-engine",
        /// The rules allow the request, but it arrived too soon for its crawl delay. It is refused
        /// with status 429.
        Limited = "limited",
        /// The rules disallow the request.
        Disallowed = "disallowed",
        /// The request falsely claims to be from a crawler, and the policy tags or refuses
        /// impostors. Under [`Mode::Observe`], the request passes.
        Impostor = "impostor",
    }
}

keywords!(Action, "an action", {
    Pass = "pass",
    Tag = "tag",
    Refuse = "refuse",
});

impl Mode {
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
    /// Reports whether observers (`RobotsLayer::on_disallowed`) are notified of decisions with this
    /// reason.
    pub const fn is_reported(self) -> bool {
        !matches!(
            self,
            Self::NothingKnown | Self::KillSwitch | Self::Exempt | Self::NoGroup | Self::Allowed | Self::Off
        )
    }
}

impl<'r> Decision<'r> {
    /// Returns the action for the request under [`Mode::Refuse`], with the same overrides and
    /// exemptions. Ignores grace periods, because they are temporary (see [`Decision::grace_end`]).
    pub fn would(&self) -> UnderRefuse {
        self.would.unwrap_or(if self.reason == Reason::Limited {
            UnderRefuse::Limit
        } else {
            UnderRefuse::of(self.action)
        })
    }

    /// Stores the action, the grace period and the rate limit of `refusing` in this decision.
    /// `refusing` is the decision on the same request under [`Mode::Refuse`].
    pub(super) fn with_refusing(self, refusing: &Self) -> Self {
        let rate_limit = self
            .rate_limit
            .map(|rate_limit| refusing.rate_limit.map_or(rate_limit, |refusing| rate_limit.with_refusing(refusing)));
        Self { would: Some(refusing.would()), grace_end: refusing.grace_end, rate_limit, ..self }
    }

    /// Creates the decision on a request that passes because of a grace period. The grace period
    /// ends at `end`. `would` is the action after that time.
    pub(super) fn in_grace(end: SystemTime, would: Action, verdict: Verdict<'r>) -> Self {
        let decision = Self::judged(Action::Pass, Reason::Grace, verdict);
        Self { grace_end: Some(end), would: Some(UnderRefuse::of(would)), ..decision }
    }

    /// Changes the decision for a request that arrived too soon for its crawl delay. `wait` is the
    /// time until the crawler's next request would pass.
    #[doc(hidden)]
    pub fn too_soon(self, wait: Duration) -> Self {
        let Some(rate_limit) = self.rate_limit else { return self };
        let is_limited = rate_limit.refusing == RateMode::Refuse;
        let would = if is_limited { Some(self.would().max(UnderRefuse::Limit)) } else { self.would };
        let limited = |action, reason| {
            let (agent, verdict) = (rate_limit.agent, Some(rate_limit.verdict));
            Self { action, reason, agent, verdict, wait, would, ..self }
        };
        match self.reason {
            _ if rate_limit.mode == RateMode::Refuse => limited(Action::Refuse, Reason::Limited),
            Reason::Allowed | Reason::Off => limited(self.action, Reason::LimitObserved),
            _ => Self { would, ..self },
        }
    }

    /// Changes the action to the action of the mode `handling`, and the reason to
    /// [`Reason::Impostor`]. The decision on a disallowed request stays unchanged if it is already
    /// at least as strict as `handling`. `handling` is `None` if the request is not from an
    /// impostor, or if impostors are only observed.
    pub(super) fn of_impostor(self, handling: Option<Mode>) -> Self {
        let Some(mode) = handling.filter(|mode| *mode > Mode::Off) else { return self };
        let is_allowed = matches!(self.reason, Reason::Allowed | Reason::NoGroup);
        if mode.action() <= self.action && !is_allowed {
            return self;
        }
        let would = self.would.map(|would| would.max(UnderRefuse::of(mode.action())));
        Self { action: mode.action(), reason: Reason::Impostor, would, ..self }.with_rate_limit(self.rate_limit)
    }

    /// Sets the rate limit, unless the request is refused: a refused request must not count against
    /// the crawl delay of its sender.
    pub(super) fn with_rate_limit(self, rate_limit: Option<RateLimit<'r>>) -> Self {
        Self { rate_limit: rate_limit.filter(|_| self.action != Action::Refuse), ..self }
    }

    pub(super) const fn passed(self, reason: Reason) -> Self {
        Self { action: Action::Pass, reason, would: None, grace_end: None, ..self }
    }

    #[doc(hidden)]
    pub const fn unjudged(reason: Reason) -> Self {
        let (rate_limit, wait) = (None, Duration::ZERO);
        let (signs, grace_end) = (HumanSigns::NONE, None);
        Self { action: Action::Pass, reason, verdict: None, agent: 0, signs, rate_limit, wait, grace_end, would: None }
    }

    pub(super) const fn judged(action: Action, reason: Reason, verdict: Verdict<'r>) -> Self {
        Self { action, verdict: Some(verdict), ..Self::unjudged(reason) }
    }

    pub(super) fn for_agent(self, agent: usize) -> Self {
        Self { agent, rate_limit: self.rate_limit.map(|rate_limit| RateLimit { agent, ..rate_limit }), ..self }
    }

    pub(super) fn stricter(self, other: Self) -> Self {
        let rate_limit = match (self.rate_limit, other.rate_limit) {
            (Some(one), Some(other)) => Some(one.stricter(other)),
            (one, other) => one.or(other),
        };
        let rank = |of: &Self| (of.action, of.reason);
        // `self` and `other` are the decisions for two agents of the same request. After the grace
        // period, the stricter of their actions applies, even if only one of the two decisions has
        // a grace period.
        let would = self.grace_end.or(other.grace_end).map(|_| self.would().max(other.would()));
        let strictest = if rank(&other) > rank(&self) { other } else { self };
        let grace_end = self.grace_end.or(other.grace_end);
        // The result has the strictest rate limit, so that a client cannot avoid the limit of one
        // agent by also naming another agent.
        Self { would: would.or(strictest.would), grace_end, ..strictest }.with_rate_limit(rate_limit)
    }
}

keyword_enum! {
    /// The action for an impostor's request. An impostor claims to be a crawler, but the
    /// [`Identity`] of the request is refuted.
    ///
    /// Under every variant, the rules apply to an impostor as to a real crawler. An impostor does
    /// not get the privileges of the crawler's name: exemptions for agents, overrides that are
    /// milder than the mode, and, for search engines, a tag instead of a refusal.
    ///
    /// The [`Mode`] limits the action: under [`Mode::Tag`] an impostor is at most tagged, and under
    /// [`Mode::Observe`] it passes and is recorded.
    #[derive(Default)]
    Impostors, "a way to treat impostors", {
        /// The request only loses the privileges of the crawler's name. The default.
        #[default]
        Observe = "observe",
        /// Even if the rules allow the request, it is at least tagged if the mode is `Tag` or
        /// `Refuse`.
        Tag = "tag",
        /// Even if the rules allow the request, it is refused if the mode is `Refuse`.
        Refuse = "refuse",
    }
}

keyword_enum! {
    /// How well the claim to be a crawler must be verified before the request gets the crawler's
    /// privileges: exemptions for the crawler, and overrides that are milder than the mode.
    #[derive(Default)]
    IdentityNeeded, "an identity requirement", {
        /// A claim that is not refuted. The default. If there is no evidence, no claim is refuted,
        /// so every claim suffices.
        #[default]
        Claimed = "claimed",
        /// A claim that is verified or undecided. Crawlers whose operators publish no verification
        /// method get no privileges.
        Undecided = "undecided",
        /// A claim that is verified.
        Verified = "verified",
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IdentityRules {
    pub(super) impostors: Impostors,
    pub(super) needed: IdentityNeeded,
}

impl IdentityRules {
    pub(super) const fn believe(self, identity: Identity) -> bool {
        match (identity, self.needed) {
            (Identity::Verified(_), _) | (Identity::Undecided(_), IdentityNeeded::Undecided) => true,
            (Identity::Refuted(_), _) => false,
            (_, needed) => matches!(needed, IdentityNeeded::Claimed),
        }
    }

    /// Returns the strictest mode for an impostor's request: the site's mode may be milder. `None`
    /// if the request is not from an impostor, or if impostors are only observed. A request that
    /// names no crawler is not treated as a request from an impostor, even if its signature is
    /// invalid, because a person may have made the request.
    pub(super) fn handling(self, agent: &Agent, identity: Identity) -> Option<Mode> {
        let mode = match self.impostors {
            Impostors::Observe => None,
            Impostors::Tag => Some(Mode::Tag),
            Impostors::Refuse => Some(Mode::Refuse),
        };
        mode.filter(|_| matches!(identity, Identity::Refuted(_)) && agent.class().is_crawler())
    }
}
