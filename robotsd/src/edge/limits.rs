//! The bounds of the server side, each with its default: connections, deadlines, heads, bodies, HTTP/2.

use std::time::Duration;

/// The limits of one listener's clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EdgeLimits {
    /// Which callers the listener has, and so which fields its requests may carry.
    pub(crate) callers: Callers,
    /// Connections open at once; at the limit the longest idle is closed for a new one, else it waits.
    pub(crate) connections: usize,
    /// TLS handshakes under way at once; further connections wait.
    pub(crate) handshakes: usize,
    /// How long a TLS handshake may take, the client's silence before it included.
    pub(crate) tls_handshake: Duration,
    /// How long a new connection may stay silent.
    pub(crate) first_byte: Duration,
    /// How long a request head may take, from its first byte to its last.
    pub(crate) header_read: Duration,
    /// How long a connection may stay open between two requests.
    pub(crate) keep_alive: Duration,
    /// How long a body may stand still, in either direction. A body that moves has no deadline.
    pub(crate) body_idle: Duration,
    /// How long a tunnel (WebSocket) may stand still.
    pub(crate) tunnel_idle: Duration,
    /// The largest request head, and the buffer for a body.
    pub(crate) head_bytes: usize,
    /// The longest path and query.
    pub(crate) target_bytes: usize,
    /// The most header fields of a request.
    pub(crate) fields: usize,
    /// Streams open at once on an HTTP/2 connection.
    pub(crate) streams: u32,
    /// The flow-control window of an HTTP/2 stream, and the buffer for one.
    pub(crate) window_bytes: u32,
    /// How long a connection on which nothing has come yet stays open once a shutdown has begun: its request may be on the
    /// way, and a client whose first request is cut off does not know that it may retry.
    pub(crate) greeting: Duration,
    /// How long requests in progress may take to finish once a shutdown has begun.
    pub(crate) drain: Duration,
}

/// The callers of a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Callers {
    /// Any client: the fields that only a proxy may send are removed, and written by us.
    #[default]
    Clients,
    /// A proxy that asks for decisions about its clients' requests: its fields about them stay as they are, and the
    /// target, which may be the client's, is not held against the proxy.
    AskingProxies,
}

impl Default for EdgeLimits {
    fn default() -> Self {
        Self {
            callers: Callers::Clients,
            connections: 16_384,
            // More than a core can answer in a second. A hello under way may have 16 KiB, so these are 16 MiB at the very
            // most; all other connections have 4 KiB of a hello at most, 64 MiB in all.
            handshakes: 1024,
            tls_handshake: Duration::from_secs(10),
            first_byte: Duration::from_secs(10),
            header_read: Duration::from_secs(10),
            keep_alive: Duration::from_secs(75),
            body_idle: Duration::from_secs(60),
            tunnel_idle: Duration::from_secs(600),
            head_bytes: 64 * 1024,
            target_bytes: 8 * 1024,
            // hyper keeps the fields of up to a hundred on the stack; a larger bound would cost an allocation a request.
            fields: 100,
            streams: 100,
            window_bytes: 64 * 1024,
            greeting: Duration::from_secs(1),
            drain: Duration::from_secs(30),
        }
    }
}
