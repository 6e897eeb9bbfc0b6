//! Requests to read the config file again, from the admin interface and from signals to the control thread.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::report::ConfigReload;

/// How long a request waits for its outcome, and how long one that hangs holds up a newer one.
pub(crate) const CONFIG_PATIENCE: Duration = Duration::from_secs(60);

/// Sends the requests. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct ConfigRequests(mpsc::Sender<ReloadWaiter>);

/// Receives the outcome of a request.
pub(crate) type ReloadWaiter = oneshot::Sender<ConfigReload>;

impl ConfigRequests {
    pub(crate) fn new() -> (Self, mpsc::Receiver<ReloadWaiter>) {
        let (requests, requested) = mpsc::channel(16);
        (Self(requests), requested)
    }

    /// Has the config file read again and applied, and waits for the outcome. None while the process starts or ends.
    pub(crate) async fn reconfigure(&self) -> Option<ConfigReload> {
        let (waiter, outcome) = oneshot::channel();
        let requesting = async {
            self.0.send(waiter).await.ok()?;
            outcome.await.ok()
        };
        timeout(CONFIG_PATIENCE, requesting).await.unwrap_or_else(|_| {
            let message = format!("still being read after {} s; the outcome is logged", CONFIG_PATIENCE.as_secs());
            Some(ConfigReload { outcome: "kept".to_owned(), message })
        })
    }
}
