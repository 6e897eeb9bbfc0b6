//! Accepts connections and serves them until shutdown.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tower::Service;

use crate::edge::connection::client_socket::{self, ClientSocket};
use crate::edge::connection::hyper_driver::{self, ConnectionSettings};
use crate::edge::connection_error::{ConnectionError, ConnectionErrorKind, ConnectionErrorReporter};
use crate::edge::connection_state::registry::{Claims, ConnectionRegistry, WorkerConnections};
use crate::edge::connection_state::state::ConnectionState;
use crate::edge::http1_fast::DateClock;
use crate::edge::limits::EdgeLimits;
use crate::edge::request::access_record::OnAccess;
use crate::edge::request::body::RequestBody;
use crate::edge::request::forwarded::{ForwardedFields, Scheme};
use crate::edge::request::service::{ConnectionInfo, RequestService};
use crate::edge::request::trusted::Trusted;
use crate::edge::tls::TlsAcceptor;

/// What sets a listener apart from others. By default it speaks no TLS and trusts nobody.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListenerSettings {
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) trusted: Arc<Trusted>,
}

/// What the listeners of a process have in common: limits, places for connections, and who hears of trouble.
///
/// Cheap to clone. It is written once a connection, never for a request.
#[derive(Clone)]
pub(crate) struct Edge {
    terms: Arc<ArcSwap<ConnectionSettings>>,
    shared: Arc<SharedConnections>,
}

struct SharedConnections {
    /// Of the whole process: divided among listeners and threads, one could be full while others have room.
    places: Arc<Semaphore>,
    registry: ConnectionRegistry,
    claims: Claims,
    /// Connections so far; a connection's number is part of its requests' ids.
    opened: AtomicU64,
    reporter: ConnectionErrorReporter<Tell>,
}

type Tell = Box<dyn Fn(&ConnectionError) + Send + Sync>;

impl Edge {
    /// `on_error` is told what goes wrong, each kind at most once a second; `on_visit` of every request. They must not
    /// block.
    pub(crate) fn new(
        limits: EdgeLimits,
        on_error: impl Fn(&ConnectionError) + Send + Sync + 'static,
        on_visit: Option<OnAccess>,
    ) -> Self {
        let shared = SharedConnections {
            places: Arc::new(Semaphore::new(limits.connections)),
            registry: ConnectionRegistry::default(),
            claims: Claims::default(),
            opened: AtomicU64::new(0),
            reporter: ConnectionErrorReporter::new(Box::new(on_error)),
        };
        Self {
            shared: Arc::new(shared),
            terms: Arc::new(ArcSwap::from_pointee(ConnectionSettings::new(limits, on_visit))),
        }
    }

    /// The same with other limits for what a connection and a request may be; the places stay those there are.
    pub(crate) fn with_limits(&self, change: impl FnOnce(EdgeLimits) -> EdgeLimits) -> Self {
        let terms = self.terms.load();
        let terms = ArcSwap::from_pointee(terms.with(change(terms.limits.clone())));
        Self { shared: Arc::clone(&self.shared), terms: Arc::new(terms) }
    }

    /// Grants other limits to connections that are yet to come; the places stay those there are.
    pub(crate) fn set_limits(&self, limits: EdgeLimits) {
        let terms = self.terms.load().with(limits);
        self.terms.store(Arc::new(terms));
    }

    /// Makes places for so many connections where there were `before`, for all that share them. Where fewer may be open
    /// than are, idle ones are closed and others that end give no place back until the bound is met. Needs a runtime.
    pub(crate) fn set_places(&self, before: usize, now: usize) {
        let places = &self.shared.places;
        if now >= before {
            places.add_permits(now - before);
            return;
        }
        let owed = before - now - places.forget_permits(before - now);
        let shared = Arc::clone(&self.shared);
        drop(tokio::spawn(async move {
            let none = Arc::default();
            for _ in 0..owed {
                shared.place(&none).await.forget();
            }
        }));
    }

    /// The bound on open connections.
    pub(crate) fn connections(&self) -> usize {
        self.terms.load().limits.connections
    }

    /// Serves a listener until `shutdown` completes and its connections have drained.
    ///
    /// At shutdown the listener closes after taking what waits in its backlog, idle connections close at once, those on
    /// which nothing has come yet after [`EdgeLimits::greeting`], and requests in progress have [`EdgeLimits::drain`] to finish.
    /// Dropping the future ends everything at once.
    pub(crate) async fn serve<S, B>(
        &self,
        listener: TcpListener,
        entrance: ListenerSettings,
        service: S,
        shutdown: impl Future<Output = ()>,
    ) where
        S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
        S::Future: Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        client_socket::bound_unsent(&listener);
        let SharedConnections { places, reporter, registry, .. } = &*self.shared;
        let terms = &self.terms;
        let shard = registry.shard();
        let clock = Arc::new(DateClock::default());
        let (stop, stopped) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut shutdown = pin!(shutdown);

        let (shared, for_connections, register) = (Arc::clone(&self.shared), Arc::clone(terms), Arc::clone(&shard));
        let open = move |(socket, peer): (TcpStream, SocketAddr), place: OwnedSemaphorePermit| {
            // Without it, small responses may wait for an acknowledgement; one that refuses it is broken already.
            let _ = socket.set_nodelay(true);
            let number = shared.opened.fetch_add(1, Ordering::Relaxed);
            let (entrance, service, clock) = (entrance.clone(), service.clone(), Arc::clone(&clock));
            let (shared, terms, mut stopped) = (Arc::clone(&shared), for_connections.load_full(), stopped.clone());
            let activity = Arc::new(ConnectionState::new(&terms.limits));
            let registered = register.add(&activity);
            async move {
                activity.enter_task().await;
                let full =
                    || shared.reporter.report(ConnectionErrorKind::Full, Some(peer), &"no place for a TLS handshake");
                let served = match entrance.enter(socket, peer, &mut stopped, &activity, full).await {
                    Ok(Some((socket, entry))) => {
                        let gate = RequestService::new(service, Arc::clone(&terms), activity, entry, number);
                        hyper_driver::serve(socket, gate, terms, clock, stopped).await
                    }
                    Ok(None) => Ok(()),
                    Err(failure) => Err(failure),
                };
                if let Err((kind, error)) = served {
                    shared.reporter.report(kind, Some(peer), &error);
                }
                // In this order, or a claim would look as if it had brought no place.
                drop(place);
                drop(registered);
            }
        };

        // Accepted, but there is no place for it yet. Taking the place first would not do: listeners that wait for
        // connections would hold places that others need.
        let mut waiting = None;
        let mut place = pin!(None);
        let mut pause = Duration::ZERO;
        let mut resume = Instant::now();
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut shutdown => break,
                // Before accepting, or a flood of short connections would leave their remains here.
                Some(_) = connections.join_next() => continue,
                taken = of_some(place.as_mut()), if waiting.is_some() => {
                    place.set(None);
                    if let Some(accepted) = waiting.take() {
                        connections.spawn(open(accepted, taken));
                    }
                    continue;
                }
                accepted = accept(&listener, resume), if waiting.is_none() => accepted,
            };
            match accepted {
                Ok(accepted) => {
                    pause = Duration::ZERO;
                    match Arc::clone(places).try_acquire_owned() {
                        Ok(place) => drop(connections.spawn(open(accepted, place))),
                        Err(_) => {
                            waiting = Some(accepted);
                            place.set(Some(self.shared.place(&shard)));
                        }
                    }
                }
                Err(error) if is_of_one_connection(&error) => {}
                // Most often the process is out of descriptors. Accepting again at once would only spin; connections
                // that end meanwhile give some back.
                Err(error) => {
                    reporter.report(ConnectionErrorKind::Accept, None, &error);
                    pause = (pause * 2).clamp(Duration::from_millis(10), Duration::from_secs(1));
                    resume = Instant::now() + pause;
                }
            }
        }

        place.set(None);
        // Whoever has been let in by the kernel gets an answer; who comes later is refused.
        while let Ok(place) = Arc::clone(places).try_acquire_owned() {
            let accepted = match waiting.take() {
                None => now(listener.accept()).await.and_then(Result::ok),
                waiting => waiting,
            };
            let Some(accepted) = accepted else { break };
            connections.spawn(open(accepted, place));
        }
        drop(listener);
        let _ = stop.send(true);
        let drained = timeout(terms.load().limits.drain, async { while connections.join_next().await.is_some() {} });
        if drained.await.is_err() {
            let left = connections.len();
            reporter.report(ConnectionErrorKind::Aborted, None, &format_args!("{left} connections cut off"));
            connections.shutdown().await;
        }
    }
}

impl SharedConnections {
    /// Waits for a place, which idle connections are closed for.
    async fn place(&self, shard: &Arc<WorkerConnections>) -> OwnedSemaphorePermit {
        let mut acquiring = pin!(Arc::clone(&self.places).acquire_owned());
        let waiter = self.claims.wait();
        let mut is_first = true;
        loop {
            let is_full = !waiter.claim(|| {
                let claim = self.registry.reclaim(shard)?;
                self.reporter.report(
                    ConnectionErrorKind::Recycled,
                    None,
                    &format_args!(
                        "as many connections are open as may be: the longest idle was closed for a new one, after {:.1?}",
                        claim.idle
                    ),
                );
                Some(claim)
            });
            if is_full && is_first {
                self.reporter.report(
                    ConnectionErrorKind::Full,
                    None,
                    &"as many connections are open as may be and none is idle: new ones wait",
                );
            }
            is_first = false;
            tokio::select! {
                biased;
                Ok(place) = &mut acquiring => return place,
                () = sleep(CLAIM_AGAIN) => {}
            }
        }
    }
}

/// After how long to look whether what was claimed has come, has to be claimed elsewhere, or can be claimed at all.
pub(crate) const CLAIM_AGAIN: Duration = Duration::from_millis(10);

impl ListenerSettings {
    /// Makes of a socket what requests come over; none where nobody is there any more.
    async fn enter(
        &self,
        socket: TcpStream,
        peer: SocketAddr,
        stop: &mut watch::Receiver<bool>,
        activity: &Arc<ConnectionState>,
        full: impl FnOnce(),
    ) -> Result<Option<(ClientSocket, ConnectionInfo)>, (ConnectionErrorKind, Box<dyn Error + Send + Sync>)> {
        let origin = |scheme| ForwardedFields::new(peer, scheme, Arc::clone(&self.trusted));
        let Some(tls) = &self.tls else {
            return Ok(Some((
                ClientSocket::Plain(socket),
                ConnectionInfo { origin: origin(Scheme::Http), secured: None },
            )));
        };
        // Boxed: connections that are not for it should not carry a handshake.
        Ok(Box::pin(tls.secure(socket, stop, activity, full)).await?.map(|(stream, secured)| {
            let entry = ConnectionInfo { origin: origin(Scheme::Https), secured: Some(secured) };
            (ClientSocket::Tls(Box::new(stream)), entry)
        }))
    }
}

impl fmt::Debug for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Edge").field("limits", &self.terms.load().limits).finish_non_exhaustive()
    }
}

/// Waits for a connection, not before `resume`.
async fn accept(listener: &TcpListener, resume: Instant) -> io::Result<(TcpStream, SocketAddr)> {
    if Instant::now() < resume {
        sleep_until(resume).await;
    }
    listener.accept().await
}

/// Whether only the connection that was about to be accepted is affected.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// What a future gives, where there is one.
async fn of_some<F: Future>(mut future: Pin<&mut Option<F>>) -> F::Output {
    poll_fn(|cx| future.as_mut().as_pin_mut().map_or(Poll::Pending, |future| future.poll(cx))).await
}

/// What a future gives without waiting.
async fn now<F: Future>(future: F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = std::future::ready(()) => None,
    }
}
