//! The extent of a crawler's access to a site.

use super::witness;
use crate::rules::{Access, RequestPath, Selection};

/// Maximum number of rules that are tried; bounds the cost.
pub(super) const MAX_RULES: usize = 50_000;

/// Paths that no rule names, so that their verdict is that of the site at large.
const UNNAMED: [&[u8]; 2] = [b"/wq3-named-by-no-rule", b"/Xk7/named-by-no-rule"];

/// How much of a site is open to a crawler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::check) enum SiteExtent {
    /// Nothing.
    Shut,
    /// Only paths that rules name.
    Partly,
    /// All paths except those that rules name.
    Open,
}

impl SiteExtent {
    /// Reports whether pages that no rule names are open, without looking at other pages.
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
