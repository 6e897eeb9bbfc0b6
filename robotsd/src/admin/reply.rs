//! Answers: text, JSON, metrics or a page, never stored.

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, REFRESH, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use serde::Serialize;
use serde_json::json;

use crate::board::PageReload;

/// An answer to a request.
#[derive(Debug)]
pub(super) struct AdminReply {
    status: StatusCode,
    kind: &'static str,
    body: Bytes,
    allow: Option<&'static str>,
    negotiated: Option<NegotiatedCoding>,
    shown: Shown,
}

/// Whether a browser is to render an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Never,
    AsPage,
    /// Loaded again once a minute. A field that the reader sets, because pages that reload unasked are hard to use for some readers.
    AsReloadedPage,
}

/// Styles and pictures of its own, and nothing else: no scripts, no frames.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; \
                           frame-ancestors 'none'; base-uri 'none'";

/// The content coding of an answer whose form depends on what its client accepts.
#[derive(Clone, Copy, Debug)]
struct NegotiatedCoding(Option<&'static str>);

impl AdminReply {
    /// Lines for people and probes.
    pub(super) fn text(status: StatusCode, body: impl Into<String>) -> Self {
        Self::new(status, "text/plain; charset=utf-8", body.into())
    }

    pub(super) fn json(value: &impl Serialize) -> Self {
        match serde_json::to_string(value) {
            Ok(body) => Self::new(StatusCode::OK, "application/json", body + "\n"),
            Err(error) => Self::error(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        }
    }

    /// A page for browsers.
    pub(super) fn page(body: String, reload: PageReload) -> Self {
        let shown = match reload {
            PageReload::Never => Shown::AsPage,
            PageReload::EveryMinute => Shown::AsReloadedPage,
        };
        Self { shown, ..Self::new(StatusCode::OK, "text/html; charset=utf-8", body) }
    }

    /// The style sheet of a page.
    pub(super) fn css(body: String) -> Self {
        Self { shown: Shown::AsPage, ..Self::new(StatusCode::OK, "text/css; charset=utf-8", body) }
    }

    /// A table for spreadsheets.
    pub(super) fn csv(body: String) -> Self {
        Self::new(StatusCode::OK, "text/csv; charset=utf-8", body)
    }

    /// Why there is no answer.
    pub(super) fn error(status: StatusCode, message: &str) -> Self {
        Self::new(status, "application/json", format!("{}\n", json!({ "error": message })))
    }

    /// The path is known, the method is not for it.
    pub(super) fn wrong_method(allow: &'static str) -> Self {
        let message = format!("this path is for {allow}");
        Self { allow: Some(allow), ..Self::error(StatusCode::METHOD_NOT_ALLOWED, &message) }
    }

    /// What was made as the client prefers it, with its content coding if it has one.
    pub(super) fn negotiated(kind: &'static str, body: Vec<u8>, coding: Option<&'static str>) -> Self {
        Self { negotiated: Some(NegotiatedCoding(coding)), ..Self::new(StatusCode::OK, kind, body) }
    }

    fn new(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Self {
        Self { status, kind, body: body.into(), allow: None, negotiated: None, shown: Shown::Never }
    }

    pub(super) fn into_response(self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::from(self.body));
        *response.status_mut() = self.status;
        let fields = response.headers_mut();
        for (name, value) in [
            (CONTENT_TYPE, self.kind),
            (CACHE_CONTROL, "no-store"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        ] {
            fields.insert(name, HeaderValue::from_static(value));
        }
        if self.shown != Shown::Never {
            // With `no-referrer` a form of the page would have the origin `null`.
            for (name, value) in [
                (CONTENT_SECURITY_POLICY, PAGE_POLICY),
                (REFERRER_POLICY, "same-origin"),
                (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
                (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
            ] {
                fields.insert(name, HeaderValue::from_static(value));
            }
        }
        if self.shown == Shown::AsReloadedPage {
            fields.insert(REFRESH, HeaderValue::from_static("60"));
        }
        if let Some(NegotiatedCoding(coding)) = self.negotiated {
            fields.insert(VARY, HeaderValue::from_static("Accept, Accept-Encoding"));
            if let Some(coding) = coding {
                fields.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
            }
        }
        if let Some(allow) = self.allow {
            fields.insert(ALLOW, HeaderValue::from_static(allow));
        }
        response
    }
}
