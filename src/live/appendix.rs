//! The parts that are appended to the robots.txt of sites, as they are at hand.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::SystemTime;

use crate::rules::Fragment;

/// Parts that others keep, such as a list of AI crawlers, for one site or many.
///
/// A site that is opened with [`LiveBuilder::append`](crate::source::LiveBuilder::append) appends them to whatever its source
/// holds, as [`RobotsTxt::append`](crate::rules::RobotsTxt::append) does; what comes of that is checked, gated, remembered and rolled back like any
/// other version. A part that is replaced makes a new version of every site. Where the parts are read from is the caller's
/// affair.
///
/// While a part was never at hand, a site whose version has it keeps that version; any other serves its file without the part.
///
/// Cheap to clone; clones are the same.
///
/// ```
/// use tower_robots::live::{Appendix, LiveRobots};
/// use tower_robots::rules::Fragment;
///
/// let appendix = Appendix::new(["ai.txt"]);
/// let live = LiveRobots::inline("User-agent: *\nDisallow: /private/\n").append(&appendix).open()?;
/// assert_eq!(appendix.missing(), ["ai.txt"]);
/// appendix.set(0, Fragment::parse("ai.txt", "User-agent: GPTBot\nDisallow: /\n").unwrap(), None);
/// let body = live.snapshot().content().map(|content| content.body().clone());
/// assert!(body.is_some_and(|body| body.ends_with(b"User-agent: GPTBot\nDisallow: /\n")));
/// # Ok::<(), tower_robots::live::Rejection>(())
/// ```
#[derive(Clone)]
pub struct Appendix(Arc<AppendixState>);

/// What appends the parts.
pub(super) trait AppendsParts: Send + Sync {
    /// Appends parts that have changed to what its source held last.
    fn append_again(&self);
}

struct AppendixState {
    parts: Mutex<Vec<AppendixPart>>,
    sites: Mutex<Vec<Weak<dyn AppendsParts>>>,
}

#[derive(Clone)]
struct AppendixPart {
    title: Arc<str>,
    held: Option<(Fragment, Option<SystemTime>)>,
}

/// The parts that are at hand.
pub(super) struct HeldParts {
    pub(super) fragments: Vec<Fragment>,
    /// The first part that never was.
    pub(super) missing: Option<Arc<str>>,
    /// When one of them was changed last.
    pub(super) modified: Option<SystemTime>,
}

impl Appendix {
    /// Parts with these titles, in the order in which they are appended. None is at hand yet.
    #[must_use]
    pub fn new<T: Into<Arc<str>>>(titles: impl IntoIterator<Item = T>) -> Self {
        let parts = titles.into_iter().map(|title| AppendixPart { title: title.into(), held: None }).collect();
        Self(Arc::new(AppendixState { parts: Mutex::new(parts), sites: Mutex::default() }))
    }

    /// Replaces a part, by its place from 0, and has every site append it. `modified` is when it was changed, as far as that
    /// is known. A part of the same octets changes nothing, and so does a place that there is none of.
    ///
    /// It blocks until the sites have compiled what comes of it.
    pub fn set(&self, part: usize, fragment: Fragment, modified: Option<SystemTime>) {
        {
            let mut parts = self.parts();
            let Some(part) = parts.get_mut(part) else { return };
            let before = part.held.as_ref().map(|(before, _)| (before.title(), before.robots().bytes()));
            if before == Some((fragment.title(), fragment.robots().bytes())) {
                return;
            }
            part.held = Some((fragment, modified));
        }
        let sites: Vec<_> = {
            let mut sites = self.sites();
            sites.retain(|site| site.strong_count() > 0);
            sites.iter().filter_map(Weak::upgrade).collect()
        };
        sites.iter().for_each(|site| site.append_again());
    }

    /// The titles of the parts that were never at hand.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        self.parts().iter().filter(|part| part.held.is_none()).map(|part| part.title.to_string()).collect()
    }

    pub(super) fn join(&self, site: Weak<dyn AppendsParts>) {
        let mut sites = self.sites();
        // The hosts of a directory come and go.
        sites.retain(|site| site.strong_count() > 0);
        sites.push(site);
    }

    pub(super) fn held(&self) -> HeldParts {
        let parts = self.parts().clone();
        let missing = parts.iter().find(|part| part.held.is_none()).map(|part| part.title.clone());
        let modified = parts.iter().filter_map(|part| part.held.as_ref()?.1).max();
        let fragments = parts.into_iter().filter_map(|part| Some(part.held?.0)).collect();
        HeldParts { fragments, missing, modified }
    }

    fn parts(&self) -> MutexGuard<'_, Vec<AppendixPart>> {
        self.0.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sites(&self) -> MutexGuard<'_, Vec<Weak<dyn AppendsParts>>> {
        self.0.sites.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Appendix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let titles: Vec<_> = self.parts().iter().map(|part| part.title.clone()).collect();
        f.debug_tuple("Appendix").field(&titles).finish()
    }
}
