//! A document that is followed: what is at hand of it, when it is fetched again, and the task that does so.

use crate::live::Mutex;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use std::{fmt, io};

use arc_swap::ArcSwapOption;
use http::{HeaderValue, StatusCode};
use robots_core::keyword_enum;
use tokio::sync::{Notify, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::document::{Demand, Document, SavedDocuments};
use crate::live::Clock;
use crate::source::fetch::{Client, FetchOutcome, FetchTarget, FetchUrl, Fetcher, Found, Schedule, Validators, later};

/// One document, read by requests and written by the task that fetches it.
pub(super) struct Followed<D: Document> {
    pub(super) url: FetchUrl,
    pub(super) context: D::Context,
    held: ArcSwapOption<Held<D>>,
    progress: Mutex<Progress>,
    schedule: Schedule,
    is_wanted: AtomicBool,
    wanted: Notify,
}

/// A document as it is at hand.
#[derive(Debug)]
pub(super) struct Held<D> {
    pub(super) document: Arc<D>,
    pub(super) origin: EvidenceOrigin,
    /// When the operator's server last said that it is right.
    pub(super) confirmed: Option<SystemTime>,
    /// Until when HTTP lets it be used without a question.
    fresh_until: SystemTime,
}

keyword_enum! {
    /// Where a document at hand is from.
    EvidenceOrigin, "where evidence is from", {
        /// It was fetched by this process.
        Fetched = "fetched",
        /// It was fetched by an earlier process, which saved it.
        Saved = "saved",
        /// The operator's own file.
        File = "file",
        /// It is compiled in.
        Embedded = "embedded",
    }
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
}

/// What became of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is a new document, of these octets.
    New(Arc<[u8]>),
    /// The document at hand was confirmed.
    Confirmed,
    /// The document at hand stays, if there is one.
    Kept,
}

impl<D: Document> Held<D> {
    pub(super) fn new(document: D, origin: EvidenceOrigin, confirmed: Option<SystemTime>) -> Self {
        // What was not fetched is requested at once.
        Self { document: Arc::new(document), origin, confirmed, fresh_until: SystemTime::UNIX_EPOCH }
    }
}

impl<D: Document> Followed<D> {
    /// A document that is to be fetched now or on request; until then what is `held` counts.
    pub(super) fn new(
        url: FetchUrl,
        context: D::Context,
        held: Option<Held<D>>,
        validators: Validators,
        now: SystemTime,
    ) -> Self {
        Self {
            url,
            context,
            held: ArcSwapOption::from(held.map(Arc::new)),
            progress: Mutex::new(Progress { validators, asked: None, next: now, failures: 0, trouble: None }),
            schedule: D::schedule(),
            is_wanted: AtomicBool::new(D::DEMAND == Demand::Always),
            wanted: Notify::new(),
        }
    }

    /// What is at hand.
    pub(super) fn held(&self) -> Option<Arc<Held<D>>> {
        self.held.load_full()
    }

    /// The same for the time of a call: cheaper.
    pub(super) fn with_held<R>(&self, read: impl FnOnce(Option<&Held<D>>) -> R) -> R {
        read(self.held.load().as_deref())
    }

    /// Why the last fetch brought nothing, if it did not.
    pub(super) fn trouble(&self) -> Option<Arc<str>> {
        self.progress.lock().trouble.clone()
    }

    /// Whether it was requested from its server, successfully or not.
    pub(super) fn was_asked(&self) -> bool {
        self.progress.lock().asked.is_some()
    }

    /// A request needs it, and does not find what it needs: it is fetched again as soon as that may be.
    pub(super) fn want(&self) {
        if !self.is_wanted.load(Ordering::Relaxed) && !self.is_wanted.swap(true, Ordering::AcqRel) {
            self.wanted.notify_one();
        }
    }

    /// As [`want`](Self::want), where HTTP says that it has to be revalidated.
    pub(super) fn want_if_stale(&self, now: SystemTime) {
        if self.with_held(|held| held.is_none_or(|held| held.fresh_until <= now)) {
            self.want();
        }
    }

    /// An operator wants it: it is fetched now.
    pub(super) fn want_now(&self, now: SystemTime) {
        {
            let mut progress = self.progress.lock();
            progress.next = now;
            progress.asked = None;
        }
        self.is_wanted.store(true, Ordering::Release);
        self.wanted.notify_one();
    }

    /// Completes with the next [`want`](Self::want), or with an earlier one that was not waited for.
    pub(super) async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// When it is to be fetched; `None` until it is wanted.
    pub(super) fn due(&self) -> Option<SystemTime> {
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
    pub(super) fn validators(&self) -> Validators {
        let is_fetched = self.with_held(|held| {
            held.is_some_and(|held| matches!(held.origin, EvidenceOrigin::Fetched | EvidenceOrigin::Saved))
        });
        if is_fetched { self.progress.lock().validators.clone() } else { Validators::default() }
    }

    /// What was fetched could not be saved for the next start.
    pub(super) fn not_saved(&self, error: &io::Error) {
        self.progress.lock().trouble = Some(format!("it could not be saved: {error}").into());
    }

    /// Takes the outcome of a fetch.
    pub(super) fn take(&self, outcome: FetchOutcome, now: SystemTime, roll: u32) -> Taken {
        // From here on another request may want it anew.
        self.is_wanted.store(false, Ordering::Release);
        let retry_after = match &outcome {
            FetchOutcome::Status { retry_after, .. } => *retry_after,
            _ => None,
        };
        let concluded = self.conclude(outcome, now);
        let mut progress = self.progress.lock();
        progress.asked = Some(now);
        match concluded {
            Ok((taken, validators, interval)) => {
                if let Some(validators) = validators {
                    progress.validators = validators;
                }
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

    fn conclude(
        &self,
        outcome: FetchOutcome,
        now: SystemTime,
    ) -> Result<(Taken, Option<Validators>, Duration), String> {
        match outcome {
            FetchOutcome::Found(found) => self.read(&found, now),
            FetchOutcome::NotModified(freshness) => {
                let interval = self.schedule.interval(freshness);
                let held = self.held().ok_or("the answer is 304, and nothing was fetched before")?;
                self.hold(held.document.clone(), now, interval);
                Ok((Taken::Confirmed, None, interval))
            }
            FetchOutcome::Redirected => Err("the answer is a redirect, which is not followed".to_owned()),
            FetchOutcome::Status { status, .. } => Err(format!("the answer is {status}")),
            FetchOutcome::Failed(error) => Err(error.to_string()),
        }
    }

    fn read(&self, found: &Found, now: SystemTime) -> Result<(Taken, Option<Validators>, Duration), String> {
        if found.status != StatusCode::OK {
            return Err(format!("the answer is {}", found.status));
        }
        let content_type =
            found.content_type.as_ref().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let held = self.held();
        let fetched = held.as_deref().filter(|held| held.origin != EvidenceOrigin::Embedded);
        let before = fetched.map(|held| &*held.document);
        let document = D::read(&self.context, &found.bytes, content_type.as_deref(), before)?;
        let interval = self.schedule.interval(found.freshness);
        self.hold(Arc::new(document), now, interval);
        Ok((Taken::New(found.bytes.clone()), Some(found.validators.clone()), interval))
    }

    fn hold(&self, document: Arc<D>, confirmed: SystemTime, interval: Duration) {
        self.held.store(Some(Arc::new(Held {
            document,
            origin: EvidenceOrigin::Fetched,
            confirmed: Some(confirmed),
            fresh_until: later(confirmed, interval),
        })));
        D::replaced(&self.context);
    }
}

impl<D: Document> fmt::Debug for Followed<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Followed").field("url", &self.url.to_string()).finish_non_exhaustive()
    }
}

/// The validators that were saved with a document.
fn saved_validators(etag: Option<&str>, last_modified: Option<&str>, of: &FetchUrl) -> Validators {
    let value = |text: Option<&str>| text.and_then(|text| HeaderValue::from_str(text).ok());
    Validators::saved(value(etag), value(last_modified), of.clone())
}

/// No document is used for longer without a question: a time further ahead is from a clock that was wrong.
const LONGEST_PAUSE: Duration = Duration::from_secs(25 * 60 * 60);

/// How long to sleep at most: the clock may be set meanwhile.
const LONGEST_SLEEP: Duration = if cfg!(test) { Duration::from_millis(10) } else { Duration::from_secs(60) };

/// A document that is followed until this is dropped.
#[derive(Debug)]
pub(super) struct Follower<D: Document> {
    pub(super) followed: Arc<Followed<D>>,
    task: AbortHandle,
}

/// What following needs.
#[derive(Clone, Debug)]
pub(super) struct Following {
    pub(super) fetcher: Fetcher,
    pub(super) clock: Clock,
    pub(super) saved: Option<SavedDocuments>,
}

struct FollowTask<D: Document> {
    followed: Arc<Followed<D>>,
    client: Arc<Client>,
    permits: Arc<Semaphore>,
    clock: Clock,
    saved: Option<SavedDocuments>,
    dice: RandomState,
}

impl<D: Document> Follower<D> {
    /// Starts to follow a document. Until it is fetched, what was saved counts, or else the copy at hand.
    ///
    /// Returns also why what was saved cannot be used, where that is so.
    pub(super) fn start(
        url: FetchUrl,
        context: D::Context,
        copy: Option<Held<D>>,
        following: &Following,
    ) -> (Self, Option<String>) {
        let (saved, trouble) = match read_saved(&url, &context, following.saved.as_ref()) {
            Ok(saved) => (saved, None),
            Err(trouble) => (None, Some(trouble)),
        };
        let (held, validators) = match saved {
            Some((held, validators)) => (Some(held), validators),
            None => (copy, Validators::default()),
        };
        let followed = Arc::new(Followed::new(url, context, held, validators, following.clock.now()));
        let task = FollowTask {
            followed: followed.clone(),
            client: following.fetcher.client().clone(),
            permits: following.fetcher.permits().clone(),
            clock: following.clock.clone(),
            saved: following.saved.clone(),
            dice: RandomState::new(),
        };
        let task = following.fetcher.handle().spawn(task.run()).abort_handle();
        (Self { followed, task }, trouble)
    }
}

impl<D: Document> Drop for Follower<D> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<D: Document> FollowTask<D> {
    async fn run(self) {
        loop {
            self.until_due().await;
            let Ok(permit) = self.permits.acquire().await else { return };
            let target = FetchTarget::document(self.followed.url.clone(), D::MOST);
            let outcome = self.client.fetch_apart(target, self.followed.validators(), D::MODE, 0).await;
            drop(permit);
            let (followed, saved) = (self.followed.clone(), self.saved.clone());
            let now = self.clock.now();
            let roll = self.dice.hash_one(now) as u32;
            // A list of a megabyte takes its time, and so does a disk.
            let taken = tokio::task::spawn_blocking(move || {
                let taken = followed.take(outcome, now, roll);
                if let Some(Err(error)) = saved.map(|saved| save(&saved, &followed, &taken, now)) {
                    followed.not_saved(&error);
                }
                let held = followed.held();
                D::concluded(
                    &followed.context,
                    held.as_deref().map(|held| &*held.document),
                    followed.trouble().as_deref(),
                );
            });
            // A panic over an answer ends nothing.
            let _ = taken.await;
        }
    }

    async fn until_due(&self) {
        loop {
            let Some(due) = self.followed.due() else {
                self.followed.wanted().await;
                continue;
            };
            let pause = due.duration_since(self.clock.now()).unwrap_or_default();
            if pause.is_zero() || pause > LONGEST_PAUSE {
                return;
            }
            tokio::select! {
                () = sleep(pause.min(LONGEST_SLEEP)) => {}
                () = self.followed.wanted() => {}
            }
        }
    }
}

fn read_saved<D: Document>(
    url: &FetchUrl,
    context: &D::Context,
    saved: Option<&SavedDocuments>,
) -> Result<Option<(Held<D>, Validators)>, String> {
    let Some(saved) = saved else { return Ok(None) };
    let Some(document) = saved.read(&url.to_string())? else { return Ok(None) };
    let read = D::restore(context, &document.octets)?;
    let held = Held::new(read, EvidenceOrigin::Saved, Some(document.confirmed));
    let validators = saved_validators(document.etag.as_deref(), document.last_modified.as_deref(), url);
    Ok(Some((held, validators)))
}

fn save<D: Document>(saved: &SavedDocuments, followed: &Followed<D>, taken: &Taken, now: SystemTime) -> io::Result<()> {
    let url = followed.url.to_string();
    match taken {
        Taken::New(octets) => saved.save(&url, octets, now, &followed.validators()),
        Taken::Confirmed => match saved.read(&url) {
            Ok(Some(document)) => saved.save(&url, &document.octets, now, &followed.validators()),
            _ => Ok(()),
        },
        Taken::Kept => Ok(()),
    }
}
