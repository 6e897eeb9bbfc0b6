//! The scheduler: one clock thread and a few workers for all watched files and folders.
//!
//! The clock thread does not read files. It waits for events and for the next timer, and passes the
//! targets that must be read to workers. Workers read and compile files and run callbacks. The
//! number of workers per file system is limited, so a file system that does not respond delays
//! neither the clock thread nor other file systems.
//!
//! The result of a read is published 20 ms later, unless an event reports a write in the meantime.
//! No worker sleeps for these 20 ms: the [`Debounce`] of the file stores the time of publication.
//! Events are not queued: each event only changes the `Debounce` of a file, so many events need no
//! more memory than a single event.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::debounce::{Debounce, DueWork, Urgency};
use super::folders::{Folders, Listing, OpenEvents};
use super::polled_changes::{FileStamp, PolledChanges};
use super::routes::{WatchId, WatchedName};
use super::target::{ReadResult, Target, fingerprint};
use crate::live::{Cause, Mutex, RejectionKind};
use crate::source::file_system::FileSystemId;

/// How long an idle worker waits for work before it ends, and how long the clock thread sleeps if
/// no timer is set.
const IDLE: Duration = Duration::from_secs(10);

/// Timers end at multiples of this interval, so that the clock thread handles many targets each
/// time it wakes up.
const TICK: Duration = Duration::from_millis(50);

pub(super) struct Scheduler {
    /// The timers and the jobs. The lock is held only briefly.
    queues: Mutex<Queues>,
    /// Wakes the clock thread if a new timer ends before the thread would wake up.
    earlier: Condvar,
    ready: Condvar,
    folders: Folders,
    /// The result of starting the clock thread. The thread is started when the first target is
    /// added.
    clock: OnceLock<Result<(), String>>,
    start: Instant,
}

#[derive(Default)]
struct Queues {
    watched: HashMap<WatchId, Scheduled, foldhash::fast::RandomState>,
    next_id: WatchId,
    /// When the timer of each target ends. The clock thread sleeps until the earliest of these
    /// times.
    timers: BTreeSet<(Instant, WatchId)>,
    ready: ReadyJobs,
    workers: usize,
    is_stopped: bool,
}

struct Scheduled {
    debounce: Debounce,
    polled: PolledChanges,
    target: Arc<WatchedTarget>,
}

enum Job {
    Run(WatchId),
    Leave(WatchId, Arc<WatchedTarget>),
}

/// A target and its registered names. [`Scheduled`] contains the times when the target is read.
struct WatchedTarget {
    path: PathBuf,
    listing: Listing,
    target: Box<dyn Target>,
    /// File system of the target. Jobs are queued separately for each file system.
    system: AtomicU64,
    /// The registered path and symbolic links of the target. Only workers use this lock. A worker
    /// holds the lock while it looks up folders, which blocks if the file system does not respond.
    registered: Mutex<BTreeSet<WatchedName>>,
    /// The reason why the file system does not report events for the target; `None` if it reports
    /// events. The lock is held only briefly.
    problem: Mutex<Option<String>>,
}

impl WatchedTarget {
    fn leave(&self, id: WatchId, folders: &Folders) {
        folders.unregister(id, &mut self.registered.lock());
    }

    fn register_again(&self, id: WatchId, folders: &Folders) {
        let result = folders.register(id, &self.path, self.listing, &mut self.registered.lock());
        *self.problem.lock() = result.err();
    }
}

impl Scheduler {
    pub(super) fn new(open: OpenEvents) -> Arc<Self> {
        Arc::new_cyclic(|scheduler: &Weak<Self>| {
            let scheduler = scheduler.clone();
            let notify = move |affected_targets: Vec<(WatchId, Urgency)>| {
                if let Some(scheduler) = scheduler.upgrade().filter(|_| !affected_targets.is_empty()) {
                    scheduler.notify(affected_targets);
                }
            };
            Self {
                queues: Mutex::default(),
                earlier: Condvar::new(),
                ready: Condvar::new(),
                folders: Folders::new(open, notify),
                clock: OnceLock::new(),
                start: Instant::now(),
            }
        })
    }

    /// Starts to watch the folders of a path and of the symbolic links on it. Events are recorded
    /// from now on, but the target is read only after [`Scheduler::begin`]. Blocks until the file
    /// system of the path responds.
    pub(super) fn add<T: Target + 'static>(
        self: &Arc<Self>,
        path: PathBuf,
        listing: Listing,
        poll: Duration,
        target: impl FnOnce() -> T,
    ) -> WatchId {
        self.ensure_started();
        let id = {
            let mut queues = self.queues.lock();
            queues.next_id += 1;
            queues.next_id
        };
        let mut registered = BTreeSet::new();
        let result = self.folders.register(id, &path, listing, &mut registered);
        let stamp = FileStamp::of(&path);
        let system = stamp.system().or(registered.first().map(|name| name.system)).unwrap_or_default();
        let target = Arc::new(WatchedTarget {
            path,
            listing,
            target: Box::new(target()),
            system: AtomicU64::new(system),
            registered: Mutex::new(registered),
            problem: Mutex::new(result.err()),
        });
        let debounce = Debounce::new(poll, Instant::now());
        self.queues.lock().watched.insert(id, Scheduled { debounce, polled: PolledChanges::new(stamp), target });
        id
    }

    pub(super) fn begin(self: &Arc<Self>, id: WatchId) {
        let mut queues = self.queues.lock();
        let now = Instant::now();
        if let Some(watched) = queues.watched.get_mut(&id) {
            watched.debounce.finish(now);
        }
        self.schedule(&mut queues, id, now);
    }

    /// Stops watching a target. Does not wait for the file system, or for a worker that is reading
    /// the target.
    pub(super) fn remove(self: &Arc<Self>, id: WatchId) {
        let mut queues = self.queues.lock();
        if let Some(Scheduled { target, .. }) = queues.watched.remove(&id) {
            self.queue_job(&mut queues, target.system.load(Ordering::Relaxed), Job::Leave(id, target));
        }
    }

    pub(super) fn problem(&self, id: WatchId) -> Option<String> {
        if let Some(Err(problem)) = self.clock.get() {
            return Some(problem.clone());
        }
        let target = self.queues.lock().watched.get(&id)?.target.clone();
        target.problem.lock().clone()
    }

    pub(super) fn stop(&self) {
        let watched = {
            let mut queues = self.queues.lock();
            queues.is_stopped = true;
            std::mem::take(&mut queues.watched)
        };
        self.earlier.notify_all();
        self.ready.notify_all();
        self.folders.stop();
        drop(watched);
    }

    fn ensure_started(self: &Arc<Self>) {
        self.clock.get_or_init(|| {
            let scheduler = self.clone();
            let spawned = thread::Builder::new().name("robots-watch".into()).spawn(move || scheduler.run_clock());
            spawned.map(drop).map_err(|error| format!("cannot start a thread to watch the file: {error}"))
        });
    }

    fn notify(self: &Arc<Self>, affected_targets: Vec<(WatchId, Urgency)>) {
        let mut queues = self.queues.lock();
        let now = Instant::now();
        for (id, urgency) in affected_targets {
            if let Some(watched) = queues.watched.get_mut(&id) {
                watched.debounce.notify(urgency, now);
                self.schedule(&mut queues, id, now);
            }
        }
    }

    fn schedule(self: &Arc<Self>, queues: &mut Queues, id: WatchId, now: Instant) {
        let Some(watched) = queues.watched.get_mut(&id) else { return };
        let Some(wake) = watched.debounce.wake() else { return };
        if wake <= now {
            watched.debounce.queue();
            let system = watched.target.system.load(Ordering::Relaxed);
            return self.queue_job(queues, system, Job::Run(id));
        }
        let wake = self.tick_after(wake, now);
        // Only an earlier timer replaces the timer of the target. If the timer ends before the
        // target must be read, a new timer is set then.
        if watched.debounce.queued.is_none_or(|queued| wake < queued) {
            if let Some(later) = watched.debounce.queued.replace(wake) {
                queues.timers.remove(&(later, id));
            }
            queues.timers.insert((wake, id));
            if queues.timers.first() == Some(&(wake, id)) {
                self.earlier.notify_one();
            }
        }
    }

    /// Rounds a time up to a multiple of the tick, unless it is less than two ticks away.
    fn tick_after(&self, wake: Instant, now: Instant) -> Instant {
        if wake.saturating_duration_since(now) < TICK * 2 {
            return wake;
        }
        let ticks = wake.saturating_duration_since(self.start).as_millis() / TICK.as_millis() + 1;
        u32::try_from(ticks).map_or(wake, |ticks| self.start + TICK * ticks)
    }

    fn run_clock(self: Arc<Self>) {
        let mut queues = self.queues.lock();
        while !queues.is_stopped {
            let now = Instant::now();
            match queues.timers.first().copied() {
                Some((time, id)) if time <= now => {
                    queues.timers.pop_first();
                    if let Some(watched) = queues.watched.get_mut(&id) {
                        watched.debounce.queued = None;
                    }
                    self.schedule(&mut queues, id, now);
                }
                next => {
                    let wait = next.map_or(IDLE, |(time, _)| time - now);
                    queues = self.earlier.wait_timeout(queues, wait).unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }

    fn queue_job(self: &Arc<Self>, queues: &mut Queues, system: FileSystemId, job: Job) {
        queues.ready.push(system, job);
        self.ready.notify_one();
        if queues.workers < queues.ready.workers() {
            let scheduler = self.clone();
            queues.workers += 1;
            if thread::Builder::new().name("robots-reload".into()).spawn(move || scheduler.work()).is_err() {
                // If the thread cannot be started, a busy worker runs the job later. If there are
                // no workers, the next event or poll tries again to start a worker.
                queues.workers -= 1;
            }
        }
    }

    fn work(self: Arc<Self>) {
        let mut queues = self.queues.lock();
        let mut has_waited = false;
        loop {
            if let Some((system, job)) = queues.ready.pop() {
                drop(queues);
                match job {
                    Job::Run(id) => self.run(id),
                    Job::Leave(id, target) => target.leave(id, &self.folders),
                }
                queues = self.queues.lock();
                queues.ready.finish(system);
                has_waited = false;
            } else if queues.is_stopped || has_waited {
                break;
            } else {
                let (back, waited) = self.ready.wait_timeout(queues, IDLE).unwrap_or_else(PoisonError::into_inner);
                (queues, has_waited) = (back, waited.timed_out());
            }
        }
        queues.workers -= 1;
    }

    fn run(self: &Arc<Self>, id: WatchId) {
        let begun = {
            let mut queues = self.queues.lock();
            queues.watched.get_mut(&id).map(|watched| (watched.debounce.begin(Instant::now()), watched.target.clone()))
        };
        let Some((work, target)) = begun else { return };
        if let Some(work) = work {
            // If a callback panics, watching continues. The panic hook has already reported the
            // panic.
            let _ = catch_unwind(AssertUnwindSafe(|| self.carry_out(id, &target, work)));
        } else {
            let mut queues = self.queues.lock();
            self.schedule(&mut queues, id, Instant::now());
            return;
        }
        let now = Instant::now();
        let mut queues = self.queues.lock();
        match queues.watched.get_mut(&id) {
            Some(watched) => {
                watched.debounce.finish(now);
                self.schedule(&mut queues, id, now);
            }
            None => {
                // The target was removed during its job. The job may have registered the target's
                // folders after the removal, so the folders are unregistered here.
                drop(queues);
                target.leave(id, &self.folders);
            }
        }
    }

    fn carry_out(self: &Arc<Self>, id: WatchId, target: &WatchedTarget, work: DueWork) {
        match work {
            DueWork::Take(settled) => {
                // The target is read again, because another reload may have published a later
                // version, which the result of the earlier read must not replace.
                let again = target.target.read();
                if fingerprint(&again) == fingerprint(&settled) {
                    self.take(id, target, Cause::Event, again);
                } else {
                    self.carry_out(id, target, DueWork::Look);
                }
            }
            DueWork::Look => {
                // A symbolic link on the path may have changed, so the folders are registered
                // again. The read follows the registration, so that no change after the read is
                // missed.
                target.register_again(id, &self.folders);
                let read = target.target.read();
                let now = fingerprint(&read);
                if now == Err(RejectionKind::Unstable) {
                    self.scheduled(id, |scheduled| scheduled.debounce.again_when_quiet());
                } else if now.is_err() || target.target.known() == Some(now) {
                    self.take(id, target, Cause::Event, read);
                } else {
                    self.scheduled(id, |scheduled| scheduled.debounce.settle(read, Instant::now()));
                }
            }
            DueWork::Poll => {
                let stamp = FileStamp::of(&target.path);
                if let Some(system) = stamp.system() {
                    target.system.store(system, Ordering::Relaxed);
                }
                if self.scheduled(id, |scheduled| scheduled.polled.must_be_read(&stamp)) != Some(true) {
                    return;
                }
                target.register_again(id, &self.folders);
                let read = target.target.read();
                let (now, known) = (fingerprint(&read), target.target.known());
                if self.scheduled(id, |scheduled| scheduled.polled.record_poll(now, known, stamp)) == Some(true) {
                    self.take(id, target, Cause::Poll, read);
                }
            }
        }
    }

    fn take(&self, id: WatchId, target: &WatchedTarget, cause: Cause, read: ReadResult) {
        let now = fingerprint(&read);
        let again = target.target.take(cause, read);
        let known = target.target.known();
        self.scheduled(id, |scheduled| {
            scheduled.polled.record_result(now, known);
            if let Some(rest) = again {
                scheduled.debounce.read_again_at(Instant::now() + rest);
            }
        });
    }

    fn scheduled<R>(&self, id: WatchId, change: impl FnOnce(&mut Scheduled) -> R) -> Option<R> {
        self.queues.lock().watched.get_mut(&id).map(change)
    }
}

robots_core::debug_as!(|it| Scheduler { watched: it.queues.lock().watched.len() });

/// Maximum number of concurrent workers per file system.
pub(super) const MAX_WORKERS: usize = 4;

#[derive(Default)]
struct ReadyJobs {
    systems: BTreeMap<FileSystemId, ReadyOfSystem>,
}

#[derive(Default)]
struct ReadyOfSystem {
    due: VecDeque<Job>,
    running: usize,
}

impl ReadyJobs {
    fn push(&mut self, system: FileSystemId, job: Job) {
        self.systems.entry(system).or_default().due.push_back(job);
    }

    /// Returns the next job that may run. After running the job, the caller must call
    /// [`ReadyJobs::finish`].
    fn pop(&mut self) -> Option<(FileSystemId, Job)> {
        let mut free = self.systems.iter_mut().filter(|(_, ready)| ready.running < MAX_WORKERS);
        free.find_map(|(system, ready)| {
            let job = ready.due.pop_front()?;
            ready.running += 1;
            Some((*system, job))
        })
    }

    fn finish(&mut self, system: FileSystemId) {
        if let Some(ready) = self.systems.get_mut(&system) {
            ready.running = ready.running.saturating_sub(1);
            if ready.running == 0 && ready.due.is_empty() {
                self.systems.remove(&system);
            }
        }
    }

    fn workers(&self) -> usize {
        self.systems.values().map(|ready| (ready.running + ready.due.len()).min(MAX_WORKERS)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pop(ready: &mut ReadyJobs) -> Option<(FileSystemId, WatchId)> {
        let (system, job) = ready.pop()?;
        let (Job::Run(id) | Job::Leave(id, _)) = job;
        Some((system, id))
    }

    #[test]
    fn a_hanging_file_system_occupies_only_its_own_workers() {
        let mut ready = ReadyJobs::default();
        (0..10).for_each(|id| ready.push(1, Job::Run(id)));
        for id in 0..4 {
            assert_eq!(pop(&mut ready), Some((1, id)));
        }
        assert_eq!(pop(&mut ready), None, "four are at work there");
        ready.push(2, Job::Run(100));
        assert_eq!(ready.workers(), 5);
        assert_eq!(pop(&mut ready), Some((2, 100)));
        ready.finish(2);
        assert_eq!(ready.workers(), 4);
        ready.finish(1);
        assert_eq!(pop(&mut ready), Some((1, 4)), "one has come back");
    }
}
