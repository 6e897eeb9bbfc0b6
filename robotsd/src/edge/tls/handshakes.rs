//! The handshakes that are under way, the oldest of which gives way to one that waits.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;

use crate::edge::connection_state::state::{ConnectionState, Idleness};

/// Longer than the round trip to any client.
const GRACE: Duration = if cfg!(test) { Duration::from_millis(300) } else { Duration::from_secs(1) };

/// Handshakes that have a permit, in the order in which they got it. Those that have ended stay until they come first or
/// there are too many of them.
#[derive(Debug, Default)]
pub(crate) struct HandshakesUnderWay(Mutex<VecDeque<(Instant, Weak<Handshake>)>>);

/// Held by a handshake while it is under way.
#[derive(Debug)]
pub(crate) struct Handshake(Arc<ConnectionState>);

impl HandshakesUnderWay {
    pub(crate) fn begin(&self, connection: &Arc<ConnectionState>) -> Arc<Handshake> {
        let handshake = Arc::new(Handshake(Arc::clone(connection)));
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while all.front().is_some_and(|(_, first)| first.strong_count() == 0) {
            all.pop_front();
        }
        // One that lasts keeps those behind it here.
        if all.len() >= 64 && all.len() == all.capacity() {
            all.retain(|(_, handshake)| handshake.strong_count() > 0);
        }
        all.push_back((Instant::now(), Arc::downgrade(&handshake)));
        handshake
    }

    /// Gives up the handshake that has been under way for longest, if that is long enough. Returns when to look again.
    pub(crate) fn give_up(&self) -> Duration {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((since, first)) = all.front() {
            let waited = since.elapsed();
            let Some(handshake) = first.upgrade() else {
                all.pop_front();
                continue;
            };
            if waited < GRACE {
                return GRACE - waited;
            }
            all.pop_front();
            if handshake.0.reclaim(Idleness::Idle) {
                break;
            }
        }
        LOOK_AGAIN
    }
}

/// How long a permit that is given up may take to be free.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
