//! How much of a site a crawler may fetch: most of it, parts or nothing.

use super::witness;
use crate::rules::{Access, RequestPath, Selection};

/// Maximum number of rules to try, with one path each, to bound the cost.
pub(super) const MAX_RULES: usize = 50_000;

/// Invented paths that no real rule mentions. Most paths of a site have the same verdict as these
/// paths.
const UNMENTIONED_PATHS: [&[u8]; 2] = [b"/wq3-named-by-no-rule", b"/Xk7/named-by-no-rule"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::check) enum SiteExtent {
    Shut,
    /// Only paths that a rule explicitly allows are allowed.
    Partly,
    /// All paths are allowed, except paths that rules disallow.
    Open,
}

impl SiteExtent {
    /// Reports whether the paths that no rule mentions are allowed.
    pub(in crate::check) fn allows_unmentioned_paths(selection: Selection<'_>) -> bool {
        UNMENTIONED_PATHS.into_iter().any(|path| selection.verdict(&RequestPath::new(path)).access() == Access::Allow)
    }

    pub(in crate::check) fn of(selection: Selection<'_>) -> Self {
        // `/robots.txt` is always allowed, so a rule that allows this path has no effect.
        let is_open = |path: &[u8]| {
            let path = RequestPath::new(path);
            !path.is_robots_txt() && selection.verdict(&path).access() == Access::Allow
        };
        if Self::allows_unmentioned_paths(selection) {
            Self::Open
        } else if is_open(b"/")
            || witness::paths_of_rules(selection, Access::Allow).take(MAX_RULES).any(|path| is_open(&path))
        {
            Self::Partly
        } else {
            Self::Shut
        }
    }
}
