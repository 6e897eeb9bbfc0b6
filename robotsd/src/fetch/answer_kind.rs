//! How crawlers interpret the response to a request for a robots.txt.

use std::fmt;
use std::io::{Cursor, Read};

use http::StatusCode;
use serde::Serialize;
use tower_robots::source::fetch::{FetchErrorKind, FetchUrl};

use super::coding::{CodingError, DecodedBody, codings, decode, decoder};
use super::retriever::{ChainEnd, RetrievalChain, RetrievalRequest, Retriever};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    /// 2xx.
    Success(StatusCode),
    RedirectLoop,
    TooManyRedirects,
    /// A redirect whose `Location` field is missing or cannot be followed.
    InvalidRedirect,
    /// 304, although the request had no conditions.
    NotModified,
    /// A 3xx status that is not a redirect to a single URL.
    OtherRedirect(StatusCode),
    /// 404 and 410.
    Missing(StatusCode),
    /// 401 and 403.
    Restricted(StatusCode),
    /// 429.
    TooManyRequests,
    /// Any other 4xx status.
    ClientError(StatusCode),
    /// 5xx.
    ServerError(StatusCode),
    /// An unknown status, or a status that is not final.
    UnknownStatus(StatusCode),
    /// The site's server was reached, but no final response could be read.
    Failed(FetchErrorKind),
    /// No connection to the site's server could be opened.
    Unreachable(FetchErrorKind),
}

/// What a crawler may fetch after its request for robots.txt was answered or has failed. `Display`
/// continues a sentence that begins with "crawlers".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, derive_more::Display)]
pub(crate) enum CrawlerAccess {
    #[serde(rename = "rules")]
    #[display("obey the rules of the file")]
    Rules,
    #[serde(rename = "allow-all")]
    #[display("treat everything as allowed")]
    Everything,
    #[serde(rename = "disallow-all")]
    #[display("treat the whole site as disallowed")]
    Nothing,
}

#[derive(Clone, Copy, Debug, Serialize, derive_more::Display)]
#[display("crawlers {crawlers} (RFC 9309, section {section})")]
pub(crate) struct AnswerReading {
    /// Access for a crawler that follows RFC 9309 and has no earlier copy of the file. Contrary to
    /// the RFC, the status 429 counts as a 5xx status, because crawlers treat both in the same way.
    pub(crate) crawlers: CrawlerAccess,
    pub(crate) section: &'static str,
    /// Behaviour of crawlers that follow other specifications; `None` if it is the same as
    /// `crawlers`.
    pub(crate) other_readings: Option<&'static str>,
}

impl AnswerKind {
    pub(crate) fn of(chain: &RetrievalChain) -> Self {
        let status = match (&chain.last.answer, &chain.end) {
            (_, ChainEnd::Loop(_)) => return Self::RedirectLoop,
            (_, ChainEnd::TooMany) => return Self::TooManyRedirects,
            (_, ChainEnd::InvalidLocation(_)) => return Self::InvalidRedirect,
            (Err(error), ChainEnd::Reached) => {
                // If only the target of a redirect is unreachable, the site's own server was
                // reached, because it sent the redirect.
                let was_reached = chain.redirects() > 0 || chain.last.address().is_some();
                return if was_reached { Self::Failed(error.kind) } else { Self::Unreachable(error.kind) };
            }
            (Ok(answer), ChainEnd::Reached) => answer.status,
        };
        Self::of_status(status)
    }

    /// Classifies the status of a response that is not a followed redirect.
    fn of_status(status: StatusCode) -> Self {
        match status.as_u16() {
            200..=299 => Self::Success(status),
            304 => Self::NotModified,
            300..=399 => Self::OtherRedirect(status),
            404 | 410 => Self::Missing(status),
            401 | 403 => Self::Restricted(status),
            429 => Self::TooManyRequests,
            400..=499 => Self::ClientError(status),
            500..=599 => Self::ServerError(status),
            _ => Self::UnknownStatus(status),
        }
    }

    pub(crate) const fn access(self) -> CrawlerAccess {
        self.reading().crawlers
    }

    pub(crate) const fn reading(self) -> AnswerReading {
        let (crawlers, section, other_readings) = match self {
            Self::Success(StatusCode::OK) => (CrawlerAccess::Rules, "2.3.1.1", None),
            Self::Success(_) => (CrawlerAccess::Rules, "2.3.1.1", Some("crawlers that accept only 200 find no rules")),
            Self::RedirectLoop | Self::TooManyRedirects => {
                (CrawlerAccess::Everything, "2.3.1.2", Some("some crawlers follow more than five redirects"))
            }
            Self::InvalidRedirect | Self::OtherRedirect(_) => (CrawlerAccess::Everything, "2.3.1.2", None),
            Self::Missing(_) | Self::ClientError(_) => (CrawlerAccess::Everything, "2.3.1.3", None),
            Self::Restricted(_) => (CrawlerAccess::Everything, "2.3.1.3", Some(DRAFT_NOTE)),
            Self::TooManyRequests => (
                CrawlerAccess::Nothing,
                "2.3.1.4",
                Some(
                    "according to RFC 9309, every 4xx means that the file is missing; but Google, like this \
                     program, treats 429 like 5xx",
                ),
            ),
            Self::NotModified
            | Self::ServerError(_)
            | Self::UnknownStatus(_)
            | Self::Failed(_)
            | Self::Unreachable(_) => (CrawlerAccess::Nothing, "2.3.1.4", Some(CACHE_NOTE)),
        };
        AnswerReading { crawlers, section, other_readings }
    }
}

const DRAFT_NOTE: &str = "robots that follow the Internet draft of 1996, such as Python's urllib.robotparser, \
    treat the whole site as disallowed";

const CACHE_NOTE: &str = "crawlers with a cached copy may continue to use it; after 30 days without an \
    answer, many treat everything as allowed";

impl fmt::Display for AnswerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Success(status)
            | Self::OtherRedirect(status)
            | Self::Missing(status)
            | Self::Restricted(status)
            | Self::ClientError(status)
            | Self::ServerError(status)
            | Self::UnknownStatus(status) => match status.canonical_reason() {
                Some(_) => write!(f, "{status}"),
                None => write!(f, "{}", status.as_u16()),
            },
            Self::RedirectLoop => f.write_str("redirects in a loop"),
            Self::TooManyRedirects => f.write_str("more than five redirects"),
            Self::InvalidRedirect => f.write_str("a redirect that leads nowhere"),
            Self::NotModified => f.write_str("304 Not Modified, although the request was not conditional"),
            Self::TooManyRequests => f.write_str("429 Too Many Requests"),
            Self::Failed(FetchErrorKind::Timeout) => f.write_str("no complete answer in time"),
            Self::Failed(FetchErrorKind::Tls) => f.write_str("no TLS session"),
            Self::Failed(FetchErrorKind::BadResponse) => f.write_str("an answer that is not HTTP"),
            Self::Failed(FetchErrorKind::Name | FetchErrorKind::Connect) => {
                f.write_str("a redirect to an unreachable address")
            }
            Self::Failed(FetchErrorKind::RedirectAddress) => f.write_str("a redirect to a private address"),
            Self::Failed(_) => f.write_str("no complete answer"),
            Self::Unreachable(FetchErrorKind::Name) => f.write_str("no address"),
            Self::Unreachable(_) => f.write_str("no connection"),
        }
    }
}

#[derive(Debug)]
pub(crate) enum DocumentError {
    /// There was no response, or its status was not 2xx. The string contains details, if any.
    Answer(AnswerKind, Option<String>),
    Coding(CodingError),
}

impl RetrievalChain {
    /// Returns the first `most` bytes of the decoded body of a successful response.
    ///
    /// # Errors
    ///
    /// Returns an error if the last response is not a success, or cannot be decoded.
    pub(crate) fn document(&self, most: usize) -> Result<DecodedBody, DocumentError> {
        let kind = AnswerKind::of(self);
        match (kind, self.answer()) {
            (AnswerKind::Success(_), Some(answer)) => {
                let decoded = decode(&codings(&answer.headers), &answer.body, answer.is_cut, most);
                decoded.map_err(DocumentError::Coding)
            }
            _ => Err(DocumentError::Answer(kind, self.detail())),
        }
    }
}

impl Retriever {
    /// Opens a document like [`RetrievalChain::document`], but decodes it while it is read. Returns
    /// at most `most` + 1 bytes: if the caller gets more than `most` bytes, the document is too
    /// large.
    pub(crate) fn document(&self, url: &FetchUrl, most: usize) -> Result<Box<dyn Read>, DocumentError> {
        let request = RetrievalRequest { most: most as u64 + 1, ..RetrievalRequest::new(url.clone()) };
        let chain = self.retrieve(&request);
        let (kind, detail) = (AnswerKind::of(&chain), chain.detail());
        match (kind, chain.last.answer) {
            (AnswerKind::Success(_), Ok(answer)) => {
                let codings = codings(&answer.headers);
                decoder(&codings, Cursor::new(answer.body), most).map_err(DocumentError::Coding)
            }
            _ => Err(DocumentError::Answer(kind, detail)),
        }
    }
}

/// Formats the error as text that can follow a URL and a colon.
impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer(AnswerKind::Failed(_) | AnswerKind::Unreachable(_), Some(detail)) => f.write_str(detail),
            Self::Answer(kind, Some(detail)) => write!(f, "{kind}: {detail}"),
            Self::Answer(kind, None) => write!(f, "{kind}"),
            Self::Coding(error) => write!(f, "the answer cannot be read: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use http::HeaderMap;
    use tower_robots::source::fetch::{CrawlerCache, CrawlerReading, FetchError, FetchOutcome};

    use super::*;

    fn in_library(outcome: FetchOutcome) -> CrawlerAccess {
        let now = SystemTime::UNIX_EPOCH;
        let mut cache = CrawlerCache::new("https://example.com").unwrap();
        cache.record(outcome, now);
        match cache.permission(now) {
            CrawlerReading::Rules(_) => CrawlerAccess::Rules,
            CrawlerReading::AllowAll => CrawlerAccess::Everything,
            _ => CrawlerAccess::Nothing,
        }
    }

    #[test]
    fn every_status_is_interpreted_in_the_same_way_as_by_the_library() {
        // The fetcher follows redirects, so the statuses of redirects are never interpreted.
        let is_followed = |status: &u16| matches!(status, 301 | 302 | 303 | 307 | 308);
        let statuses = (100..=999).filter(|status| !is_followed(status));
        for status in statuses.filter_map(|status| StatusCode::from_u16(status).ok()) {
            let outcome = FetchOutcome::of(status, &HeaderMap::new(), *b"", SystemTime::UNIX_EPOCH);
            assert_eq!(AnswerKind::of_status(status).access(), in_library(outcome), "{status}");
        }
        for kind in [AnswerKind::RedirectLoop, AnswerKind::TooManyRedirects, AnswerKind::InvalidRedirect] {
            assert_eq!(kind.access(), in_library(FetchOutcome::Redirected), "{kind}");
        }
        for kind in [FetchErrorKind::Name, FetchErrorKind::Tls, FetchErrorKind::Timeout, FetchErrorKind::Broken] {
            let read = in_library(FetchOutcome::Failed(FetchError::new(kind)));
            assert_eq!((AnswerKind::Failed(kind).access(), AnswerKind::Unreachable(kind).access()), (read, read));
        }
    }
}
