//! One request and its answer as they are, for programs that show people how a server answers.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use http::header::{ACCEPT, CONNECTION, HOST, HeaderName, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::Empty;

use super::outcome::{FetchError, FetchErrorKind};
use super::url::FetchUrl;
use crate::live::MAX_FILE;

/// A GET for one URL, for [`Fetcher::exchange`](super::Fetcher::exchange).
///
/// It accepts no content coding unless a field says so, and no coding is undone.
#[derive(Clone, Debug)]
#[must_use]
pub struct FetchRequest {
    pub(super) url: FetchUrl,
    fields: HeaderMap,
    pub(super) most: u64,
    /// The address of the server that named the URL.
    pub(super) led_from: Option<IpAddr>,
}

/// What a server sent for a [`FetchRequest`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FetchAnswer {
    /// The status.
    pub status: StatusCode,
    /// The fields.
    pub headers: HeaderMap,
    /// The body as it was sent, codings included; that of a redirect is not read.
    pub body: Vec<u8>,
    /// Whether there was more than was to be read.
    pub is_cut: bool,
}

/// What came of a [`FetchRequest`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FetchExchange {
    /// The address that was connected to; `None` where no connection could be made.
    pub address: Option<SocketAddr>,
    /// What the server sent, or why that is not known.
    pub answer: Result<FetchAnswer, FetchError>,
}

impl FetchRequest {
    /// One for a URL.
    pub fn new(url: FetchUrl) -> Self {
        Self { url, fields: HeaderMap::new(), most: MAX_FILE, led_from: None }
    }

    /// Sends a field; one that is sent anyway, such as `Accept`, is replaced.
    pub fn field(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.fields.insert(name, value);
        self
    }

    /// How many octets of the body are read. Default: [`MAX_FILE`].
    pub const fn at_most(mut self, octets: u64) -> Self {
        self.most = octets;
        self
    }

    /// Says that a server at this address named the URL: one at a public address must not lead to the loopback or to a private
    /// network.
    pub const fn led_from(mut self, address: IpAddr) -> Self {
        self.led_from = Some(address);
        self
    }

    pub(super) fn head(&self, user_agent: &HeaderValue) -> Result<Request<Empty<Bytes>>, FetchError> {
        let request = Request::get(self.url.target().as_str())
            .header(HOST, self.url.authority())
            .header(USER_AGENT, user_agent)
            .header(ACCEPT, "text/plain, */*;q=0.5")
            .header(CONNECTION, "close");
        let request = request.body(Empty::new());
        let mut request = request.map_err(|error| FetchError::with_cause(FetchErrorKind::Redirect, error))?;
        for (name, value) in &self.fields {
            request.headers_mut().insert(name, value.clone());
        }
        Ok(request)
    }
}

impl FetchAnswer {
    /// Of a body that was read an octet further than it may be long, if there was one more.
    pub(super) fn new(response: Response<Vec<u8>>, most: u64) -> Self {
        let (head, mut body) = response.into_parts();
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let is_cut = body.len() > most;
        body.truncate(most);
        Self { status: head.status, headers: head.headers, body, is_cut }
    }
}
