//! The [`Fetcher`], which fetches files for many sites on one thread.

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

/// Maximum number of additional threads that resolve names, compile fetched files and run callbacks.
/// Idle threads end. [`LiveBuilder::on_reload`](crate::source::LiveBuilder::on_reload) documents
/// this number.
const HELPERS: usize = 16;

/// Fetches robots.txt files for any number of sites, on a separate thread.
///
/// Cloning is cheap; clones share the thread and its limits. The thread ends when all clones, and
/// all [`LiveRobots`] that use the fetcher, are dropped.
///
/// A fetcher reads at most [`LiveRobots::MAX_FILE`] bytes of a body and 64 KiB of a head, and
/// follows up to five redirects. The protocol is HTTP/1.1, and every fetch opens its own
/// connection.
#[derive(Clone, Debug)]
pub struct Fetcher {
    pub(in crate::source) handle: Handle,
    pub(in crate::source) client: Arc<Client>,
    /// The thread ends when this sender is dropped together with the last clone of the fetcher.
    _stop: Arc<oneshot::Sender<()>>,
}

/// Configures and starts a [`Fetcher`].
#[derive(Debug)]
#[must_use]
pub struct FetcherBuilder {
    pub(super) client: Client,
}

/// The body of a response, which is received in parts. If this value is dropped, the request ends
/// when the next part arrives.
#[derive(Debug)]
#[must_use = "dropping this value ends the request"]
pub struct FetchBody(mpsc::Receiver<Result<Bytes, FetchError>>);

impl Fetcher {
    /// Starts a fetcher with the defaults.
    ///
    /// # Errors
    ///
    /// Returns an error if the system cannot start a thread.
    pub fn new() -> io::Result<Self> {
        Self::builder().start()
    }

    /// Returns a builder with the default settings.
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

    /// Fetches a robots.txt as a crawler does. A redirect may lead to any host, but not from a
    /// server with a public address to a loopback or private address. A body that exceeds the limit
    /// is truncated. If `known` contains validators, the server can respond with 304.
    ///
    /// Any executor can poll the future.
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

    /// Sends one request, and does not follow redirects. Use this function in programs that show
    /// how a server responds. To handle the response as a crawler does, use [`Fetcher::fetch`].
    ///
    /// Any executor can poll the future.
    pub fn exchange(
        &self,
        request: FetchRequest,
    ) -> impl Future<Output = Result<FetchAnswer, FetchError>> + Send + use<> {
        exchanged(self.spawn(async move |client| client.exchange(&request).await))
    }

    /// Sends one request like [`Fetcher::exchange`]. Use this function if the body may be large.
    /// The future returns the response without its body. The [`FetchBody`] returns the body in
    /// parts of a few KiB. The fetcher reads at most two parts in advance of the calls of
    /// [`FetchBody::part`], and at most [`FetchRequest::most`] bytes in total. The request counts
    /// as one of the fetcher's concurrent fetches until its body is read completely or dropped.
    ///
    /// ```no_run
    /// use tower_robots::source::fetch::FetchRequest;
    /// use tower_robots::source::fetch::Fetcher;
    ///
    /// # async fn read() -> Result<usize, Box<dyn std::error::Error>> {
    /// let request = FetchRequest::new("https://example.com/sitemap.xml".parse()?);
    /// let request = FetchRequest { most: 50 << 20, ..request };
    /// let (answering, mut body) = Fetcher::new()?.stream(request);
    /// let mut bytes = 0;
    /// if answering.await?.status.is_success() {
    ///     while let Some(part) = body.part().await {
    ///         bytes += part?.len();
    ///     }
    /// }
    /// # Ok(bytes) }
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

    /// Runs a task with the client on the fetcher's thread. The task waits until the number of
    /// running fetches is below the maximum. The task continues even if its result is not awaited.
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

/// A task on a fetcher's thread. While the task runs, the thread does not end. If this value is
/// dropped, the task stops.
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
    /// Sets the `User-Agent` of the requests. Default: `robotsd/` and the version of this crate. A
    /// second call replaces the first.
    pub fn user_agent(mut self, user_agent: HeaderValue) -> Self {
        self.client.user_agent = user_agent;
        self
    }

    /// Sets the time limit for connecting. The TLS handshake has a separate limit of the same
    /// length. Default: ten seconds. A second call replaces the first.
    pub fn connect_within(mut self, time: Duration) -> Self {
        self.client.connect = time;
        self
    }

    /// Sets the time limit for a whole fetch, including redirects. Default: 30 seconds. A second
    /// call replaces the first.
    pub fn fetch_within(mut self, time: Duration) -> Self {
        self.client.total = time;
        self
    }

    /// Sets a function that can replace the host and port of a URL when the fetcher connects. Use
    /// the function to test a server before the DNS name points to this server. The server's
    /// certificate must still be valid for the URL's host. If `place` returns another host for the
    /// target of a redirect, the redirect may also lead to a private address. A second call
    /// replaces the first.
    pub fn connect_to(mut self, place: impl Fn(&str, u16) -> Option<(String, u16)> + Send + Sync + 'static) -> Self {
        self.client.network.connect_to(place);
        self
    }

    /// Sets the maximum number of concurrent fetches. Default: 64; minimum: one. A second call
    /// replaces the first.
    pub fn at_once(mut self, fetches: usize) -> Self {
        self.client.permits = Semaphore::new(fetches.clamp(1, Semaphore::MAX_PERMITS));
        self
    }

    /// Trusts only the certificates in `pem` (PEM format), and not the certificates that the system
    /// trusts.
    ///
    /// # Errors
    ///
    /// Returns an error if `pem` contains no certificate, or a certificate that cannot be parsed.
    #[cfg(feature = "tls")]
    pub fn trust_only(mut self, pem: &[u8]) -> io::Result<Self> {
        self.client.tls.distrust_system();
        self.trust(pem)
    }

    /// Trusts the certificates in `pem` (PEM format) in addition to the certificates that the
    /// system trusts. A second call adds certificates.
    ///
    /// # Errors
    ///
    /// Returns an error if `pem` contains no certificate, or a certificate that cannot be parsed.
    #[cfg(feature = "tls")]
    pub fn trust(mut self, pem: &[u8]) -> io::Result<Self> {
        let trusted = self.client.tls.trust(pem);
        trusted.map_err(|message| io::Error::new(io::ErrorKind::InvalidData, message))?;
        Ok(self)
    }

    /// Starts the fetcher's thread.
    ///
    /// # Errors
    ///
    /// Returns an error if the system cannot start a thread.
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
            // Waits until `_stop` is dropped, because no message is ever sent.
            let _ = runtime.block_on(stopped);
            // Shuts down without waiting for host names that are still being resolved.
            runtime.shutdown_background();
        })?;
        Ok(Fetcher { handle, client: Arc::new(self.client), _stop: Arc::new(stop) })
    }
}

impl FetchBody {
    /// Returns the next part; `None` at the end of the body. Any executor can poll the future. If
    /// the future is dropped before it is ready, the next call returns the same part.
    ///
    /// # Errors
    ///
    /// Returns an error if the body is incomplete, or if the fetch exceeds the time limit of
    /// [`FetcherBuilder::fetch_within`].
    pub async fn part(&mut self) -> Option<Result<Bytes, FetchError>> {
        self.0.recv().await
    }
}

async fn exchanged(answer: oneshot::Receiver<Result<FetchAnswer, FetchError>>) -> Result<FetchAnswer, FetchError> {
    answer.await.unwrap_or_else(|_| Err(FetchError::new(FetchErrorKind::Stopped)))
}
