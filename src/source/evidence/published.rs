//! What is published at a URL as a whole, a registry or a part of a robots.txt, followed as lists are.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use std::{fmt, io};

use super::document::{Demand, Document, SavedDocuments};
use super::followed::{EvidenceOrigin, Follower, Following};
use crate::live::{Clock, Mutex, VersionHash, VersionHashPrefix};
use crate::source::fetch::{FetchMode, FetchUrl, Fetcher, Schedule};

/// A [`Registry`](crate::agent::Registry) or a [`Fragment`](crate::rules::Fragment) that is published at a URL, kept up to date on
/// the thread of a [`Fetcher`].
///
/// 1. It is fetched with validators and as its `Cache-Control` says: a registry about daily and at most hourly, a fragment about
///    hourly. Of an answer at most 1 MiB is read.
/// 2. An answer that cannot be used changes nothing, and neither does a failure: the last good one stays. With a folder it is
///    there after a restart without a network.
/// 3. A registry that changes much ([`Registry::upheavals`](crate::agent::Registry::upheavals)) waits until its hash is
///    [accepted](Self::accept).
///
/// Cheap to clone; the last clone that is dropped ends the work.
#[derive(Debug)]
pub struct Published<T: Publishable> {
    follower: Arc<Follower<Version<T>>>,
    /// Its fetcher lives as long.
    following: Following,
}

/// What can be followed so.
pub trait Publishable: Sized + Send + Sync + 'static {
    /// What it is called.
    const NOUN: &'static str;
    /// Whether it has to be fetched over `https`.
    const ONLY_HTTPS: bool;
    /// Where it is wanted at once, it is not fetched sooner than this after the last time.
    const GAP: Duration;
    /// What reading it needs besides its octets.
    type Reading: Send + Sync + 'static;

    /// When it is fetched.
    fn schedule() -> Schedule;

    /// Reads one that a stranger may have written.
    fn read(reading: &Self::Reading, octets: &[u8]) -> Result<Self, String>;

    /// Why it has to be accepted before it replaces the one before, where that is so.
    fn objection(&self, _before: Option<&Self>) -> Option<String> {
        None
    }
}

/// Starts to follow what is [`Published`].
#[must_use]
pub struct PublishedBuilder<T: Publishable> {
    url: FetchUrl,
    fetcher: Option<Fetcher>,
    folder: Option<PathBuf>,
    clock: Clock,
    context: Context<T>,
}

/// What became of an answer: said once, not at every fetch.
#[derive(Debug)]
#[non_exhaustive]
pub enum PublishedEvent<T> {
    /// Another version is in force.
    Changed(Arc<T>, VersionHash),
    /// A version waits to be accepted.
    Waiting(WaitingVersion),
    /// It cannot be fetched or used; the one before stays.
    Failed(Arc<str>),
    /// It could be fetched again, and is the one before.
    Recovered,
}

/// A version that changes much, and is not used until it is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingVersion {
    /// Its hash, to accept it by.
    pub hash: VersionHash,
    /// What it changes.
    pub changes: String,
}

/// How it stands with what is [`Published`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PublishedStatus {
    /// Where it is published, without its query.
    pub url: String,
    /// Where the version at hand is from; `None` if there is none.
    pub origin: Option<EvidenceOrigin>,
    /// Its hash.
    pub hash: Option<VersionHash>,
    /// When its server last said that it is right.
    pub confirmed: Option<SystemTime>,
    /// The version that waits to be accepted.
    pub waiting: Option<WaitingVersion>,
    /// Why the last fetch brought nothing.
    pub trouble: Option<Arc<str>>,
}

/// A version, and the hash of the octets that it was read from.
#[derive(Debug)]
struct Version<T> {
    content: Arc<T>,
    hash: VersionHash,
}

/// What reading a version needs, and what becomes of it.
struct Context<T: Publishable> {
    reading: T::Reading,
    on_event: Box<OnEvent<T>>,
    state: Mutex<State>,
}

type OnEvent<T> = dyn Fn(&PublishedEvent<T>) + Send + Sync;

#[derive(Default)]
struct State {
    accepted: Vec<VersionHashPrefix>,
    waiting: Option<WaitingVersion>,
    /// What was said last: the version at hand, and why there is no newer one.
    said: (Option<VersionHash>, Option<Arc<str>>),
}

impl State {
    fn accepts(&self, hash: &VersionHash) -> bool {
        self.accepted.iter().any(|accepted| accepted.matches(hash))
    }
}

impl<T: Publishable> Published<T> {
    pub(super) fn following(url: FetchUrl, reading: T::Reading) -> PublishedBuilder<T> {
        let context = Context { reading, on_event: Box::new(|_| {}), state: Mutex::default() };
        PublishedBuilder { url, fetcher: None, folder: None, clock: Clock::default(), context }
    }

    /// The version at hand; `None` until one was fetched or saved.
    pub fn current(&self) -> Option<Arc<T>> {
        self.follower.followed.with_held(|held| held.map(|held| held.document.content.clone()))
    }

    /// Which versions are used whatever they change, in place of those before. A version that waits and is among them is
    /// fetched again at once.
    pub fn accept(&self, hashes: impl IntoIterator<Item: Into<VersionHashPrefix>>) {
        let is_accepted = {
            let mut state = self.follower.followed.context.state.lock();
            state.accepted = hashes.into_iter().map(Into::into).collect();
            state.waiting.as_ref().is_some_and(|waiting| state.accepts(&waiting.hash))
        };
        if is_accepted {
            self.fetch_now();
        }
    }

    /// Fetches it again now.
    pub fn fetch_now(&self) {
        self.follower.followed.want_now(self.following.clock.now());
    }

    /// How it stands.
    pub fn status(&self) -> PublishedStatus {
        let followed = &self.follower.followed;
        let held = followed.held();
        let waiting = followed.context.state.lock().waiting.clone();
        PublishedStatus {
            url: followed.url.to_string(),
            origin: held.as_ref().map(|held| held.origin),
            hash: held.as_ref().map(|held| held.document.hash),
            confirmed: held.as_ref().and_then(|held| held.confirmed),
            trouble: followed.trouble().filter(|_| waiting.is_none()),
            waiting,
        }
    }
}

impl<T: Publishable> Clone for Published<T> {
    fn clone(&self) -> Self {
        Self { follower: self.follower.clone(), following: self.following.clone() }
    }
}

impl<T: Publishable> PublishedBuilder<T> {
    /// The fetcher to fetch with. Default: one of its own.
    pub fn fetcher(mut self, fetcher: &Fetcher) -> Self {
        self.fetcher = Some(fetcher.clone());
        self
    }

    /// The folder in which the last good version is saved for the next start. Default: none.
    pub fn saved_in(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// The versions that are used whatever they change. Default: none.
    pub fn accept(mut self, hashes: impl IntoIterator<Item: Into<VersionHashPrefix>>) -> Self {
        self.context.state.get_mut().accepted = hashes.into_iter().map(Into::into).collect();
        self
    }

    /// Called on a thread of the fetcher when something is different; it may block.
    pub fn on_event(mut self, listener: impl Fn(&PublishedEvent<T>) + Send + Sync + 'static) -> Self {
        self.context.on_event = Box::new(listener);
        self
    }

    /// The time, for tests. Default: the system's.
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Clock::new(clock);
        self
    }

    /// The version that another process saved in the folder; `None` where none did. Nothing is fetched.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn saved(self) -> Result<Option<T>, String> {
        let Some(folder) = self.folder else { return Ok(None) };
        let saved = SavedDocuments::new(folder).read(&self.url.to_string())?;
        saved.map(|document| T::read(&self.context.reading, &document.octets)).transpose()
    }

    /// Starts to follow it. Returns also why what was saved cannot be used, where that is so.
    ///
    /// # Errors
    ///
    /// If the URL of a registry is none of `https`, or if the system gives no thread.
    pub fn start(self) -> io::Result<(Published<T>, Option<String>)> {
        if T::ONLY_HTTPS && !self.url.to_string().starts_with("https://") {
            let message = format!("{} is fetched in the clear: a {} is published at an https URL", self.url, T::NOUN);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let fetcher = self.fetcher.map_or_else(Fetcher::new, Ok)?;
        let following = Following { fetcher, clock: self.clock, saved: self.folder.map(SavedDocuments::new) };
        let (follower, trouble) = Follower::start(self.url, self.context, None, &following);
        Ok((Published { follower: Arc::new(follower), following }, trouble))
    }
}

impl<T: Publishable> Document for Version<T> {
    const MODE: FetchMode = FetchMode::Site;
    const MOST: u64 = 1 << 20;
    const DEMAND: Demand = Demand::Always;
    const GAP: Duration = T::GAP;
    type Context = Context<T>;

    fn schedule() -> Schedule {
        T::schedule()
    }

    fn read(
        context: &Context<T>,
        octets: &[u8],
        content_type: Option<&str>,
        before: Option<&Self>,
    ) -> Result<Self, String> {
        if content_type.is_some_and(|media_type| media_type.trim_start().starts_with("text/html")) {
            return Err(format!("the answer is an HTML page, not a {}", T::NOUN));
        }
        let version = Self::parse(context, octets)?;
        let objection = version.content.objection(before.map(|before| &*before.content));
        let mut state = context.state.lock();
        state.waiting = None;
        if let Some(changes) = objection.filter(|_| !state.accepts(&version.hash)) {
            let waiting = WaitingVersion { hash: version.hash, changes };
            let message = waiting.to_string();
            state.waiting = Some(waiting);
            return Err(message);
        }
        Ok(version)
    }

    fn restore(context: &Context<T>, octets: &[u8]) -> Result<Self, String> {
        let version = Self::parse(context, octets)?;
        // It is no change that a start finds what was there.
        context.state.lock().said.0 = Some(version.hash);
        Ok(version)
    }

    fn concluded(context: &Context<T>, held: Option<&Self>, trouble: Option<&str>) {
        let event = {
            let mut state = context.state.lock();
            let (hash, trouble) = (held.map(|held| held.hash), trouble.map(Arc::<str>::from));
            let (said_hash, said) = std::mem::replace(&mut state.said, (hash, trouble.clone()));
            match (trouble, &state.waiting) {
                _ if hash != said_hash => held.map(|held| PublishedEvent::Changed(held.content.clone(), held.hash)),
                (Some(trouble), _) if said.as_ref() == Some(&trouble) => None,
                (Some(_), Some(waiting)) => Some(PublishedEvent::Waiting(waiting.clone())),
                (Some(trouble), None) => Some(PublishedEvent::Failed(trouble)),
                (None, _) => said.is_some().then_some(PublishedEvent::Recovered),
            }
        };
        if let Some(event) = event {
            (context.on_event)(&event);
        }
    }
}

impl<T: Publishable> Version<T> {
    fn parse(context: &Context<T>, octets: &[u8]) -> Result<Self, String> {
        Ok(Self { content: Arc::new(T::read(&context.reading, octets)?), hash: VersionHash::of(octets) })
    }
}

impl fmt::Display for WaitingVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {} waits to be accepted: {}", self.hash.short(), self.changes)
    }
}

impl<T> fmt::Display for PublishedEvent<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed(_, hash) => write!(f, "version {} is in force", hash.short()),
            Self::Waiting(waiting) => write!(f, "{waiting}; the one before stays in force"),
            Self::Failed(trouble) => write!(f, "{trouble}; the one before stays in force"),
            Self::Recovered => f.write_str("it is fetched again, and has not changed"),
        }
    }
}

impl<T: Publishable> fmt::Debug for PublishedBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublishedBuilder").field("url", &self.url.to_string()).finish_non_exhaustive()
    }
}
