//! Slots for the connections of one listener, so that idle connections keep no operator out.
//!
//! There are few slots, and every new connection gets one: at the limit the oldest connection that has not sent a whole
//! request is closed for it, else the oldest that does not take its answer. So any number of idle connections may be open,
//! and a request that is sent at once is still read. Requests that are being worked on are not interrupted; they leave
//! slots for the kill switch.
//!
//! The owner of a Unix socket comes first: others' connections are closed for the owner's and never the other way round,
//! and the owner always finds a slot, except beside eight requests of the owner's own that are being worked on.

use std::convert::Infallible;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Connections at once, for each listener.
const MOST: usize = 24;

/// Connections of the owner beyond that, where all others are being worked on.
const OWNERS: usize = 8;

/// Connections at once over a Unix socket, whose owner has some beyond, and so many addresses.
pub(crate) const fn most_connections(addresses: usize) -> usize {
    MOST + OWNERS + addresses.saturating_mul(MOST)
}

/// Of them, those that are left for requests that have to be answered however many others are worked on.
const RESERVED: usize = 2;

/// The role of a client. In the order in which their connections are closed for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PeerRole {
    /// Anyone: over TCP, or another user on the Unix socket.
    Other,
    /// The owner of the Unix socket, or root.
    Owner,
}

/// How far a connection has come. In the order in which connections are closed for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ConnectionStage {
    /// It has not sent a whole request.
    Waiting,
    /// There is an answer, and it has not been taken.
    Answered,
    /// Its request is being worked on.
    Working,
}

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urgency {
    Usual,
    /// It is done however many others are.
    Urgent,
}

/// Why a request is not worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotError {
    /// As many as there may be are being worked on.
    Busy,
    /// The connection is being closed for another.
    Closed,
}

/// The slots of one listener.
#[derive(Debug, Default)]
pub(crate) struct ConnectionSlots {
    table: Mutex<SlotTable>,
}

#[derive(Debug, Default)]
struct SlotTable {
    /// In the order in which they connected.
    open: Vec<OpenSlot>,
    next: u64,
    /// There are no slots any more.
    is_closed: bool,
}

#[derive(Debug)]
struct OpenSlot {
    number: u64,
    peer: PeerRole,
    stage: ConnectionStage,
    /// Dropped to close the connection.
    _close: oneshot::Sender<Infallible>,
}

/// The slot of one connection; free again when dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    number: u64,
    peer: PeerRole,
    slots: Arc<ConnectionSlots>,
}

/// Ends when the connection must close for another.
pub(super) type Closing = oneshot::Receiver<Infallible>;

impl ConnectionSlots {
    /// A slot for a new connection; none only where every other is being worked on. For the owner there are some beyond.
    pub(super) fn take(self: &Arc<Self>, peer: PeerRole) -> Option<(Arc<ConnectionSlot>, Closing)> {
        let mut table = self.table.lock();
        if table.is_closed {
            return None;
        }
        if table.open.len() >= MOST {
            let closable = table.open.iter().enumerate();
            let closable = closable.filter(|(_, open)| open.stage != ConnectionStage::Working && open.peer <= peer);
            // They stand in the order of their age, and of equals the first is taken.
            let victim = closable.min_by_key(|(_, open)| (open.peer, open.stage)).map(|(at, _)| at);
            match victim {
                Some(at) => drop(table.open.remove(at)),
                None if peer == PeerRole::Owner && table.open.len() < MOST + OWNERS => {}
                None => return None,
            }
        }
        let (close, closing) = oneshot::channel();
        let number = table.next;
        table.next += 1;
        table.open.push(OpenSlot { number, peer, stage: ConnectionStage::Waiting, _close: close });
        Some((Arc::new(ConnectionSlot { number, peer, slots: Arc::clone(self) }), closing))
    }

    /// Has no slot for new connections, and closes those that have not sent a whole request: a later request would have the
    /// access that they were accepted with.
    pub(crate) fn close(&self) {
        let mut table = self.table.lock();
        table.is_closed = true;
        table.open.retain(|open| open.stage != ConnectionStage::Waiting);
    }

    /// Whether every connection has ended.
    pub(crate) fn is_empty(&self) -> bool {
        self.table.lock().open.is_empty()
    }
}

impl ConnectionSlot {
    /// The whole request is there, and work on it begins.
    pub(super) fn begin(&self, work: Urgency) -> Result<(), SlotError> {
        let mut table = self.slots.table.lock();
        let working = table.open.iter().filter(|open| open.stage == ConnectionStage::Working).count();
        if working >= MOST - RESERVED && work == Urgency::Usual && self.peer == PeerRole::Other {
            return Err(SlotError::Busy);
        }
        let open = table.open.iter_mut().find(|open| open.number == self.number).ok_or(SlotError::Closed)?;
        open.stage = ConnectionStage::Working;
        Ok(())
    }

    /// There is an answer.
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
        let mut open = take(&slots, PeerRole::Other, MOST);
        open[0].0.begin(Urgency::Usual).unwrap();
        open[1].0.answer();
        assert_eq!(closed(&mut open), [0; 0]);
        let mut more = take(&slots, PeerRole::Other, MOST);
        // Those that wait, in their order; the one that works and the one that was answered stay.
        assert_eq!(closed(&mut open), (2..MOST).collect::<Vec<_>>());
        assert_eq!(closed(&mut more), [0, 1]);
        assert_eq!(open[5].0.begin(Urgency::Urgent), Err(SlotError::Closed));
        assert_eq!(more[2].0.begin(Urgency::Usual), Ok(()));
        drop((open, more));
        assert!(slots.table.lock().open.is_empty());
    }

    #[test]
    fn a_listener_that_ends_leaves_no_connection_that_has_sent_nothing() {
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
    fn answers_that_are_not_taken_are_given_up_where_nothing_waits() {
        let slots = Arc::new(ConnectionSlots::default());
        let mut open = take(&slots, PeerRole::Other, MOST);
        open.iter().for_each(|(slot, _)| slot.answer());
        let _new = take(&slots, PeerRole::Other, 1);
        assert_eq!(closed(&mut open), [0]);
    }

    #[test]
    fn two_places_are_left_for_what_is_urgent() {
        let slots = Arc::new(ConnectionSlots::default());
        let open = take(&slots, PeerRole::Other, MOST);
        let begun = open.iter().filter(|(slot, _)| slot.begin(Urgency::Usual) == Ok(())).count();
        assert_eq!(begun, MOST - RESERVED);
        let mut urgent = take(&slots, PeerRole::Other, 1);
        assert_eq!(urgent[0].0.begin(Urgency::Usual), Err(SlotError::Busy));
        assert_eq!(urgent[0].0.begin(Urgency::Urgent), Ok(()));
        assert!(is_open(&mut urgent[0]));
    }

    #[test]
    fn the_owner_always_finds_a_place_and_loses_none_to_others() {
        let slots = Arc::new(ConnectionSlots::default());
        let mut others = take(&slots, PeerRole::Other, MOST);
        let mut owners = take(&slots, PeerRole::Owner, 1);
        assert_eq!(closed(&mut others), [0]);
        // The oldest of all is now the owner's, and stays.
        let _more = take(&slots, PeerRole::Other, MOST * 2);
        assert!(is_open(&mut owners[0]));
        drop((others, owners, _more));
        // If others hold every slot at work, the owner has one beyond them.
        let others = take(&slots, PeerRole::Other, MOST);
        others.iter().for_each(|(slot, _)| slot.begin(Urgency::Urgent).unwrap());
        assert!(slots.take(PeerRole::Other).is_none());
        let owners = take(&slots, PeerRole::Owner, 1);
        assert_eq!(owners[0].0.begin(Urgency::Usual), Ok(()));
    }

    #[test]
    fn the_owners_connections_have_a_bound() {
        let slots = Arc::new(ConnectionSlots::default());
        let others = take(&slots, PeerRole::Other, MOST);
        others.iter().for_each(|(slot, _)| slot.begin(Urgency::Urgent).unwrap());
        let mut owners = Vec::new();
        for _ in 0..OWNERS {
            owners.extend(take(&slots, PeerRole::Owner, 1));
            assert_eq!(owners.last().unwrap().0.begin(Urgency::Usual), Ok(()));
        }
        assert!(slots.take(PeerRole::Owner).is_none());
        // The oldest that has been answered is closed for a new one.
        owners[3].0.answer();
        let mut idle = take(&slots, PeerRole::Owner, 1);
        assert_eq!(closed(&mut owners), [3]);
        let _new = take(&slots, PeerRole::Owner, 1);
        assert_eq!(closed(&mut idle), [0]);
        assert_eq!(slots.table.lock().open.len(), MOST + OWNERS);
        const { assert!(most_connections(1) == 2 * MOST + OWNERS) };
    }
}
