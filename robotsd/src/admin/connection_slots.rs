//! Slots for the connections of one listener. The slots prevent idle connections from locking out
//! an operator.
//!
//! A listener has a small number of slots. If all slots are in use, an open connection is closed,
//! if possible, to free a slot for the new connection. The oldest connection without a complete
//! request is closed first. If every connection has a complete request, the oldest connection whose
//! client has not read the response is closed. A client that opens many idle connections therefore
//! cannot block a client that sends its request immediately. Connections with a request in progress
//! are not closed. Two slots are reserved for the kill switch, because requests in progress may
//! occupy all other slots.
//!
//! The owner of a Unix socket has priority: other users' connections are closed to make room for
//! the owner's connections. The owner's connections are never closed to make room for other users.
//! If requests are in progress in all other slots, the owner gets one of [`EXTRA_OWNER_SLOTS`]
//! additional slots.

use std::convert::Infallible;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

const MAX_CONNECTIONS: usize = 24;

/// Number of additional slots for the owner of the Unix socket. The additional slots are used if
/// requests are in progress in all other slots.
const EXTRA_OWNER_SLOTS: usize = 8;

/// Returns the maximum number of connections over one Unix socket and `addresses` TCP listeners.
pub(crate) const fn max_admin_connections(addresses: usize) -> usize {
    MAX_CONNECTIONS + EXTRA_OWNER_SLOTS + addresses.saturating_mul(MAX_CONNECTIONS)
}

/// Number of slots reserved for urgent requests.
const RESERVED_SLOTS: usize = 2;

/// Role of a client. If all slots are in use, connections of clients with a lower role are closed
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PeerRole {
    /// Any client over TCP, or another user on the Unix socket.
    Other,
    /// The owner of the Unix socket, or root.
    Owner,
}

/// Progress of a connection. If all slots are in use, connections in an earlier stage are closed
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ConnectionStage {
    /// The client has not sent a complete request.
    Waiting,
    /// The response is ready, but the client has not read it.
    Answered,
    Working,
}

/// Whether a request may use the reserved slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urgency {
    Usual,
    /// The request may use the reserved slots. Only requests that use the kill switch are urgent.
    Urgent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotError {
    /// The maximum number of requests is in progress.
    Busy,
    /// The connection is being closed to make room for another connection.
    Closed,
}

#[derive(Debug, Default)]
pub(crate) struct ConnectionSlots {
    table: Mutex<SlotTable>,
}

#[derive(Debug, Default)]
struct SlotTable {
    /// Slots in use, the oldest connection first.
    open: Vec<OpenSlot>,
    next: u64,
    /// Whether the listener has ended, so that new connections get no slot.
    is_closed: bool,
}

#[derive(Debug)]
struct OpenSlot {
    number: u64,
    peer: PeerRole,
    stage: ConnectionStage,
    /// Sender whose drop closes the connection.
    _close: oneshot::Sender<Infallible>,
}

#[derive(Debug)]
pub(super) struct ConnectionSlot {
    number: u64,
    peer: PeerRole,
    slots: Arc<ConnectionSlots>,
}

pub(super) type Closing = oneshot::Receiver<Infallible>;

impl ConnectionSlots {
    /// Returns a slot for a new connection; `None` if no slot is free and no connection can be
    /// closed.
    pub(super) fn take(self: &Arc<Self>, peer: PeerRole) -> Option<(Arc<ConnectionSlot>, Closing)> {
        let mut table = self.table.lock();
        if table.is_closed {
            return None;
        }
        if table.open.len() >= MAX_CONNECTIONS {
            let closable = table.open.iter().enumerate();
            let closable = closable.filter(|(_, open)| open.stage != ConnectionStage::Working && open.peer <= peer);
            // This chooses the oldest of several equal connections: `open` is ordered by age, and
            // `min_by_key` returns the first of several equal elements.
            let victim = closable.min_by_key(|(_, open)| (open.peer, open.stage)).map(|(at, _)| at);
            match victim {
                Some(at) => drop(table.open.remove(at)),
                None if peer == PeerRole::Owner && table.open.len() < MAX_CONNECTIONS + EXTRA_OWNER_SLOTS => {}
                None => return None,
            }
        }
        let (close, closing) = oneshot::channel();
        let number = table.next;
        table.next += 1;
        table.open.push(OpenSlot { number, peer, stage: ConnectionStage::Waiting, _close: close });
        Some((Arc::new(ConnectionSlot { number, peer, slots: Arc::clone(self) }), closing))
    }

    /// Ends the slots when the listener ends. Connections without a complete request are closed,
    /// because their requests would be checked against the settings of the ended listener.
    pub(crate) fn close(&self) {
        let mut table = self.table.lock();
        table.is_closed = true;
        table.open.retain(|open| open.stage != ConnectionStage::Waiting);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.lock().open.is_empty()
    }
}

impl ConnectionSlot {
    pub(super) fn begin(&self, work: Urgency) -> Result<(), SlotError> {
        let mut table = self.slots.table.lock();
        let working = table.open.iter().filter(|open| open.stage == ConnectionStage::Working).count();
        if working >= MAX_CONNECTIONS - RESERVED_SLOTS && work == Urgency::Usual && self.peer == PeerRole::Other {
            return Err(SlotError::Busy);
        }
        let open = table.open.iter_mut().find(|open| open.number == self.number).ok_or(SlotError::Closed)?;
        open.stage = ConnectionStage::Working;
        Ok(())
    }

    pub(super) fn answer(&self) {
        if let Some(open) = self.slots.table.lock().open.iter_mut().find(|open| open.number == self.number) {
            open.stage = ConnectionStage::Answered;
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.slots.table.lock().open.retain(|open| open.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Taken = (Arc<ConnectionSlot>, Closing);

    fn is_open((_, closing): &mut Taken) -> bool {
        matches!(closing.try_recv(), Err(oneshot::error::TryRecvError::Empty))
    }

    fn take(slots: &Arc<ConnectionSlots>, peer: PeerRole, number: usize) -> Vec<Taken> {
        (0..number).map(|_| slots.take(peer).unwrap()).collect()
    }

    fn closed(taken: &mut [Taken]) -> Vec<usize> {
        (0..taken.len()).filter(|at| !is_open(&mut taken[*at])).collect()
    }

    #[test]
    fn the_oldest_idle_connection_is_closed_for_a_new_one() {
        let slots = Arc::new(ConnectionSlots::default());
        let mut open = take(&slots, PeerRole::Other, MAX_CONNECTIONS);
        open[0].0.begin(Urgency::Usual).unwrap();
        open[1].0.answer();
        assert_eq!(closed(&mut open), [0; 0]);
        let mut more = take(&slots, PeerRole::Other, MAX_CONNECTIONS);
        // The connection with a request in progress and the connection with a response stay open.
        assert_eq!(closed(&mut open), (2..MAX_CONNECTIONS).collect::<Vec<_>>());
        assert_eq!(closed(&mut more), [0, 1]);
        assert_eq!(open[5].0.begin(Urgency::Urgent), Err(SlotError::Closed));
        assert_eq!(more[2].0.begin(Urgency::Usual), Ok(()));
        drop((open, more));
        assert!(slots.table.lock().open.is_empty());
    }

    #[test]
    fn closing_a_listener_closes_idle_connections_and_accepts_no_new_ones() {
        let slots = Arc::new(ConnectionSlots::default());
        let mut open = take(&slots, PeerRole::Other, 3);
        open[0].0.begin(Urgency::Usual).unwrap();
        open[1].0.answer();
        slots.close();
        assert_eq!(closed(&mut open), [2]);
        assert_eq!(open[2].0.begin(Urgency::Urgent), Err(SlotError::Closed));
        assert!(slots.take(PeerRole::Other).is_none());
    }

    #[test]
    fn the_oldest_unread_response_is_dropped_if_no_connection_is_idle() {
        let slots = Arc::new(ConnectionSlots::default());
        let mut open = take(&slots, PeerRole::Other, MAX_CONNECTIONS);
        open.iter().for_each(|(slot, _)| slot.answer());
        let _new = take(&slots, PeerRole::Other, 1);
        assert_eq!(closed(&mut open), [0]);
    }

    #[test]
    fn two_slots_are_reserved_for_urgent_requests() {
        let slots = Arc::new(ConnectionSlots::default());
        let open = take(&slots, PeerRole::Other, MAX_CONNECTIONS);
        let begun = open.iter().filter(|(slot, _)| slot.begin(Urgency::Usual) == Ok(())).count();
        assert_eq!(begun, MAX_CONNECTIONS - RESERVED_SLOTS);
        let mut urgent = take(&slots, PeerRole::Other, 1);
        assert_eq!(urgent[0].0.begin(Urgency::Usual), Err(SlotError::Busy));
        assert_eq!(urgent[0].0.begin(Urgency::Urgent), Ok(()));
        assert!(is_open(&mut urgent[0]));
    }

    #[test]
    fn the_owner_always_gets_a_slot_and_keeps_it_if_others_connect() {
        let slots = Arc::new(ConnectionSlots::default());
        let mut others = take(&slots, PeerRole::Other, MAX_CONNECTIONS);
        let mut owners = take(&slots, PeerRole::Owner, 1);
        assert_eq!(closed(&mut others), [0]);
        // The oldest connection now belongs to the owner.
        let _more = take(&slots, PeerRole::Other, MAX_CONNECTIONS * 2);
        assert!(is_open(&mut owners[0]));
        drop((others, owners, _more));
        let others = take(&slots, PeerRole::Other, MAX_CONNECTIONS);
        others.iter().for_each(|(slot, _)| slot.begin(Urgency::Urgent).unwrap());
        assert!(slots.take(PeerRole::Other).is_none());
        let owners = take(&slots, PeerRole::Owner, 1);
        assert_eq!(owners[0].0.begin(Urgency::Usual), Ok(()));
    }

    #[test]
    fn the_number_of_the_owners_connections_is_bounded() {
        let slots = Arc::new(ConnectionSlots::default());
        let others = take(&slots, PeerRole::Other, MAX_CONNECTIONS);
        others.iter().for_each(|(slot, _)| slot.begin(Urgency::Urgent).unwrap());
        let mut owners = Vec::new();
        for _ in 0..EXTRA_OWNER_SLOTS {
            owners.extend(take(&slots, PeerRole::Owner, 1));
            assert_eq!(owners.last().unwrap().0.begin(Urgency::Usual), Ok(()));
        }
        assert!(slots.take(PeerRole::Owner).is_none());
        owners[3].0.answer();
        let mut idle = take(&slots, PeerRole::Owner, 1);
        assert_eq!(closed(&mut owners), [3]);
        let _new = take(&slots, PeerRole::Owner, 1);
        assert_eq!(closed(&mut idle), [0]);
        assert_eq!(slots.table.lock().open.len(), MAX_CONNECTIONS + EXTRA_OWNER_SLOTS);
        const { assert!(max_admin_connections(1) == 2 * MAX_CONNECTIONS + EXTRA_OWNER_SLOTS) };
    }
}
