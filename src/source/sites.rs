//! Finds the site that a request belongs to, and replaces sites while requests are served.

use std::any::Any;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};

use super::hosts::{HostMap, Scheme};
use crate::live::LiveRobots;

/// Sites by host, for a [`RobotsLayer`](crate::layer::RobotsLayer). Cloning is cheap.
///
/// The sites are one [`LiveRobots`] for all hosts, a fixed [`HostMap`], or a [`SiteMap`] whose
/// content can be replaced.
#[derive(Clone, Debug)]
pub struct Sites(SiteLookup);

#[derive(Clone, Debug)]
enum SiteLookup {
    /// One site for all hosts, which is the usual case. No lookup by host is needed.
    One(LiveRobots),
    Fixed(Arc<HostMap<LiveRobots>>),
    Replaced(SiteMap),
}

/// A map from hosts to sites that can be replaced while requests are served. Each request uses the
/// sites that are in the map when the request arrives.
///
/// Cloning is cheap; clones share the sites, even after a replacement.
///
/// ```
/// use tower_robots::live::LiveRobots;
/// use tower_robots::source::{HostMap, SiteMap};
///
/// let sites = SiteMap::new(HostMap::new());
/// let mut hosts = HostMap::new();
/// let live = LiveRobots::text("User-agent: *\nDisallow: /private/\n").open()?;
/// hosts.insert("example.com", live)?;
/// sites.replace(hosts);
/// assert!(sites.load().get("example.com").is_some());
///
/// // Add a site while requests are served. Give each inline robots.txt a name if there are several
/// // sites, for the log. To remove sites, build a new map from the handles that you keep.
/// let mut hosts = HostMap::clone(&sites.load());
/// let shop = LiveRobots::text("User-agent: *\nDisallow: /cart\n").named("shop").open()?;
/// hosts.insert("shop.example", shop)?;
/// sites.replace(hosts);
/// assert!(sites.load().get("shop.example").is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SiteMap {
    hosts: Arc<ArcSwap<HostMap<LiveRobots>>>,
    /// The value that updates the map, such as a [`Directory`](super::Directory). The value is
    /// dropped together with the last clone that owns it.
    _follower: Option<Arc<dyn Any + Send + Sync>>,
}

impl Sites {
    /// Returns the current sites. Do not store the guard, and do not hold it across an await.
    pub(crate) fn load(&self) -> SitesGuard<'_> {
        match &self.0 {
            SiteLookup::One(live) => SitesGuard::One(live),
            SiteLookup::Fixed(hosts) => SitesGuard::Fixed(hosts),
            SiteLookup::Replaced(sites) => SitesGuard::Replaced(sites.hosts.load()),
        }
    }
}

pub(crate) enum SitesGuard<'s> {
    One(&'s LiveRobots),
    Fixed(&'s HostMap<LiveRobots>),
    Replaced(Guard<Arc<HostMap<LiveRobots>>>),
}

impl SitesGuard<'_> {
    /// Returns the site of a host. `host` is not called if one [`LiveRobots`] applies to all hosts.
    /// A request without a host belongs to the site with the pattern `*`.
    pub(crate) fn find<'h>(&self, host: impl FnOnce() -> Option<(&'h [u8], Option<Scheme>)>) -> Option<&LiveRobots> {
        let hosts = match self {
            Self::One(live) => return Some(live),
            Self::Fixed(hosts) => *hosts,
            Self::Replaced(hosts) => hosts,
        };
        host().map_or_else(|| hosts.any(), |(host, scheme)| hosts.find(host, scheme.map(Scheme::port)))
    }

    #[cfg(feature = "tracing")]
    pub(crate) fn all(&self) -> Vec<&LiveRobots> {
        match self {
            Self::One(live) => vec![live],
            Self::Fixed(hosts) => hosts.values().collect(),
            Self::Replaced(hosts) => hosts.values().collect(),
        }
    }
}

impl SiteMap {
    /// Creates a map with these sites, which [`SiteMap::replace`] can replace.
    pub fn new(hosts: HostMap<LiveRobots>) -> Self {
        Self { hosts: Arc::new(ArcSwap::from_pointee(hosts)), _follower: None }
    }

    /// Returns a clone of the map that also owns `follower`, which updates the map. The follower
    /// itself owns a clone without `_follower`, so there is no reference cycle.
    pub(super) fn followed_by(&self, follower: Arc<dyn Any + Send + Sync>) -> Self {
        Self { _follower: Some(follower), ..self.clone() }
    }

    /// Replaces the sites for all later requests. A site keeps its state if the old and the new map
    /// contain the same [`LiveRobots`].
    pub fn replace(&self, hosts: HostMap<LiveRobots>) {
        self.hosts.store(Arc::new(hosts));
    }

    /// Returns the current sites. Later calls of [`SiteMap::replace`] do not change the returned
    /// map.
    pub fn load(&self) -> Arc<HostMap<LiveRobots>> {
        self.hosts.load_full()
    }
}

robots_core::debug_as!(|it| SiteMap { sites: it.hosts.load().len() });

/// Types that can be converted into the [`Sites`] of a [`RobotsLayer`](crate::layer::RobotsLayer).
///
/// Only an open site can be converted. A [`LiveBuilder`](crate::source::LiveBuilder) is not an open
/// site, so this example does not compile:
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
/// let live = LiveRobots::text("User-agent: *\nDisallow: /private/\n").open()?;
/// let layer = RobotsLayer::new(live);
/// # Ok::<(), tower_robots::live::Rejection>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an open site: call `.open()?`",
    label = "not an open site",
    note = "`LiveRobots::file(\"robots.txt\").open()?` is an open site; handle the error of a `Result` first",
    note = "for several sites, use a `HostMap<LiveRobots>`, a `SiteMap`, a `Directory` or `Sites`"
)]
pub trait IntoSites {
    /// Converts the value into [`Sites`].
    fn into_sites(self) -> Sites;
}

impl IntoSites for Sites {
    fn into_sites(self) -> Sites {
        self
    }
}

/// The single robots.txt applies to every host.
impl IntoSites for LiveRobots {
    fn into_sites(self) -> Sites {
        Sites(SiteLookup::One(self))
    }
}

impl IntoSites for &LiveRobots {
    fn into_sites(self) -> Sites {
        self.clone().into_sites()
    }
}

impl IntoSites for HostMap<LiveRobots> {
    fn into_sites(self) -> Sites {
        #[cfg(feature = "tracing")]
        for host in self.ambiguous_names() {
            tracing::warn!(
                target: "tower_robots::layer",
                host,
                "{host:?} has sites for the ports 80 and 443, but requests over HTTP/1 do not name these ports, so \
                 they pass without being judged: insert {host:?} into the HostMap without a port, too"
            );
        }
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
