//! The HTTP client. It follows redirects, sends conditional requests, and rejects invalid
//! responses.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONNECTION, HOST, IF_MODIFIED_SINCE, IF_NONE_MATCH, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::Empty;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::outcome::is_redirect;
use super::resolver::{self, Peer, Resolver};
use super::wire::{self, Excess, Stream};
use super::{FetchError, FetchErrorKind, FetchOutcome, FetchUrl, Validators};
use crate::live::LiveRobots;

/// Maximum number of redirects that are followed (RFC 9309, section 2.3.1.2).
const MAX_REDIRECTS: usize = 5;

/// An HTTP client for small files, designed for untrusted servers.
#[derive(Debug)]
pub(in crate::source) struct Client {
    pub(super) user_agent: HeaderValue,
    pub(super) connect: Duration,
    pub(super) total: Duration,
    pub(super) network: Resolver,
    #[cfg(feature = "tls")]
    pub(super) tls: super::tls::Tls,
    pub(in crate::source) permits: Semaphore,
}

#[derive(Clone, Debug)]
pub(in crate::source) struct FetchTarget {
    pub(super) url: FetchUrl,
    /// Upstreams of the site. If the list is not empty, the client connects to one of these
    /// upstreams instead of the URL's host.
    pub(super) via: Arc<[Peer]>,
    /// The name that an upstream's certificate must contain. `None` means the host in the
    /// upstream's URL.
    pub(super) server_name: Option<Arc<str>>,
    pub(super) mode: FetchMode,
    /// Maximum size of the body, in bytes.
    pub(super) most: u64,
    /// Validators of the copy that the caller already has, so that the server can respond with 304.
    pub(in crate::source) known: Validators,
    /// Number of consecutive failures. This number selects the upstream to try first, so each retry
    /// starts with another upstream.
    pub(super) turn: usize,
}

impl FetchTarget {
    pub(in crate::source) fn new(url: FetchUrl, mode: FetchMode, most: u64) -> Self {
        Self { url, via: Arc::default(), server_name: None, mode, most, known: Validators::default(), turn: 0 }
    }
}

/// The kind of client that fetches a document. The kind determines which redirects are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchMode {
    /// A crawler. Redirects may lead to any host.
    Crawler,
    /// The site itself. Redirects must not lead from https to http. A redirect from an upstream
    /// must lead to the same site.
    Site,
    /// A verifier that fetches keys. Redirects are not followed, because only a host's own server
    /// may provide the keys for this host.
    Direct,
}

impl Client {
    pub(super) async fn fetch(&self, target: &FetchTarget) -> FetchOutcome {
        self.with_timeout(self.follow(target)).await.unwrap_or_else(FetchOutcome::Failed)
    }

    /// Fetches the target in a separate task, so that a panic counts as a failed fetch. If the
    /// future is dropped, the task stops.
    pub(in crate::source) async fn fetch_in_task(self: &Arc<Self>, target: FetchTarget) -> FetchOutcome {
        let client = self.clone();
        let mut fetching = JoinSet::new();
        fetching.spawn(async move { client.fetch(&target).await });
        match fetching.join_next().await {
            Some(Ok(answer)) => answer,
            Some(Err(error)) => FetchOutcome::Failed(FetchError::with_cause(FetchErrorKind::Stopped, error)),
            None => FetchOutcome::Failed(FetchError::new(FetchErrorKind::Stopped)),
        }
    }

    /// Sends one request and returns the response. Does not follow redirects.
    pub(super) async fn exchange(&self, request: &FetchRequest) -> Result<FetchAnswer, FetchError> {
        let mut address = None;
        let answering = async {
            let stream = self.connect_to(&request.url, None, request.led_from, &mut address).await?;
            let head = request.head(&self.user_agent)?;
            // Reads one byte more than the limit, to find out whether the body exceeds the limit.
            let response = wire::exchange(stream, head, Excess::Drop, request.most.saturating_add(1)).await?;
            Ok::<_, FetchError>(FetchAnswer::new(response, request.most, address))
        };
        self.with_timeout(answering).await.map_err(|error| FetchError { address, ..error })
    }

    /// Sends one request. Sends the head of the response to `answered`, and then the parts of the
    /// body to `parts` as they arrive.
    pub(super) async fn stream(
        &self,
        request: &FetchRequest,
        answered: oneshot::Sender<Result<FetchAnswer, FetchError>>,
        parts: &mpsc::Sender<Result<Bytes, FetchError>>,
    ) {
        let (mut address, mut answered) = (None, Some(answered));
        let streaming = async {
            let stream = self.connect_to(&request.url, None, request.led_from, &mut address).await?;
            let hand_over = |head| {
                let answer = FetchAnswer::new(Response::from_parts(head, Vec::new()), request.most, address);
                // Errors are ignored, because a caller that has dropped the receiver does not need
                // the response.
                if let Some(answered) = answered.take() {
                    drop(answered.send(Ok(answer)));
                }
            };
            wire::stream(stream, request.head(&self.user_agent)?, request.most, hand_over, parts).await
        };
        let Err(error) = self.with_timeout(streaming).await else { return };
        match answered {
            Some(answered) => drop(answered.send(Err(FetchError { address, ..error }))),
            None => drop(parts.send(Err(error)).await),
        }
    }

    async fn with_timeout<T>(&self, fetch: impl Future<Output = Result<T, FetchError>>) -> Result<T, FetchError> {
        let late = |_| Err(FetchError::with_cause(FetchErrorKind::Timeout, format!("not within {:?}", self.total)));
        timeout(self.total, fetch).await.unwrap_or_else(late)
    }

    async fn follow(&self, target: &FetchTarget) -> Result<FetchOutcome, FetchError> {
        let (mut url, mode) = (target.url.clone(), target.mode);
        // The operator has configured the first URL, so its host may have any address, even a
        // private address.
        let mut led_from = None;
        for _ in 0..=MAX_REDIRECTS {
            let response = self.request_once(target, &url, &mut led_from).await?;
            if !is_redirect(response.status()) {
                return Ok(read(response, url));
            }
            let location = response.headers().get(LOCATION).filter(|_| mode != FetchMode::Direct);
            let Some(location) = location else { return Ok(FetchOutcome::Redirected) };
            url = match (url.join(location.as_bytes()), mode) {
                (Ok(to), FetchMode::Crawler) => to,
                (Ok(to), _) => resolver::redirect_of_site(&target.url, &target.via, &url, to)?,
                // For a crawler, an invalid `Location` has the same effect as too many redirects.
                (Err(_), FetchMode::Crawler) => return Ok(FetchOutcome::Redirected),
                (Err(error), _) => return Err(FetchError::with_cause(FetchErrorKind::Redirect, error)),
            };
        }
        Ok(FetchOutcome::Redirected)
    }

    /// Sends one request, and stores the server's address in `led_from`. If the server's address is
    /// public, its redirects must not lead to private addresses. For an upstream, `led_from` stays
    /// `None`, because the operator has configured the upstream, and the targets of redirects are
    /// requested from the same upstream.
    async fn request_once(
        &self,
        target: &FetchTarget,
        url: &FetchUrl,
        led_from: &mut Option<IpAddr>,
    ) -> Result<Response<Vec<u8>>, FetchError> {
        let request = self.request(url, &target.known)?;
        let excess = if target.mode == FetchMode::Crawler { Excess::Drop } else { Excess::Refuse };
        let mut address = None;
        let stream = match target.via.is_empty() {
            true => self.connect_to(url, None, *led_from, &mut address).await?,
            false => self.connect_upstream(target).await?,
        };
        *led_from = address.map(|address| address.ip());
        wire::exchange(stream, request, excess, target.most).await
    }

    fn request(&self, url: &FetchUrl, known: &Validators) -> Result<Request<Empty<Bytes>>, FetchError> {
        let mut request = FetchRequest::new(url.clone());
        request.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        // Validators are sent only to the URL whose response contained them, because another URL
        // may use the same entity tag for other content.
        if known.of.as_ref().is_none_or(|of| of == url) {
            for (name, value) in [(IF_NONE_MATCH, &known.etag), (IF_MODIFIED_SINCE, &known.last_modified)] {
                if let Some(value) = value {
                    request.headers.insert(name, value.clone());
                }
            }
        }
        request.head(&self.user_agent)
    }

    /// Connects to the first reachable upstream, beginning with the upstream at index `turn`
    /// (modulo the number of upstreams).
    async fn connect_upstream(&self, target: &FetchTarget) -> Result<Box<dyn Stream>, FetchError> {
        let FetchTarget { via, server_name, turn, .. } = target;
        let mut last = FetchError::new(FetchErrorKind::Connect);
        for at in 0..via.len() {
            let connected = match &via[turn.wrapping_add(at) % via.len()] {
                Peer::Server(server) => self.connect_to(server, server_name.as_deref(), None, &mut None).await,
                #[cfg(unix)]
                Peer::Unix(path) => wire::dial_unix(path, self.connect).await,
            };
            match connected {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Connects to a server, with TLS for an `https` URL. Stores the server's address as soon as
    /// the connection is established, so that the address is known even if the TLS handshake fails.
    async fn connect_to(
        &self,
        server: &FetchUrl,
        name: Option<&str>,
        led_from: Option<IpAddr>,
        at: &mut Option<SocketAddr>,
    ) -> Result<Box<dyn Stream>, FetchError> {
        let within = self.connect;
        let late = |_| {
            FetchError::with_cause(FetchErrorKind::Timeout, format!("no connection was established within {within:?}"))
        };
        let dialed = timeout(within, wire::dial(server, &self.network, led_from, within)).await;
        let (socket, address) = dialed.map_err(late)??;
        *at = Some(address);
        #[cfg(not(feature = "tls"))]
        let _ = name;
        if !server.is_https() {
            return Ok(Box::new(socket));
        }
        #[cfg(feature = "tls")]
        return self.tls.wrap(socket, name.unwrap_or(server.host()), self.connect).await;
        #[cfg(not(feature = "tls"))]
        Err(FetchError::with_cause(FetchErrorKind::Tls, "the feature `tls` is off"))
    }
}

fn read(response: Response<Vec<u8>>, url: FetchUrl) -> FetchOutcome {
    let (head, body) = response.into_parts();
    let mut answer = FetchOutcome::of(head.status, &head.headers, body, SystemTime::now());
    if let FetchOutcome::Found { validators, .. } = &mut answer {
        validators.of = Some(url);
    }
    answer
}

/// A GET request for one URL, for [`Fetcher::exchange`](super::Fetcher::exchange).
///
/// The server may compress the body only if `headers` contains `Accept-Encoding`. A compressed body
/// is never decoded.
#[derive(Clone, Debug)]
pub struct FetchRequest {
    /// The URL to request.
    pub url: FetchUrl,
    /// Header fields to send. These fields replace default fields of the same name, such as
    /// `Accept`. Default: none.
    pub headers: HeaderMap,
    /// Maximum size of the body, in bytes. Default: [`LiveRobots::MAX_FILE`].
    pub most: u64,
    /// Address of the server whose response contained the URL, if any. If that address is public,
    /// the URL's host must not have a loopback or private address. Default: none.
    pub led_from: Option<IpAddr>,
}

/// The response to a [`FetchRequest`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FetchAnswer {
    /// Address of the server that sent the response, if known.
    pub address: Option<SocketAddr>,
    /// Status code of the response.
    pub status: StatusCode,
    /// Header fields of the response.
    pub headers: HeaderMap,
    /// The body as it was sent, without decoding. It is empty for a redirect, because the body of a
    /// redirect is not read.
    pub body: Vec<u8>,
    /// Whether `body` is truncated, because the body exceeds the limit.
    pub is_cut: bool,
}

impl FetchRequest {
    /// Creates a request with the defaults.
    pub fn new(url: FetchUrl) -> Self {
        Self { url, headers: HeaderMap::new(), most: LiveRobots::MAX_FILE, led_from: None }
    }

    pub(super) fn head(&self, user_agent: &HeaderValue) -> Result<Request<Empty<Bytes>>, FetchError> {
        let request = Request::get(self.url.target().as_str())
            .header(HOST, self.url.authority())
            .header(USER_AGENT, user_agent)
            .header(ACCEPT, "text/plain, */*;q=0.5")
            .header(CONNECTION, "close");
        let request = request.body(Empty::new());
        let mut request = request.map_err(|error| FetchError::with_cause(FetchErrorKind::Redirect, error))?;
        for (name, value) in &self.headers {
            request.headers_mut().insert(name, value.clone());
        }
        Ok(request)
    }
}

impl FetchAnswer {
    /// Converts a response. Truncates a body of more than `most` bytes.
    fn new(response: Response<Vec<u8>>, most: u64, address: Option<SocketAddr>) -> Self {
        let (head, mut body) = response.into_parts();
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let is_cut = body.len() > most;
        body.truncate(most);
        Self { address, status: head.status, headers: head.headers, body, is_cut }
    }
}
