//! Ends HTTP/2 streams whose client does not take their response.
//!
//! A stream waits for flow-control window inside the HTTP library, where neither the socket (other streams still move) nor the body
//! (which is not polled) can see it. So each stream's task is wrapped: the body notes when a frame was handed out, and
//! when the next one is not polled for in time the task ends, which resets this stream and no other.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::Instant;

use crate::edge::connection_state::ConnectionState;
use crate::exchange::{Flag, IdleTimeout, InterimClient, InterimQueue, Transfer};

/// The consumer of the frames of a response body, shared by the stream's task, the body and its exchange.
pub(crate) type StreamConsumer = Arc<StreamDelivery>;

#[derive(Debug, Default)]
pub(crate) struct StreamDelivery {
    /// Odd from when a frame is handed out until the next one is polled for; never twice the same value for two frames.
    turn: AtomicUsize,
    /// Octets of the body that the stream has taken.
    sent: AtomicU64,
    /// It has taken the end, too.
    pub(crate) is_ended: Flag,
    /// The upstream connection that the response holds, and the connection it is a stream of.
    holds: OnceLock<(Transfer, Arc<ConnectionState>)>,
    interim: InterimQueue,
}

impl InterimClient for StreamDelivery {
    fn interim(&self) -> &InterimQueue {
        &self.interim
    }
}

impl StreamDelivery {
    pub(crate) fn polled(&self) {
        self.turn.store(self.turn().next_multiple_of(2), Ordering::Relaxed);
    }

    pub(crate) fn handed_out(&self) {
        self.turn.store(self.turn() | 1, Ordering::Relaxed);
    }

    /// The stream has taken so many octets of the body.
    pub(crate) fn note_sent(&self, octets: usize) {
        self.sent.fetch_add(octets as u64, Ordering::Relaxed);
    }

    /// Octets of the body that the stream has taken.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// The response holds a connection to an upstream.
    pub(crate) fn hold(&self, transfer: Transfer, connection: Arc<ConnectionState>) {
        // A stream has one response.
        let _ = self.holds.set((transfer, connection));
    }

    fn turn(&self) -> usize {
        // Only the stream's own task reads and writes it; atomic so that the task may change threads.
        self.turn.load(Ordering::Relaxed)
    }
}

/// A stream with a deadline for standing still.
pub(crate) fn watch<F: Future>(stream: F, consumer: StreamConsumer, idle: Duration) -> impl Future<Output = ()> {
    Watched { stream, consumer, seen: 0, timeout: IdleTimeout::new(idle), turns: StreamTurns::new(TURN, LOOK) }
}

pin_project! {
    struct Watched<F> {
        #[pin]
        stream: F,
        consumer: StreamConsumer,
        seen: usize,
        timeout: IdleTimeout,
        turns: StreamTurns,
    }
}

/// How often a stream that stands still looks whether its connection moves.
const LOOK: Duration = Duration::from_millis(500);

/// So long a stream may wait for its turn on a connection that moves: a hundred pieces at 50 KB a second. Not for longer,
/// because a client may take one stream in small pieces and no other at all.
const TURN: Duration = Duration::from_secs(30);

/// Whether a stream stands still because others of its connection have their turn.
///
/// The streams of a slow client share its socket: a stream moves when a whole piece of it is through, which takes as long
/// as a piece of every other one. Only what waits for the socket is such a client's; where a write need not wait, a stream
/// that stands still has no window.
struct StreamTurns {
    /// When the stream itself last moved.
    last: Instant,
    /// As last read from the connection.
    taken: usize,
    longest: Duration,
    look: IdleTimeout,
}

impl StreamTurns {
    /// For turns that come within `longest`, looked at so often.
    fn new(longest: Duration, often: Duration) -> Self {
        Self { last: Instant::now(), taken: 0, longest, look: IdleTimeout::new(often) }
    }

    fn moved(&mut self) {
        self.last = Instant::now();
    }

    /// Whether the connection has moved for others since the last call.
    fn have_passed(&mut self, connection: &ConnectionState) -> bool {
        let taken = connection.delivery.taken();
        std::mem::replace(&mut self.taken, taken) != taken && self.last.elapsed() < self.longest
    }

    /// Has the task look again, while the stream stands still.
    fn look_again(&mut self, cx: &mut Context<'_>) {
        while self.look.poll_expired(cx).is_ready() {
            self.look.reset();
        }
    }
}

impl<F: Future> Future for Watched<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        if this.stream.poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let held = this.consumer.holds.get();
        let turn = this.consumer.turn();
        if *this.seen != turn {
            *this.seen = turn;
            this.timeout.progressed(|| held.map(|(transfer, _)| transfer.clone()));
            this.turns.moved();
        }
        // Single octets of window do not count as progress: a whole piece has to fit through in time.
        if turn.is_multiple_of(2) {
            return Poll::Pending;
        }
        if let Some((transfer, connection)) = held {
            if this.turns.have_passed(connection) && this.timeout.is_waiting {
                transfer.resumed();
            }
            this.turns.look_again(cx);
        }
        this.timeout.poll_stalled(held.map(|(transfer, _)| transfer), cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::connection::settings::EdgeLimits;
    use crate::exchange::StallObserver;
    use crate::exchange::test_peer::soon;

    /// How often the transfer was reported to stand still, and to have moved.
    #[derive(Debug, Default)]
    struct Reports {
        stalled: AtomicUsize,
        resumed: AtomicUsize,
    }

    impl StallObserver for Reports {
        fn poll_stalled(&self, _: &mut Context<'_>) -> Poll<()> {
            self.stalled.fetch_add(1, Ordering::Relaxed);
            Poll::Pending
        }

        fn resumed(&self) {
            self.resumed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether a stream, which has been handed a piece that does not get through, counts as moving.
    async fn moves(is_taking: bool, turn: Duration) -> bool {
        let (connection, reports) =
            (Arc::new(ConnectionState::new(&EdgeLimits::default())), Arc::new(Reports::default()));
        let consumer = StreamConsumer::default();
        consumer.hold(Transfer::new(&reports), Arc::clone(&connection));
        consumer.handed_out();
        let turns = StreamTurns::new(turn, Duration::from_millis(1));
        let timeout = IdleTimeout::new(Duration::from_secs(600));
        let stream = tokio::spawn(Watched { stream: std::future::pending::<()>(), consumer, seen: 0, timeout, turns });
        soon(async {
            while reports.stalled.load(Ordering::Relaxed) < 20 {
                if is_taking {
                    connection.delivery.note_taken();
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
        stream.abort();
        reports.resumed.load(Ordering::Relaxed) > 0
    }

    #[tokio::test]
    async fn a_stream_that_waits_for_its_turn_moves_with_its_connection() {
        assert!(moves(true, Duration::from_secs(600)).await);
        // Nothing has to wait for the socket, or the turn never comes.
        assert!(!moves(false, Duration::from_secs(600)).await);
        assert!(!moves(true, Duration::ZERO).await);
    }
}
