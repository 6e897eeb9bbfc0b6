//! How many idle connections close for the new ones that wait for a slot.
//!
//! A worker that is busy computing lets those that wait wait. More claims would bring no slot sooner, and would close
//! connections without need; so there are as many claims as waiters. Only where connections decline, because a request
//! came after all, more are claimed at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::edge::connection_state::state::ConnectionState;

/// A connection whose slot has been claimed.
#[derive(Debug)]
pub(crate) struct SlotClaim {
    connection: Arc<ConnectionState>,
    made: Instant,
    /// How long it had been idle.
    pub(crate) idle: Duration,
}

/// The claims of all waiters, until their slots have come free.
#[derive(Debug, Default)]
pub(crate) struct SlotClaims(Mutex<OutstandingClaims>);

#[derive(Debug, Default)]
struct OutstandingClaims {
    waiters: usize,
    claims: Vec<SlotClaim>,
    /// One more than the claims in excess of the waiters.
    at_once: usize,
}

/// A new connection that waits for a slot, until this is dropped.
pub(crate) struct SlotWaiter<'c>(&'c SlotClaims);

/// How many connections are claimed for one slot where others have declined.
const MOST_CLAIMS: usize = 32;

/// After so long a claim no longer counts: whatever keeps that slot, others may be free sooner.
const CLAIM_LASTS: Duration = Duration::from_secs(1);

impl SlotClaim {
    /// The slot of a connection that had been `idle` for so long.
    pub(crate) const fn new(connection: Arc<ConnectionState>, made: Instant, idle: Duration) -> Self {
        Self { connection, made, idle }
    }
}

impl SlotClaims {
    pub(crate) fn wait(&self) -> SlotWaiter<'_> {
        self.outstanding().waiters += 1;
        SlotWaiter(self)
    }

    fn outstanding(&self) -> MutexGuard<'_, OutstandingClaims> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotWaiter<'_> {
    /// Makes as many claims as are due with `reclaim`. Returns whether all of them could be made.
    pub(crate) fn claim(&self, mut reclaim: impl FnMut() -> Option<SlotClaim>) -> bool {
        let mut outstanding = self.0.outstanding();
        let OutstandingClaims { waiters, claims, at_once } = &mut *outstanding;
        let (mut came, mut declined) = (false, false);
        claims.retain(|claim| {
            let has_ended = claim.connection.has_ended();
            came |= has_ended;
            let is_open = !has_ended && claim.connection.is_reclaimed();
            declined |= !has_ended && !is_open;
            is_open && claim.made.elapsed() < CLAIM_LASTS
        });
        *at_once = match (came, declined) {
            (false, false) => (*at_once).max(1),
            (_, true) => (*at_once * 2).clamp(1, MOST_CLAIMS),
            (true, false) => 1,
        };
        while claims.len() + 1 < *waiters + *at_once {
            match reclaim() {
                Some(claim) => claims.push(claim),
                None => return !claims.is_empty(),
            }
        }
        true
    }
}

impl Drop for SlotWaiter<'_> {
    fn drop(&mut self) {
        self.0.outstanding().waiters -= 1;
    }
}
