//! Kinds of documents that can be kept up to date.

use std::sync::Arc;
use std::time::Duration;

use crate::rules::Fragment;
use crate::source::fetch::{FetchMode, Schedule};

pub(in crate::source) const MINUTE: Duration = Duration::from_secs(60);
pub(in crate::source) const HOUR: Duration = Duration::from_secs(60 * 60);

/// A kind of document that can be kept up to date.
pub trait Document: Sized + Send + Sync + 'static {
    /// Name of this kind of document in messages.
    const NOUN: &'static str;
    /// How redirects are followed.
    const MODE: FetchMode = FetchMode::Site;
    /// Maximum size of the document, in bytes.
    const MAX_BYTES: u64 = 1 << 20;
    /// Whether the document must be fetched over `https`.
    const ONLY_HTTPS: bool = false;
    /// When the document is fetched.
    const DEMAND: Demand = Demand::Always;
    /// Minimum time between two fetches, even if more fetches are requested.
    const GAP: Duration;
    /// The data that is needed to parse the document.
    type Reading: Send + Sync + 'static;

    /// Returns the schedule of fetches: the intervals after a success, and the pauses after
    /// failures. By default, the schedule is the same as for a robots.txt.
    fn schedule() -> Schedule {
        Schedule::default()
    }

    /// Parses the document from bytes that may be untrusted.
    fn read(reading: &Self::Reading, bytes: &[u8]) -> Result<Self, String>;

    /// Checks whether a response with this media type may contain the document.
    fn check_media_type(media_type: &str) -> Result<(), String> {
        match media_type.trim_start().starts_with("text/html") {
            true => Err(format!("the response is an HTML page, not a {noun}", noun = Self::NOUN)),
            false => Ok(()),
        }
    }

    /// Compares a new version of the document with the previous version. Returns an error if the
    /// new version must not be used.
    fn check_after(&self, _before: &Self) -> Result<(), String> {
        Ok(())
    }

    /// Returns the reason why an operator must accept the document before it replaces the previous
    /// version; `None` if the document can be used immediately.
    fn objection(&self, _before: Option<&Self>) -> Option<String> {
        None
    }

    /// Returns the number of entries in the document, such as crawlers or keys.
    fn entries(&self) -> usize;

    /// Returns the creation time of the document, if the document contains this time.
    fn created(&self) -> Option<String> {
        None
    }

    /// Called after each fetch that returned a new version or confirmed the current one.
    fn renewed(_reading: &Self::Reading) {}
}

/// When a document is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// The document is fetched at the start, and then according to the schedule.
    Always,
    /// The document is fetched only if a request needs it.
    OnRequest,
}

impl Document for Fragment {
    const NOUN: &'static str = "robots.txt";
    const GAP: Duration = MINUTE;
    type Reading = Arc<str>;

    fn read(title: &Arc<str>, bytes: &[u8]) -> Result<Self, String> {
        Self::parse(title, bytes).map_err(|error| error.to_string())
    }

    fn entries(&self) -> usize {
        self.robots.groups().len()
    }
}
