//! The idle connections of HTTP/1.1 that one worker keeps to one server.
//!
//! The last one into a pool is the first one out: it is the likeliest to be alive, and the rest may age and go.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tower_robots::internals::Mutex;

use super::http1_connection::{Certainty, UpstreamConnection};
use super::wait_queue::Demand;

/// Idle connections, the one that was used last at the end.
#[derive(Debug)]
pub(super) struct Http1Pool {
    idle: Mutex<VecDeque<Box<UpstreamConnection>>>,
    capacity: usize,
    timeout: Duration,
    demand: Arc<Demand>,
}

impl Http1Pool {
    pub(super) fn new(capacity: usize, timeout: Duration, demand: Arc<Demand>) -> Self {
        Self { idle: Mutex::new(VecDeque::new()), capacity, timeout, demand }
    }

    /// A connection that seems alive.
    pub(super) fn take(&self, certainty: Certainty) -> Option<Box<UpstreamConnection>> {
        loop {
            // Checked outside the lock: others need not wait for it.
            let mut connection = self.idle.lock().pop_back()?;
            if !connection.is_expired(Instant::now(), self.timeout) && connection.is_alive(certainty) {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection whose exchange is over, unless it cannot be used again or another worker needs its place.
    pub(super) fn put(&self, mut connection: Box<UpstreamConnection>) {
        if self.capacity == 0 || !connection.is_reusable() || self.demand.are_others_first() {
            return;
        }
        connection.rest();
        let mut idle = self.idle.lock();
        let surplus = (idle.len() == self.capacity).then(|| idle.pop_front());
        idle.push_back(connection);
        drop(idle);
        drop(surplus);
        self.demand.has_returned();
    }

    /// Closes connections that have been idle for too long, or that the upstream has closed.
    pub(super) fn sweep(&self) {
        let now = Instant::now();
        let mut kept = std::mem::take(&mut *self.idle.lock());
        kept.retain_mut(|connection| {
            !connection.is_expired(now, self.timeout) && connection.is_alive(Certainty::AskKernel)
        });
        let mut idle = self.idle.lock();
        // What came meanwhile is younger.
        kept.append(&mut idle);
        *idle = kept;
    }

    /// Closes the connection that has been idle for longest, if there is one.
    pub(super) fn give_up(&self) -> Option<()> {
        // Closed outside the lock.
        let oldest = self.idle.lock().pop_front();
        oldest.map(drop)
    }

    /// Closes every idle connection.
    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *self.idle.lock());
        drop(all);
    }
}
