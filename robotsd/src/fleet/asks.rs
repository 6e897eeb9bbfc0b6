//! The queues of requests to the tasks that communicate with the store, and [`FleetSites`], the
//! interface that these tasks use to read and change the sites. Each task has its own queue. All
//! requests that are in the queue when a round begins are answered by this round.

use std::sync::atomic::AtomicBool;

use tokio::sync::{mpsc, oneshot, watch};
use tower_robots::internals::Attribution;
use tower_robots::live::Status;

use super::document::{WriteAnswer, WriteCall};
use crate::webhooks::{Turn, TurnOf};

/// The senders of requests to the tasks that communicate with the store.
#[derive(Debug)]
pub(super) struct Asks {
    writes: mpsc::UnboundedSender<WriteRequest>,
    reads: mpsc::UnboundedSender<Round>,
    beats: mpsc::UnboundedSender<BeatRequest>,
    pub(super) turns: mpsc::UnboundedSender<TurnRequest>,
    /// Entries that the store had lost when it was last read.
    pub(super) lost: watch::Sender<Vec<WriteCall>>,
    /// Whether a write has failed since the document was last read. If so, the document must be
    /// read again even if its epoch and tag are unchanged.
    pub(super) has_failed: AtomicBool,
}

/// The receivers of the requests that [`Asks`] sends.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) writes: mpsc::UnboundedReceiver<WriteRequest>,
    pub(super) reads: mpsc::UnboundedReceiver<Round>,
    pub(super) beats: mpsc::UnboundedReceiver<BeatRequest>,
    pub(super) turns: mpsc::UnboundedReceiver<TurnRequest>,
    pub(super) lost: watch::Receiver<Vec<WriteCall>>,
}

/// Writes to execute, and the channel for their results.
pub(super) type WriteRequest = (Vec<WriteCall>, oneshot::Sender<Result<Vec<WriteAnswer>, String>>);
pub(super) type WriteAnswers = oneshot::Receiver<Result<Vec<WriteAnswer>, String>>;

/// A request for permission to send a notice, with the ID of the notice. If the channel is dropped
/// without a reply, the requester sends the notice itself.
pub(super) type TurnRequest = (String, TurnOf, oneshot::Sender<Turn>);

/// A request for a round of a task. It is dropped at the end of a round that began after the
/// request was sent.
pub(super) type Round = oneshot::Sender<()>;

#[derive(Debug)]
pub(super) enum BeatRequest {
    /// Sends the heartbeat of this replica and reads the heartbeats of the others.
    Beat(#[expect(dead_code, reason = "dropping it is the answer")] Round),
    /// Removes the heartbeat of this replica from the store.
    Leave(#[expect(dead_code, reason = "dropping it is the answer")] Round),
}

impl Asks {
    pub(super) fn new() -> (Self, Asked) {
        let (writes, of_writes) = mpsc::unbounded_channel();
        let (reads, of_reads) = mpsc::unbounded_channel();
        let (beats, of_beats) = mpsc::unbounded_channel();
        let (turns, of_turns) = mpsc::unbounded_channel();
        let (lost, of_lost) = watch::channel(Vec::new());
        let asked = Asked { writes: of_writes, reads: of_reads, beats: of_beats, turns: of_turns, lost: of_lost };
        (Self { writes, reads, beats, turns, lost, has_failed: AtomicBool::new(false) }, asked)
    }

    /// Asks the reader to read the document, without waiting.
    pub(super) fn ask_read(&self) {
        let _ = self.reads.send(oneshot::channel().0);
    }

    /// Asks for a heartbeat, without waiting.
    pub(super) fn ask_beat(&self) {
        let _ = self.beats.send(BeatRequest::Beat(oneshot::channel().0));
    }

    /// Asks the writer to write changes. Returns the receiver of the results.
    pub(super) fn write(&self, calls: Vec<WriteCall>) -> WriteAnswers {
        let (answer, answered) = oneshot::channel();
        let _ = self.writes.send((calls, answer));
        answered
    }

    /// Waits until the document has been read by a round that began after this call.
    pub(super) async fn read(&self) {
        let (round, end) = oneshot::channel();
        let _ = self.reads.send(round);
        let _ = end.await;
    }

    /// Waits until a heartbeat has been sent by a round that began after this call.
    pub(super) async fn beat(&self) {
        self.beats(BeatRequest::Beat).await;
    }

    /// Removes the heartbeat of this replica from the store.
    pub(super) async fn leave(&self) {
        self.beats(BeatRequest::Leave).await;
    }

    async fn beats(&self, request: impl FnOnce(Round) -> BeatRequest) {
        let (round, end) = oneshot::channel();
        let _ = self.beats.send(request(round));
        let _ = end.await;
    }
}

/// The interface of the sites for the tasks of the fleet.
pub(crate) trait FleetSites: Send + Sync {
    /// Returns the name and the status of each site, or of each host of a site with one robots.txt
    /// per host.
    fn statuses(&self) -> Vec<(String, Status)>;

    /// Accepts the pending version with this hash. Blocks.
    fn accept(&self, site: &str, hash: &str, by: &Attribution);

    /// Rolls a site back to the previous version. Blocks.
    fn roll_back(&self, site: &str, by: &Attribution);

    /// Records that enforcement was switched off or on, so that the board shows a gap in its
    /// counts.
    fn were_switched_off(&self);
}
