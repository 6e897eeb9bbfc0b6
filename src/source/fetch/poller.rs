//! Keeps one site's robots.txt up to date in a task on the fetcher's thread.

use std::future::poll_fn;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::timeout;

use super::site_freshness::{SiteFreshness, Step};
use super::{Client, FetchOutcome, FetchTarget, Fetcher, FetcherTask, Schedule};
use crate::live::{
    Candidate, Cause, Clock, Completion, FetchStatus, Mutex, Rejection, RejectionKind, Reload, ReloadOutcome,
    Reloading, Site, Version,
};

/// Maximum time between two fetches of the same site, even if its schedule has a longer interval.
const MAX_SLEEP: Duration = Duration::from_secs(30 * 24 * 3600);

/// The task that polls a site. If this value is dropped, the task stops.
#[derive(Debug)]
pub(super) struct SitePoller {
    /// Channel for telling the task to fetch immediately. Each message is the [`Completion`] that
    /// receives the outcome.
    requests: UnboundedSender<Arc<Completion>>,
    status: Arc<Mutex<FetchStatus>>,
    _task: FetcherTask,
}

struct PollTask {
    target: FetchTarget,
    site: Weak<Site>,
    clock: Clock,
    /// The version that was last fetched and passed to the site. A 304 response confirms this
    /// version.
    last: Option<Version>,
    origin: Arc<str>,
    state: SiteFreshness,
    status: Arc<Mutex<FetchStatus>>,
    opened_by: Cause,
    dice: RandomState,
}

impl SitePoller {
    /// Starts the task, which fetches immediately. Also returns a future for the outcome of the
    /// first fetch.
    pub(super) fn start(
        target: FetchTarget,
        schedule: Schedule,
        fetcher: Fetcher,
        site: &Arc<Site>,
        origin: &Arc<str>,
    ) -> (Self, Reloading) {
        let (requests, inbox) = mpsc::unbounded_channel();
        let (first, completion) = Reloading::new(origin);
        let state = SiteFreshness::new(schedule, site.clock.now());
        let status = Arc::new(Mutex::new(state.status()));
        let task = PollTask {
            target,
            site: Arc::downgrade(site),
            clock: site.clock.clone(),
            last: None,
            origin: origin.clone(),
            state,
            status: status.clone(),
            opened_by: site.opened_by,
            dice: RandomState::new(),
        };
        let run = task.run(inbox, completion, fetcher.client.clone());
        (Self { requests, status, _task: FetcherTask::start(fetcher, run) }, first)
    }

    pub(super) fn reload(&self, completion: Arc<Completion>) {
        // `send` fails if the task has ended. The failed `send` drops the completion, so the caller
        // gets a rejection of the kind `Interrupted`.
        let _ = self.requests.send(completion);
    }

    pub(super) fn status(&self) -> FetchStatus {
        *self.status.lock()
    }
}

impl PollTask {
    async fn run(mut self, mut inbox: UnboundedReceiver<Arc<Completion>>, first: Arc<Completion>, client: Arc<Client>) {
        let mut waiting = vec![first];
        let mut cause = self.opened_by;
        loop {
            // The sleep is limited to `MAX_SLEEP`, because `next_fetch` may be years away if the
            // clock was set back.
            let pause = self.state.status().next_fetch.duration_since(self.clock.now()).unwrap_or_default();
            if waiting.is_empty() && !pause.is_zero() {
                match timeout(pause.min(MAX_SLEEP), inbox.recv()).await {
                    Ok(Some(request)) => waiting.push(request),
                    Ok(None) => return,
                    Err(_) => {}
                }
            }
            while let Ok(request) = inbox.try_recv() {
                waiting.push(request);
            }
            if !cause.is_opening() {
                cause = if waiting.is_empty() { Cause::Poll } else { Cause::Request };
            }
            let Ok(permit) = client.permits.acquire().await else { return };
            self.target.known = self.state.validators.clone();
            let answer = client.fetch_in_task(self.target.clone()).await;
            let Some(reload) = self.conclude(answer, cause).await else { return };
            drop(permit);
            *self.status.lock() = self.state.status();
            let next = self.notify(&mut inbox).await;
            for request in waiting.drain(..) {
                request.fill(reload.clone());
            }
            waiting.extend(next);
            cause = Cause::Poll;
        }
    }

    /// Applies the response to the site. Returns `None` if the site was dropped.
    async fn conclude(&mut self, answer: FetchOutcome, cause: Cause) -> Option<Reload> {
        let live = self.site.upgrade()?.live();
        self.state.observe(live);
        let now = self.clock.now();
        let roll = self.dice.hash_one(now) as u32;
        let step = self.state.take(answer, now, roll);
        self.target.turn = self.state.status().failures as usize;
        let (candidate, found) = match step {
            Step::Offer { bytes, validators, interval } => {
                let modified = validators.last_modified.as_ref();
                let modified = modified.and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
                let version = Version::new(bytes, &self.origin, modified);
                (Candidate::Version(version.clone()), Some((version, *validators, interval)))
            }
            // The confirmed version may not be live, because an operator has rolled it back or the
            // gate has refused it. So the site decides whether this version goes live.
            Step::Confirm => match &self.last {
                Some(last) => (Candidate::Version(last.clone()), None),
                None => (Candidate::Rejected(Rejection::new(RejectionKind::NotFetched, &self.origin)), None),
            },
            Step::EndEnforcement(status) => (Candidate::Absent { status: status.as_u16() }, None),
            Step::Hold(status, until) => {
                (Candidate::Rejected(Rejection::held(status.to_string(), until, &self.origin)), None)
            }
            Step::Keep(kind, why) => (Candidate::Rejected(Rejection::with_reason(kind, why, &self.origin)), None),
        };
        let reload = self.offer(cause, candidate).await?;
        if let Some((version, validators, interval)) = found {
            self.last = Some(version);
            match reload.outcome {
                ReloadOutcome::Published { .. } | ReloadOutcome::Unchanged { .. } => {
                    self.state.record_published(validators, interval, now);
                }
                _ => self.state.record_rejected(),
            }
        }
        Some(reload)
    }

    /// Passes a candidate to the site on another thread, because the compilation would delay the
    /// fetches of other sites.
    async fn offer(&self, cause: Cause, candidate: Candidate) -> Option<Reload> {
        let site = self.site.upgrade()?;
        let offered = tokio::task::spawn_blocking(move || site.consider(cause, candidate)).await;
        Some(offered.unwrap_or_else(|_| Reload::interrupted(cause, &self.origin, None)))
    }

    /// Notifies the listeners on another thread, and waits until they return. If a reload is
    /// requested before all listeners have returned, returns the request at once, because a
    /// listener may be waiting for the outcome of this reload.
    async fn notify(&self, inbox: &mut UnboundedReceiver<Arc<Completion>>) -> Option<Arc<Completion>> {
        let site = self.site.upgrade()?;
        let mut notified = tokio::task::spawn_blocking(move || site.notify());
        poll_fn(|context| match Pin::new(&mut notified).poll(context) {
            Poll::Ready(_) => Poll::Ready(None),
            Poll::Pending => inbox.poll_recv(context),
        })
        .await
    }
}
