//! The watchdog: reports stalled event loops and panics in the log, the status, the metrics and
//! `/livez`.
//!
//! Every two seconds, a separate thread sends a task to each event loop, including the loop of the
//! control thread, and checks whether the loop has run the previous task.
//!
//! **The watchdog does not end the process.** A stalled loop may recover, and the other workers
//! continue to handle requests. The supervisor decides whether to end the process: robotsd stops
//! notifying systemd, and `/livez` returns 503. If the thread of a worker has *ended*, however, the
//! process reports the reason and exits. The connections of that worker are lost in any case, and a
//! supervisor can start a new process faster than robotsd could replace the thread.

use std::convert::Infallible;
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{io, thread};

use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::log::{Log, LogEvent, LogLevel};
use crate::metrics::{Exposition, family};

const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Number of tasks in a row that an event loop must miss to count as stalled. The watchdog counts
/// tasks instead of seconds, because time also passes while the process is stopped or the machine
/// sleeps.
const STALL_THRESHOLD: u64 = 3;

#[derive(Debug, Default)]
pub(crate) struct Watchdog {
    loops: OnceLock<Vec<EventLoop>>,
    panics: AtomicU64,
    last_panic: Mutex<Option<String>>,
}

/// Dropping this guard ends the watchdog thread.
pub(crate) type WatchGuard = Sender<Infallible>;

#[derive(Debug)]
struct EventLoop {
    thread: String,
    runtime: Handle,
    /// Whether the loop has not run its latest task yet.
    is_awaited: Arc<AtomicBool>,
    missed: AtomicU64,
}

impl Watchdog {
    /// Starts the watchdog thread. `loops` contains each event loop and the name of its thread.
    /// Later calls ignore `loops`.
    pub(crate) fn watch(
        self: &Arc<Self>,
        loops: impl IntoIterator<Item = (String, Handle)>,
        log: &Log,
    ) -> io::Result<WatchGuard> {
        let watched =
            |(thread, runtime)| EventLoop { thread, runtime, is_awaited: Arc::default(), missed: AtomicU64::new(0) };
        let (watchdog, log) = (Arc::clone(self), log.clone());
        watchdog.loops.get_or_init(|| loops.into_iter().map(watched).collect());
        let (guard, ended) = channel::<Infallible>();
        let watch = move || {
            while ended.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                watchdog.loops.get().into_iter().flatten().for_each(|watched| watched.check_loop(&log));
            }
        };
        thread::Builder::new().name("robotsd-watchdog".to_owned()).spawn(watch)?;
        Ok(guard)
    }

    /// Counts and logs every panic from now on. Panics are still printed on stderr.
    pub(crate) fn report_panics(self: &Arc<Self>, log: &Log) {
        let (watchdog, log, usual) = (Arc::clone(self), log.clone(), std::panic::take_hook());
        std::panic::set_hook(Box::new(move |panic| {
            usual(panic);
            let message = panic_message(panic);
            watchdog.panics.fetch_add(1, Ordering::Relaxed);
            log.write_message(LogEvent::Panic, message.clone());
            *watchdog.last_panic.lock() = Some(message);
            // If the control thread panics, the process ends, so the message must be written to the
            // log immediately.
            if thread::current().name() == Some("main") {
                log.flush();
            }
        }));
    }

    pub(crate) fn last_panic(&self) -> Option<String> {
        self.last_panic.lock().clone()
    }

    pub(super) fn stalled(&self) -> Vec<String> {
        self.loops().filter(|watched| watched.is_stalled()).map(|watched| watched.thread.clone()).collect()
    }

    pub(super) fn problems(&self) -> impl Iterator<Item = String> {
        let panic = self.last_panic().map(|last| {
            let panics = self.panics.load(Ordering::Relaxed);
            format!(
                "panics since the start: {panics}; each is a bug in robotsd, so report it with the output on stderr; \
                 the last panic: {last}"
            )
        });
        self.loops().filter(|watched| watched.is_stalled()).map(EventLoop::problem).chain(panic)
    }

    pub(super) fn write_metrics(&self, exposition: &mut Exposition) {
        exposition.sample(&family::PANICS, &[], self.panics.load(Ordering::Relaxed));
        // The control thread is included, although it cannot send the metrics while it is stalled.
        for watched in self.loops() {
            exposition.flag(&family::WORKER_STALLED, &[("worker", &watched.thread)], watched.is_stalled());
        }
    }

    fn loops(&self) -> impl Iterator<Item = &EventLoop> {
        self.loops.get().into_iter().flatten()
    }
}

impl EventLoop {
    fn check_loop(&self, log: &Log) {
        if self.is_awaited.swap(true, Ordering::Relaxed) {
            if self.missed.fetch_add(1, Ordering::Relaxed) + 1 == STALL_THRESHOLD {
                log.write_message(LogEvent::Stalled, self.problem());
            }
            return;
        }
        let recovery_message = self.is_stalled().then(|| {
            format!(
                "the thread {thread} works again, after it was stalled for {seconds} s",
                thread = self.thread,
                seconds = self.seconds()
            )
        });
        // The count is reset before the message is logged, because an operator who has read the
        // message must not see the stall in the status any more.
        self.missed.store(0, Ordering::Relaxed);
        if let Some(message) = recovery_message {
            log.write_message_at(LogLevel::Info, LogEvent::Stalled, message);
        }
        let is_awaited = Arc::clone(&self.is_awaited);
        self.runtime.spawn(async move { is_awaited.store(false, Ordering::Relaxed) });
    }

    fn is_stalled(&self) -> bool {
        self.missed.load(Ordering::Relaxed) >= STALL_THRESHOLD
    }

    fn seconds(&self) -> u64 {
        self.missed.load(Ordering::Relaxed) * CHECK_INTERVAL.as_secs()
    }

    fn problem(&self) -> String {
        format!(
            "the thread {thread} has been stalled for {seconds} s, and its connections get no answers: if it does \
             not continue, restart robotsd, or let WatchdogSec= or a probe of /livez restart robotsd automatically",
            thread = self.thread,
            seconds = self.seconds()
        )
    }
}

fn panic_message(panic: &PanicHookInfo<'_>) -> String {
    let (thread, payload) = (thread::current(), panic.payload());
    let message = payload.downcast_ref::<&str>().copied();
    let message = message.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    let place = panic.location().map(|place| format!(" at {place}")).unwrap_or_default();
    format!("the thread {} panicked{place}: {message}", thread.name().unwrap_or("(unnamed)"))
}
