//! The fetcher: one thread for many sites, never the thread of a request.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::AbortHandle;

use super::resolver::Resolver;
use super::{
    Client, FetchAnswer, FetchError, FetchErrorKind, FetchMode, FetchOutcome, FetchRequest, FetchTarget, FetchUrl,
    Validators,
};
use crate::live::LiveRobots;

/// Threads that resolve names and compile what was fetched, at most; they end when there is nothing to do.
const HELPERS: usize = 16;

/// Fetches robots.txt files on a thread of its own: for one site or for thousands.
///
/// Cheap to clone; clones share the thread and its bounds. The last one that is dropped, with the last
/// [`LiveRobots`] that uses it, ends the thread.
///
/// Answers are read up to [`LiveRobots::MAX_FILE`], heads up to 64 KiB, five redirects are followed, HTTP/1.1
/// is spoken, and every fetch has a connection of its own.
#[derive(Clone, Debug)]
pub struct Fetcher {
    pub(in crate::source) handle: Handle,
    pub(in crate::source) client: Arc<Client>,
    /// The thread runs until the last of these is dropped.
    _stop: Arc<oneshot::Sender<()>>,
}

/// Starts a [`Fetcher`].
#[derive(Debug)]
#[must_use]
pub struct FetcherBuilder {
    pub(super) client: Client,
}

/// The body of an answer, in parts as they come. Once this is dropped, the request ends with the next part.
#[derive(Debug)]
#[must_use = "the request ends without it"]
pub struct FetchBody(mpsc::Receiver<Result<Bytes, FetchError>>);

impl Fetcher {
    /// One with the defaults.
    ///
    /// # Errors
    ///
    /// If the system gives no thread.
    pub fn new() -> io::Result<Self> {
        Self::builder().start()
    }

    /// One with settings.
    pub fn builder() -> FetcherBuilder {
        let user_agent = HeaderValue::from_static(concat!("robotsd/", env!("CARGO_PKG_VERSION")));
        let client = Client {
            user_agent,
            connect: Duration::from_secs(10),
            total: Duration::from_secs(30),
            network: Resolver::default(),
            #[cfg(feature = "tls")]
            tls: super::tls::Tls::default(),
            permits: Semaphore::new(64),
        };
        FetcherBuilder { client }
    }

    /// Fetches a robots.txt as a crawler does: redirects may lead to any host, but not from a public address to one that
    /// only this machine or its network reaches; a body beyond the limit is cut off.
    /// With `known` validators the server may answer that nothing has changed.
    ///
    /// The future needs no runtime of its own.
    pub fn fetch(
        &self,
        url: &FetchUrl,
        known: Option<&Validators>,
    ) -> impl Future<Output = FetchOutcome> + Send + use<> {
        let mut target = FetchTarget::new(url.clone(), FetchMode::Crawler, LiveRobots::MAX_FILE);
        target.known = known.cloned().unwrap_or_default();
        let fetched = self.spawn(async move |client| client.fetch(&target).await);
        async { fetched.await.unwrap_or_else(|_| FetchOutcome::Failed(FetchError::new(FetchErrorKind::Stopped))) }
    }

    /// Makes one request and follows nothing: for programs that show how a server answers. The meaning of an answer
    /// for a crawler is given by [`Fetcher::fetch`].
    ///
    /// The future needs no runtime of its own.
    pub fn exchange(
        &self,
        request: FetchRequest,
    ) -> impl Future<Output = Result<FetchAnswer, FetchError>> + Send + use<> {
        exchanged(self.spawn(async move |client| client.exchange(&request).await))
    }

    /// Makes one request as [`Fetcher::exchange`] does, for a body that may be large: the answer comes without it, and the body
    /// in parts of some KiB, which are read from the server no faster than they are taken. It ends after as many octets as the request
    /// allows. A body that is neither taken nor dropped keeps one of the places of this fetcher.
    ///
    /// ```no_run
    /// use tower_robots::source::fetch::FetchRequest;
    /// use tower_robots::source::fetch::Fetcher;
    ///
    /// # async fn read() -> Result<usize, Box<dyn std::error::Error>> {
    /// let request = FetchRequest { most: 50 << 20, ..FetchRequest::new("https://example.com/sitemap.xml".parse()?) };
    /// let (answering, mut body) = Fetcher::new()?.stream(request);
    /// let mut octets = 0;
    /// if answering.await?.status.is_success() {
    ///     while let Some(part) = body.part().await {
    ///         octets += part?.len();
    ///     }
    /// }
    /// # Ok(octets) }
    /// ```
    pub fn stream(
        &self,
        request: FetchRequest,
    ) -> (impl Future<Output = Result<FetchAnswer, FetchError>> + Send + use<>, FetchBody) {
        let (answered, answer) = oneshot::channel();
        let (parts, body) = mpsc::channel(1);
        let _ended = self.spawn(async move |client| client.stream(&request, answered, &parts).await);
        (exchanged(answer), FetchBody(body))
    }

    /// Has the fetcher's thread do some work with its client, once there is a place for it: it goes on whether its result is
    /// awaited or not.
    fn spawn<T, W>(&self, work: impl FnOnce(Arc<Client>) -> W + Send + 'static) -> oneshot::Receiver<T>
    where
        T: Send + 'static,
        W: Future<Output = T> + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        let client = self.client.clone();
        self.handle.spawn(async move {
            let Ok(_permit) = client.permits.acquire().await else { return };
            let _ = sender.send(work(client.clone()).await);
        });
        receiver
    }
}

/// A task on a fetcher's thread, until this is dropped; the thread runs as long.
#[derive(Debug)]
pub(in crate::source) struct FetcherTask {
    task: AbortHandle,
    _fetcher: Fetcher,
}

impl FetcherTask {
    pub(in crate::source) fn start(fetcher: Fetcher, work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { task: fetcher.handle.spawn(work).abort_handle(), _fetcher: fetcher }
    }
}

impl Drop for FetcherTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl FetcherBuilder {
    /// The `User-Agent` of the requests. Default: `robotsd/` and the version of this crate. A second call replaces the first.
    pub fn user_agent(mut self, user_agent: HeaderValue) -> Self {
        self.client.user_agent = user_agent;
        self
    }

    /// How long a connection may take to be made, and as long again its TLS session. Default: ten seconds.
    /// A second call replaces the first.
    pub fn connect_within(mut self, time: Duration) -> Self {
        self.client.connect = time;
        self
    }

    /// How long a whole fetch may take, redirects included. Default: 30 seconds. A second call replaces the first.
    pub fn fetch_within(mut self, time: Duration) -> Self {
        self.client.total = time;
        self
    }

    /// Connects to another host and port than those of a URL, where `place` has them for a host and a port: to see how a
    /// server answers before its name leads there. The certificate still has to be valid for the URL's host, and redirects
    /// may lead to such a place whatever its address is. A second call replaces the first.
    pub fn connect_to(mut self, place: impl Fn(&str, u16) -> Option<(String, u16)> + Send + Sync + 'static) -> Self {
        self.client.network.connect_to(place);
        self
    }

    /// How many fetches may be under way at once. Default: 64; at least one. A second call replaces the first.
    pub fn at_once(mut self, fetches: usize) -> Self {
        self.client.permits = Semaphore::new(fetches.clamp(1, Semaphore::MAX_PERMITS));
        self
    }

    /// Trusts the certificates of a PEM text and no others, in place of those the system trusts.
    ///
    /// # Errors
    ///
    /// If it holds no certificate, or one that cannot be read.
    #[cfg(feature = "tls")]
    pub fn trust_only(mut self, pem: &[u8]) -> io::Result<Self> {
        self.client.tls.distrust_system();
        self.trust(pem)
    }

    /// Trusts the certificates of a PEM text, besides those the system trusts. A second call adds to the first.
    ///
    /// # Errors
    ///
    /// If it holds no certificate, or one that cannot be read.
    #[cfg(feature = "tls")]
    pub fn trust(mut self, pem: &[u8]) -> io::Result<Self> {
        let trusted = self.client.tls.trust(pem);
        trusted.map_err(|message| io::Error::new(io::ErrorKind::InvalidData, message))?;
        Ok(self)
    }

    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// If the system gives none.
    pub fn start(self) -> io::Result<Fetcher> {
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(HELPERS)
            .thread_name("robots-fetch")
            .build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::Builder::new().name("robots-fetch".into()).spawn(move || {
            // It is never sent, only dropped.
            let _ = runtime.block_on(stopped);
            // No thread waits for a name that is being resolved.
            runtime.shutdown_background();
        })?;
        Ok(Fetcher { handle, client: Arc::new(self.client), _stop: Arc::new(stop) })
    }
}

impl FetchBody {
    /// The next part; `None` at the end of the body. The future needs no runtime of its own, and may be dropped and made again.
    ///
    /// # Errors
    ///
    /// If the body breaks off, or takes longer than a whole fetch may.
    pub async fn part(&mut self) -> Option<Result<Bytes, FetchError>> {
        self.0.recv().await
    }
}

async fn exchanged(answer: oneshot::Receiver<Result<FetchAnswer, FetchError>>) -> Result<FetchAnswer, FetchError> {
    answer.await.unwrap_or_else(|_| Err(FetchError::new(FetchErrorKind::Stopped)))
}
