//! Ends HTTP/2 streams whose client does not take what it asked for.
//!
//! A stream waits for flow-control window inside hyper, where neither the socket (other streams still move) nor the
//! body (nobody asks for more) can see it. So each stream's task is wrapped: the body notes when a frame was handed
//! out, and when nobody asked for the next one in time the task ends, which resets this stream and no other.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::Executor;
use pin_project_lite::pin_project;

use super::idle::Idle;
use super::transfer::Transfer;

tokio::task_local! {
    static CONSUMER: Consumer;
}

/// Whoever takes frames of a response body; found through the task, because hyper builds the stream around the
/// service's answer and offers no other way from one to the other.
#[derive(Clone, Debug)]
pub(super) struct Consumer(Arc<Taking>);

#[derive(Debug, Default)]
struct Taking {
    /// Odd from when a frame is handed out until the next one is asked for; never twice the same value for two frames.
    turn: AtomicUsize,
    /// What the stream holds behind the edge.
    transfer: OnceLock<Transfer>,
}

impl Consumer {
    /// The consumer of this task's stream; none outside HTTP/2.
    pub(super) fn current() -> Option<Self> {
        CONSUMER.try_with(Clone::clone).ok()
    }

    pub(super) fn asks(&self) {
        self.0.turn.store(self.turn().next_multiple_of(2), Ordering::Relaxed);
    }

    pub(super) fn is_served(&self) {
        self.0.turn.store(self.turn() | 1, Ordering::Relaxed);
    }

    /// The answer holds a connection to an upstream.
    pub(super) fn carries(&self, transfer: Transfer) {
        // A stream has one answer.
        let _ = self.0.transfer.set(transfer);
    }

    fn turn(&self) -> usize {
        // Only the stream's own task reads and writes it; atomic so that the task may change threads.
        self.0.turn.load(Ordering::Relaxed)
    }
}

/// Spawns hyper's HTTP/2 streams with a deadline for standing still.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    pub(super) idle: Duration,
}

impl<F> Executor<F> for Streams
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        let consumer = Consumer(Arc::default());
        let stream = CONSUMER.scope(consumer.clone(), stream);
        tokio::spawn(Watched { stream, consumer, seen: 0, idle: Idle::new(self.idle) });
    }
}

pin_project! {
    struct Watched<F> {
        #[pin]
        stream: F,
        consumer: Consumer,
        seen: usize,
        idle: Idle,
    }
}

impl<F: Future> Future for Watched<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        if this.stream.poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let turn = this.consumer.turn();
        if *this.seen != turn {
            *this.seen = turn;
            if this.idle.is_waiting()
                && let Some(transfer) = this.consumer.0.transfer.get()
            {
                transfer.moved();
            }
            this.idle.moved();
        }
        // Single octets of window do not count as moving: a whole piece has to fit through in time.
        if turn.is_multiple_of(2) {
            return Poll::Pending;
        }
        if let Some(transfer) = this.consumer.0.transfer.get()
            && transfer.poll_stalled(cx).is_ready()
        {
            return Poll::Ready(());
        }
        this.idle.poll_expired(cx)
    }
}
