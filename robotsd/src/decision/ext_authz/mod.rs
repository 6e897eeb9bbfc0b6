//! External authorisation over gRPC with Envoy's protocol (`envoy.service.auth.v3`). The decision
//! request is a single message, and so is the response. The parent module makes the decision.

mod messages;
#[cfg(any(test, fuzzing))]
pub(crate) mod test_any_input;

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http::header::HeaderName;
use http::{HeaderMap, Request, Version};
use http_body_util::BodyExt;
use tokio::time::timeout;
use tower_robots::parts::OriginalRequest;

use crate::http_common::{RequestBody, RequestBodyError};

pub(super) use self::messages::{CallError, CheckQuestion, CheckResponse, allowed, denied, metadata};

const SERVICE: &str = "/envoy.service.auth.v3.Authorization/";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServiceRequest {
    Check,
    Unknown,
    /// A request that is not a gRPC call, for example because it does not use HTTP/2.
    NoCall,
}

impl ServiceRequest {
    pub(super) fn of<B>(request: &Request<B>) -> Option<Self> {
        let is_call = request.version() == Version::HTTP_2 && OriginalRequest::has_grpc_type(request.headers());
        match (request.uri().path().strip_prefix(SERVICE), is_call) {
            (Some("Check"), true) => Some(Self::Check),
            (Some(_), true) => Some(Self::Unknown),
            (Some(_), false) => Some(Self::NoCall),
            (None, _) => None,
        }
    }
}

/// Maximum size of a message, in bytes. By default, Envoy accepts up to 60 KiB of header fields
/// from a client. The highest limit that can be configured in Envoy is 8 MiB.
const MAX_MESSAGE: usize = 1024 * 1024;

/// Size of the prefix of a message, in bytes: a compression flag and the length.
const PREFIX: usize = 5;

/// Maximum time for a message to arrive. The caller can shorten this time with `grpc-timeout`.
const MAX_MESSAGE_TIME: Duration = Duration::from_secs(10);

const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// Collects the body of a call, which must be a single message.
#[derive(Debug, Default)]
struct MessageReader {
    bytes: BytesMut,
}

impl MessageReader {
    /// Adds bytes. Returns an error if the bytes received so far cannot be the beginning of a valid
    /// message.
    fn push(&mut self, bytes: &[u8]) -> Result<(), CallError> {
        if self.bytes.len() + bytes.len() > PREFIX + MAX_MESSAGE {
            return Err(if self.length().is_ok_and(|length| length <= MAX_MESSAGE) {
                CallError::Malformed
            } else {
                CallError::TooLarge
            });
        }
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() < PREFIX {
            return Ok(());
        }
        match self.length()? {
            length if length > MAX_MESSAGE => Err(CallError::TooLarge),
            length if self.bytes.len() > PREFIX + length => Err(CallError::Malformed),
            _ => Ok(()),
        }
    }

    fn finish(self) -> Result<Bytes, CallError> {
        let length = self.length()?;
        let message = self.bytes.freeze().split_off(PREFIX);
        if message.len() == length { Ok(message) } else { Err(CallError::Malformed) }
    }

    fn length(&self) -> Result<usize, CallError> {
        match self.bytes.first_chunk::<PREFIX>() {
            Some([0, length @ ..]) => usize::try_from(u32::from_be_bytes(*length)).map_err(|_| CallError::TooLarge),
            Some([1, ..]) => Err(CallError::Compressed),
            _ => Err(CallError::Malformed),
        }
    }
}

pub(super) fn framed(message: &impl prost::Message) -> Bytes {
    let length = message.encoded_len();
    let mut out = BytesMut::with_capacity(PREFIX + length);
    out.put_u8(0);
    out.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    // Encoding cannot fail, because the buffer has room for the encoded length.
    let _ = message.encode(&mut out);
    out.freeze()
}

/// Waits for the message of a call. Returns an error if the message does not arrive within the
/// caller's timeout or [`MAX_MESSAGE_TIME`], whichever is shorter.
pub(super) async fn read_message(fields: &HeaderMap, mut body: RequestBody) -> Result<Bytes, CallError> {
    let patience = fields.get(GRPC_TIMEOUT).and_then(|value| grpc_timeout(value.as_bytes()));
    let reading = async {
        let mut reader = MessageReader::default();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| match error {
                RequestBodyError::Idle => CallError::Late,
                _ => CallError::Broken,
            })?;
            frame.data_ref().map_or(Ok(()), |bytes| reader.push(bytes))?;
        }
        reader.finish()
    };
    timeout(patience.map_or(MAX_MESSAGE_TIME, |patience| patience.min(MAX_MESSAGE_TIME)), reading)
        .await
        .unwrap_or(Err(CallError::Late))
}

/// Parses a `grpc-timeout`: up to eight digits and a unit.
fn grpc_timeout(text: &[u8]) -> Option<Duration> {
    let (unit, digits) = text.split_last()?;
    if digits.is_empty() || digits.len() > 8 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(match unit {
        b'H' => Duration::from_secs(number * 3600),
        b'M' => Duration::from_secs(number * 60),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Result<Bytes, CallError> {
        let mut reader = MessageReader::default();
        for piece in pieces {
            reader.push(piece)?;
        }
        reader.finish()
    }

    #[test]
    fn a_grpc_body_contains_exactly_one_complete_uncompressed_message() {
        let whole = Ok(Bytes::from_static(b"abc"));
        assert_eq!(read(&[b"\0\0\0\0\x03abc"]), whole);
        assert_eq!(read(&[b"\0", b"\0\0\0", b"\x03", b"", b"ab", b"c"]), whole);
        assert_eq!(read(&[b"\0\0\0\0\0"]), Ok(Bytes::new()));
        for (bytes, error) in [
            (&b""[..], CallError::Malformed),
            (b"\0\0\0\0", CallError::Malformed),
            (b"\0\0\0\0\x03ab", CallError::Malformed),
            (b"\0\0\0\0\x03abcd", CallError::Malformed),
            (b"\0\0\0\0\0\0\0\0\0\0", CallError::Malformed),
            (b"\x02\0\0\0\0", CallError::Malformed),
            (b"\x01\0\0\0\0", CallError::Compressed),
            (b"\0\x00\x10\x00\x01", CallError::TooLarge),
            (b"\0\xFF\xFF\xFF\xFF", CallError::TooLarge),
        ] {
            assert_eq!(read(&[bytes]), Err(error), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_message_larger_than_the_limit_is_rejected() {
        let most = [&[0, 0, 0x10, 0, 0][..], &vec![7; MAX_MESSAGE]].concat();
        assert_eq!(read(&[&most]).map(|message| message.len()), Ok(MAX_MESSAGE));
        assert_eq!(read(&[&most, b"7"]), Err(CallError::Malformed));
        assert_eq!(read(&[&vec![0; PREFIX + MAX_MESSAGE + 1]]), Err(CallError::TooLarge));
    }

    #[test]
    fn the_grpc_timeout_field_is_parsed_as_a_duration() {
        for (text, want) in [
            ("2H", Some(Duration::from_secs(7200))),
            ("3M", Some(Duration::from_secs(180))),
            ("99999999S", Some(Duration::from_secs(99_999_999))),
            ("250m", Some(Duration::from_millis(250))),
            ("5u", Some(Duration::from_micros(5))),
            ("7n", Some(Duration::from_nanos(7))),
            ("", None),
            ("m", None),
            ("1", None),
            ("1.5S", None),
            ("-1S", None),
            ("123456789n", None),
        ] {
            assert_eq!(grpc_timeout(text.as_bytes()), want, "{text}");
        }
    }
}
