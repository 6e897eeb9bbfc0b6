//! An upgrade in place, as the process before goes through it.

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

/// How long changes by operators, the board and the state directory may each hold an upgrade up.
const HOLD_UP: Duration = Duration::from_secs(5);

/// What is held so that no operator changes what the new process has read.
type ChangesHeld = OwnedRwLockWriteGuard<()>;

/// The upgrade that is under way, if one is.
#[derive(Debug, Default)]
pub(super) struct UpgradeKeeper {
    under_way: Option<UpgradeUnderWay>,
    /// Requests that wait until the config has been read that is being read.
    put_off: Vec<Option<UpgradeWaiter>>,
    /// Another process serves and writes.
    has_successor: bool,
    /// What an upgrade that was abandoned gave up is being taken back.
    taking_back: Option<JoinHandle<()>>,
}

/// What the control loop has to do after a step.
#[derive(Debug)]
pub(super) enum AfterStep {
    Nothing,
    /// The process of this number serves this.
    Leave(u32, String),
    /// Everything is to be read again, which was put off.
    Reload,
}

#[derive(Debug)]
struct UpgradeUnderWay {
    successor: Successor,
    stage: UpgradeStage,
    waiter: Option<UpgradeWaiter>,
    /// Something was to be read again meanwhile: by this process if it fails, else by the new one, which may have read it before.
    is_reload_due: bool,
}

#[derive(Debug)]
enum UpgradeStage {
    /// The new process reads its config.
    Preparing,
    /// What only one process may have is being given up.
    HandingOver(JoinHandle<Result<ChangesHeld, String>>),
    /// The new process opens everything.
    Opening(ChangesHeld),
    /// It has failed, for this reason, and what was given up is being taken back. Nobody changes anything until then.
    TakingBack(String, JoinHandle<Result<(), String>>, Option<ChangesHeld>),
}

/// What comes next.
#[derive(Debug)]
pub(super) enum UpgradeStep {
    Successor(SuccessorEvent),
    HandedOver(Result<ChangesHeld, String>),
    TakenBack(String, Result<(), String>),
}

impl UpgradeUnderWay {
    async fn next(&mut self) -> UpgradeStep {
        let panicked = |error| format!("a fault of robotsd: {error}");
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
    /// The next step of an upgrade; never, where there is none.
    pub(super) async fn next(&mut self) -> UpgradeStep {
        match &mut self.under_way {
            Some(upgrade) => upgrade.next().await,
            None => std::future::pending().await,
        }
    }

    /// Whether another process may be about to open what this one has.
    pub(super) const fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// Whether another process serves and writes.
    pub(super) const fn has_successor(&self) -> bool {
        self.has_successor
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
        let started = match &self.under_way {
            Some(upgrade) => Err(format!("an upgrade is under way already, to process {}", upgrade.successor.id())),
            None if active.state.phase() != Phase::Serving => Err("this process is ending".to_owned()),
            None => active.start_successor(),
        };
        match started {
            Ok(successor) => {
                let message = format!("process {} is started to take the place of this one", successor.id());
                active.log.say(LogEvent::Upgrade, message.clone());
                active.state.upgrades().note(report("under-way", Some(successor.id()), &message));
                let stage = UpgradeStage::Preparing;
                self.under_way = Some(UpgradeUnderWay { successor, stage, waiter, is_reload_due: false });
            }
            Err(why) => {
                let message = format!("no upgrade: {why}; this process goes on");
                active.log.say_at(LogLevel::Error, LogEvent::Upgrade, message.clone());
                let report = report("failed", None, &message);
                if self.under_way.is_none() {
                    active.state.upgrades().note(report.clone());
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
        match step {
            UpgradeStep::Successor(SuccessorEvent::Prepared) => {
                // From here on operators ask whoever will be there.
                active.admin.pause();
                upgrade.stage = UpgradeStage::HandingOver(hand_over(active, board));
            }
            UpgradeStep::HandedOver(Ok(held)) => {
                upgrade.successor.take();
                upgrade.stage = UpgradeStage::Opening(held);
            }
            UpgradeStep::Successor(SuccessorEvent::Serves(summary)) => {
                self.has_successor = true;
                return succeed(upgrade, summary, active);
            }
            UpgradeStep::Successor(SuccessorEvent::Failed(why)) | UpgradeStep::HandedOver(Err(why)) => {
                upgrade.successor.stop();
                let held = match std::mem::replace(&mut upgrade.stage, UpgradeStage::Preparing) {
                    UpgradeStage::Opening(held) => Some(held),
                    _ => None,
                };
                upgrade.stage =
                    UpgradeStage::TakingBack(why, take_back(active.sites.state().directory().cloned()), held);
            }
            UpgradeStep::TakenBack(why, taken) => {
                active.admin.resume(&active.state, &active.log);
                let process = upgrade.successor.id();
                let trouble = taken.err().map(|trouble| format!("; {trouble}")).unwrap_or_default();
                let message = format!(
                    "process {process} does not take the place of this one: {why}; this process goes on{trouble}"
                );
                active.log.say_at(LogLevel::Error, LogEvent::Upgrade, message.clone());
                let report = report("failed", Some(process), &message);
                active.state.upgrades().note(report.clone());
                answer(upgrade.waiter, report);
                return if upgrade.is_reload_due { AfterStep::Reload } else { AfterStep::Nothing };
            }
        }
        self.under_way = Some(upgrade);
        AfterStep::Nothing
    }

    /// Ends the new process, because this one is to end too. [`Self::finish`] waits until what it was to have is taken back.
    pub(super) fn abandon(&mut self, active: &mut ActiveConfig) {
        let Some(UpgradeUnderWay { mut successor, stage, waiter, .. }) = self.under_way.take() else { return };
        successor.stop();
        let state = active.sites.state().directory().cloned();
        let log = active.log.clone();
        self.taking_back = Some(tokio::spawn(async move {
            let taken = match stage {
                UpgradeStage::TakingBack(_, taking, _held) => taking.await,
                UpgradeStage::HandingOver(handing) => {
                    // What is still being given up could not be taken back.
                    let _held = handing.await;
                    take_back(state).await
                }
                UpgradeStage::Preparing | UpgradeStage::Opening(_) => take_back(state).await,
            };
            if let Err(trouble) = taken.unwrap_or_else(|error| Err(format!("a fault of robotsd: {error}"))) {
                log.say_at(LogLevel::Error, LogEvent::State, trouble);
            }
        }));
        active.admin.resume(&active.state, &active.log);
        let message = "no upgrade: this process is ending";
        active.log.say_at(LogLevel::Error, LogEvent::Upgrade, message);
        answer(waiter, report("failed", Some(successor.id()), message));
    }

    /// Waits for what an abandoned upgrade gave up, within bounds: what is still to be written needs it.
    pub(super) async fn finish(&mut self) {
        if let Some(taking_back) = self.taking_back.take() {
            let _ = timeout(4 * HOLD_UP, taking_back).await;
        }
    }
}

/// The new process serves: this one says farewell.
fn succeed(upgrade: UpgradeUnderWay, summary: String, active: &mut ActiveConfig) -> AfterStep {
    let UpgradeUnderWay { successor, waiter, stage, is_reload_due } = upgrade;
    if is_reload_due {
        successor.reload();
    }
    let process = successor.id();
    let message = format!("process {process} has taken the place of this one: {summary}");
    active.log.say(LogEvent::Upgrade, message.clone());
    let report = report("done", Some(process), &message);
    active.state.upgrades().note(report.clone());
    answer(waiter, report);
    active.leave_to_successor();
    // Changes that waited are refused now.
    drop(stage);
    AfterStep::Leave(process, summary)
}

/// Gives up what only one process may have.
fn hand_over(active: &ActiveConfig, board: Option<&mut BoardKeeper>) -> JoinHandle<Result<ChangesHeld, String>> {
    let changes = active.state.changes();
    let state = active.sites.state().directory().cloned();
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

/// Takes back what was given up.
fn take_back(state: Option<StateDir>) -> JoinHandle<Result<(), String>> {
    let take = |state: StateDir| state.take_back().map_err(|error| error.to_string());
    spawn_blocking(move || state.map_or(Ok(()), take))
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
        // A client that has gone reads the log.
        let _ = waiter.send(report);
    }
}
