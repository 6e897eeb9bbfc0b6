//! An upgrade in place, as the process before goes through it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::OwnedRwLockWriteGuard;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, timeout, timeout_at};
use tower_robots::live::StateDir;

use super::board_keeper::BoardKeeper;
use super::reconfigure::ActiveConfig;
use super::upgrade::{SocketPlace, Successor, SuccessorEvent};
use crate::admin::{Phase, UpgradeWaiter};
use crate::date;
use crate::log::{LogEvent, LogLevel};
use crate::report::UpgradeReport;
use crate::sites::Renewal;

/// How long changes by operators, the board and the state directory may each hold an upgrade up.
const HOLD_UP: Duration = Duration::from_secs(5);

/// For how long the new process is watched although no connection is left here: a fault in it mostly shows soon. No longer than a drain
/// may take.
const WATCH: Duration = Duration::from_secs(5);

/// The lock that keeps operators from changing what the new process has read.
type ChangesHeld = OwnedRwLockWriteGuard<()>;

/// The sites as they stand in the state directory that is taken back; none where no other process had it.
type TakenBack = Result<Option<Box<Renewal>>, String>;

/// The upgrade that is under way, if one is.
#[derive(Debug, Default)]
pub(super) struct UpgradeKeeper {
    under_way: Option<UpgradeUnderWay>,
    /// Requests that wait until the config has been read that is being read.
    put_off: Vec<Option<UpgradeWaiter>>,
    /// Another process serves and writes.
    pub(super) has_successor: bool,
    /// The resources that an abandoned upgrade gave up are being taken back.
    taking_back: Option<JoinHandle<()>>,
}

/// The task of the control loop after a step.
#[derive(Debug)]
pub(super) enum AfterStep {
    Nothing,
    /// The process of this number serves this.
    Leave(u32, String),
    /// That process has ended, and this one is about to serve again.
    Follow(String),
    /// This process serves as before; everything is to be read again where that was put off.
    GoOn {
        is_reload_due: bool,
    },
}

#[derive(Debug)]
struct UpgradeUnderWay {
    successor: Successor,
    stage: UpgradeStage,
    waiter: Option<UpgradeWaiter>,
    /// Something was to be read again meanwhile: by this process if the new one fails, else by that, which may have read it before.
    is_reload_due: bool,
}

#[derive(Debug)]
enum UpgradeStage {
    /// The new process reads its config.
    Preparing,
    /// The resources that only one process may have are being given up.
    HandingOver(JoinHandle<Result<ChangesHeld, String>>),
    /// The new process opens everything.
    Opening(ChangesHeld),
    /// The new process serves, and this one drains: until its last connection is closed, and until this moment at least.
    Watching { until: Instant, is_drained: bool },
    /// The new process has ended, for this reason, and the resources that were given up are being taken back. Nobody changes anything until
    /// then.
    TakingBack(String, JoinHandle<TakenBack>, Option<ChangesHeld>),
}

/// The next step.
#[derive(Debug)]
pub(super) enum UpgradeStep {
    Successor(SuccessorEvent),
    HandedOver(Result<ChangesHeld, String>),
    /// The new process was watched for long enough.
    Watched,
    TakenBack(String, TakenBack),
}

impl UpgradeUnderWay {
    async fn next(&mut self) -> UpgradeStep {
        let panicked = |error| format!("a fault of robotsd: {error}");
        match &mut self.stage {
            UpgradeStage::Watching { until, is_drained: true } => {
                let event = timeout_at(*until, self.successor.next()).await;
                event.map_or(UpgradeStep::Watched, UpgradeStep::Successor)
            }
            UpgradeStage::Preparing | UpgradeStage::Opening(_) | UpgradeStage::Watching { .. } => {
                UpgradeStep::Successor(self.successor.next().await)
            }
            UpgradeStage::HandingOver(handing) => {
                UpgradeStep::HandedOver(handing.await.unwrap_or_else(|error| Err(panicked(error))))
            }
            UpgradeStage::TakingBack(why, taking, _) => {
                let taken = taking.await.unwrap_or_else(|error| Err(panicked(error)));
                UpgradeStep::TakenBack(std::mem::take(why), taken)
            }
        }
    }

    const fn is_watched(&self) -> bool {
        matches!(self.stage, UpgradeStage::Watching { .. })
    }
}

impl UpgradeKeeper {
    /// The next step of an upgrade; never, where there is none.
    pub(super) async fn next(&mut self) -> UpgradeStep {
        match &mut self.under_way {
            Some(upgrade) => upgrade.next().await,
            None => std::future::pending().await,
        }
    }

    /// Whether another process may be about to open what this one has, or the other way round.
    pub(super) const fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// No connection is left.
    pub(super) fn is_drained(&mut self) {
        if let Some(UpgradeStage::Watching { is_drained, .. }) =
            self.under_way.as_mut().map(|upgrade| &mut upgrade.stage)
        {
            *is_drained = true;
        }
    }

    /// Whether what is to be read again has to wait, until it is known which process reads it.
    pub(super) fn puts_reload_off(&mut self) -> bool {
        if let Some(upgrade) = &mut self.under_way {
            upgrade.is_reload_due = true;
        }
        self.under_way.is_some()
    }

    /// Starts a new process that is to take the place of this one; a waiter gets the outcome.
    pub(super) fn begin(&mut self, active: &ActiveConfig, waiter: Option<UpgradeWaiter>) {
        if self.under_way.is_none() && active.is_changing() {
            return self.put_off.push(waiter);
        }
        let is_serving = active.state.phase() == Phase::Serving;
        let refused = match &self.under_way {
            Some(UpgradeUnderWay { successor, .. }) if !is_serving => {
                Some(format!("process {} has taken the place of this one: ask again", successor.id()))
            }
            Some(UpgradeUnderWay { successor, .. }) => {
                Some(format!("an upgrade is under way already, to process {}; this process goes on", successor.id()))
            }
            None if !is_serving => Some("this process is ending".to_owned()),
            None => None,
        };
        let started = match refused {
            Some(why) => Err(why),
            None => active.start_successor().map_err(|why| format!("{why}; this process goes on")),
        };
        match started {
            Ok(successor) => {
                let message = format!("process {} is started to take the place of this one", successor.id());
                active.log.say(LogEvent::Upgrade, message.clone());
                note(active, report("under-way", Some(successor.id()), &message));
                let stage = UpgradeStage::Preparing;
                self.under_way = Some(UpgradeUnderWay { successor, stage, waiter, is_reload_due: false });
            }
            Err(why) => {
                let message = format!("no upgrade: {why}");
                active.log.say_at(LogLevel::Error, LogEvent::Upgrade, message.clone());
                let report = report("failed", None, &message);
                // The report of the upgrade that is under way, or done, stays.
                if self.under_way.is_none() && is_serving {
                    note(active, report.clone());
                }
                answer(waiter, report);
            }
        }
    }

    /// Begins what was put off, once no config is being read.
    pub(super) fn resume(&mut self, active: &ActiveConfig) {
        if !active.is_changing() {
            std::mem::take(&mut self.put_off).into_iter().for_each(|waiter| self.begin(active, waiter));
        }
    }

    pub(super) fn step(
        &mut self,
        step: UpgradeStep,
        active: &mut ActiveConfig,
        board: Option<&mut BoardKeeper>,
    ) -> AfterStep {
        let Some(mut upgrade) = self.under_way.take() else { return AfterStep::Nothing };
        let mut after = AfterStep::Nothing;
        match step {
            UpgradeStep::Successor(SuccessorEvent::Prepared) => {
                // From here on operators ask the process that remains.
                active.admin.pause();
                upgrade.stage = UpgradeStage::HandingOver(hand_over(active, board));
            }
            UpgradeStep::HandedOver(Ok(held)) => {
                upgrade.successor.take();
                upgrade.stage = UpgradeStage::Opening(held);
            }
            UpgradeStep::Successor(SuccessorEvent::Serves { summary, unused }) => {
                self.has_successor = true;
                let process = upgrade.successor.id();
                succeed(&mut upgrade, &summary, active, unused.as_deref().unwrap_or_default());
                after = AfterStep::Leave(process, summary);
                if unused.is_none() {
                    active.let_go_of_all();
                    return after;
                }
            }
            UpgradeStep::Watched | UpgradeStep::Successor(SuccessorEvent::Leaves) => {
                active.let_go_of_all();
                return after;
            }
            UpgradeStep::Successor(SuccessorEvent::Failed(why)) | UpgradeStep::HandedOver(Err(why)) => {
                upgrade.successor.stop();
                if upgrade.is_watched() {
                    let process = upgrade.successor.id();
                    after = AfterStep::Follow(format!("process {process} has ended: {why}; this process follows it"));
                }
                let (taking, held) = match std::mem::replace(&mut upgrade.stage, UpgradeStage::Preparing) {
                    UpgradeStage::Opening(held) => (take_back_sites(active), Some(held)),
                    UpgradeStage::Watching { .. } => (take_back_sites(active), None),
                    _ => (take_back_state(active), None),
                };
                upgrade.stage = UpgradeStage::TakingBack(why, taking, held);
            }
            UpgradeStep::TakenBack(why, taken) => return self.take_back(upgrade, &why, taken, active),
        }
        self.under_way = Some(upgrade);
        after
    }

    /// This process goes on, or serves again.
    fn take_back(
        &mut self,
        upgrade: UpgradeUnderWay,
        why: &str,
        taken: TakenBack,
        active: &mut ActiveConfig,
    ) -> AfterStep {
        let process = upgrade.successor.id();
        let has_served = std::mem::take(&mut self.has_successor);
        let serves = taken.and_then(|renewal| renewal.map_or(Ok(()), |renewal| active.take_back(*renewal)));
        // If something could not be taken back while it served, it serves all the same.
        let goes_on = !has_served || active.state.phase() == Phase::Serving;
        let trouble = serves.err().map(|trouble| format!("{trouble}; ")).unwrap_or_default();
        let message = match (has_served, goes_on) {
            (false, _) => {
                format!("process {process} does not take the place of this one: {why}; {trouble}this process goes on")
            }
            (true, true) => format!(
                "process {process}, which had taken the place of this one, has ended: {why}; {trouble}this process serves again"
            ),
            (true, false) => format!(
                "process {process}, which had taken the place of this one, has ended: {why}; {trouble}this process does not \
                 serve again"
            ),
        };
        active.log.say_at(LogLevel::Error, LogEvent::Upgrade, message.clone());
        let report = report("failed", Some(process), &message);
        note(active, report.clone());
        answer(upgrade.waiter, report);
        if !goes_on {
            self.has_successor = true;
            active.let_go_of_all();
            return AfterStep::Nothing;
        }
        active.admin.resume();
        AfterStep::GoOn { is_reload_due: upgrade.is_reload_due }
    }

    /// Ends the new process, because this one is to end too; one that serves goes on, and is watched no more. [`Self::finish`] waits until
    /// the resources it was to have are taken back.
    pub(super) fn abandon(&mut self, active: &mut ActiveConfig) {
        let Some(upgrade) = self.under_way.take() else { return };
        if upgrade.is_watched() {
            return active.let_go_of_all();
        }
        let UpgradeUnderWay { mut successor, stage, waiter, .. } = upgrade;
        successor.stop();
        let state = active.sites.state.directory.clone();
        let log = active.log.clone();
        self.taking_back = Some(tokio::spawn(async move {
            let taken = match stage {
                UpgradeStage::TakingBack(_, taking, _held) => taking.await.map(|taken| taken.map(drop)),
                UpgradeStage::HandingOver(handing) => {
                    // A resource that is still being given up could not be taken back.
                    let _held = handing.await;
                    spawn_blocking(move || take_back(state)).await
                }
                UpgradeStage::Opening(_held) => spawn_blocking(move || take_back(state)).await,
                UpgradeStage::Preparing | UpgradeStage::Watching { .. } => return,
            };
            if let Err(trouble) = taken.unwrap_or_else(|error| Err(format!("a fault of robotsd: {error}"))) {
                log.say_at(LogLevel::Error, LogEvent::State, trouble);
            }
        }));
        if self.has_successor {
            return active.let_go_of_all();
        }
        active.admin.resume();
        let message = "no upgrade: this process is ending";
        active.log.say_at(LogLevel::Error, LogEvent::Upgrade, message);
        answer(waiter, report("failed", Some(successor.id()), message));
    }

    /// Waits for the resources that an abandoned upgrade gave up, within bounds: pending writes need them.
    pub(super) async fn finish(&mut self) {
        if let Some(taking_back) = self.taking_back.take() {
            let _ = timeout(4 * HOLD_UP, taking_back).await;
        }
    }
}

/// The new process serves: this one says farewell, and watches.
fn succeed(upgrade: &mut UpgradeUnderWay, summary: &str, active: &mut ActiveConfig, unused: &[SocketPlace]) {
    if std::mem::take(&mut upgrade.is_reload_due) {
        upgrade.successor.reload();
    }
    let process = upgrade.successor.id();
    let message = format!("process {process} has taken the place of this one: {summary}");
    active.log.say(LogEvent::Upgrade, message.clone());
    let report = report("done", Some(process), &message);
    note(active, report.clone());
    answer(upgrade.waiter.take(), report);
    active.leave_to_successor(unused);
    let until = Instant::now() + WATCH.min(active.config.edge.drain);
    // Changes that waited are refused now.
    upgrade.stage = UpgradeStage::Watching { until, is_drained: false };
}

/// Gives up what only one process may have.
fn hand_over(active: &ActiveConfig, board: Option<&mut BoardKeeper>) -> JoinHandle<Result<ChangesHeld, String>> {
    let changes = Arc::clone(&active.state.changes);
    let state = active.sites.state.directory.clone();
    let board = board.map(|board| board.hand_over(&active.sites));
    tokio::spawn(async move {
        let held = timeout(HOLD_UP, changes.write_owned()).await;
        let held = held.map_err(|_| "a change by an operator is being made: ask again in a moment".to_owned())?;
        if let Some(board) = board {
            timeout(HOLD_UP, board)
                .await
                .unwrap_or_else(|_| Err("the board could not be written in time".to_owned()))?;
        }
        if let Some(state) = state {
            let handed = spawn_blocking(move || state.hand_over(HOLD_UP)).await;
            if !handed.map_err(|error| format!("a fault of robotsd: {error}"))? {
                let why = "what is live cannot be written to the state directory, and the new process would not know it: see the \
                           troubles in robotsd status";
                return Err(why.to_owned());
            }
        }
        Ok(held)
    })
}

/// Takes back what the new process has not had.
fn take_back_state(active: &ActiveConfig) -> JoinHandle<TakenBack> {
    let state = active.sites.state.directory.clone();
    spawn_blocking(move || take_back(state).map(|()| None))
}

/// Takes back what the new process may have written since.
fn take_back_sites(active: &ActiveConfig) -> JoinHandle<TakenBack> {
    let (sites, config) = (Arc::clone(&active.sites), Arc::clone(&active.config));
    spawn_blocking(move || {
        let renewal = sites.take_back(&config)?;
        renewal.apply_settings(&sites);
        Ok(Some(Box::new(renewal)))
    })
}

fn take_back(state: Option<StateDir>) -> Result<(), String> {
    state.map_or(Ok(()), |state| state.take_back().map_err(|error| error.to_string()))
}

fn report(state: &str, process: Option<u32>, message: &str) -> UpgradeReport {
    UpgradeReport {
        state: state.to_owned(),
        at: date::rfc3339(SystemTime::now()),
        process,
        message: message.to_owned(),
    }
}

/// Notes the report of the last upgrade.
fn note(active: &ActiveConfig, report: UpgradeReport) {
    *active.state.last_upgrade.lock() = Some(report);
}

fn answer(waiter: Option<UpgradeWaiter>, report: UpgradeReport) {
    if let Some(waiter) = waiter {
        // A client that has gone reads the log.
        let _ = waiter.send(report);
    }
}
