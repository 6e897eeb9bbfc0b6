//! The response to a request that comes too soon: 429, with the line of the robots.txt and when to come again.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, VARY, X_CONTENT_TYPE_OPTIONS};
use http::{Response, StatusCode};
use serde_json::json;

use super::event::Event;
use super::grpc::GrpcCode;
use super::refusal::{grpc_response, push_printable};

/// Of draft-ietf-httpapi-ratelimit-headers-11.
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// After how many milliseconds a client of gRPC may try a call again (gRFC A6).
const GRPC_RETRY_PUSHBACK_MS: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// The type of a problem that is a quota (the same draft, section 7).
const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";

impl Event<'_> {
    /// The response to a request that came too soon ([`Reason::Limited`](crate::policy::Reason::Limited)): 429 with
    /// `Retry-After`, `RateLimit` and `RateLimit-Policy`, and with problem details (RFC 9457) where the client accepts JSON by
    /// name, else with text. The time to wait is rounded up to seconds, and has up to a tenth more for some, so that clients
    /// which were refused together do not come back together.
    ///
    /// A [call of gRPC](super::OriginalRequest::is_grpc_call) gets `RESOURCE_EXHAUSTED` with the same fields and `grpc-retry-pushback-ms`: status 200 and no
    /// body.
    pub fn limited(&self) -> Response<Bytes> {
        let limit = self.record.limit.as_deref();
        let least = whole_seconds(limit.map_or(Duration::ZERO, |limit| limit.wait)).max(1);
        let retry_after = whole_seconds(self.record.retry_after()).max(least);
        let mut response = if self.request.is_grpc_call() {
            self.limited_call()
        } else {
            let (kind, body) = if self.wants_json() {
                ("application/problem+json", self.limit_problem(retry_after))
            } else {
                ("text/plain; charset=utf-8", self.limit_text(retry_after))
            };
            let mut response = Response::new(Bytes::from(body));
            *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
            *response.headers_mut() = HeaderMap::with_capacity(9);
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            headers.insert(VARY, HeaderValue::from_static("User-Agent, Accept"));
            headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            response
        };
        let headers = response.headers_mut();
        headers.insert(RETRY_AFTER, retry_after.into());
        let (quota, window) = policy(self.interval());
        let fields = [
            (RATE_LIMIT_POLICY, format!("\"crawl\";q={quota};w={window}")),
            (RATE_LIMIT, format!("\"crawl\";r=0;t={least}")),
        ];
        for (name, value) in fields {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(name, value);
            }
        }
        response
    }

    fn limited_call(&self) -> Response<Bytes> {
        let mut message = String::new();
        self.push_limit(&mut message);
        if let Some(limit) = &self.record.limit {
            let _ = write!(message, " Crawl-delay: {} (line {})", limit.interval.as_secs_f64(), limit.line);
        }
        self.push_request_id(&mut message);
        let mut response = grpc_response(GrpcCode::ResourceExhausted, &message);
        let wait = self.record.retry_after().as_micros().div_ceil(1000).max(1);
        // gRPC reads a signed number of 32 bits.
        response.headers_mut().insert(GRPC_RETRY_PUSHBACK_MS, i32::try_from(wait).unwrap_or(i32::MAX).into());
        response
    }

    /// The interval that the request is held to.
    fn interval(&self) -> Duration {
        self.record.limit.as_ref().map_or(Duration::from_secs(1), |limit| limit.held_to)
    }

    fn limit_text(&self, retry_after: u64) -> String {
        let mut out = "429 Too Many Requests\n\n".to_owned();
        self.push_limit(&mut out);
        out.push('\n');
        if let Some(limit) = &self.record.limit {
            out.push_str("\n    User-agent: ");
            push_printable(&mut out, &limit.group);
            let _ = writeln!(out, "\n    Crawl-delay: {}        (line {})", limit.interval.as_secs_f64(), limit.line);
        }
        let _ = writeln!(out, "\nCome again in {retry_after} s. The rules are at /robots.txt.");
        if let Some(id) = self.request_id() {
            let _ = writeln!(out, "Request id: {id}");
        }
        out
    }

    fn limit_problem(&self, retry_after: u64) -> String {
        let record = self.record;
        let limit = record.limit.as_deref();
        let mut detail = String::new();
        self.push_limit(&mut detail);
        let mut problem = json!({
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
        });
        if let Some(id) = self.request_id() {
            problem["request_id"] = id.into();
        }
        format!("{problem}\n")
    }

    fn push_limit(&self, out: &mut String) {
        out.push_str("The robots.txt");
        if let Some(host) = self.request.host() {
            out.push_str(" of ");
            push_printable(out, host);
        }
        out.push_str(" asks ");
        push_printable(out, self.record.name());
        let held_to = self.interval();
        let asked = self.record.limit.as_ref().map_or(held_to, |limit| limit.interval);
        let _ = write!(out, " for one request in {} s", asked.as_secs_f64());
        if asked > held_to {
            let _ = write!(out, ". It is held to one in {} s", held_to.as_secs_f64());
        }
        out.push_str(", and this one came too soon.");
    }
}

fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// An interval as a quota in a window of whole seconds: 10 s are 1 in 10, half a second is 2 in 1. Milliseconds count.
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
    fn a_window_is_whole_seconds() {
        for (seconds, want) in
            [(10.0, (1, 10)), (0.5, (2, 1)), (1.5, (2, 3)), (0.7, (10, 7)), (30.0, (1, 30)), (0.0, (1000, 1))]
        {
            assert_eq!(policy(Duration::from_secs_f64(seconds)), want, "{seconds}");
        }
    }

    #[test]
    fn seconds_are_rounded_up() {
        for (nanoseconds, want) in [(0, 0), (1, 1), (999_999_999, 1), (1_000_000_000, 1), (1_000_000_001, 2)] {
            assert_eq!(whole_seconds(Duration::from_nanos(nanoseconds)), want);
        }
    }
}
