//! The responses to requests that are refused or that come before the crawl delay has passed. These
//! responses quote the deciding line of the site's robots.txt.

use std::fmt::Write as _;
use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::event::Event;
use super::fields::vary_by_agent;
use super::grpc::GrpcCode;
use super::plain_ascii::is_plain_ascii;
use crate::agent::{Identity, IdentityMethod};
use crate::policy::Reason;
use crate::rules::PathForm;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The header fields of refusals. Each refusal clones `PROBLEM` or `PLAIN`, which is faster than
/// hashing the field names again.
static PROBLEM: LazyLock<HeaderMap> = LazyLock::new(|| page_fields("application/problem+json"));
static PLAIN: LazyLock<HeaderMap> = LazyLock::new(|| page_fields("text/plain; charset=utf-8"));

/// Initial capacity of a refusal's header map: room for the fields of every refusal, three rate
/// limit fields, and one field that a proxy adds.
const FIELD_CAPACITY: usize = 8;

const VARY_VALUE: HeaderValue = HeaderValue::from_static("User-Agent, Accept");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// Initial buffer size of a plain-text refusal, in bytes. Nearly all refusals fit into this buffer.
const TEXT_CAPACITY: usize = 384;

/// Maximum length, in characters, of a rule in the status message of a gRPC call.
const MAX_RULE: usize = 256;

/// The rate limit fields of draft-ietf-httpapi-ratelimit-headers-11.
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The delay, in milliseconds, before a gRPC client may retry a call (gRFC A6).
const GRPC_RETRY_PUSHBACK_MS: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// The problem type for an exceeded quota (draft-ietf-httpapi-ratelimit-headers-11, section 7).
const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";

/// A value that can be the response to a refused request: a `Response<Bytes>`, axum's `Html`, or a
/// pair of a status code and a `Response<Bytes>` or `Html`. See
/// [`RobotsLayer::refuse_with`](super::RobotsLayer::refuse_with). The trait is sealed: other crates
/// cannot implement it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a refusal",
    label = "not a refusal",
    note = "a refusal is an `http::Response<Bytes>`, axum's `Html(page)`, or `(StatusCode, Html(page))`"
)]
pub trait IntoRefusal: sealed::Sealed {
    /// Converts the value to a response. If the value is `Html`, or is a response with the status
    /// code 200, the status code becomes `default`. The status code of a pair is kept.
    fn into_refusal(self, default: StatusCode) -> Response<Bytes>;
}

pub(super) mod sealed {
    pub trait Sealed {}
}

impl sealed::Sealed for Response<Bytes> {}

/// Replaces the status code 200, which is not valid for a refusal, with the default status code.
impl IntoRefusal for Response<Bytes> {
    fn into_refusal(mut self, default: StatusCode) -> Self {
        if self.status() == StatusCode::OK {
            *self.status_mut() = default;
        }
        self
    }
}

impl<R: sealed::Sealed> sealed::Sealed for (StatusCode, R) {}

impl<R: IntoRefusal> IntoRefusal for (StatusCode, R) {
    fn into_refusal(self, default: StatusCode) -> Response<Bytes> {
        let (status, response) = self;
        let mut response = response.into_refusal(default);
        *response.status_mut() = status;
        response
    }
}

impl<'a> Event<'a> {
    /// Returns the default HTTP status code of a refusal, which is 200 for a gRPC call (gRPC over
    /// HTTP/2, "Responses").
    pub(super) fn default_status(&self) -> StatusCode {
        if self.request.is_grpc_call() { StatusCode::OK } else { StatusCode::FORBIDDEN }
    }

    /// Returns the request's `X-Request-Id`, if it consists of at most 128 ASCII letters, digits,
    /// `-`, `_` and `.`.
    pub fn request_id(&self) -> Option<&'a str> {
        let id = self.request.headers.get(X_REQUEST_ID)?.as_bytes();
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() | matches!(byte, b'-' | b'_' | b'.');
        // The loop has no early exit, so that the compiler can vectorise it.
        let are_plain = id.iter().fold(true, |all, byte| all & is_plain(byte));
        if id.is_empty() || id.len() > 128 || !are_plain { None } else { std::str::from_utf8(id).ok() }
    }

    /// Returns the default refusal: 403 with problem details (RFC 9457) if the client explicitly
    /// accepts JSON, and with plain text otherwise. For a request that came before the crawl delay
    /// had passed, returns the response of [`limited`](Self::limited).
    ///
    /// A [gRPC call](crate::parts::OriginalRequest::is_grpc_call) is answered with
    /// `PERMISSION_DENIED` and a message that contains the rule. Such a response has status 200 and
    /// no body.
    pub fn refusal(&self) -> Response<Bytes> {
        if self.record.reason == Reason::Limited {
            return self.limited();
        }
        self.refusal_with_status(StatusCode::FORBIDDEN)
    }

    /// Returns the default refusal with another status, such as 402, 410 or 451. The plain text and
    /// the problem details contain this status code. A gRPC call is still answered with
    /// `PERMISSION_DENIED`, because gRPC has no corresponding status codes.
    pub fn refusal_with_status(&self, status: StatusCode) -> Response<Bytes> {
        if self.request.is_grpc_call() {
            return grpc_response(GrpcCode::PermissionDenied, &self.grpc_message());
        }
        match self.wants_json() {
            true => page(status, &PROBLEM, self.problem(status)),
            false => page(status, &PLAIN, self.text(status)),
        }
    }

    /// Reports whether the client explicitly accepts JSON. The type `*/*` does not count, because
    /// most crawlers send it.
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
        let mut out = String::with_capacity(TEXT_CAPACITY);
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
                others => {
                    out.push_str("        (and ");
                    push_number(&mut out, others);
                    out.push_str(" others)\n");
                }
            }
            out.push_str("    Disallow: ");
            push_printable(&mut out, rule);
            out.push_str("        (line ");
            push_number(&mut out, line);
            out.push_str(")\n");
            if record.form != PathForm::Standard {
                let _ = writeln!(
                    out,
                    "\nSome servers read this path in another form, which the rule matches (form={form}).",
                    form = record.form
                );
            }
        }
        out.push_str("\nThe rules are at /robots.txt.\n");
        self.push_id_line(&mut out);
        out
    }

    fn push_id_line(&self, out: &mut String) {
        if let Some(id) = self.request_id() {
            out.extend(["Request id: ", id, "\n"]);
        }
    }

    fn problem(&self, status: StatusCode) -> String {
        let record = self.record;
        let mut detail = String::new();
        self.push_detail(&mut detail);
        self.with_id(json!({
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
        }))
    }

    fn with_id(&self, mut problem: Value) -> String {
        if let Some(id) = self.request_id() {
            problem["request_id"] = id.into();
        }
        format!("{problem}\n")
    }

    fn grpc_message(&self) -> String {
        let record = self.record;
        let mut out = String::with_capacity(TEXT_CAPACITY);
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

    fn push_request_id(&self, out: &mut String) {
        if let Some(id) = self.request_id() {
            let _ = write!(out, " (request id {id})");
        }
    }

    fn push_file(&self, out: &mut String) {
        out.push_str("The robots.txt");
        if let Some(host) = self.request.host() {
            out.push_str(" of ");
            push_printable(out, host);
        }
    }

    fn push_detail(&self, out: &mut String) {
        let record = self.record;
        if record.reason == Reason::Impostor {
            // The response does not mention the accepted addresses or keys, because impostors must
            // not learn them.
            let is_signed = record.identity.and_then(Identity::method) == Some(IdentityMethod::Signature);
            out.push_str(if is_signed {
                "The signature of the request is not valid"
            } else {
                "The request is not from "
            });
            if !is_signed {
                push_printable(out, record.claimed_name().unwrap_or("the crawler that it names"));
                out.push_str(", although it claims to be");
            }
            out.push('.');
            if !record.is_disallowed() {
                return;
            }
            out.push(' ');
        }
        self.push_file(out);
        out.push_str(" does not let ");
        push_printable(out, record.claimed_name().unwrap_or("this client"));
        out.push_str(" fetch this path.");
    }
}

impl Event<'_> {
    /// Returns the response to a request that came before the crawl delay had passed
    /// ([`Reason::Limited`]): 429 with `Retry-After`, `RateLimit` and `RateLimit-Policy`. The body
    /// is problem details (RFC 9457) if the client explicitly accepts JSON, and plain text
    /// otherwise. The time to wait is rounded up to seconds and increased by up to a tenth, so that
    /// clients that are refused at the same time do not all retry at the same time.
    ///
    /// A [gRPC call](crate::parts::OriginalRequest::is_grpc_call) is answered with
    /// `RESOURCE_EXHAUSTED`, the same fields, and `grpc-retry-pushback-ms`. Such a response has
    /// status 200 and no body.
    pub fn limited(&self) -> Response<Bytes> {
        let limit = self.record.limit.as_deref();
        let least = whole_seconds(limit.map_or(Duration::ZERO, |limit| limit.wait)).max(1);
        let retry_after = whole_seconds(self.record.retry_after()).max(least);
        let mut response = if self.request.is_grpc_call() {
            self.limited_grpc_response()
        } else {
            match self.wants_json() {
                true => page(StatusCode::TOO_MANY_REQUESTS, &PROBLEM, self.limit_problem(retry_after)),
                false => page(StatusCode::TOO_MANY_REQUESTS, &PLAIN, self.limit_text(retry_after)),
            }
        };
        let headers = response.headers_mut();
        headers.insert(RETRY_AFTER, retry_after.into());
        let (quota, window) = policy(self.interval());
        let fields = [
            (RATE_LIMIT_POLICY, ["\"crawl\";q=", &quota.to_string(), ";w=", &window.to_string()].concat()),
            (RATE_LIMIT, ["\"crawl\";r=0;t=", &least.to_string()].concat()),
        ];
        for (name, value) in fields {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(name, value);
            }
        }
        response
    }

    fn limited_grpc_response(&self) -> Response<Bytes> {
        let mut message = String::new();
        self.push_limit(&mut message);
        if let Some(limit) = &self.record.limit {
            let _ = write!(message, " Crawl-delay: {} (line {})", limit.interval.as_secs_f64(), limit.line);
        }
        self.push_request_id(&mut message);
        let mut response = grpc_response(GrpcCode::ResourceExhausted, &message);
        let wait = self.record.retry_after().as_micros().div_ceil(1000).max(1);
        // gRPC clients parse this field as a signed 32-bit number.
        response.headers_mut().insert(GRPC_RETRY_PUSHBACK_MS, i32::try_from(wait).unwrap_or(i32::MAX).into());
        response
    }

    fn interval(&self) -> Duration {
        self.record.limit.as_ref().map_or(Duration::from_secs(1), |limit| limit.enforced_interval)
    }

    fn limit_text(&self, retry_after: u64) -> String {
        let mut out = String::with_capacity(TEXT_CAPACITY);
        out.push_str("429 Too Many Requests\n\n");
        self.push_limit(&mut out);
        out.push('\n');
        if let Some(limit) = &self.record.limit {
            out.push_str("\n    User-agent: ");
            push_printable(&mut out, &limit.group);
            let (delay, line) = (seconds(limit.interval), limit.line.to_string());
            out.extend(["\n    Crawl-delay: ", &delay, "        (line ", &line, ")\n"]);
        }
        out.extend(["\nRetry in ", &retry_after.to_string(), " s. The rules are at /robots.txt.\n"]);
        self.push_id_line(&mut out);
        out
    }

    fn limit_problem(&self, retry_after: u64) -> String {
        let record = self.record;
        let limit = record.limit.as_deref();
        let mut detail = String::new();
        self.push_limit(&mut detail);
        self.with_id(json!({
            "type": QUOTA_EXCEEDED,
            "title": "Request cannot be satisfied as assigned quota has been exceeded",
            "status": StatusCode::TOO_MANY_REQUESTS.as_u16(),
            "detail": detail,
            "violated-policies": ["crawl"],
            "agent": record.name(),
            "identity": record.identity.map_or("claimed", |identity| identity.outcome()),
            "group": limit.map(|limit| &limit.group),
            "crawl_delay": limit.map(|limit| limit.interval.as_secs_f64()),
            "line": limit.map(|limit| limit.line),
            "retry_after": retry_after,
            "robots": "/robots.txt",
        }))
    }

    fn push_limit(&self, out: &mut String) {
        self.push_file(out);
        out.push_str(" asks ");
        push_printable(out, self.record.name());
        let enforced_interval = self.interval();
        let asked = self.record.limit.as_ref().map_or(enforced_interval, |limit| limit.interval);
        out.extend([" for one request every ", &seconds(asked), " s"]);
        if asked > enforced_interval {
            out.extend([". One every ", &seconds(enforced_interval), " s is enforced"]);
        }
        out.push_str(", and this request exceeded that rate.");
    }
}

fn page(status: StatusCode, fields: &HeaderMap, body: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    *response.headers_mut() = fields.clone();
    response
}

fn page_fields(kind: &'static str) -> HeaderMap {
    let mut fields = HeaderMap::with_capacity(FIELD_CAPACITY);
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    fields.insert(VARY, VARY_VALUE);
    fields.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    fields.insert(CACHE_CONTROL, NO_STORE);
    fields
}

fn grpc_response(code: GrpcCode, message: &str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.headers_mut() = code.fields(message);
    complete(&mut response);
    response
}

/// Completes a refusal that the application created: adds the fields that the default refusals
/// already have.
pub(super) fn complete(response: &mut Response<Bytes>) {
    // Without `no-store` and `Vary`, a cache could send the refusal to other clients, including
    // browsers.
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, NO_STORE);
    vary_by_agent(headers);
}

/// Removes the response's body if the method is `HEAD`.
pub(super) fn without_body_if_head(mut response: Response<Bytes>, method: &Method) -> Response<Bytes> {
    if *method == Method::HEAD {
        let length = std::mem::take(response.body_mut()).len();
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    response
}

/// Appends a number without allocating a string for it.
fn push_number(out: &mut String, number: usize) {
    if number >= 10 {
        push_number(out, number / 10);
    }
    out.push(char::from(b'0' + (number % 10) as u8));
}

/// Appends a string. Replaces control characters, because they could add lines to the response or
/// control a terminal.
fn push_printable(out: &mut String, text: &str) {
    if is_plain_ascii(text.as_bytes()) {
        out.push_str(text);
    } else {
        out.extend(text.chars().map(|char| if char.is_control() { char::REPLACEMENT_CHARACTER } else { char }));
    }
}

/// Formats seconds, without decimals if the value is a whole number. Most values are whole seconds,
/// which are faster to format.
fn seconds(time: Duration) -> String {
    if time.subsec_nanos() == 0 { time.as_secs().to_string() } else { time.as_secs_f64().to_string() }
}

fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// Converts an interval between requests to a quota and a window in whole seconds. Fractions of a
/// millisecond are ignored. For example, an interval of 10 s is a quota of 1 request in 10 s, and
/// an interval of half a second is a quota of 2 requests in 1 s.
fn policy(interval: Duration) -> (u64, u64) {
    let milliseconds = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX).max(1);
    let (mut a, mut b) = (milliseconds, 1000);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    (1000 / a, milliseconds / a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_limit_policy_has_a_window_of_whole_seconds() {
        let cases = [(10.0, (1, 10)), (0.5, (2, 1)), (1.5, (2, 3)), (0.7, (10, 7)), (30.0, (1, 30)), (0.0, (1000, 1))];
        for (seconds, want) in cases {
            assert_eq!(policy(Duration::from_secs_f64(seconds)), want, "{seconds}");
        }
    }

    #[test]
    fn retry_after_is_rounded_up_to_whole_seconds() {
        for (nanoseconds, want) in [(0, 0), (1, 1), (999_999_999, 1), (1_000_000_000, 1), (1_000_000_001, 2)] {
            assert_eq!(whole_seconds(Duration::from_nanos(nanoseconds)), want);
        }
    }
}
