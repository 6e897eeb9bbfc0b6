//! How it stands with fetching a site's robots.txt.

use std::time::SystemTime;

use super::site_freshness::SiteFreshness;

/// How it stands with fetching a site's robots.txt; part of [`Status`](crate::live::Status).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchStatus {
    confirmed: Option<SystemTime>,
    failing_since: Option<SystemTime>,
    failures: u32,
    held_until: Option<SystemTime>,
    next: SystemTime,
}

impl FetchStatus {
    pub(super) fn of(state: &SiteFreshness) -> Self {
        Self {
            confirmed: state.confirmed(),
            failing_since: state.failing_since(),
            failures: state.failures(),
            held_until: state.held_until(),
            next: state.next(),
        }
    }

    /// When the server last said that what is live, or the lack of it, is what it has; `None` where it has not since the
    /// start.
    #[must_use]
    pub const fn confirmed(&self) -> Option<SystemTime> {
        self.confirmed
    }

    /// Since when it has not.
    #[must_use]
    pub const fn failing_since(&self) -> Option<SystemTime> {
        self.failing_since
    }

    /// How many fetches in a row brought nothing that was taken.
    #[must_use]
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// Until when the version that is live stays in force although it is missing at its source.
    #[must_use]
    pub const fn held_until(&self) -> Option<SystemTime> {
        self.held_until
    }

    /// When it is fetched next.
    #[must_use]
    pub const fn next_fetch(&self) -> SystemTime {
        self.next
    }
}
