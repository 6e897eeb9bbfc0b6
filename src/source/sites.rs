//! Which site a request belongs to, and how sites are replaced while requests flow.

use std::any::Any;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};

use super::hosts::{HostMap, Scheme};
use crate::live::LiveRobots;

/// Sites by host, for a [`RobotsLayer`](crate::layer::RobotsLayer). Cheap to clone.
///
/// Made from one [`LiveRobots`], from a [`HostMap`] that stays as it is, or from a [`SiteMap`] that can be replaced.
#[derive(Clone, Debug)]
pub struct Sites(SiteLookup);

#[derive(Clone, Debug)]
enum SiteLookup {
    /// As most applications have it: neither the host nor the site has to be looked up.
    One(LiveRobots),
    Fixed(Arc<HostMap<LiveRobots>>),
    Replaced(SiteMap),
}

/// Sites by host that can be replaced while requests flow: each request is judged by the sites there are when it comes.
///
/// Cheap to clone; clones share everything.
///
/// ```
/// use tower_robots::live::LiveRobots;
/// use tower_robots::source::{HostMap, SiteMap};
///
/// let sites = SiteMap::new(HostMap::new());
/// let mut hosts = HostMap::new();
/// hosts.insert("example.com", LiveRobots::text("User-agent: *\nDisallow: /private/\n").open()?)?;
/// sites.replace(hosts);
/// assert!(sites.load().get("example.com").is_some());
///
/// // Another site, while requests flow. A text of one of many has a name, for the log. For sites that go, an application
/// // makes the map anew of the handles that it keeps.
/// let mut hosts = HostMap::clone(&sites.load());
/// hosts.insert("shop.example", LiveRobots::text("User-agent: *\nDisallow: /cart\n").named("shop").open()?)?;
/// sites.replace(hosts);
/// assert!(sites.load().get("shop.example").is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SiteMap {
    hosts: Arc<ArcSwap<HostMap<LiveRobots>>>,
    /// Whatever replaces the sites by itself, which goes on as long as a clone with it is held.
    _follower: Option<Arc<dyn Any + Send + Sync>>,
}

impl Sites {
    /// The sites there are now, for a local: the guard must not be kept, nor held across an await.
    pub(crate) fn load(&self) -> SitesGuard<'_> {
        match &self.0 {
            SiteLookup::One(live) => SitesGuard::One(live),
            SiteLookup::Fixed(hosts) => SitesGuard::Fixed(hosts),
            SiteLookup::Replaced(sites) => SitesGuard::Replaced(sites.hosts.load()),
        }
    }
}

/// The sites of one moment.
pub(crate) enum SitesGuard<'s> {
    One(&'s LiveRobots),
    Fixed(&'s HostMap<LiveRobots>),
    Replaced(Guard<Arc<HostMap<LiveRobots>>>),
}

impl SitesGuard<'_> {
    /// The site of a host, which is only looked for where there are several sites; a request without a host belongs to
    /// the site of every other host.
    pub(crate) fn find<'h>(&self, host: impl FnOnce() -> Option<(&'h [u8], Option<Scheme>)>) -> Option<&LiveRobots> {
        let hosts = match self {
            Self::One(live) => return Some(live),
            Self::Fixed(hosts) => *hosts,
            Self::Replaced(hosts) => hosts,
        };
        host().map_or_else(|| hosts.any(), |(host, scheme)| hosts.find(host, scheme.map(Scheme::port)))
    }
}

impl SiteMap {
    /// These sites, until they are replaced.
    pub fn new(hosts: HostMap<LiveRobots>) -> Self {
        Self { hosts: Arc::new(ArcSwap::from_pointee(hosts)), _follower: None }
    }

    /// The same sites, kept up to date by the follower, which holds them without itself.
    pub(super) fn followed_by(&self, follower: Arc<dyn Any + Send + Sync>) -> Self {
        Self { _follower: Some(follower), ..self.clone() }
    }

    /// Serves other sites from the next request on. A site that is in both keeps what it has if the same
    /// [`LiveRobots`] is.
    pub fn replace(&self, hosts: HostMap<LiveRobots>) {
        self.hosts.store(Arc::new(hosts));
    }

    /// The sites there are now. They stay as they are however long they are held.
    pub fn load(&self) -> Arc<HostMap<LiveRobots>> {
        self.hosts.load_full()
    }
}

robots_core::debug_as!(|it| SiteMap { sites: it.hosts.load().len() });

/// The sites of a [`RobotsLayer`](crate::layer::RobotsLayer): one, or several by host.
///
/// A robots.txt is a site once it is open. Anything else does not compile:
///
/// ```compile_fail,E0277
/// use tower_robots::layer::RobotsLayer;
/// use tower_robots::live::LiveRobots;
///
/// let layer = RobotsLayer::new(LiveRobots::text("User-agent: *\nDisallow: /private/\n"));
/// ```
///
/// ```
/// use tower_robots::layer::RobotsLayer;
/// use tower_robots::live::LiveRobots;
///
/// let layer = RobotsLayer::new(LiveRobots::text("User-agent: *\nDisallow: /private/\n").open()?);
/// # Ok::<(), tower_robots::live::Rejection>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an open site: call `.open()?`",
    label = "not an open site",
    note = "`LiveRobots::file(\"robots.txt\").open()?` is one; a `Result` holds one once its error is handled",
    note = "several sites are a `HostMap<LiveRobots>`, a `SiteMap`, a `Directory` or `Sites`"
)]
pub trait IntoSites {
    /// The sites.
    fn into_sites(self) -> Sites;
}

impl IntoSites for Sites {
    fn into_sites(self) -> Sites {
        self
    }
}

/// One robots.txt for every host.
impl IntoSites for LiveRobots {
    fn into_sites(self) -> Sites {
        Sites(SiteLookup::One(self))
    }
}

/// A further handle of it.
impl IntoSites for &LiveRobots {
    fn into_sites(self) -> Sites {
        self.clone().into_sites()
    }
}

impl IntoSites for HostMap<LiveRobots> {
    fn into_sites(self) -> Sites {
        Sites(SiteLookup::Fixed(Arc::new(self)))
    }
}

impl IntoSites for SiteMap {
    fn into_sites(self) -> Sites {
        Sites(SiteLookup::Replaced(self))
    }
}

impl IntoSites for &SiteMap {
    fn into_sites(self) -> Sites {
        self.clone().into_sites()
    }
}
