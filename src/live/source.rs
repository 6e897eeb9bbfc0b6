//! What a site needs of its source, and what a source hands to its site.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use super::rejection::{MAX_FILE, Rejection, RejectionKind};
use super::reloading::Completion;
use super::version::Version;

/// A source's content, or why it has none that can be used.
pub(crate) type Loaded = Result<Version, Rejection>;

/// What may become live.
#[derive(Debug)]
pub(crate) enum Candidate {
    /// What the source holds.
    Version(Version),
    /// The source holds nothing that can be used.
    Rejected(Rejection),
    /// The source says that it has no robots.txt, with this status.
    #[cfg_attr(
        not(any(test, feature = "fetch")),
        expect(dead_code, reason = "a file is never believed to be gone on purpose")
    )]
    Absent { status: u16 },
}

/// Where a site's bytes come from.
///
/// A source keeps its site up to date: it offers a [`Candidate`] when it holds something else, until it is dropped. The site
/// owns its source, so a source refers to its site weakly.
pub(crate) trait Source: fmt::Debug + Send + Sync {
    /// Loads what it holds now. Blocks for as long as the source does.
    fn load(&self) -> Loaded;

    /// Loads and offers because a caller waits for the result. Does not block.
    fn reload(&self, completion: Arc<Completion>);

    /// The text it holds, where a caller may hand in another; `None` where it comes from elsewhere.
    fn text(&self) -> Option<&Mutex<Version>> {
        None
    }

    /// How it fares, besides what it holds. Does not block.
    fn status(&self) -> SourceStatus {
        SourceStatus::default()
    }
}

/// A text that a caller hands in, within the bound of files.
pub(crate) fn load_text(text: &[u8], origin: &Arc<str>) -> Loaded {
    if text.len() as u64 > MAX_FILE {
        return Err(Rejection::new(RejectionKind::TooLarge, origin));
    }
    Ok(Version::new(text, origin, None))
}

/// How a source fares, besides what it holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct SourceStatus {
    /// Why changes are only found by polling.
    pub(crate) watch_trouble: Option<String>,
    pub(crate) fetch: Option<FetchStatus>,
}

/// How fetching a site's robots.txt fares; part of [`Status`](super::Status).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchStatus {
    pub(crate) confirmed: Option<SystemTime>,
    pub(crate) failing_since: Option<SystemTime>,
    pub(crate) failures: u32,
    pub(crate) held_until: Option<SystemTime>,
    pub(crate) next: SystemTime,
}

impl From<Loaded> for Candidate {
    fn from(loaded: Loaded) -> Self {
        match loaded {
            Ok(version) => Self::Version(version),
            Err(rejection) => Self::Rejected(rejection),
        }
    }
}

impl FetchStatus {
    /// When the server last confirmed that it has what is live, or has none; `None` before the first confirmation since the
    /// start.
    #[must_use]
    pub const fn confirmed(&self) -> Option<SystemTime> {
        self.confirmed
    }

    /// Since when fetches fail.
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

    /// When the next fetch is due.
    #[must_use]
    pub const fn next_fetch(&self) -> SystemTime {
        self.next
    }
}
