//! The codes that `--select` and `--ignore` take: those of files, and those of what servers answer.

use tower_robots::check::{Lint, lint, lints};

use super::live::{answer_lint, answer_lints};
use crate::suggestion::did_you_mean;

/// The code of a lint that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KnownCode(&'static str);

impl KnownCode {
    pub(super) fn parse(code: &str) -> Result<Self, String> {
        let known = lint(code).map(Lint::code).or_else(|| answer_lint(code).map(|lint| lint.code));
        known.map(Self).ok_or_else(|| match did_you_mean(code, codes()) {
            Some(hint) => format!("no lint has this code: {hint}"),
            None => "no lint has this code: `robotsd check --explain` lists them".to_owned(),
        })
    }

    pub(super) const fn as_str(self) -> &'static str {
        self.0
    }
}

/// Every code.
pub(super) fn codes() -> impl Iterator<Item = &'static str> {
    lints().iter().map(Lint::code).chain(answer_lints().iter().map(|lint| lint.code))
}
