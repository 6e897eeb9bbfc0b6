//! The HTTP/2 connections of one worker to one server.
//!
//! A request uses the first connection that has a free stream, so connections that are not needed
//! become idle and expire. If no stream is free, the first request opens a connection, and the
//! other requests wait. The waiting requests then use the new connection, or fail with the same
//! error. So a burst of requests opens one connection.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::client_connection::{Admission, Http2ClientConnection, STREAMS};
use crate::http_common::Flag;
use crate::socket::Socket;
use crate::upstream::connection_limit::{Demand, Permit};
use crate::upstream::endpoint::{HttpVersions, UpstreamLimits};
use crate::upstream::failure_kind::{Cause, FailureKind};

#[derive(Debug)]
pub(in crate::upstream) struct Http2Pool {
    connections: Mutex<Vec<Arc<Http2ClientConnection>>>,
    /// Locked by the request that is opening a connection. If the last attempt failed, contains the
    /// time and the error of this attempt.
    pub(in crate::upstream) connecting: tokio::sync::Mutex<Option<(Instant, ConnectFailure)>>,
    /// Whether the server chose HTTP/1.1 in the last TLS handshake. If the server chose HTTP/1.1,
    /// connections cannot be shared, and requests connect without waiting for each other.
    pub(in crate::upstream) has_refused: Flag,
    /// Whether a connection is kept when it has no requests.
    keeps_idle: bool,
    timeout: Duration,
    demand: Arc<Demand>,
}

/// The reason why connecting to a server failed. All requests that waited for the attempt get the
/// same reason.
#[derive(Clone, Debug)]
pub(in crate::upstream) struct ConnectFailure {
    pub(in crate::upstream) kind: FailureKind,
    pub(in crate::upstream) why: String,
    pub(in crate::upstream) is_of_server: bool,
}

#[derive(Debug)]
pub(in crate::upstream) struct Http2Slot {
    pub(in crate::upstream) connection: Arc<Http2ClientConnection>,
    pub(super) sender: SendRequest<Bytes>,
    /// Whether a response had already arrived on the connection before this request.
    pub(in crate::upstream) is_reused: bool,
    /// The reason why the request body is incomplete; `None` if it is complete.
    pub(in crate::upstream) body_failure: Option<FailureKind>,
    pool: Arc<Http2Pool>,
}

impl Http2Pool {
    /// Creates a pool. If `capacity` is zero, no idle connections are kept; otherwise, idle
    /// connections are kept for `timeout`.
    pub(in crate::upstream) fn new(capacity: usize, timeout: Duration, demand: Arc<Demand>) -> Self {
        let (connections, connecting, has_refused) = Default::default();
        Self { connections, connecting, has_refused, keeps_idle: capacity > 0, timeout, demand }
    }

    /// Reserves a stream on an open connection. If `since` is given, only connections that were
    /// opened after that time are used.
    pub(in crate::upstream) fn slot_since(self: &Arc<Self>, since: Option<Instant>) -> Option<Http2Slot> {
        let most = if self.demand.limit.are_requests_separate() { 1 } else { STREAMS };
        let mut connections = self.connections.lock();
        let mut slot = None;
        let is_closed = |connection: &mut Arc<Http2ClientConnection>| {
            if slot.is_some() || since.is_some_and(|since| connection.opened < since) {
                return false;
            }
            match connection.enter(most) {
                Admission::Stream(sender) => slot = Some(Http2Slot::new(Arc::clone(connection), sender, self)),
                Admission::Full => {}
                Admission::Closed => return true,
            }
            false
        };
        let closed: Vec<_> = connections.extract_if(.., is_closed).collect();
        // The lock is released before the connections are closed.
        drop(connections);
        drop(closed);
        slot
    }

    /// Returns a slot like [`slot_since`](Self::slot_since). If no stream is free, but the stream
    /// limit of a connection is not known yet, waits for the limit and tries again.
    pub(in crate::upstream) async fn wait_for_slot_since(
        self: &Arc<Self>,
        since: Option<Instant>,
    ) -> Option<Http2Slot> {
        loop {
            if let Some(slot) = self.slot_since(since) {
                return Some(slot);
            }
            let is_unsettled = |connection: &&Arc<Http2ClientConnection>| {
                since.is_none_or(|since| connection.opened >= since) && !connection.activity.settled.initialized()
            };
            let unsettled = self.connections.lock().iter().find(is_unsettled).cloned()?;
            unsettled.activity.settled.wait().await;
        }
    }

    /// Reports whether a new connection uses HTTP/2. `versions` are the versions that were offered
    /// in the connection's handshake.
    pub(in crate::upstream) fn uses_http2(&self, socket: &Socket, versions: HttpVersions) -> bool {
        let uses_http2 = versions == HttpVersions::Http2 || socket.protocol() == Some(b"h2");
        self.has_refused.set(!uses_http2);
        uses_http2
    }

    pub(in crate::upstream) async fn open(
        self: &Arc<Self>,
        socket: Socket,
        permit: Permit,
        limits: &UpstreamLimits,
    ) -> Result<Http2Slot, h2::Error> {
        let connection = Arc::new(Http2ClientConnection::open(socket, permit, limits).await?);
        let sender = match connection.enter(STREAMS) {
            Admission::Stream(sender) => sender,
            Admission::Full | Admission::Closed => return Err(h2::Reason::REFUSED_STREAM.into()),
        };
        let slot = Http2Slot::new(Arc::clone(&connection), sender, self);
        self.connections.lock().push(connection);
        Ok(slot)
    }

    pub(in crate::upstream) fn sweep(&self) {
        let now = Instant::now();
        let mut connections = self.connections.lock();
        let gone: Vec<_> = connections.extract_if(.., |connection| connection.is_expired(now, self.timeout)).collect();
        drop(connections);
        drop(gone);
    }

    /// Closes one idle connection. Returns `None` if no connection is idle.
    pub(in crate::upstream) fn close_idle(&self) -> Option<()> {
        let mut connections = self.connections.lock();
        let at = connections.iter().position(|connection| connection.is_idle())?;
        let idle = connections.remove(at);
        drop(connections);
        drop(idle);
        Some(())
    }

    /// Stops using the current connections for new requests. Requests in progress on these
    /// connections continue.
    pub(in crate::upstream) fn clear(&self) {
        let all = std::mem::take(&mut *self.connections.lock());
        drop(all);
    }

    /// Records that a connection has no more requests. Closes the connection unless the pool keeps
    /// idle connections.
    fn note_idle(&self, connection: &Arc<Http2ClientConnection>) {
        if self.keeps_idle && !self.demand.should_yield_permit() {
            return;
        }
        self.connections.lock().retain(|other| !Arc::ptr_eq(other, connection));
    }
}

impl Http2Slot {
    fn new(connection: Arc<Http2ClientConnection>, sender: SendRequest<Bytes>, pool: &Arc<Http2Pool>) -> Self {
        let is_reused = connection.has_answered.is_set();
        Self { connection, sender, is_reused, body_failure: None, pool: Arc::clone(pool) }
    }

    /// Records why the stream ended. If the whole connection ended because of an invalid response,
    /// requests do not share connections for a while.
    pub(super) fn note_end(&self, cause: &Cause) {
        if cause.ends_connection() {
            self.pool.demand.limit.separate_requests();
        }
    }
}

impl Drop for Http2Slot {
    fn drop(&mut self) {
        if self.connection.leave() {
            self.pool.note_idle(&self.connection);
        }
        self.pool.demand.notify_waiting_request();
    }
}
