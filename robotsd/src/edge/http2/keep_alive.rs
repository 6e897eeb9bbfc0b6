//! Finds out that a client of HTTP/2 has gone silently, also while its streams wait for something.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use h2::{Ping, PingPong};
use tokio::time::{Instant, Sleep, sleep};

use crate::edge::connection_state::delivery::Unsent;
use crate::edge::connection_state::state::ConnectionState;
use crate::edge::limits::EdgeLimits;

/// Asks a client that has sent nothing for [`EdgeLimits::keep_alive`] whether it is there, and waits [`EdgeLimits::header_read`]
/// for its answer.
///
/// The PING waits behind all that was written before it. So a client that takes what is written is there, and while its socket takes
/// nothing, the deadline of the [socket](crate::edge::connection::watched_socket) is the one that counts.
pub(crate) struct KeepAlive {
    pings: Option<PingPong>,
    timer: Pin<Box<Sleep>>,
    interval: Duration,
    patience: Duration,
    is_asked: bool,
    /// As last read from the connection.
    taken: usize,
}

impl KeepAlive {
    pub(crate) fn new(pings: Option<PingPong>, limits: &EdgeLimits) -> Self {
        let (interval, patience) = (limits.keep_alive, limits.header_read);
        Self { pings, timer: Box::pin(sleep(interval)), interval, patience, is_asked: false, taken: 0 }
    }

    /// Ready once the client has not answered.
    pub(crate) fn poll_gone(&mut self, connection: &ConnectionState, cx: &mut Context<'_>) -> Poll<()> {
        let Some(pings) = &mut self.pings else { return Poll::Pending };
        loop {
            let taken = connection.delivery().taken();
            let has_taken = std::mem::replace(&mut self.taken, taken) != taken;
            // Whatever comes is an answer.
            if self.is_asked && (pings.poll_pong(cx).is_ready() || connection.take_heard() || has_taken) {
                self.is_asked = false;
                self.timer.as_mut().reset(Instant::now() + self.interval);
            }
            ready!(self.timer.as_mut().poll(cx));
            if connection.delivery().unsent() == Unsent::Socket {
                self.timer.as_mut().reset(Instant::now() + self.patience);
                continue;
            }
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
