//! Requests to read the config file again, from the admin interface and from signals to the control thread.

use tokio::sync::{mpsc, oneshot};

use crate::admin::ConfigReload;

/// Where another config is asked for. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct ConfigRequests(mpsc::Sender<ReloadWaiter>);

/// Who waits for what comes of it.
pub(super) type ReloadWaiter = oneshot::Sender<ConfigReload>;

impl ConfigRequests {
    pub(super) fn new() -> (Self, mpsc::Receiver<ReloadWaiter>) {
        let (orders, asked) = mpsc::channel(16);
        (Self(orders), asked)
    }

    /// Has the config file read again and what it says done; tells what came of it. None while starting or ending.
    pub(crate) async fn reconfigure(&self) -> Option<ConfigReload> {
        let (asker, answer) = oneshot::channel();
        self.0.send(asker).await.ok()?;
        answer.await.ok()
    }
}
