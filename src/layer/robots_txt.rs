//! Responds to requests for `/robots.txt` (RFC 9309, section 2.3; RFC 9110, sections 8.8 and 13).

use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, LAST_MODIFIED, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use http::{Method, Response, StatusCode};

use super::original::OriginalRequest;
use crate::live::{Content, Snapshot, WhenMissing};

/// Value of `Retry-After`, in seconds, while the robots.txt is not known yet.
const RETRY: HeaderValue = HeaderValue::from_static("30");

/// Initial capacity of a response's header map: room for the fields that this module adds, and for
/// the request id that robotsd adds.
const FIELD_CAPACITY: usize = 7;

const TEXT_PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// Returns the response to a request for `/robots.txt`; `None` if the inner service must answer the
/// request.
pub(super) fn serve(snapshot: &Snapshot, request: &OriginalRequest<'_>) -> Option<Response<Bytes>> {
    let Some(content) = &snapshot.content else {
        return match snapshot.when_missing {
            WhenMissing::Relay => None,
            WhenMissing::Fail | WhenMissing::Unavailable => Some(unavailable()),
        };
    };
    let fields = content.derived(|| FileFields::of(content, snapshot.max_age))?;
    Some(match *request.method {
        Method::GET => file(content, fields, request.headers, content.body().clone()),
        Method::HEAD => {
            let mut response = file(content, fields, request.headers, Bytes::new());
            if response.status() == StatusCode::OK {
                response.headers_mut().insert(CONTENT_LENGTH, content.body().len().into());
            }
            response
        }
        _ => plain(StatusCode::METHOD_NOT_ALLOWED, (ALLOW, HeaderValue::from_static("GET, HEAD"))),
    })
}

/// The header fields of the responses for one version of the robots.txt. Each response clones
/// `found` or `not_modified`, which is faster than hashing the field names again.
struct FileFields {
    /// A strong entity tag. The tag depends only on the bytes of the file, so all replicas send the
    /// same tag (RFC 9110, section 8.8.3).
    etag: HeaderValue,
    found: HeaderMap,
    not_modified: HeaderMap,
}

impl FileFields {
    fn of(content: &Content, max_age: Duration) -> Self {
        // `try_from` cannot fail, because the values consist of printable ASCII.
        let value = |text: String| HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""));
        let etag = value(format!("\"{}\"", content.hash().short()));
        let mut not_modified = HeaderMap::with_capacity(FIELD_CAPACITY);
        // How long caches may use the response (RFC 9111, section 5.2.2).
        not_modified.insert(CACHE_CONTROL, value(format!("public, max-age={}", max_age.as_secs())));
        not_modified.insert(ETAG, etag.clone());
        if let Some(modified) = content.modified {
            not_modified.insert(LAST_MODIFIED, value(httpdate::fmt_http_date(modified)));
        }
        not_modified.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        let mut found = not_modified.clone();
        found.insert(CONTENT_TYPE, TEXT_PLAIN);
        Self { etag, found, not_modified }
    }
}

fn file(content: &Content, fields: &FileFields, request: &HeaderMap, body: Bytes) -> Response<Bytes> {
    let unchanged = is_unchanged(content, &fields.etag, request);
    let mut response = Response::new(if unchanged { Bytes::new() } else { body });
    if unchanged {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    *response.headers_mut() = if unchanged { &fields.not_modified } else { &fields.found }.clone();
    response
}

/// Reports whether the client already has this version of the robots.txt. `If-None-Match` takes
/// precedence over `If-Modified-Since` (RFC 9110, section 13.2.2).
fn is_unchanged(content: &Content, etag: &HeaderValue, request: &HeaderMap) -> bool {
    if request.contains_key(IF_NONE_MATCH) {
        let mut values = request.get_all(IF_NONE_MATCH).into_iter().map(|value| value.as_bytes().trim_ascii());
        return values.any(|value| value == b"*" || entity_tags(value).any(|tag| tag == etag.as_bytes()));
    }
    let Some(modified) = content.modified else { return false };
    // A repeated `If-Modified-Since` is invalid and ignored (RFC 9110, section 13.1.3).
    let mut since = request.get_all(IF_MODIFIED_SINCE).into_iter();
    let (Some(since), None) = (since.next(), since.next()) else { return false };
    let since = since.to_str().ok();
    let Some(since) = since.and_then(|since| httpdate::parse_http_date(since).ok()) else { return false };
    // Fractions of a second are ignored, because HTTP dates have none.
    modified.duration_since(since).map_or(true, |later| later < Duration::from_secs(1))
}

/// Returns the entity tags of a list, with their quotes but without `W/`, because `If-None-Match`
/// does not distinguish weak and strong tags (RFC 9110, section 13.1.2). A comma inside quotes is
/// not a separator.
fn entity_tags(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut quotes = memchr::memchr_iter(b'"', list);
    std::iter::from_fn(move || Some(&list[quotes.next()?..=quotes.next()?]))
}

fn unavailable() -> Response<Bytes> {
    let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, (RETRY_AFTER, RETRY));
    response.headers_mut().insert(CONTENT_TYPE, TEXT_PLAIN);
    *response.body_mut() = Bytes::from_static(b"503 Service Unavailable: robots.txt is not known yet\n");
    response
}

fn plain(status: StatusCode, (name, value): (HeaderName, HeaderValue)) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    response.headers_mut().insert(name, value);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
