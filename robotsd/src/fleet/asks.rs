//! What the tasks that talk to the store are asked for, by the rest of the process and by each other, and what they ask of its sites. None
//! of them waits for another's requests, and those who ask for the same round share it.

use std::sync::atomic::AtomicBool;

use tokio::sync::{mpsc, oneshot, watch};
use tower_robots::internals::Attribution;
use tower_robots::live::Status;

use super::document::{WriteAnswer, WriteCall};
use crate::publish_hook::{Turn, TurnOf};

/// What the tasks that talk to the store are asked for. None of them waits for another's requests.
#[derive(Debug)]
pub(super) struct Asks {
    writes: mpsc::UnboundedSender<WriteRequest>,
    reads: mpsc::UnboundedSender<Round>,
    beats: mpsc::UnboundedSender<BeatRequest>,
    pub(super) turns: mpsc::UnboundedSender<TurnRequest>,
    /// The entries that the store had lost when it was read last.
    pub(super) lost: watch::Sender<Vec<WriteCall>>,
    /// A write failed since the document was read: something may be lost that no change of it shows.
    pub(super) has_failed: AtomicBool,
}

/// The other ends of [`Asks`].
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) writes: mpsc::UnboundedReceiver<WriteRequest>,
    pub(super) reads: mpsc::UnboundedReceiver<Round>,
    pub(super) beats: mpsc::UnboundedReceiver<BeatRequest>,
    pub(super) turns: mpsc::UnboundedReceiver<TurnRequest>,
    pub(super) lost: watch::Receiver<Vec<WriteCall>>,
}

/// Writes, and what comes of them.
pub(super) type WriteRequest = (Vec<WriteCall>, oneshot::Sender<Result<Vec<WriteAnswer>, String>>);
pub(super) type WriteAnswers = oneshot::Receiver<Result<Vec<WriteAnswer>, String>>;

/// A question about a notice, by its id. An answer that is dropped has the asker send.
pub(super) type TurnRequest = (String, TurnOf, oneshot::Sender<Turn>);

/// Dropped at the end of a round that began after it was sent.
pub(super) type Round = oneshot::Sender<()>;

#[derive(Debug)]
pub(super) enum BeatRequest {
    /// To say what this replica has, and hear the others.
    Beat(#[expect(dead_code, reason = "dropping it is the answer")] Round),
    /// To take this replica from the list.
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

    /// Has the document read.
    pub(super) fn ask_read(&self) {
        let _ = self.reads.send(oneshot::channel().0);
    }

    /// Has a heartbeat sent.
    pub(super) fn ask_beat(&self) {
        let _ = self.beats.send(BeatRequest::Beat(oneshot::channel().0));
    }

    /// Has changes written.
    pub(super) fn write(&self, calls: Vec<WriteCall>) -> WriteAnswers {
        let (answer, answered) = oneshot::channel();
        let _ = self.writes.send((calls, answer));
        answered
    }

    /// Waits for a reading of the document that begins now.
    pub(super) async fn read(&self) {
        let (round, end) = oneshot::channel();
        let _ = self.reads.send(round);
        let _ = end.await;
    }

    /// Waits for a heartbeat that is sent from now on.
    pub(super) async fn beat(&self) {
        self.beats(BeatRequest::Beat).await;
    }

    /// Takes this replica from the list.
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
    /// Each robots.txt by its name, and how it stands.
    fn statuses(&self) -> Vec<(String, Status)>;

    /// Brings the version live that waits. Blocks.
    fn accept(&self, site: &str, hash: &str, by: &Attribution);

    /// Goes back to the version before. Blocks.
    fn roll_back(&self, site: &str, by: &Attribution);

    /// Enforcement was turned, so what was counted has a gap.
    fn were_switched_off(&self);
}
