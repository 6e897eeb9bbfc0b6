//! A lane is a thread that sends the requests of hooks, with limits on concurrent requests, and
//! with circuit breakers for receivers that do not respond.
//!
//! There are limits per config file, per receiver, and per file and receiver, so that a hanging
//! request delays only related requests. A request holds its permits until its threads have ended,
//! even if the caller does not wait for the request any more.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::settings::HookSettings;

/// Maximum numbers of concurrent requests: of a lane, of one config file, and to one receiver.
const MAX_CONCURRENT: usize = 64;
const MAX_CONCURRENT_PER_FILE: usize = 8;
const MAX_PER_RECEIVER: usize = 2;

/// Number of consecutive unanswered requests that start a pause. During the pause, the receiver
/// gets no requests. The first pause lasts `FIRST_PAUSE`, and the longest pause lasts `MAX_PAUSE`.
/// The longest pause is shorter than the delay before the last attempt to send a notice.
const MAX_UNANSWERED: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// A thread that sends requests, with its limits. Requests on different lanes do not delay each
/// other.
pub(super) struct Lane {
    thread: &'static str,
    max_per_file: usize,
    /// The runtime is `None` before the first request, and if the thread could not be started.
    runtime: Mutex<Option<Handle>>,
    permits: Arc<Semaphore>,
    shares: Mutex<HashMap<LimitKey, Arc<Semaphore>>>,
    /// Circuit breakers of receivers that have not answered, for each file separately.
    breakers: Mutex<HashMap<LimitKey, Breaker>>,
}

/// Key of a limit: the config file of a hook, its receiver, or both.
type LimitKey = (Option<PathBuf>, Option<String>);

pub(super) type Permits = Arc<[OwnedSemaphorePermit]>;

struct Breaker {
    unanswered: u32,
    /// The receiver gets no request before this time.
    until: Instant,
}

impl Lane {
    pub(super) fn of_files() -> Self {
        Self::new("publish-hooks", MAX_CONCURRENT_PER_FILE)
    }

    /// Creates the lane for urgent notices. Only the operator's own config can contain hooks for
    /// urgent notices, so there are few receivers.
    pub(super) fn urgent() -> Self {
        Self::new("urgent-notices", MAX_CONCURRENT)
    }

    fn new(thread: &'static str, max_per_file: usize) -> Self {
        let (shares, breakers, runtime) = Default::default();
        Self { thread, max_per_file, runtime, permits: Arc::new(Semaphore::new(MAX_CONCURRENT)), shares, breakers }
    }

    /// Returns the runtime of the lane's thread. The thread starts with the first request, and ends
    /// with the process.
    pub(super) fn runtime(&self) -> io::Result<Handle> {
        let mut runtime = self.runtime.lock();
        if let Some(handle) = &*runtime {
            return Ok(handle.clone());
        }
        let made = Builder::new_current_thread().enable_all().max_blocking_threads(MAX_CONCURRENT).build()?;
        let handle = made.handle().clone();
        let thread = std::thread::Builder::new().name(self.thread.to_owned());
        thread.spawn(move || made.block_on(std::future::pending::<()>()))?;
        Ok(runtime.insert(handle).clone())
    }

    /// Waits for the permits of a request, first for the permit of its file-receiver pair. So
    /// requests to a slow receiver hold at most two of their file's permits.
    pub(super) async fn permits(&self, hook: &HookSettings) -> Option<Permits> {
        let (file, receiver) = limit_key(hook);
        let shares = [
            ((file.clone(), receiver.clone()), MAX_PER_RECEIVER),
            ((file, None), self.max_per_file),
            ((None, receiver), MAX_PER_RECEIVER),
        ];
        let mut permits = Vec::with_capacity(shares.len() + 1);
        for (limit_key, most) in shares {
            let semaphore =
                Arc::clone(self.shares.lock().entry(limit_key).or_insert_with(|| Arc::new(Semaphore::new(most))));
            permits.push(semaphore.acquire_owned().await.ok()?);
        }
        permits.push(Arc::clone(&self.permits).acquire_owned().await.ok()?);
        Some(permits.into())
    }

    pub(super) fn tidy(&self) {
        self.shares.lock().retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        let now = Instant::now();
        self.breakers.lock().retain(|_, breaker| breaker.until > now);
    }

    /// Returns the reason why the receiver of a hook gets no request now; `None` if a request may
    /// be sent. After a pause, one request is sent as a trial, and no other request is sent until
    /// the trial has ended.
    pub(super) fn pause_reason(&self, hook: &HookSettings) -> Option<String> {
        let mut breakers = self.breakers.lock();
        let breaker = breakers.get_mut(&limit_key(hook)).filter(|breaker| breaker.unanswered >= MAX_UNANSWERED)?;
        let now = Instant::now();
        let left = breaker.until.saturating_duration_since(now);
        if left.is_zero() {
            breaker.until = now + hook.timeout;
            return None;
        }
        let times = breaker.unanswered;
        let seconds = left.as_secs() + 1;
        Some(format!(
            "the request was not sent: the receiver did not answer the last {times} requests, so robotsd waits \
             {seconds} more seconds before it sends another request"
        ))
    }

    pub(super) fn note(&self, hook: &HookSettings, has_answered: bool) {
        let (mut breakers, limit_key) = (self.breakers.lock(), limit_key(hook));
        if has_answered {
            breakers.remove(&limit_key);
            return;
        }
        let breaker = breakers.entry(limit_key).or_insert(Breaker { unanswered: 0, until: Instant::now() });
        breaker.unanswered += 1;
        let doublings = breaker.unanswered.saturating_sub(MAX_UNANSWERED).min(8);
        breaker.until = Instant::now() + (FIRST_PAUSE * 2_u32.pow(doublings)).min(MAX_PAUSE);
    }
}

/// Returns the config file and the receiver of a hook. Hooks with the same pair share their limits.
/// The pair contains the file, so that the hooks of one config file do not delay the hooks of
/// another file. For hooks about events, the file name is empty.
fn limit_key(hook: &HookSettings) -> LimitKey {
    let file = if hook.on.is_empty() { hook.scope.file.clone() } else { PathBuf::new() };
    (Some(file), Some(hook.target.to_string()))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::webhooks::destination::HookScope;
    use crate::webhooks::tests::test_hook;

    fn hook(file: &str, receiver: &str) -> HookSettings {
        let scope = HookScope { file: file.into(), ..HookScope::default() };
        HookSettings { scope: Arc::new(scope), ..test_hook(&format!("https://{receiver}/x")) }
    }

    fn granted(lane: &Lane, file: &str, receiver: &str) -> Option<Permits> {
        lane.permits(&hook(file, receiver)).now_or_never().flatten()
    }

    #[test]
    fn each_file_and_each_receiver_has_its_own_share_of_requests() {
        let lane = Lane::of_files();
        let all: Vec<_> = (0..50).filter_map(|number| granted(&lane, "a", &format!("r{number}"))).collect();
        assert_eq!(all.len(), MAX_CONCURRENT_PER_FILE);
        let other = [granted(&lane, "b", "r0"), granted(&lane, "b", "x"), granted(&lane, "b", "x")];
        assert!(other.iter().all(Option::is_some));
        assert!(granted(&lane, "b", "x").is_none() && granted(&lane, "c", "r0").is_none());
        drop(all);
        assert!(granted(&lane, "c", "r0").is_some());
        drop(other);
        lane.tidy();
        assert!(lane.shares.lock().is_empty());
        // Two requests hang at each of sixteen receivers.
        let urgent = Lane::urgent();
        let all: Vec<_> = (0..32).filter_map(|number| granted(&urgent, "", &format!("r{}", number % 16))).collect();
        assert_eq!(all.len(), 32);
    }

    #[test]
    fn a_silent_receiver_is_paused_and_then_tried_by_one_request() {
        let (lane, dead, well) = (Lane::of_files(), hook("a", "dead"), hook("a", "well"));
        for _ in 0..MAX_UNANSWERED {
            assert_eq!(lane.pause_reason(&dead), None);
            lane.note(&dead, false);
            lane.note(&well, true);
        }
        assert!(lane.pause_reason(&dead).is_some_and(|why| why.contains("did not answer the last 3 requests")));
        // The pause affects neither other receivers nor another file's requests to this receiver.
        assert_eq!((lane.pause_reason(&well), lane.pause_reason(&hook("b", "dead"))), (None, None));
        let is_over = || lane.breakers.lock().values_mut().for_each(|breaker| breaker.until = Instant::now());
        is_over();
        assert_eq!(lane.pause_reason(&dead), None);
        assert!(lane.pause_reason(&dead).is_some(), "one request tries it");
        // The pauses become longer, but each is shorter than the total time of all attempts to send
        // a notice.
        lane.note(&dead, false);
        for seconds in [20, 40, 60, 60] {
            let left = lane.breakers.lock()[&limit_key(&dead)].until - Instant::now();
            assert!(left <= Duration::from_secs(seconds) && left > Duration::from_secs(seconds / 2), "{left:?}");
            lane.note(&dead, false);
        }
        is_over();
        assert_eq!(lane.pause_reason(&dead), None);
        lane.note(&dead, true);
        assert_eq!(lane.pause_reason(&dead), None);
    }
}
