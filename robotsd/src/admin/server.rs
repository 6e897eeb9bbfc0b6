//! Connections: few, short, one request each.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use super::access_rule::AccessRule;
use super::connection_slots::{Closing, ConnectionSlot, PeerRole, SlotError};
use super::listen::{AdminListener, OpenListener};
use super::reply::{AdminReply, Answer};
use super::routes::{Asked, Query, ROUTES, RouteKind};
use super::state::ServerState;
use crate::date;
use crate::log::{LogEvent, LogLevel};

/// For a head, and then for a body.
const READ: Duration = Duration::from_secs(5);

/// For everything: thousands of sites can take a while to be read again.
const WHOLE: Duration = Duration::from_secs(300);

const HEAD: usize = 16 * 1024;
const FIELDS: usize = 64;

/// No request needs a body; one that has a small one is answered all the same.
const BODY: usize = 64 * 1024;

/// Answers on a listener, until dropped.
pub(crate) async fn serve(listening: OpenListener, state: Arc<ServerState>) {
    let slots = Arc::clone(&listening.slots);
    loop {
        match &listening.listener {
            AdminListener::Address(listener, names, access) => match listener.accept().await {
                // Without an address of its own it is gone again.
                Ok((socket, _)) => {
                    if let (Ok(local), Some(slot)) = (socket.local_addr(), slots.take(PeerRole::Other)) {
                        open(socket, AccessRule::Address(local.ip(), Arc::clone(names), *access), &state, slot);
                    }
                }
                Err(error) => pause(&state, &error).await,
            },
            #[cfg(unix)]
            AdminListener::Socket(listener, owner) => match listener.accept().await {
                Ok((socket, _)) => {
                    if let Some(slot) = slots.take(peer(&socket, *owner)) {
                        open(socket, AccessRule::Socket, &state, slot);
                    }
                }
                Err(error) => pause(&state, &error).await,
            },
        }
        // A request that came with its connection is read before connections that came later can close it.
        yield_now().await;
    }
}

/// Whether a connection is of the socket's owner, or of root.
#[cfg(unix)]
fn peer(socket: &tokio::net::UnixStream, owner: Option<u32>) -> PeerRole {
    match socket.peer_cred() {
        Ok(peer) if peer.uid() == 0 || Some(peer.uid()) == owner => PeerRole::Owner,
        _ => PeerRole::Other,
    }
}

/// Most often the process is out of descriptors: accepting again at once would only spin.
async fn pause(state: &ServerState, error: &std::io::Error) {
    let message = format!("a connection could not be accepted: {error}");
    state.log.say_at(LogLevel::Error, LogEvent::Admin, message);
    sleep(Duration::from_secs(1)).await;
}

fn open<T>(socket: T, access: AccessRule, state: &Arc<ServerState>, (slot, mut closing): (Arc<ConnectionSlot>, Closing))
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let state = Arc::clone(state);
    let service = service_fn(move |request: Request<Incoming>| {
        let (state, access, slot) = (Arc::clone(&state), access.clone(), Arc::clone(&slot));
        async move {
            let (Ok(reply) | Err(reply)) = reply(request, &access, state, &slot).await;
            slot.answer();
            Ok::<_, Infallible>(reply.into_response())
        }
    });
    tokio::spawn(async move {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(READ)
            .keep_alive(false)
            .max_buf_size(HEAD)
            .max_headers(FIELDS)
            .auto_date_header(date::is_clock_set())
            .serve_connection(TokioIo::new(socket), service);
        tokio::select! {
            // A client that breaks off, or sends no HTTP, has been answered as far as possible.
            _ = timeout(WHOLE, connection) => {}
            _ = &mut closing => {}
        }
    });
}

async fn reply(
    request: Request<Incoming>,
    access: &AccessRule,
    state: Arc<ServerState>,
    slot: &ConnectionSlot,
) -> Answer {
    let (head, body) = request.into_parts();
    access.admit(&head)?;
    let too_large = || AdminReply::error(StatusCode::PAYLOAD_TOO_LARGE, "no request here has a body of this size");
    if body.size_hint().lower() > BODY as u64 {
        return Err(too_large());
    }
    // Read before anything is answered: closing on octets that were not read would take the answer with it.
    let read = timeout(READ, Limited::new(body, BODY).collect()).await;
    let late = |_| AdminReply::error(StatusCode::REQUEST_TIMEOUT, "the body did not come in time");
    read.map_err(late)?.map_err(|_| too_large())?;
    let path = head.uri.path();
    let Some(route) = ROUTES.iter().find(|route| route.path == path) else {
        let known = ROUTES.iter().map(|route| route.path).collect::<Vec<_>>().join(", ");
        return Err(AdminReply::error(StatusCode::NOT_FOUND, &format!("there is nothing here; there is {known}")));
    };
    if !route.kind.allows(&head.method) {
        return Err(AdminReply::wrong_method(route.kind.allow()));
    }
    match slot.begin(route.work) {
        Ok(()) => {}
        Err(SlotError::Busy) => {
            return Err(AdminReply::unavailable(
                "too many requests are being worked on: try again, or turn enforcement off, which always works",
            ));
        }
        // Nothing is done for a connection that cannot receive the outcome.
        Err(SlotError::Closed) => std::future::pending().await,
    }
    let mut _change = None;
    if route.kind == RouteKind::Changes {
        access.admit_change(&head)?;
        let target = head.uri.path_and_query().map_or(path, |target| target.as_str());
        state.log.say(LogEvent::Admin, format!("{} {target}", head.method));
        if !route.is_of_process {
            // While a new process is about to take this one's place, it is not known who makes the change.
            _change = Some(Arc::clone(&state.changes).read_owned().await);
            if let Some(process) = state.successor() {
                let message = format!("process {process} has taken the place of this one: ask again");
                return Err(AdminReply::unavailable(&message));
            }
        }
    }
    let asked = Asked { query: Query::new(head.uri.query()), fields: head.headers };
    (route.answer)(state, asked).await
}
