//! Ends HTTP/2 streams whose client does not take what it asked for.
//!
//! A stream waits for flow-control window inside hyper, where neither the socket (other streams still move) nor the
//! body (nobody asks for more) can see it. So each stream's task is wrapped: the body notes when a frame was handed
//! out, and when nobody asked for the next one in time the task ends, which resets this stream and no other.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::Executor;
use pin_project_lite::pin_project;

use super::idle::Idle;

tokio::task_local! {
    static CONSUMER: Consumer;
}

/// Whoever takes frames of a response body; found through the task, because hyper builds the stream around the
/// service's answer and offers no other way from one to the other.
#[derive(Clone, Debug)]
pub(super) struct Consumer {
    /// Odd from when a frame is handed out until the next one is asked for; never twice the same value for two frames.
    turn: Arc<AtomicUsize>,
}

impl Consumer {
    /// The consumer of this task's stream; none outside HTTP/2.
    pub(super) fn current() -> Option<Self> {
        CONSUMER.try_with(Clone::clone).ok()
    }

    pub(super) fn asks(&self) {
        self.turn.store(self.turn().next_multiple_of(2), Ordering::Relaxed);
    }

    pub(super) fn is_served(&self) {
        self.turn.store(self.turn() | 1, Ordering::Relaxed);
    }

    fn turn(&self) -> usize {
        // Only the stream's own task reads and writes it; atomic so that the task may change threads.
        self.turn.load(Ordering::Relaxed)
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
        let consumer = Consumer { turn: Arc::default() };
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
            this.idle.moved();
        }
        // Single octets of window do not count as moving: a whole frame has to fit through in time.
        if turn % 2 == 1 { this.idle.poll_expired(cx) } else { Poll::Pending }
    }
}
