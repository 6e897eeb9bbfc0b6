//! Values of the header fields that `/robots.txt` is served with: made once for each version and its settings, so that a
//! response only shares them.

use std::time::{Duration, SystemTime};

use bytes::Bytes;

use super::date;
use super::version_hash::VersionHash;

/// `Cache-Control`: any cache may keep the file this long (RFC 9111, section 5.2.2).
pub(super) fn cache_control(max_age: Duration) -> Bytes {
    format!("public, max-age={}", max_age.as_secs()).into()
}

/// `ETag`: strong, and made from the bytes alone, so equal on every replica (RFC 9110, section 8.8.3).
pub(super) fn etag(hash: VersionHash) -> Bytes {
    format!("\"{}\"", hash.short()).into()
}

/// `Content-Length`.
pub(super) fn content_length(body: &[u8]) -> Bytes {
    body.len().to_string().into()
}

/// `Last-Modified`; `None` for a date that HTTP cannot write.
pub(super) fn last_modified(modified: SystemTime) -> Option<Bytes> {
    date::http(modified).map(Into::into)
}
