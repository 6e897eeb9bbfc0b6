//! Kinds of documents that can be followed.

use std::sync::Arc;
use std::time::Duration;

use crate::rules::Fragment;
use crate::source::fetch::{FetchMode, Schedule};

pub(in crate::source) const MINUTE: Duration = Duration::from_secs(60);
pub(in crate::source) const HOUR: Duration = Duration::from_secs(60 * 60);

/// A kind of document that can be followed.
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
    /// Minimum time between two fetches, even if fetches are requested more often.
    const GAP: Duration;
    /// The data that is needed to parse the document.
    type Reading: Send + Sync + 'static;

    /// Returns how long to wait for the next fetch after a success, and after a failure. Default:
    /// the same schedule as for a robots.txt.
    fn schedule() -> Schedule {
        Schedule::default()
    }

    /// Parses the document. The bytes may be untrusted.
    fn read(reading: &Self::Reading, octets: &[u8]) -> Result<Self, String>;

    /// Checks whether a response with this media type may contain the document.
    fn check_media_type(media_type: &str) -> Result<(), String> {
        match media_type.trim_start().starts_with("text/html") {
            true => Err(format!("the response is an HTML page, not a {noun}", noun = Self::NOUN)),
            false => Ok(()),
        }
    }

    /// Compares a new version of the document with the previous one. Returns an error if the new
    /// version must not be used.
    fn check_after(&self, _before: &Self) -> Result<(), String> {
        Ok(())
    }

    /// Returns why the document must be accepted before it replaces the previous version; `None` if
    /// it can be used immediately.
    fn objection(&self, _before: Option<&Self>) -> Option<String> {
        None
    }

    /// Returns the number of entries.
    fn entries(&self) -> usize;

    /// Returns the creation time of the document, if the document contains it.
    fn created(&self) -> Option<String> {
        None
    }

    /// Called after each fetch that returned a new version or confirmed the current one.
    fn renewed(_reading: &Self::Reading) {}
}

/// When a document is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// At the start, and then according to the schedule.
    Always,
    /// Only if a request needs the document.
    OnRequest,
}

impl Document for Fragment {
    const NOUN: &'static str = "robots.txt";
    const GAP: Duration = MINUTE;
    type Reading = Arc<str>;

    fn read(title: &Arc<str>, octets: &[u8]) -> Result<Self, String> {
        Self::parse(title, octets).map_err(|error| error.to_string())
    }

    fn entries(&self) -> usize {
        self.robots.groups().len()
    }
}
