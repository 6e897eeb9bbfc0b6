//! The record of a site's reloads, for the status and the history. Also explains why a site started
//! with an earlier version.

use std::sync::Arc;
use std::time::SystemTime;

use super::clock;
use super::publisher::{Publisher, WasLive};
use super::reload::{History, bounded};
use super::versions::AcceptedVersion;
use super::{Attribution, Cause, HistoryEntry, Pending, Reload, ReloadOutcome, VersionHash};
use crate::agent::Registry;
use crate::check::{Diff, DiffOptions, Report, Severity, diff};
use crate::rules::RobotsTxt;

/// Maximum total size, in bytes, of two versions that are compared for the history. Comparing two
/// files of 350 KiB that are full of wildcards would take a second.
const MAX_COMPARED: usize = 128 << 10;

pub(super) struct ReloadRecord {
    pub(super) last: Reload,
    /// The last reload that read the source.
    pub(super) read: Reload,
    pub(super) since: SystemTime,
    pub(super) history: History,
    pub(super) pending: Option<Pending>,
    pub(super) before: Option<VersionHash>,
}

impl ReloadRecord {
    pub(super) fn update(&mut self, publisher: &Publisher, reload: &Reload, now: SystemTime) {
        let is_absent = |outcome: &ReloadOutcome| matches!(outcome, ReloadOutcome::Absent { .. });
        let is_newly_absent = is_absent(&reload.outcome) && !is_absent(&self.last.outcome);
        if is_newly_absent || matches!(reload.outcome, ReloadOutcome::Published { .. }) {
            self.since = now;
        }
        self.last = reload.clone();
        if !matches!(reload.cause, Cause::Accept | Cause::Rollback) {
            self.read = reload.clone();
        }
        self.pending = publisher.pending.clone();
        self.before = publisher.versions.before().map(AcceptedVersion::hash);
    }

    /// Reports whether a reload is added to the history and the listeners are notified of it. If
    /// several polls find the same broken file, this happens only once.
    pub(super) fn is_notable(&self, reload: &Reload) -> bool {
        let is_explicit = matches!(reload.cause, Cause::Request | Cause::Publish);
        match (&reload.outcome, &self.last.outcome) {
            (ReloadOutcome::Published { .. }, _) => true,
            (ReloadOutcome::Unchanged { .. }, last) => {
                is_explicit || !matches!(last, ReloadOutcome::Published { .. } | ReloadOutcome::Unchanged { .. })
            }
            (ReloadOutcome::Absent { .. }, last) => is_explicit || !matches!(last, ReloadOutcome::Absent { .. }),
            (ReloadOutcome::Kept { rejection: now, .. }, ReloadOutcome::Kept { rejection: before, .. }) => {
                is_explicit || now.kind != before.kind
            }
            (ReloadOutcome::Gated { pending: now, .. }, ReloadOutcome::Gated { pending: before, .. }) => {
                is_explicit || now.hash() != before.hash() || now.objections != before.objections
            }
            (ReloadOutcome::Kept { .. } | ReloadOutcome::Gated { .. }, _) => true,
        }
    }
}

/// Creates the history entry of a reload. `before` is the robots.txt that was live before the
/// reload.
pub(super) fn history_entry(
    publisher: &mut Publisher,
    reload: &Reload,
    before: Option<RobotsTxt>,
    now: SystemTime,
    by: &Attribution,
) -> HistoryEntry {
    let (robots, findings) = match &reload.outcome {
        ReloadOutcome::Gated { .. } => {
            let compiled = publisher.compiled_pending();
            let compiled = compiled.as_deref();
            (compiled.map(|compiled| compiled.robots.clone()), compiled.map(|compiled| counts(&compiled.report)))
        }
        ReloadOutcome::Kept { .. } | ReloadOutcome::Absent { .. } => (None, None),
        ReloadOutcome::Published { .. } | ReloadOutcome::Unchanged { .. } => {
            let content = publisher.content.as_ref();
            (content.map(|content| content.robots().clone()), content.map(|content| counts(content.report())))
        }
    };
    HistoryEntry {
        when: now,
        cause: reload.cause,
        outcome: reload.outcome.kind(),
        origin: reload.origin.clone(),
        hash: reload.outcome.hash(),
        findings: findings.unwrap_or_default(),
        effect: effect(before, robots, publisher.registry()).map(|diff| bounded(&diff)),
        detail: bounded(reload),
        by: by.bounded(),
    }
}

/// Returns the effect on crawlers if `now` replaces `before`; `None` if the two files are equal or
/// too large to be compared.
pub(super) fn effect(before: Option<RobotsTxt>, now: Option<RobotsTxt>, registry: &Arc<Registry>) -> Option<Diff> {
    let (before, now) = before.zip(now)?;
    let is_worth_it = before.bytes() != now.bytes() && before.bytes().len() + now.bytes().len() <= MAX_COMPARED;
    let options = DiffOptions::new().with_registry(registry.clone());
    is_worth_it.then(|| diff(&before, &now, &options))
}

fn counts(report: &Report) -> [usize; 3] {
    let mut findings = [0; 3];
    for severity in Severity::ALL {
        findings[severity as usize] = report.count(severity);
    }
    findings
}

/// Why the site started with an earlier version instead of the content of the source.
pub(super) struct Restoration {
    pub(super) text: Arc<str>,
    /// Whether a later version may have been live before the restart. If so, the status reports a
    /// problem.
    pub(super) is_behind: bool,
}

impl Restoration {
    pub(super) fn new(was_live: WasLive, last: &AcceptedVersion) -> Self {
        let when = clock::format_time(last.since);
        let (text, is_behind) = match was_live {
            WasLive::Current => (
                format!(
                    "this version was accepted {when}, and according to the state directory, it was live before \
                     the restart"
                ),
                false,
            ),
            WasLive::Baseline => (
                "this version is the baseline of the gate, because the state directory contains no version that was \
                 live before"
                    .to_owned(),
                false,
            ),
            WasLive::Unknown => (
                format!(
                    "this version was accepted {when}; the version that was live before the restart is missing from \
                     the state directory, and may have been a later one"
                ),
                true,
            ),
            WasLive::Other(hash, since) => {
                let (hash, since) = (hash.short(), clock::format_time(since));
                let text = format!(
                    "this version was accepted {when}; the later version {hash} (accepted {since}), which was live \
                     before the restart, is missing from the state directory"
                );
                (text, true)
            }
        };
        Self { text: text.into(), is_behind }
    }
}
