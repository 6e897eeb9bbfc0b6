//! Clients that go on while something happens.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

use super::process::wait_until;

/// The requests of one client, again and again.
pub(crate) type Client<'c> = Box<dyn FnMut() + Send + 'c>;

/// Clients that are at it.
pub(crate) struct Asking<'s> {
    clients: Vec<ScopedJoinHandle<'s, ()>>,
    turns: &'s AtomicUsize,
}

impl Asking<'_> {
    /// Waits for so many turns more. A client that has failed would never get there.
    pub(crate) fn wait_for_more(&self, turns: usize) {
        let before = self.turns.load(Ordering::Relaxed);
        wait_until("what clients ask", || {
            assert!(!self.clients.iter().any(ScopedJoinHandle::is_finished), "a client has failed");
            self.turns.load(Ordering::Relaxed) >= before + turns
        });
    }

    /// How many turns the clients have had together.
    pub(crate) fn turns(&self) -> usize {
        self.turns.load(Ordering::Relaxed)
    }
}

/// Tells clients to stop when it goes, also because a test has failed: who waits for them would wait for ever.
pub(crate) struct StopAtEnd<'a>(pub(crate) &'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Has each client take its turns, in a thread of its own, until something has happened; none of them may fail.
pub(crate) fn while_asking<'c, T>(
    clients: impl IntoIterator<Item = Client<'c>>,
    happens: impl FnOnce(&Asking<'_>) -> T,
) -> T {
    let (stop, turns) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let (stop, turns) = (&stop, &turns);
        let stopping = StopAtEnd(stop);
        let ask = |mut client: Client<'c>| {
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    client();
                    turns.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        let asking = Asking { clients: clients.into_iter().map(ask).collect(), turns };
        let result = happens(&asking);
        drop(stopping);
        asking.clients.into_iter().for_each(|client| client.join().unwrap());
        result
    })
}
