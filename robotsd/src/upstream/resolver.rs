//! Resolves host names on separate threads.
//!
//! The system's resolver blocks its thread, possibly for a long time. So each lookup runs on its
//! own thread, and the number of these threads is limited. Neither requests nor the shutdown of the
//! process wait for these threads. The blocking pool of tokio is unsuitable for two reasons: stuck
//! lookups would delay the reads of files, which use the same pool, and a runtime waits for the
//! pool when it shuts down.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, oneshot};

/// Maximum number of concurrent lookups in the process.
const THREADS: usize = 4;

/// Maximum number of addresses used per name. Further addresses are ignored.
const MAX_ADDRESSES: usize = 64;

/// Time until a name is resolved again. The system's resolver does not report a time to live.
const FRESH: Duration = Duration::from_secs(30);

/// Delay before a failed lookup is repeated.
const RETRY: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(super) struct Resolver(Arc<LookupThreads>);

struct LookupThreads {
    threads: Arc<Semaphore>,
    fresh: Duration,
    look_up: Box<LookUp>,
}

type LookUp = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;

impl Resolver {
    /// Creates a resolver that uses the system's hosts file and name servers.
    pub(super) fn system() -> Self {
        // The lookup function requires a port. The port is then removed from the results.
        Self::new(FRESH, |name| Ok((name, 0).to_socket_addrs()?.map(|address| address.ip()).collect()))
    }

    /// Creates a resolver with another lookup function. Names are resolved again after `fresh`.
    pub(super) fn new(
        fresh: Duration,
        look_up: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(LookupThreads { threads: Arc::new(Semaphore::new(THREADS)), fresh, look_up: Box::new(look_up) }))
    }

    pub(super) fn fresh(&self) -> Duration {
        self.0.fresh
    }

    /// Resolves a name. Returns at least one address or an error.
    pub(super) async fn resolve(&self, name: &str) -> io::Result<BTreeSet<IpAddr>> {
        let thread = Arc::clone(&self.0.threads).acquire_owned().await.map_err(io::Error::other)?;
        let (sender, answer) = oneshot::channel();
        let (inner, name) = (Arc::clone(&self.0), name.to_owned());
        std::thread::Builder::new().name("robotsd-names".to_owned()).spawn(move || {
            // Sending fails if the task that waits for the result has ended.
            let _ = sender.send((inner.look_up)(&name));
            drop(thread);
        })?;
        let found = answer.await.map_err(|_| io::Error::other("the resolver failed"))??;
        if found.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        }
        Ok(found.into_iter().take(MAX_ADDRESSES).collect())
    }
}

tower_robots::internals::debug_as!(|_it| Resolver {});

/// Schedules the lookups of a name, so that only one task at a time, over all workers, resolves it.
#[derive(Debug)]
pub(super) struct LookupSchedule {
    start: Instant,
    /// Time of the next lookup, in milliseconds since `start`, or [`UNDER_WAY`].
    due: AtomicU64,
}

/// Value of `due` while a lookup is in progress.
const UNDER_WAY: u64 = u64::MAX;

/// Permission to resolve a name now. Dropping the permit schedules the next lookup.
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

    /// Returns a permit, or `None` if no lookup is needed now.
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
    pub(super) fn succeeded(&mut self, fresh: Duration) {
        self.next = fresh;
    }
}

impl Drop for LookupPermit {
    fn drop(&mut self) {
        // A runtime that ends during a lookup drops the task with the permit. The next lookup is
        // scheduled even then.
        self.schedule.due.store(self.schedule.millis(Instant::now() + self.next), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn stuck_name_lookups_use_a_bounded_number_of_threads() {
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
    fn a_name_has_one_lookup_at_a_time_and_is_resolved_again_later() {
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
