//! One clock and a few workers for everything that is watched.
//!
//! The clock reads no file: it waits for the next time that anything is due and for events, and hands what is due to a
//! worker. Workers read, compile and call back, at most [`MOST_WORKERS`] at a time: a file system that hangs holds up
//! that many files and no clock. Whatever comes meanwhile for a file is kept in its debounce, so a storm of events takes no
//! more memory than one.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::debounce::{Debounce, DueWork, Urgency};
use super::folders::{Folders, Impact, Listing, OpenEvents, Registration, WatchId};
use super::target::{FileStamp, Target, fingerprint};
use crate::live::{Cause, RejectionKind};

const MOST_WORKERS: usize = 4;

/// How long a worker waits for more before it ends.
const IDLE: Duration = Duration::from_secs(10);

/// What is due within one tick is done in one go, which costs one awakening.
const TICK: Duration = Duration::from_millis(50);

pub(super) struct Scheduler {
    state: Mutex<Queues>,
    /// Something is due earlier than the clock thinks.
    earlier: Condvar,
    /// There is something to do.
    ready: Condvar,
    folders: Folders,
    /// Started by the first thing that is watched, or why it could not be.
    clock: OnceLock<Result<(), String>>,
    start: Instant,
}

#[derive(Default)]
struct Queues {
    watched: HashMap<WatchId, Scheduled, foldhash::fast::RandomState>,
    next_id: WatchId,
    timers: BinaryHeap<Reverse<(Instant, WatchId)>>,
    ready: VecDeque<WatchId>,
    /// When the clock will look again.
    next_tick: Option<Instant>,
    workers: usize,
    idle: usize,
    stopped: bool,
}

struct Scheduled {
    debounce: Debounce,
    task: Arc<WatchedTarget>,
}

/// What is watched, apart from when.
struct WatchedTarget {
    path: PathBuf,
    listing: Listing,
    target: Box<dyn Target>,
    armed: Mutex<(Registration, Option<String>)>,
}

impl Scheduler {
    pub(super) fn new(ask: OpenEvents) -> Self {
        Self {
            state: Mutex::default(),
            earlier: Condvar::new(),
            ready: Condvar::new(),
            folders: Folders::new(ask),
            clock: OnceLock::new(),
            start: Instant::now(),
        }
    }

    /// EventSource the folders on the way to a path. What happens from now on is not missed, and looked at once
    /// [`Scheduler::begin`] is called.
    pub(super) fn arm<S: Target + 'static>(
        self: &Arc<Self>,
        path: PathBuf,
        listing: Listing,
        poll: Duration,
        target: impl FnOnce() -> S,
    ) -> WatchId {
        self.ensure_started();
        let id = {
            let mut state = self.state();
            state.next_id += 1;
            state.next_id
        };
        let mut armed = Registration::default();
        let (result, orphans) = self.folders.arm(id, &path, listing, &mut armed);
        let stamp = FileStamp::of(&path);
        let armed = Mutex::new((armed, result.err()));
        let target = Box::new(target());
        let task = Arc::new(WatchedTarget { path, listing, target, armed });
        let now = Instant::now();
        let mut state = self.state();
        state.watched.insert(id, Scheduled { debounce: Debounce::new(poll, now, stamp), task });
        for orphan in orphans {
            self.tell(&mut state, orphan, Urgency::WhenQuiet, now);
        }
        id
    }

    pub(super) fn begin(self: &Arc<Self>, id: WatchId) {
        let mut state = self.state();
        let now = Instant::now();
        if let Some(watched) = state.watched.get_mut(&id) {
            watched.debounce.finish(now);
        }
        self.schedule(&mut state, id, now);
    }

    pub(super) fn forget(&self, id: WatchId) {
        let forgotten = self.state().watched.remove(&id);
        if let Some(watched) = forgotten {
            self.folders.disarm(id, &watched.task.armed().0);
        }
    }

    pub(super) fn trouble(&self, id: WatchId) -> Option<String> {
        let task = {
            if let Some(Err(trouble)) = self.clock.get() {
                return Some(trouble.clone());
            }
            self.state().watched.get(&id)?.task.clone()
        };
        let armed = task.armed();
        armed.1.clone()
    }

    pub(super) fn stop(&self) {
        let watched = {
            let mut state = self.state();
            state.stopped = true;
            std::mem::take(&mut state.watched)
        };
        self.earlier.notify_all();
        self.ready.notify_all();
        self.folders.stop();
        drop(watched);
    }

    /// Starts what tells of events, and the clock, for the first thing that is watched.
    fn ensure_started(self: &Arc<Self>) {
        self.clock.get_or_init(|| {
            let hub = Arc::downgrade(self);
            self.folders.start(move |event| {
                if let Some(hub) = hub.upgrade() {
                    hub.hear(&event);
                }
            });
            let hub = self.clone();
            let spawned = thread::Builder::new().name("robots-watch".into()).spawn(move || hub.keep_time());
            spawned.map(drop).map_err(|error| format!("no thread to watch the file could be started: {error}"))
        });
    }

    fn hear(self: &Arc<Self>, event: &notify::Result<notify::Event>) {
        let news = self.folders.news(event);
        if matches!(news, Impact::Nothing) {
            return;
        }
        let mut state = self.state();
        let now = Instant::now();
        match news {
            Impact::Nothing => {}
            Impact::For(ids) => ids.into_iter().for_each(|(id, urgency)| self.tell(&mut state, id, urgency, now)),
            Impact::ForAll => {
                let ids: Vec<_> = state.watched.keys().copied().collect();
                ids.into_iter().for_each(|id| self.tell(&mut state, id, Urgency::WhenQuiet, now));
            }
        }
    }

    fn tell(self: &Arc<Self>, state: &mut Queues, id: WatchId, urgency: Urgency, now: Instant) {
        if let Some(watched) = state.watched.get_mut(&id) {
            watched.debounce.tell(urgency, now);
            self.schedule(state, id, now);
        }
    }

    /// Sees to it that a debounce is looked at when it wants to be.
    fn schedule(self: &Arc<Self>, state: &mut Queues, id: WatchId, now: Instant) {
        let Some(watched) = state.watched.get_mut(&id) else { return };
        let Some(wake) = watched.debounce.wake() else { return };
        if wake <= now {
            watched.debounce.queue();
            state.ready.push_back(id);
            self.call_worker(state);
            return;
        }
        let wake = self.tick_after(wake, now);
        // Later entries of the heap are passed over when their time comes.
        if watched.debounce.queued.is_none_or(|queued| wake < queued) {
            watched.debounce.queued = Some(wake);
            state.timers.push(Reverse((wake, id)));
            if state.next_tick.is_none_or(|tick| wake < tick) {
                self.earlier.notify_one();
            }
        }
    }

    /// What is far off waits for the end of its tick; what is near is not put off.
    fn tick_after(&self, wake: Instant, now: Instant) -> Instant {
        if wake.saturating_duration_since(now) < TICK * 2 {
            return wake;
        }
        let ticks = wake.saturating_duration_since(self.start).as_millis() / TICK.as_millis() + 1;
        u32::try_from(ticks).map_or(wake, |ticks| self.start + TICK * ticks)
    }

    fn keep_time(self: Arc<Self>) {
        let mut state = self.state();
        while !state.stopped {
            let now = Instant::now();
            let next = state.timers.peek().map(|Reverse((time, _))| *time);
            match next {
                Some(time) if time <= now => {
                    let Some(Reverse((time, id))) = state.timers.pop() else { continue };
                    let due = state.watched.get_mut(&id).is_some_and(|watched| {
                        let is_its = watched.debounce.queued == Some(time);
                        if is_its {
                            watched.debounce.queued = None;
                        }
                        is_its
                    });
                    if due {
                        self.schedule(&mut state, id, now);
                    }
                }
                Some(time) => {
                    state.next_tick = Some(time);
                    let wait = time.saturating_duration_since(now);
                    state = self.earlier.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
                }
                None => {
                    state.next_tick = None;
                    state = self.earlier.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Wakes a worker, or starts one if all are at work.
    fn call_worker(self: &Arc<Self>, state: &mut Queues) {
        self.ready.notify_one();
        if state.ready.len() > state.idle && state.workers < MOST_WORKERS {
            let hub = self.clone();
            state.workers += 1;
            if thread::Builder::new().name("robots-reload".into()).spawn(move || hub.work()).is_err() {
                // Whoever is at work comes to it; else the next event or poll tries again.
                state.workers -= 1;
            }
        }
    }

    fn work(self: Arc<Self>) {
        let mut state = self.state();
        loop {
            while let Some(id) = state.ready.pop_front() {
                drop(state);
                self.look(id);
                state = self.state();
            }
            if state.stopped {
                break;
            }
            state.idle += 1;
            let (back, waited) = self.ready.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
            state = back;
            state.idle -= 1;
            if waited.timed_out() && state.ready.is_empty() {
                break;
            }
        }
        state.workers -= 1;
    }

    /// Does what is to be done for one debounce.
    fn look(self: &Arc<Self>, id: WatchId) {
        let begun = {
            let mut state = self.state();
            state.watched.get_mut(&id).map(|watched| (watched.debounce.begin(Instant::now()), watched.task.clone()))
        };
        let Some((job, task)) = begun else { return };
        if let Some(job) = job {
            // A panic of whoever is called back ends no watching; the panic hook has told of it.
            let _ = catch_unwind(AssertUnwindSafe(|| self.carry_out(id, &task, job)));
        } else {
            let mut state = self.state();
            self.schedule(&mut state, id, Instant::now());
            return;
        }
        let now = Instant::now();
        let mut state = self.state();
        match state.watched.get_mut(&id) {
            Some(watched) => {
                watched.debounce.finish(now);
                self.schedule(&mut state, id, now);
            }
            None => {
                // Forgotten meanwhile, perhaps before it was armed again.
                drop(state);
                self.folders.disarm(id, &task.armed().0);
            }
        }
    }

    fn carry_out(self: &Arc<Self>, id: WatchId, task: &WatchedTarget, job: DueWork) {
        match job {
            DueWork::Take(held) => {
                // Another reload may have published a later version: what was read before must not replace it.
                let again = task.target.read();
                if fingerprint(&again) == fingerprint(&held) {
                    self.take(id, task, Cause::Event, again);
                } else {
                    self.carry_out(id, task, DueWork::Look);
                }
            }
            DueWork::Look => {
                // Before reading, so that no change after it goes unnoticed, wherever a link leads by now.
                self.rearm(id, task);
                let held = task.target.read();
                let now = fingerprint(&held);
                if now == Err(RejectionKind::Unstable) {
                    self.debounce(id, Debounce::again_when_quiet);
                } else if now.is_err() || task.target.known() == Some(now) {
                    self.take(id, task, Cause::Event, held);
                } else {
                    self.debounce(id, |debounce| debounce.settle(held, Instant::now()));
                }
            }
            DueWork::Poll => {
                let stamp = FileStamp::of(&task.path);
                if self.debounce(id, |debounce| debounce.has_to_be_read(&stamp)) != Some(true) {
                    return;
                }
                self.rearm(id, task);
                let held = task.target.read();
                let (now, known) = (fingerprint(&held), task.target.known());
                if self.debounce(id, |debounce| debounce.saw(now, known, stamp)) == Some(true) {
                    self.take(id, task, Cause::Poll, held);
                }
            }
        }
    }

    fn take(&self, id: WatchId, task: &WatchedTarget, cause: Cause, held: super::target::ReadResult) {
        let now = fingerprint(&held);
        let again = task.target.take(cause, held);
        let known = task.target.known();
        self.debounce(id, |debounce| {
            debounce.took(now, known);
            if let Some(rest) = again {
                debounce.look_again(Instant::now() + rest);
            }
        });
    }

    fn rearm(self: &Arc<Self>, id: WatchId, task: &WatchedTarget) {
        let orphans = {
            let mut armed = task.armed();
            let (result, orphans) = self.folders.arm(id, &task.path, task.listing, &mut armed.0);
            armed.1 = result.err();
            orphans
        };
        if !orphans.is_empty() {
            let mut state = self.state();
            let now = Instant::now();
            orphans.into_iter().for_each(|orphan| self.tell(&mut state, orphan, Urgency::WhenQuiet, now));
        }
    }

    fn debounce<R>(&self, id: WatchId, change: impl FnOnce(&mut Debounce) -> R) -> Option<R> {
        self.state().watched.get_mut(&id).map(|watched| change(&mut watched.debounce))
    }

    fn state(&self) -> MutexGuard<'_, Queues> {
        // No callback runs while it is held, and what is done under it leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WatchedTarget {
    fn armed(&self) -> MutexGuard<'_, (Registration, Option<String>)> {
        self.armed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduler").field("watched", &self.state().watched.len()).finish_non_exhaustive()
    }
}
