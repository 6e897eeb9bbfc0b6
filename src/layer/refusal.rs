//! The response to a refused request: it quotes the rule of the site's own robots.txt.

use std::fmt::Write as _;

use bytes::Bytes;
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{Method, Response, StatusCode};
use serde_json::json;

use super::event::Event;
use super::grpc::GrpcCode;
use crate::agent::{Identity, IdentityMethod};
use crate::policy::Reason;
use crate::rules::PathForm;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Fields of a refusal, and room for one that a proxy adds.
const FIELDS: usize = 6;

// Constants are checked when they are compiled, and not for each refusal.
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const VARIES: HeaderValue = HeaderValue::from_static("User-Agent, Accept");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// Octets of nearly every refusal as text.
const TEXT: usize = 384;

/// Characters of a rule in the message of a call.
const MAX_RULE: usize = 256;

impl<'a> Event<'a> {
    /// The request's `X-Request-Id`, where it is a plain word of at most 128 characters.
    pub fn request_id(&self) -> Option<&'a str> {
        let id = self.request.headers.get(X_REQUEST_ID)?.to_str().ok()?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        (!id.is_empty() && id.len() <= 128 && id.bytes().all(plain)).then_some(id)
    }

    /// The default refusal: 403 with problem details (RFC 9457) where the client accepts JSON by name, else with text. Of a
    /// request that came too soon it is [`limited`](Self::limited).
    ///
    /// A [call of gRPC](super::OriginalRequest::is_grpc_call) gets `PERMISSION_DENIED`, with the rule in its message: status 200, fields and no body.
    pub fn refusal(&self) -> Response<Bytes> {
        if self.record.reason == Reason::Limited {
            return self.limited();
        }
        self.refusal_with_status(StatusCode::FORBIDDEN)
    }

    /// The default refusal with another status, such as 402, 410 or 451, which text and problem details name. A call of gRPC gets
    /// `PERMISSION_DENIED` all the same: gRPC has no status for these.
    pub fn refusal_with_status(&self, status: StatusCode) -> Response<Bytes> {
        if self.request.is_grpc_call() {
            return grpc_response(GrpcCode::PermissionDenied, &self.grpc_message());
        }
        let (kind, body) = if self.wants_json() { (PROBLEM, self.problem(status)) } else { (PLAIN, self.text(status)) };
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = status;
        *response.headers_mut() = HeaderMap::with_capacity(FIELDS);
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response.headers_mut().insert(VARY, VARIES);
        response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
        response
    }

    /// Whether the client accepts JSON by name. `*/*` does not count: every crawler sends it.
    pub fn wants_json(&self) -> bool {
        let types = self
            .request
            .headers
            .get_all(ACCEPT)
            .into_iter()
            .flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        types.filter_map(|range| range.split(|byte| *byte == b';').next()).map(<[u8]>::trim_ascii).any(|range| {
            [&b"application/problem+json"[..], b"application/json"].iter().any(|json| range.eq_ignore_ascii_case(json))
        })
    }

    fn text(&self, status: StatusCode) -> String {
        let record = self.record;
        let mut out = String::with_capacity(TEXT);
        out.push_str(status.as_str());
        if let Some(title) = status.canonical_reason() {
            out.push(' ');
            out.push_str(title);
        }
        out.push_str("\n\n");
        self.push_detail(&mut out);
        out.push('\n');
        if let (Some(group), Some(rule), Some(line)) = (&record.group, &record.rule, record.line)
            && record.is_disallowed()
        {
            out.push_str("\n    User-agent: ");
            push_printable(&mut out, group);
            match record.group_size.saturating_sub(1) {
                0 => out.push('\n'),
                1 => out.push_str("        (and one other)\n"),
                others => out.extend(["        (and ", &others.to_string(), " others)\n"]),
            }
            out.push_str("    Disallow: ");
            push_printable(&mut out, rule);
            out.extend(["        (line ", &line.to_string(), ")\n"]);
            if record.form != PathForm::Standard {
                let _ = writeln!(out, "\nThe path was read otherwise than it is spelled (form={}).", record.form);
            }
        }
        out.push_str("\nThe rules are at /robots.txt.\n");
        if let Some(id) = self.request_id() {
            out.push_str("Request id: ");
            out.push_str(id);
            out.push('\n');
        }
        out
    }

    fn problem(&self, status: StatusCode) -> String {
        let record = self.record;
        let mut detail = String::new();
        self.push_detail(&mut detail);
        let mut problem = json!({
            "type": "about:blank",
            "title": status.canonical_reason().unwrap_or(status.as_str()),
            "status": status.as_u16(),
            "detail": detail,
            "agent": record.name(),
            "identity": record.identity.map_or("claimed", |identity| identity.outcome()),
            "group": record.group,
            "rule": record.rule,
            "line": record.line,
            "form": record.form.as_str(),
            "robots": "/robots.txt",
        });
        if let Some(id) = self.request_id() {
            problem["request_id"] = id.into();
        }
        format!("{problem}\n")
    }

    /// The refusal in a line.
    fn grpc_message(&self) -> String {
        let record = self.record;
        let mut out = String::with_capacity(TEXT);
        self.push_detail(&mut out);
        if let (Some(rule), Some(line)) = (&record.rule, record.line)
            && record.is_disallowed()
        {
            out.push_str(" Disallow: ");
            push_printable(&mut out, &rule.chars().take(MAX_RULE).collect::<String>());
            let _ = write!(out, " (line {line})");
        }
        self.push_request_id(&mut out);
        out
    }

    /// At the end of the message of a call.
    pub(super) fn push_request_id(&self, out: &mut String) {
        if let Some(id) = self.request_id() {
            let _ = write!(out, " (request id {id})");
        }
    }

    fn push_detail(&self, out: &mut String) {
        let record = self.record;
        if record.reason == Reason::Impostor {
            // Which address or key would have done is no business of an impostor's.
            let is_signed = record.identity.and_then(Identity::method) == Some(IdentityMethod::Signature);
            out.push_str(if is_signed {
                "The signature of the request is not valid"
            } else {
                "The request is not from "
            });
            if !is_signed {
                push_printable(out, record.claimed_name().unwrap_or("the crawler that it names"));
                out.push_str(", which it claims to be");
            }
            out.push('.');
            if !record.is_disallowed() {
                return;
            }
            out.push(' ');
        }
        out.push_str("The robots.txt");
        if let Some(host) = self.request.host() {
            out.push_str(" of ");
            push_printable(out, host);
        }
        out.push_str(" does not let ");
        match record.claimed_name() {
            Some(name) => push_printable(out, name),
            None => out.push_str("this client"),
        }
        out.push_str(" fetch this path.");
    }
}

/// The response to a call of gRPC that is this status and nothing else.
pub(super) fn grpc_response(code: GrpcCode, message: &str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.headers_mut() = code.fields(message);
    response
}

/// Completes the response to a refused request, the default one or the application's own.
pub(super) fn complete(response: &mut Response<Bytes>, method: &Method) {
    // A cache that serves a refusal to another client would shut people out.
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, NO_STORE);
    let varies = |value: &HeaderValue| {
        let mut names = value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        *value == VARIES || names.any(|name| name == b"*" || name.eq_ignore_ascii_case(b"user-agent"))
    };
    if !headers.get_all(VARY).into_iter().any(varies) {
        headers.append(VARY, HeaderValue::from_static("User-Agent"));
    }
    if *method == Method::HEAD {
        let length = response.body().len();
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
        *response.body_mut() = Bytes::new();
    }
}

/// Control characters would let a name forge lines of the text, or send commands to a terminal.
pub(super) fn push_printable(out: &mut String, text: &str) {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        out.push_str(text);
    } else {
        out.extend(text.chars().map(|char| if char.is_control() { char::REPLACEMENT_CHARACTER } else { char }));
    }
}
