//! The kill switch of each site, by the site's name.
//!
//! A config that gives a site another source opens a second robots.txt of the same name beside the one that is served, until
//! the sites are swapped. Both have joined the switch of the name, so a turn reaches both and none is lost in between.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tower_robots::live::{Enforcement, StateError};

use super::site_robots::{SiteRobots, WeakSiteRobots};

/// The switches of all sites. Cheap to clone; clones are the same. Turning and joining block: they write to the state
/// directory. They wait for each other only where they are of one site.
#[derive(Clone, Debug, Default)]
pub(super) struct SiteSwitches(Arc<Mutex<HashMap<String, Arc<Joined>>>>);

/// Every robots.txt of one name. Locked while one joins or the switch is turned.
type Joined = Mutex<Vec<WeakSiteRobots>>;

impl SiteSwitches {
    /// Joins a robots.txt to the switch of a site. It stands as the one that joined before it, if that is still there.
    pub(super) fn join(&self, site: &str, robots: &SiteRobots) {
        let joined = self.of(site);
        let mut joined = joined.lock().unwrap_or_else(PoisonError::into_inner);
        joined.retain(|other| other.upgrade().is_some());
        if let Some(before) = joined.last().and_then(WeakSiteRobots::upgrade) {
            robots.take_switches(&before);
        }
        joined.push(robots.downgrade());
    }

    /// Turns the switch of a robots.txt by its name, which is the site's or `SITE/HOST`.
    ///
    /// # Errors
    ///
    /// If it could not be written to the state directory; it is turned then, too.
    pub(super) fn turn(&self, site: &str, name: &str, to: Enforcement) -> Result<(), StateError> {
        let joined = self.of(site);
        let joined = joined.lock().unwrap_or_else(PoisonError::into_inner);
        let lives = joined.iter().filter_map(WeakSiteRobots::upgrade).flat_map(|robots| robots.lives(site, &[]));
        let turned = lives.filter(|live| live.name == name).map(|live| live.robots.set_enforcement(to));
        turned.fold(Ok(()), Result::and)
    }

    fn of(&self, site: &str) -> Arc<Joined> {
        let mut sites = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sites.entry(site.to_owned()).or_default().clone()
    }
}
