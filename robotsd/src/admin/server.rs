//! Handles connections to the admin interface. Each connection carries one request.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{Request, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use super::access_rule::{AccessRule, AddressTerms, SocketPeer, TcpPeer};
use super::change::Attempt;
use super::connection_slots::{Closing, ConnectionSlot, PeerRole, SlotError};
use super::listen::{AdminListener, OpenListener, SocketOrigin};
use super::reply::{AdminReply, Answer};
use super::routes::{ROUTES, Route};
use super::state::ServerState;
use crate::date;
use crate::log::{LogEvent, LogLevel};

/// Timeout for the head of a request, and for its body.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout for the whole connection. Reloading thousands of sites can take minutes.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(300);

const MAX_HEAD_BYTES: usize = 16 * 1024;
const MAX_FIELDS: usize = 64;

/// Maximum size of a request body, in bytes.
const MAX_BODY_BYTES: usize = 64 * 1024;

pub(crate) async fn serve(listening: OpenListener, state: Arc<ServerState>) {
    let slots = Arc::clone(&listening.slots);
    loop {
        match &listening.listener {
            AdminListener::Address(listener, terms) => match listener.accept().await {
                // If a connection has no local address, the client has already closed it.
                Ok((socket, remote)) => {
                    if let (Ok(local), Some(slot)) = (socket.local_addr(), slots.take(PeerRole::Other)) {
                        let peer = TcpPeer { local: local.ip(), remote: remote.ip(), certificate: None };
                        open_address(socket, peer, Arc::clone(terms), &state, slot);
                    }
                }
                Err(error) => pause(&state, &error).await,
            },
            AdminListener::Socket(listener, origin) => match listener.accept().await {
                Ok((socket, _)) => {
                    let peer = peer(&socket, *origin);
                    let role = if peer.is_owner { PeerRole::Owner } else { PeerRole::Other };
                    if let Some(slot) = slots.take(role) {
                        tokio::spawn(handle_connection(socket, AccessRule::Socket(peer), Arc::clone(&state), slot));
                    }
                }
                Err(error) => pause(&state, &error).await,
            },
        }
        // The task of the new connection must run before the next connection is accepted. If a
        // request has already arrived, the task reads it, so that the connection does not count as
        // idle and lose its slot.
        yield_now().await;
    }
}

/// Returns the user who connected. If the kernel does not report the user, returns IDs that no
/// config can contain.
fn peer(socket: &tokio::net::UnixStream, SocketOrigin { owner, is_supervisor_socket }: SocketOrigin) -> SocketPeer {
    let Ok(peer) = socket.peer_cred() else {
        return SocketPeer { uid: u32::MAX, group: u32::MAX, is_owner: false, is_supervisor_socket };
    };
    let (uid, own) = (peer.uid(), rustix::process::geteuid().as_raw());
    SocketPeer { uid, group: peer.gid(), is_owner: uid == 0 || uid == own || Some(uid) == owner, is_supervisor_socket }
}

/// Logs the error and waits before the next connection is accepted. The usual cause is a lack of
/// file descriptors, and a retry without a pause would fail again.
async fn pause(state: &ServerState, error: &std::io::Error) {
    let message = format!("a connection could not be accepted: {error}");
    state.log.write_message_at(LogLevel::Error, LogEvent::Admin, message);
    sleep(Duration::from_secs(1)).await;
}

fn open_address(
    socket: TcpStream,
    peer: TcpPeer,
    terms: Arc<AddressTerms>,
    state: &Arc<ServerState>,
    slot: (Arc<ConnectionSlot>, Closing),
) {
    let state = Arc::clone(state);
    let Some(certificates) = terms.config.certificates.clone() else {
        tokio::spawn(handle_connection(socket, AccessRule::Address(peer, terms), state, slot));
        return;
    };
    tokio::spawn(async move {
        let (slot, mut closing) = slot;
        let secured = tokio::select! {
            secured = timeout(READ_TIMEOUT, certificates.secure(socket)) => secured,
            _ = &mut closing => return,
        };
        // After a failed handshake, nothing can be sent. The TLS library has already sent an alert.
        if let Ok(Ok((socket, certificate))) = secured {
            let access = AccessRule::Address(TcpPeer { certificate, ..peer }, terms);
            handle_connection(socket, access, state, (slot, closing)).await;
        }
    });
}

async fn handle_connection<T>(
    socket: T,
    access: AccessRule,
    state: Arc<ServerState>,
    (slot, mut closing): (Arc<ConnectionSlot>, Closing),
) where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let (state, access, slot) = (Arc::clone(&state), access.clone(), Arc::clone(&slot));
        async move {
            let (Ok(reply) | Err(reply)) = reply(request, &access, state, &slot).await;
            slot.answer();
            Ok::<_, Infallible>(reply.into_response())
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(READ_TIMEOUT)
        .keep_alive(false)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_FIELDS)
        .auto_date_header(date::is_clock_set())
        .serve_connection(TokioIo::new(socket), service);
    tokio::select! {
        // No response can be sent over a failed connection.
        _ = timeout(CONNECTION_TIMEOUT, connection) => {}
        _ = &mut closing => {}
    }
}

async fn reply(
    request: Request<Incoming>,
    access: &AccessRule,
    state: Arc<ServerState>,
    slot: &ConnectionSlot,
) -> Answer {
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    let route = ROUTES.iter().find(|route| route.path == path);
    let mut attempt = Attempt::new(&head, access, route, &state.audit);
    let answer = match admit(&head, body, access, route, slot).await {
        // The connection is being closed to make room for another connection, so no response can be
        // sent.
        Ok(None) => std::future::pending().await,
        Ok(Some(route)) => attempt.answer(Arc::clone(&state), access, head, route).await,
        Err(reply) => Err(reply),
    };
    if let Err(reply) = &answer {
        attempt.refused(state, reply).await;
    }
    answer
}

/// Returns the route of a request, or the response that refuses it. Returns `None` if the
/// connection is being closed to make room for another connection.
async fn admit(
    head: &Parts,
    body: Incoming,
    access: &AccessRule,
    route: Option<&'static Route>,
    slot: &ConnectionSlot,
) -> Result<Option<&'static Route>, AdminReply> {
    access.admit(head)?;
    let too_large =
        || AdminReply::error(StatusCode::PAYLOAD_TOO_LARGE, "the request has a body: send it without a body");
    if body.size_hint().lower() > MAX_BODY_BYTES as u64 {
        return Err(too_large());
    }
    // If the connection were closed before all received bytes are read, the client might not get
    // the response.
    let read = timeout(READ_TIMEOUT, Limited::new(body, MAX_BODY_BYTES).collect()).await;
    let late = |_| AdminReply::error(StatusCode::REQUEST_TIMEOUT, "the body was not received in time");
    read.map_err(late)?.map_err(|_| too_large())?;
    let Some(route) = route else {
        let known = ROUTES.iter().map(|route| route.path).collect::<Vec<_>>().join(", ");
        return Err(AdminReply::error(StatusCode::NOT_FOUND, &format!("this path is unknown: use one of {known}")));
    };
    if !route.kind.allows(&head.method) {
        return Err(AdminReply::wrong_method(route.kind.allow()));
    }
    match slot.begin(route.work) {
        Ok(()) => Ok(Some(route)),
        Err(SlotError::Busy) => Err(AdminReply::unavailable(
            "too many requests are in progress: try again (`robotsd enforce off` always works)",
        )),
        Err(SlotError::Closed) => Ok(None),
    }
}
