//! The source of a `LiveRobots` whose robots.txt is fetched.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::poller::SitePoller;
use super::resolver::Peer;
use super::url::{self, fault};
use super::{FetchMode, FetchTarget, Fetcher, Schedule};
use crate::live::{
    Completion, FetchStatus, LiveRobots, Loaded, Rejection, RejectionKind, ReloadOutcome, Site, Source, WhenMissing,
};
use crate::rules::ValueError;
use crate::source::builder::{LiveBuilder, SiteSource};

/// A robots.txt that is fetched over HTTP, see [`LiveRobots::url`] and [`LiveRobots::upstream`].
#[derive(Debug)]
pub struct RemoteSource {
    target: FetchTarget,
    schedule: Schedule,
    fetcher: Option<Fetcher>,
}

#[derive(Debug)]
struct Polled {
    origin: Arc<str>,
    poller: OnceLock<SitePoller>,
}

impl LiveRobots {
    /// Prepares a site whose robots.txt is at an `http` or `https` URL on any host. The file is
    /// fetched when the site is opened, and then again at times that depend on its `Cache-Control`.
    ///
    /// Until the first fetch succeeds, nothing is enforced, and requests for `/robots.txt` get a
    /// 503 response (change this with [`WhenMissing`]). Later, the last good version stays live
    /// while fetches fail. The site has no robots.txt if the server responds to the first fetch
    /// with 404 or another 4xx, or if it later responds with 4xx for 24 hours. In this case,
    /// nothing is enforced, and requests for `/robots.txt` are forwarded to the application.
    ///
    /// Up to five redirects are followed. A redirect is not followed if it leads from https to
    /// http, or from a server with a public address to a loopback, private or link-local address.
    ///
    /// # Errors
    ///
    /// Returns an error if `url` is not a valid `http` or `https` URL. `https` needs the feature
    /// `tls`.
    ///
    /// # Examples
    ///
    /// ```
    /// use tower_robots::live::LiveRobots;
    /// use tower_robots::source::fetch::Fetcher;
    ///
    /// let fetcher = Fetcher::new()?; // one for all sites
    /// let live = LiveRobots::url("http://127.0.0.1:9/robots.txt")?.fetcher(&fetcher).open()?;
    /// assert!(live.snapshot().content.is_none(), "nothing is known yet, so nothing is enforced");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn url(url: &str) -> Result<LiveBuilder<RemoteSource>, ValueError> {
        let target = FetchTarget::new(url.parse()?, FetchMode::Site, LiveRobots::MAX_FILE);
        Ok(LiveBuilder::new(RemoteSource::at(target)).when_missing(WhenMissing::Unavailable))
    }

    /// Prepares a site for use in a proxy. The application behind the proxy provides the
    /// robots.txt. The file is fetched from the path `/robots.txt` of an upstream when the site is
    /// opened, and then again at times that depend on its `Cache-Control`. The proxy then enforces
    /// the rules and serves the file.
    ///
    /// An upstream is written as `127.0.0.1:3000`, `http://127.0.0.1:3000`, `https://app.internal`
    /// or `unix:/run/app.sock`. If there are several upstreams, the next upstream is used after a
    /// failure. `host` is the value of the `Host` field: the host of the site, with the port unless
    /// it is the default port.
    ///
    /// Until the first fetch succeeds, nothing is enforced, and the upstream itself answers
    /// `/robots.txt` (change this with [`WhenMissing`]). Later, the last good version stays live
    /// while fetches fail. The site has no robots.txt if the upstream responds to the first fetch
    /// with 404 or another 4xx, or if the upstream later responds with 4xx for 24 hours. Without a
    /// robots.txt, nothing is enforced, and the upstream's own response is forwarded.
    ///
    /// Up to five redirects are followed, if their targets are on the same site.
    ///
    /// # Errors
    ///
    /// Returns an error if an upstream is not a valid address, has a path or an unsupported scheme,
    /// or if `host` is not a valid host.
    pub fn upstream<U: AsRef<str>>(
        upstreams: impl IntoIterator<Item = U>,
        host: &str,
    ) -> Result<LiveBuilder<RemoteSource>, ValueError> {
        let via =
            upstreams.into_iter().map(|upstream| Peer::parse(upstream.as_ref())).collect::<Result<Arc<[_]>, _>>()?;
        let first = via.first().ok_or_else(|| fault("", url::HOST))?;
        if host.contains(['/', '?', '#', '@']) {
            return Err(fault(host, url::HOST));
        }
        let url = format!("{}://{host}/robots.txt", first.scheme().as_str());
        let target = FetchTarget { via, ..FetchTarget::new(url.parse()?, FetchMode::Site, LiveRobots::MAX_FILE) };
        Ok(LiveBuilder::new(RemoteSource::at(target)).when_missing(WhenMissing::Relay))
    }
}

impl LiveBuilder<RemoteSource> {
    /// Sets the fetcher. If you have many sites, use the same fetcher for all of them. By default,
    /// a site creates a [`Fetcher`] with its own thread. A second call replaces the first.
    ///
    /// Only sites that fetch their robots.txt have this method, so this example does not compile:
    ///
    /// ```compile_fail
    /// # use tower_robots::live::LiveRobots;
    /// # use tower_robots::source::fetch::Fetcher;
    /// let live = LiveRobots::file("robots.txt").fetcher(&Fetcher::new()?).open();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn fetcher(self, fetcher: &Fetcher) -> Self {
        self.with_source(|source| source.fetcher = Some(fetcher.clone()))
    }

    /// Sets when the file is fetched again, and how long the last version is enforced if the server
    /// has no robots.txt any more. `Schedule` is in the module `internals`, which is not stable.
    /// Default: [`Schedule::default`]. A second call replaces the first.
    pub fn schedule(self, schedule: Schedule) -> Self {
        self.with_source(|source| source.schedule = schedule)
    }
}

#[cfg(feature = "tls")]
impl LiveBuilder<RemoteSource> {
    /// Sets the name that the certificate of an `https` server must contain. Default: the host in
    /// the server's URL. A second call replaces the first.
    pub fn server_name(self, name: &str) -> Self {
        self.with_source(|source| source.target.server_name = Some(name.into()))
    }
}

impl RemoteSource {
    fn at(target: FetchTarget) -> Self {
        Self { target, schedule: Schedule::default(), fetcher: None }
    }
}

impl SiteSource for RemoteSource {
    /// Starts to fetch the file. With [`WhenMissing::Fail`], waits for the first response.
    fn open(LiveBuilder { source, settings }: LiveBuilder<Self>) -> Result<LiveRobots, Rejection> {
        let origin: Arc<str> = source.to_string().into();
        let must_have_one = settings.when_missing == WhenMissing::Fail;
        let polled = Arc::new(Polled { origin: origin.clone(), poller: OnceLock::new() });
        let site = Site::new(settings, &origin, |_| polled.clone());
        site.start()?;
        let fetcher = match source.fetcher {
            Some(fetcher) => fetcher,
            None => Fetcher::new().map_err(|error| Rejection::io(error, &origin))?,
        };
        let (poller, first) = SitePoller::start(source.target, source.schedule, fetcher, &site, &origin);
        // This cannot fail, because `poller` is set only here.
        let _ = polled.poller.set(poller);
        if site.live().is_none() && must_have_one {
            let first = first.wait();
            let is_missing = matches!(first.outcome, ReloadOutcome::Absent { .. });
            let missing = is_missing.then(|| Rejection::new(RejectionKind::Missing, &origin));
            if let Some(refusal) = missing.or(first.refusal()) {
                return Err(refusal);
            }
        }
        Ok(LiveRobots::of(site))
    }
}

impl Source for Polled {
    /// Always returns an error, because the poller passes every fetched version directly to the
    /// site.
    fn load(&self) -> Loaded {
        Err(Rejection::new(RejectionKind::NotFetched, &self.origin))
    }

    fn reload(&self, completion: Arc<Completion>) {
        if let Some(poller) = self.poller.get() {
            poller.reload(completion);
        }
    }

    fn fetch_status(&self) -> Option<FetchStatus> {
        self.poller.get().map(SitePoller::status)
    }
}

/// Formats the origin for messages: the URL, and the first upstream, if any.
impl fmt::Display for RemoteSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.target.url)?;
        self.target.via.first().map_or(Ok(()), |via| write!(f, " at {via}"))
    }
}
