//! The effect of a change of the file on crawlers, not the difference of its text.
//!
//! Crawlers that obey the same groups, before and after, are one [`Effect`]. Paths are found by trying: of each pattern that only
//! one of the two files has, paths are made that it matches, alone and together with each other pattern. Such a witness is judged
//! under both files, and it is a change where the verdicts differ. So a change that is shown is real; one that no witness meets
//! (three wildcards that overlap just so) is not shown.
//!
//! The delays that requests shall keep are compared apart: no path depends on them, and none matters to a crawler that may read nothing.
//!
//! Search engines come first, and newly disallowed paths before newly allowed ones.

mod change;
mod compare;
mod drastic_change;
mod extent;
mod pages;
mod subject;
mod witness;

pub use self::change::{Breadth, Change, Decider, Delay, DelayChange};
pub use self::compare::{Breach, Diff, DiffOptions, Effect, Guard, diff};
pub use self::drastic_change::DrasticChange;
pub(super) use self::extent::SiteExtent;
pub use self::pages::{LostPage, Page, PageLoss};
pub use self::subject::Subject;
pub(super) use self::witness::shortest as shortest_path;

#[cfg(test)]
mod tests;
