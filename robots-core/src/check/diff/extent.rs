//! The extent of a crawler's access to a site: everything, parts or nothing.

use super::witness;
use crate::rules::{Access, RequestPath, Selection};

/// Maximum number of rules whose paths are tried. This bounds the cost.
pub(super) const MAX_RULES: usize = 50_000;

/// Paths that no real rule mentions, so their verdict is the verdict on most of the site.
const UNNAMED: [&[u8]; 2] = [b"/wq3-named-by-no-rule", b"/Xk7/named-by-no-rule"];

/// How much of a site is open to a crawler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::check) enum SiteExtent {
    /// No path is open.
    Shut,
    /// Only some paths are open, because particular rules open them.
    Partly,
    /// All paths are open, except those that rules disallow.
    Open,
}

impl SiteExtent {
    /// Reports whether pages that no rule mentions are open. Does not examine other pages.
    pub(in crate::check) fn is_open_at_large(selection: Selection<'_>) -> bool {
        UNNAMED.into_iter().any(|path| selection.verdict(&RequestPath::new(path)).access() == Access::Allow)
    }

    pub(in crate::check) fn of(selection: Selection<'_>) -> Self {
        let is_open = |path: &[u8]| selection.verdict(&RequestPath::new(path)).access() == Access::Allow;
        if Self::is_open_at_large(selection) {
            Self::Open
        } else if is_open(b"/")
            || witness::of_rules(selection, Access::Allow).take(MAX_RULES).any(|path| is_open(&path))
        {
            Self::Partly
        } else {
            Self::Shut
        }
    }
}
