//! The side of the proxy that faces clients: HTTP/1.1, and HTTP/2 by prior knowledge, on one cleartext listener.
//!
//! What reaches the service behind the edge has been checked and cleaned: a target in origin-form, one `Host`, end-to-end
//! fields only, and nothing that merely claims to come from a proxy. Every wait has a deadline and everything a client
//! can make grow has a bound. The edge knows nothing of robots.txt, sites or upstreams.
//!
//! A request carries as extensions its [`Peer`] and [`RequestId`], and [`WebSocket`] where it asks for one. An answer to
//! the latter may be 101 with a [`Tunnel`] in its extensions; any other interim response becomes 502.
//!
//! A client that closes its sending side has left: its requests are dropped, and with them whatever an upstream was
//! doing for them.

mod limits;
mod trouble;

mod activity;
mod connection;
mod idle;
mod stall;
mod stream;

mod admission;
mod body;
mod fields;
mod forwarded;
mod host;
mod reply;
mod request_id;
mod service;
mod tunnel;
mod visit;

#[cfg(test)]
pub(crate) mod raw;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tower::Service;

pub(crate) use self::body::{RequestBody, RequestBodyError};
pub(crate) use self::forwarded::Peer;
pub(crate) use self::idle::Idle;
pub(crate) use self::limits::Limits;
pub(crate) use self::request_id::RequestId;
pub(crate) use self::trouble::{Trouble, TroubleKind};
pub(crate) use self::tunnel::{Tunnel, WebSocket};
pub(crate) use self::visit::{Note, Notes, OnVisit, Visit};

use self::trouble::Reporter;

/// Serves a listener until `shutdown` completes and its connections have drained.
///
/// At shutdown the listener closes after taking what waits in its backlog, idle connections close at once, and requests
/// in progress have [`Limits::drain`] to finish. Dropping the future ends everything at once.
///
/// `on_error` is told what goes wrong, each kind at most once a second; `on_visit` of every request. They must not block.
pub(crate) async fn serve<S, B, E>(
    listener: TcpListener,
    service: S,
    limits: Limits,
    on_error: E,
    on_visit: Option<OnVisit>,
    shutdown: impl Future<Output = ()>,
) where
    S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
    E: Fn(&Trouble) + Send + Sync + 'static,
{
    let drain = limits.drain;
    let reporter = Arc::new(Reporter::new(on_error));
    let places = Arc::new(Semaphore::new(limits.connections));
    let terms = Arc::new(connection::Terms::new(limits, on_visit));
    let (stop, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut number = 0;
    let mut shutdown = pin!(shutdown);

    let mut open = {
        let reporter = Arc::clone(&reporter);
        move |socket: TcpStream, peer, place: OwnedSemaphorePermit, connections: &mut JoinSet<()>| {
            // Without it, small responses may wait for an acknowledgement; one that refuses it is broken already.
            let _ = socket.set_nodelay(true);
            number += 1;
            let reporter = Arc::clone(&reporter);
            let serving =
                connection::serve(socket, Peer(peer), number, service.clone(), Arc::clone(&terms), stopped.clone());
            connections.spawn(async move {
                if let Err((kind, error)) = serving.await {
                    reporter.report(kind, Some(peer), &error);
                }
                drop(place);
            });
        }
    };

    let mut pause = Duration::ZERO;
    let mut resume = Instant::now();
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => break,
            // Before accepting, or a flood of short connections would leave their remains here.
            Some(_) = connections.join_next() => continue,
            accepted = accept(&listener, &places, &reporter, resume) => accepted,
        };
        match accepted {
            Ok((socket, peer, place)) => {
                pause = Duration::ZERO;
                open(socket, peer, place, &mut connections);
            }
            Err(error) if is_of_one_connection(&error) => {}
            // Most often the process is out of descriptors. Accepting again at once would only spin; connections that
            // end meanwhile give some back.
            Err(error) => {
                reporter.report(TroubleKind::Accept, None, &error);
                pause = (pause * 2).clamp(Duration::from_millis(10), Duration::from_secs(1));
                resume = Instant::now() + pause;
            }
        }
    }

    // Whoever has been let in by the kernel gets an answer; who comes later is refused.
    while let Ok(place) = Arc::clone(&places).try_acquire_owned() {
        let Some(Ok((socket, peer))) = now(listener.accept()).await else { break };
        open(socket, peer, place, &mut connections);
    }
    drop(listener);
    let _ = stop.send(true);
    let drained = tokio::time::timeout(drain, async { while connections.join_next().await.is_some() {} });
    if drained.await.is_err() {
        let left = connections.len();
        reporter.report(TroubleKind::Aborted, None, &format_args!("{left} connections cut off"));
        connections.shutdown().await;
    }
}

/// Waits for a place, then for a connection to take it.
async fn accept<E: Fn(&Trouble)>(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
    reporter: &Reporter<E>,
    resume: Instant,
) -> io::Result<(TcpStream, std::net::SocketAddr, OwnedSemaphorePermit)> {
    if Instant::now() < resume {
        tokio::time::sleep_until(resume).await;
    }
    if places.available_permits() == 0 {
        reporter.report(TroubleKind::Full, None, &"no place for another connection");
    }
    let place = Arc::clone(places).acquire_owned().await.map_err(io::Error::other)?;
    let (socket, peer) = listener.accept().await?;
    Ok((socket, peer, place))
}

/// Whether only the connection that was about to be accepted is affected.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// What a future gives without waiting.
async fn now<F: Future>(future: F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = std::future::ready(()) => None,
    }
}
