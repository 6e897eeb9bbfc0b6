//! The message that answers a question.

use bytes::Bytes;
use http::Response;
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use tower_robots::agent::Category;
use tower_robots::layer::{CrawlerRequest, GrpcCode, ROBOTS_VERDICT};
use tower_robots::rules::Access;

use super::messages::{
    CheckResponse, DeniedResponse, HeaderEntry, HeaderOption, HttpStatusCode, Metadata, MetadataEntry, MetadataValue,
    OkResponse, RpcStatus,
};
use crate::decision::request_outcome::RequestOutcome;

/// A field that is set whether it is there or not (`OVERWRITE_IF_EXISTS_OR_ADD`).
const OVERWRITE_OR_ADD: i32 = 2;

/// The request goes on, with the verdict where it is tagged. The client's own verdict does not.
pub(crate) fn allowed(tag: Option<HeaderValue>, metadata: Option<Metadata>) -> CheckResponse {
    // What is to be set is not removed besides: Envoy removes last.
    let mut removed = vec!["robots_verdict".to_owned()];
    let headers = match tag {
        Some(tag) => vec![header(&ROBOTS_VERDICT, tag.as_bytes())],
        None => {
            removed.push(ROBOTS_VERDICT.as_str().to_owned());
            Vec::new()
        }
    };
    CheckResponse {
        status: Some(RpcStatus { code: 0 }),
        denied_response: None,
        ok_response: Some(OkResponse { headers, headers_to_remove: removed }),
        dynamic_metadata: metadata,
    }
}

/// The request is answered with this response.
pub(crate) fn denied(response: Response<Bytes>, metadata: Option<Metadata>) -> CheckResponse {
    let (head, body) = response.into_parts();
    CheckResponse {
        status: Some(RpcStatus { code: GrpcCode::PermissionDenied.number().into() }),
        denied_response: Some(DeniedResponse {
            status: Some(HttpStatusCode { code: head.status.as_u16().into() }),
            headers: headers(&head.headers),
            body,
        }),
        ok_response: None,
        dynamic_metadata: metadata,
    }
}

/// What the proxy can write to its own log about a crawler's request, in the words of the log of requests.
pub(crate) fn metadata(site: &str, request: &CrawlerRequest) -> Metadata {
    let mut fields = Vec::with_capacity(10);
    let mut text = |key: &str, value: Option<&str>| {
        if let Some(value) = value {
            fields.push(entry(key, MetadataValue { number: None, text: Some(value.to_owned()) }));
        }
    };
    text("site", Some(site));
    text("agent", Some(request.name()));
    text("category", request.agent().category().map(Category::as_str));
    text("identity", Some(request.identity().map_or("claimed", |identity| identity.outcome().as_str())));
    text("decision", Some(request.access().unwrap_or(Access::Allow).as_str()));
    text("action", Some(RequestOutcome::of(request.action(), request.reason()).as_str()));
    text("reason", Some(request.reason().as_str()));
    text("rule", request.rule());
    text("robots_hash", Some(&request.hash().short()));
    if let Some(line) = request.line() {
        // Exact up to 2^53.
        fields.push(entry("line", MetadataValue { number: Some(line as f64), text: None }));
    }
    Metadata { fields }
}

fn entry(key: &str, value: MetadataValue) -> MetadataEntry {
    MetadataEntry { key: key.to_owned(), value: Some(value) }
}

/// The fields of a response; the lines of one are joined, because one that is set replaces what is there. Content has the length
/// that it has.
fn headers(fields: &HeaderMap) -> Vec<HeaderOption> {
    let names = fields.keys().filter(|name| **name != CONTENT_LENGTH);
    let joined = |name: &HeaderName| {
        let lines: Vec<_> = fields.get_all(name).iter().map(HeaderValue::as_bytes).collect();
        header(name, &lines.join(&b", "[..]))
    };
    names.map(joined).collect()
}

fn header(name: &HeaderName, value: &[u8]) -> HeaderOption {
    let (key, value) = (name.as_str().to_owned().into(), Bytes::copy_from_slice(value));
    HeaderOption { header: Some(HeaderEntry { key, value, raw_value: Bytes::new() }), append_action: OVERWRITE_OR_ADD }
}
