//! Kinds of documents that can be followed.

use std::sync::Arc;
use std::time::Duration;

use crate::rules::Fragment;
use crate::source::fetch::{FetchMode, Schedule};

pub(in crate::source) const MINUTE: Duration = Duration::from_secs(60);
pub(in crate::source) const HOUR: Duration = Duration::from_secs(60 * 60);

/// A kind of document that is followed.
pub trait Document: Sized + Send + Sync + 'static {
    /// Noun for the document in messages.
    const NOUN: &'static str;
    /// How redirects are followed.
    const MODE: FetchMode = FetchMode::Site;
    /// Maximum size that is read, in bytes.
    const MAX_BYTES: u64 = 1 << 20;
    /// Whether the document must be fetched over `https`.
    const ONLY_HTTPS: bool = false;
    /// When the document is fetched.
    const DEMAND: Demand = Demand::Always;
    /// Minimum time between two fetches, even if more are requested.
    const GAP: Duration;
    /// Context needed to parse the document's bytes.
    type Reading: Send + Sync + 'static;

    /// Returns how long the document is used, and how failed fetches are retried. By default, the
    /// same as for a robots.txt.
    fn schedule() -> Schedule {
        Schedule::default()
    }

    /// Parses the document. The bytes may be untrusted.
    fn read(reading: &Self::Reading, octets: &[u8]) -> Result<Self, String>;

    /// Checks whether a response with this media type may contain the document.
    fn check_media_type(media_type: &str) -> Result<(), String> {
        match media_type.trim_start().starts_with("text/html") {
            true => Err(format!("the answer is an HTML page, not a {}", Self::NOUN)),
            false => Ok(()),
        }
    }

    /// Checks whether the document resembles its previous version, as a new version must.
    fn check_after(&self, _before: &Self) -> Result<(), String> {
        Ok(())
    }

    /// Returns why the document must be accepted before it replaces the previous version; `None` if
    /// it needs no acceptance.
    fn objection(&self, _before: Option<&Self>) -> Option<String> {
        None
    }

    /// Returns the number of entries.
    fn entries(&self) -> usize;

    /// Returns when its operator created the document, if the document contains this time.
    fn created(&self) -> Option<String> {
        None
    }

    /// Called after the document was fetched or confirmed.
    fn renewed(_reading: &Self::Reading) {}
}

/// When a document is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// From the start, and again whenever it is due.
    Always,
    /// When a request needs it.
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
