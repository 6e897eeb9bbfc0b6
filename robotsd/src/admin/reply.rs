//! Responses of the admin interface: text, JSON, metrics or a page. Every response forbids caching.

use std::fmt::Display;

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY, REFRESH,
    VARY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use serde::Serialize;
use serde_json::json;

use crate::report::ChangeReport;

#[derive(Debug)]
pub(super) struct AdminReply {
    response: Box<Response<Full<Bytes>>>,
    /// Why the request failed, completely or in part; `None` if it succeeded.
    pub(super) error: Option<String>,
    pub(super) outcome: ChangeRecord,
}

/// Values before and after a change, for the audit record: `on` or `off`, or the hash of a version.
#[derive(Debug, Default)]
pub(super) struct ChangeRecord {
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

/// Response to a request. `Err` contains the response that refuses a request.
pub(super) type Answer = Result<AdminReply, AdminReply>;

/// Content-Security-Policy of pages. The policy allows only the page's own styles and images, and
/// neither scripts nor frames.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; \
                           frame-ancestors 'none'; base-uri 'none'";

impl AdminReply {
    pub(super) fn text(status: StatusCode, body: impl Into<String>) -> Self {
        Self::new(status, "text/plain; charset=utf-8", body.into())
    }

    pub(super) fn json(value: &impl Serialize) -> Self {
        match serde_json::to_string(value) {
            Ok(body) => Self::new(StatusCode::OK, "application/json", body + "\n"),
            Err(error) => Self::error(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        }
    }

    pub(super) fn change(report: ChangeReport) -> Self {
        let reply = Self::json(&report);
        let (before, after) = match report.enforcement {
            Some(after) => (report.enforcement_before, Some(after)),
            None => (report.before, report.hash),
        };
        Self { outcome: ChangeRecord { before, after }, ..reply }
    }

    /// Returns a page for browsers. With `reload`, the browser reloads the page after that many
    /// seconds. `reload` is set only if the user has followed a reload link, because some people
    /// cannot use a page that reloads itself.
    pub(super) fn page(body: String, reload: Option<&'static str>) -> Self {
        let page = Self::new(StatusCode::OK, "text/html; charset=utf-8", body).rendered();
        reload.into_iter().fold(page, |page, seconds| page.with(REFRESH, seconds))
    }

    pub(super) fn css(body: String) -> Self {
        Self::new(StatusCode::OK, "text/css; charset=utf-8", body).rendered()
    }

    pub(super) fn csv(body: String) -> Self {
        Self::new(StatusCode::OK, "text/csv; charset=utf-8", body)
    }

    pub(super) fn redirect(path: &'static str) -> Self {
        Self::text(StatusCode::FOUND, format!("see {path}\n")).with(LOCATION, path)
    }

    pub(super) fn error(status: StatusCode, message: &str) -> Self {
        let reply = Self::new(status, "application/json", format!("{}\n", json!({ "error": message })));
        Self { error: Some(message.to_owned()), ..reply }
    }

    pub(super) fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub(super) fn bad_request(message: &str) -> Self {
        Self::error(StatusCode::BAD_REQUEST, message)
    }

    pub(super) fn unauthorized(message: &str) -> Self {
        Self::error(StatusCode::UNAUTHORIZED, message).with(WWW_AUTHENTICATE, "Bearer")
    }

    pub(super) fn unavailable(message: &str) -> Self {
        Self::error(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// Returns the response to a request that failed because of a bug, such as a handler that
    /// panicked.
    pub(super) fn internal_error(error: &impl Display) -> Self {
        Self::error(StatusCode::INTERNAL_SERVER_ERROR, &format!("robotsd failed with an internal error: {error}"))
    }

    pub(super) fn wrong_method(allow: &'static str) -> Self {
        Self::error(StatusCode::METHOD_NOT_ALLOWED, &format!("this path allows only {allow}")).with(ALLOW, allow)
    }

    /// Returns a response with media type `kind`. `coding` is the content coding of the body, if
    /// any.
    pub(super) fn negotiated(kind: &'static str, body: Vec<u8>, coding: Option<&'static str>) -> Self {
        let reply = Self::new(StatusCode::OK, kind, body).with(VARY, "Accept, Accept-Encoding");
        coding.into_iter().fold(reply, |reply, coding| reply.with(CONTENT_ENCODING, coding))
    }

    fn new(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Self {
        let mut response = Response::new(Full::from(body.into()));
        *response.status_mut() = status;
        Self { response: Box::new(response), error: None, outcome: ChangeRecord::default() }
            .with(CONTENT_TYPE, kind)
            .with(CACHE_CONTROL, "no-store")
            .with(X_CONTENT_TYPE_OPTIONS, "nosniff")
            .with(CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'")
    }

    /// Adds the header fields for content that browsers render. With the referrer policy
    /// `no-referrer`, browsers would send `Origin: null` when they submit the page's forms, and
    /// robotsd would refuse these requests. The policy is therefore `same-origin`.
    fn rendered(self) -> Self {
        self.with(CONTENT_SECURITY_POLICY, PAGE_POLICY)
            .with(REFERRER_POLICY, "same-origin")
            .with(HeaderName::from_static("cross-origin-opener-policy"), "same-origin")
            .with(HeaderName::from_static("cross-origin-resource-policy"), "same-origin")
    }

    fn with(mut self, name: HeaderName, value: &'static str) -> Self {
        self.response.headers_mut().insert(name, HeaderValue::from_static(value));
        self
    }

    pub(super) fn into_response(self) -> Response<Full<Bytes>> {
        *self.response
    }
}
