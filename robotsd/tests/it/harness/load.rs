//! Runs clients that send requests while something else happens.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

use super::process::wait_until;

/// A client. Each call of this function sends one round of requests.
pub(crate) type Client<'c> = Box<dyn FnMut() + Send + 'c>;

pub(crate) struct Asking<'s> {
    clients: Vec<ScopedJoinHandle<'s, ()>>,
    turns: &'s AtomicUsize,
}

impl Asking<'_> {
    /// Waits for this many more rounds. Panics if a client has failed.
    pub(crate) fn wait_for_more(&self, turns: usize) {
        let before = self.turns.load(Ordering::Relaxed);
        wait_until("what clients ask", || {
            assert!(!self.clients.iter().any(ScopedJoinHandle::is_finished), "a client has failed");
            self.turns.load(Ordering::Relaxed) >= before + turns
        });
    }

    /// Returns the number of rounds of all clients together.
    pub(crate) fn turns(&self) -> usize {
        self.turns.load(Ordering::Relaxed)
    }
}

/// Tells clients to stop when this is dropped. Otherwise, a failed test would never end.
pub(crate) struct StopAtEnd<'a>(pub(crate) &'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs each client in its own thread while `happens` runs. Fails if a client fails.
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
