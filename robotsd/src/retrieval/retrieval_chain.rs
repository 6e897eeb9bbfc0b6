//! The steps of a retrieval, from the URL that was wanted to what came of it.

use std::fmt;
use std::net::SocketAddr;

use http::HeaderMap;
use http::header::LOCATION;
use tower_robots::source::fetch::{FetchAnswer, FetchError, FetchUrl};

/// One request and what came of it.
#[derive(Debug)]
pub(crate) struct Hop {
    pub(crate) url: FetchUrl,
    /// The address that was connected to; none where there was no connection.
    pub(crate) address: Option<SocketAddr>,
    pub(crate) answer: Result<FetchAnswer, FetchError>,
}

/// Why a chain ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChainEnd {
    /// The last hop is an answer that is no redirect, or no answer at all.
    Reached,
    /// It is a redirect, and one more than is followed.
    TooMany,
    /// It leads to a URL of the chain.
    Loop(FetchUrl),
    /// It has no `Location`, or one that cannot be fetched: this is why.
    Nowhere(String),
}

/// Every hop of a retrieval; at least one.
#[derive(Debug)]
pub(crate) struct RetrievalChain {
    hops: Vec<Hop>,
    last: Hop,
    end: ChainEnd,
}

impl Hop {
    /// The redirect's target as the server wrote it; none where this is no redirect that is followed.
    pub(super) fn location(&self) -> Option<Option<&[u8]>> {
        let answer = self.answer.as_ref().ok()?;
        matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308)
            .then(|| answer.headers().get(LOCATION).map(|location| location.as_bytes()))
    }
}

impl RetrievalChain {
    pub(super) const fn new(hops: Vec<Hop>, last: Hop, end: ChainEnd) -> Self {
        Self { hops, last, end }
    }

    /// Every hop, the last one included.
    pub(crate) fn hops(&self) -> impl Iterator<Item = &Hop> {
        self.hops.iter().chain([&self.last])
    }

    /// How many redirects were followed.
    pub(crate) fn redirects(&self) -> usize {
        self.hops.len()
    }

    /// The URL that was wanted.
    pub(crate) fn url(&self) -> &FetchUrl {
        &self.hops.first().unwrap_or(&self.last).url
    }

    pub(crate) const fn last(&self) -> &Hop {
        &self.last
    }

    pub(crate) const fn end(&self) -> &ChainEnd {
        &self.end
    }

    /// The answer at the end, if that is what it ends with, whatever its status.
    pub(crate) fn answer(&self) -> Option<&FetchAnswer> {
        self.last.answer.as_ref().ok().filter(|_| self.end == ChainEnd::Reached)
    }

    /// What went wrong, beyond the kind of the answer.
    pub(crate) fn detail(&self) -> Option<String> {
        match (&self.end, &self.last.answer) {
            (ChainEnd::Loop(to), _) => Some(format!("{} leads back to {to}", self.last.url)),
            (ChainEnd::Nowhere(why), _) => Some(format!("the redirect of {}: {why}", self.last.url)),
            (ChainEnd::Reached, Err(error)) => Some(error.to_string()),
            (ChainEnd::TooMany, _) | (ChainEnd::Reached, Ok(_)) => None,
        }
    }

    /// The fields of the answer at the end.
    pub(crate) fn headers(&self) -> Option<&HeaderMap> {
        self.answer().map(FetchAnswer::headers)
    }
}

/// As in `http://example.com/robots.txt -> https://example.com/robots.txt`.
impl fmt::Display for RetrievalChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for hop in &self.hops {
            write!(f, "{} -> ", hop.url)?;
        }
        write!(f, "{}", self.last.url)
    }
}
