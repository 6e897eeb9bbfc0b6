//! The kinds of upstream failures, the response that clients get for each kind, and the errors that
//! can break a connection.

use std::error::Error;
use std::{fmt, io};

use h2::Reason;
use http::StatusCode;
use tower_robots::internals::GrpcCode;

use crate::word_enum::word_enum;

word_enum! {
    /// The kind of an [`UpstreamFailure`](super::failure::UpstreamFailure).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum FailureKind {
        /// All connections that the limits allow are in use.
        Busy = "busy",
        /// The upstream's name cannot be resolved, so no server has an address.
        Unresolved = "no-address",
        /// No server accepted a connection.
        Connect = "connect",
        /// No server accepted a connection in time.
        ConnectTimeout = "connect-timeout",
        /// A server accepted a connection, but the TLS handshake failed.
        Tls = "tls",
        /// The connection broke before a response arrived.
        Broken = "broken",
        /// The response was not HTTP, was too large, or switched protocols without being asked.
        Invalid = "invalid",
        /// No response arrived in time.
        ResponseTimeout = "response-timeout",
        /// The client aborted the request before its body was complete.
        RequestBody = "request-body",
        /// The client stayed connected, but stopped sending its request body.
        RequestTimeout = "request-timeout",
    }
}

impl FailureKind {
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

    pub(super) const fn grpc_code(self) -> GrpcCode {
        match self {
            Self::ResponseTimeout => GrpcCode::DeadlineExceeded,
            Self::RequestBody | Self::RequestTimeout => GrpcCode::Cancelled,
            // The upstream may have processed the request, so the caller must decide whether to
            // send it again.
            _ => GrpcCode::Unavailable,
        }
    }
}

#[derive(Debug)]
pub(crate) enum Cause {
    Socket(io::Error),
    Protocol(hyper::Error),
    Http2(h2::Error),
    Invalid(&'static str),
}

impl Cause {
    /// Reports whether the connection itself failed, and not only the HTTP exchange. If a server
    /// does not speak HTTP/2, h2 parses the server's bytes as the header of a frame that is too
    /// large. This error of h2 counts as a failure of the connection, too, because a client cannot
    /// cause it.
    pub(super) fn is_connection_failure(&self) -> bool {
        match self {
            Self::Socket(_) | Self::Protocol(_) => true,
            Self::Http2(error) => {
                error.is_io() || self.ends_connection() && error.reason() == Some(Reason::FRAME_SIZE_ERROR)
            }
            Self::Invalid(_) => false,
        }
    }

    /// Reports whether h2 ended the whole connection because of something that the server sent (RFC
    /// 9113, section 5.4.1).
    pub(super) fn ends_connection(&self) -> bool {
        matches!(self, Self::Http2(error) if error.is_go_away() && error.is_library())
    }

    pub(super) fn is_parse(&self) -> bool {
        match self {
            Self::Socket(_) => false,
            Self::Protocol(error) => error.is_parse(),
            // h2 itself has detected the error, so the server has caused it.
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

/// The reason why a response body ended early. The edge then cuts off the client's connection or
/// stream, so that the client notices that the body is incomplete.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResponseBodyError {
    #[error("the upstream stopped sending its response body")]
    Idle,
    #[error("the client stopped sending its request, and other requests needed the connection")]
    GivenUp,
    #[error("the upstream's response body is broken")]
    Broken(#[source] Cause),
}
