//! The meaning for crawlers of an answer to a request for a robots.txt.

use std::fmt;
use std::io::{Cursor, Read};

use http::StatusCode;
use serde::Serialize;
use tower_robots::source::fetch::{FetchErrorKind, FetchUrl};

use super::coding::{CodingError, DecodedBody, codings, decode, decoder};
use super::retriever::{ChainEnd, RetrievalChain, RetrievalRequest, Retriever};

/// The answers that crawlers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    /// 2xx, with a body.
    Success(StatusCode),
    RedirectLoop,
    TooManyRedirects,
    /// A redirect without a `Location` that can be followed.
    LeadsNowhere,
    /// 304 although the request has no condition.
    NotModified,
    /// Another 3xx, which is no redirect to one place.
    NoRedirect(StatusCode),
    /// 404 and 410.
    Missing(StatusCode),
    /// 401 and 403.
    Restricted(StatusCode),
    /// 429.
    TooManyRequests,
    /// Another 4xx.
    ClientError(StatusCode),
    /// 5xx.
    ServerError(StatusCode),
    /// A status that ends no exchange.
    NoStatus(StatusCode),
    /// There was a connection, and no answer that can be read.
    Failed(FetchErrorKind),
    /// There was no connection.
    Unreachable(FetchErrorKind),
}

/// The permission of a crawler after an answer; as text it ends the sentence "crawlers …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, derive_more::Display)]
pub(crate) enum CrawlerAccess {
    /// The paths that the rules allow.
    #[serde(rename = "rules")]
    #[display("go by the rules of the file")]
    Rules,
    #[serde(rename = "allow-all")]
    #[display("take everything as allowed")]
    Everything,
    #[serde(rename = "disallow-all")]
    #[display("take the whole site as disallowed")]
    Nothing,
}

/// The reading of an answer by crawlers.
#[derive(Clone, Copy, Debug, Serialize, derive_more::Display)]
#[display("crawlers {crawlers} (RFC 9309, section {section})")]
pub(crate) struct AnswerReading {
    /// The behaviour of a crawler by RFC 9309 that has no copy of the file from before; that 429 is read as a server
    /// error, which the RFC does not say, is current practice.
    pub(crate) crawlers: CrawlerAccess,
    /// The section of RFC 9309 that says so.
    pub(crate) section: &'static str,
    /// How crawlers differ that go by other pages or by older ones.
    pub(crate) other_readings: Option<&'static str>,
}

impl AnswerKind {
    pub(crate) fn of(chain: &RetrievalChain) -> Self {
        let status = match (&chain.last.answer, &chain.end) {
            (_, ChainEnd::Loop(_)) => return Self::RedirectLoop,
            (_, ChainEnd::TooMany) => return Self::TooManyRedirects,
            (_, ChainEnd::Nowhere(_)) => return Self::LeadsNowhere,
            (Err(error), ChainEnd::Reached) => {
                // The target of a redirect is the server's own choice, so a failure there is no trouble of the way to it.
                let was_reached = chain.redirects() > 0 || chain.last.address().is_some();
                return if was_reached { Self::Failed(error.kind) } else { Self::Unreachable(error.kind) };
            }
            (Ok(answer), ChainEnd::Reached) => answer.status,
        };
        Self::of_status(status)
    }

    /// Of an answer that is no redirect which is followed.
    fn of_status(status: StatusCode) -> Self {
        match status.as_u16() {
            200..=299 => Self::Success(status),
            304 => Self::NotModified,
            300..=399 => Self::NoRedirect(status),
            404 | 410 => Self::Missing(status),
            401 | 403 => Self::Restricted(status),
            429 => Self::TooManyRequests,
            400..=499 => Self::ClientError(status),
            500..=599 => Self::ServerError(status),
            _ => Self::NoStatus(status),
        }
    }

    /// The permission of crawlers then.
    pub(crate) const fn access(self) -> CrawlerAccess {
        self.reading().crawlers
    }

    /// The reading by crawlers.
    pub(crate) const fn reading(self) -> AnswerReading {
        let (crawlers, section, other_readings) = match self {
            Self::Success(StatusCode::OK) => (CrawlerAccess::Rules, "2.3.1.1", None),
            Self::Success(_) => {
                (CrawlerAccess::Rules, "2.3.1.1", Some("crawlers that take only 200 for an answer find no rules"))
            }
            Self::RedirectLoop | Self::TooManyRedirects => {
                (CrawlerAccess::Everything, "2.3.1.2", Some("some crawlers follow more than five redirects"))
            }
            Self::LeadsNowhere | Self::NoRedirect(_) => (CrawlerAccess::Everything, "2.3.1.2", None),
            Self::Missing(_) | Self::ClientError(_) => (CrawlerAccess::Everything, "2.3.1.3", None),
            Self::Restricted(_) => (CrawlerAccess::Everything, "2.3.1.3", Some(DRAFT_READING)),
            Self::TooManyRequests => (
                CrawlerAccess::Nothing,
                "2.3.1.4",
                Some(
                    "RFC 9309 counts every 4xx as no rules at all; Google, and this program, read 429 as a server error",
                ),
            ),
            Self::NotModified | Self::ServerError(_) | Self::NoStatus(_) | Self::Failed(_) | Self::Unreachable(_) => {
                (CrawlerAccess::Nothing, "2.3.1.4", Some(READING_OF_COPIES))
            }
        };
        AnswerReading { crawlers, section, other_readings }
    }
}

const DRAFT_READING: &str = "the Internet draft of 1996, and robots written after it such as Python's urllib.robotparser, \
                             take the whole site as disallowed";

const READING_OF_COPIES: &str = "crawlers that have a copy may go on by it; after 30 days without an answer many take \
                                 everything as allowed";

/// The answer in a few words, as in `503 Service Unavailable`.
impl fmt::Display for AnswerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Success(status)
            | Self::NoRedirect(status)
            | Self::Missing(status)
            | Self::Restricted(status)
            | Self::ClientError(status)
            | Self::ServerError(status)
            | Self::NoStatus(status) => match status.canonical_reason() {
                Some(_) => write!(f, "{status}"),
                None => write!(f, "{}", status.as_u16()),
            },
            Self::RedirectLoop => f.write_str("redirects in a loop"),
            Self::TooManyRedirects => f.write_str("more than five redirects"),
            Self::LeadsNowhere => f.write_str("a redirect that leads nowhere"),
            Self::NotModified => f.write_str("304 Not Modified to a request without a condition"),
            Self::TooManyRequests => f.write_str("429 Too Many Requests"),
            Self::Failed(FetchErrorKind::Timeout) => f.write_str("no whole answer in time"),
            Self::Failed(FetchErrorKind::Tls) => f.write_str("no TLS session"),
            Self::Failed(FetchErrorKind::BadResponse) => f.write_str("an answer that is no HTTP"),
            Self::Failed(FetchErrorKind::Name | FetchErrorKind::Connect) => {
                f.write_str("a redirect to where no server answers")
            }
            Self::Failed(FetchErrorKind::RedirectAddress) => f.write_str("a redirect to a private address"),
            Self::Failed(_) => f.write_str("no whole answer"),
            Self::Unreachable(FetchErrorKind::Name) => f.write_str("no address"),
            Self::Unreachable(_) => f.write_str("no connection"),
        }
    }
}

/// Why a retrieval brought no document.
#[derive(Debug)]
pub(crate) enum DocumentError {
    /// The answer is another one, or there is none; with what is known beyond that.
    Answer(AnswerKind, Option<String>),
    Coding(CodingError),
}

impl RetrievalChain {
    /// The body of a success without its codings, up to a number of octets.
    ///
    /// # Errors
    ///
    /// If the last answer is no success, or cannot be decoded.
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
    /// Opens a document as [`RetrievalChain::document`] has it, decoded while it is read: this many octets, and one more where there
    /// are more.
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

/// As it follows the URL and a colon.
impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Its text says what is broken, and more.
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

    /// The permission of a crawler of the library that begins with this.
    fn in_library(outcome: FetchOutcome) -> CrawlerAccess {
        let now = SystemTime::UNIX_EPOCH;
        let mut cache = CrawlerCache::default();
        cache.record(outcome, now);
        match cache.permission(now) {
            CrawlerReading::Rules(_) => CrawlerAccess::Rules,
            CrawlerReading::AllowAll => CrawlerAccess::Everything,
            _ => CrawlerAccess::Nothing,
        }
    }

    #[test]
    fn every_status_is_read_as_the_library_reads_it() {
        // A redirect is followed before its status is read.
        let is_followed = |status: &u16| matches!(status, 301 | 302 | 303 | 307 | 308);
        let statuses = (100..=999).filter(|status| !is_followed(status));
        for status in statuses.filter_map(|status| StatusCode::from_u16(status).ok()) {
            let outcome = FetchOutcome::of(status, &HeaderMap::new(), *b"", SystemTime::UNIX_EPOCH);
            assert_eq!(AnswerKind::of_status(status).access(), in_library(outcome), "{status}");
        }
        for kind in [AnswerKind::RedirectLoop, AnswerKind::TooManyRedirects, AnswerKind::LeadsNowhere] {
            assert_eq!(kind.access(), in_library(FetchOutcome::Redirected), "{kind}");
        }
        for kind in [FetchErrorKind::Name, FetchErrorKind::Tls, FetchErrorKind::Timeout, FetchErrorKind::Broken] {
            let read = in_library(FetchOutcome::Failed(FetchError::new(kind)));
            assert_eq!((AnswerKind::Failed(kind).access(), AnswerKind::Unreachable(kind).access()), (read, read));
        }
    }
}
