//! Reloads of a site: their causes and outcomes, their history entries, and the callers and
//! listeners that receive the outcome.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::SystemTime;

use robots_core::keyword_enum;

use super::{Enforcement, Mutex, Pending, Rejection, RejectionKind, Snapshot, VersionHash};
use crate::check::{Report, Severity};

/// An attempt to publish a new version: why it was made, and how it ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reload {
    /// The event or call that caused the reload.
    pub cause: Cause,
    /// The origin of the robots.txt: a path, `inline`, or a URL.
    pub origin: Arc<str>,
    /// How the reload ended.
    pub outcome: ReloadOutcome,
    /// Why the site started with an earlier accepted version instead of the content of its source;
    /// `None` if the site started with the content of its source, or if this reload did not open
    /// the site.
    pub restored: Option<Arc<str>>,
}

keyword_enum! {
    /// The cause of a reload.
    Cause, "the cause of a reload", {
        /// The site was opened at the start of the program.
        Start = "start",
        /// The site was opened because a changed configuration contains it
        /// ([`LiveBuilder::opened_by`](crate::source::LiveBuilder::opened_by)).
        Config = "config",
        /// The site was opened because its file appeared in a
        /// [`Directory`](crate::source::Directory).
        NewFile = "new-file",
        /// The file system reported a change.
        Event = "event",
        /// Polling found a change.
        Poll = "poll",
        /// The application called [`LiveRobots::reload`](super::LiveRobots::reload).
        Request = "request",
        /// The application published text.
        Publish = "publish",
        /// A pending version was accepted.
        Accept = "accept",
        /// An operator rolled back.
        Rollback = "rollback",
        /// A file whose groups are appended to the robots.txt has changed.
        Append = "append",
        /// An operator used the kill switch. Only history entries have this cause.
        Switch = "switch",
        /// The policy was replaced. Only history entries have this cause.
        Policy = "policy",
    }
}

/// The outcome of a reload.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ReloadOutcome {
    /// A new version is live.
    #[non_exhaustive]
    Published {
        /// The hash of the new version.
        hash: VersionHash,
        /// The check report of the live version.
        report: Arc<Report>,
    },
    /// The content of the source is the version that is already live.
    #[non_exhaustive]
    Unchanged {
        /// The hash of the live version.
        hash: VersionHash,
        /// The check report of the live version.
        report: Arc<Report>,
    },
    /// The server has no robots.txt. Nothing is enforced, and requests for `/robots.txt` are
    /// forwarded to the application.
    #[non_exhaustive]
    Absent {
        /// The HTTP status code of the server's response.
        status: u16,
    },
    /// The content of the source was rejected, and the live version stays live.
    #[non_exhaustive]
    Kept {
        /// Why the content was rejected.
        rejection: Rejection,
        /// The version that stays live, if there is one.
        live: Option<VersionHash>,
    },
    /// The content of the source is pending until an operator accepts it.
    #[non_exhaustive]
    Gated {
        /// The pending version, with the reasons why it is not live.
        pending: Pending,
        /// The version that stays live, if there is one.
        live: Option<VersionHash>,
    },
}

keyword_enum! {
    /// The kind of a [`ReloadOutcome`], as one word.
    ReloadOutcomeKind, "the outcome of a reload", {
        /// [`ReloadOutcome::Published`].
        Published = "published",
        /// [`ReloadOutcome::Unchanged`].
        Unchanged = "unchanged",
        /// [`ReloadOutcome::Absent`].
        Absent = "absent",
        /// [`ReloadOutcome::Kept`].
        Kept = "kept",
        /// [`ReloadOutcome::Gated`].
        Gated = "gated",
        /// Enforcement was turned on. Only history entries have this outcome.
        SwitchedOn = "switched-on",
        /// Enforcement was turned off. Only history entries have this outcome.
        SwitchedOff = "switched-off",
        /// The mode of the policy was changed. Only history entries have this outcome.
        ModeChanged = "mode-changed",
    }
}

impl ReloadOutcome {
    /// Returns the kind of the outcome.
    pub const fn kind(&self) -> ReloadOutcomeKind {
        match self {
            Self::Published { .. } => ReloadOutcomeKind::Published,
            Self::Unchanged { .. } => ReloadOutcomeKind::Unchanged,
            Self::Absent { .. } => ReloadOutcomeKind::Absent,
            Self::Kept { .. } => ReloadOutcomeKind::Kept,
            Self::Gated { .. } => ReloadOutcomeKind::Gated,
        }
    }

    /// Returns the version that went live, was already live or is pending; `None` for other
    /// outcomes.
    pub fn hash(&self) -> Option<VersionHash> {
        match self {
            Self::Published { hash, .. } | Self::Unchanged { hash, .. } => Some(*hash),
            Self::Absent { .. } | Self::Kept { .. } => None,
            Self::Gated { pending, .. } => Some(pending.hash()),
        }
    }

    /// Returns the check report of the version that went live or was already live; `None` for other
    /// outcomes.
    pub fn report(&self) -> Option<&Report> {
        match self {
            Self::Published { report, .. } | Self::Unchanged { report, .. } => Some(report),
            Self::Absent { .. } | Self::Kept { .. } | Self::Gated { .. } => None,
        }
    }
}

impl Cause {
    /// Reports whether a reload with this cause opened the site, so that an earlier process may
    /// already have served the live version.
    pub const fn is_opening(self) -> bool {
        matches!(self, Self::Start | Self::Config | Self::NewFile)
    }
}

impl Reload {
    pub(crate) fn new(cause: Cause, origin: &Arc<str>, outcome: ReloadOutcome) -> Self {
        Self { cause, origin: origin.clone(), outcome, restored: None }
    }

    /// Returns why the source's content is not live; `None` if the content is live, or if the
    /// server has no robots.txt.
    pub(crate) fn refusal(&self) -> Option<Rejection> {
        match &self.outcome {
            ReloadOutcome::Kept { rejection, .. } => Some(rejection.clone()),
            ReloadOutcome::Gated { pending, .. } => Some(Rejection::gated(pending.clone(), &self.origin)),
            ReloadOutcome::Published { .. } | ReloadOutcome::Unchanged { .. } | ReloadOutcome::Absent { .. } => None,
        }
    }

    pub(crate) fn into_result(self) -> Result<Self, Rejection> {
        match self.refusal() {
            Some(refusal) => Err(refusal),
            None => Ok(self),
        }
    }

    pub(crate) fn interrupted(cause: Cause, origin: &Arc<str>, live: Option<VersionHash>) -> Self {
        let rejection = Rejection::new(RejectionKind::Interrupted, origin);
        Self::new(cause, origin, ReloadOutcome::Kept { rejection, live })
    }
}

/// Prints the reload on one line. If the file was checked, the line also contains a summary of the
/// errors and warnings that the check found ([`Report::summary`]).
impl fmt::Display for Reload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            ReloadOutcome::Published { hash, .. } => write!(f, "{}: version {} is live", self.origin, hash.short()),
            ReloadOutcome::Unchanged { hash, .. } => {
                write!(f, "{origin}: version {version} is already live", origin = self.origin, version = hash.short())
            }
            ReloadOutcome::Absent { status } => {
                write!(
                    f,
                    "{origin}: the server answered {status}, so the site has no robots.txt and nothing is enforced",
                    origin = self.origin
                )
            }
            ReloadOutcome::Kept { rejection, live: Some(hash) } => {
                write!(f, "{rejection}; version {} stays live", hash.short())
            }
            ReloadOutcome::Kept { rejection, live: None } => {
                write!(f, "{rejection}; no version is live, so nothing is enforced")
            }
            ReloadOutcome::Gated { pending, live } => {
                write!(
                    f,
                    "{origin}: version {version} is held until accepted: {pending}; ",
                    origin = self.origin,
                    version = pending.hash().short()
                )?;
                match live {
                    Some(hash) => write!(f, "version {} stays live", hash.short()),
                    None => f.write_str("no version is live, so nothing is enforced"),
                }
            }
        }?;
        if let Some(summary) = self.outcome.report().and_then(Report::summary) {
            write!(f, "; {summary}")?;
        }
        self.restored.as_ref().map_or(Ok(()), |restored| write!(f, "; {restored}"))
    }
}

pub(crate) type ReloadListener = Box<dyn Fn(&Reload, &Snapshot) + Send + Sync>;

/// The listeners of a site, and the queue of reloads that the listeners must still be notified of.
///
/// Reloads are added to the queue while the publisher is locked, and listeners run after the
/// publisher is unlocked. Only one thread at a time notifies the listeners. This thread also
/// delivers the reloads that other threads add meanwhile. So a listener may itself reload the site:
/// the listeners are notified of this second reload after all of them have been notified of the
/// first.
pub(super) struct Notices {
    listeners: Vec<ReloadListener>,
    queue: Mutex<NoticeQueue>,
}

#[derive(Default)]
struct NoticeQueue {
    waiting: VecDeque<(Reload, Arc<Snapshot>)>,
    is_delivering: bool,
}

impl Notices {
    pub(super) fn new(listeners: Vec<ReloadListener>) -> Self {
        Self { listeners, queue: Mutex::default() }
    }

    /// Adds a reload to the queue, with the snapshot that is live after the reload.
    pub(super) fn push(&self, reload: Reload, snapshot: Arc<Snapshot>) {
        self.queue.lock().waiting.push_back((reload, snapshot));
    }

    /// Notifies the listeners of all reloads in the queue. Does nothing if another call is already
    /// notifying the listeners.
    pub(super) fn deliver(&self) {
        if std::mem::replace(&mut self.queue.lock().is_delivering, true) {
            return;
        }
        while let Some((reload, snapshot)) = self.next() {
            // A panic in a listener must stop neither the watcher nor the other listeners. The
            // panic hook reports the panic.
            #[cfg(feature = "tracing")]
            let _ = catch_unwind(AssertUnwindSafe(|| trace(&reload, &snapshot)));
            for listener in &self.listeners {
                let _ = catch_unwind(AssertUnwindSafe(|| listener(&reload, &snapshot)));
            }
        }
    }

    /// Returns the next reload in the queue. If the queue is empty, resets `is_delivering` under
    /// the same lock, so a thread that adds a reload afterwards notifies the listeners itself.
    fn next(&self) -> Option<(Reload, Arc<Snapshot>)> {
        let mut queue = self.queue.lock();
        let next = queue.waiting.pop_front();
        queue.is_delivering = next.is_some();
        next
    }
}

/// Logs a reload.
#[cfg(feature = "tracing")]
fn trace(reload: &Reload, snapshot: &Snapshot) {
    let (cause, mode) = (reload.cause.as_str(), &snapshot.policy.mode);
    if let Some(hint) = warning(&reload.outcome) {
        tracing::warn!(target: "tower_robots::reload", cause, %mode, "{reload}{hint}");
    } else {
        tracing::info!(target: "tower_robots::reload", cause, %mode, "{reload}");
    }
    trace_problems(reload.cause, &reload.origin, snapshot);
}

/// Returns the advice to append to the log message if the outcome is a warning: the source provides
/// no version that can go live, or the live version has errors. `None` for any other outcome.
#[cfg(feature = "tracing")]
fn warning(outcome: &ReloadOutcome) -> Option<&'static str> {
    match outcome {
        ReloadOutcome::Kept { .. } => Some(""),
        ReloadOutcome::Gated { .. } => Some("; if the version is intended, accept it with LiveRobots::accept"),
        ReloadOutcome::Absent { .. } => Some("; if the site has a robots.txt, check the URL"),
        outcome => outcome.report()?.faults().next().map(|_| ""),
    }
}

/// Logs why parts of the policy have no effect. No other event reports these problems.
#[cfg(feature = "tracing")]
pub(super) fn trace_problems(cause: Cause, origin: &str, snapshot: &Snapshot) {
    let is_off = cause == Cause::Start && snapshot.enforcement() == Enforcement::Off;
    let off = is_off.then(|| "enforcement is switched off: every request passes without being judged".to_owned());
    // Overrides that have ended are logged only when the site is opened or the policy changes. An
    // override that ends while the site is open is not logged, because its end is probably
    // intended.
    let is_opened = matches!(cause, Cause::Start | Cause::Config | Cause::NewFile | Cause::Policy);
    let ended = snapshot.ended_overrides().into_iter().filter(|_| is_opened && !snapshot.has_shared_policy);
    let idle = snapshot.misspelled_overrides().into_iter().chain(snapshot.settings_without_effect());
    for problem in idle.chain(ended).chain(snapshot.policy.excessive_exemptions()).chain(off) {
        tracing::warn!(target: "tower_robots::reload", cause = cause.as_str(), "{origin}: {problem}");
    }
}

pub(super) const MAX_HISTORY: usize = 64;

/// Maximum length of a string in a history entry, in characters.
const MAX_TEXT: usize = 300;

/// A reload, or a change of the kill switch or of the mode. See
/// [`LiveRobots::history`](super::LiveRobots::history).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistoryEntry {
    /// When the reload or change happened.
    pub when: SystemTime,
    /// The cause of the reload or change.
    pub cause: Cause,
    /// How the reload ended, or what was changed.
    pub outcome: ReloadOutcomeKind,
    /// The origin of the version: a path, `inline`, or a URL.
    pub origin: Arc<str>,
    /// The version that went live, was already live or is pending; `None` if there is no such
    /// version. For a change of the kill switch or of the mode, the live version.
    pub hash: Option<VersionHash>,
    pub(crate) findings: [usize; 3],
    /// What changes for crawlers, in one sentence (see [`Diff`](crate::check::Diff)). `None` if
    /// there is no earlier version, or if the two files are too large to be compared.
    pub effect: Option<String>,
    /// The message about the reload or change, in one line.
    pub detail: String,
    /// Who made the change and why; empty unless the caller has passed an [`Attribution`], for
    /// example to [`LiveRobots::accept_by`](super::LiveRobots::accept_by).
    pub by: Attribution,
}

/// Who made a decision and why. Both the name and the reason are optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attribution {
    /// The name of a person or program.
    pub who: Option<String>,
    /// The reason that the person or program gave.
    pub reason: Option<String>,
}

impl Attribution {
    pub(super) fn bounded(&self) -> Self {
        Self { who: self.who.as_ref().map(bounded), reason: self.reason.as_ref().map(bounded) }
    }
}

/// The history of a site: at most [`MAX_HISTORY`] entries, the newest last.
#[derive(Clone, Debug, Default)]
pub(crate) struct History(VecDeque<HistoryEntry>);

impl HistoryEntry {
    /// Returns the number of findings with this severity in the check report.
    pub const fn findings(&self, severity: Severity) -> usize {
        self.findings[severity as usize]
    }
}

impl History {
    pub(crate) fn push(&mut self, entry: HistoryEntry) {
        if self.0.len() >= MAX_HISTORY {
            self.0.pop_front();
        }
        self.0.push_back(entry);
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &HistoryEntry> {
        self.0.iter()
    }

    pub(super) fn enforcement(&self) -> Enforcement {
        let turn = self.iter().rev().find(|entry| entry.cause == Cause::Switch);
        let is_off = turn.is_some_and(|entry| entry.outcome == ReloadOutcomeKind::SwitchedOff);
        if is_off { Enforcement::Off } else { Enforcement::On }
    }
}

/// Converts a value to a string. A string of more than [`MAX_TEXT`] characters is cut, and `…` is
/// appended.
pub(crate) fn bounded(text: &impl ToString) -> String {
    let mut text = text.to_string();
    if let Some((at, _)) = text.char_indices().nth(MAX_TEXT) {
        text.truncate(at);
        text.push('…');
    }
    text
}

/// A future that resolves when a reload is done. A caller without an async runtime can call
/// [`Reloading::wait`] instead of awaiting the future.
#[derive(Debug)]
#[must_use = "the reload continues if this future is dropped, but only the future returns the outcome"]
pub(crate) struct Reloading(Arc<ReloadResult>);

/// Sets the result of a [`Reloading`]. If the `Completion` is dropped before it has set a result,
/// the result is a rejection of the kind [`RejectionKind::Interrupted`].
#[derive(Debug)]
pub(crate) struct Completion {
    result: Arc<ReloadResult>,
    origin: Arc<str>,
}

#[derive(Debug, Default)]
struct ReloadResult {
    state: Mutex<CompletionState>,
    done: Condvar,
}

#[derive(Debug, Default)]
struct CompletionState {
    result: Option<Reload>,
    is_complete: bool,
    waker: Option<Waker>,
}

impl Reloading {
    pub(crate) fn new(origin: &Arc<str>) -> (Self, Arc<Completion>) {
        let result = Arc::new(ReloadResult::default());
        (Self(result.clone()), Arc::new(Completion { result, origin: origin.clone() }))
    }

    pub(crate) fn wait(self) -> Reload {
        let mut state = self.0.state.lock();
        loop {
            match state.result.take() {
                Some(reload) => return reload,
                None => state = self.0.done.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

impl Completion {
    pub(crate) fn fill(&self, reload: Reload) {
        let waker = {
            let mut state = self.result.state.lock();
            if std::mem::replace(&mut state.is_complete, true) {
                return;
            }
            state.result = Some(reload);
            state.waker.take()
        };
        self.result.done.notify_all();
        // The lock is already released here, because `wake` may immediately poll the future on this
        // thread, and polling takes the lock.
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        self.fill(Reload::interrupted(Cause::Request, &self.origin, None));
    }
}

impl Future for Reloading {
    type Output = Reload;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Reload> {
        let mut state = self.0.state.lock();
        match state.result.take() {
            Some(reload) => Poll::Ready(reload),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::task::Wake;
    use std::time::Duration;

    use super::*;

    #[cfg(feature = "tracing")]
    #[test]
    fn the_warning_about_a_missing_robots_txt_suggests_checking_the_url() {
        assert_eq!(
            warning(&ReloadOutcome::Absent { status: 404 }),
            Some("; if the site has a robots.txt, check the URL")
        );
    }

    /// An executor that polls on the thread that wakes it.
    struct Inline(Mutex<Option<Reloading>>, mpsc::Sender<bool>);

    impl Wake for Inline {
        fn wake(self: Arc<Self>) {
            let reloading = self.0.lock().take();
            let polled =
                reloading.map(|mut reloading| Pin::new(&mut reloading).poll(&mut Context::from_waker(Waker::noop())));
            let _ = self.1.send(polled.is_some_and(|polled| polled.is_ready()));
        }
    }

    #[test]
    fn a_waker_can_poll_the_reload_immediately_without_a_deadlock() {
        let (mut reloading, completion) = Reloading::new(&"it".into());
        let (sender, receiver) = mpsc::channel();
        let executor = Arc::new(Inline(Mutex::default(), sender));
        let waker = Waker::from(executor.clone());
        assert!(Pin::new(&mut reloading).poll(&mut Context::from_waker(&waker)).is_pending());
        *executor.0.lock() = Some(reloading);
        std::thread::spawn(move || drop(completion));
        assert!(receiver.recv_timeout(Duration::from_secs(60)).expect("the poll waits for no lock"));
    }
}
