//! Requests to let a new process take this one's place, from the admin interface to the control thread; and what came of the last.

use std::sync::{Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};

use crate::report::UpgradeReport;

/// Receives the outcome of a request.
pub(crate) type UpgradeWaiter = oneshot::Sender<UpgradeReport>;

/// Sends the requests, and keeps the last upgrade that is under way or has failed.
#[derive(Debug)]
pub(crate) struct UpgradeRequests {
    requests: mpsc::Sender<UpgradeWaiter>,
    last: Mutex<Option<UpgradeReport>>,
}

impl UpgradeRequests {
    pub(crate) fn new() -> (Self, mpsc::Receiver<UpgradeWaiter>) {
        let (requests, requested) = mpsc::channel(4);
        (Self { requests, last: Mutex::default() }, requested)
    }

    /// Has the place of this process taken, and waits for the outcome. None while the process starts or ends.
    pub(crate) async fn upgrade(&self) -> Option<UpgradeReport> {
        let (waiter, outcome) = oneshot::channel();
        self.requests.send(waiter).await.ok()?;
        outcome.await.ok()
    }

    /// What there is to say about the last upgrade.
    pub(crate) fn note(&self, report: UpgradeReport) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }

    pub(crate) fn last(&self) -> Option<UpgradeReport> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
