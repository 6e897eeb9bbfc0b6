//! The task that keeps one document up to date.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::document::Document;
use super::followed::{EvidenceOrigin, Followed, Held, Taken, saved_validators};
use super::saved_documents::SavedDocuments;
use crate::live::Clock;
use crate::source::fetch::{Client, FetchTarget, FetchUrl, Fetcher, Validators};

/// No document is used for longer without a question: a time further ahead is from a clock that was wrong.
const LONGEST_PAUSE: Duration = Duration::from_secs(25 * 60 * 60);

/// How long to sleep at most: the clock may be set meanwhile.
const LONGEST_SLEEP: Duration = if cfg!(test) { Duration::from_millis(10) } else { Duration::from_secs(60) };

/// A document that is followed until this is dropped.
#[derive(Debug)]
pub(super) struct Follower<D: Document> {
    followed: Arc<Followed<D>>,
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

    pub(super) const fn followed(&self) -> &Arc<Followed<D>> {
        &self.followed
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
            let target = FetchTarget::document(self.followed.url().clone(), D::MOST);
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
                    followed.context(),
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
    let url = followed.url().to_string();
    match taken {
        Taken::New(octets) => saved.save(&url, octets, now, &followed.validators()),
        Taken::Confirmed => match saved.read(&url) {
            Ok(Some(document)) => saved.save(&url, &document.octets, now, &followed.validators()),
            _ => Ok(()),
        },
        Taken::Kept => Ok(()),
    }
}
