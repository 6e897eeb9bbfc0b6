//! The effect of a change of the file on crawlers, as opposed to the difference in its text.
//!
//! Crawlers that obey the same groups, before and after, share one [`Effect`]. Paths are found by
//! trying. For each pattern that only one of the two files has, the comparison generates paths that
//! match it, alone and together with each other pattern. Each such witness is judged under both
//! files, and is a change if the verdicts differ.
//!
//! So every change that is shown is real. A change that no witness meets (three wildcards that
//! overlap in a particular way) is not shown.
//!
//! Delays between requests are compared separately: no path depends on them, and they do not matter
//! to a crawler that may fetch nothing.
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
