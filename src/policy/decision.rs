//! What is done about a request, and why.

use std::fmt;
use std::net::IpAddr;
use std::time::SystemTime;

use super::evidence::Signs;
use crate::rules::{RequestPath, Verdict};

/// What a policy has to know of a request besides who sent it.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    method: &'a str,
    path: &'a RequestPath<'a>,
    address: Option<IpAddr>,
    clock: Option<&'a (dyn Fn() -> SystemTime + 'a)>,
}

impl<'a> Facts<'a> {
    /// A request with this method for this path, which [`Policy::path`](super::Policy::path) makes of a target.
    #[must_use]
    pub const fn new(method: &'a str, path: &'a RequestPath<'a>) -> Self {
        Self { method, path, address: None, clock: None }
    }

    /// Adds the address of the client, where it is known.
    #[must_use]
    pub const fn with_address(self, address: Option<IpAddr>) -> Self {
        Self { address, ..self }
    }

    /// Adds a clock, for what ends: it is asked only about disallowed requests, and only where something does end.
    #[must_use]
    pub const fn with_clock(self, clock: &'a (dyn Fn() -> SystemTime + 'a)) -> Self {
        Self { clock: Some(clock), ..self }
    }

    /// The method.
    #[must_use]
    pub const fn method(&self) -> &'a str {
        self.method
    }

    /// The client's address.
    #[must_use]
    pub const fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// The path and query.
    #[must_use]
    pub const fn path(&self) -> &'a RequestPath<'a> {
        self.path
    }

    /// The time, where there is a clock.
    pub(super) fn now(&self) -> Option<SystemTime> {
        self.clock.map(|clock| clock())
    }
}

impl fmt::Debug for Facts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Facts")
            .field("method", &self.method)
            .field("path", &self.path)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// What is done about a request; it carries the verdict and the reason.
#[derive(Clone, Copy, Debug)]
pub struct Decision<'r> {
    action: Action,
    reason: Reason,
    verdict: Option<Verdict<'r>>,
    agent: usize,
    signs: Signs,
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
    pub const fn signs(&self) -> Signs {
        self.signs
    }

    pub(super) const fn with_signs(self, signs: Signs) -> Self {
        Self { signs, ..self }
    }

    pub(super) const fn passed(self, reason: Reason) -> Self {
        Self { action: Action::Pass, reason, ..self }
    }

    pub(crate) const fn unjudged(reason: Reason) -> Self {
        Self { action: Action::Pass, reason, verdict: None, agent: 0, signs: Signs::NONE }
    }

    pub(super) const fn judged(action: Action, reason: Reason, verdict: Verdict<'r>) -> Self {
        Self { action, reason, verdict: Some(verdict), agent: 0, signs: Signs::NONE }
    }

    pub(super) const fn for_agent(self, agent: usize) -> Self {
        Self { agent, ..self }
    }

    pub(super) fn stricter(self, other: Self) -> Self {
        if (other.action, other.reason) > (self.action, self.reason) { other } else { self }
    }
}
