//! Keeps the [board](crate::board) up to date. The counts of the workers are collected every
//! second, and written on a blocking thread every minute. A failed write is repeated after half a
//! minute.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

use crate::board::{Board, seconds};
use crate::config::Config;
use crate::log::{Log, LogEvent, LogLevel};
use crate::sites::Sites;

const TICK: Duration = Duration::from_secs(1);

/// Maximum time that shutdown waits for the last write, because a file system may hang.
const LAST: Duration = Duration::from_secs(5);

pub(super) struct BoardKeeper {
    pub(super) board: Arc<Board>,
    pub(super) ticks: Interval,
    is_due: bool,
    writing: Option<JoinHandle<Result<(), String>>>,
    /// The last problem that was logged. A problem is not logged again while it lasts.
    problem: Option<String>,
    log: Log,
}

impl BoardKeeper {
    /// Creates the board; `None` if the config disables it. The files of the board are in the state
    /// directory, if there is one. The sites are added immediately, so that they appear on the
    /// board before the first tick.
    pub(super) fn new(config: &Config, sites: &Sites, log: &Log) -> Option<Self> {
        let folder: Option<PathBuf> = sites.state.directory.as_ref().map(|state| state.path().to_owned());
        let now = seconds(SystemTime::now());
        let board = Arc::new(Board::new(config.board?, folder.as_deref(), now));
        let is_due = board.add(now, sites.board_moments(now));
        Some(Self { board, ticks: ticks(TICK), is_due, writing: None, problem: None, log: log.clone() })
    }

    /// Collects the counts. If the board must be written, starts a write, but does not wait until
    /// it has ended.
    pub(super) async fn tick(&mut self, sites: &Sites) {
        let now = seconds(SystemTime::now());
        self.is_due |= self.board.add(now, sites.board_moments(now));
        if let Some(writing) = self.writing.take_if(|writing| writing.is_finished()) {
            self.report(writing.await.unwrap_or_else(|error| Err(format!("the board could not be written: {error}"))));
        }
        // No write is started while the previous write is in progress, even if the previous write
        // hangs.
        if self.is_due && self.writing.is_none() {
            self.is_due = false;
            let board = Arc::clone(&self.board);
            self.writing = Some(tokio::task::spawn_blocking(move || board.write(now)));
        }
    }

    /// Writes the current counts before another process takes over. Requests that this process
    /// counts later are not lost: before each write, this process reads the files again, and adds
    /// its counts to the counts of the other process.
    pub(super) fn hand_over(&mut self, sites: &Sites) -> impl Future<Output = Result<(), String>> + Send + 'static {
        let now = seconds(SystemTime::now());
        self.board.add(now, sites.board_moments(now));
        let (before, board) = (self.writing.take(), Arc::clone(&self.board));
        async move {
            if let Some(before) = before {
                let _ = before.await;
            }
            let written = tokio::task::spawn_blocking(move || board.write(now)).await;
            written.unwrap_or_else(|error| Err(format!("the board could not be written: {error}")))
        }
    }

    pub(super) async fn finish(mut self, sites: &Sites) {
        // After this call, a write that is in progress stops at the end of the file that it is
        // writing.
        self.board.end();
        let written = timeout(LAST, self.hand_over(sites)).await;
        self.report(written.unwrap_or_else(|_| Err("the counts of the board could not be written in time".to_owned())));
    }

    fn report(&mut self, outcome: Result<(), String>) {
        let problem = outcome.err();
        if let Some(new) = problem.as_ref().filter(|new| self.problem.as_ref() != Some(new)) {
            self.log.write_message_at(LogLevel::Warn, LogEvent::State, new);
        }
        if problem.is_none() && self.problem.is_some() {
            self.log.write_message_at(LogLevel::Info, LogEvent::State, "the board can be written again");
        }
        self.problem = problem;
    }
}

/// Returns a timer. After a late tick, the time to the next tick is still at least `every`.
pub(super) fn ticks(every: Duration) -> Interval {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Waits for the next tick. Without a timer, waits forever.
pub(super) async fn next_tick(ticks: Option<&mut Interval>) {
    match ticks {
        Some(ticks) => drop(ticks.tick().await),
        None => std::future::pending().await,
    }
}
