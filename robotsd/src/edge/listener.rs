//! Accepts connections and serves them until shutdown.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::FutureExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::client_slots::ClientSlots;
use super::connection::settings::{ConnectionSettings, EdgeLimits};
use super::connection::{self, watched_socket};
use super::connection_error::{ConnectionError, ConnectionErrorKind, ConnectionErrorReporter, ConnectionFailure};
use super::connection_state::ConnectionState;
use super::http1_fast::DateClock;
use super::listener_counts::{ListenerCounts, ListenerTraffic, ResponseCounts, ResponseTotals};
use super::proxy_protocol::{self, AnnouncedClient};
use super::request::access_record::OnAccess;
use super::request::service::{ConnectionInfo, RequestService};
use super::request::trusted::{ForwardedFields, Trusted};
use super::spop::SpopMessages;
use super::tls::TlsAcceptor;
use crate::exchange::{EdgeService, Peer};
use crate::socket::Socket;

/// The settings of one listener. By default it speaks no TLS and trusts no proxy.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListenerSettings {
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) trusted: Arc<Trusted>,
    /// Whether every connection comes from a trusted proxy and begins with a PROXY header.
    pub(crate) proxy_protocol: bool,
    /// The counts of its connections and responses on this worker, as [`Edge::counts`] makes them; by default its own.
    pub(crate) counts: Option<Arc<ResponseCounts>>,
    /// The meaning of SPOP's messages, if that is spoken besides HTTP.
    pub(crate) messages: Option<SpopMessages>,
}

/// The state that the listeners of a process share: settings, the connection limit, and the callback for connection errors.
///
/// Cheap to clone. It is written once a connection, never for a request.
#[derive(Clone)]
pub(crate) struct Edge {
    settings: Arc<ArcSwap<ConnectionSettings>>,
    shared: Arc<SharedConnections>,
}

/// The connections of all listeners, and what happened on them since the process started.
#[derive(Debug)]
pub(crate) struct EdgeTraffic {
    /// Connections that are open now.
    pub(crate) open: usize,
    pub(crate) accepted: u64,
    pub(crate) responses: ResponseTotals,
    /// Connection errors that have occurred, by kind.
    pub(crate) errors: [(ConnectionErrorKind, u64); ConnectionErrorKind::ALL.len()],
}

struct SharedConnections {
    limit: ClientSlots,
    /// Connections so far; a connection's number is part of its requests' ids.
    opened: AtomicU64,
    listeners: ListenerCounts,
    reporter: ConnectionErrorReporter,
}

impl Edge {
    /// `on_error` is called for connection errors, for each kind at most once a second; `on_access` for every request.
    /// They must not block.
    pub(crate) fn new(
        limits: EdgeLimits,
        on_error: impl Fn(&ConnectionError) + Send + Sync + 'static,
        on_access: Option<OnAccess>,
    ) -> Self {
        let shared = SharedConnections {
            limit: ClientSlots::new(limits.connections),
            opened: AtomicU64::new(0),
            listeners: ListenerCounts::default(),
            reporter: ConnectionErrorReporter::new(on_error),
        };
        let settings = ArcSwap::from_pointee(ConnectionSettings::new(limits, on_access));
        Self { shared: Arc::new(shared), settings: Arc::new(settings) }
    }

    /// The same with other limits for a connection and a request; the slots for connections stay shared.
    pub(crate) fn with_limits(&self, change: impl FnOnce(EdgeLimits) -> EdgeLimits) -> Self {
        let settings = self.settings.load();
        let settings = ArcSwap::from_pointee(settings.with(change(settings.limits.clone())));
        Self { shared: Arc::clone(&self.shared), settings: Arc::new(settings) }
    }

    /// Sets other limits for connections that are yet to come; the slots for connections stay as they are.
    pub(crate) fn set_limits(&self, limits: EdgeLimits) {
        let settings = self.settings.load().with(limits);
        self.settings.store(Arc::new(settings));
    }

    /// Allows `now` connections where `before` were allowed, for all listeners. If more are open than that, idle ones
    /// close, and others that end free no slot until the bound is met. Needs a runtime.
    pub(crate) fn set_places(&self, before: usize, now: usize) {
        if now >= before {
            self.shared.limit.slots.add_permits(now - before);
            return;
        }
        // Slots that are not free are taken from connections that end.
        let owed = before - now - self.shared.limit.slots.forget_permits(before - now);
        let shared = Arc::clone(&self.shared);
        drop(tokio::spawn(async move {
            let none = Arc::default();
            for _ in 0..owed {
                shared.limit.acquire(&none, &shared.reporter).await.forget();
            }
        }));
    }

    /// Another process accepts by now: from the shutdown on, clients are told to connect to that.
    pub(crate) fn set_successor(&self) {
        self.settings.load().successor.set(true);
    }

    /// The bound on open connections.
    pub(crate) fn connections(&self) -> usize {
        self.settings.load().limits.connections
    }

    /// The counts of all connections so far.
    pub(crate) fn traffic(&self) -> EdgeTraffic {
        let (open, responses) = (self.shared.limit.open(), self.shared.listeners.responses());
        let accepted = self.shared.opened.load(Ordering::Relaxed);
        EdgeTraffic { open, accepted, responses, errors: self.shared.reporter.totals() }
    }

    /// Counters for one worker of the listener that has this label.
    pub(crate) fn counts(&self, listener: &str) -> Arc<ResponseCounts> {
        self.shared.listeners.of_worker(listener)
    }

    /// The counts of every listener so far.
    pub(crate) fn listeners(&self) -> ListenerTraffic {
        self.shared.listeners.traffic()
    }

    /// Serves a listener until `shutdown` completes and its connections have drained.
    ///
    /// At shutdown the listener closes after it has accepted its backlog, idle connections close at once, those on which nothing
    /// has come yet after [`EdgeLimits::greeting`], and requests in progress have [`EdgeLimits::drain`] to finish. If [another
    /// process](Edge::set_successor) accepts, connections are closed behind an answer that says so. Dropping the future ends
    /// everything at once.
    pub(crate) async fn serve(
        &self,
        listener: TcpListener,
        listener_settings: ListenerSettings,
        service: impl EdgeService,
        shutdown: impl Future<Output = ()>,
    ) {
        watched_socket::bound_unsent(&listener);
        let SharedConnections { limit, reporter, .. } = &*self.shared;
        let settings = &self.settings;
        let worker = limit.of_this_worker();
        let counts = listener_settings.counts.clone().unwrap_or_else(|| self.counts(""));
        let clock = Arc::new(DateClock::default());
        let local = listener.local_addr().ok();
        let (stop, stopped) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut shutdown = pin!(shutdown);

        let (shared, for_connections, register) = (Arc::clone(&self.shared), Arc::clone(settings), Arc::clone(&worker));
        let open = move |(mut socket, mut peer): (TcpStream, SocketAddr), slot: OwnedSemaphorePermit| {
            // Without it, small responses may wait for an acknowledgement; a socket that refuses it is broken already.
            let _ = socket.set_nodelay(true);
            let number = shared.opened.fetch_add(1, Ordering::Relaxed);
            let (listener_settings, service, clock) = (listener_settings.clone(), service.clone(), Arc::clone(&clock));
            let (shared, settings, mut stopped) = (Arc::clone(&shared), for_connections.load_full(), stopped.clone());
            let mut state = ConnectionState::new(&settings.limits);
            state.counts = Arc::clone(&counts);
            let (state, counted) = (Arc::new(state), Arc::clone(&counts).open());
            let registered = register.add(&state);
            async move {
                state.enter_task().await;
                // The state of what may be a health check by the proxy in front.
                let mut check = None;
                let served = 'served: {
                    let mut announced = None;
                    if listener_settings.proxy_protocol {
                        match listener_settings.receive(&mut socket, peer, &settings, &mut stopped, &state).await {
                            Ok(Some(client)) => announced = Some(client),
                            Ok(None) => break 'served Ok(()),
                            Err(failure) => break 'served Err(failure),
                        }
                    }
                    match announced {
                        Some(AnnouncedClient::Address(address)) if address != peer => peer = address,
                        // Version 1 has no command for a check: it names no client, or the proxy as if that were one.
                        Some(_) => check = Some(Arc::clone(&state)),
                        None => {}
                    }
                    let full = || {
                        shared.reporter.report(ConnectionErrorKind::Full, Some(peer), &"no slot for a TLS handshake")
                    };
                    let fields = |scheme| {
                        let trusted = Arc::clone(&listener_settings.trusted);
                        let fields = ForwardedFields::new(Peer::at(peer, local), scheme, trusted);
                        if announced == Some(AnnouncedClient::Unknown) { fields.of_unnamed_client() } else { fields }
                    };
                    let stopping = async {
                        let _ = stopped.wait_for(|stop| *stop).await;
                        // Without one it leaves at once, because it has said nothing.
                        if settings.successor.is_set() {
                            sleep(settings.farewell(false)).await;
                        }
                    };
                    match listener_settings.secure(socket, fields, stopping, &state, full).await {
                        Ok(Some((socket, info))) => {
                            let service = RequestService::new(service, Arc::clone(&settings), state, info, number);
                            let messages = listener_settings.messages;
                            connection::serve(socket, service, settings, clock, stopped, messages).await
                        }
                        Ok(None) => Ok(()),
                        Err(failure) => Err(failure),
                    }
                };
                match served {
                    // It has seen what it wanted to, and resets the connection.
                    Err((ConnectionErrorKind::Broken, _)) if check.is_some_and(|state| !state.has_served()) => {}
                    Err((kind, error)) => shared.reporter.report(kind, Some(peer), &error),
                    Ok(()) => {}
                }
                // In this order, or a claim would look as if it had freed no slot.
                drop(slot);
                drop(registered);
                drop(counted);
            }
        };

        // Accepted, but without a slot yet. Taking the slot first would not do: listeners that wait for connections would
        // hold slots that others need.
        let mut waiting = None;
        let mut slot = pin!(None);
        let mut pause = Duration::ZERO;
        let mut resume = Instant::now();
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut shutdown => break,
                // Before accepting, or a flood of short connections would leave their remains here.
                Some(_) = connections.join_next() => continue,
                acquired = of_some(slot.as_mut()), if waiting.is_some() => {
                    slot.set(None);
                    if let Some(accepted) = waiting.take() {
                        connections.spawn(open(accepted, acquired));
                    }
                    continue;
                }
                accepted = accept(&listener, resume), if waiting.is_none() => accepted,
            };
            match accepted {
                Ok(accepted) => {
                    pause = Duration::ZERO;
                    match limit.try_acquire() {
                        Some(slot) => drop(connections.spawn(open(accepted, slot))),
                        None => {
                            waiting = Some(accepted);
                            slot.set(Some(limit.acquire(&worker, reporter)));
                        }
                    }
                }
                Err(error) if is_of_one_connection(&error) => {}
                // Most often the process is out of descriptors. Accepting again at once would only spin; connections
                // that end meanwhile free some.
                Err(error) => {
                    reporter.report(ConnectionErrorKind::Accept, None, &error);
                    pause = (pause * 2).clamp(Duration::from_millis(10), Duration::from_secs(1));
                    resume = Instant::now() + pause;
                }
            }
        }

        slot.set(None);
        // The kernel has accepted these clients already, so they are answered; later ones are refused.
        while let Some(slot) = limit.try_acquire() {
            let accepted = match waiting.take() {
                // The other process accepts them.
                None if settings.load().successor.is_set() => break,
                None => listener.accept().now_or_never().and_then(Result::ok),
                waiting => waiting,
            };
            let Some(accepted) = accepted else { break };
            connections.spawn(open(accepted, slot));
        }
        drop(listener);
        let _ = stop.send(true);
        let (draining, worker) = (&mut connections, &worker);
        let drained = timeout(settings.load().limits.drain, async move {
            // No other process has it: it is served as soon as one that drains frees a slot.
            if let Some(accepted) = waiting {
                let slot = limit.acquire(worker, reporter).await;
                draining.spawn(open(accepted, slot));
            }
            while draining.join_next().await.is_some() {}
        });
        if drained.await.is_err() {
            let left = connections.len();
            reporter.report(ConnectionErrorKind::Aborted, None, &format_args!("{left} connections cut off"));
            connections.shutdown().await;
        }
    }
}

impl ListenerSettings {
    /// The client of a connection by its PROXY header; none if it ended before that, or gave its slot to another.
    async fn receive(
        &self,
        socket: &mut TcpStream,
        peer: SocketAddr,
        settings: &ConnectionSettings,
        stop: &mut watch::Receiver<bool>,
        state: &ConnectionState,
    ) -> Result<Option<AnnouncedClient>, ConnectionFailure> {
        if !self.trusted.trusts(peer.ip()) {
            let message =
                "its address is in no network of trusted_proxies, and proxy_protocol = true lets nobody else connect";
            return Err((ConnectionErrorKind::Untrusted, message.into()));
        }
        // A client that connected before a shutdown may have sent its header already.
        let stopping = async {
            let _ = stop.wait_for(|stop| *stop).await;
            sleep(settings.farewell(false)).await;
        };
        // Boxed: connections without a header should have no room for one.
        state.before_request(Box::pin(proxy_protocol::receive(socket, &settings.limits, stopping, state))).await
    }

    /// The socket that requests come over, after its TLS handshake if there is one; none where the client has left.
    async fn secure(
        &self,
        socket: TcpStream,
        fields: impl FnOnce(&'static str) -> ForwardedFields,
        stop: impl Future<Output = ()>,
        state: &Arc<ConnectionState>,
        full: impl FnOnce(),
    ) -> Result<Option<(Socket, ConnectionInfo)>, ConnectionFailure> {
        let Some(tls) = &self.tls else {
            let info = ConnectionInfo { forwarded: fields("http"), secured: None };
            return Ok(Some((Socket::Tcp(socket), info)));
        };
        // Boxed: connections without TLS should not carry a handshake.
        Ok(Box::pin(tls.secure(socket, stop, state, full)).await?.map(|(stream, secured)| {
            let info = ConnectionInfo { forwarded: fields("https"), secured: Some(secured) };
            (Socket::Tls(Box::new(stream.into())), info)
        }))
    }
}

tower_robots::internals::debug_as!(|it| Edge { limits: it.settings.load().limits });

/// Waits for a connection, not before `resume`.
async fn accept(listener: &TcpListener, resume: Instant) -> io::Result<(TcpStream, SocketAddr)> {
    if Instant::now() < resume {
        sleep_until(resume).await;
    }
    listener.accept().await
}

/// Whether the error concerns only the connection that was about to be accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// The output of a future, where there is one.
async fn of_some<F: Future>(mut future: Pin<&mut Option<F>>) -> F::Output {
    poll_fn(|cx| future.as_mut().as_pin_mut().map_or(Poll::Pending, |future| future.poll(cx))).await
}
