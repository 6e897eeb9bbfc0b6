//! The state of a site: the live version, the last reload, and what is wrong.

use std::sync::Arc;
use std::time::SystemTime;

use robots_core::keyword_enum;

use super::{Enforcement, FetchStatus, Pending, Reload, ReloadOutcome, Trouble, TroubleKind, VersionHash};
use crate::check::Report;

/// The state of a site: the live version, the last reload, and what is wrong.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Status {
    /// The version that is live, if any is.
    pub live: Option<VersionHash>,
    /// What the check found in the version that is live; [`Report::summary`] is its errors and warnings in one line.
    pub report: Option<Arc<Report>>,
    /// The last reload.
    pub last_reload: Reload,
    /// Since when this version, or the lack of one, is live.
    pub since: SystemTime,
    /// The version that waits to be accepted, if one does, with the reasons.
    pub pending: Option<Pending>,
    /// The version that [`LiveRobots::rollback`](super::LiveRobots::rollback) would go back to, if there is one.
    pub before: Option<VersionHash>,
    /// Whether anything is enforced: off if the switch of the site or that of all sites is.
    pub enforcement: Enforcement,
    /// The site's own switch, whatever that of all sites says.
    pub switch: Enforcement,
    /// Until when some of what is disallowed is only observed; `None` where no grace runs.
    pub grace_end: Option<SystemTime>,
    /// How many requests passed because judging them ended in a panic of this crate, or of a callback that supplies
    /// the target, the address or the agent.
    pub faults: u64,
    /// How many times a callback panicked that runs once a request is decided, an observer or a refusal of the
    /// application's own. The decisions stood.
    pub callback_faults: u64,
    /// How many requests that a group applies to were judged by a target that is not the one the client sent: a
    /// `RobotsLayer::new` in a nested axum router gets targets without their prefix, so the rules for `/blog/drafts/` do not
    /// meet `/drafts/`. `RobotsLayer::for_axum08` is the layer for that place. 0 without the feature `axum08`, which knows.
    pub stripped_targets: u64,
    /// How many requests claimed to be a crawler's while the policy tags or refuses impostors, and nothing checks claims: the layer has
    /// neither a `Verifier` nor [`RobotsLayer::identity_from`](crate::layer::RobotsLayer::identity_from), so no impostor is found.
    pub unchecked_claims: u64,
    /// Everything that is wrong with the site's part of the state directory, the most pressing first.
    pub state_troubles: Vec<Trouble>,
    /// Why changes are found by polling only, where the file system reports no events.
    pub watch_trouble: Option<String>,
    /// How fetching the robots.txt fares, where it is fetched.
    pub fetch: Option<FetchStatus>,
}

keyword_enum! {
    /// The condition of a site, in one word.
    Condition, "the condition of a site", {
        /// What the source holds is live.
        Live = "live",
        /// The source holds nothing usable; the last good version is live.
        LastGood = "last-good",
        /// A version waits to be accepted; the one before it is live.
        Gated = "gated",
        /// Nothing is live, so nothing is enforced.
        None = "none",
    }
}

impl Status {
    /// The condition of the site, in one word.
    pub const fn condition(&self) -> Condition {
        match (&self.live, &self.pending, &self.last_reload.outcome) {
            (None, _, _) => Condition::None,
            (Some(_), _, ReloadOutcome::Kept { .. }) => Condition::LastGood,
            (Some(_), Some(_), _) => Condition::Gated,
            (Some(_), None, _) => Condition::Live,
        }
    }

    /// What is wrong with the site's part of the state directory in one respect, if anything is.
    pub fn state_trouble(&self, kind: TroubleKind) -> Option<&str> {
        self.state_troubles.iter().find(|trouble| trouble.kind == kind).map(|trouble| trouble.text.as_str())
    }
}
