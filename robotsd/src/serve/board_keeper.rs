//! Keeps the board up to date: collects the counts of the workers once a second. Writes them on a
//! blocking thread every minute, or after half a minute if that failed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

use crate::board::{Board, seconds};
use crate::config::Config;
use crate::log::{Log, LogEvent, LogLevel};
use crate::sites::Sites;

/// Interval between collections of counts.
const TICK: Duration = Duration::from_secs(1);

/// Maximum time that the end waits for the files: a file system may hang.
const LAST: Duration = Duration::from_secs(5);

/// The board, its clock, and the current write.
pub(super) struct BoardKeeper {
    pub(super) board: Arc<Board>,
    pub(super) ticks: Interval,
    /// Whether there is something to write.
    is_due: bool,
    writing: Option<JoinHandle<Result<(), String>>>,
    /// The last logged problem, so that each is logged once.
    problem: Option<String>,
    log: Log,
}

impl BoardKeeper {
    /// Returns `None` if the config disables the board. Its files are in the state directory, if
    /// that is open. The sites are added at once, so that answers before the first tick contain
    /// them.
    pub(super) fn new(config: &Config, sites: &Sites, log: &Log) -> Option<Self> {
        let folder: Option<PathBuf> = sites.state.directory.as_ref().map(|state| state.path().to_owned());
        let now = seconds(SystemTime::now());
        let board = Arc::new(Board::new(config.board?, folder.as_deref(), now));
        let is_due = board.add(now, sites.board_moments(now));
        Some(Self { board, ticks: ticks(TICK), is_due, writing: None, problem: None, log: log.clone() })
    }

    /// Collects the counts, and starts to write them if that is due. Does not wait.
    pub(super) async fn tick(&mut self, sites: &Sites) {
        let now = seconds(SystemTime::now());
        self.is_due |= self.board.add(now, sites.board_moments(now));
        if let Some(writing) = self.writing.take_if(|writing| writing.is_finished()) {
            self.report(writing.await.unwrap_or_else(|error| Err(format!("the board was not written: {error}"))));
        }
        // While a write hangs, no other is started.
        if self.is_due && self.writing.is_none() {
            self.is_due = false;
            let board = Arc::clone(&self.board);
            self.writing = Some(tokio::task::spawn_blocking(move || board.write(now)));
        }
    }

    /// Writes the counts so far, before another process may write. After that nothing is written
    /// until a tick or the end. The files are read and written again each time, so later counts are
    /// added to those of the other process.
    pub(super) fn hand_over(&mut self, sites: &Sites) -> impl Future<Output = Result<(), String>> + Send + 'static {
        let now = seconds(SystemTime::now());
        self.board.add(now, sites.board_moments(now));
        let (before, board) = (self.writing.take(), Arc::clone(&self.board));
        async move {
            if let Some(before) = before {
                let _ = before.await;
            }
            let written = tokio::task::spawn_blocking(move || board.write(now)).await;
            written.unwrap_or_else(|error| Err(format!("the board was not written: {error}")))
        }
    }

    /// Writes the last counts at the end of the process.
    pub(super) async fn finish(mut self, sites: &Sites) {
        // A write in progress stops after its current file.
        self.board.end();
        let written = timeout(LAST, self.hand_over(sites)).await;
        self.report(written.unwrap_or_else(|_| Err("the board could not be written in time".to_owned())));
    }

    fn report(&mut self, outcome: Result<(), String>) {
        let problem = outcome.err();
        if let Some(new) = problem.as_ref().filter(|new| self.problem.as_ref() != Some(new)) {
            self.log.say_at(LogLevel::Warn, LogEvent::State, new);
        }
        if problem.is_none() && self.problem.is_some() {
            self.log.say_at(LogLevel::Info, LogEvent::State, "the board is written again");
        }
        self.problem = problem;
    }
}

/// Returns ticks with at least this interval, even if one is late.
pub(super) fn ticks(every: Duration) -> Interval {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Waits for the next tick; forever if there are no ticks.
pub(super) async fn next_tick(ticks: Option<&mut Interval>) {
    match ticks {
        Some(ticks) => drop(ticks.tick().await),
        None => std::future::pending().await,
    }
}
