//! A call of gRPC with one message in each direction: how its message is read, and what is said where that fails.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use http_body::Body;
use tokio::time::Sleep;
use tower_robots::layer::{GrpcCode, grpc_status};

use crate::edge::{RequestBody, RequestBodyError};

/// Octets of a message. Envoy takes 60 KiB of fields from a client by default, and 8 MiB at most.
const MAX_MESSAGE: usize = 1024 * 1024;

/// What comes before a message: whether it is compressed, and how long it is.
const PREFIX: usize = 5;

/// How long a message may take to arrive where its caller does not wait for less.
const LONGEST: Duration = Duration::from_secs(10);

const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// Why a call gets a status in place of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallError {
    /// There is no such method.
    UnknownMethod,
    /// It is compressed, which no caller does unless it is configured to.
    Compressed,
    TooLarge,
    /// It is no message, not the only one, or none of this call.
    Malformed,
    /// It did not come in time.
    Late,
    /// The caller has gone.
    Broken,
}

impl CallError {
    const fn code(self) -> GrpcCode {
        match self {
            Self::UnknownMethod | Self::Compressed => GrpcCode::Unimplemented,
            Self::TooLarge => GrpcCode::ResourceExhausted,
            Self::Malformed => GrpcCode::InvalidArgument,
            Self::Late => GrpcCode::DeadlineExceeded,
            Self::Broken => GrpcCode::Cancelled,
        }
    }

    const fn message(self) -> &'static str {
        match self {
            Self::UnknownMethod => "questions go to /envoy.service.auth.v3.Authorization/Check",
            Self::Compressed => "the question is compressed: send it as it is",
            Self::TooLarge => "the question has more than 1 MiB: leave the body of the request out",
            Self::Malformed => "the question is not one CheckRequest",
            Self::Late => "the question did not come in time",
            Self::Broken => "the question was broken off",
        }
    }

    /// Whether the caller asks in a way that has to be mended.
    pub(crate) const fn is_fault(self) -> bool {
        matches!(self, Self::Compressed | Self::TooLarge | Self::Malformed)
    }

    /// The fields of a response that says this and nothing else.
    pub(crate) fn fields(self) -> HeaderMap {
        let mut fields = grpc_status(self.code(), self.message());
        if self == Self::Compressed {
            fields.insert(GRPC_ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        fields
    }
}

/// Collects the one message of a call.
#[derive(Debug, Default)]
pub(super) struct MessageReader {
    octets: BytesMut,
}

impl MessageReader {
    /// Takes further octets. What cannot become a message is an error as soon as that is known.
    pub(super) fn push(&mut self, octets: &[u8]) -> Result<(), CallError> {
        if self.octets.len() + octets.len() > PREFIX + MAX_MESSAGE {
            return Err(if self.length().is_ok_and(|length| length <= MAX_MESSAGE) {
                CallError::Malformed
            } else {
                CallError::TooLarge
            });
        }
        self.octets.extend_from_slice(octets);
        if self.octets.len() < PREFIX {
            return Ok(());
        }
        match self.length()? {
            length if length > MAX_MESSAGE => Err(CallError::TooLarge),
            length if self.octets.len() > PREFIX + length => Err(CallError::Malformed),
            _ => Ok(()),
        }
    }

    /// The message, once there is nothing more.
    pub(super) fn finish(self) -> Result<Bytes, CallError> {
        let length = self.length()?;
        let message = self.octets.freeze().split_off(PREFIX);
        if message.len() == length { Ok(message) } else { Err(CallError::Malformed) }
    }

    fn length(&self) -> Result<usize, CallError> {
        match self.octets.first_chunk::<PREFIX>() {
            Some([0, length @ ..]) => usize::try_from(u32::from_be_bytes(*length)).map_err(|_| CallError::TooLarge),
            Some([1, ..]) => Err(CallError::Compressed),
            _ => Err(CallError::Malformed),
        }
    }
}

/// A message with its prefix.
pub(super) fn framed(message: &impl prost::Message) -> Bytes {
    let length = message.encoded_len();
    let mut out = BytesMut::with_capacity(PREFIX + length);
    out.put_u8(0);
    out.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    // It has the room that it says it needs.
    let _ = message.encode(&mut out);
    out.freeze()
}

/// Waits for the message of a call.
#[derive(Debug)]
pub(crate) struct IncomingMessage {
    body: RequestBody,
    reader: MessageReader,
    patience: Duration,
    /// Set once there is something to wait for: nearly every message is there with its head.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl IncomingMessage {
    pub(crate) fn new(fields: &HeaderMap, body: RequestBody) -> Self {
        let timeout = fields.get(GRPC_TIMEOUT).and_then(|value| timeout(value.as_bytes()));
        let patience = timeout.map_or(LONGEST, |timeout| timeout.min(LONGEST));
        Self { body, reader: MessageReader::default(), patience, deadline: None }
    }
}

impl Future for IncomingMessage {
    type Output = Result<Bytes, CallError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            match Pin::new(&mut this.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Some(octets) = frame.data_ref()
                        && let Err(error) = this.reader.push(octets)
                    {
                        return Poll::Ready(Err(error));
                    }
                }
                Poll::Ready(Some(Err(RequestBodyError::Idle))) => return Poll::Ready(Err(CallError::Late)),
                Poll::Ready(Some(Err(_))) => return Poll::Ready(Err(CallError::Broken)),
                Poll::Ready(None) => return Poll::Ready(std::mem::take(&mut this.reader).finish()),
                Poll::Pending => {
                    let patience = this.patience;
                    let deadline = this.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
                    return deadline.as_mut().poll(context).map(|()| Err(CallError::Late));
                }
            }
        }
    }
}

/// How long a caller waits: up to eight digits and a unit.
fn timeout(text: &[u8]) -> Option<Duration> {
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
    fn a_message_is_whole_alone_and_as_it_is() {
        let whole = Ok(Bytes::from_static(b"abc"));
        assert_eq!(read(&[b"\0\0\0\0\x03abc"]), whole);
        assert_eq!(read(&[b"\0", b"\0\0\0", b"\x03", b"", b"ab", b"c"]), whole);
        assert_eq!(read(&[b"\0\0\0\0\0"]), Ok(Bytes::new()));
        for (octets, error) in [
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
            assert_eq!(read(&[octets]), Err(error), "{}", octets.escape_ascii());
        }
    }

    #[test]
    fn a_message_that_is_too_large_is_not_kept() {
        let most = [&[0, 0, 0x10, 0, 0][..], &vec![7; MAX_MESSAGE]].concat();
        assert_eq!(read(&[&most]).map(|message| message.len()), Ok(MAX_MESSAGE));
        assert_eq!(read(&[&most, b"7"]), Err(CallError::Malformed));
        assert_eq!(read(&[&vec![0; PREFIX + MAX_MESSAGE + 1]]), Err(CallError::TooLarge));
    }

    #[test]
    fn a_caller_says_how_long_it_waits() {
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
            assert_eq!(timeout(text.as_bytes()), want, "{text}");
        }
    }
}
