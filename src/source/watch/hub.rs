//! One clock and a few workers for everything that is watched.
//!
//! The clock reads no file: it waits for the next time that anything is due and for events, and hands what is due to a
//! worker. Workers read, compile and call back, at most [`MOST_WORKERS`] at a time: a file system that hangs holds up
//! that many files and no clock. Whatever comes meanwhile for a file is kept in its slot, so a storm of events takes no
//! more memory than one.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::folders::{Armed, Ask, Folders, Id, Listing, News};
use super::slot::{Job, Slot, Urgency};
use super::subject::{Stamp, Subject, sight};
use crate::live::{Cause, RejectionKind};

const MOST_WORKERS: usize = 4;

/// How long a worker waits for more before it ends.
const IDLE: Duration = Duration::from_secs(10);

/// What is due within one tick is done in one go, which costs one awakening.
const TICK: Duration = Duration::from_millis(50);

pub(super) struct Hub {
    state: Mutex<State>,
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
struct State {
    watched: HashMap<Id, Watched, foldhash::fast::RandomState>,
    next_id: Id,
    timers: BinaryHeap<Reverse<(Instant, Id)>>,
    ready: VecDeque<Id>,
    /// When the clock will look again.
    next_tick: Option<Instant>,
    workers: usize,
    idle: usize,
    stopped: bool,
}

struct Watched {
    slot: Slot,
    task: Arc<Task>,
}

/// What is watched, apart from when.
struct Task {
    path: PathBuf,
    listing: Listing,
    subject: Box<dyn Subject>,
    armed: Mutex<(Armed, Option<String>)>,
}

impl Hub {
    pub(super) fn new(ask: Ask) -> Self {
        Self {
            state: Mutex::default(),
            earlier: Condvar::new(),
            ready: Condvar::new(),
            folders: Folders::new(ask),
            clock: OnceLock::new(),
            start: Instant::now(),
        }
    }

    /// Watches the folders on the way to a path. What happens from now on is not missed, and looked at once
    /// [`Hub::begin`] is called.
    pub(super) fn arm<S: Subject + 'static>(
        self: &Arc<Self>,
        path: PathBuf,
        listing: Listing,
        poll: Duration,
        subject: impl FnOnce() -> S,
    ) -> Id {
        self.ensure_started();
        let id = {
            let mut state = self.state();
            state.next_id += 1;
            state.next_id
        };
        let mut armed = Armed::default();
        let (result, orphans) = self.folders.arm(id, &path, listing, &mut armed);
        let stamp = Stamp::of(&path);
        let armed = Mutex::new((armed, result.err()));
        let subject = Box::new(subject());
        let task = Arc::new(Task { path, listing, subject, armed });
        let now = Instant::now();
        let mut state = self.state();
        state.watched.insert(id, Watched { slot: Slot::new(poll, now, stamp), task });
        for orphan in orphans {
            self.tell(&mut state, orphan, Urgency::WhenQuiet, now);
        }
        id
    }

    pub(super) fn begin(self: &Arc<Self>, id: Id) {
        let mut state = self.state();
        let now = Instant::now();
        if let Some(watched) = state.watched.get_mut(&id) {
            watched.slot.finish(now);
        }
        self.schedule(&mut state, id, now);
    }

    pub(super) fn forget(&self, id: Id) {
        let forgotten = self.state().watched.remove(&id);
        if let Some(watched) = forgotten {
            self.folders.disarm(id, &watched.task.armed().0);
        }
    }

    pub(super) fn trouble(&self, id: Id) -> Option<String> {
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
        if matches!(news, News::Nothing) {
            return;
        }
        let mut state = self.state();
        let now = Instant::now();
        match news {
            News::Nothing => {}
            News::For(ids) => ids.into_iter().for_each(|(id, urgency)| self.tell(&mut state, id, urgency, now)),
            News::ForAll => {
                let ids: Vec<_> = state.watched.keys().copied().collect();
                ids.into_iter().for_each(|id| self.tell(&mut state, id, Urgency::WhenQuiet, now));
            }
        }
    }

    fn tell(self: &Arc<Self>, state: &mut State, id: Id, urgency: Urgency, now: Instant) {
        if let Some(watched) = state.watched.get_mut(&id) {
            watched.slot.tell(urgency, now);
            self.schedule(state, id, now);
        }
    }

    /// Sees to it that a slot is looked at when it wants to be.
    fn schedule(self: &Arc<Self>, state: &mut State, id: Id, now: Instant) {
        let Some(watched) = state.watched.get_mut(&id) else { return };
        let Some(wake) = watched.slot.wake() else { return };
        if wake <= now {
            watched.slot.queue();
            state.ready.push_back(id);
            self.call_worker(state);
            return;
        }
        let wake = self.tick_after(wake, now);
        // Later entries of the heap are passed over when their time comes.
        if watched.slot.queued.is_none_or(|queued| wake < queued) {
            watched.slot.queued = Some(wake);
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
                        let is_its = watched.slot.queued == Some(time);
                        if is_its {
                            watched.slot.queued = None;
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
    fn call_worker(self: &Arc<Self>, state: &mut State) {
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

    /// Does what is to be done for one slot.
    fn look(self: &Arc<Self>, id: Id) {
        let begun = {
            let mut state = self.state();
            state.watched.get_mut(&id).map(|watched| (watched.slot.begin(Instant::now()), watched.task.clone()))
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
                watched.slot.finish(now);
                self.schedule(&mut state, id, now);
            }
            None => {
                // Forgotten meanwhile, perhaps before it was armed again.
                drop(state);
                self.folders.disarm(id, &task.armed().0);
            }
        }
    }

    fn carry_out(self: &Arc<Self>, id: Id, task: &Task, job: Job) {
        match job {
            Job::Take(held) => {
                // Another reload may have published a later version: what was read before must not replace it.
                let again = task.subject.read();
                if sight(&again) == sight(&held) {
                    self.take(id, task, Cause::Event, again);
                } else {
                    self.carry_out(id, task, Job::Look);
                }
            }
            Job::Look => {
                // Before reading, so that no change after it goes unnoticed, wherever a link leads by now.
                self.rearm(id, task);
                let held = task.subject.read();
                let now = sight(&held);
                if now == Err(RejectionKind::Unstable) {
                    self.slot(id, Slot::again_when_quiet);
                } else if now.is_err() || task.subject.known() == Some(now) {
                    self.take(id, task, Cause::Event, held);
                } else {
                    self.slot(id, |slot| slot.settle(held, Instant::now()));
                }
            }
            Job::Poll => {
                let stamp = Stamp::of(&task.path);
                if self.slot(id, |slot| slot.has_to_be_read(&stamp)) != Some(true) {
                    return;
                }
                self.rearm(id, task);
                let held = task.subject.read();
                let (now, known) = (sight(&held), task.subject.known());
                if self.slot(id, |slot| slot.saw(now, known, stamp)) == Some(true) {
                    self.take(id, task, Cause::Poll, held);
                }
            }
        }
    }

    fn take(&self, id: Id, task: &Task, cause: Cause, held: super::subject::Held) {
        let now = sight(&held);
        let again = task.subject.take(cause, held);
        let known = task.subject.known();
        self.slot(id, |slot| {
            slot.took(now, known);
            if let Some(rest) = again {
                slot.look_again(Instant::now() + rest);
            }
        });
    }

    fn rearm(self: &Arc<Self>, id: Id, task: &Task) {
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

    fn slot<R>(&self, id: Id, change: impl FnOnce(&mut Slot) -> R) -> Option<R> {
        self.state().watched.get_mut(&id).map(|watched| change(&mut watched.slot))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No callback runs while it is held, and what is done under it leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Task {
    fn armed(&self) -> MutexGuard<'_, (Armed, Option<String>)> {
        self.armed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("watched", &self.state().watched.len()).finish_non_exhaustive()
    }
}
