//! Answers: text or JSON, never stored, never rendered.

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;
use serde::Serialize;
use serde_json::json;

/// An answer to a request.
#[derive(Debug)]
pub(super) struct AdminReply {
    status: StatusCode,
    kind: &'static str,
    body: String,
    allow: Option<&'static str>,
}

impl AdminReply {
    /// Lines for people and probes.
    pub(super) fn text(status: StatusCode, body: impl Into<String>) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", body: body.into(), allow: None }
    }

    pub(super) fn json(value: &impl Serialize) -> Self {
        match serde_json::to_string(value) {
            Ok(body) => Self { status: StatusCode::OK, kind: "application/json", body: body + "\n", allow: None },
            Err(error) => Self::error(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        }
    }

    /// Why there is no answer.
    pub(super) fn error(status: StatusCode, message: &str) -> Self {
        Self { status, kind: "application/json", body: format!("{}\n", json!({ "error": message })), allow: None }
    }

    /// The path is known, the method is not for it.
    pub(super) fn wrong_method(allow: &'static str) -> Self {
        let message = format!("this path is for {allow}");
        Self { allow: Some(allow), ..Self::error(StatusCode::METHOD_NOT_ALLOWED, &message) }
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
        if let Some(allow) = self.allow {
            fields.insert(ALLOW, HeaderValue::from_static(allow));
        }
        response
    }
}
