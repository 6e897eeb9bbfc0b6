//! Whether a server that sends nothing is still there: a PING, and a deadline for its answer.
//!
//! Servers of gRPC close a connection that is sent more than a PING in five minutes while they send no DATA and no HEADERS. So one
//! is sent when a request has run into its deadline in silence, which says more than the time, and else after [`QUIET`]. Until it is
//! answered no new request is sent on the connection. Where it is too early for a PING, none is sent on it any more.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use h2::{Ping, PingPong};
use tokio::time::{Instant, Sleep, sleep_until};

use super::connection_io::Passed;

/// After so long without an octet the server is asked.
pub(super) const QUIET: Duration = Duration::from_secs(310);

/// Doubts about a connection, between the requests on it and the task that drives it.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    is_raised: AtomicBool,
    /// Whether the server could not be asked, so that the doubt stays.
    is_kept: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Doubt {
    /// A request has waited in vain: the server is asked whether it is there.
    pub(super) fn raise(&self) {
        if !self.is_raised.swap(true, Ordering::SeqCst)
            && let Some(waker) = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            waker.wake();
        }
    }

    pub(super) fn is_raised(&self) -> bool {
        self.is_raised.load(Ordering::SeqCst)
    }

    /// Whether the connection is to be used for no further request.
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept.load(Ordering::SeqCst)
    }

    fn keep(&self) {
        self.is_kept.store(true, Ordering::SeqCst);
        self.settle();
    }

    fn settle(&self) {
        self.is_raised.store(false, Ordering::SeqCst);
    }

    fn poll_raised(&self, cx: &mut Context<'_>) -> bool {
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
        self.is_raised()
    }
}

/// Asks the server and waits for its answer.
pub(super) struct KeepAlive {
    ping: PingPong,
    passed: Arc<Passed>,
    doubt: Arc<Doubt>,
    patience: Duration,
    /// When the server was asked; none while nothing is to be answered.
    asked: Option<Instant>,
    /// When the last PING was sent, and how many frames of messages had come until then.
    last: Option<(Instant, usize)>,
    timer: Pin<Box<Sleep>>,
}

impl KeepAlive {
    /// Gives the server `patience` to answer.
    pub(super) fn new(ping: PingPong, passed: Arc<Passed>, doubt: Arc<Doubt>, patience: Duration) -> Self {
        let timer = Box::pin(sleep_until(passed.received_at() + QUIET));
        Self { ping, passed, doubt, patience, asked: None, last: None, timer }
    }

    /// Ready once the server has not answered in time, or the connection has ended.
    pub(super) fn poll_dead(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let Some(asked) = self.asked else {
                let is_quiet = self.timer.as_mut().poll(cx).is_ready();
                let due = self.passed.received_at() + QUIET;
                if !self.doubt.poll_raised(cx) && (!is_quiet || due > Instant::now()) {
                    if !is_quiet {
                        return Poll::Pending;
                    }
                    self.timer.as_mut().reset(due);
                    continue;
                }
                let (now, content) = (Instant::now(), self.passed.content());
                if self.last.is_some_and(|(at, before)| content == before && now < at + QUIET) {
                    self.doubt.keep();
                    self.timer.as_mut().reset(now + QUIET);
                    continue;
                }
                self.last = Some((now, content));
                if self.ping.send_ping(Ping::opaque()).is_err() {
                    return Poll::Ready(());
                }
                self.asked = Some(now);
                self.timer.as_mut().reset(now + self.patience);
                continue;
            };
            match self.ping.poll_pong(cx) {
                Poll::Ready(Ok(_)) => {
                    self.asked = None;
                    self.doubt.settle();
                    self.timer.as_mut().reset(self.passed.received_at() + QUIET);
                }
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => {
                    if self.timer.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    // What it sends meanwhile shows that it is there; its answer may be behind that.
                    let latest = self.passed.received_at();
                    if latest <= asked {
                        return Poll::Ready(());
                    }
                    self.asked = Some(latest);
                    self.timer.as_mut().reset(Instant::now() + self.patience);
                }
            }
        }
    }
}
