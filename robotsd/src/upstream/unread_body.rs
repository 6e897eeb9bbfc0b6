//! The rest of a response on an upstream connection, read by [the fast path](super::http1_fast) or by hyper.

use http_body::{Body, SizeHint};
use hyper::body::Incoming;

use super::http1_fast::FastBody;

/// A response body that is still to be read, at least in part.
#[derive(Debug)]
pub(super) enum UnreadBody {
    Fast(FastBody),
    Hyper(Incoming),
}

impl UnreadBody {
    pub(super) fn is_end_stream(&self) -> bool {
        match self {
            Self::Fast(rest) => rest.first.is_empty() && rest.left == 0,
            Self::Hyper(incoming) => incoming.is_end_stream(),
        }
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        match self {
            Self::Fast(rest) => SizeHint::with_exact(rest.first.len() as u64 + rest.left),
            Self::Hyper(incoming) => incoming.size_hint(),
        }
    }
}
