//! The store as requests see it, and the thread that talks to it.
//!
//! A request asks through a bounded queue and waits for no longer than the deadline. On any failure, the answer is that the
//! store said nothing, and the process's own bucket decides then.

use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::breaker::part_of;
use super::bucket::{SharedBucket, SharedKey, StoreAnswer, StoreQuestion, duration};
use super::keeper::{self, PendingQuestion};
use super::ledger::LedgerStep;
use super::state::{StoreCount, StoreReport, StoreState};
use crate::store::{StoreSettings, of_system};

/// Questions that wait to be sent. With more, the process's own bucket decides.
const QUEUE: usize = 1024;

/// The verdict of the store about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedVerdict {
    /// It passes.
    Allow,
    /// It does not: too many of the same bucket have passed, here or at other replicas.
    Deny {
        /// When one may pass, at the latest in one interval.
        wait: Duration,
    },
    /// The store said nothing: the process's own bucket decides alone.
    Unknown,
}

/// Buckets that replicas share. Clones are the same store; the last to be dropped ends its thread.
#[derive(Clone, Debug)]
pub struct SharedRate {
    shared: Arc<StoreState>,
    questions: mpsc::Sender<PendingQuestion>,
}

impl SharedRate {
    /// Begins to use a store, on a thread of its own. It need not be there yet.
    ///
    /// # Errors
    ///
    /// The system starts no thread.
    pub fn start(settings: StoreSettings, changed: impl Fn(StoreReport) + Send + 'static) -> io::Result<Self> {
        Self::start_resolving(settings, of_system, changed)
    }

    /// [`start`](Self::start) with another resolver than the system's, which may block.
    ///
    /// # Errors
    ///
    /// The system starts no thread.
    pub fn start_resolving(
        settings: StoreSettings,
        lookup: impl Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static,
        changed: impl Fn(StoreReport) + Send + 'static,
    ) -> io::Result<Self> {
        let (questions, received) = mpsc::channel(QUEUE);
        let shared = Arc::new(StoreState::new(settings));
        keeper::start(Arc::clone(&shared), received, Arc::new(lookup), Box::new(changed))?;
        Ok(Self { shared, questions })
    }

    /// Has the store count a request that passes whatever it says, and waits for no answer: the state of the bucket that is known by
    /// now is the answer.
    pub fn note(&self, key: SharedKey, bucket: SharedBucket) -> SharedVerdict {
        match self.known(key, bucket) {
            ControlFlow::Break(said) => said,
            ControlFlow::Continue(question) => {
                self.report_batch(key, question);
                SharedVerdict::Unknown
            }
        }
    }

    /// The verdict that is known of a bucket without asking, or the question to ask.
    fn known(&self, key: SharedKey, bucket: SharedBucket) -> ControlFlow<SharedVerdict, StoreQuestion> {
        let shared = &*self.shared;
        if !shared.breaker(part_of(key, &shared.settings)).is_closed() {
            shared.count(StoreCount::Alone);
            return ControlFlow::Break(SharedVerdict::Unknown);
        }
        let asked = shared.now();
        let (step, evicted) = shared.ledgers.request(key, asked, bucket, shared.settings.batch);
        if let Some((key, question)) = evicted {
            self.report_batch(key, question);
        }
        if let LedgerStep::Report(question) = step {
            self.report_batch(key, question);
        }
        let (outcome, verdict) = match step {
            LedgerStep::Deny { wait } => (StoreCount::KnownDenied, SharedVerdict::Deny { wait: duration(wait) }),
            LedgerStep::Allow | LedgerStep::Report(_) => (StoreCount::KnownAllowed, SharedVerdict::Allow),
            LedgerStep::Ask(question) => return ControlFlow::Continue(question),
        };
        shared.count(outcome);
        ControlFlow::Break(verdict)
    }

    /// Asks whether a request may pass.
    pub async fn spend(&self, key: SharedKey, bucket: SharedBucket) -> SharedVerdict {
        let question = match self.known(key, bucket) {
            ControlFlow::Break(said) => return said,
            ControlFlow::Continue(question) => question,
        };
        let shared = &*self.shared;
        let (answer, answered) = oneshot::channel();
        // If the queue is full, the sender of the answer is dropped, and nothing is waited for.
        let _ = self.questions.try_send(PendingQuestion { key, question, answer: Some(answer) });
        let (outcome, verdict) = match timeout(shared.settings.deadline, answered).await {
            Ok(Ok(StoreAnswer { wait: None, .. })) => (StoreCount::Allowed, SharedVerdict::Allow),
            Ok(Ok(StoreAnswer { wait: Some(wait), .. })) => {
                (StoreCount::Denied, SharedVerdict::Deny { wait: duration(wait) })
            }
            Ok(Err(_)) | Err(_) => (StoreCount::Alone, SharedVerdict::Unknown),
        };
        shared.count(outcome);
        verdict
    }

    /// Has the store count requests, and waits for no answer. If the queue is full, the others do not learn of them.
    fn report_batch(&self, key: SharedKey, question: StoreQuestion) {
        let _ = self.questions.try_send(PendingQuestion { key, question, answer: None });
    }

    /// The state of the store.
    pub fn report(&self) -> StoreReport {
        self.shared.report()
    }

    /// The settings that it is used with.
    pub fn settings(&self) -> &StoreSettings {
        &self.shared.settings
    }
}
