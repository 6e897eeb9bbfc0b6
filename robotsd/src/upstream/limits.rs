//! The bounds towards one upstream, each with its default.

use std::time::Duration;

/// What an upstream is granted, and how much of it may be used at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UpstreamLimits {
    /// How long connecting may take, over all servers and with the handshake of TLS.
    pub(crate) connect: Duration,
    /// How long the upstream may take to begin its answer, counted from the last byte of the request it took.
    pub(crate) response_header: Duration,
    /// How long a response body may stand still. A body that moves has no deadline.
    pub(crate) body_idle: Duration,
    /// What is buffered of a response body, and how much may come before its head is complete, interim responses
    /// included; a head that is complete at a single look may be twice as large.
    pub(crate) buffer_bytes: usize,
    /// What is read of an answer whose client has stalled, if that is all of it, so that its connection is free.
    pub(crate) buffer: usize,
    /// How much that may be for all answers of the process.
    pub(crate) buffer_total: usize,
    /// Connections open to all servers of a site, over all workers, whatever is done on them. A request that needs a
    /// further one waits as long as connecting may take.
    pub(crate) connections: usize,
    /// How many of them to one server.
    pub(crate) address_connections: usize,
    /// Idle connections kept for reuse, to each server. Every worker keeps its part of them: connections of clients are
    /// spread over workers by a hash, so none has much more to do than another.
    pub(crate) idle_connections: usize,
    /// How long an idle connection is kept.
    pub(crate) idle_timeout: Duration,
}

impl Default for UpstreamLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            response_header: Duration::from_secs(30),
            body_idle: Duration::from_secs(60),
            // Room for a common large response in one read; a quarter of this costs a quarter more CPU on such bodies.
            buffer_bytes: 256 * 1024,
            buffer: 64 * 1024,
            buffer_total: 64 * 1024 * 1024,
            connections: 2048,
            address_connections: 2048,
            idle_connections: 128,
            // Shorter than most servers keep theirs, so that it is seldom they who close first.
            idle_timeout: Duration::from_secs(4),
        }
    }
}
