//! A document that is followed: the copy at hand, the time of the next fetch, and the task that does it.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwapOption;
use http::{HeaderValue, StatusCode};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use super::{Demand, Document, FollowError, SavedDocuments};
use crate::live::{Clock, Mutex, VersionHash, VersionHashPrefix};
use crate::source::fetch::{
    Client, FetchOutcome, FetchTarget, FetchUrl, Fetcher, FetcherTask, Schedule, Validators, later,
};

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
/// A `Verifier` follows its lists and directories of keys in the same way.
///
/// Cheap to clone; the last clone that is dropped ends the work.
#[derive(Clone)]
pub struct FollowedDocument<D: Document> {
    followed: Arc<Followed<D>>,
    _task: Arc<FetcherTask>,
}

/// The document that is published, and who is notified of it.
#[expect(missing_debug_implementations, reason = "the builder around it has one")]
pub struct DocumentSettings<D: Document> {
    pub(super) url: FetchUrl,
    pub(super) reading: D::Reading,
    pub(super) accepted: Vec<VersionHashPrefix>,
    pub(super) on_event: Box<OnEvent<D>>,
}

type OnEvent<D> = dyn Fn(&DocumentEvent<D>) + Send + Sync;

/// The tools that following needs.
#[derive(Clone, Debug)]
pub(in crate::source) struct Following {
    pub(in crate::source) fetcher: Fetcher,
    pub(in crate::source) clock: Clock,
    pub(in crate::source) saved: Option<SavedDocuments>,
}

/// One document, read by requests and written by the task that fetches it.
struct Followed<D: Document> {
    url: FetchUrl,
    reading: D::Reading,
    on_event: Box<OnEvent<D>>,
    held: ArcSwapOption<Held<D>>,
    progress: Mutex<Progress>,
    schedule: Schedule,
    is_wanted: AtomicBool,
    wanted: Notify,
    /// When the last fetch began of which the outcome is in force.
    concluded: watch::Sender<Instant>,
    clock: Clock,
    saved: Option<SavedDocuments>,
}

/// A document as it is at hand.
#[derive(Debug)]
pub(in crate::source) struct Held<D> {
    pub(in crate::source) document: Arc<D>,
    pub(in crate::source) origin: &'static str,
    /// When the operator's server last said that it is right.
    pub(in crate::source) confirmed: Option<SystemTime>,
    /// Of its octets, where they were fetched.
    hash: Option<VersionHash>,
    /// Until when HTTP lets it be used without a question.
    fresh_until: SystemTime,
}

/// The origins of a document at hand.
pub(in crate::source) const FETCHED: &str = "fetched";
pub(in crate::source) const SAVED: &str = "saved";
pub(in crate::source) const OWN_FILE: &str = "file";
pub(in crate::source) const EMBEDDED: &str = "embedded";

/// The outcome of an answer: reported once, not at every fetch.
#[derive(Debug)]
#[non_exhaustive]
pub enum DocumentEvent<D> {
    /// Another version is in force.
    Changed(Arc<D>, VersionHash),
    /// A version changes much, and is not used until it is accepted.
    Waiting {
        /// Its hash, to accept it by.
        hash: VersionHash,
        /// The changes.
        changes: String,
    },
    /// It cannot be fetched or used; the one before stays.
    Failed(Arc<str>),
    /// It could be fetched again, and is the one before.
    Recovered,
}

/// How it stands with what is [`FollowedDocument`], or with evidence of a `Verifier`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DocumentStatus {
    /// The URL at which it is published, without its query.
    pub url: String,
    /// The origin of the version at hand: `fetched` by this process, `saved` by an earlier one, the operator's own `file`, or
    /// `embedded`; `None` if there is none.
    pub origin: Option<&'static str>,
    /// How many crawlers, groups, prefixes or keys it has.
    pub entries: Option<usize>,
    /// When its operator made it, as a list of addresses says itself.
    pub created: Option<String>,
    /// Its hash.
    pub hash: Option<VersionHash>,
    /// When its server last said that it is right. Without that a list verifies, and refutes no claim.
    pub confirmed: Option<SystemTime>,
    /// The hash of the version that waits to be accepted, and what it changes.
    pub waiting: Option<(VersionHash, String)>,
    /// Why the last fetch brought nothing.
    pub trouble: Option<Arc<str>>,
}

/// How fetching it goes.
#[derive(Debug)]
struct Progress {
    validators: Validators,
    /// When it was last requested, successfully or not.
    asked: Option<SystemTime>,
    next: SystemTime,
    failures: u32,
    trouble: Option<Arc<str>>,
    accepted: Vec<VersionHashPrefix>,
    waiting: Option<(VersionHash, String)>,
    /// The last report: the version at hand, and why there is no newer one.
    said: (Option<VersionHash>, Option<Arc<str>>),
}

/// The outcome of an answer.
#[derive(Debug, PartialEq, Eq)]
enum Taken {
    /// It is a new document, of these octets.
    New(Arc<[u8]>),
    /// The document at hand was confirmed.
    Confirmed,
    /// The document at hand stays, if there is one.
    Kept,
}

impl<D> Held<D> {
    pub(in crate::source) fn new(document: D, origin: &'static str, confirmed: Option<SystemTime>) -> Self {
        // A document that was not fetched is requested at once.
        Self { document: Arc::new(document), origin, confirmed, hash: None, fresh_until: SystemTime::UNIX_EPOCH }
    }
}

impl<D: Document> FollowedDocument<D> {
    /// Starts to follow a document. Until it is fetched, the saved copy counts, or else the copy at hand.
    ///
    /// Returns also why what was saved cannot be used, where that is so.
    pub(in crate::source) fn start(
        settings: DocumentSettings<D>,
        copy: Option<Held<D>>,
        following: &Following,
    ) -> (Self, Option<FollowError>) {
        let Following { fetcher, clock, saved } = following.clone();
        let DocumentSettings { url, reading, accepted, on_event } = settings;
        let (restored, trouble) = match saved.as_ref().map(|saved| restore(saved, &url, &reading)).transpose() {
            Ok(restored) => (restored.flatten(), None),
            Err(trouble) => (None, Some(trouble)),
        };
        let (held, validators) = match restored {
            Some((held, validators)) => (Some(held), validators),
            None => (copy, Validators::default()),
        };
        let progress = Progress {
            validators,
            asked: None,
            next: clock.now(),
            failures: 0,
            trouble: None,
            accepted,
            waiting: None,
            // It is no change that a start finds what was there.
            said: (held.as_ref().and_then(|held| held.hash), None),
        };
        let followed = Arc::new(Followed {
            url,
            reading,
            on_event,
            held: ArcSwapOption::from(held.map(Arc::new)),
            progress: Mutex::new(progress),
            schedule: D::schedule(),
            is_wanted: AtomicBool::new(D::DEMAND == Demand::Always),
            wanted: Notify::new(),
            concluded: watch::Sender::new(Instant::now()),
            clock,
            saved,
        });
        let follow = followed.clone().follow(fetcher.client.clone());
        (Self { followed, _task: Arc::new(FetcherTask::start(fetcher, follow)) }, trouble)
    }

    /// The version at hand; `None` until one was fetched or saved.
    pub fn current(&self) -> Option<Arc<D>> {
        self.with_held(|held| held.map(|held| held.document.clone()))
    }

    /// Which versions are used whatever they change, in place of those before. A version that waits and is among them is
    /// fetched again at once.
    pub fn accept(&self, hashes: impl IntoIterator<Item: Into<VersionHashPrefix>>) {
        let is_accepted = {
            let mut progress = self.followed.progress.lock();
            progress.accepted = hashes.into_iter().map(Into::into).collect();
            progress.waiting.as_ref().is_some_and(|(hash, _)| progress.accepts(hash))
        };
        if is_accepted {
            self.fetch_now();
        }
    }

    /// Has it fetched again now, though it is not due, and returns once that is done and what came of it is in force, or
    /// [`status`](Self::status) says why not. That takes as long as the fetch, which has a bound.
    pub async fn fetch_again(&self) {
        let (asked, mut concluded) = (Instant::now(), self.followed.concluded.subscribe());
        // One that was under way may have had its answer before.
        while *concluded.borrow_and_update() < asked {
            self.fetch_now();
            let _ = concluded.changed().await;
        }
    }

    /// Fetches it again now.
    fn fetch_now(&self) {
        let followed = &self.followed;
        {
            let mut progress = followed.progress.lock();
            progress.next = followed.clock.now();
            progress.asked = None;
        }
        followed.is_wanted.store(true, Ordering::Release);
        followed.wanted.notify_one();
    }

    /// How it stands.
    pub fn status(&self) -> DocumentStatus {
        let held = self.followed.held.load();
        let held = held.as_deref();
        let progress = self.followed.progress.lock();
        DocumentStatus {
            url: self.followed.url.to_string(),
            origin: held.map(|held| held.origin),
            entries: held.map(|held| held.document.entries()),
            created: held.and_then(|held| held.document.created()),
            hash: held.and_then(|held| held.hash),
            confirmed: held.and_then(|held| held.confirmed),
            waiting: progress.waiting.clone(),
            trouble: progress.trouble.clone().filter(|_| progress.waiting.is_none()),
        }
    }

    /// Reads what is at hand, for the time of a call.
    pub(in crate::source) fn with_held<R>(&self, read: impl FnOnce(Option<&Held<D>>) -> R) -> R {
        read(self.followed.held.load().as_deref())
    }

    /// Whether it was requested from its server, successfully or not.
    pub(in crate::source) fn was_asked(&self) -> bool {
        self.followed.progress.lock().asked.is_some()
    }

    /// A request needs it, and does not find what it needs: it is fetched again as soon as that may be.
    pub(in crate::source) fn want(&self) {
        let Followed { is_wanted, wanted, .. } = &*self.followed;
        if !is_wanted.load(Ordering::Relaxed) && !is_wanted.swap(true, Ordering::AcqRel) {
            wanted.notify_one();
        }
    }

    /// As [`want`](Self::want), where HTTP says that it has to be revalidated.
    pub(in crate::source) fn want_if_stale(&self, now: SystemTime) {
        if self.with_held(|held| held.is_none_or(|held| held.fresh_until <= now)) {
            self.want();
        }
    }
}

robots_core::debug_as!(|it| [D: Document] FollowedDocument::<D> { url: it.followed.url.to_string() });

/// No document is used for longer without a question: a time further ahead is from a clock that was wrong.
const LONGEST_PAUSE: Duration = Duration::from_secs(25 * 60 * 60);

/// How long to sleep at most: the clock may be set meanwhile.
const LONGEST_SLEEP: Duration = if cfg!(test) { Duration::from_millis(10) } else { Duration::from_secs(60) };

impl<D: Document> Followed<D> {
    /// Fetches it whenever it is due.
    async fn follow(self: Arc<Self>, client: Arc<Client>) {
        let dice = RandomState::new();
        loop {
            self.until_due().await;
            let Ok(permit) = client.permits.acquire().await else { return };
            let begun = Instant::now();
            let mut target = FetchTarget::new(self.url.clone(), D::MODE, D::MOST);
            target.known = self.validators();
            let outcome = client.fetch_apart(target).await;
            drop(permit);
            let (followed, now) = (self.clone(), self.clock.now());
            let roll = dice.hash_one(now) as u32;
            // A list of a megabyte takes its time, and so does a disk.
            let concluded = tokio::task::spawn_blocking(move || followed.conclude(outcome, now, roll));
            // A panic over an answer ends nothing.
            let _ = concluded.await;
            self.concluded.send_replace(begun);
        }
    }

    async fn until_due(&self) {
        loop {
            let Some(due) = self.due() else {
                self.wanted.notified().await;
                continue;
            };
            let pause = due.duration_since(self.clock.now()).unwrap_or_default();
            if pause.is_zero() || pause > LONGEST_PAUSE {
                return;
            }
            let _ = timeout(pause.min(LONGEST_SLEEP), self.wanted.notified()).await;
        }
    }

    /// When it is to be fetched; `None` until it is wanted.
    fn due(&self) -> Option<SystemTime> {
        let progress = self.progress.lock();
        let earliest = progress.asked.map_or(progress.next, |asked| later(asked, D::GAP));
        let is_wanted = self.is_wanted.load(Ordering::Acquire);
        match D::DEMAND {
            _ if is_wanted && progress.failures > 0 => Some(progress.next),
            Demand::Always if is_wanted => Some(progress.next.min(earliest)),
            Demand::Always => Some(progress.next),
            Demand::OnRequest => is_wanted.then_some(earliest),
        }
    }

    /// The validators to ask with: none where nothing is at hand that an answer of "not modified" could confirm.
    fn validators(&self) -> Validators {
        let held = self.held.load();
        let is_fetched = |held: &Held<D>| matches!(held.origin, FETCHED | SAVED);
        if held.as_deref().is_some_and(is_fetched) {
            self.progress.lock().validators.clone()
        } else {
            Validators::default()
        }
    }

    /// Takes the outcome of a fetch, saves what is new, and says what is different.
    fn conclude(&self, outcome: FetchOutcome, now: SystemTime, roll: u32) {
        let taken = self.take(outcome, now, roll);
        if let Some(saved) = &self.saved {
            let url = self.url.to_string();
            let octets = match taken {
                Taken::New(octets) => Some(octets),
                Taken::Confirmed => saved.read(&url).ok().flatten().map(|saved| saved.octets.into()),
                Taken::Kept => None,
            };
            let is_saved = octets.map_or(Ok(()), |octets| saved.save(&url, &octets, now, &self.validators()));
            if let Err(error) = is_saved {
                self.progress.lock().trouble = Some(format!("it could not be saved: {error}").into());
            }
        }
        if let Some(event) = self.news() {
            (self.on_event)(&event);
        }
    }

    fn take(&self, outcome: FetchOutcome, now: SystemTime, roll: u32) -> Taken {
        // From here on another request may want it anew.
        self.is_wanted.store(false, Ordering::Release);
        let retry_after = match &outcome {
            FetchOutcome::Status { retry_after, .. } => *retry_after,
            _ => None,
        };
        let read = self.answer(outcome, now);
        let mut progress = self.progress.lock();
        progress.asked = Some(now);
        match read {
            Ok((taken, interval)) => {
                (progress.failures, progress.trouble) = (0, None);
                progress.next = later(now, interval);
                taken
            }
            Err(trouble) => {
                progress.failures = progress.failures.saturating_add(1);
                progress.next = later(now, self.schedule.pause(progress.failures, retry_after, roll));
                progress.trouble = Some(trouble.into());
                Taken::Kept
            }
        }
    }

    fn answer(&self, outcome: FetchOutcome, now: SystemTime) -> Result<(Taken, Duration), String> {
        match outcome {
            FetchOutcome::Found { status: StatusCode::OK, bytes, freshness, validators, content_type } => {
                D::check_media_type(&String::from_utf8_lossy(
                    content_type.as_ref().map_or(b"", HeaderValue::as_bytes),
                ))?;
                let interval = self.schedule.interval(freshness);
                self.read(&bytes, now, interval)?;
                self.progress.lock().validators = validators;
                Ok((Taken::New(bytes), interval))
            }
            FetchOutcome::NotModified(freshness) => {
                let interval = self.schedule.interval(freshness);
                let held = self.held.load_full().ok_or("the answer is 304, and nothing was fetched before")?;
                self.hold(held.document.clone(), held.hash, now, interval);
                Ok((Taken::Confirmed, interval))
            }
            FetchOutcome::Redirected => Err("the answer is a redirect, which is not followed".to_owned()),
            FetchOutcome::Found { status, .. } | FetchOutcome::Status { status, .. } => {
                Err(format!("the answer is {status}"))
            }
            FetchOutcome::Failed(error) => Err(error.to_string()),
        }
    }

    /// Reads a document, and holds it unless it waits to be accepted.
    fn read(&self, octets: &[u8], now: SystemTime, interval: Duration) -> Result<(), String> {
        let document = D::read(&self.reading, octets)?;
        let held = self.held.load_full();
        let fetched = held.as_deref().filter(|held| held.origin != EMBEDDED);
        let before = fetched.map(|held| &*held.document);
        before.map_or(Ok(()), |before| document.check_after(before))?;
        let (hash, objection) = (VersionHash::of(octets), document.objection(before));
        {
            let mut progress = self.progress.lock();
            progress.waiting = None;
            if let Some(changes) = objection.filter(|_| !progress.accepts(&hash)) {
                let trouble = format!("version {} waits to be accepted: {changes}", hash.short());
                progress.waiting = Some((hash, changes));
                return Err(trouble);
            }
        }
        self.hold(Arc::new(document), Some(hash), now, interval);
        Ok(())
    }

    fn hold(&self, document: Arc<D>, hash: Option<VersionHash>, now: SystemTime, interval: Duration) {
        let (confirmed, fresh_until) = (Some(now), later(now, interval));
        let held = Held { document, origin: FETCHED, confirmed, hash, fresh_until };
        self.held.store(Some(Arc::new(held)));
        D::renewed(&self.reading);
    }

    /// The difference from the last report.
    fn news(&self) -> Option<DocumentEvent<D>> {
        let held = self.held.load_full();
        let hash = held.as_ref().and_then(|held| held.hash);
        let mut progress = self.progress.lock();
        let trouble = progress.trouble.clone();
        let (said_hash, said) = std::mem::replace(&mut progress.said, (hash, trouble.clone()));
        match (trouble, &progress.waiting) {
            _ if hash != said_hash => Some(DocumentEvent::Changed(held?.document.clone(), hash?)),
            (Some(trouble), _) if said.as_ref() == Some(&trouble) => None,
            (Some(_), Some((hash, changes))) => Some(DocumentEvent::Waiting { hash: *hash, changes: changes.clone() }),
            (Some(trouble), None) => Some(DocumentEvent::Failed(trouble)),
            (None, _) => said.map(|_| DocumentEvent::Recovered),
        }
    }
}

impl Progress {
    fn accepts(&self, hash: &VersionHash) -> bool {
        self.accepted.iter().any(|accepted| accepted.matches(hash))
    }
}

/// The document that an earlier process saved, and its validators.
fn restore<D: Document>(
    saved: &SavedDocuments,
    url: &FetchUrl,
    reading: &D::Reading,
) -> Result<Option<(Held<D>, Validators)>, FollowError> {
    let Some(saved) = saved.read(&url.to_string())? else { return Ok(None) };
    let document = D::read(reading, &saved.octets).map_err(FollowError::new)?;
    let held = Held::new(document, SAVED, Some(saved.confirmed));
    let hash = Some(VersionHash::of(&saved.octets));
    Ok(Some((Held { hash, ..held }, saved.validators(url))))
}

impl<D> fmt::Display for DocumentEvent<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed(_, hash) => write!(f, "version {} is in force", hash.short()),
            Self::Waiting { hash, changes } => {
                write!(f, "version {} waits to be accepted: {changes}; the one before stays in force", hash.short())
            }
            Self::Failed(trouble) => write!(f, "{trouble}; the one before stays in force"),
            Self::Recovered => f.write_str("it is fetched again, and has not changed"),
        }
    }
}
