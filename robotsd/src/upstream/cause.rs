//! Why a connection to an upstream broke.

use std::error::Error;
use std::fmt;
use std::io;

/// What broke a connection or a stream, as the fast path, hyper or h2 saw it.
#[derive(Debug)]
pub(crate) enum Cause {
    Socket(io::Error),
    Protocol(hyper::Error),
    Http2(h2::Error),
    /// The response makes no sense.
    Invalid(&'static str),
}

impl Cause {
    /// Whether the transport failed, and not what was said on it. What is no HTTP/2 breaks the connection.
    pub(super) fn is_of_transport(&self) -> bool {
        match self {
            Self::Socket(_) | Self::Protocol(_) => true,
            Self::Http2(error) => error.is_io() || error.is_go_away() && error.is_library(),
            Self::Invalid(_) => false,
        }
    }

    /// Whether what came was no HTTP.
    pub(super) fn is_parse(&self) -> bool {
        match self {
            Self::Socket(_) => false,
            Self::Protocol(error) => error.is_parse(),
            // What the server did was found out here.
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

impl From<io::Error> for Cause {
    fn from(error: io::Error) -> Self {
        Self::Socket(error)
    }
}

impl From<h2::Error> for Cause {
    fn from(error: h2::Error) -> Self {
        Self::Http2(error)
    }
}

impl From<hyper::Error> for Cause {
    fn from(error: hyper::Error) -> Self {
        Self::Protocol(error)
    }
}
