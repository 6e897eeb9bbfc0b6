//! The outcome of a request for a robots.txt, of a crawler or of a site.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::header::{CONTENT_TYPE, ETAG, LAST_MODIFIED, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::error::{FetchError, FetchErrorKind};
use super::freshness::{Freshness, seconds};
use super::url::FetchUrl;

/// The outcome of a request for a robots.txt, after redirects. [`CrawlerCache`](super::CrawlerCache) says what it means to a
/// crawler.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum FetchOutcome {
    /// 2xx, with a body.
    Found(Found),
    /// 304: the known copy still holds.
    NotModified(Freshness),
    /// More redirects than are followed, or one that leads nowhere.
    Redirected,
    /// Any other status.
    Status {
        /// The status.
        status: StatusCode,
        /// How long this may be believed.
        freshness: Freshness,
        /// How long the server wants to be left alone (`Retry-After`).
        retry_after: Option<Duration>,
    },
    /// There was no response, or none that could be read.
    Failed(FetchError),
}

/// A body that was found.
#[derive(Clone, Debug)]
pub struct Found {
    pub(super) bytes: Arc<[u8]>,
    pub(super) status: StatusCode,
    pub(super) freshness: Freshness,
    pub(super) validators: Validators,
    pub(super) content_type: Option<HeaderValue>,
}

/// The validators by which a server finds out whether its file has changed (RFC 9110, section 8.8).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    etag: Option<HeaderValue>,
    last_modified: Option<HeaderValue>,
    /// Where they come from, if it is known: another resource may use the same ones.
    pub(super) of: Option<FetchUrl>,
}

impl FetchOutcome {
    /// Reads an answer that was received by other means than a [`Fetcher`](super::Fetcher). A redirect is
    /// [`FetchOutcome::Redirected`]: follow five of them first.
    #[must_use]
    pub fn of(status: StatusCode, headers: &HeaderMap, body: impl Into<Arc<[u8]>>, now: SystemTime) -> Self {
        let freshness = Freshness::of(headers);
        if status.is_success() {
            let validators = Validators::of(headers);
            let content_type = headers.get(CONTENT_TYPE).cloned();
            Self::Found(Found { bytes: body.into(), status, freshness, validators, content_type })
        } else if status == StatusCode::NOT_MODIFIED {
            Self::NotModified(freshness)
        } else if status.is_redirection() {
            Self::Redirected
        } else if status.is_informational() || status.as_u16() >= 600 {
            // Neither is the end of anything (RFC 9110, section 15).
            Self::Failed(FetchError::with_cause(FetchErrorKind::BadResponse, format!("the status is {status}")))
        } else {
            Self::Status { status, freshness, retry_after: retry_after(headers, now) }
        }
    }
}

impl Found {
    /// The whole body.
    #[must_use]
    pub const fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// How long it may be used.
    #[must_use]
    pub const fn freshness(&self) -> Freshness {
        self.freshness
    }

    /// The status: 200 or another of success.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// `Content-Type`, as it came.
    #[must_use]
    pub const fn content_type(&self) -> Option<&HeaderValue> {
        self.content_type.as_ref()
    }

    /// The validators for the next request.
    #[must_use]
    pub const fn validators(&self) -> &Validators {
        &self.validators
    }
}

impl Validators {
    /// Those that were saved with what was fetched from a URL.
    #[cfg(feature = "verify")]
    pub(in crate::source) const fn saved(
        etag: Option<HeaderValue>,
        last_modified: Option<HeaderValue>,
        of: FetchUrl,
    ) -> Self {
        Self { etag, last_modified, of: Some(of) }
    }

    /// Those of an answer.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let first = |name| headers.get(name).cloned();
        Self { etag: first(ETAG), last_modified: first(LAST_MODIFIED), of: None }
    }

    /// The value for `If-None-Match`.
    #[must_use]
    pub const fn etag(&self) -> Option<&HeaderValue> {
        self.etag.as_ref()
    }

    /// The value for `If-Modified-Since`.
    #[must_use]
    pub const fn last_modified(&self) -> Option<&HeaderValue> {
        self.last_modified.as_ref()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }
}

/// Seconds or a date (RFC 9110, section 10.2.3).
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.as_bytes().trim_ascii();
    seconds(value).or_else(|| {
        let date = httpdate::parse_http_date(std::str::from_utf8(value).ok()?).ok()?;
        Some(date.duration_since(now).unwrap_or_default())
    })
}

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
    fn statuses_that_end_nothing_are_failures() {
        for status in [100, 103, 199, 600, 999] {
            let status = StatusCode::from_u16(status).expect("a status");
            let answer = FetchOutcome::of(status, &HeaderMap::new(), *b"", SystemTime::UNIX_EPOCH);
            assert!(matches!(answer, FetchOutcome::Failed(error) if error.kind() == FetchErrorKind::BadResponse));
        }
    }
}
