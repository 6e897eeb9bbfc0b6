//! The client of commands: one request at a time, redirects followed by the rule of the caller.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::HeaderValue;
use http::header::ACCEPT_ENCODING;
use tokio::runtime::{Builder, Runtime};
use tower_robots::live::MAX_FILE;
use tower_robots::source::fetch::{FetchAnswer, FetchError, FetchErrorKind, FetchRequest, FetchUrl, Fetcher};

use super::coding::ACCEPTED_CODINGS;
use super::connect_to::ConnectTo;
use super::retrieval_chain::{ChainEnd, Hop, RetrievalChain};

/// The `User-Agent` of every request; the admin interface of robotsd knows how it begins.
const USER_AGENT: &str = concat!("robotsd/", env!("CARGO_PKG_VERSION"), " (+https://docs.rs/tower-robots)");

/// Redirects that are followed to a robots.txt (RFC 9309, section 2.3.1.2).
const REDIRECTS: usize = 5;

/// Requests of one run: whatever a file names, a site is not flooded.
const MOST_REQUESTS: usize = 500;

/// For a connection, and again for its TLS session.
const CONNECT: Duration = Duration::from_secs(10);

/// How documents are fetched in one run of a command.
#[derive(Clone, Debug)]
pub(crate) struct RetrievalSettings {
    /// How long one request may take; a document takes six at most.
    pub(crate) within: Duration,
    /// Where to connect instead; the first that fits counts.
    pub(crate) connect_to: Vec<ConnectTo>,
    /// A file of certificates (PEM) to trust besides those that the system trusts.
    pub(crate) trusted: Option<PathBuf>,
}

/// What to retrieve, and how far to go.
#[derive(Clone, Debug)]
#[must_use]
pub(crate) struct RetrievalRequest {
    url: FetchUrl,
    most: u64,
    redirects: usize,
    codings: RequestedCodings,
}

/// What a request says about content codings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestedCodings {
    /// That gzip, deflate and brotli are accepted.
    Accepted,
    /// Nothing, as simple crawlers do.
    Unmentioned,
}

/// A client with a thread of its own.
#[derive(Debug)]
pub(crate) struct Retriever {
    fetcher: Fetcher,
    /// Waits on the thread of the caller.
    runtime: Runtime,
    requests: AtomicUsize,
}

impl Default for RetrievalSettings {
    fn default() -> Self {
        Self { within: Duration::from_secs(30), connect_to: Vec::new(), trusted: None }
    }
}

impl RetrievalRequest {
    /// A robots.txt, or another document under the same bounds: 8 MiB, five redirects to any host.
    pub(crate) const fn new(url: FetchUrl) -> Self {
        Self { url, most: MAX_FILE, redirects: REDIRECTS, codings: RequestedCodings::Accepted }
    }

    /// How many octets are read of the body as it is sent.
    pub(crate) const fn at_most(mut self, octets: u64) -> Self {
        self.most = octets;
        self
    }

    pub(crate) const fn codings(mut self, codings: RequestedCodings) -> Self {
        self.codings = codings;
        self
    }
}

impl Retriever {
    /// # Errors
    ///
    /// If the system gives no thread, or the certificates to trust cannot be read.
    pub(crate) fn new(settings: &RetrievalSettings) -> io::Result<Self> {
        let rules = settings.connect_to.clone();
        let mut builder = Fetcher::builder()
            .user_agent(HeaderValue::from_static(USER_AGENT))
            .connect_within(CONNECT.min(settings.within))
            .fetch_within(settings.within)
            .connect_to(move |host, port| rules.iter().find_map(|rule| rule.place(host, port)));
        if let Some(path) = &settings.trusted {
            let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
            builder = builder.trust(&std::fs::read(path).map_err(named)?).map_err(named)?;
        }
        let runtime = Builder::new_current_thread().build()?;
        Ok(Self { fetcher: builder.start()?, runtime, requests: AtomicUsize::new(0) })
    }

    /// Retrieves a document, and waits for it: not for a thread that runs tasks.
    pub(crate) fn retrieve(&self, request: &RetrievalRequest) -> RetrievalChain {
        self.runtime.block_on(self.follow(request))
    }

    async fn follow(&self, request: &RetrievalRequest) -> RetrievalChain {
        let mut hops = Vec::new();
        let mut hop = self.hop(request, request.url.clone(), None).await;
        loop {
            let Some(location) = hop.location() else { return RetrievalChain::new(hops, hop, ChainEnd::Reached) };
            let to = match location.map(|location| hop.url.join(location)) {
                None => Err("it has no Location".to_owned()),
                Some(Err(error)) => Err(error.to_string()),
                Some(Ok(to)) => Ok(to),
            };
            let end = match to {
                Err(why) => ChainEnd::Nowhere(why),
                Ok(to) if to == hop.url || hops.iter().any(|hop: &Hop| hop.url == to) => ChainEnd::Loop(to),
                Ok(_) if hops.len() >= request.redirects => ChainEnd::TooMany,
                Ok(to) => {
                    let next = self.hop(request, to, Some(&hop)).await;
                    hops.push(std::mem::replace(&mut hop, next));
                    continue;
                }
            };
            return RetrievalChain::new(hops, hop, end);
        }
    }

    async fn hop(&self, wanted: &RetrievalRequest, url: FetchUrl, from: Option<&Hop>) -> Hop {
        let mut request = FetchRequest::new(url.clone()).at_most(wanted.most);
        if wanted.codings == RequestedCodings::Accepted {
            request = request.field(ACCEPT_ENCODING, HeaderValue::from_static(ACCEPTED_CODINGS));
        }
        if let Some(address) = from.and_then(|hop| hop.address) {
            request = request.led_from(address.ip());
        }
        let (address, answer) = match self.requests.fetch_add(1, Ordering::Relaxed) {
            MOST_REQUESTS.. => failed(FetchErrorKind::Stopped, format!("there were {MOST_REQUESTS} requests already")),
            _ => {
                let exchange = self.fetcher.exchange(request).await;
                (exchange.address, exchange.answer)
            }
        };
        Hop { url, address, answer }
    }
}

fn failed(kind: FetchErrorKind, cause: String) -> (Option<SocketAddr>, Result<FetchAnswer, FetchError>) {
    (None, Err(FetchError::with_cause(kind, cause)))
}
