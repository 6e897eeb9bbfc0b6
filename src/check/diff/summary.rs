//! A difference in one sentence.

use std::fmt;

use super::change::Change;
use super::compare::{Diff, Effect};
use super::subject::FirstCrawlers;
use crate::check::quote::Quoted;
use crate::rules::Access;

/// Effects that the sentence names; the rest are counted.
const SHOWN: usize = 2;

/// The worst changes and how many more there are: `"/" is disallowed for "Googlebot", "bingbot" and 640 more; ...`.
impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("no crawler is treated otherwise");
        }
        for (at, effect) in self.effects.iter().take(SHOWN).enumerate() {
            let Some(change) = effect.changes.first() else { continue };
            f.write_str(if at == 0 { "" } else { "; " })?;
            write_change(f, effect, change)?;
        }
        let all: usize = self.effects.iter().map(|effect| effect.changes.len() + effect.omitted).sum();
        match all.saturating_sub(self.effects.len().min(SHOWN)) {
            0 => {}
            1 => f.write_str("; 1 more change")?,
            more => write!(f, "; {more} more changes")?,
        }
        for (at, delay) in self.delays.iter().take(SHOWN).enumerate() {
            f.write_str(if at == 0 && self.effects.is_empty() { "" } else { "; " })?;
            write!(f, "{delay}")?;
        }
        match self.delays.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            1 => f.write_str("; 1 more delay"),
            more => write!(f, "; {more} more delays"),
        }
    }
}

fn write_change(f: &mut fmt::Formatter<'_>, effect: &Effect, change: &Change) -> fmt::Result {
    let verb = match change.access {
        Access::Allow => "allowed",
        Access::Disallow => "disallowed",
    };
    write!(f, "{} is {verb} for {}", Quoted(change.path.as_bytes()), FirstCrawlers(&effect.crawlers))
}
