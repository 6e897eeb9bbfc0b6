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
    /// It passed because of an exemption or an override.
    Exempt,
}

impl RequestOutcome {
    pub(crate) const ALL: [Self; 6] =
        [Self::Untouched, Self::Allowed, Self::Observed, Self::Tagged, Self::Refused, Self::Exempt];

    pub(crate) const fn of(action: Action, reason: Reason) -> Self {
        match (action, reason) {
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
