//! Which lints run, and how bad their findings are.

use super::finding::Severity;
use super::lint::Lint;

/// How to check. The default runs every lint with its own severity.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Options {
    levels: Vec<(&'static str, Level)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Off,
    At(Severity),
}

impl Options {
    /// Every lint on, each with its own severity.
    pub fn new() -> Self {
        Self::default()
    }

    /// Turns a lint off.
    pub fn allow(self, lint: &'static Lint) -> Self {
        self.level(lint, Level::Off)
    }

    /// Gives every finding of a lint this severity.
    pub fn report_as(self, lint: &'static Lint, severity: Severity) -> Self {
        self.level(lint, Level::At(severity))
    }

    fn level(mut self, lint: &'static Lint, level: Level) -> Self {
        self.levels.retain(|(code, _)| *code != lint.code());
        self.levels.push((lint.code(), level));
        self
    }

    pub(super) fn is_off(&self, lint: &Lint) -> bool {
        self.find(lint) == Some(Level::Off)
    }

    /// The severity asked for, which then holds for every finding of the lint.
    pub(super) fn severity(&self, lint: &Lint) -> Option<Severity> {
        match self.find(lint) {
            Some(Level::At(severity)) => Some(severity),
            Some(Level::Off) | None => None,
        }
    }

    fn find(&self, lint: &Lint) -> Option<Level> {
        self.levels.iter().find(|(code, _)| *code == lint.code()).map(|(_, level)| *level)
    }
}
