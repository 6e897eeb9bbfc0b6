//! What the layer did about a request, in one word: for metrics, the log, the status and the board.

use tower_robots::policy::{Action, Reason};

/// What the layer did about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum RequestOutcome {
    /// No group is for its agent, or nothing is enforced.
    Untouched,
    Allowed,
    /// Disallowed, and passed because the mode only observes or the grace has not ended.
    Observed,
    Tagged,
    Refused,
    /// Allowed, sooner than the delay lets it, and answered with 429.
    Limited,
    /// Allowed, sooner than the delay lets it, and passed because the mode of limiting only observes.
    LimitObserved,
    /// It passed because of an exemption or an override.
    Exempt,
}

impl RequestOutcome {
    pub(crate) const ALL: [Self; 8] = [
        Self::Untouched,
        Self::Allowed,
        Self::Observed,
        Self::Tagged,
        Self::Refused,
        Self::Limited,
        Self::LimitObserved,
        Self::Exempt,
    ];

    pub(crate) const fn of(action: Action, reason: Reason) -> Self {
        match (action, reason) {
            (_, Reason::Limited) => Self::Limited,
            (_, Reason::LimitObserved) => Self::LimitObserved,
            (Action::Refuse, _) => Self::Refused,
            (Action::Tag, _) => Self::Tagged,
            (_, Reason::Observed | Reason::Grace) => Self::Observed,
            (_, Reason::Allowed) => Self::Allowed,
            (_, Reason::NoGroup | Reason::NothingKnown | Reason::KillSwitch) => Self::Untouched,
            _ => Self::Exempt,
        }
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Untouched => "untouched",
            Self::Allowed => "allowed",
            Self::Observed => "observed",
            Self::Tagged => "tagged",
            Self::Refused => "refused",
            Self::Limited => "limited",
            Self::LimitObserved => "limit-observed",
            Self::Exempt => "exempt",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_action_comes_before_the_reason() {
        for (action, reason, want) in [
            (Action::Refuse, Reason::Disallowed, RequestOutcome::Refused),
            (Action::Refuse, Reason::Impostor, RequestOutcome::Refused),
            (Action::Refuse, Reason::Limited, RequestOutcome::Limited),
            (Action::Pass, Reason::LimitObserved, RequestOutcome::LimitObserved),
            (Action::Tag, Reason::SearchEngine, RequestOutcome::Tagged),
            (Action::Pass, Reason::Observed, RequestOutcome::Observed),
            (Action::Pass, Reason::Grace, RequestOutcome::Observed),
            (Action::Pass, Reason::Allowed, RequestOutcome::Allowed),
            (Action::Pass, Reason::NoGroup, RequestOutcome::Untouched),
            (Action::Pass, Reason::Exempt, RequestOutcome::Exempt),
            (Action::Pass, Reason::SuspectHuman, RequestOutcome::Exempt),
        ] {
            assert_eq!(RequestOutcome::of(action, reason), want, "{action:?} {reason:?}");
        }
    }
}
