//! The ways in which an upstream gives no usable response, each with its name and the status that the client gets; and
//! why a connection broke.

use std::error::Error;
use std::{fmt, io};

use h2::Reason;
use http::StatusCode;
use tower_robots::internals::GrpcCode;

use crate::word_enum::word_enum;

word_enum! {
    /// The kinds of [`UpstreamFailure`](super::failure::UpstreamFailure).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum FailureKind {
        /// As many connections as allowed are in use.
        Busy = "busy",
        /// No server has an address: a name cannot be resolved.
        Unresolved = "no-address",
        /// No server accepted a connection.
        Connect = "connect",
        /// No server accepted a connection in time.
        ConnectTimeout = "connect-timeout",
        /// A server accepted a connection, but not as TLS wants it.
        Tls = "tls",
        /// The connection broke before an answer.
        Broken = "broken",
        /// The answer was not HTTP, too large, or switched protocols unasked.
        Invalid = "invalid",
        /// No answer in time.
        ResponseTimeout = "response-timeout",
        /// The client broke off its own request body.
        RequestBody = "request-body",
        /// The client stopped sending its request body.
        RequestTimeout = "request-timeout",
    }
}

impl FailureKind {
    /// The status of the client's response, and its text.
    pub(super) const fn answer(self) -> (StatusCode, &'static str) {
        match self {
            Self::Busy => (StatusCode::SERVICE_UNAVAILABLE, "503 the site is busy\n"),
            Self::Unresolved | Self::Connect | Self::Tls | Self::Broken => {
                (StatusCode::BAD_GATEWAY, "502 the site is not available\n")
            }
            Self::Invalid => (StatusCode::BAD_GATEWAY, "502 the site gave an invalid response\n"),
            Self::ConnectTimeout | Self::ResponseTimeout => {
                (StatusCode::GATEWAY_TIMEOUT, "504 the site did not respond in time\n")
            }
            Self::RequestBody => (StatusCode::BAD_REQUEST, "400 the request body is broken\n"),
            Self::RequestTimeout => (StatusCode::REQUEST_TIMEOUT, "408 the request body did not arrive in time\n"),
        }
    }

    /// The status of gRPC in place of that.
    pub(super) const fn grpc_code(self) -> GrpcCode {
        match self {
            Self::ResponseTimeout => GrpcCode::DeadlineExceeded,
            Self::RequestBody | Self::RequestTimeout => GrpcCode::Cancelled,
            // Nothing was done, or nobody knows: whether it is tried again is the caller's decision.
            _ => GrpcCode::Unavailable,
        }
    }
}

/// The fault that broke a connection or a stream, as the fast path, hyper or h2 saw it.
#[derive(Debug)]
pub(crate) enum Cause {
    Socket(io::Error),
    Protocol(hyper::Error),
    Http2(h2::Error),
    /// The response makes no sense.
    Invalid(&'static str),
}

impl Cause {
    /// Whether the transport failed, and not what was said on it. A server that does not speak HTTP/2 counts as well: its octets,
    /// read as the head of a frame, announce more than any frame may have. No client can bring that about.
    pub(super) fn is_of_transport(&self) -> bool {
        match self {
            Self::Socket(_) | Self::Protocol(_) => true,
            Self::Http2(error) => {
                error.is_io() || self.ends_connection() && error.reason() == Some(Reason::FRAME_SIZE_ERROR)
            }
            Self::Invalid(_) => false,
        }
    }

    /// Whether a server of HTTP/2 sent something at which h2 ends the whole connection (RFC 9113, section 5.4.1).
    pub(super) fn ends_connection(&self) -> bool {
        matches!(self, Self::Http2(error) if error.is_go_away() && error.is_library())
    }

    /// Whether what came was no HTTP.
    pub(super) fn is_parse(&self) -> bool {
        match self {
            Self::Socket(_) => false,
            Self::Protocol(error) => error.is_parse(),
            // A fault of the server that was found out here.
            Self::Http2(error) => error.is_library(),
            Self::Invalid(_) => true,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                f.write_str("connection closed before message completed")
            }
            Self::Socket(error) => error.fmt(f),
            Self::Http2(error) => error.fmt(f),
            Self::Invalid(why) => f.write_str(why),
            Self::Protocol(error) => {
                error.fmt(f)?;
                error.source().map_or(Ok(()), |cause| write!(f, ": {cause}"))
            }
        }
    }
}

impl Error for Cause {}

/// Why a response body ended early. The client sees its connection or stream cut off, never a complete body.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResponseBodyError {
    /// Nothing came for too long.
    #[error("the upstream stopped sending its response body")]
    Idle,
    #[error("the client did not go on with its request, and the connection was needed for others")]
    GivenUp,
    /// The connection broke, or the framing is invalid.
    #[error("the upstream's response body is broken")]
    Broken(#[source] Cause),
}
