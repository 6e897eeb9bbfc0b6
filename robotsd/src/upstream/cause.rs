//! Why a connection to an upstream broke.

use std::error::Error;
use std::fmt;
use std::io;

/// What broke a connection, as the fast path or hyper saw it.
#[derive(Debug)]
pub(crate) enum Cause {
    Socket(io::Error),
    Protocol(hyper::Error),
}

impl Cause {
    /// Whether what came was no HTTP.
    pub(super) fn is_parse(&self) -> bool {
        matches!(self, Self::Protocol(error) if error.is_parse())
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                f.write_str("connection closed before message completed")
            }
            Self::Socket(error) => error.fmt(f),
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

impl From<hyper::Error> for Cause {
    fn from(error: hyper::Error) -> Self {
        Self::Protocol(error)
    }
}
