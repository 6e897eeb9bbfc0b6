//! The form in which gRPC takes an answer for one that is not the application's: a status in the head of a
//! response without a body ("trailers-only" in its specification).
//!
//! A client of gRPC reads neither the status of HTTP nor a page. With `403` it reports an unknown error, and with `502` one that
//! it may not try again.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::original::OriginalRequest;

/// The codes of gRPC that stand for an answer of a proxy or a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrpcCode {
    /// The caller has broken the call off.
    Cancelled = 1,
    /// The message is not one of this call.
    InvalidArgument = 3,
    /// There was no answer in time.
    DeadlineExceeded = 4,
    /// The caller may not do this.
    PermissionDenied = 7,
    /// The caller does it too often, or sends too much.
    ResourceExhausted = 8,
    /// There is no such call here, or none with this coding.
    Unimplemented = 12,
    /// The server cannot be reached now; the call may be tried again.
    Unavailable = 14,
}

impl GrpcCode {
    /// The fields of a response that is this status and nothing else. Its status of HTTP is to be 200, and its body empty.
    ///
    /// The message is for people, in UTF-8. It is cut after 1,024 octets.
    pub fn fields(self, message: &str) -> HeaderMap {
        let mut fields = HeaderMap::with_capacity(4);
        fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        fields.insert(GRPC_STATUS, self.number().into());
        if let Ok(message) = HeaderValue::try_from(escaped(message)) {
            fields.insert(GRPC_MESSAGE, message);
        }
        fields
    }

    /// Its number in `grpc-status`.
    pub const fn number(self) -> u16 {
        self as u16
    }
}

impl OriginalRequest<'_> {
    /// Whether the fields of a request say that it is a call of gRPC: `application/grpc`, alone or with a message format, such as
    /// `application/grpc+proto`. Any request can have such a field: [`OriginalRequest::is_grpc_call`](Self::is_grpc_call) asks for more.
    ///
    /// gRPC-Web, which is for browsers, is another protocol. Its clients make a status of the one of HTTP, and 403 and 429 are
    /// PERMISSION_DENIED and RESOURCE_EXHAUSTED to them.
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

/// Octets of a message before it is escaped, which makes three of one: clients take 8 KiB of fields.
const MAX_MESSAGE: usize = 1024;

/// The status of gRPC that the fields of a response say.
pub(super) fn said_status(response: &HeaderMap) -> Option<u16> {
    response.get(GRPC_STATUS)?.to_str().ok()?.parse().ok()
}

/// A message as gRPC has it in a field: octets outside printable ASCII, and `%`, are escaped.
fn escaped(message: &str) -> String {
    let ends = message.char_indices().map(|(at, char)| at + char.len_utf8());
    let end = ends.take_while(|end| *end <= MAX_MESSAGE).last().unwrap_or_default();
    let mut out = String::with_capacity(end);
    for octet in message.bytes().take(end) {
        match octet {
            b' '..=b'~' if octet != b'%' => out.push(char::from(octet)),
            _ => out.push_str(&format!("%{octet:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_grpc_are_told_from_others() {
        for (value, is_call) in [
            ("application/grpc", true),
            ("application/grpc+proto", true),
            ("Application/GRPC;charset=utf-8", true),
            ("application/grpc-web", false),
            ("application/grpc-web+proto", false),
            ("application/grpcx", false),
            ("application/json", false),
        ] {
            let mut fields = HeaderMap::new();
            fields.insert(CONTENT_TYPE, HeaderValue::from_static(value));
            assert_eq!(OriginalRequest::has_grpc_type(&fields), is_call, "{value}");
        }
        assert!(!OriginalRequest::has_grpc_type(&HeaderMap::new()));
    }

    #[test]
    fn a_status_is_fields_alone() {
        let fields = GrpcCode::PermissionDenied.fields("100 % \u{e9}\n");
        assert_eq!(fields["grpc-status"], "7");
        assert_eq!(fields["grpc-message"], "100 %25 %C3%A9%0A");
        assert_eq!(fields[CONTENT_TYPE], "application/grpc");
    }

    #[test]
    fn a_message_has_a_bound_and_ends_with_a_whole_character() {
        let message = format!("a{}", "\u{e9}".repeat(5000));
        let fields = GrpcCode::PermissionDenied.fields(&message);
        assert_eq!(fields["grpc-message"].as_bytes(), format!("a{}", "%C3%A9".repeat(511)).as_bytes());
    }
}
