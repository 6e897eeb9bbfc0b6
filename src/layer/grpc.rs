//! What gRPC takes for an answer that is not the application's: a status in the head of a response without a body
//! ("trailers-only" in its specification).
//!
//! A client of gRPC reads neither the status of HTTP nor a page. With `403` it reports an unknown error, and with `502` one that
//! it may not try again.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};

/// The codes of gRPC that stand for an answer of a proxy or a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrpcCode {
    /// The caller has broken the call off.
    Cancelled,
    /// There was no answer in time.
    DeadlineExceeded,
    /// The caller may not do this.
    PermissionDenied,
    /// The server cannot be reached now; the call may be tried again.
    Unavailable,
}

impl GrpcCode {
    /// Its number in `grpc-status`.
    pub fn number(self) -> u16 {
        match self {
            Self::Cancelled => 1,
            Self::DeadlineExceeded => 4,
            Self::PermissionDenied => 7,
            Self::Unavailable => 14,
        }
    }
}

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// Whether the fields of a request say that it is a call of gRPC: `application/grpc`, alone or with a message format, such as
/// `application/grpc+proto`. gRPC-Web, which is for browsers, is another protocol.
pub fn is_grpc(request: &HeaderMap) -> bool {
    const TYPE: &[u8] = b"application/grpc";
    request.get(CONTENT_TYPE).is_some_and(|value| {
        let value = value.as_bytes();
        let start = value.get(..TYPE.len()).is_some_and(|start| start.eq_ignore_ascii_case(TYPE));
        start && matches!(value.get(TYPE.len()), None | Some(b'+' | b';' | b' '))
    })
}

/// The fields of a response that is this status and nothing else. Its status of HTTP is to be 200, and its body empty.
///
/// The message is for people, in UTF-8.
pub fn grpc_status(code: GrpcCode, message: &str) -> HeaderMap {
    let mut fields = HeaderMap::with_capacity(4);
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    fields.insert(GRPC_STATUS, code.number().into());
    if let Ok(message) = HeaderValue::try_from(escaped(message)) {
        fields.insert(GRPC_MESSAGE, message);
    }
    fields
}

/// A message as gRPC has it in a field: octets outside printable ASCII, and `%`, are escaped.
fn escaped(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    for octet in message.bytes() {
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
            assert_eq!(is_grpc(&fields), is_call, "{value}");
        }
        assert!(!is_grpc(&HeaderMap::new()));
    }

    #[test]
    fn a_status_is_fields_alone() {
        let fields = grpc_status(GrpcCode::PermissionDenied, "100 % \u{e9}\n");
        assert_eq!(fields["grpc-status"], "7");
        assert_eq!(fields["grpc-message"], "100 %25 %C3%A9%0A");
        assert_eq!(fields[CONTENT_TYPE], "application/grpc");
    }
}
