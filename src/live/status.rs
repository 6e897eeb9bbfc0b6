//! The state of a site: the live version, the last reload, and what is wrong.

use std::sync::Arc;
use std::time::SystemTime;

use robots_core::keyword_enum;

use super::gate::Pending;
use super::kill_switch::Enforcement;
use super::reload::{Reload, ReloadOutcome};
use super::source::{FetchStatus, SourceStatus};
use super::state::StateTroubles;
use super::version::VersionHash;
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
    pub(super) state_troubles: StateTroubles,
    pub(super) source: SourceStatus,
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

    /// What is wrong with the site's part of the state directory, if anything is: the most pressing of
    /// [`Status::state_troubles`].
    pub fn state_trouble(&self) -> Option<&str> {
        self.state_troubles().next()
    }

    /// Everything that is wrong with the site's part of the state directory, the most pressing first: that what is live,
    /// the kill switch or the history cannot be written down; that what is served is, or may be, older than what was live
    /// before a restart; and what was damaged when it was read. Each ends when it is over; what was damaged stays.
    pub fn state_troubles(&self) -> impl Iterator<Item = &str> {
        let StateTroubles { save, switch, append, behind, unread_switch, damaged } = &self.state_troubles;
        [save, switch, append, behind, unread_switch, damaged].into_iter().filter_map(Option::as_deref)
    }

    /// Why a restart would forget what is live, or what waits: it cannot be written down. Or that only the record cannot be
    /// written, which says what is live where nothing else can be. The write is tried again.
    pub fn save_trouble(&self) -> Option<&str> {
        self.state_troubles.save.as_deref()
    }

    /// Why entries of the history wait: they cannot be written down. The write is tried again.
    pub fn history_trouble(&self) -> Option<&str> {
        self.state_troubles.append.as_deref()
    }

    /// Why a restart would forget how the site's kill switch stands: it cannot be written down. The write is tried again.
    pub fn switch_trouble(&self) -> Option<&str> {
        self.state_troubles.switch.as_deref()
    }

    /// Why the site's kill switch was taken for [`Enforcement::Off`] although no operator turned it: its file could not be read, or is
    /// damaged. `None` once it is written again.
    pub fn unread_switch(&self) -> Option<&str> {
        self.state_troubles.unread_switch.as_deref()
    }

    /// That what is served is, or may be, older than what was live before the restart: what was live then could not be
    /// written down, and the source held nothing that can be served.
    pub fn behind_trouble(&self) -> Option<&str> {
        self.state_troubles.behind.as_deref()
    }

    /// Why changes are found by polling only, where the file system reports no events.
    pub fn watch_trouble(&self) -> Option<&str> {
        self.source.watch_trouble.as_deref()
    }

    /// How fetching the robots.txt fares, where it is fetched.
    pub const fn fetch(&self) -> Option<&FetchStatus> {
        self.source.fetch.as_ref()
    }
}
