//! A registry that is published at a URL, followed as lists are, and the checks that its text has to pass.

use crate::live::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use std::{fmt, io};

use super::document::{Demand, Document, SavedDocuments};
use super::followed::{EvidenceOrigin, Follower, Following};
use super::verification_plan::VerificationPlan;
use crate::agent::{Crawler, Recognizer, Registry, RegistryUpheaval};
use crate::live::{Clock, VersionHash, VersionHashPrefix};
use crate::rules::RobotsTxt;
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
    accepted: Vec<VersionHashPrefix>,
    waiting: Option<WaitingRegistry>,
    /// What was said last: the registry at hand, and why there is no newer one.
    said: (Option<VersionHash>, Option<Arc<str>>),
}

impl ReadingState {
    fn accepts(&self, hash: &VersionHash) -> bool {
        self.accepted.iter().any(|accepted| accepted.matches(hash))
    }
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
    pub fn registry(&self) -> Option<Arc<Registry>> {
        self.follower.followed.with_held(|held| held.map(|held| held.document.registry.clone()))
    }

    /// Which versions are used whatever they change, in place of those before. A version that waits and is among them is
    /// fetched again at once.
    pub fn accept(&self, hashes: impl IntoIterator<Item: Into<VersionHashPrefix>>) {
        let followed = &self.follower.followed;
        let is_accepted = {
            let mut state = followed.context.state.lock();
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
    pub fn status(&self) -> PublishedRegistryStatus {
        let followed = &self.follower.followed;
        let held = followed.held();
        let waiting = followed.context.state.lock().waiting.clone();
        PublishedRegistryStatus {
            url: followed.url.to_string(),
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
    pub fn accept(mut self, hashes: impl IntoIterator<Item: Into<VersionHashPrefix>>) -> Self {
        self.reading.state.get_mut().accepted = hashes.into_iter().map(Into::into).collect();
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
        let mut state = context.state.lock();
        state.waiting = None;
        if !upheavals.is_empty() && !state.accepts(&version.hash) {
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
        context.state.lock().said.0 = Some(version.hash);
        Ok(version)
    }

    fn concluded(context: &RegistryReading, held: Option<&Self>, trouble: Option<&str>) {
        let event = {
            let mut state = context.state.lock();
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

impl fmt::Display for WaitingRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {} waits to be accepted: ", self.hash.short())?;
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
            Self::Changed(hash) => write!(f, "version {} is in force", hash.short()),
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

/// Crawlers in a registry at most: the built-in one has some 720.
const MOST_CRAWLERS: usize = 10_000;

/// The longest value of a row, in octets; headers are longer than names.
const LONGEST: usize = 512;

/// Headers of the browsers that most people have: a name that is found in one is no crawler's.
const BROWSERS: &[&str] = &[
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:145.0) Gecko/20100101 Firefox/145.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15",
    "Mozilla/5.0 (X11; Ubuntu; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 OPR/124.0.0.0",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (iPad; CPU OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/142.0.0.0 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/29.0 Chrome/136.0.0.0 Mobile Safari/537.36",
    "Mozilla/5.0 (Android 15; Mobile; rv:145.0) Gecko/145.0 Firefox/145.0",
];

/// The text, if it is one. A registry that comes over the network is checked beyond the rows of an operator's own file.
fn check_text(octets: &[u8]) -> Result<&str, String> {
    let text = std::str::from_utf8(octets).map_err(|error| {
        let before = &octets[..error.valid_up_to()];
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        format!("line {line} is not UTF-8")
    })?;
    if text.trim_start().starts_with('<') {
        return Err("it is an HTML or XML page, not a registry".to_owned());
    }
    Ok(text)
}

/// Whether a registry may be used: it is of a size and of characters that names have, what it leads to is fetched over
/// `https`, and no browser of people's is a crawler by it.
fn check_use(registry: &Registry) -> Result<(), String> {
    let rows = registry.crawlers().len();
    if rows > MOST_CRAWLERS {
        return Err(format!("it has {rows} crawlers, more than {MOST_CRAWLERS}"));
    }
    registry.crawlers().try_for_each(row)?;
    VerificationPlan::of(registry, &[]).map_err(|error| error.to_string())?;
    let recognizer = Recognizer::new(Arc::new(registry.clone()), &RobotsTxt::parse(&b""[..]));
    for browser in BROWSERS {
        if let Some(crawler) = recognizer.identify(browser.as_bytes()).registered() {
            return Err(format!("crawler {:?} would be every browser that sends {browser:?}", &crawler.name));
        }
    }
    Ok(())
}

fn row(crawler: &Crawler) -> Result<(), String> {
    let name = &crawler.name;
    let Crawler { header_names, requires, ranges, reverse_dns, examples, signature, source, .. } = crawler;
    let texts = [name, &crawler.operator].into_iter();
    let texts = texts.chain(header_names).chain(requires).chain(reverse_dns);
    for text in texts.chain(source).chain(examples).chain(ranges).chain(signature) {
        if text.len() > LONGEST {
            return Err(format!("crawler {:?}: a value has {} octets, more than {LONGEST}", short(name), text.len()));
        }
        if let Some(character) = text.chars().find(|character| character.is_control() || is_bidirectional(*character)) {
            return Err(format!(
                "crawler {:?}: {:?} holds {character:?}, which is not shown",
                short(name),
                short(text)
            ));
        }
    }
    for address in ranges.iter().chain(signature) {
        if !address.starts_with("https://") {
            return Err(format!("crawler {name:?}: {address:?} is fetched in the clear: write an https URL"));
        }
    }
    Ok(())
}

/// Whether a character changes the direction in which others are shown.
const fn is_bidirectional(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn short(text: &str) -> String {
    text.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Category;

    fn wrong(change: impl FnOnce(Crawler) -> Crawler) -> Option<String> {
        let row = change(Crawler::new("HouseBot", Category::Seo));
        check_use(&Registry::builtin().extended_with([row]).expect("a registry")).err()
    }

    #[test]
    fn the_builtin_registry_could_be_published() {
        assert_eq!(check_use(Registry::builtin()), Ok(()));
        assert_eq!(
            wrong(|row| Crawler {
                source: Some("https://house.example/bot".into()), operator: "Häuser".into(), ..row
            }),
            None
        );
    }

    #[test]
    fn values_that_no_name_has_are_refused() {
        for (wrong, want) in [
            (wrong(|row| Crawler { operator: "a\u{1b}[2Jb".into(), ..row }), "which is not shown"),
            (wrong(|row| Crawler { operator: "a\nb".into(), ..row }), "'\\n', which is not shown"),
            (wrong(|row| Crawler { operator: "a\u{202e}b".into(), ..row }), "which is not shown"),
            (wrong(|row| Crawler { examples: vec!["x".repeat(513)], ..row }), "a value has 513 octets, more than 512"),
            (
                wrong(|row| Crawler { ranges: vec!["http://house.example/list".into()], ..row }),
                "is fetched in the clear: write an https URL",
            ),
            (
                wrong(|row| Crawler { signature: Some("http://house.example".into()), ..row }),
                "\"http://house.example\" is fetched in the clear",
            ),
            (wrong(|row| Crawler { reverse_dns: vec!["*.*".into()], ..row }), "rdns"),
            (wrong(|row| Crawler { header_names: vec!["Safari".into()], ..row }), "would be every browser that sends"),
            (
                wrong(|row| Crawler { header_names: vec!["Firefox".into()], ..row }),
                "crawler \"HouseBot\" would be every browser",
            ),
        ] {
            assert!(wrong.as_deref().is_some_and(|wrong| wrong.contains(want)), "{wrong:?}, not {want}");
        }
        let many = (0..10_000).map(|number| Crawler::new(format!("House{number}Bot"), Category::Seo));
        let many = Registry::builtin().extended_with(many).expect("a registry");
        assert!(check_use(&many).is_err_and(|error| error.contains("more than 10000")));
    }

    #[test]
    fn what_is_no_text_is_refused_with_its_line() {
        assert_eq!(check_text(b"# one\n# \xff\n"), Err("line 2 is not UTF-8".to_owned()));
        assert!(check_text(b"\n<!DOCTYPE html>").is_err() && check_text(b"# rows\n").is_ok());
    }
}
