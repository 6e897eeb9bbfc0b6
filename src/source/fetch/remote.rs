//! A `LiveRobots` whose file is fetched.

use std::fmt;
use std::sync::Arc;

use super::client::FetchTarget;
use super::fetcher::Fetcher;
use super::peer::Peer;
use super::poller::SitePoller;
use super::schedule::Schedule;
use super::url::UrlError;
use crate::live::{LiveRobots, Loaded, Rejection, RejectionKind, ReloadOutcome, Shared, Source, WhenMissing};
use crate::source::LiveBuilder;

/// A robots.txt that is fetched, and how.
#[derive(Clone, Debug)]
pub(crate) struct RemoteSource {
    pub(super) place: FetchTarget,
    pub(super) schedule: Schedule,
    fetcher: Option<Fetcher>,
}

/// What came of a fetch.
pub(crate) enum Fetched {
    /// What the source holds.
    File(Loaded),
    /// It holds none, says this status.
    Absent { status: u16 },
    /// It said nothing that counts.
    Nothing(Rejection),
}

impl LiveRobots {
    /// A robots.txt kept at an `http` or `https` URL, on any host: fetched now, and again as its `Cache-Control` says.
    ///
    /// Until it was fetched once, nothing is enforced, and `/robots.txt` is answered with 503 ([`WhenMissing`] can say
    /// otherwise here). From then on the last good version stays through every failure. Where the URL is answered with
    /// 404 or another 4xx for 24 hours, or from the start, there is no robots.txt: nothing is enforced, and
    /// `/robots.txt` goes to the application behind.
    ///
    /// Up to five redirects are followed, but none from https to http, and none from a public address to one of the
    /// loopback or of a private or link-local network.
    ///
    /// # Errors
    ///
    /// If it is no URL that can be fetched; `https` needs the feature `tls`, `ftp` is not spoken.
    ///
    /// # Examples
    ///
    /// ```
    /// use tower_robots::live::LiveRobots;
    /// use tower_robots::source::fetch::Fetcher;
    ///
    /// let fetcher = Fetcher::new()?; // one for all sites
    /// let live = LiveRobots::url("http://127.0.0.1:9/robots.txt")?.fetcher(&fetcher).open()?;
    /// assert!(live.snapshot().content().is_none(), "nothing is known yet, so nothing is enforced");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg_attr(docsrs, doc(cfg(feature = "fetch")))]
    pub fn url(url: &str) -> Result<LiveBuilder, UrlError> {
        let place = FetchTarget { url: url.parse()?, via: Arc::default(), server_name: None };
        Ok(LiveBuilder::new(Source::Remote(RemoteSource::at(place))).when_missing(WhenMissing::Unavailable))
    }

    /// The robots.txt of the application behind: `/robots.txt` as the upstreams answer it for a host, fetched now, and
    /// again as its `Cache-Control` says; enforced, and served on.
    ///
    /// Upstreams are written as `127.0.0.1:3000`, `http://127.0.0.1:3000`, `https://app.internal` or
    /// `unix:/run/app.sock`, one or several; they take turns when there is trouble. `host` is what the `Host` field says: the site's name, with its port where that
    /// is not the usual one.
    ///
    /// Until it was fetched once, nothing is enforced, and the upstream itself answers `/robots.txt` ([`WhenMissing`] can
    /// say otherwise here). From then on the last good version stays through every failure. Where the upstream answers
    /// with 404 or another 4xx for 24 hours, or from the start, there is no robots.txt: nothing is enforced, and its own
    /// answer is relayed.
    ///
    /// Up to five redirects are followed, as long as they stay on the site.
    ///
    /// # Errors
    ///
    /// If an upstream is no address, has a path, or cannot be spoken to, or `host` is no host.
    #[cfg_attr(docsrs, doc(cfg(feature = "fetch")))]
    pub fn upstream<U: AsRef<str>>(
        upstreams: impl IntoIterator<Item = U>,
        host: &str,
    ) -> Result<LiveBuilder, UrlError> {
        let via =
            upstreams.into_iter().map(|upstream| Peer::parse(upstream.as_ref())).collect::<Result<Arc<[_]>, _>>()?;
        let first = via.first().ok_or_else(|| UrlError::host(""))?;
        if host.contains(['/', '?', '#', '@']) {
            return Err(UrlError::host(host));
        }
        let url = format!("{}://{host}/robots.txt", first.scheme().as_str());
        let place = FetchTarget { url: url.parse()?, via, server_name: None };
        Ok(LiveBuilder::new(Source::Remote(RemoteSource::at(place))).when_missing(WhenMissing::Relay))
    }
}

impl LiveBuilder {
    /// Who fetches. Default: a [`Fetcher`] of this site's own, with a thread of its own; share one where there are many.
    /// Has no effect on a file or an inline text.
    #[cfg_attr(docsrs, doc(cfg(feature = "fetch")))]
    pub fn fetcher(self, fetcher: &Fetcher) -> Self {
        self.with_remote(|remote| remote.fetcher = Some(fetcher.clone()))
    }

    /// When it is fetched again, and how long it must be gone before that is believed. Default: [`Schedule::new`]. Has no
    /// effect on a file or an inline text.
    #[cfg_attr(docsrs, doc(cfg(feature = "fetch")))]
    pub fn schedule(self, schedule: Schedule) -> Self {
        self.with_remote(|remote| remote.schedule = schedule)
    }

    /// Whom the certificate of an upstream has to be for. Default: the host it is written with. Has no effect on anything
    /// but an `https` upstream.
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(all(feature = "fetch", feature = "tls"))))]
    pub fn server_name(self, name: &str) -> Self {
        self.with_remote(|remote| remote.place.server_name = Some(name.into()))
    }

    fn with_remote(mut self, change: impl FnOnce(&mut RemoteSource)) -> Self {
        if let Source::Remote(remote) = &mut self.source {
            change(remote);
        }
        self
    }
}

impl RemoteSource {
    fn at(place: FetchTarget) -> Self {
        Self { place, schedule: Schedule::new(), fetcher: None }
    }

    /// Starts to fetch. Only where a start without a robots.txt is to fail it waits for the first answer.
    pub(crate) fn follow(&self, shared: &Arc<Shared>) -> Result<(), Rejection> {
        let fetcher = match &self.fetcher {
            Some(fetcher) => fetcher.clone(),
            None => Fetcher::new().map_err(|error| Rejection::io(error, &shared.origin))?,
        };
        let (following, first) = SitePoller::start(self, fetcher, shared);
        // Nothing else sets it: this is only called where `shared` is new.
        let _ = shared.following.set(following);
        if shared.live().is_some() || shared.settings.when_missing != WhenMissing::Fail {
            return Ok(());
        }
        match first.wait().outcome {
            ReloadOutcome::Kept { rejection, .. } => Err(rejection),
            ReloadOutcome::Gated { pending, .. } => Err(Rejection::gated(pending, &shared.origin)),
            ReloadOutcome::Absent { .. } => Err(Rejection::new(RejectionKind::Missing, &shared.origin)),
            ReloadOutcome::Published { .. } | ReloadOutcome::Unchanged { .. } => Ok(()),
        }
    }
}

/// Where it comes from, for a log: the URL, and whom it is asked of.
impl fmt::Display for RemoteSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.place.url)?;
        match self.place.via.first() {
            Some(via) => write!(f, " at {via}"),
            None => Ok(()),
        }
    }
}
