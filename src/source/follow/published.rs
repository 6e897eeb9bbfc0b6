//! A document that is fetched regularly: its current copy, the time of its next fetch, and the task
//! that fetches it.

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

/// A [`Registry`](crate::agent::Registry) or a [`Fragment`](crate::rules::Fragment) that is
/// published at a URL and kept up to date on the thread of a [`Fetcher`].
///
/// 1. The document is fetched again with conditional requests, at times that depend on its
///    `Cache-Control`. Registries are fetched about once a day, and at most once an hour. Fragments
///    are fetched about once an hour. At most 1 MiB of a response is read.
/// 2. If a fetch fails or the response is unusable, the last good version stays in use. If a folder
///    is set, this version is also available after a restart, even without network access.
/// 3. A registry with drastic changes
///    ([`Registry::drastic_changes`](crate::agent::Registry::drastic_changes)) is not used until
///    its hash is [accepted](Self::accept).
///
/// A `Verifier` keeps its lists and key directories up to date in the same way.
///
/// Cloning is cheap. When the last clone is dropped, the task stops.
#[derive(Clone)]
pub struct FollowedDocument<D: Document> {
    followed: Arc<Followed<D>>,
    _task: Arc<FetcherTask>,
}

/// The settings of a document that is fetched regularly, with its event callback.
#[expect(missing_debug_implementations, reason = "the builder of these settings implements `Debug`")]
pub struct DocumentSettings<D: Document> {
    pub(super) url: FetchUrl,
    pub(super) reading: D::Reading,
    pub(super) accepted: Vec<VersionHashPrefix>,
    pub(super) on_event: Box<OnEvent<D>>,
}

type OnEvent<D> = dyn Fn(&DocumentEvent<D>) + Send + Sync;

#[derive(Clone, Debug)]
pub(in crate::source) struct Following {
    pub(in crate::source) fetcher: Fetcher,
    pub(in crate::source) clock: Clock,
    pub(in crate::source) saved: Option<SavedDocuments>,
}

struct Followed<D: Document> {
    url: FetchUrl,
    reading: D::Reading,
    on_event: Box<OnEvent<D>>,
    held: ArcSwapOption<CurrentCopy<D>>,
    progress: Mutex<Progress>,
    schedule: Schedule,
    is_wanted: AtomicBool,
    wanted: Notify,
    /// Start time of the last fetch whose outcome has been applied.
    concluded: watch::Sender<Instant>,
    clock: Clock,
    saved: Option<SavedDocuments>,
}

#[derive(Debug)]
pub(in crate::source) struct CurrentCopy<D> {
    pub(in crate::source) document: Arc<D>,
    pub(in crate::source) origin: &'static str,
    /// When the document's server last confirmed that this copy is current.
    pub(in crate::source) confirmed: Option<SystemTime>,
    /// Hash of the document's bytes. `None` if neither this nor an earlier process has fetched the
    /// document.
    hash: Option<VersionHash>,
    /// End of the time in which `Cache-Control` allows the document to be used without another
    /// request.
    fresh_until: SystemTime,
}

/// [`DocumentStatus::origin`] of a version that this process has fetched.
pub(in crate::source) const FETCHED: &str = "fetched";
/// [`DocumentStatus::origin`] of a version that an earlier process has saved.
pub(in crate::source) const SAVED: &str = "saved";
/// [`DocumentStatus::origin`] of the operator's own copy.
pub(in crate::source) const OWN_FILE: &str = "file";
/// [`DocumentStatus::origin`] of a copy that is part of this crate.
pub(in crate::source) const EMBEDDED: &str = "embedded";

/// A change of a document that is fetched regularly. Each change is reported only once.
#[derive(Debug)]
#[non_exhaustive]
pub enum DocumentEvent<D> {
    /// A new version is in use.
    Changed(Arc<D>, VersionHash),
    /// A version has drastic changes, and is not used until it is accepted.
    Waiting {
        /// Hash of the version, for [`FollowedDocument::accept`].
        hash: VersionHash,
        /// The drastic changes of the version.
        changes: String,
    },
    /// The document cannot be fetched or used, so the previous version stays in use.
    Failed(Arc<str>),
    /// A fetch succeeded after failures; the document has not changed.
    Recovered,
}

/// The status of a [`FollowedDocument`], or of one of the documents of a `Verifier`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DocumentStatus {
    /// URL of the document, without its query.
    pub url: String,
    /// Where the current version comes from: `fetched` (by this process), `saved` (by an earlier
    /// process), `file` (the operator's own copy) or `embedded`. `None` if there is no version.
    pub origin: Option<&'static str>,
    /// Number of entries in the document: crawlers, groups, prefixes or keys, depending on its
    /// kind.
    pub entries: Option<usize>,
    /// When the document was created, according to the document itself. Some lists of addresses
    /// contain this time.
    pub created: Option<String>,
    /// Hash of the current version.
    pub hash: Option<VersionHash>,
    /// When the server last sent the document, or confirmed that it has not changed. `None` if this
    /// time is unknown. A list whose time is unknown can verify claims, but cannot refute claims.
    pub confirmed: Option<SystemTime>,
    /// Hash of the pending version, and its drastic changes.
    pub waiting: Option<(VersionHash, String)>,
    /// Why the last fetch failed.
    pub problem: Option<Arc<str>>,
    /// Why the current version could not be saved for the next start.
    pub save_problem: Option<Arc<str>>,
}

#[derive(Debug)]
struct Progress {
    validators: Validators,
    /// When the document was last requested, successfully or not.
    asked: Option<SystemTime>,
    next: SystemTime,
    failures: u32,
    problem: Option<Arc<str>>,
    save_problem: Option<Arc<str>>,
    accepted: Vec<VersionHashPrefix>,
    waiting: Option<(VersionHash, String)>,
    /// The contents of the last report: the hash of the version in use, and the problem, if any.
    last_reported: (Option<VersionHash>, Option<Arc<str>>),
}

/// The effect of a response on the current version of the document.
#[derive(Debug, PartialEq, Eq)]
enum Taken {
    New(Arc<[u8]>),
    Confirmed,
    Kept,
}

impl<D> CurrentCopy<D> {
    pub(in crate::source) fn new(document: D, origin: &'static str, confirmed: Option<SystemTime>) -> Self {
        // `fresh_until` is in the past, so that a document that was never fetched is requested
        // immediately.
        Self { document: Arc::new(document), origin, confirmed, hash: None, fresh_until: SystemTime::UNIX_EPOCH }
    }
}

impl<D: Document> FollowedDocument<D> {
    /// Starts a task that keeps a document up to date. Until the first fetch, uses the saved copy,
    /// or `copy` if there is no saved copy.
    ///
    /// If the saved copy cannot be used, also returns the reason.
    pub(in crate::source) fn start(
        settings: DocumentSettings<D>,
        copy: Option<CurrentCopy<D>>,
        following: &Following,
    ) -> (Self, Option<FollowError>) {
        let Following { fetcher, clock, saved } = following.clone();
        let DocumentSettings { url, reading, accepted, on_event } = settings;
        let (restored, problem) = match saved.as_ref().map(|saved| restore(saved, &url, &reading)).transpose() {
            Ok(restored) => (restored.flatten(), None),
            Err(problem) => (None, Some(problem)),
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
            problem: None,
            save_problem: None,
            accepted,
            waiting: None,
            // The version that is available at the start is not reported as a change.
            last_reported: (held.as_ref().and_then(|held| held.hash), None),
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
        (Self { followed, _task: Arc::new(FetcherTask::start(fetcher, follow)) }, problem)
    }

    /// Returns the current version; `None` if no version is available yet.
    pub fn current(&self) -> Option<Arc<D>> {
        self.with_current_copy(|held| held.map(|held| held.document.clone()))
    }

    /// Replaces the list of accepted versions. If the list contains the pending version, the
    /// document is fetched again immediately.
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

    /// Fetches the document now, even if its next fetch is planned for later. Returns when the
    /// outcome has been applied. If the fetch fails, [`status`](Self::status) contains the reason.
    /// Waits no longer than the time limit of a fetch.
    pub async fn fetch_again(&self) {
        let (asked, mut concluded) = (Instant::now(), self.followed.concluded.subscribe());
        // A fetch that began before this call may return an older version, so the loop waits for a
        // fetch that began later.
        while *concluded.borrow_and_update() < asked {
            self.fetch_now();
            let _ = concluded.changed().await;
        }
    }

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

    /// Returns the status of the document.
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
            problem: progress.problem.clone().filter(|_| progress.waiting.is_none()),
            save_problem: progress.save_problem.clone(),
        }
    }

    pub(in crate::source) fn with_current_copy<R>(&self, read: impl FnOnce(Option<&CurrentCopy<D>>) -> R) -> R {
        read(self.followed.held.load().as_deref())
    }

    /// Reports whether the document was ever requested, successfully or not.
    pub(in crate::source) fn was_requested(&self) -> bool {
        self.followed.progress.lock().asked.is_some()
    }

    /// Records that a request needs a new copy of the document, because the current copy is missing
    /// or insufficient. The document is fetched as soon as [`Document::GAP`] allows it.
    pub(in crate::source) fn request_copy(&self) {
        let Followed { is_wanted, wanted, .. } = &*self.followed;
        if !is_wanted.load(Ordering::Relaxed) && !is_wanted.swap(true, Ordering::AcqRel) {
            wanted.notify_one();
        }
    }

    /// Calls [`request_copy`](Self::request_copy) if the copy must be revalidated according to the
    /// document's `Cache-Control`.
    pub(in crate::source) fn request_if_stale(&self, now: SystemTime) {
        if self.with_current_copy(|held| held.is_none_or(|held| held.fresh_until <= now)) {
            self.request_copy();
        }
    }
}

robots_core::debug_as!(|it| [D: Document] FollowedDocument::<D> { url: it.followed.url.to_string() });

/// Maximum plausible time until the next fetch. A longer time means that the clock was wrong when
/// the time was computed.
const MAX_PAUSE: Duration = Duration::from_secs(25 * 60 * 60);

/// Maximum length of one sleep. The clock is read again after each sleep, because it may have been
/// set in the meantime.
const MAX_SLEEP: Duration = if cfg!(test) { Duration::from_millis(10) } else { Duration::from_secs(60) };

impl<D: Document> Followed<D> {
    async fn follow(self: Arc<Self>, client: Arc<Client>) {
        let dice = RandomState::new();
        loop {
            self.until_due().await;
            let Ok(permit) = client.permits.acquire().await else { return };
            let begun = Instant::now();
            let mut target = FetchTarget::new(self.url.clone(), D::MODE, D::MAX_BYTES);
            target.known = self.validators();
            let outcome = client.fetch_in_task(target).await;
            drop(permit);
            let (followed, now) = (self.clone(), self.clock.now());
            let roll = dice.hash_one(now) as u32;
            // The outcome is applied on another thread, because parsing up to 1 MiB and writing to
            // the disk would block this thread.
            let concluded = tokio::task::spawn_blocking(move || followed.conclude(outcome, now, roll));
            // If the other thread panics, this task continues.
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
            if pause.is_zero() || pause > MAX_PAUSE {
                return;
            }
            let _ = timeout(pause.min(MAX_SLEEP), self.wanted.notified()).await;
        }
    }

    /// Returns the time of the next fetch; `None` if the document is fetched only on request, and
    /// no request needs it now.
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

    /// Returns the validators for the next request. Returns no validators if the current copy was
    /// not fetched, because a 304 response cannot confirm such a copy.
    fn validators(&self) -> Validators {
        let held = self.held.load();
        let is_fetched = |held: &CurrentCopy<D>| matches!(held.origin, FETCHED | SAVED);
        if held.as_deref().is_some_and(is_fetched) {
            self.progress.lock().validators.clone()
        } else {
            Validators::default()
        }
    }

    fn conclude(&self, outcome: FetchOutcome, now: SystemTime, roll: u32) {
        let taken = self.take(outcome, now, roll);
        if let Some(saved) = &self.saved {
            let bytes = match taken {
                Taken::New(bytes) => Some(bytes),
                // The 304 response confirms the current version. The folder contains an older
                // version if the current version could not be saved, so the hashes are compared.
                Taken::Confirmed => {
                    let hash = self.held.load().as_ref().and_then(|held| held.hash);
                    let saved = saved.read(&self.url).ok().flatten();
                    saved.filter(|saved| hash == Some(VersionHash::of(&saved.bytes))).map(|saved| saved.bytes.into())
                }
                Taken::Kept => None,
            };
            if let Some(bytes) = bytes {
                let is_saved = saved.save(&self.url, &bytes, now, &self.validators());
                self.progress.lock().save_problem = is_saved.err().map(|error| error.to_string().into());
            }
        }
        if let Some(event) = self.next_event() {
            (self.on_event)(&event);
        }
    }

    fn take(&self, outcome: FetchOutcome, now: SystemTime, roll: u32) -> Taken {
        // A request that arrives after this line may cause another fetch.
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
                (progress.failures, progress.problem) = (0, None);
                progress.next = later(now, interval);
                taken
            }
            Err(problem) => {
                progress.failures = progress.failures.saturating_add(1);
                progress.next = later(now, self.schedule.pause(progress.failures, retry_after, roll));
                progress.problem = Some(problem.into());
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
                let held = self.held.load_full().filter(|_| !self.validators().is_empty());
                let held = held.ok_or("the server answered with 304, but the request was not conditional")?;
                self.hold(held.document.clone(), held.hash, now, interval);
                Ok((Taken::Confirmed, interval))
            }
            FetchOutcome::Redirected => Err("the server answered with a redirect, which is not followed".to_owned()),
            FetchOutcome::Found { status, .. } | FetchOutcome::Status { status, .. } => {
                Err(format!("the server answered {status}"))
            }
            FetchOutcome::Failed(error) => Err(error.to_string()),
        }
    }

    /// Parses a document, which becomes the current version, or the pending version if it must be
    /// accepted first.
    fn read(&self, bytes: &[u8], now: SystemTime, interval: Duration) -> Result<(), String> {
        let document = D::read(&self.reading, bytes)?;
        let held = self.held.load_full();
        let fetched = held.as_deref().filter(|held| matches!(held.origin, FETCHED | SAVED));
        let before = fetched.map(|held| &*held.document);
        before.map_or(Ok(()), |before| document.check_after(before))?;
        let (hash, objection) = (VersionHash::of(bytes), document.objection(before));
        {
            let mut progress = self.progress.lock();
            progress.waiting = None;
            if let Some(changes) = objection.filter(|_| !progress.accepts(&hash)) {
                let problem = format!("version {version} is held until accepted: {changes}", version = hash.short());
                progress.waiting = Some((hash, changes));
                return Err(problem);
            }
        }
        self.hold(Arc::new(document), Some(hash), now, interval);
        Ok(())
    }

    fn hold(&self, document: Arc<D>, hash: Option<VersionHash>, now: SystemTime, interval: Duration) {
        let (confirmed, fresh_until) = (Some(now), later(now, interval));
        let held = CurrentCopy { document, origin: FETCHED, confirmed, hash, fresh_until };
        self.held.store(Some(Arc::new(held)));
        D::renewed(&self.reading);
    }

    /// Returns the event to report if the version in use or the problem has changed since the last
    /// report.
    fn next_event(&self) -> Option<DocumentEvent<D>> {
        let held = self.held.load_full();
        let hash = held.as_ref().and_then(|held| held.hash);
        let mut progress = self.progress.lock();
        let problem = progress.problem.clone();
        let (last_hash, last_reported) = std::mem::replace(&mut progress.last_reported, (hash, problem.clone()));
        match (problem, &progress.waiting) {
            _ if hash != last_hash => Some(DocumentEvent::Changed(held?.document.clone(), hash?)),
            (Some(problem), _) if last_reported.as_ref() == Some(&problem) => None,
            (Some(_), Some((hash, changes))) => Some(DocumentEvent::Waiting { hash: *hash, changes: changes.clone() }),
            (Some(problem), None) => Some(DocumentEvent::Failed(problem)),
            (None, _) => last_reported.map(|_| DocumentEvent::Recovered),
        }
    }
}

impl Progress {
    fn accepts(&self, hash: &VersionHash) -> bool {
        self.accepted.iter().any(|accepted| accepted.matches(hash))
    }
}

fn restore<D: Document>(
    saved: &SavedDocuments,
    url: &FetchUrl,
    reading: &D::Reading,
) -> Result<Option<(CurrentCopy<D>, Validators)>, FollowError> {
    let Some(saved) = saved.read(url)? else { return Ok(None) };
    let document = D::read(reading, &saved.bytes).map_err(FollowError::new)?;
    let held = CurrentCopy::new(document, SAVED, Some(saved.confirmed));
    let hash = Some(VersionHash::of(&saved.bytes));
    Ok(Some((CurrentCopy { hash, ..held }, saved.validators(url))))
}

impl<D> fmt::Display for DocumentEvent<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed(_, hash) => write!(f, "version {version} is used now", version = hash.short()),
            Self::Waiting { hash, changes } => {
                write!(
                    f,
                    "version {version} is held until accepted: {changes}; the previous version stays in use",
                    version = hash.short()
                )
            }
            Self::Failed(problem) => write!(f, "{problem}; the previous version stays in use"),
            Self::Recovered => f.write_str("the document can be fetched again; its content has not changed"),
        }
    }
}
