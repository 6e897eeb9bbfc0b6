//! Ends HTTP/2 streams whose clients do not read the responses.
//!
//! A stream waits for its flow-control window inside the HTTP library. The socket cannot detect
//! such a wait, because other streams may still make progress. The body cannot detect the wait
//! either, because the library does not poll the body. So this module wraps the task of each stream
//! in a timeout. The body records when it returns a frame. If the task does not poll for the next
//! frame in time, the task ends, which resets only this stream.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::Instant;

use crate::edge::connection_state::ConnectionState;
use crate::http_common::{Flag, IdleTimeout, InterimClient, InterimQueue, Transfer};

/// The progress of a client in reading a response. The stream's task, the response body and the
/// `Exchange` of the request share this value.
pub(crate) type StreamConsumer = Arc<StreamDelivery>;

#[derive(Debug, Default)]
pub(crate) struct StreamDelivery {
    /// Counter that becomes odd when the body returns a frame, and even when the body is polled
    /// again. So the counter has a different value for each frame.
    turn: AtomicUsize,
    sent: AtomicU64,
    pub(crate) is_ended: Flag,
    /// The upstream connection that the response uses, and the client connection of the stream.
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

    pub(crate) fn note_frame_returned(&self) {
        self.turn.store(self.turn() | 1, Ordering::Relaxed);
    }

    pub(crate) fn note_sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub(crate) fn set_transfer(&self, transfer: Transfer, connection: Arc<ConnectionState>) {
        // Setting the value cannot fail, because a stream has only one response.
        let _ = self.holds.set((transfer, connection));
    }

    fn turn(&self) -> usize {
        // Only the stream's own task uses this value. The value is an atomic, because the task may
        // move between threads.
        self.turn.load(Ordering::Relaxed)
    }
}

/// Wraps a stream's task. The wrapped task ends if it makes no progress for `idle`.
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

/// Interval between checks that the connection of a stalled stream makes progress.
const LOOK: Duration = Duration::from_millis(500);

/// Maximum time that a stream may wait while other streams of its connection progress. At 55 KB per
/// second, a hundred pieces are sent within this time. Without a maximum, a client could read one
/// stream in small pieces and keep another stream open forever.
const TURN: Duration = Duration::from_secs(30);

/// Decides whether a stream is stalled only because other streams of its connection are being sent.
///
/// The streams of a slow client share the client's socket. Between two pieces of one stream, a
/// piece of every other stream may be sent, and only whole pieces count as progress. So a stream
/// that waits for the socket may seem stalled although its client reads. But if no write has to
/// wait for the socket, the stream waits for its flow-control window, and its client really has
/// stalled.
struct StreamTurns {
    last: Instant,
    /// Value of [`Delivery::taken`](crate::edge::connection_state::Delivery) at the last check.
    taken: usize,
    longest: Duration,
    look: IdleTimeout,
}

impl StreamTurns {
    /// `longest` is the maximum time that the stream may wait. `often` is the interval between
    /// checks of the connection.
    fn new(longest: Duration, often: Duration) -> Self {
        Self { last: Instant::now(), taken: 0, longest, look: IdleTimeout::new(often) }
    }

    fn moved(&mut self) {
        self.last = Instant::now();
    }

    /// Returns `true` if other streams of the connection have made progress since the last call,
    /// and this stream has waited for less than `longest`.
    fn others_progressed(&mut self, connection: &ConnectionState) -> bool {
        let taken = connection.delivery.taken();
        std::mem::replace(&mut self.taken, taken) != taken && self.last.elapsed() < self.longest
    }

    fn check_again(&mut self, cx: &mut Context<'_>) {
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
        // A single byte of window does not count as progress: a whole piece must be sent in time.
        if turn.is_multiple_of(2) {
            return Poll::Pending;
        }
        if let Some((transfer, connection)) = held {
            if this.turns.others_progressed(connection) && this.timeout.is_waiting {
                transfer.resumed();
            }
            this.turns.check_again(cx);
        }
        this.timeout.poll_stalled(held.map(|(transfer, _)| transfer), cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::connection::settings::EdgeLimits;
    use crate::http_common::StallObserver;
    use crate::http_common::test_peer::soon;

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

    async fn moves(is_taking: bool, turn: Duration) -> bool {
        let (connection, reports) =
            (Arc::new(ConnectionState::new(&EdgeLimits::default())), Arc::new(Reports::default()));
        let consumer = StreamConsumer::default();
        consumer.set_transfer(Transfer::new(&reports), Arc::clone(&connection));
        consumer.note_frame_returned();
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
    async fn a_waiting_stream_is_not_stalled_while_its_connection_makes_progress() {
        assert!(moves(true, Duration::from_secs(600)).await);
        // The stream is stalled if no write waits for the socket, or if the stream waits too long.
        assert!(!moves(false, Duration::from_secs(600)).await);
        assert!(!moves(true, Duration::ZERO).await);
    }
}
