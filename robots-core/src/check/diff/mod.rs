//! The differences between the effects of two files on crawlers. Differences between the lines of
//! the files do not matter.
//!
//! All crawlers that obey the same groups in both files share one [`Effect`]. Changed paths are
//! found by trying many paths. For each pattern that only one of the files has, the comparison
//! generates paths that match this pattern, and paths that also match another pattern. These paths
//! are called witnesses. A witness with different verdicts in the two files reveals a change.
//!
//! Every reported change is real, because the verdicts on its witness differ. A change may be
//! missed if no witness shows it, for example if three wildcards overlap in a particular way.
//!
//! Verdicts do not depend on delays between requests, so delays are compared separately. The delay
//! of a crawler that may not fetch any path is ignored.
//!
//! Search engines are listed first, and newly disallowed paths before newly allowed paths.

mod change;
mod compare;
mod drastic_change;
mod extent;
mod pages;
mod subject;
mod usage;
mod witness;

pub use self::change::{Breadth, Change, Decider, Delay, DelayChange};
pub use self::compare::{Breach, Diff, DiffOptions, Effect, Guard, diff};
pub use self::drastic_change::DrasticChange;
pub(super) use self::extent::SiteExtent;
pub use self::pages::{LostPage, Page, PageLoss};
pub use self::subject::Subject;
pub use self::usage::UsageChange;
pub(super) use self::witness::shortest as shortest_path;

#[cfg(test)]
mod tests;
