//! A part of a robots.txt that is published at a URL, such as a list of AI crawlers, followed as lists are.

use crate::live::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use std::{fmt, io};

use super::document::{Demand, Document, SavedDocuments};
use super::followed::{EvidenceOrigin, Follower, Following};
use crate::live::{Clock, VersionHash};
use crate::rules::Fragment;
use crate::source::fetch::{FetchMode, FetchUrl, Fetcher, Schedule};

/// A fragment that is published at a URL, kept up to date on the thread of a [`Fetcher`].
///
/// It is fetched with validators, as its `Cache-Control` says, about hourly without. An answer that is no list of rules for
/// crawlers changes nothing, and neither does a failure: the last good one stays. With a folder it is there after a restart
/// without a network.
///
/// Cheap to clone; the last clone that is dropped ends the work.
#[derive(Clone, Debug)]
pub struct PublishedFragment {
    follower: Arc<Follower<FragmentVersion>>,
}

/// Starts to follow a [`PublishedFragment`].
#[must_use]
pub struct PublishedFragmentBuilder {
    url: FetchUrl,
    reading: FragmentReading,
    fetcher: Option<Fetcher>,
    folder: Option<PathBuf>,
}

/// What became of an answer: said once, not at every fetch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PublishedFragmentEvent {
    /// There is another fragment now.
    Changed(Fragment),
    /// It cannot be fetched or used; the one before stays.
    Failed(Arc<str>),
    /// It could be fetched again, and is the one before.
    Recovered,
}

/// How a [`PublishedFragment`] stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PublishedFragmentStatus {
    /// Where the fragment at hand is from; `None` if there is none.
    pub origin: Option<EvidenceOrigin>,
    /// Its hash.
    pub hash: Option<VersionHash>,
    /// When its server last said that it is right.
    pub confirmed: Option<SystemTime>,
    /// Why the last fetch brought nothing.
    pub trouble: Option<Arc<str>>,
}

/// A fragment, and the hash of what it was read from.
#[derive(Debug)]
pub(super) struct FragmentVersion {
    fragment: Fragment,
    hash: VersionHash,
}

/// What reading a fragment needs.
pub(super) struct FragmentReading {
    title: Arc<str>,
    on_event: Box<dyn Fn(&PublishedFragmentEvent) + Send + Sync>,
    /// What was said last: the fragment at hand, and why there is no newer one.
    said: Mutex<(Option<VersionHash>, Option<Arc<str>>)>,
}

impl PublishedFragment {
    /// Follows the fragment at a URL. The title names it in comments of the file that is served.
    pub fn builder(url: FetchUrl, title: &str) -> PublishedFragmentBuilder {
        let reading = FragmentReading { title: title.into(), on_event: Box::new(|_| {}), said: Mutex::default() };
        PublishedFragmentBuilder { url, reading, fetcher: None, folder: None }
    }

    /// The fragment that another process saved in a folder; `None` where none did. Nothing is fetched.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn saved(url: &FetchUrl, title: &str, folder: impl AsRef<Path>) -> Result<Option<Fragment>, String> {
        let saved = SavedDocuments::new(folder.as_ref().to_owned()).read(&url.to_string())?;
        let read = |octets: Vec<u8>| Fragment::parse(title, octets).map_err(|error| error.to_string());
        saved.map(|document| read(document.octets)).transpose()
    }

    /// The fragment at hand; `None` until one was fetched or saved.
    pub fn fragment(&self) -> Option<Fragment> {
        self.follower.followed.with_held(|held| held.map(|held| held.document.fragment.clone()))
    }

    /// How it stands.
    pub fn status(&self) -> PublishedFragmentStatus {
        let followed = &self.follower.followed;
        let held = followed.held();
        PublishedFragmentStatus {
            origin: held.as_ref().map(|held| held.origin),
            hash: held.as_ref().map(|held| held.document.hash),
            confirmed: held.as_ref().and_then(|held| held.confirmed),
            trouble: followed.trouble(),
        }
    }
}

impl PublishedFragmentBuilder {
    /// The fetcher to fetch with. Default: one of its own.
    pub fn fetcher(mut self, fetcher: &Fetcher) -> Self {
        self.fetcher = Some(fetcher.clone());
        self
    }

    /// The folder in which the last good fragment is saved for the next start. Default: none.
    pub fn saved_in(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Called on a thread of the fetcher when something is different; it may block.
    pub fn on_event(mut self, listener: impl Fn(&PublishedFragmentEvent) + Send + Sync + 'static) -> Self {
        self.reading.on_event = Box::new(listener);
        self
    }

    /// Starts to follow it. Returns also why what was saved cannot be used, where that is so.
    ///
    /// # Errors
    ///
    /// If the system gives no thread.
    pub fn start(self) -> io::Result<(PublishedFragment, Option<String>)> {
        let fetcher = self.fetcher.map_or_else(Fetcher::new, Ok)?;
        let saved = self.folder.map(SavedDocuments::new);
        let following = Following { fetcher, clock: Clock::default(), saved };
        let (follower, trouble) = Follower::start(self.url, self.reading, None, &following);
        Ok((PublishedFragment { follower: Arc::new(follower) }, trouble))
    }
}

impl Document for FragmentVersion {
    const MODE: FetchMode = FetchMode::Site;
    const MOST: u64 = 1 << 20;
    const DEMAND: Demand = Demand::Always;
    const GAP: Duration = Duration::from_secs(60);
    type Context = FragmentReading;

    /// As a robots.txt is.
    fn schedule() -> Schedule {
        Schedule::new()
    }

    fn read(
        context: &FragmentReading,
        octets: &[u8],
        content_type: Option<&str>,
        _before: Option<&Self>,
    ) -> Result<Self, String> {
        if content_type.is_some_and(|media_type| media_type.trim_start().starts_with("text/html")) {
            return Err("the answer is an HTML page, not a robots.txt".to_owned());
        }
        let fragment = Fragment::parse(&context.title, octets).map_err(|error| error.to_string())?;
        Ok(Self { fragment, hash: VersionHash::of(octets) })
    }

    fn restore(context: &FragmentReading, octets: &[u8]) -> Result<Self, String> {
        let version = Self::read(context, octets, None, None)?;
        // It is no change that a start finds what was there.
        context.said.lock().0 = Some(version.hash);
        Ok(version)
    }

    fn concluded(context: &FragmentReading, held: Option<&Self>, trouble: Option<&str>) {
        let event = {
            let now = (held.map(|held| held.hash), trouble.map(Arc::<str>::from));
            let (hash, said) = std::mem::replace(&mut *context.said.lock(), now.clone());
            match now.1 {
                _ if now.0 != hash => held.map(|held| PublishedFragmentEvent::Changed(held.fragment.clone())),
                Some(trouble) if said.as_ref() == Some(&trouble) => None,
                Some(trouble) => Some(PublishedFragmentEvent::Failed(trouble)),
                None => said.is_some().then_some(PublishedFragmentEvent::Recovered),
            }
        };
        if let Some(event) = event {
            (context.on_event)(&event);
        }
    }
}

impl fmt::Display for PublishedFragmentEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed(_) => f.write_str("another version is appended"),
            Self::Failed(trouble) => f.write_str(trouble),
            Self::Recovered => f.write_str("it is fetched again, and has not changed"),
        }
    }
}

impl fmt::Debug for PublishedFragmentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublishedFragmentBuilder").field("url", &self.url.to_string()).finish_non_exhaustive()
    }
}
