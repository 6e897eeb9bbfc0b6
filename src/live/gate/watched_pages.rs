//! The pages that a gate watches: lists that change while the gate is in use.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::check::Page;

/// Pages that matter, in lists: of sitemaps, of an operator's file, of what crawlers request. Cheap to clone; clones are the
/// same, so a list that is read anew counts from the next version on.
///
/// ```
/// use tower_robots::check::Page;
/// use tower_robots::live::{Gate, LiveRobots, WatchedPages};
///
/// let pages = WatchedPages::new();
/// let live = LiveRobots::inline("User-agent: *\nDisallow: /cart/\n")
///     .gate(Gate::builder().pages(&pages).build())
///     .open()?;
/// pages.set("of the sitemaps", ["/", "/news/1", "/news/2"].map(Page::new));
/// assert!(live.publish("User-agent: *\nDisallow: /cart/\nDisallow: /news/\n").is_err());
/// assert!(live.publish("User-agent: *\nDisallow: /cart/\nDisallow: /account/\n").is_ok());
/// # Ok::<(), tower_robots::live::Rejection>(())
/// ```
#[derive(Clone, Default)]
pub struct WatchedPages(Arc<Mutex<Vec<PageList>>>);

/// Pages from one place. Each list is judged by itself, so that a long one does not hide what a short one loses.
#[derive(Clone)]
pub(super) struct PageList {
    /// Which pages they are, as it stands behind "pages": "of the sitemaps".
    pub(super) name: Arc<str>,
    pub(super) pages: Arc<[Page]>,
}

impl WatchedPages {
    /// No pages yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the list of this name, in place of the one before; without pages there is none. The name stands behind "pages" in an
    /// objection: `of the sitemaps`, `of urls.txt`.
    pub fn set(&self, name: &str, pages: impl IntoIterator<Item = Page>) {
        let pages: Arc<[Page]> = pages.into_iter().collect();
        let mut lists = self.lists_now();
        lists.retain(|list| *list.name != *name);
        if !pages.is_empty() {
            lists.push(PageList { name: name.into(), pages });
            lists.sort_by(|one, other| one.name.cmp(&other.name));
        }
    }

    /// The names of the lists, and how many pages each has.
    #[must_use]
    pub fn counts(&self) -> Vec<(String, usize)> {
        self.lists_now().iter().map(|list| (list.name.to_string(), list.pages.len())).collect()
    }

    pub(super) fn lists(&self) -> Vec<PageList> {
        self.lists_now().clone()
    }

    fn lists_now(&self) -> MutexGuard<'_, Vec<PageList>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for WatchedPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        self.lists_now().iter().for_each(|list| {
            map.entry(&list.name, &list.pages.len());
        });
        map.finish()
    }
}
