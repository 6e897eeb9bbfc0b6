//! The state of a site: the live version, the last reload, and what is wrong.

use std::time::SystemTime;

use super::enforcement::Enforcement;
use super::gate::Pending;
use super::reload::{Reload, ReloadOutcome};
use super::source::{FetchStatus, SourceStatus};
use super::state::StateTroubles;
use super::version_hash::VersionHash;

/// The state of a site: the live version, the last reload, and what is wrong.
#[derive(Clone, Debug)]
pub struct Status {
    pub(super) live: Option<VersionHash>,
    pub(super) last: Reload,
    pub(super) since: SystemTime,
    pub(super) pending: Option<Pending>,
    pub(super) before: Option<VersionHash>,
    pub(super) enforcement: Enforcement,
    pub(super) switch: Enforcement,
    pub(super) grace_end: Option<SystemTime>,
    pub(super) faults: u64,
    pub(super) callback_faults: u64,
    pub(super) stripped_targets: u64,
    pub(super) state_troubles: StateTroubles,
    pub(super) source: SourceStatus,
}

/// The condition of a site, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Condition {
    /// What the source holds is live.
    Live,
    /// The source holds nothing usable; the last good version is live.
    LastGood,
    /// A version waits to be accepted; the one before it is live.
    Gated,
    /// Nothing is live, so nothing is enforced.
    None,
}

impl Condition {
    /// The condition's name in kebab-case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::LastGood => "last-good",
            Self::Gated => "gated",
            Self::None => "none",
        }
    }
}

impl Status {
    /// The condition of the site, in one word.
    #[must_use]
    pub const fn condition(&self) -> Condition {
        match (&self.live, &self.pending, &self.last.outcome) {
            (None, _, _) => Condition::None,
            (Some(_), _, ReloadOutcome::Kept { .. }) => Condition::LastGood,
            (Some(_), Some(_), _) => Condition::Gated,
            (Some(_), None, _) => Condition::Live,
        }
    }

    /// The version that is live, if any is.
    #[must_use]
    pub const fn live(&self) -> Option<VersionHash> {
        self.live
    }

    /// The last reload.
    #[must_use]
    pub const fn last_reload(&self) -> &Reload {
        &self.last
    }

    /// Since when this version, or the lack of one, is live.
    #[must_use]
    pub const fn since(&self) -> SystemTime {
        self.since
    }

    /// The version that waits to be accepted, if one does, with the reasons.
    #[must_use]
    pub const fn pending(&self) -> Option<&Pending> {
        self.pending.as_ref()
    }

    /// The version that [`LiveRobots::rollback`](super::LiveRobots::rollback) would go back to, if there is one.
    #[must_use]
    pub const fn before(&self) -> Option<VersionHash> {
        self.before
    }

    /// Whether anything is enforced: off if the switch of the site or that of all sites is.
    #[must_use]
    pub const fn enforcement(&self) -> Enforcement {
        self.enforcement
    }

    /// The site's own switch, whatever that of all sites says.
    #[must_use]
    pub const fn switch(&self) -> Enforcement {
        self.switch
    }

    /// Until when some of what is disallowed is only observed; `None` where no grace runs.
    #[must_use]
    pub const fn grace_end(&self) -> Option<SystemTime> {
        self.grace_end
    }

    /// How many requests passed because judging them ended in a panic of this crate, or of a callback that supplies
    /// the target, the address or the agent.
    #[must_use]
    pub const fn faults(&self) -> u64 {
        self.faults
    }

    /// How many times a callback panicked that runs once a request is decided, an observer or a refusal of the
    /// application's own. The decisions stood.
    #[must_use]
    pub const fn callback_faults(&self) -> u64 {
        self.callback_faults
    }

    /// How many requests that a group applies to were judged by a target that is not the one the client sent: a
    /// `RobotsLayer::new` in a nested axum router gets targets without their prefix, so the rules for `/blog/drafts/` do not
    /// meet `/drafts/`. `RobotsLayer::for_axum08` is the layer for that place. 0 without the feature `axum08`, which knows.
    #[must_use]
    pub const fn stripped_targets(&self) -> u64 {
        self.stripped_targets
    }

    /// What is wrong with the site's part of the state directory, if anything is: the most pressing of
    /// [`Status::state_troubles`].
    #[must_use]
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
    #[must_use]
    pub fn save_trouble(&self) -> Option<&str> {
        self.state_troubles.save.as_deref()
    }

    /// Why entries of the history wait: they cannot be written down. The write is tried again.
    #[must_use]
    pub fn history_trouble(&self) -> Option<&str> {
        self.state_troubles.append.as_deref()
    }

    /// Why a restart would forget how the site's kill switch stands: it cannot be written down. The write is tried again.
    #[must_use]
    pub fn switch_trouble(&self) -> Option<&str> {
        self.state_troubles.switch.as_deref()
    }

    /// Why the site's kill switch was taken for [`Enforcement::Off`] although no operator turned it: its file could not be read, or is
    /// damaged. `None` once it is written again.
    #[must_use]
    pub fn unread_switch(&self) -> Option<&str> {
        self.state_troubles.unread_switch.as_deref()
    }

    /// That what is served is, or may be, older than what was live before the restart: what was live then could not be
    /// written down, and the source held nothing that can be served.
    #[must_use]
    pub fn behind_trouble(&self) -> Option<&str> {
        self.state_troubles.behind.as_deref()
    }

    /// Why changes are found by polling only, where the file system reports no events.
    #[must_use]
    pub fn watch_trouble(&self) -> Option<&str> {
        self.source.watch_trouble.as_deref()
    }

    /// How fetching the robots.txt fares, where it is fetched.
    #[must_use]
    pub const fn fetch(&self) -> Option<&FetchStatus> {
        self.source.fetch.as_ref()
    }
}
