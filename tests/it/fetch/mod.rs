//! Fetching from real servers on loopback: every way in which they answer, and fail to.

mod answers;
#[cfg(feature = "tls")]
mod https;
mod server;
mod site;
