//! From names to addresses, off the request path.
//!
//! The system's resolver blocks, and may do so for a long time. It is called on threads of its own, of which there are
//! few: neither a request nor the end of the process ever waits for one, and however many names are stuck there are no
//! more threads. tokio's pool would be shared with the reading of files, and is waited for when a runtime ends.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, oneshot};

/// Names that are looked up at the same time, in the whole process.
const THREADS: usize = 4;

/// Addresses of one name that are used; further ones are left out.
const MOST_ADDRESSES: usize = 64;

/// How long an answer holds. The system does not say how long it may.
const FRESH: Duration = Duration::from_secs(30);

/// How long after a failure the name is looked up again.
const RETRY: Duration = Duration::from_secs(1);

/// Looks names up. Cheap to clone; there is one for the process.
#[derive(Clone)]
pub(super) struct Resolver(Arc<LookupThreads>);

struct LookupThreads {
    threads: Arc<Semaphore>,
    fresh: Duration,
    look_up: Box<LookUp>,
}

type LookUp = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;

impl Resolver {
    /// The system's: its hosts file, its name servers.
    pub(super) fn system() -> Self {
        // The port is of no matter, and left out of the answer.
        Self::new(FRESH, |name| Ok((name, 0).to_socket_addrs()?.map(|address| address.ip()).collect()))
    }

    /// Any other, whose answers hold for so long.
    pub(super) fn new(
        fresh: Duration,
        look_up: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(LookupThreads { threads: Arc::new(Semaphore::new(THREADS)), fresh, look_up: Box::new(look_up) }))
    }

    /// How long an answer holds.
    pub(super) fn fresh(&self) -> Duration {
        self.0.fresh
    }

    /// The addresses of a name, at least one.
    pub(super) async fn resolve(&self, name: &str) -> io::Result<BTreeSet<IpAddr>> {
        let thread = Arc::clone(&self.0.threads).acquire_owned().await.map_err(io::Error::other)?;
        let (sender, answer) = oneshot::channel();
        let (inner, name) = (Arc::clone(&self.0), name.to_owned());
        std::thread::Builder::new().name("robotsd-names".to_owned()).spawn(move || {
            // The task that requested it may have ended meanwhile.
            let _ = sender.send((inner.look_up)(&name));
            drop(thread);
        })?;
        let found = answer.await.map_err(|_| io::Error::other("the resolver broke off"))??;
        if found.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        }
        Ok(found.into_iter().take(MOST_ADDRESSES).collect())
    }
}

tower_robots::internals::debug_as!(|_it| Resolver {});

/// When a name is to be looked up; by one task at a time, over all workers.
#[derive(Debug)]
pub(super) struct LookupSchedule {
    start: Instant,
    /// In milliseconds since `start`.
    due: AtomicU64,
}

/// A value of `due`: a lookup is under way.
const UNDER_WAY: u64 = u64::MAX;

/// The right to look a name up. Given up, the name is due again.
#[derive(Debug)]
pub(super) struct LookupPermit {
    schedule: Arc<LookupSchedule>,
    next: Duration,
}

impl LookupSchedule {
    pub(super) fn new(start: Instant) -> Self {
        Self { start, due: AtomicU64::new(0) }
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.due.load(Ordering::SeqCst) == UNDER_WAY
    }

    /// The right to look up now, if that is due.
    pub(super) fn begin(self: &Arc<Self>, now: Instant) -> Option<LookupPermit> {
        let due = self.due.load(Ordering::Relaxed);
        if self.millis(now) < due {
            return None;
        }
        self.due.compare_exchange(due, UNDER_WAY, Ordering::SeqCst, Ordering::Relaxed).ok()?;
        Some(LookupPermit { schedule: Arc::clone(self), next: RETRY })
    }

    fn millis(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.start).as_millis() as u64
    }
}

impl LookupPermit {
    /// There is an answer, which holds for so long.
    pub(super) fn succeeded(&mut self, fresh: Duration) {
        self.next = fresh;
    }
}

impl Drop for LookupPermit {
    fn drop(&mut self) {
        // Also where the task is dropped half-way, with the runtime it ran on.
        self.schedule.due.store(self.schedule.millis(Instant::now() + self.next), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn stuck_names_do_not_pile_up_threads() {
        let running = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&running);
        let (release, released) = mpsc::channel::<()>();
        let released = parking_lot::Mutex::new(released);
        let resolver = Resolver::new(FRESH, move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = released.lock().recv();
            Ok(vec![IpAddr::from([127, 0, 0, 1])])
        });
        let mut asking = tokio::task::JoinSet::new();
        for number in 0..50 {
            let resolver = resolver.clone();
            asking.spawn(async move { resolver.resolve(&format!("n{number}.test")).await });
        }
        while running.load(Ordering::SeqCst) < THREADS {
            tokio::task::yield_now().await;
        }
        assert_eq!(resolver.0.threads.available_permits(), 0);
        assert_eq!(running.load(Ordering::SeqCst), THREADS);
        drop(release);
        while let Some(answer) = asking.join_next().await {
            assert_eq!(answer.unwrap().unwrap().len(), 1);
        }
    }

    #[test]
    fn a_name_is_looked_up_by_one_at_a_time_and_again_later() {
        let now = Instant::now();
        let schedule = Arc::new(LookupSchedule::new(now));
        let mut permit = schedule.begin(now).unwrap();
        assert!(schedule.begin(now + 10 * FRESH).is_none() && schedule.is_under_way());
        permit.succeeded(FRESH);
        drop(permit);
        assert!(!schedule.is_under_way() && schedule.begin(Instant::now()).is_none());
        let permit = schedule.begin(Instant::now() + FRESH).unwrap();
        drop(permit);
        assert!(schedule.begin(Instant::now() + RETRY).is_some());
    }
}
