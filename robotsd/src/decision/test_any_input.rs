//! Fuzzing entry points for proxies' decision requests.

use bytes::Bytes;
use http::Response;

pub use super::ext_authz::test_any_input::check_request;
use super::preset::{X_ORIGINAL_METHOD, X_ORIGINAL_URI, X_REAL_IP};
use super::spoe::MESSAGES;

/// Checks the bytes of an SPOP connection. Whatever a message contains, the decision request must
/// contain each part of the original request at most once, and the response must be encodable.
pub fn spop_frames(bytes: &[u8]) {
    crate::edge::test_any_input::spop_frames(bytes, |arguments, variables| {
        let question = (MESSAGES.request)(arguments);
        for name in [X_ORIGINAL_URI, X_ORIGINAL_METHOD, X_REAL_IP] {
            assert!(question.headers().get_all(&name).iter().count() <= 1, "{name} twice");
        }
        let mut response = Response::new(Bytes::copy_from_slice(bytes));
        *response.status_mut() = http::StatusCode::FORBIDDEN;
        (MESSAGES.variables)(&response, variables);
    });
}
