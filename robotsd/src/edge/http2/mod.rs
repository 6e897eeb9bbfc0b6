//! What the edge adds to hyper's HTTP/2: limits for floods of frames, and deadlines for streams that are not read.

pub(crate) mod flood_budget;
pub(crate) mod frames;
pub(crate) mod session;
pub(crate) mod stream_timeout;
