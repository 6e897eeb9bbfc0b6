//! Keeps the board: takes what workers counted once a second, and has it written on a blocking thread once a minute, or
//! after half of one where that failed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

use crate::board::{Board, seconds};
use crate::config::Config;
use crate::log::{Log, LogEvent, LogLevel};
use crate::sites::Sites;

/// How often workers are checked.
const TICK: Duration = Duration::from_secs(1);

/// How long the end waits for the files: a file system may hang.
const LAST: Duration = Duration::from_secs(5);

/// The board, its clock, and the write under way.
pub(super) struct BoardKeeper {
    pub(super) board: Arc<Board>,
    pub(super) ticks: Interval,
    /// Whether something is to be written.
    is_due: bool,
    writing: Option<JoinHandle<Result<(), String>>>,
    /// The trouble that was logged last, so that it is logged once.
    trouble: Option<String>,
    log: Log,
}

impl BoardKeeper {
    /// `None` if the config wants no board. Its files are below the state directory, if that is open. The board knows the sites, so an
    /// answer before the first tick has them too.
    pub(super) fn new(config: &Config, sites: &Sites, log: &Log) -> Option<Self> {
        let folder: Option<PathBuf> = sites.state.directory.as_ref().map(|state| state.path().to_owned());
        let now = seconds(SystemTime::now());
        let board = Arc::new(Board::new(config.board?, folder.as_deref(), now));
        let is_due = board.add(now, sites.board_moments(now));
        Some(Self { board, ticks: ticks(TICK), is_due, writing: None, trouble: None, log: log.clone() })
    }

    /// Takes what was counted, and begins to write it where that is due. Waits for nothing.
    pub(super) async fn tick(&mut self, sites: &Sites) {
        let now = seconds(SystemTime::now());
        self.is_due |= self.board.add(now, sites.board_moments(now));
        if let Some(writing) = self.writing.take_if(|writing| writing.is_finished()) {
            self.report(writing.await.unwrap_or_else(|error| Err(format!("the board was not written: {error}"))));
        }
        // A write that hangs is not begun again.
        if self.is_due && self.writing.is_none() {
            self.is_due = false;
            let board = Arc::clone(&self.board);
            self.writing = Some(tokio::task::spawn_blocking(move || board.write(now)));
        }
    }

    /// Has what was counted until now written, before another process may write; from then on nothing is, until a tick or the end.
    /// The files are read and written anew each time, so what is counted later is added to what the other has.
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

    /// Writes what was counted last, at the end of the process.
    pub(super) async fn finish(mut self, sites: &Sites) {
        // A write that is under way stops after the file it is at.
        self.board.end();
        let written = timeout(LAST, self.hand_over(sites)).await;
        self.report(written.unwrap_or_else(|_| Err("the board could not be written in time".to_owned())));
    }

    fn report(&mut self, outcome: Result<(), String>) {
        let trouble = outcome.err();
        if let Some(new) = trouble.as_ref().filter(|new| self.trouble.as_ref() != Some(new)) {
            self.log.say_at(LogLevel::Warn, LogEvent::State, new);
        }
        if trouble.is_none() && self.trouble.is_some() {
            self.log.say_at(LogLevel::Info, LogEvent::State, "the board is written again");
        }
        self.trouble = trouble;
    }
}

/// Ticks that come so far apart at least, however late one is.
pub(super) fn ticks(every: Duration) -> Interval {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// The next tick; never, where there are none.
pub(super) async fn next_tick(ticks: Option<&mut Interval>) {
    match ticks {
        Some(ticks) => drop(ticks.tick().await),
        None => std::future::pending().await,
    }
}
