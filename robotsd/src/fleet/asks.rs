//! Channels to the tasks that communicate with the fleet's store. Each task has a queue of requests
//! and works in rounds. A round answers all requests that were in the queue when it began.

use std::sync::atomic::AtomicBool;

use tokio::sync::{mpsc, oneshot, watch};
use tower_robots::internals::Attribution;
use tower_robots::live::Status;

use super::document::{WriteAnswer, WriteCall};
use crate::webhooks::{Turn, TurnReport};

#[derive(Debug)]
pub(super) struct TaskSenders {
    writes: mpsc::UnboundedSender<WriteRequest>,
    reads: mpsc::UnboundedSender<Round>,
    beats: mpsc::UnboundedSender<BeatRequest>,
    pub(super) turns: mpsc::UnboundedSender<TurnRequest>,
    /// Pending writes of entries that were missing from the document when it was last read. The
    /// writer task executes these writes.
    pub(super) lost: watch::Sender<Vec<WriteCall>>,
    /// Whether a write has failed since the document was last read. After a failed write, the next
    /// read must fetch the whole document even if its epoch and tag are unchanged.
    pub(super) has_failed: AtomicBool,
}

#[derive(Debug)]
pub(super) struct TaskReceivers {
    pub(super) writes: mpsc::UnboundedReceiver<WriteRequest>,
    pub(super) reads: mpsc::UnboundedReceiver<Round>,
    pub(super) beats: mpsc::UnboundedReceiver<BeatRequest>,
    pub(super) turns: mpsc::UnboundedReceiver<TurnRequest>,
    pub(super) lost: watch::Receiver<Vec<WriteCall>>,
}

pub(super) type WriteRequest = (Vec<WriteCall>, oneshot::Sender<Result<Vec<WriteAnswer>, String>>);
pub(super) type WriteAnswers = oneshot::Receiver<Result<Vec<WriteAnswer>, String>>;

/// A message of a webhook: the ID of a notice, what the webhook reports about the notice, and the
/// channel for the reply. The reply decides whether this replica sends the notice. If the channel
/// is dropped without a reply, this replica sends the notice.
pub(super) type TurnRequest = (String, TurnReport, oneshot::Sender<Turn>);

/// A request to a task for one more round. The task drops this sender at the end of a round that
/// began after the request.
pub(super) type Round = oneshot::Sender<()>;

#[derive(Debug)]
pub(super) enum BeatRequest {
    /// Sends the heartbeat of this replica, and reads the heartbeats of all replicas.
    Beat(#[expect(dead_code, reason = "the sender is only dropped, which ends the wait of the requester")] Round),
    Leave(#[expect(dead_code, reason = "the sender is only dropped, which ends the wait of the requester")] Round),
}

impl TaskSenders {
    pub(super) fn new() -> (Self, TaskReceivers) {
        let (writes, of_writes) = mpsc::unbounded_channel();
        let (reads, of_reads) = mpsc::unbounded_channel();
        let (beats, of_beats) = mpsc::unbounded_channel();
        let (turns, of_turns) = mpsc::unbounded_channel();
        let (lost, of_lost) = watch::channel(Vec::new());
        let asked =
            TaskReceivers { writes: of_writes, reads: of_reads, beats: of_beats, turns: of_turns, lost: of_lost };
        (Self { writes, reads, beats, turns, lost, has_failed: AtomicBool::new(false) }, asked)
    }

    pub(super) fn request_read(&self) {
        let _ = self.reads.send(oneshot::channel().0);
    }

    pub(super) fn request_heartbeat(&self) {
        let _ = self.beats.send(BeatRequest::Beat(oneshot::channel().0));
    }

    pub(super) fn write(&self, calls: Vec<WriteCall>) -> WriteAnswers {
        let (answer, answered) = oneshot::channel();
        let _ = self.writes.send((calls, answer));
        answered
    }

    pub(super) async fn read(&self) {
        let (round, end) = oneshot::channel();
        let _ = self.reads.send(round);
        let _ = end.await;
    }

    pub(super) async fn beat(&self) {
        self.beats(BeatRequest::Beat).await;
    }

    pub(super) async fn leave(&self) {
        self.beats(BeatRequest::Leave).await;
    }

    async fn beats(&self, request: impl FnOnce(Round) -> BeatRequest) {
        let (round, end) = oneshot::channel();
        let _ = self.beats.send(request(round));
        let _ = end.await;
    }
}

/// The interface to the sites of this process that the tasks of the fleet use.
pub(crate) trait FleetSites: Send + Sync {
    /// Returns the name and status of each site. A site with one robots.txt per host has one entry
    /// per host.
    fn statuses(&self) -> Vec<(String, Status)>;

    /// Accepts the pending version with this hash. Blocks.
    fn accept(&self, site: &str, hash: &str, by: &Attribution);

    /// Rolls a site back to the previous version. Blocks.
    fn roll_back(&self, site: &str, by: &Attribution);

    /// Records on the board that enforcement may have been off for some time. While it is off,
    /// crawlers are not recognised.
    fn record_switch_off(&self);
}
