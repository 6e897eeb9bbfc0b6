//! What is remembered and told of what a reload came to.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::enforcement::Enforcement;
use super::handle::Shared;
use super::history::{HistoryEntry, bounded};
use super::publish::{Making, Settings};
use super::reload::{Cause, Reload, ReloadOutcome, ReloadOutcomeKind};
use super::snapshot::Snapshot;
use crate::check::{self, DiffOptions, Severity, diff};
use crate::rules::RobotsTxt;

/// Octets of two versions together up to which their difference is summed up for the history: it takes a second for two
/// files of 350 KiB full of wildcards.
const MOST_COMPARED: usize = 128 << 10;

impl Settings {
    pub(super) fn tell(&self, reload: &Reload, snapshot: &Snapshot) {
        #[cfg(feature = "tracing")]
        match &reload.outcome {
            ReloadOutcome::Kept { .. } | ReloadOutcome::Gated { .. } => {
                tracing::warn!(cause = reload.cause.as_str(), "{reload}")
            }
            ReloadOutcome::Published { .. } | ReloadOutcome::Unchanged { .. } | ReloadOutcome::Absent { .. } => {
                tracing::info!(cause = reload.cause.as_str(), "{reload}")
            }
        }
        for listener in &self.listeners {
            // A listener's panic must end neither the watching nor the others' hearing; the panic hook has told of it.
            let _ = catch_unwind(AssertUnwindSafe(|| listener(reload, snapshot)));
        }
    }
}

impl Shared {
    /// Remembers what came of it and tells of it, if it is news.
    pub(super) fn conclude(&self, making: &mut Making, reload: &Reload, before: Option<RobotsTxt>) {
        if let (Some(state), Cause::Request) = (&self.state, reload.cause) {
            state.retry();
        }
        if is_news(&self.past().last.outcome, reload) {
            self.remember(making, reload, before);
            self.settings.tell(reload, &self.current.load_full());
        } else {
            self.note(making, reload);
            self.save(making);
        }
    }

    pub(super) fn remember(&self, making: &mut Making, reload: &Reload, before: Option<RobotsTxt>) {
        self.note(making, reload);
        self.save(making);
        let entry = self.entry(making, reload, before);
        self.past().history.push(entry.clone());
        if let Some(state) = &self.state {
            state.append(entry);
            if matches!(reload.cause, Cause::Accept | Cause::Rollback) {
                // Whoever decided this must be able to rely on it once they are answered.
                state.write();
            }
        }
    }

    /// Keeps in the history that a switch was turned. It waits for no reload, and for the disk only once that is done.
    pub(super) fn remember_switch(&self, enforcement: Enforcement, of: &str) {
        let outcome = match enforcement {
            Enforcement::On => ReloadOutcomeKind::SwitchedOn,
            Enforcement::Off => ReloadOutcomeKind::SwitchedOff,
        };
        let entry = HistoryEntry {
            when: self.clock.now(),
            cause: Cause::Switch,
            outcome,
            origin: self.origin.clone(),
            hash: self.live(),
            findings: [0; 3],
            effect: None,
            detail: format!("enforcement of {of} is switched {enforcement}"),
        };
        self.past().history.push(entry.clone());
        if let Some(state) = &self.state {
            state.append(entry);
            state.write();
        }
    }

    fn save(&self, making: &mut Making) {
        if let (Some(durability), Some(state)) = (making.unsaved.take(), &self.state) {
            state.save(making.versions.clone(), making.pending.clone(), durability);
        }
    }

    /// Brings what [`Status`](super::Status) says up to date.
    pub(super) fn note(&self, making: &Making, reload: &Reload) {
        let mut past = self.past();
        let is_absent = |outcome: &ReloadOutcome| matches!(outcome, ReloadOutcome::Absent { .. });
        let is_newly_absent = is_absent(&reload.outcome) && !is_absent(&past.last.outcome);
        if is_newly_absent || matches!(reload.outcome, ReloadOutcome::Published { .. }) {
            past.since = self.clock.now();
        }
        past.last = reload.clone();
        if let (
            Some(state),
            ReloadOutcome::Published { .. } | ReloadOutcome::Unchanged { .. } | ReloadOutcome::Absent { .. },
        ) = (&self.state, &reload.outcome)
        {
            state.is_behind(None);
        }
        past.pending.clone_from(&making.pending);
        past.before = making.versions.before().map(|version| version.hash);
    }

    fn entry(&self, making: &Making, reload: &Reload, before: Option<RobotsTxt>) -> HistoryEntry {
        let snapshot = self.current.load_full();
        let (robots, report) = match &reload.outcome {
            ReloadOutcome::Gated { pending, .. } => {
                let robots = RobotsTxt::parse(pending.bytes().clone());
                let options = making.check.clone().with_registry(making.registry.clone());
                let report = check::check(&robots, &options);
                (Some(robots), Some(report))
            }
            ReloadOutcome::Kept { .. } | ReloadOutcome::Absent { .. } => (None, None),
            ReloadOutcome::Published { .. } | ReloadOutcome::Unchanged { .. } => {
                let content = snapshot.content();
                (content.map(|content| content.robots().clone()), content.map(|content| content.report().clone()))
            }
        };
        let options = || DiffOptions::new().with_registry(making.registry.clone());
        let is_worth_it = |before: &RobotsTxt, now: &RobotsTxt| {
            before.bytes() != now.bytes() && before.bytes().len() + now.bytes().len() <= MOST_COMPARED
        };
        let effect = before.zip(robots).filter(|(before, now)| is_worth_it(before, now));
        let effect = effect.map(|(before, now)| bounded(&diff(&before, &now, &options())));
        let mut findings = [0; 3];
        for severity in Severity::ALL {
            findings[severity as usize] = report.as_ref().map_or(0, |report| report.count(severity));
        }
        HistoryEntry {
            when: self.clock.now(),
            cause: reload.cause,
            outcome: reload.outcome.kind(),
            origin: reload.origin.clone(),
            hash: reload.outcome.hash(),
            findings,
            effect,
            detail: bounded(reload),
        }
    }
}

/// A failure is told once, not at every look at the same broken file.
fn is_news(last: &ReloadOutcome, reload: &Reload) -> bool {
    match (&reload.outcome, last) {
        (ReloadOutcome::Published { .. }, _) => true,
        (ReloadOutcome::Unchanged { .. }, last) => {
            reload.cause == Cause::Request
                || !matches!(last, ReloadOutcome::Published { .. } | ReloadOutcome::Unchanged { .. })
        }
        (ReloadOutcome::Absent { .. }, last) => {
            reload.cause == Cause::Request || !matches!(last, ReloadOutcome::Absent { .. })
        }
        (ReloadOutcome::Kept { rejection: now, .. }, ReloadOutcome::Kept { rejection: before, .. }) => {
            reload.cause == Cause::Request || now.kind() != before.kind()
        }
        (ReloadOutcome::Gated { pending: now, .. }, ReloadOutcome::Gated { pending: before, .. }) => {
            reload.cause == Cause::Request || now.hash() != before.hash() || now.objections() != before.objections()
        }
        (ReloadOutcome::Kept { .. } | ReloadOutcome::Gated { .. }, _) => true,
    }
}
