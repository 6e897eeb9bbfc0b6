//! The HTTP client of commands. The client makes one request at a time, follows redirects, and
//! returns all requests of a redirect chain as a [`RetrievalChain`].

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::header::{ACCEPT_ENCODING, LOCATION};
use http::{HeaderMap, HeaderValue};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout_at;
use tower_robots::internals::FetchAnswer;
use tower_robots::live::LiveRobots;
use tower_robots::source::fetch::FetchRequest;
use tower_robots::source::fetch::{FetchError, FetchErrorKind, FetchUrl, Fetcher};

use super::coding::ACCEPTED_CODINGS;
use crate::input;

/// The `User-Agent` of every request. The admin interface of robotsd recognises these requests by
/// the prefix `robotsd/`.
const USER_AGENT: &str = concat!("robotsd/", env!("CARGO_PKG_VERSION"), " (+https://docs.rs/tower-robots)");

/// Maximum number of redirects to follow (RFC 9309, section 2.3.1.2).
const MAX_REDIRECTS: usize = 5;

/// Maximum number of requests per run. The limit protects sites from too many requests if a file
/// contains many URLs.
const MAX_REQUESTS: usize = 500;

/// Time limit of a whole run, as a multiple of the limit for one request. A file may contain many
/// URLs on slow servers, so a whole run needs more time than one request.
pub(crate) const RUN_TIMEOUT_FACTOR: u32 = 4;

/// Time limit for opening a connection, and for its TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Minimum and maximum of `--timeout`.
const TIMEOUT_RANGE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(600));

/// Heading of the options in `--help`. The heading is set for each option, because
/// `next_help_heading` would also apply to the options that follow.
const HEADING: &str = "Fetching a robots.txt by URL";

// Settings for fetching documents in one run of a command. All requests together may take
// [`RUN_TIMEOUT_FACTOR`] times as long as a single request.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RetrievalSettings {
    /// Time limit of a request, such as 10s. Each redirect is a separate request. All requests
    /// together may take four times as long
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time, hide_short_help = true, help_heading = HEADING)]
    timeout: Duration,

    /// Send requests for this host and port to another address and port, such as
    /// example.com:443:192.0.2.7:443, for example before DNS points to a new server; may be
    /// repeated
    ///
    /// The request and the certificate check still use the name in the URL. An empty HOST or first
    /// PORT matches every host or port. If ADDRESS or the second PORT is empty, the original one is
    /// used.
    #[arg(long, value_name = "HOST:PORT:ADDRESS:PORT", hide_short_help = true, help_heading = HEADING)]
    connect_to: Vec<ConnectTo>,

    /// Also trust the certificate authorities in this file (PEM)
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = HEADING)]
    cacert: Option<PathBuf>,
}

fn time(text: &str) -> Result<Duration, String> {
    let (least, most) = TIMEOUT_RANGE;
    match humantime::parse_duration(text) {
        Ok(time) if (least..=most).contains(&time) => Ok(time),
        _ => Err("write a time from 100ms to 10m, such as 30s".to_owned()),
    }
}

#[derive(Clone, Debug)]
pub(crate) struct RetrievalRequest {
    pub(crate) url: FetchUrl,
    /// Maximum number of body bytes to read, before decoding.
    pub(crate) most: u64,
    /// Whether to accept gzip, deflate and brotli. If false, no `Accept-Encoding` is sent, as by
    /// simple crawlers.
    pub(crate) accepts_codings: bool,
}

#[derive(Debug)]
pub(crate) struct Retriever {
    fetcher: Fetcher,
    runtime: Runtime,
    requests: AtomicUsize,
    /// Time when the whole run must be over. `whole` is the time limit of the run.
    over: Instant,
    whole: Duration,
}

impl Default for RetrievalSettings {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(30), connect_to: Vec::new(), cacert: None }
    }
}

impl RetrievalRequest {
    /// Creates a request for a robots.txt, or for another document with the same size limit (8
    /// MiB).
    pub(crate) const fn new(url: FetchUrl) -> Self {
        Self { url, most: LiveRobots::MAX_FILE, accepts_codings: true }
    }
}

impl Retriever {
    /// Creates a client.
    ///
    /// # Errors
    ///
    /// Returns an error if no thread can be started, or if the certificates to trust cannot be
    /// read.
    pub(crate) fn new(settings: &RetrievalSettings) -> io::Result<Self> {
        let rules = settings.connect_to.clone();
        let mut builder = Fetcher::builder()
            .user_agent(HeaderValue::from_static(USER_AGENT))
            .connect_within(CONNECT_TIMEOUT.min(settings.timeout))
            .fetch_within(settings.timeout)
            .connect_to(move |host, port| rules.iter().find_map(|rule| rule.place(host, port)));
        if let Some(path) = &settings.cacert {
            let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
            builder = builder.trust(&input::read_whole(path).map_err(named)?).map_err(named)?;
        }
        let runtime = Builder::new_current_thread().enable_time().build()?;
        let whole = settings.timeout * RUN_TIMEOUT_FACTOR;
        let over = Instant::now() + whole;
        Ok(Self { fetcher: builder.start()?, runtime, requests: AtomicUsize::new(0), over, whole })
    }

    /// Returns the time limit of the whole run if this limit has been reached; otherwise `None`.
    pub(crate) fn is_over(&self) -> Option<Duration> {
        (Instant::now() >= self.over).then_some(self.whole)
    }

    /// Retrieves a document. Blocks the thread, so this function must not be called in async tasks.
    pub(crate) fn retrieve(&self, request: &RetrievalRequest) -> RetrievalChain {
        self.runtime.block_on(self.follow(request))
    }

    async fn follow(&self, request: &RetrievalRequest) -> RetrievalChain {
        let mut hops = Vec::new();
        let mut hop = self.hop(request, request.url.clone(), None).await;
        loop {
            let Some(location) = hop.location() else {
                return RetrievalChain { hops, last: hop, end: ChainEnd::Reached };
            };
            let to = match location.map(|location| hop.url.join(location)) {
                None => Err("the response has no Location".to_owned()),
                Some(Err(error)) => Err(error.to_string()),
                Some(Ok(to)) => Ok(to),
            };
            let end = match to {
                Err(why) => ChainEnd::InvalidLocation(why),
                Ok(to) if to == hop.url || hops.iter().any(|hop: &Hop| hop.url == to) => ChainEnd::Loop(to),
                Ok(_) if hops.len() >= MAX_REDIRECTS => ChainEnd::TooMany,
                Ok(to) => {
                    let next = self.hop(request, to, Some(&hop)).await;
                    hops.push(std::mem::replace(&mut hop, next));
                    continue;
                }
            };
            return RetrievalChain { hops, last: hop, end };
        }
    }

    async fn hop(&self, wanted: &RetrievalRequest, url: FetchUrl, from: Option<&Hop>) -> Hop {
        let led_from = from.and_then(Hop::address).map(|address| address.ip());
        let mut request = FetchRequest { most: wanted.most, led_from, ..FetchRequest::new(url.clone()) };
        if wanted.accepts_codings {
            request.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(ACCEPTED_CODINGS));
        }
        let answer = match self.requests.fetch_add(1, Ordering::Relaxed) {
            MAX_REQUESTS.. => failed(
                FetchErrorKind::Stopped,
                format!("this command has sent {MAX_REQUESTS} requests, which is its limit"),
            ),
            _ => match timeout_at(self.over.into(), self.fetcher.exchange(request)).await {
                Ok(answer) => answer,
                Err(_) => {
                    let whole = humantime::format_duration(self.whole);
                    let cause = format!("the time limit for all requests of this command ({whole}) is reached");
                    failed(FetchErrorKind::Stopped, cause)
                }
            },
        };
        Hop { url, answer }
    }
}

fn failed(kind: FetchErrorKind, cause: String) -> Result<FetchAnswer, FetchError> {
    Err(FetchError::with_cause(kind, cause))
}

#[derive(Debug)]
pub(crate) struct Hop {
    pub(crate) url: FetchUrl,
    pub(crate) answer: Result<FetchAnswer, FetchError>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChainEnd {
    Reached,
    TooMany,
    Loop(FetchUrl),
    /// The last response is a redirect whose `Location` is missing or cannot be followed. The
    /// string contains the reason.
    InvalidLocation(String),
}

#[derive(Debug)]
pub(crate) struct RetrievalChain {
    hops: Vec<Hop>,
    pub(crate) last: Hop,
    pub(crate) end: ChainEnd,
}

impl Hop {
    /// Returns the address of the server; `None` if no connection was opened.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.answer.as_ref().map_or_else(|error| error.address, |answer| answer.address)
    }

    /// Returns the `Location` of a redirect, unparsed. `None` if the response is not a redirect,
    /// and `Some(None)` if a redirect has no `Location`.
    pub(super) fn location(&self) -> Option<Option<&[u8]>> {
        let answer = self.answer.as_ref().ok()?;
        matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308)
            .then(|| answer.headers.get(LOCATION).map(|location| location.as_bytes()))
    }
}

impl RetrievalChain {
    pub(crate) fn hops(&self) -> impl Iterator<Item = &Hop> {
        self.hops.iter().chain([&self.last])
    }

    pub(crate) fn redirects(&self) -> usize {
        self.hops.len()
    }

    pub(crate) fn url(&self) -> &FetchUrl {
        &self.hops.first().unwrap_or(&self.last).url
    }

    /// Returns the final response, which may have any status. Returns `None` if the chain does not
    /// end with a response.
    pub(crate) fn answer(&self) -> Option<&FetchAnswer> {
        self.last.answer.as_ref().ok().filter(|_| self.end == ChainEnd::Reached)
    }

    /// Returns the details of a failure; `None` if there are no details that
    /// [`AnswerKind`](super::AnswerKind) does not contain.
    pub(crate) fn detail(&self) -> Option<String> {
        match (&self.end, &self.last.answer) {
            (ChainEnd::Loop(to), _) => Some(format!("{} leads back to {to}", self.last.url)),
            (ChainEnd::InvalidLocation(why), _) => Some(format!("the redirect of {}: {why}", self.last.url)),
            (ChainEnd::Reached, Err(error)) => Some(error.to_string()),
            (ChainEnd::TooMany, _) | (ChainEnd::Reached, Ok(_)) => None,
        }
    }

    pub(crate) fn headers(&self) -> Option<&HeaderMap> {
        self.answer().map(|answer| &answer.headers)
    }
}

/// `HOST:PORT:ADDRESS:PORT`, as in curl's `--connect-to`: the host and port of matching URLs (empty
/// for any), and the address and port to connect to instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectTo {
    from: (Option<String>, Option<u16>),
    to: (Option<String>, Option<u16>),
}

impl ConnectTo {
    /// Returns the host and port to connect to; `None` if the rule does not apply.
    pub(crate) fn place(&self, host: &str, port: u16) -> Option<(String, u16)> {
        let (of_host, of_port) = &self.from;
        let applies = of_host.as_deref().is_none_or(|of| of == host) && of_port.is_none_or(|of| of == port);
        let (to_host, to_port) = &self.to;
        applies.then(|| (to_host.clone().unwrap_or_else(|| host.to_owned()), to_port.unwrap_or(port)))
    }
}

impl FromStr for ConnectTo {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = split(text);
        let [from_host, from_port, to_host, to_port] = *parts.as_slice() else {
            return Err(format!(
                "the number of parts is {count}, not 4: write HOST:PORT:ADDRESS:PORT, such as \
                 \"example.com:443:192.0.2.7:443\", with IPv6 addresses in brackets",
                count = parts.len()
            ));
        };
        Ok(Self { from: (host(from_host)?, port(from_port)?), to: (host(to_host)?, port(to_port)?) })
    }
}

/// Splits a rule at its colons, except colons in square brackets.
fn split(text: &str) -> Vec<&str> {
    let mut is_inside = false;
    text.split(|char| {
        match char {
            '[' => is_inside = true,
            ']' => is_inside = false,
            _ => {}
        }
        char == ':' && !is_inside
    })
    .collect()
}

/// Parses the host of a rule, in the syntax of URLs. Returns `None` for an empty string, which
/// matches any host.
fn host(text: &str) -> Result<Option<String>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let url: FetchUrl =
        format!("http://{text}/").parse().map_err(|_| format!("{text:?} is neither a host nor an address"))?;
    Ok(Some(url.host().to_owned()))
}

fn port(text: &str) -> Result<Option<u16>, String> {
    match text.parse() {
        _ if text.is_empty() => Ok(None),
        Ok(port) if port != 0 => Ok(Some(port)),
        _ => Err(format!("{text:?} is not a port: write a number from 1 to 65535")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(rule: &str, host: &str, port: u16) -> Option<String> {
        let rule: ConnectTo = rule.parse().expect(rule);
        rule.place(host, port).map(|(host, port)| format!("{host} {port}"))
    }

    #[test]
    fn each_part_of_a_connect_to_rule_may_be_omitted() {
        for (rule, host, port, want) in [
            ("example.com:443:192.0.2.7:8443", "example.com", 443, Some("192.0.2.7 8443")),
            ("example.com:443:192.0.2.7:8443", "example.com", 80, None),
            ("example.com:443:192.0.2.7:8443", "www.example.com", 443, None),
            ("Example.com::[::1]:", "example.com", 80, Some("::1 80")),
            (":443::8443", "a.example", 443, Some("a.example 8443")),
            (":::", "a.example", 1, Some("a.example 1")),
            ("[::1]:80:127.0.0.1:81", "::1", 80, Some("127.0.0.1 81")),
            ("müller.example:80:127.0.0.1:81", "xn--mller-kva.example", 80, Some("127.0.0.1 81")),
        ] {
            assert_eq!(place(rule, host, port).as_deref(), want, "{rule}");
        }
    }

    #[test]
    fn the_error_for_an_invalid_connect_to_rule_contains_the_wrong_part() {
        for (rule, want) in [
            ("", "the number of parts is 1, not 4: write HOST:PORT:ADDRESS:PORT"),
            ("example.com:443:192.0.2.7", "the number of parts is 3"),
            ("example.com:443:::1:80", "the number of parts is 6"),
            ("example.com:0:192.0.2.7:80", "\"0\" is not a port"),
            ("example.com:https:192.0.2.7:80", "\"https\" is not a port"),
            ("a b:80:192.0.2.7:80", "\"a b\" is neither a host nor an address"),
            ("a/b:80:192.0.2.7:80", ""),
        ] {
            match rule.parse::<ConnectTo>() {
                Ok(read) => assert_eq!((rule, read.from.0.as_deref()), ("a/b:80:192.0.2.7:80", Some("a"))),
                Err(error) => assert!(error.starts_with(want), "{rule}: {error}"),
            }
        }
    }
}
