//! Writing the state of sites on a thread of its own: ten thousand that start, or change at once, must not wait for the
//! disk.
//!
//! **Failed writes are kept until they succeed.** A site keeps one state and at most 64 entries of its history, taken
//! off only once they are on the disk, so the status never forgets them half-way. A write that fails is tried again, at
//! first after a second and later less often, and of a few sites at once: on a full disk ten thousand would fail one by
//! one.

use crate::live::Mutex;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The first and the longest pause before a failed write is tried again.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MOST: Duration = Duration::from_secs(30);

/// How many writes are tried again at once: of ten thousand on a full disk, each would fail.
const TRIED_AT_ONCE: usize = 8;

/// A part of the directory that has to be written.
pub(super) trait StateJob: Send + Sync {
    /// Its place in the queues.
    fn place(&self) -> &Mutex<QueuePlace>;

    /// Writes what has come since the last time. Returns whether nothing is left to write.
    fn write(&self) -> bool;
}

/// The place of a job: at most once in either queue.
#[derive(Debug, Default)]
pub(super) struct QueuePlace {
    is_called: bool,
    is_later: bool,
}

/// One thread for a state directory, which ends when there is nothing to write, or no site left to write for.
#[derive(Default)]
pub(super) struct StateWriter {
    /// Whether there is no thread, and a flush writes: so that a test chooses when.
    is_stepped: bool,
    queue: Mutex<Queue>,
    called: Condvar,
    idle: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Arc<dyn StateJob>>,
    /// Jobs whose write failed.
    later: VecDeque<Arc<dyn StateJob>>,
    is_running: bool,
    is_writing: bool,
    /// A flush timed out: the file system may hang, and no other caller waits for it.
    is_stuck: bool,
    retry: Retry,
}

/// When failed writes are tried again.
struct Retry {
    due: Option<Instant>,
    wait: Duration,
    /// Jobs that are being tried again.
    tried: usize,
    has_succeeded: bool,
}

impl StateWriter {
    pub(super) fn new(is_stepped: bool) -> Self {
        Self { is_stepped, ..Self::default() }
    }

    /// Queues a job.
    pub(super) fn call(self: &Arc<Self>, job: Arc<dyn StateJob>) {
        // Taken first: a flush must not find a job that is called and in no queue.
        let mut queue = self.queue.lock();
        if std::mem::replace(&mut place(&*job).is_called, true) {
            return;
        }
        queue.jobs.push_back(job);
        self.wake(queue);
    }

    /// Queues a job to be tried again later.
    pub(super) fn call_later(self: &Arc<Self>, job: Arc<dyn StateJob>) {
        let mut queue = self.queue.lock();
        queue.put_later(job);
        self.wake(queue);
    }

    /// Waits until everything was tried that was called for before, and what could not be written once again; whether all
    /// of it is written. Gives up after `limit`.
    pub(super) fn flush(self: &Arc<Self>, limit: Option<Duration>) -> bool {
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        // A job that is under way may have begun, and failed, before there was room.
        let Some(mut queue) = self.wait(end) else { return false };
        let later = std::mem::take(&mut queue.later);
        if later.is_empty() {
            return true;
        }
        later.into_iter().for_each(|job| queue.call_again(job));
        self.wake(queue);
        self.wait(end).is_some_and(|queue| queue.later.is_empty())
    }

    /// Waits until everything was tried that was called for, if that comes to pass in time. As long as the queue is held,
    /// nothing is under way: what could not be written is all in `later`, and not being tried again.
    fn wait(&self, end: Option<Instant>) -> Option<MutexGuard<'_, Queue>> {
        let mut queue = self.queue.lock();
        if self.is_stepped {
            queue = self.drain(queue);
        }
        while queue.is_busy() {
            queue = match end {
                None => self.idle.wait(queue).unwrap_or_else(PoisonError::into_inner),
                Some(end) => {
                    let rest = end.saturating_duration_since(Instant::now());
                    if rest.is_zero() {
                        queue.is_stuck = true;
                        return None;
                    }
                    self.idle.wait_timeout(queue, rest).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        Some(queue)
    }

    /// Whether a flush was given up.
    pub(super) fn is_stuck(&self) -> bool {
        self.queue.lock().is_stuck
    }

    fn wake(self: &Arc<Self>, mut queue: MutexGuard<'_, Queue>) {
        if queue.is_running || self.is_stepped {
            self.called.notify_one();
            return;
        }
        let writer = self.clone();
        let spawned = thread::Builder::new().name("robots-state".into()).spawn(move || writer.work());
        queue.is_running = spawned.is_ok();
        if !queue.is_running {
            // The system gives no thread: it is written here, and tried again when something else is called for.
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
            let due = *queue.retry.due.get_or_insert(now);
            if due <= now {
                queue.retry_some();
            } else if Arc::strong_count(&self) == 1 {
                // No site and no directory is left; each has tried when it was dropped.
                break;
            } else {
                queue = self.called.wait_timeout(queue, due - now).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        queue.is_running = false;
    }

    /// Writes the queued jobs.
    fn drain<'q>(&'q self, mut queue: MutexGuard<'q, Queue>) -> MutexGuard<'q, Queue> {
        while let Some(job) = queue.jobs.pop_front() {
            queue.is_writing = true;
            drop(queue);
            place(&*job).is_called = false;
            // A fault of ours with one must not end the writing of the others; the panic hook has reported it.
            let is_written = catch_unwind(AssertUnwindSafe(|| job.write())).unwrap_or(true);
            queue = self.queue.lock();
            queue.is_writing = false;
            queue.note(job, is_written);
        }
        self.idle.notify_all();
        queue
    }
}

impl Queue {
    fn is_busy(&self) -> bool {
        self.is_writing || !self.jobs.is_empty()
    }

    /// Takes the result of a job.
    fn note(&mut self, job: Arc<dyn StateJob>, is_written: bool) {
        let was_retried = self.retry.tried > 0;
        self.retry.tried = self.retry.tried.saturating_sub(1);
        self.retry.has_succeeded |= was_retried && is_written;
        if !is_written {
            self.put_later(job);
        }
        if was_retried && self.retry.tried == 0 {
            // If one could be written, the others may be too.
            self.retry.wait = if self.retry.has_succeeded { Duration::ZERO } else { self.retry.wait * 2 };
            self.retry.wait = self.retry.wait.min(RETRY_MOST);
            self.retry.due = Instant::now().checked_add(self.retry.wait);
        }
        if self.later.is_empty() {
            self.retry = Retry::default();
        }
    }

    fn put_later(&mut self, job: Arc<dyn StateJob>) {
        if std::mem::replace(&mut place(&*job).is_later, true) {
            return;
        }
        self.later.push_back(job);
        if self.retry.due.is_none() {
            self.retry.due = Instant::now().checked_add(self.retry.wait);
        }
    }

    /// The first few failed jobs.
    fn retry_some(&mut self) {
        self.retry.wait = self.retry.wait.max(RETRY_FIRST);
        self.retry.has_succeeded = false;
        for _ in 0..TRIED_AT_ONCE {
            let Some(job) = self.later.pop_front() else { break };
            self.call_again(job);
        }
    }

    fn call_again(&mut self, job: Arc<dyn StateJob>) {
        let is_called = {
            let mut place = place(&*job);
            place.is_later = false;
            std::mem::replace(&mut place.is_called, true)
        };
        if !is_called {
            self.retry.tried += 1;
            self.jobs.push_back(job);
        }
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self { due: None, wait: RETRY_FIRST, tried: 0, has_succeeded: false }
    }
}

fn place(job: &dyn StateJob) -> MutexGuard<'_, QueuePlace> {
    job.place().lock()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// A disk that never takes anything.
    #[derive(Default)]
    struct Unwritable(Mutex<QueuePlace>);

    impl StateJob for Unwritable {
        fn place(&self) -> &Mutex<QueuePlace> {
            &self.0
        }

        fn write(&self) -> bool {
            false
        }
    }

    fn unwritable() -> Arc<dyn StateJob> {
        Arc::new(Unwritable::default())
    }

    #[test]
    fn what_fails_is_tried_again_less_and_less_often_until_something_is_written() {
        let mut queue = Queue::default();
        let jobs = [unwritable(), unwritable()];
        jobs.iter().for_each(|job| queue.note(job.clone(), false));
        assert_eq!((queue.later.len(), queue.retry.wait, queue.retry.due.is_some()), (2, RETRY_FIRST, true));
        // Both fail each time: the pause grows once a round, not once a job.
        for seconds in [2, 4, 8, 16, 30, 30] {
            queue.retry_some();
            assert_eq!((queue.jobs.len(), queue.later.len(), queue.retry.tried), (2, 0, 2));
            while let Some(job) = queue.jobs.pop_front() {
                place(&*job).is_called = false;
                queue.note(job, false);
            }
            assert_eq!((queue.later.len(), queue.retry.wait), (2, Duration::from_secs(seconds)));
        }
        // One of the two can be written: the other one is due at once.
        queue.retry_some();
        for is_written in [false, true] {
            let job = queue.jobs.pop_front().unwrap();
            place(&*job).is_called = false;
            queue.note(job, is_written);
        }
        assert_eq!((queue.later.len(), queue.retry.wait), (1, Duration::ZERO));
        assert!(queue.retry.due.is_some_and(|due| due <= Instant::now()));
        // After that the pauses begin anew, and end with the last job.
        queue.retry_some();
        let job = queue.jobs.pop_front().unwrap();
        place(&*job).is_called = false;
        queue.note(job, true);
        assert_eq!((queue.later.len(), queue.retry.wait, queue.retry.due), (0, RETRY_FIRST, None));
    }

    #[test]
    fn few_are_tried_again_at_once_and_none_stands_in_a_queue_twice() {
        let mut queue = Queue::default();
        let jobs: Vec<_> = (0..TRIED_AT_ONCE + 3).map(|_| unwritable()).collect();
        for job in jobs.iter().chain(&jobs) {
            queue.put_later(job.clone());
        }
        assert_eq!(queue.later.len(), TRIED_AT_ONCE + 3);
        // One has been called for meanwhile: it is no try, and in no queue of those tried again.
        place(&*jobs[0]).is_called = true;
        queue.retry_some();
        assert_eq!((queue.jobs.len(), queue.later.len(), queue.retry.tried), (TRIED_AT_ONCE - 1, 3, TRIED_AT_ONCE - 1));
    }

    #[test]
    fn a_flush_does_not_take_what_is_tried_again_for_written() {
        let writer = Arc::new(StateWriter::default());
        let job: Arc<dyn StateJob> = Arc::new(Unwritable::default());
        writer.call(job.clone());
        let is_over = AtomicBool::new(false);
        let counts = thread::scope(|scope| {
            // The timer goes off at every moment.
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    writer.queue.lock().retry.due = Some(Instant::now());
                    writer.called.notify_one();
                }
            });
            // And it is called for, as by a version that goes live.
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    writer.call(job.clone());
                    thread::yield_now();
                }
            });
            let counts = (0..50_000).filter(|_| writer.flush(None)).count();
            is_over.store(true, Ordering::Relaxed);
            counts
        });
        assert_eq!(counts, 0, "of 50,000 flushes said that all is written");
    }
}
