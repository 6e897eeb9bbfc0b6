//! Fuzzing entry point for the head of a response and the bytes after the head.

use http::Method;

use super::http1_fast::parse;

/// Checks that a head is accepted only if it declares the length of the body, and that the body
/// never exceeds this length.
pub fn response_head(bytes: &[u8]) {
    for method in [Method::GET, Method::HEAD] {
        let Some(response) = parse(bytes, &method) else { continue };
        let body = response.body();
        let length = body.first.len() as u64 + body.left;
        let announced = response.headers().get("content-length").and_then(|value| value.to_str().ok()?.parse().ok());
        assert!(length == 0 || announced == Some(length), "a body that is not as long as announced");
        assert!(!response.headers().contains_key("transfer-encoding") && !response.status().is_informational());
        assert!(!body.is_surplus || body.left == 0, "bytes beyond a body that is not complete");
    }
}
