//! HTTP/2 (RFC 9113), spoken with `h2`: requests on streams, limits for floods of frames, and deadlines for streams that are not
//! read.

pub(crate) mod connection;
pub(crate) mod keep_alive;

pub(crate) mod request_stream;
pub(crate) mod stream;
pub(crate) mod stream_timeout;

pub(crate) mod flood_budget;
pub(crate) mod frames;
pub(crate) mod session;
