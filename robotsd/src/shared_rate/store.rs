//! The handle that requests use to ask the store. A separate thread communicates with the store.
//!
//! A request sends its query through a bounded queue, and waits for the verdict until the deadline.
//! If anything fails, the verdict is `Unknown`, and the bucket of the process decides.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::bucket::{SharedBucket, SharedKey, SharedVerdict};
use super::keeper::{self, PendingQuestion};
use super::state::{StoreCount, StoreReport, StoreState, StoreUsage};
use crate::store::{StoreSettings, system_lookup};

/// Maximum number of queries in the queue. If the queue is full, the bucket of the process decides.
const QUEUE: usize = 1024;

/// A handle to the buckets that replicas share. Clones use the same store and the same thread,
/// which ends when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct SharedRate {
    shared: Arc<StoreState>,
    questions: mpsc::Sender<PendingQuestion>,
}

impl SharedRate {
    /// Starts the thread that communicates with the store. The store need not be reachable yet.
    ///
    /// # Errors
    ///
    /// Returns an error if the thread cannot be started.
    pub fn start(settings: StoreSettings, changed: impl Fn(StoreReport) + Send + 'static) -> io::Result<Self> {
        Self::start_with_lookup(settings, system_lookup, changed)
    }

    /// Starts the thread like [`start`](Self::start), but resolves names with `lookup`, which may
    /// block.
    ///
    /// # Errors
    ///
    /// Returns an error if the thread cannot be started.
    pub fn start_with_lookup(
        settings: StoreSettings,
        lookup: impl Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static,
        changed: impl Fn(StoreReport) + Send + 'static,
    ) -> io::Result<Self> {
        let (questions, received) = mpsc::channel(QUEUE);
        let shared = Arc::new(StoreState::new(settings));
        keeper::start(Arc::clone(&shared), received, Arc::new(lookup), Box::new(changed))?;
        Ok(Self { shared, questions })
    }

    /// Asks the store whether a request is allowed, and counts the request.
    pub async fn spend(&self, key: SharedKey, bucket: SharedBucket) -> SharedVerdict {
        if let Some(early_verdict) = self.early_verdict(key, bucket) {
            return early_verdict;
        }
        let (answer, answered) = oneshot::channel();
        self.ask(key, bucket, Some(answer));
        let verdict = match timeout(self.shared.settings.deadline, answered).await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(_)) | Err(_) => SharedVerdict::Unknown,
        };
        self.shared.count(match verdict {
            SharedVerdict::Allow => StoreCount::Allowed,
            SharedVerdict::Deny { .. } => StoreCount::Denied,
            SharedVerdict::Unknown => StoreCount::Alone,
        });
        verdict
    }

    /// Makes the store count a request that is allowed in any case, without waiting for the reply.
    /// If an earlier denial is still in force, returns this denial instead.
    pub fn note(&self, key: SharedKey, bucket: SharedBucket) -> SharedVerdict {
        self.early_verdict(key, bucket).unwrap_or_else(|| {
            self.ask(key, bucket, None);
            SharedVerdict::Unknown
        })
    }

    fn early_verdict(&self, key: SharedKey, bucket: SharedBucket) -> Option<SharedVerdict> {
        if self.shared.usage() == StoreUsage::Out {
            self.shared.count(StoreCount::Alone);
            return Some(SharedVerdict::Unknown);
        }
        let wait = self.shared.denials.wait(key, bucket, Instant::now())?;
        self.shared.count(StoreCount::KnownDenied);
        Some(SharedVerdict::Deny { wait })
    }

    /// Sends a query to the thread. If the queue is full, `answer` is dropped, so that the caller
    /// does not wait.
    fn ask(&self, key: SharedKey, bucket: SharedBucket, answer: Option<oneshot::Sender<SharedVerdict>>) {
        let _ = self.questions.try_send(PendingQuestion { key, bucket, answer });
    }

    pub fn report(&self) -> StoreReport {
        self.shared.report()
    }

    pub fn settings(&self) -> &StoreSettings {
        &self.shared.settings
    }
}
