//! The outcome of a request for a robots.txt.

use std::error::Error;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::header::{CONTENT_ENCODING, CONTENT_TYPE, ETAG, LAST_MODIFIED, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use robots_core::keyword_enum;

use super::freshness::{Freshness, seconds};
use super::url::FetchUrl;

/// The outcome of a request for a robots.txt, after redirects were followed.
/// [`CrawlerCache`](super::CrawlerCache) decides what the outcome permits a crawler to fetch. The
/// types `Freshness` and `Validators` are in the module `internals`, which is not stable.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum FetchOutcome {
    /// A 2xx response with a body.
    #[non_exhaustive]
    Found {
        /// The body of the response. [`Fetcher::fetch`](super::Fetcher::fetch) may have truncated
        /// it.
        bytes: Arc<[u8]>,
        /// The status of the response: 200 or another 2xx.
        status: StatusCode,
        /// How long the body may be used.
        freshness: Freshness,
        /// The validators for the next request.
        validators: Validators,
        /// The `Content-Type` field as it was received.
        content_type: Option<HeaderValue>,
    },
    /// A 304 response: the copy that the client already has is still valid.
    NotModified(Freshness),
    /// Too many redirects, or a redirect without a valid target.
    Redirected,
    /// A response with any other status.
    Status {
        /// The status code of the response.
        status: StatusCode,
        /// How long this response may be used.
        freshness: Freshness,
        /// The pause that the server requests (`Retry-After`).
        retry_after: Option<Duration>,
    },
    /// There was no response, or the response could not be read.
    Failed(FetchError),
}

/// Values that a client sends back to a server, which then responds with 304 if the file has not
/// changed (RFC 9110, section 8.8).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Validators {
    /// The `ETag` of the response, for `If-None-Match`.
    pub etag: Option<HeaderValue>,
    /// The `Last-Modified` of the response, for `If-Modified-Since`.
    pub last_modified: Option<HeaderValue>,
    /// The URL of the response, if known. The validators must not be sent to other URLs, because
    /// another URL may use the same values for other content.
    pub(in crate::source) of: Option<FetchUrl>,
}

impl FetchOutcome {
    /// Converts a response that another HTTP client has received. If there was no response, use
    /// [`FetchOutcome::Failed`] with the kind of failure instead, such as
    /// [`FetchErrorKind::Timeout`].
    ///
    /// Before you call this function, follow up to five redirects (RFC 9309, section 2.3.1.2). For
    /// a response with status 301, 302, 303, 307 or 308, the outcome is [`FetchOutcome::Failed`],
    /// because the file at the target is unknown. If there are too many redirects, or if a redirect
    /// has no valid target, use [`FetchOutcome::Redirected`] instead.
    ///
    /// A client that decodes the body must remove `Content-Encoding` from `headers`. If the body is
    /// still compressed, the outcome is [`FetchOutcome::Failed`], because its rules are unknown.
    pub fn of(status: StatusCode, headers: &HeaderMap, body: impl AsRef<[u8]>, now: SystemTime) -> Self {
        let freshness = Freshness::of(headers);
        if let Some(coding) = remaining_coding(headers, body.as_ref()).filter(|_| status.is_success()) {
            let cause = format!("the body is still encoded as {coding:?}");
            Self::Failed(FetchError::with_cause(FetchErrorKind::BadResponse, cause))
        } else if status.is_success() {
            let validators = Validators::of(headers);
            let content_type = headers.get(CONTENT_TYPE).cloned();
            Self::Found { bytes: body.as_ref().into(), status, freshness, validators, content_type }
        } else if status == StatusCode::NOT_MODIFIED {
            Self::NotModified(freshness)
        } else if is_redirect(status) {
            let cause = format!("the server answered {status}: the file is at the URL in Location");
            Self::Failed(FetchError::with_cause(FetchErrorKind::Redirect, cause))
        } else if status.is_redirection() {
            Self::Redirected
        } else if status.is_informational() || status.as_u16() >= 600 {
            // The status of a final response is between 200 and 599 (RFC 9110, section 15).
            Self::Failed(FetchError::with_cause(FetchErrorKind::BadResponse, format!("the status is {status}")))
        } else {
            Self::Status { status, freshness, retry_after: retry_after(headers, now) }
        }
    }
}

/// Returns the content coding that the body still has, according to `Content-Encoding` or to the
/// body's first bytes. Some servers send a gzip file without `Content-Encoding`.
fn remaining_coding(headers: &HeaderMap, body: &[u8]) -> Option<String> {
    let is_plain = |coding: &HeaderValue| {
        let coding = coding.as_bytes().trim_ascii();
        coding.is_empty() || coding.eq_ignore_ascii_case(b"identity")
    };
    let named = headers.get_all(CONTENT_ENCODING).into_iter().find(|coding| !is_plain(coding));
    let named = named.map(|coding| String::from_utf8_lossy(coding.as_bytes()).chars().take(64).collect());
    named.or_else(|| body.starts_with(b"\x1F\x8B").then(|| "gzip".to_owned()))
}

/// Reports whether a response with this status is a redirect that clients follow (RFC 9309, section
/// 2.3.1.2).
pub(super) const fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

impl Validators {
    /// Returns the validators of a response.
    pub fn of(headers: &HeaderMap) -> Self {
        let first = |name| headers.get(name).cloned();
        Self { etag: first(ETAG), last_modified: first(LAST_MODIFIED), of: None }
    }

    /// Reports whether there are no validators.
    pub const fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }
}

/// Parses `Retry-After`: seconds or a date (RFC 9110, section 10.2.3).
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.as_bytes().trim_ascii();
    seconds(value).or_else(|| {
        let date = httpdate::parse_http_date(std::str::from_utf8(value).ok()?).ok()?;
        Some(date.duration_since(now).unwrap_or_default())
    })
}

/// The reason why a fetch has returned no valid response.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FetchError {
    /// The kind of failure.
    pub kind: FetchErrorKind,
    /// Address of the server, if the fetch consists of a single request. A fetch that follows
    /// redirects may use several servers, so the address is `None`. The address is also `None` if
    /// no connection was made.
    pub address: Option<SocketAddr>,
    pub(super) cause: Option<Arc<dyn Error + Send + Sync>>,
}

keyword_enum! {
    /// The kind of a failed fetch.
    FetchErrorKind, "the kind of a failed fetch", {
        /// The host name could not be resolved.
        Name = "name",
        /// The connection failed.
        Connect = "connect",
        /// The TLS handshake failed, for example because the certificate is not trusted.
        Tls = "tls",
        /// The time limit was exceeded.
        Timeout = "timeout",
        /// The connection ended before the response was complete.
        Broken = "broken",
        /// The response is not valid HTTP, or cannot be a response to this request.
        BadResponse = "bad-response",
        /// The server sent too many interim responses (1xx) before the final response.
        InterimAnswers = "interim-answers",
        /// A redirect was not followed, because its target is not permitted, or because this fetch
        /// does not follow redirects.
        Redirect = "redirect",
        /// The target of a redirect has a forbidden address, for example a loopback address
        /// although the redirecting server has a public address.
        RedirectAddress = "redirect-address",
        /// The body exceeds [`LiveRobots::MAX_FILE`](crate::live::LiveRobots::MAX_FILE).
        TooLarge = "too-large",
        /// The fetcher was dropped, or the fetch panicked.
        Stopped = "stopped",
    }
}

impl FetchError {
    /// Creates an error of this kind, for crawlers that do not use a [`Fetcher`](super::Fetcher).
    pub const fn new(kind: FetchErrorKind) -> Self {
        Self { kind, address: None, cause: None }
    }

    /// Creates an error with its cause.
    pub fn with_cause(kind: FetchErrorKind, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { cause: Some(Arc::from(cause.into())), ..Self::new(kind) }
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            FetchErrorKind::Name => "the host name cannot be resolved",
            FetchErrorKind::Connect => "cannot connect",
            FetchErrorKind::Tls => "the TLS handshake failed",
            FetchErrorKind::Timeout => "the response did not arrive in time",
            FetchErrorKind::Broken => "the connection ended before the response was complete",
            FetchErrorKind::BadResponse => "the answer cannot be read",
            FetchErrorKind::InterimAnswers => "there are too many interim answers (1xx)",
            FetchErrorKind::Redirect => "the redirect was not followed",
            FetchErrorKind::RedirectAddress => "the redirect leads to a forbidden address",
            FetchErrorKind::TooLarge => "the body exceeds the size limit",
            FetchErrorKind::Stopped => "the fetch was interrupted",
        })?;
        let mut cause = self.cause.as_deref().map(|cause| cause as &dyn Error);
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

/// `source` returns `None`, because the message already includes all causes.
impl Error for FetchError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked_again(value: &'static str) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_static(value));
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        match FetchOutcome::of(StatusCode::SERVICE_UNAVAILABLE, &headers, *b"", now) {
            FetchOutcome::Status { retry_after, .. } => retry_after.map(|after| after.as_secs()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn retry_after_is_a_number_or_a_date() {
        assert_eq!(asked_again("120"), Some(120));
        assert_eq!(asked_again("Tue, 14 Nov 2023 22:13:50 GMT"), Some(30));
        assert_eq!(asked_again("Tue, 14 Nov 2017 22:13:50 GMT"), Some(0));
        assert_eq!(asked_again("later"), None);
    }

    #[test]
    fn a_redirect_that_was_not_followed_is_an_error_if_its_status_can_be_followed() {
        for status in [301, 302, 303, 307, 308] {
            let status = StatusCode::from_u16(status).expect("a status");
            let FetchOutcome::Failed(error) = FetchOutcome::of(status, &HeaderMap::new(), *b"", SystemTime::UNIX_EPOCH)
            else {
                panic!("{status} is not an error");
            };
            assert_eq!(error.kind, FetchErrorKind::Redirect);
            let message = format!(
                "the redirect was not followed: the server answered {status}: the file is at the URL in Location"
            );
            assert_eq!(error.to_string(), message);
        }
        for status in [300, 305, 306, 399] {
            let status = StatusCode::from_u16(status).expect("a status");
            let answer = FetchOutcome::of(status, &HeaderMap::new(), *b"", SystemTime::UNIX_EPOCH);
            assert!(matches!(answer, FetchOutcome::Redirected), "{status} cannot be followed");
        }
    }

    #[test]
    fn interim_and_unknown_status_codes_are_bad_responses() {
        for status in [100, 103, 199, 600, 999] {
            let status = StatusCode::from_u16(status).expect("a status");
            let answer = FetchOutcome::of(status, &HeaderMap::new(), *b"", SystemTime::UNIX_EPOCH);
            assert!(matches!(answer, FetchOutcome::Failed(error) if error.kind == FetchErrorKind::BadResponse));
        }
    }
}
