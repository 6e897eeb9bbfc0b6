//! A registry that is published at a URL, followed as lists are.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use super::document::{Demand, Document};
use super::followed::EvidenceOrigin;
use super::follower::{Follower, Following};
use super::registry_text::{check_text, check_use};
use super::saved_documents::SavedDocuments;
use crate::agent::{Registry, RegistryUpheaval};
use crate::live::{Clock, VersionHash};
use crate::source::fetch::{FetchMode, FetchUrl, Fetcher, Schedule};

/// A registry of crawlers that is published at an `https` URL, kept up to date on the thread of a [`Fetcher`].
///
/// 1. It is fetched with validators, about daily and at most hourly, and kept through every failure. With a folder, the
///    last good one is there after a restart without a network.
/// 2. What is fetched is untrusted. It is read whole or not at all: at most 1 MiB of UTF-8, at most 10,000 crawlers, values
///    without control characters, addresses of `https`, and no name that the headers of common browsers hold.
/// 3. One that changes much ([`Registry::upheavals`]) waits until its hash is [accepted](Self::accept), and the one before
///    stays.
///
/// Cheap to clone; the last clone that is dropped ends the work.
#[derive(Clone, Debug)]
pub struct PublishedRegistry {
    follower: Arc<Follower<RegistryVersion>>,
    following: Following,
}

/// Starts to follow a [`PublishedRegistry`].
#[must_use]
pub struct PublishedRegistryBuilder {
    url: FetchUrl,
    reading: RegistryReading,
    fetcher: Option<Fetcher>,
    folder: Option<PathBuf>,
    clock: Clock,
}

/// What became of an answer: said once, not at every fetch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PublishedRegistryEvent {
    /// There is another registry now.
    Changed(VersionHash),
    /// A version waits to be accepted.
    Waiting(WaitingRegistry),
    /// The registry cannot be fetched or used; the one before stays.
    Failed(Arc<str>),
    /// It could be fetched again, and is the one before.
    Recovered,
}

/// A version that changes much, and is not used until it is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingRegistry {
    /// Its hash, to accept it by.
    pub hash: VersionHash,
    /// What it changes.
    pub upheavals: Vec<RegistryUpheaval>,
}

/// How a [`PublishedRegistry`] stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PublishedRegistryStatus {
    /// Where it is published, without its query.
    pub url: String,
    /// Where the registry at hand is from; `None` if there is none.
    pub origin: Option<EvidenceOrigin>,
    /// Its hash.
    pub hash: Option<VersionHash>,
    /// When its server last said that it is right.
    pub confirmed: Option<SystemTime>,
    /// The version that waits to be accepted.
    pub waiting: Option<WaitingRegistry>,
    /// Why the last fetch brought nothing.
    pub trouble: Option<Arc<str>>,
}

/// A registry, and the hash of the text that it was read from.
#[derive(Debug)]
pub(super) struct RegistryVersion {
    registry: Arc<Registry>,
    hash: VersionHash,
}

/// What reading a registry needs.
pub(super) struct RegistryReading {
    read: Box<ReadRegistry>,
    on_event: Box<dyn Fn(&PublishedRegistryEvent) + Send + Sync>,
    state: Mutex<ReadingState>,
}

type ReadRegistry = dyn Fn(&str) -> Result<Registry, String> + Send + Sync;

#[derive(Default)]
struct ReadingState {
    accepted: HashSet<VersionHash>,
    waiting: Option<WaitingRegistry>,
    /// What was said last: the registry at hand, and why there is no newer one.
    said: (Option<VersionHash>, Option<Arc<str>>),
}

/// An upheaval is named, a hundred are not.
const MOST_NAMED: usize = 5;

impl PublishedRegistry {
    /// Follows the registry at a URL. `read` makes a registry of its text, and says with line and column what is wrong with
    /// one that it cannot use.
    pub fn builder(
        url: FetchUrl,
        read: impl Fn(&str) -> Result<Registry, String> + Send + Sync + 'static,
    ) -> PublishedRegistryBuilder {
        let reading = RegistryReading { read: Box::new(read), on_event: Box::new(|_| {}), state: Mutex::default() };
        PublishedRegistryBuilder { url, reading, fetcher: None, folder: None, clock: Clock::default() }
    }

    /// The registry that another process saved in a folder; `None` where none did. Nothing is fetched.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn saved(
        url: &FetchUrl,
        folder: impl AsRef<Path>,
        read: impl Fn(&str) -> Result<Registry, String>,
    ) -> Result<Option<Registry>, String> {
        let saved = SavedDocuments::new(folder.as_ref().to_owned()).read(&url.to_string())?;
        saved.map(|document| checked(&read, &document.octets)).transpose()
    }

    /// The registry at hand; `None` until one was fetched or saved.
    #[must_use]
    pub fn registry(&self) -> Option<Arc<Registry>> {
        self.follower.followed().with_held(|held| held.map(|held| held.document.registry.clone()))
    }

    /// Which versions are used whatever they change, in place of those before. A version that waits and is among them is
    /// fetched again at once.
    pub fn accept(&self, hashes: impl IntoIterator<Item = VersionHash>) {
        let followed = self.follower.followed();
        let is_accepted = {
            let mut state = followed.context().state();
            state.accepted = hashes.into_iter().collect();
            state.waiting.as_ref().is_some_and(|waiting| state.accepted.contains(&waiting.hash))
        };
        if is_accepted {
            self.fetch_now();
        }
    }

    /// Fetches it again now.
    pub fn fetch_now(&self) {
        self.follower.followed().want_now(self.following.clock.now());
    }

    /// How it stands.
    #[must_use]
    pub fn status(&self) -> PublishedRegistryStatus {
        let followed = self.follower.followed();
        let held = followed.held();
        let waiting = followed.context().state().waiting.clone();
        PublishedRegistryStatus {
            url: followed.url().to_string(),
            origin: held.as_ref().map(|held| held.origin),
            hash: held.as_ref().map(|held| held.document.hash),
            confirmed: held.as_ref().and_then(|held| held.confirmed),
            trouble: followed.trouble().filter(|_| waiting.is_none()),
            waiting,
        }
    }
}

impl PublishedRegistryBuilder {
    /// The fetcher to fetch with. Default: one of its own.
    pub fn fetcher(mut self, fetcher: &Fetcher) -> Self {
        self.fetcher = Some(fetcher.clone());
        self
    }

    /// The folder in which the last good registry is saved for the next start. Default: none.
    pub fn saved_in(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// The versions that are used whatever they change. Default: none.
    pub fn accept(mut self, hashes: impl IntoIterator<Item = VersionHash>) -> Self {
        self.reading.state.get_mut().unwrap_or_else(PoisonError::into_inner).accepted = hashes.into_iter().collect();
        self
    }

    /// Called on a thread of the fetcher when something is different; it may block.
    pub fn on_event(mut self, listener: impl Fn(&PublishedRegistryEvent) + Send + Sync + 'static) -> Self {
        self.reading.on_event = Box::new(listener);
        self
    }

    /// The time, for tests. Default: the system's.
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Clock::new(clock);
        self
    }

    /// Starts to follow it. Returns also why what was saved cannot be used, where that is so.
    ///
    /// # Errors
    ///
    /// If the URL is none of `https`, or if the system gives no thread.
    pub fn start(self) -> io::Result<(PublishedRegistry, Option<String>)> {
        if !self.url.to_string().starts_with("https://") {
            let message = format!("{} is fetched in the clear: a registry is published at an https URL", self.url);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let fetcher = self.fetcher.map_or_else(Fetcher::new, Ok)?;
        let saved = self.folder.map(SavedDocuments::new);
        let following = Following { fetcher, clock: self.clock, saved };
        let (follower, trouble) = Follower::start(self.url, self.reading, None, &following);
        Ok((PublishedRegistry { follower: Arc::new(follower), following }, trouble))
    }
}

impl Document for RegistryVersion {
    const MODE: FetchMode = FetchMode::Site;
    const MOST: u64 = 1 << 20;
    const DEMAND: Demand = Demand::Always;
    const GAP: Duration = HOUR;
    type Context = RegistryReading;

    fn schedule() -> Schedule {
        Schedule::new().every(24 * HOUR).between(HOUR, 24 * HOUR).retry(MINUTE, HOUR)
    }

    fn read(
        context: &RegistryReading,
        octets: &[u8],
        content_type: Option<&str>,
        before: Option<&Self>,
    ) -> Result<Self, String> {
        let is_page = content_type.is_some_and(|media_type| media_type.trim_start().starts_with("text/html"));
        if is_page {
            return Err("the answer is an HTML page, not a registry".to_owned());
        }
        let version = Self::parse(context, octets)?;
        let upheavals = match before {
            Some(before) => before.registry.upheavals(&version.registry),
            None => Registry::builtin().upheavals(&version.registry),
        };
        let mut state = context.state();
        state.waiting = None;
        if !upheavals.is_empty() && !state.accepted.contains(&version.hash) {
            let waiting = WaitingRegistry { hash: version.hash, upheavals };
            let message = waiting.to_string();
            state.waiting = Some(waiting);
            return Err(message);
        }
        Ok(version)
    }

    fn restore(context: &RegistryReading, octets: &[u8]) -> Result<Self, String> {
        let version = Self::parse(context, octets)?;
        // It is no change that a start finds what was there.
        context.state().said.0 = Some(version.hash);
        Ok(version)
    }

    fn concluded(context: &RegistryReading, held: Option<&Self>, trouble: Option<&str>) {
        let event = {
            let mut state = context.state();
            let (hash, trouble) = (held.map(|held| held.hash), trouble.map(Arc::<str>::from));
            let (said_hash, said) = std::mem::replace(&mut state.said, (hash, trouble.clone()));
            match (trouble, &state.waiting) {
                _ if hash != said_hash => hash.map(PublishedRegistryEvent::Changed),
                (Some(trouble), _) if said.as_ref() == Some(&trouble) => None,
                (Some(_), Some(waiting)) => Some(PublishedRegistryEvent::Waiting(waiting.clone())),
                (Some(trouble), None) => Some(PublishedRegistryEvent::Failed(trouble)),
                (None, _) => said.is_some().then_some(PublishedRegistryEvent::Recovered),
            }
        };
        if let Some(event) = event {
            (context.on_event)(&event);
        }
    }
}

impl RegistryVersion {
    fn parse(context: &RegistryReading, octets: &[u8]) -> Result<Self, String> {
        let registry = Arc::new(checked(&context.read, octets)?);
        Ok(Self { registry, hash: VersionHash::of(octets) })
    }
}

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);

impl RegistryReading {
    fn state(&self) -> MutexGuard<'_, ReadingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for WaitingRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version sha256:{} waits to be accepted: ", self.hash.short())?;
        for (at, upheaval) in self.upheavals.iter().take(MOST_NAMED).enumerate() {
            write!(f, "{}{upheaval}", if at == 0 { "" } else { "; " })?;
        }
        match self.upheavals.len().saturating_sub(MOST_NAMED) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl fmt::Display for PublishedRegistryEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed(hash) => write!(f, "version sha256:{} is in force", hash.short()),
            Self::Waiting(waiting) => write!(f, "{waiting}; the one before stays in force"),
            Self::Failed(trouble) => write!(f, "{trouble}; the one before stays in force"),
            Self::Recovered => f.write_str("it is fetched again, and has not changed"),
        }
    }
}

impl fmt::Debug for PublishedRegistryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublishedRegistryBuilder").field("url", &self.url.to_string()).finish_non_exhaustive()
    }
}

/// A registry read, and checked as what strangers may have written.
fn checked(read: impl Fn(&str) -> Result<Registry, String>, octets: &[u8]) -> Result<Registry, String> {
    let registry = read(check_text(octets)?)?;
    check_use(&registry)?;
    Ok(registry)
}
