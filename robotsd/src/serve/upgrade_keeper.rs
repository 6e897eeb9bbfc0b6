//! Controls an upgrade in place, in the old process.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::OwnedRwLockWriteGuard;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;
use tower_robots::live::StateDir;

use super::board_keeper::BoardKeeper;
use super::reconfigure::ActiveConfig;
use super::upgrade::{Successor, SuccessorEvent};
use crate::admin::{Phase, UpgradeWaiter};
use crate::date;
use crate::log::{LogEvent, LogLevel};
use crate::report::UpgradeReport;

/// Maximum time for each step of releasing resources: waiting for the end of an operator's change,
/// writing the counts of the board, and writing the state directory.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// Lock that is held during an upgrade, so that operators cannot make changes.
type ChangesLock = OwnedRwLockWriteGuard<()>;

#[derive(Debug, Default)]
pub(super) struct UpgradeKeeper {
    under_way: Option<UpgradeUnderWay>,
    /// Requests for an upgrade that arrived while a new config was being prepared; the requests
    /// wait until the config is ready.
    postponed: Vec<Option<UpgradeWaiter>>,
    /// ID of the process that has replaced this process and now serves.
    pub(super) successor: Option<u32>,
    /// Task that takes the released resources back after this process abandoned an upgrade.
    taking_back: Option<JoinHandle<()>>,
}

#[derive(Debug)]
pub(super) enum AfterStep {
    Nothing,
    /// The new process with this ID serves, so this process must drain. The string is the new
    /// process's summary.
    Leave(u32, String),
    /// The upgrade has failed, and a reload that was requested during the upgrade must be done now.
    Reload,
}

#[derive(Debug)]
struct UpgradeUnderWay {
    successor: Successor,
    stage: UpgradeStage,
    waiter: Option<UpgradeWaiter>,
    /// Whether a reload was requested during the upgrade. The process that serves afterwards
    /// performs the reload, because the new process may have read the files before the request.
    is_reload_due: bool,
}

#[derive(Debug)]
enum UpgradeStage {
    Preparing,
    HandingOver(JoinHandle<Result<ChangesLock, String>>),
    /// The new process is opening its sites and listeners.
    Opening(ChangesLock),
    /// The new process has failed for this reason, and this process is taking back the resources
    /// that it released. Operators' changes wait until the resources have been taken back.
    TakingBack(String, JoinHandle<Result<(), String>>, Option<ChangesLock>),
}

#[derive(Debug)]
pub(super) enum UpgradeStep {
    Successor(SuccessorEvent),
    HandedOver(Result<ChangesLock, String>),
    TakenBack(String, Result<(), String>),
}

impl UpgradeUnderWay {
    async fn next(&mut self) -> UpgradeStep {
        let panicked = |error| format!("robotsd failed with an internal error: {error}");
        match &mut self.stage {
            UpgradeStage::Preparing | UpgradeStage::Opening(_) => UpgradeStep::Successor(self.successor.next().await),
            UpgradeStage::HandingOver(handing) => {
                UpgradeStep::HandedOver(handing.await.unwrap_or_else(|error| Err(panicked(error))))
            }
            UpgradeStage::TakingBack(why, taking, _) => {
                let taken = taking.await.unwrap_or_else(|error| Err(panicked(error)));
                UpgradeStep::TakenBack(std::mem::take(why), taken)
            }
        }
    }
}

impl UpgradeKeeper {
    /// Waits for the next step of the upgrade, or forever if no upgrade is in progress.
    pub(super) async fn next(&mut self) -> UpgradeStep {
        match &mut self.under_way {
            Some(upgrade) => upgrade.next().await,
            None => std::future::pending().await,
        }
    }

    /// Reports whether an upgrade is in progress. During an upgrade, this process must not open or
    /// close sites and listeners.
    pub(super) const fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// Reports whether a reload must wait for the end of an upgrade. If a reload must wait, records
    /// that it is due.
    pub(super) fn postpone_reload(&mut self) -> bool {
        if let Some(upgrade) = &mut self.under_way {
            upgrade.is_reload_due = true;
        }
        self.under_way.is_some()
    }

    pub(super) fn begin(&mut self, active: &ActiveConfig, waiter: Option<UpgradeWaiter>) {
        if self.under_way.is_none() && active.is_changing() {
            return self.postponed.push(waiter);
        }
        let is_serving = active.state.phase() == Phase::Serving;
        let refused = match (&self.under_way, self.successor) {
            (Some(UpgradeUnderWay { successor, .. }), _) => {
                Some(format!("an upgrade to process {process} is already in progress", process = successor.id()))
            }
            (None, Some(process)) => Some(format!("process {process} has replaced this process: try again")),
            (None, None) if !is_serving => Some("this process is ending".to_owned()),
            (None, None) => None,
        };
        let started = match refused {
            Some(why) => Err(why),
            None => active.start_successor().map_err(|why| format!("{why}; this process continues")),
        };
        match started {
            Ok(successor) => {
                let message =
                    format!("process {process} was started to replace this process", process = successor.id());
                active.log.write_message(LogEvent::Upgrade, message.clone());
                active.state.note_upgrade(report("under-way", Some(successor.id()), &message));
                let stage = UpgradeStage::Preparing;
                self.under_way = Some(UpgradeUnderWay { successor, stage, waiter, is_reload_due: false });
            }
            Err(why) => {
                let message = format!("no upgrade: {why}");
                active.log.write_message_at(LogLevel::Error, LogEvent::Upgrade, message.clone());
                let report = report("failed", None, &message);
                // The report about this request must not replace the report about an upgrade that
                // is in progress or complete.
                if self.under_way.is_none() && is_serving {
                    active.state.note_upgrade(report.clone());
                }
                answer(waiter, report);
            }
        }
    }

    pub(super) fn resume(&mut self, active: &ActiveConfig) {
        if !active.is_changing() {
            std::mem::take(&mut self.postponed).into_iter().for_each(|waiter| self.begin(active, waiter));
        }
    }

    pub(super) fn step(
        &mut self,
        step: UpgradeStep,
        active: &mut ActiveConfig,
        board: Option<&mut BoardKeeper>,
    ) -> AfterStep {
        let Some(mut upgrade) = self.under_way.take() else { return AfterStep::Nothing };
        match step {
            UpgradeStep::Successor(SuccessorEvent::Prepared) => {
                // From now on, operators' requests wait until one of the two processes has taken
                // over.
                active.admin.pause();
                upgrade.stage = UpgradeStage::HandingOver(hand_over(active, board));
            }
            UpgradeStep::HandedOver(Ok(held)) => {
                upgrade.successor.take();
                upgrade.stage = UpgradeStage::Opening(held);
            }
            UpgradeStep::Successor(SuccessorEvent::Serves(summary)) => {
                let process = upgrade.successor.id();
                self.successor = Some(process);
                succeed(upgrade, &summary, active);
                return AfterStep::Leave(process, summary);
            }
            UpgradeStep::Successor(SuccessorEvent::Failed(why)) | UpgradeStep::HandedOver(Err(why)) => {
                upgrade.successor.stop();
                let held = match std::mem::replace(&mut upgrade.stage, UpgradeStage::Preparing) {
                    UpgradeStage::Opening(held) => Some(held),
                    _ => None,
                };
                let state = active.sites.state.directory.clone();
                upgrade.stage = UpgradeStage::TakingBack(why, spawn_blocking(move || take_back(state)), held);
            }
            UpgradeStep::TakenBack(why, taken) => return continue_serving(upgrade, &why, taken, active),
        }
        self.under_way = Some(upgrade);
        AfterStep::Nothing
    }

    /// Kills the new process, because this process is ending. [`Self::finish`] waits until the
    /// released resources have been taken back.
    pub(super) fn abandon(&mut self, active: &mut ActiveConfig) {
        let Some(UpgradeUnderWay { mut successor, stage, waiter, .. }) = self.under_way.take() else { return };
        successor.stop();
        let state = active.sites.state.directory.clone();
        let log = active.log.clone();
        self.taking_back = Some(tokio::spawn(async move {
            let taken = match stage {
                UpgradeStage::TakingBack(_, taking, _held) => taking.await,
                UpgradeStage::HandingOver(handing) => {
                    // The resources cannot be taken back before they have been released.
                    let _held = handing.await;
                    spawn_blocking(move || take_back(state)).await
                }
                UpgradeStage::Opening(_held) => spawn_blocking(move || take_back(state)).await,
                UpgradeStage::Preparing => return,
            };
            if let Err(problem) =
                taken.unwrap_or_else(|error| Err(format!("robotsd failed with an internal error: {error}")))
            {
                log.write_message_at(LogLevel::Error, LogEvent::State, problem);
            }
        }));
        active.resume_admin();
        let message = "the upgrade was abandoned, because this process is ending";
        active.log.write_message_at(LogLevel::Error, LogEvent::Upgrade, message);
        answer(waiter, report("failed", Some(successor.id()), message));
    }

    /// Waits, for a limited time, until the resources of an abandoned upgrade have been taken back,
    /// because this process must still write its unsaved changes to the state directory.
    pub(super) async fn finish(&mut self) {
        if let Some(taking_back) = self.taking_back.take() {
            let _ = timeout(4 * RELEASE_TIMEOUT, taking_back).await;
        }
    }
}

fn succeed(upgrade: UpgradeUnderWay, summary: &str, active: &mut ActiveConfig) {
    if upgrade.is_reload_due {
        upgrade.successor.reload();
    }
    let process = upgrade.successor.id();
    let message = format!("process {process} has replaced this process: {summary}");
    active.log.write_message(LogEvent::Upgrade, message.clone());
    let report = report("done", Some(process), &message);
    active.state.note_upgrade(report.clone());
    answer(upgrade.waiter, report);
    // The successor is recorded before the lock is released, so that changes that wait for the lock
    // are refused.
    active.leave_to_successor();
}

fn continue_serving(
    upgrade: UpgradeUnderWay,
    why: &str,
    taken: Result<(), String>,
    active: &mut ActiveConfig,
) -> AfterStep {
    let process = upgrade.successor.id();
    let problem = taken.err().map(|problem| format!("{problem}; ")).unwrap_or_default();
    let message = format!(
        "the upgrade failed, because process {process} did not take over ({why}); {problem}this process continues to \
         serve"
    );
    active.log.write_message_at(LogLevel::Error, LogEvent::Upgrade, message.clone());
    let report = report("failed", Some(process), &message);
    active.state.note_upgrade(report.clone());
    answer(upgrade.waiter, report);
    active.resume_admin();
    if upgrade.is_reload_due { AfterStep::Reload } else { AfterStep::Nothing }
}

fn hand_over(active: &ActiveConfig, board: Option<&mut BoardKeeper>) -> JoinHandle<Result<ChangesLock, String>> {
    let changes = Arc::clone(&active.state.changes);
    let state = active.sites.state.directory.clone();
    let board = board.map(|board| board.hand_over(&active.sites));
    tokio::spawn(async move {
        let held = timeout(RELEASE_TIMEOUT, changes.write_owned()).await;
        let held = held.map_err(|_| "a change by an operator is in progress: try again in a moment".to_owned())?;
        if let Some(board) = board {
            timeout(RELEASE_TIMEOUT, board)
                .await
                .unwrap_or_else(|_| Err("the counts of the board could not be written in time".to_owned()))?;
        }
        if let Some(state) = state {
            let handed = spawn_blocking(move || state.hand_over(RELEASE_TIMEOUT)).await;
            if !handed.map_err(|error| format!("robotsd failed with an internal error: {error}"))? {
                let why = "the live versions cannot be written to the state directory, so the new process would not \
                    know them: `robotsd status` shows the cause";
                return Err(why.to_owned());
            }
        }
        Ok(held)
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

fn answer(waiter: Option<UpgradeWaiter>, report: UpgradeReport) {
    if let Some(waiter) = waiter {
        // Sending fails if the client has disconnected.
        let _ = waiter.send(report);
    }
}
