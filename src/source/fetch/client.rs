//! Requests for a robots.txt: redirects, conditions, and the responses that do not count.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, HOST, IF_MODIFIED_SINCE, IF_NONE_MATCH, LOCATION, USER_AGENT,
};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::Empty;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::resolver::{self, Peer, Resolver};
use super::wire::{self, Excess, Stream};
use super::{FetchError, FetchErrorKind, FetchOutcome, FetchUrl, Validators};
use crate::live::LiveRobots;

/// Redirects that are followed (RFC 9309, section 2.3.1.2).
const HOPS: usize = 5;

/// An HTTP client for small files, made for servers that cannot be trusted.
#[derive(Debug)]
pub(in crate::source) struct Client {
    pub(super) user_agent: HeaderValue,
    pub(super) connect: Duration,
    pub(super) total: Duration,
    pub(super) network: Resolver,
    #[cfg(feature = "tls")]
    pub(super) tls: super::tls::Tls,
    /// Fetches that may begin yet.
    pub(in crate::source) permits: Semaphore,
}

/// The URL of a document, for whom it is fetched, and how to get there.
#[derive(Clone, Debug)]
pub(in crate::source) struct FetchTarget {
    pub(super) url: FetchUrl,
    /// The servers to connect to instead of the URL's host: the site's upstreams.
    pub(super) via: Arc<[Peer]>,
    /// The name an upstream's certificate has to be valid for, if not the host it is written with.
    pub(super) server_name: Option<Arc<str>>,
    pub(super) mode: FetchMode,
    /// How many octets of a body are read.
    pub(super) most: u64,
    /// The validators of the known copy, so that the server may answer that nothing has changed.
    pub(in crate::source) known: Validators,
    /// Counts fetches, and selects the upstream to try first.
    pub(super) turn: usize,
}

impl FetchTarget {
    /// The document at a URL, read up to so many octets.
    pub(in crate::source) fn new(url: FetchUrl, mode: FetchMode, most: u64) -> Self {
        Self { url, via: Arc::default(), server_name: None, mode, most, known: Validators::default(), turn: 0 }
    }
}

/// The party that a fetch is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchMode {
    /// A crawler: redirects may lead to any host.
    Crawler,
    /// The site: not from https to http, and an upstream only within the site.
    Site,
    /// Keys: no redirect is followed, because who answers for the host answers for the keys.
    Direct,
}

impl Client {
    /// Follows redirects to the final response.
    pub(super) async fn fetch(&self, target: &FetchTarget) -> FetchOutcome {
        self.in_time(self.follow(target)).await.unwrap_or_else(FetchOutcome::Failed)
    }

    /// The same in a task of its own, so that a panic over a response is one more failure and not the end; dropped with the
    /// future.
    pub(in crate::source) async fn fetch_apart(self: &Arc<Self>, target: FetchTarget) -> FetchOutcome {
        let client = self.clone();
        let mut fetching = JoinSet::new();
        fetching.spawn(async move { client.fetch(&target).await });
        match fetching.join_next().await {
            Some(Ok(answer)) => answer,
            Some(Err(error)) => FetchOutcome::Failed(FetchError::with_cause(FetchErrorKind::Stopped, error)),
            None => FetchOutcome::Failed(FetchError::new(FetchErrorKind::Stopped)),
        }
    }

    /// Makes one request; a redirect is an answer like any other.
    pub(super) async fn exchange(&self, request: &FetchRequest) -> Result<FetchAnswer, FetchError> {
        let mut address = None;
        let answering = async {
            let stream = self.connect_to(&request.url, None, request.led_from, &mut address).await?;
            let head = request.head(&self.user_agent)?;
            // An octet more than is kept shows that there is more.
            let response = wire::exchange(stream, head, Excess::Drop, request.most.saturating_add(1)).await?;
            Ok::<_, FetchError>(FetchAnswer::new(response, request.most, address))
        };
        self.in_time(answering).await.map_err(|error| FetchError { address, ..error })
    }

    /// Makes one request, and hands over its answer without the body, and the body as it comes.
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
                // A receiver that does not want the answer does not want the body either.
                if let Some(answered) = answered.take() {
                    drop(answered.send(Ok(answer)));
                }
            };
            wire::stream(stream, request.head(&self.user_agent)?, request.most, hand_over, parts).await
        };
        let Err(error) = self.in_time(streaming).await else { return };
        match answered {
            Some(answered) => drop(answered.send(Err(FetchError { address, ..error }))),
            None => drop(parts.send(Err(error)).await),
        }
    }

    /// The outcome of a whole fetch, unless it takes too long.
    async fn in_time<T>(&self, fetch: impl Future<Output = Result<T, FetchError>>) -> Result<T, FetchError> {
        let late = |_| Err(FetchError::with_cause(FetchErrorKind::Timeout, format!("not within {:?}", self.total)));
        timeout(self.total, fetch).await.unwrap_or_else(late)
    }

    async fn follow(&self, target: &FetchTarget) -> Result<FetchOutcome, FetchError> {
        let (mut url, mode) = (target.url.clone(), target.mode);
        // The operator named the first URL: its address may be of any class.
        let mut led_from = None;
        for _ in 0..=HOPS {
            let response = self.request_once(target, &url, &mut led_from).await?;
            if !resolver::is_redirect(response.status()) {
                return read(response, url);
            }
            let location = response.headers().get(LOCATION).filter(|_| mode != FetchMode::Direct);
            let Some(location) = location else { return Ok(FetchOutcome::Redirected) };
            url = match (url.join(location.as_bytes()), mode) {
                (Ok(to), FetchMode::Crawler) => to,
                (Ok(to), _) => resolver::of_site(&target.url, &target.via, &url, to)?,
                // As good as one hop too many.
                (Err(_), FetchMode::Crawler) => return Ok(FetchOutcome::Redirected),
                (Err(error), _) => return Err(FetchError::with_cause(FetchErrorKind::Redirect, error)),
            };
        }
        Ok(FetchOutcome::Redirected)
    }

    /// An upstream is what the operator named, whatever its address, and its redirects stay at it: so a URL of its own leads from
    /// nowhere.
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
        // Another resource may use the same entity tag for something else.
        if known.of.as_ref().is_none_or(|of| of == url) {
            for (name, value) in [(IF_NONE_MATCH, &known.etag), (IF_MODIFIED_SINCE, &known.last_modified)] {
                if let Some(value) = value {
                    request.headers.insert(name, value.clone());
                }
            }
        }
        request.head(&self.user_agent)
    }

    /// To the first upstream that can be reached from the one whose turn it is.
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

    /// To a server, in TLS where its URL says so. The address is noted as soon as there is a connection, so that it is known whatever
    /// comes of that.
    async fn connect_to(
        &self,
        server: &FetchUrl,
        name: Option<&str>,
        led_from: Option<IpAddr>,
        at: &mut Option<SocketAddr>,
    ) -> Result<Box<dyn Stream>, FetchError> {
        let within = self.connect;
        let late = |_| FetchError::with_cause(FetchErrorKind::Timeout, format!("no connection within {within:?}"));
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

fn read(response: Response<Vec<u8>>, url: FetchUrl) -> Result<FetchOutcome, FetchError> {
    let (head, body) = response.into_parts();
    let is_plain = |coding: &HeaderValue| {
        let coding = coding.as_bytes().trim_ascii();
        coding.is_empty() || coding.eq_ignore_ascii_case(b"identity")
    };
    let packed = head.headers.get_all(CONTENT_ENCODING).into_iter().find(|coding| !is_plain(coding));
    if let (true, Some(coding)) = (head.status.is_success(), packed) {
        let coding = String::from_utf8_lossy(coding.as_bytes()).chars().take(64).collect::<String>();
        let cause = format!("it is packed as {coding:?} although the request accepts no coding");
        return Err(FetchError::with_cause(FetchErrorKind::BadResponse, cause));
    }
    let mut answer = FetchOutcome::of(head.status, &head.headers, body, SystemTime::now());
    if let FetchOutcome::Found { validators, .. } = &mut answer {
        validators.of = Some(url);
    }
    Ok(answer)
}

/// A GET for one URL, for [`Fetcher::exchange`](super::Fetcher::exchange).
///
/// It accepts no content coding unless a field says so, and no coding is undone.
#[derive(Clone, Debug)]
pub struct FetchRequest {
    /// The URL to request.
    pub url: FetchUrl,
    /// Fields to send; one that is sent anyway, such as `Accept`, is replaced. Default: none.
    pub headers: HeaderMap,
    /// How many octets of the body are read. Default: [`LiveRobots::MAX_FILE`].
    pub most: u64,
    /// The address of the server that named the URL: one at a public address must not lead to the loopback or to a private network.
    /// Default: none.
    pub led_from: Option<IpAddr>,
}

/// The answer of a server to a [`FetchRequest`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FetchAnswer {
    /// The address that was connected to, where the system says so.
    pub address: Option<SocketAddr>,
    /// The status.
    pub status: StatusCode,
    /// The fields.
    pub headers: HeaderMap,
    /// The body as it was sent, codings included; that of a redirect is not read.
    pub body: Vec<u8>,
    /// Whether there was more than was to be read.
    pub is_cut: bool,
}

impl FetchRequest {
    /// One for a URL, with the defaults.
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
    /// Of a body that was read an octet further than it may be long, if there was one more.
    fn new(response: Response<Vec<u8>>, most: u64, address: Option<SocketAddr>) -> Self {
        let (head, mut body) = response.into_parts();
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let is_cut = body.len() > most;
        body.truncate(most);
        Self { address, status: head.status, headers: head.headers, body, is_cut }
    }
}
