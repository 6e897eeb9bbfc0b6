//! Requests to the tasks that talk to the store, from the rest of the process and between these
//! tasks, and the interface of the sites for these tasks. Each task has its own queue, and requests
//! that arrive before a round begins share that round.

use std::sync::atomic::AtomicBool;

use tokio::sync::{mpsc, oneshot, watch};
use tower_robots::internals::Attribution;
use tower_robots::live::Status;

use super::document::{WriteAnswer, WriteCall};
use crate::webhooks::{Turn, TurnOf};

/// Sends requests to the tasks that talk to the store. Each task has its own queue.
#[derive(Debug)]
pub(super) struct Asks {
    writes: mpsc::UnboundedSender<WriteRequest>,
    reads: mpsc::UnboundedSender<Round>,
    beats: mpsc::UnboundedSender<BeatRequest>,
    pub(super) turns: mpsc::UnboundedSender<TurnRequest>,
    /// Entries that were missing from the store when it was last read.
    pub(super) lost: watch::Sender<Vec<WriteCall>>,
    /// Whether a write has failed since the document was read. Entries may then be missing although
    /// the document looks unchanged.
    pub(super) has_failed: AtomicBool,
}

/// The receivers for [`Asks`].
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) writes: mpsc::UnboundedReceiver<WriteRequest>,
    pub(super) reads: mpsc::UnboundedReceiver<Round>,
    pub(super) beats: mpsc::UnboundedReceiver<BeatRequest>,
    pub(super) turns: mpsc::UnboundedReceiver<TurnRequest>,
    pub(super) lost: watch::Receiver<Vec<WriteCall>>,
}

/// Writes, and the channel for their result.
pub(super) type WriteRequest = (Vec<WriteCall>, oneshot::Sender<Result<Vec<WriteAnswer>, String>>);
pub(super) type WriteAnswers = oneshot::Receiver<Result<Vec<WriteAnswer>, String>>;

/// A request to send a notice, by its ID. If the channel is dropped without a reply, the requester
/// sends the notice.
pub(super) type TurnRequest = (String, TurnOf, oneshot::Sender<Turn>);

/// A request for a round, dropped at the end of a round that began after the request.
pub(super) type Round = oneshot::Sender<()>;

#[derive(Debug)]
pub(super) enum BeatRequest {
    /// Sends this replica's heartbeat and reads those of the others.
    Beat(#[expect(dead_code, reason = "dropping it is the answer")] Round),
    /// Removes this replica from the list.
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

    /// Requests that the document is read.
    pub(super) fn ask_read(&self) {
        let _ = self.reads.send(oneshot::channel().0);
    }

    /// Requests that a heartbeat is sent.
    pub(super) fn ask_beat(&self) {
        let _ = self.beats.send(BeatRequest::Beat(oneshot::channel().0));
    }

    /// Requests that changes are written.
    pub(super) fn write(&self, calls: Vec<WriteCall>) -> WriteAnswers {
        let (answer, answered) = oneshot::channel();
        let _ = self.writes.send((calls, answer));
        answered
    }

    /// Waits until the document has been read again, beginning now.
    pub(super) async fn read(&self) {
        let (round, end) = oneshot::channel();
        let _ = self.reads.send(round);
        let _ = end.await;
    }

    /// Waits for a heartbeat that is sent from now on.
    pub(super) async fn beat(&self) {
        self.beats(BeatRequest::Beat).await;
    }

    /// Removes this replica from the list.
    pub(super) async fn leave(&self) {
        self.beats(BeatRequest::Leave).await;
    }

    async fn beats(&self, request: impl FnOnce(Round) -> BeatRequest) {
        let (round, end) = oneshot::channel();
        let _ = self.beats.send(request(round));
        let _ = end.await;
    }
}

/// The sites of the process.
pub(crate) trait FleetSites: Send + Sync {
    /// Returns the name and the status of each robots.txt.
    fn statuses(&self) -> Vec<(String, Status)>;

    /// Accepts the pending version with this hash. Blocks.
    fn accept(&self, site: &str, hash: &str, by: &Attribution);

    /// Goes back to the previous version. Blocks.
    fn roll_back(&self, site: &str, by: &Attribution);

    /// Records that enforcement was switched, which leaves a gap in the counts.
    fn were_switched_off(&self);
}
