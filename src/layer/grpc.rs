//! gRPC responses that this crate sends instead of the application. The header fields of such a
//! response contain the gRPC status, and the response has no body ("Trailers-Only" in the
//! specification).
//!
//! A gRPC client does not read an HTTP error page. The client derives the gRPC status from the HTTP
//! status alone. So the message would be lost, and a `429` would become `UNAVAILABLE`, a status
//! that allows the client to repeat the call.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::original::OriginalRequest;

/// The gRPC status codes that a proxy or a layer may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrpcCode {
    /// The caller has cancelled the call.
    Cancelled = 1,
    /// The message is not valid for this call.
    InvalidArgument = 3,
    /// The response did not arrive in time.
    DeadlineExceeded = 4,
    /// The caller does not have permission for this call.
    PermissionDenied = 7,
    /// The caller sends too many calls, or too much data.
    ResourceExhausted = 8,
    /// The server does not implement this call, or does not support its encoding.
    Unimplemented = 12,
    /// The server is unreachable at the moment; the call may be retried.
    Unavailable = 14,
}

impl GrpcCode {
    /// Returns the header fields of a response that consists only of this status and the message.
    /// The caller must give the response the HTTP status 200 and an empty body.
    ///
    /// The message is for people. A message of more than 1,024 bytes is cut.
    pub fn fields(self, message: &str) -> HeaderMap {
        let mut fields = HeaderMap::with_capacity(4);
        fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        fields.insert(GRPC_STATUS, self.number().into());
        if let Ok(message) = HeaderValue::try_from(escaped(message)) {
            fields.insert(GRPC_MESSAGE, message);
        }
        fields
    }

    /// Returns the value of `grpc-status` for this code.
    pub const fn number(self) -> u16 {
        self as u16
    }
}

impl OriginalRequest<'_> {
    /// Reports whether the content type is that of a gRPC call: `application/grpc`, alone or with a
    /// message format, such as `application/grpc+proto`. Clients that do not use gRPC can send this
    /// content type, too. Therefore, [`OriginalRequest::is_grpc_call`](Self::is_grpc_call) also
    /// checks the method and the HTTP version.
    ///
    /// gRPC-Web, the variant for browsers, is a different protocol with different content types.
    /// gRPC-Web clients convert the HTTP status to a gRPC status: 403 to `PERMISSION_DENIED` and
    /// 429 to `RESOURCE_EXHAUSTED`.
    pub fn has_grpc_type(request: &HeaderMap) -> bool {
        const TYPE: &[u8] = b"application/grpc";
        request.get(CONTENT_TYPE).is_some_and(|value| {
            let value = value.as_bytes();
            let start = value.get(..TYPE.len()).is_some_and(|start| start.eq_ignore_ascii_case(TYPE));
            start && matches!(value.get(TYPE.len()), None | Some(b'+' | b';' | b' '))
        })
    }
}

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// Maximum size of a message before escaping, in bytes. The maximum is low, because escaping may
/// triple the size, and clients accept at most 8 KiB of fields.
const MAX_MESSAGE: usize = 1024;

pub(super) fn grpc_status(response: &HeaderMap) -> Option<u16> {
    response.get(GRPC_STATUS)?.to_str().ok()?.parse().ok()
}

/// Percent-encodes `%` and all bytes outside printable ASCII, for `grpc-message`.
fn escaped(message: &str) -> String {
    let ends = message.char_indices().map(|(at, char)| at + char.len_utf8());
    let end = ends.take_while(|end| *end <= MAX_MESSAGE).last().unwrap_or_default();
    let mut out = String::with_capacity(end);
    for byte in message.bytes().take(end) {
        match byte {
            b' '..=b'~' if byte != b'%' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grpc_calls_are_recognised_by_content_type() {
        for (values, is_call) in [
            ("application/grpc application/grpc+proto Application/GRPC;charset=utf-8", true),
            ("application/grpc-web application/grpc-web+proto application/grpcx application/json", false),
        ] {
            for value in values.split(' ') {
                let mut fields = HeaderMap::new();
                fields.insert(CONTENT_TYPE, HeaderValue::from_static(value));
                assert_eq!(OriginalRequest::has_grpc_type(&fields), is_call, "{value}");
            }
        }
        assert!(!OriginalRequest::has_grpc_type(&HeaderMap::new()));
    }

    #[test]
    fn a_grpc_status_has_a_code_a_percent_encoded_message_and_a_content_type() {
        let fields = GrpcCode::PermissionDenied.fields("100 % \u{e9}\n");
        assert_eq!(fields["grpc-status"], "7");
        assert_eq!(fields["grpc-message"], "100 %25 %C3%A9%0A");
        assert_eq!(fields[CONTENT_TYPE], "application/grpc");
    }

    #[test]
    fn a_message_is_cut_at_a_character_boundary() {
        let message = format!("a{}", "\u{e9}".repeat(5000));
        let fields = GrpcCode::PermissionDenied.fields(&message);
        assert_eq!(fields["grpc-message"].as_bytes(), format!("a{}", "%C3%A9".repeat(511)).as_bytes());
    }
}
