//! Finds out that a client of HTTP/2 has gone silently, also while its streams wait for something.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use h2::{Ping, PingPong};
use tokio::time::{Instant, Sleep, sleep};

use crate::edge::connection_state::state::ConnectionState;
use crate::edge::limits::EdgeLimits;

/// Asks a client that has sent nothing for [`EdgeLimits::keep_alive`] whether it is there, and waits [`EdgeLimits::header_read`]
/// for its answer.
pub(crate) struct KeepAlive {
    pings: Option<PingPong>,
    timer: Pin<Box<Sleep>>,
    interval: Duration,
    patience: Duration,
    is_asked: bool,
}

impl KeepAlive {
    pub(crate) fn new(pings: Option<PingPong>, limits: &EdgeLimits) -> Self {
        let (interval, patience) = (limits.keep_alive, limits.header_read);
        Self { pings, timer: Box::pin(sleep(interval)), interval, patience, is_asked: false }
    }

    /// Ready once the client has not answered.
    pub(crate) fn poll_gone(&mut self, connection: &ConnectionState, cx: &mut Context<'_>) -> Poll<()> {
        let Some(pings) = &mut self.pings else { return Poll::Pending };
        loop {
            // Whatever comes is an answer.
            if self.is_asked && (pings.poll_pong(cx).is_ready() || connection.take_heard()) {
                self.is_asked = false;
                self.timer.as_mut().reset(Instant::now() + self.interval);
            }
            ready!(self.timer.as_mut().poll(cx));
            if self.is_asked {
                return Poll::Ready(());
            }
            let wait = if connection.take_heard() {
                self.interval
            } else {
                // One whose answer something else has come before is over with. Where it has had no answer at all, it still stands.
                let _ = pings.poll_pong(cx);
                let _ = pings.send_ping(Ping::opaque());
                self.is_asked = true;
                self.patience
            };
            self.timer.as_mut().reset(Instant::now() + wait);
        }
    }
}
