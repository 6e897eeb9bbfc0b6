//! The documents that can be followed.

use std::sync::Arc;
use std::time::Duration;

use crate::rules::Fragment;
use crate::source::fetch::{FetchMode, Schedule};

pub(in crate::source) const MINUTE: Duration = Duration::from_secs(60);
pub(in crate::source) const HOUR: Duration = Duration::from_secs(60 * 60);

/// A kind of document that is followed.
pub trait Document: Sized + Send + Sync + 'static {
    /// The noun for it in messages.
    const NOUN: &'static str;
    /// How redirects are followed.
    const MODE: FetchMode = FetchMode::Site;
    /// The largest that is read, in octets.
    const MOST: u64 = 1 << 20;
    /// Whether it has to be fetched over `https`.
    const ONLY_HTTPS: bool = false;
    /// When it is fetched.
    const DEMAND: Demand = Demand::Always;
    /// The shortest time between two fetches that are demanded at once.
    const GAP: Duration;
    /// The context that reading one needs besides its octets.
    type Reading: Send + Sync + 'static;

    /// How long it is used, and how failures are tried again. By default as a robots.txt is.
    fn schedule() -> Schedule {
        Schedule::default()
    }

    /// Reads one that a stranger may have written.
    fn read(reading: &Self::Reading, octets: &[u8]) -> Result<Self, String>;

    /// Whether an answer of this media type may be one.
    fn check_media_type(media_type: &str) -> Result<(), String> {
        match media_type.trim_start().starts_with("text/html") {
            true => Err(format!("the answer is an HTML page, not a {}", Self::NOUN)),
            false => Ok(()),
        }
    }

    /// Whether it resembles the one before, as the next one has to.
    fn check_after(&self, _before: &Self) -> Result<(), String> {
        Ok(())
    }

    /// Why it has to be accepted before it replaces the one before, where that is so.
    fn objection(&self, _before: Option<&Self>) -> Option<String> {
        None
    }

    /// How many entries it has.
    fn entries(&self) -> usize;

    /// When its operator made it, as it says itself.
    fn created(&self) -> Option<String> {
        None
    }

    /// One is at hand that was fetched or confirmed now.
    fn renewed(_reading: &Self::Reading) {}
}

/// The reason why a document is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// It is kept up to date from the start.
    Always,
    /// It is fetched once a request needs it.
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
