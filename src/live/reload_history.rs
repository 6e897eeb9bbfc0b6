//! The last reloads and turns of the kill switch.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::SystemTime;

use super::reload::{Cause, ReloadOutcomeKind};
use super::version_hash::VersionHash;
use crate::check::Severity;

/// Entries that are kept of one site.
pub const MAX_HISTORY: usize = 64;

/// Characters of a text in it that are kept.
const MAX_TEXT: usize = 300;

/// One reload with a new outcome, or one turn of the kill switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    pub(crate) when: SystemTime,
    pub(crate) cause: Cause,
    pub(crate) outcome: ReloadOutcomeKind,
    pub(crate) origin: Arc<str>,
    pub(crate) hash: Option<VersionHash>,
    pub(crate) findings: [usize; 3],
    pub(crate) effect: Option<String>,
    pub(crate) detail: String,
}

/// At most [`MAX_HISTORY`] entries, the newest last.
#[derive(Clone, Debug, Default)]
pub(crate) struct History(VecDeque<HistoryEntry>);

impl HistoryEntry {
    /// When it happened.
    #[must_use]
    pub const fn when(&self) -> SystemTime {
        self.when
    }

    /// The cause.
    #[must_use]
    pub const fn cause(&self) -> Cause {
        self.cause
    }

    /// The outcome.
    #[must_use]
    pub const fn outcome(&self) -> ReloadOutcomeKind {
        self.outcome
    }

    /// Where the bytes came from.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The version it is about: the one that went live, was live already or waits; `None` where there were no bytes that
    /// could be one.
    #[must_use]
    pub const fn hash(&self) -> Option<VersionHash> {
        self.hash
    }

    /// How many findings of a severity the check has made in it.
    #[must_use]
    pub const fn findings(&self, severity: Severity) -> usize {
        self.findings[severity as usize]
    }

    /// The change for crawlers in one sentence (see [`Diff`](crate::check::Diff)); `None` without a version to compare
    /// with, and for very large files.
    #[must_use]
    pub fn effect(&self) -> Option<&str> {
        self.effect.as_deref()
    }

    /// The message, in one line.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl History {
    pub(crate) fn push(&mut self, entry: HistoryEntry) {
        if self.0.len() >= MAX_HISTORY {
            self.0.pop_front();
        }
        self.0.push_back(entry);
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &HistoryEntry> {
        self.0.iter()
    }
}

/// A text of bounded length.
pub(crate) fn bounded(text: &impl ToString) -> String {
    let mut text = text.to_string();
    if let Some((at, _)) = text.char_indices().nth(MAX_TEXT) {
        text.truncate(at);
        text.push('…');
    }
    text
}
