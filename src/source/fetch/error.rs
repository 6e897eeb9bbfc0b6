//! Why there is no answer to read.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// A fetch that brought no answer that can be read.
#[derive(Clone, Debug)]
pub struct FetchError {
    kind: FetchErrorKind,
    cause: Option<Arc<dyn Error + Send + Sync>>,
}

/// What went wrong with a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum FetchErrorKind {
    /// The host's name leads to no address.
    Name,
    /// No connection could be made.
    Connect,
    /// No TLS session could be agreed on, or the certificate is not trusted.
    Tls,
    /// It was not over in time.
    Timeout,
    /// The connection ended before the answer did.
    Broken,
    /// The response is not valid HTTP, or does not fit the request.
    BadResponse,
    /// More interim answers (1xx) were sent than any server has a use for, and no answer.
    InterimAnswers,
    /// A redirect leads where it must not be followed.
    Redirect,
    /// A redirect leads to an address of a class that the server that sent it must not lead to: from a public one to the
    /// loopback, for example.
    RedirectAddress,
    /// There is more than [`MAX_FILE`](crate::live::MAX_FILE).
    TooLarge,
    /// The fetcher was dropped, or the fetch was cut short by a fault of ours.
    Stopped,
}

impl FetchErrorKind {
    /// The kind's name in kebab-case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Broken => "broken",
            Self::BadResponse => "bad-response",
            Self::InterimAnswers => "interim-answers",
            Self::Redirect => "redirect",
            Self::RedirectAddress => "redirect-address",
            Self::TooLarge => "too-large",
            Self::Stopped => "stopped",
        }
    }
}

impl FetchError {
    /// An error of a kind, for crawlers that fetch by other means.
    #[must_use]
    pub const fn new(kind: FetchErrorKind) -> Self {
        Self { kind, cause: None }
    }

    /// An error with what caused it.
    #[must_use]
    pub fn with_cause(kind: FetchErrorKind, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind, cause: Some(Arc::from(cause.into())) }
    }

    /// What went wrong.
    #[must_use]
    pub const fn kind(&self) -> FetchErrorKind {
        self.kind
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            FetchErrorKind::Name => "the name of the host leads to no address",
            FetchErrorKind::Connect => "no connection could be made",
            FetchErrorKind::Tls => "no TLS session could be agreed on",
            FetchErrorKind::Timeout => "there was no whole answer in time",
            FetchErrorKind::Broken => "the connection ended before the answer did",
            FetchErrorKind::BadResponse => "the answer cannot be read",
            FetchErrorKind::InterimAnswers => "there are too many interim answers (1xx)",
            FetchErrorKind::Redirect => "the redirect is not followed",
            FetchErrorKind::RedirectAddress => "the redirect leads to an address that it must not lead to",
            FetchErrorKind::TooLarge => "there is more than may be fetched",
            FetchErrorKind::Stopped => "the fetch was cut short",
        })?;
        let mut cause = self.cause.as_deref().map(|cause| cause as &dyn Error);
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

/// The causes are part of the message, so that one line of a log has them all.
impl Error for FetchError {}
