//! Writes the state of sites on a separate thread, so that ten thousand sites that start or change
//! at once do not wait for the disk.
//!
//! **A failed write is retried until it succeeds.** Until a retry succeeds, a site keeps only its
//! newest state and at most 64 history entries in memory, and the status reports the problem. The
//! first retry follows after a second; the pauses then become longer. Only a few sites are retried
//! in each round, because on a full disk ten thousand writes would fail one after the other.

use crate::live::Mutex;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The first and the longest pause between a failed write and its retry.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MOST: Duration = Duration::from_secs(30);

/// Maximum number of failed jobs that are retried in one round.
const MAX_RETRIED_JOBS: usize = 8;

/// The files that the writer writes together: the files directly in the state directory, or the
/// files of one site.
pub(super) trait StateJob: Send + Sync {
    fn membership(&self) -> &Mutex<QueueMembership>;

    /// Writes all unwritten changes. Returns whether all writes succeeded.
    fn write(&self) -> bool;
}

/// Whether a job is in the queues `jobs` and `later`. Each queue contains a job at most once.
#[derive(Debug, Default)]
pub(super) struct QueueMembership {
    is_queued: bool,
    is_awaiting_retry: bool,
}

/// The writer of the files of one state directory. The writer's thread ends when no job is left, or
/// when all sites and handles of the directory are dropped.
#[derive(Default)]
pub(in crate::live) struct StateWriter {
    #[cfg(test)]
    is_stepped: bool,
    queue: Mutex<Queue>,
    called: Condvar,
    idle: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Arc<dyn StateJob>>,
    later: VecDeque<Arc<dyn StateJob>>,
    is_running: bool,
    is_writing: bool,
    /// Whether a flush has timed out. The file system may then no longer respond, so sites and
    /// handles that are dropped do not wait for it.
    is_stuck: bool,
    due: Option<Instant>,
    wait: Duration,
}

impl StateWriter {
    #[cfg(test)]
    pub(in crate::live) fn stepped() -> Self {
        let queue = Mutex::new(Queue { is_running: true, ..Queue::default() });
        Self { is_stepped: true, queue, ..Self::default() }
    }

    pub(super) fn call(self: &Arc<Self>, job: Arc<dyn StateJob>) {
        // The queue is locked before `is_queued` is set, so that no flush runs while the job is
        // marked as queued but is not in the queue yet.
        let mut queue = self.queue.lock();
        if std::mem::replace(&mut membership(&*job).is_queued, true) {
            return;
        }
        queue.jobs.push_back(job);
        self.wake(queue);
    }

    pub(super) fn enqueue_retry(self: &Arc<Self>, job: Arc<dyn StateJob>) {
        let mut queue = self.queue.lock();
        queue.push_retry(job);
        self.wake(queue);
    }

    /// Waits until every queued job has run, and retries the failed jobs once. Returns whether
    /// everything was written within `limit`.
    pub(super) fn flush(self: &Arc<Self>, limit: Option<Duration>) -> bool {
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        let Some(mut queue) = self.wait(end) else { return false };
        let later = std::mem::take(&mut queue.later);
        if later.is_empty() {
            return true;
        }
        later.into_iter().for_each(|job| queue.requeue(job));
        self.wake(queue);
        self.wait(end).is_some_and(|queue| queue.later.is_empty())
    }

    /// Waits until every queued job has run. Returns `None` if a job is still running or queued at
    /// the time `end`. While the returned guard is held, no job runs, and `later` contains all
    /// failed jobs.
    fn wait(&self, end: Option<Instant>) -> Option<MutexGuard<'_, Queue>> {
        let queue = self.queue.lock();
        #[cfg(test)]
        let queue = if self.is_stepped { self.drain(queue) } else { queue };
        let rest = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
        let waited = self.idle.wait_timeout_while(queue, rest, |queue| queue.is_busy());
        let (mut queue, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        queue.is_stuck |= waited.timed_out();
        (!waited.timed_out()).then_some(queue)
    }

    pub(super) fn is_stuck(&self) -> bool {
        self.queue.lock().is_stuck
    }

    fn wake(self: &Arc<Self>, mut queue: MutexGuard<'_, Queue>) {
        if queue.is_running {
            self.called.notify_one();
            return;
        }
        let writer = self.clone();
        let spawned = thread::Builder::new().name("robots-state".into()).spawn(move || writer.work());
        queue.is_running = spawned.is_ok();
        if !queue.is_running {
            // If the system cannot start a thread, the jobs run on this thread.
            drop(self.drain(queue));
        }
    }

    fn work(self: Arc<Self>) {
        let mut queue = self.queue.lock();
        loop {
            queue = self.drain(queue);
            if queue.later.is_empty() {
                break;
            }
            let now = Instant::now();
            let due = queue.due.unwrap_or(now);
            if due <= now {
                queue = self.retry_some(queue);
            } else if Arc::strong_count(&self) == 1 {
                // All sites and handles of the directory are dropped. Each of them has already
                // tried to write its changes.
                break;
            } else {
                queue = self.called.wait_timeout(queue, due - now).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        queue.is_running = false;
    }

    /// Retries the first few failed jobs. If one of these jobs succeeds, all other failed jobs are
    /// due immediately, because they may succeed, too.
    fn retry_some<'q>(&'q self, mut queue: MutexGuard<'q, Queue>) -> MutexGuard<'q, Queue> {
        let (few, wait) = (MAX_RETRIED_JOBS.min(queue.later.len()), queue.wait.max(RETRY_FIRST));
        let tried: Vec<_> = queue.later.drain(..few).collect();
        tried.iter().for_each(|job| queue.requeue(job.clone()));
        queue = self.drain(queue);
        let is_one_written = tried.iter().any(|job| !membership(&**job).is_awaiting_retry);
        queue.wait = if is_one_written { Duration::ZERO } else { (wait * 2).min(RETRY_MOST) };
        queue.due = Instant::now().checked_add(queue.wait);
        queue
    }

    fn drain<'q>(&'q self, mut queue: MutexGuard<'q, Queue>) -> MutexGuard<'q, Queue> {
        while let Some(job) = queue.jobs.pop_front() {
            queue.is_writing = true;
            drop(queue);
            membership(&*job).is_queued = false;
            // The panic of a job is caught, so that the other jobs still run. The panic hook has
            // already reported the panic.
            let is_written = catch_unwind(AssertUnwindSafe(|| job.write())).unwrap_or(true);
            queue = self.queue.lock();
            queue.is_writing = false;
            if !is_written {
                queue.push_retry(job);
            }
        }
        self.idle.notify_all();
        queue
    }
}

impl Queue {
    fn is_busy(&self) -> bool {
        self.is_writing || !self.jobs.is_empty()
    }

    fn push_retry(&mut self, job: Arc<dyn StateJob>) {
        if std::mem::replace(&mut membership(&*job).is_awaiting_retry, true) {
            return;
        }
        if self.later.is_empty() {
            self.wait = RETRY_FIRST;
            self.due = Instant::now().checked_add(RETRY_FIRST);
        }
        self.later.push_back(job);
    }

    fn requeue(&mut self, job: Arc<dyn StateJob>) {
        let mut membership = membership(&*job);
        membership.is_awaiting_retry = false;
        let is_queued = std::mem::replace(&mut membership.is_queued, true);
        drop(membership);
        if !is_queued {
            self.jobs.push_back(job);
        }
    }
}

fn membership(job: &dyn StateJob) -> MutexGuard<'_, QueueMembership> {
    job.membership().lock()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    use super::*;

    #[derive(Default)]
    struct Played {
        membership: Mutex<QueueMembership>,
        is_writable: AtomicBool,
        tries: AtomicU32,
    }

    impl StateJob for Played {
        fn membership(&self) -> &Mutex<QueueMembership> {
            &self.membership
        }

        fn write(&self) -> bool {
            self.tries.fetch_add(1, Ordering::Relaxed);
            self.is_writable.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn failed_writes_are_retried_with_growing_pauses_until_a_write_succeeds() {
        let (writer, jobs) = (StateWriter::stepped(), <[Arc<Played>; 2]>::default());
        let mut queue = writer.queue.lock();
        jobs.iter().for_each(|job| queue.push_retry(job.clone()));
        assert_eq!((queue.later.len(), queue.wait, queue.due.is_some()), (2, RETRY_FIRST, true));
        // Both jobs fail each time. The pause grows once per round, not once per job.
        for seconds in [2, 4, 8, 16, 30, 30] {
            queue = writer.retry_some(queue);
            assert_eq!((queue.jobs.len(), queue.later.len()), (0, 2));
            assert_eq!(queue.wait, Duration::from_secs(seconds));
        }
        // One of the two jobs succeeds, so the other job is due immediately.
        jobs[0].is_writable.store(true, Ordering::Relaxed);
        queue = writer.retry_some(queue);
        assert_eq!((queue.later.len(), queue.wait), (1, Duration::ZERO));
        assert!(queue.due.is_some_and(|due| due <= Instant::now()));
        // The other job fails again, so the pauses grow from the shortest one again. After the last
        // job succeeds, a new failed job waits for the shortest pause.
        queue = writer.retry_some(queue);
        assert_eq!((queue.later.len(), queue.wait), (1, 2 * RETRY_FIRST));
        jobs[1].is_writable.store(true, Ordering::Relaxed);
        queue = writer.retry_some(queue);
        assert_eq!(queue.later.len(), 0);
        queue.push_retry(jobs[0].clone());
        assert_eq!(queue.wait, RETRY_FIRST);
    }

    #[test]
    fn only_a_few_failed_writes_are_retried_per_round_and_none_runs_twice() {
        let writer = Arc::new(StateWriter::stepped());
        let jobs: Vec<_> = (0..MAX_RETRIED_JOBS + 3).map(|_| Arc::new(Played::default())).collect();
        for job in jobs.iter().chain(&jobs) {
            writer.enqueue_retry(job.clone());
        }
        // The first failed job is also queued as a new job, but runs only once.
        writer.call(jobs[0].clone());
        let queue = writer.retry_some(writer.queue.lock());
        assert_eq!((queue.jobs.len(), queue.later.len()), (0, MAX_RETRIED_JOBS + 3));
        let tries: Vec<_> = jobs.iter().map(|job| job.tries.load(Ordering::Relaxed)).collect();
        assert_eq!(tries, [[1; MAX_RETRIED_JOBS].as_slice(), &[0; 3]].concat());
    }

    const FLUSHES: usize = 10_000;

    #[test]
    fn a_flush_does_not_report_success_while_a_write_keeps_failing() {
        let writer = Arc::new(StateWriter::default());
        let job: Arc<dyn StateJob> = Arc::new(Played::default());
        writer.call(job.clone());
        let is_over = AtomicBool::new(false);
        let counts = thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    writer.queue.lock().due = Some(Instant::now());
                    writer.called.notify_one();
                }
            });
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    writer.call(job.clone());
                    thread::yield_now();
                }
            });
            let counts = (0..FLUSHES).filter(|_| writer.flush(None)).count();
            is_over.store(true, Ordering::Relaxed);
            counts
        });
        assert_eq!(counts, 0, "of {FLUSHES} flushes said that all is written");
    }
}
