//! Accepts connections and serves them until shutdown.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::FutureExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::client_slots::{ClientSlots, RegisteredConnection, WorkerConnections};
use super::connection::settings::{ConnectionSettings, EdgeLimits, stopped};
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
use crate::http_common::{EdgeService, Peer};
use crate::socket::Socket;

/// The settings of one listener. The default is a listener without TLS and without trusted proxies.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListenerSettings {
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) trusted: Arc<Trusted>,
    /// Whether every connection must begin with a PROXY header. If so, only trusted proxies may
    /// connect.
    pub(crate) proxy_protocol: bool,
    /// Counters of the listener on this worker, from [`Edge::counts`]. By default, the counters
    /// have no label.
    pub(crate) counts: Option<Arc<ResponseCounts>>,
    /// The functions that answer SPOP messages; `None` if the listener does not support SPOP.
    pub(crate) messages: Option<SpopMessages>,
}

/// State shared by the listeners of a process: settings, the connection limit, and the callback for
/// connection errors.
///
/// Cloning is cheap. The shared state is written when a connection begins or ends, but never for a
/// request.
#[derive(Clone)]
pub(crate) struct Edge {
    settings: Arc<ArcSwap<ConnectionSettings>>,
    shared: Arc<SharedConnections>,
}

#[derive(Debug)]
pub(crate) struct EdgeTraffic {
    pub(crate) open: usize,
    pub(crate) accepted: u64,
    pub(crate) responses: ResponseTotals,
    pub(crate) errors: [(ConnectionErrorKind, u64); ConnectionErrorKind::ALL.len()],
}

struct SharedConnections {
    limit: ClientSlots,
    /// Number of connections accepted so far. The number of a connection is part of the ids of its
    /// requests.
    opened: AtomicU64,
    listeners: ListenerCounts,
    reporter: ConnectionErrorReporter,
}

impl Edge {
    /// Creates the state that all listeners share. `on_error` is called for connection errors, at
    /// most once a second for each kind of error. `on_access` is called for every request. Neither
    /// function may block.
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

    /// Returns a copy with changed limits. The copy shares the connection slots with the original,
    /// so the number of slots does not change.
    pub(crate) fn with_limits(&self, change: impl FnOnce(EdgeLimits) -> EdgeLimits) -> Self {
        let settings = self.settings.load();
        let settings = ArcSwap::from_pointee(settings.with(change(settings.limits.clone())));
        Self { shared: Arc::clone(&self.shared), settings: Arc::new(settings) }
    }

    /// Sets the limits for future connections. The number of connection slots does not change.
    pub(crate) fn set_limits(&self, limits: EdgeLimits) {
        let settings = self.settings.load().with(limits);
        self.settings.store(Arc::new(settings));
    }

    /// Changes the connection limit of all listeners from `before` to `now`. If more than `now`
    /// connections are open, idle connections are closed until the new limit is met. Until the new
    /// limit is met, new connections wait. Must be called within a Tokio runtime.
    pub(crate) fn set_connection_slots(&self, before: usize, now: usize) {
        if now >= before {
            self.shared.limit.slots.add_permits(now - before);
            return;
        }
        // A slot that is in use can be removed only when its connection ends.
        let owed = before - now - self.shared.limit.slots.forget_permits(before - now);
        let shared = Arc::clone(&self.shared);
        drop(tokio::spawn(async move {
            let none = Arc::default();
            for _ in 0..owed {
                shared.limit.acquire(&none, &shared.reporter).await.forget();
            }
        }));
    }

    /// Records that another process now accepts connections. Once this process shuts down, its
    /// responses tell clients to reconnect.
    pub(crate) fn set_successor(&self) {
        self.settings.load().successor.set(true);
    }

    pub(crate) fn connections(&self) -> usize {
        self.settings.load().limits.connections
    }

    pub(crate) fn traffic(&self) -> EdgeTraffic {
        let (open, responses) = (self.shared.limit.open(), self.shared.listeners.responses());
        let accepted = self.shared.opened.load(Ordering::Relaxed);
        EdgeTraffic { open, accepted, responses, errors: self.shared.reporter.totals() }
    }

    pub(crate) fn counts(&self, listener: &str) -> Arc<ResponseCounts> {
        self.shared.listeners.of_worker(listener)
    }

    pub(crate) fn listeners(&self) -> ListenerTraffic {
        self.shared.listeners.traffic()
    }

    /// Serves a listener until `shutdown` completes and its connections have drained.
    ///
    /// At shutdown, the listener is closed after the connections in its backlog have been accepted.
    /// Idle connections are closed immediately. Connections that have not sent anything yet are
    /// closed after [`EdgeLimits::greeting`]. Requests in progress have [`EdgeLimits::drain`] to
    /// finish. If [another process](Edge::set_successor) now accepts connections, open connections
    /// are kept longer, so that a response can announce the end of the connection. Dropping the
    /// future ends everything immediately.
    pub(crate) async fn serve(
        &self,
        listener: TcpListener,
        listener_settings: ListenerSettings,
        service: impl EdgeService,
        shutdown: impl Future<Output = ()>,
    ) {
        watched_socket::limit_unsent_data(&listener);
        let mut served = ServedListener::new(self, &listener, listener_settings, service);
        served.accept_until(&listener, shutdown).await;
        served.accept_backlog(listener);
        served.drain().await;
    }
}

tower_robots::internals::debug_as!(|it| Edge { limits: it.settings.load().limits });

type Accepted = (TcpStream, SocketAddr);

struct ServedListener<S> {
    context: Arc<ListenerContext>,
    service: S,
    counts: Arc<ResponseCounts>,
    worker: Arc<WorkerConnections>,
    connections: JoinSet<()>,
    /// An accepted connection that has no slot yet. A slot is acquired only after accepting. If a
    /// slot were acquired first, each listener that waits for a connection would occupy a slot.
    waiting: Option<Accepted>,
    stop: watch::Sender<bool>,
}

impl<S: EdgeService> ServedListener<S> {
    fn new(edge: &Edge, listener: &TcpListener, settings: ListenerSettings, service: S) -> Self {
        let (stop, stopped) = watch::channel(false);
        let counts = settings.counts.clone().unwrap_or_else(|| edge.counts(""));
        let worker = edge.shared.limit.current_worker();
        let (edge, clock, local) = (edge.clone(), Arc::default(), listener.local_addr().ok());
        let context = Arc::new(ListenerContext { edge, settings, clock, local, stopped });
        Self { context, service, counts, worker, connections: JoinSet::new(), waiting: None, stop }
    }

    async fn accept_until(&mut self, listener: &TcpListener, shutdown: impl Future<Output = ()>) {
        let mut shutdown = pin!(shutdown);
        let mut pause = Duration::ZERO;
        let mut resume = Instant::now();
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut shutdown => return,
                // Finished tasks are removed before the next connection is accepted. Otherwise
                // finished tasks would accumulate during a flood of short connections.
                Some(_) = self.connections.join_next() => continue,
                accepted = accept(listener, resume) => accepted,
            };
            match accepted {
                Ok(accepted) => {
                    pause = Duration::ZERO;
                    self.waiting = Some(accepted);
                    tokio::select! {
                        biased;
                        () = &mut shutdown => return,
                        () = self.open_waiting() => {}
                    }
                }
                Err(error) if concerns_one_connection(&error) => {}
                // The usual cause is that the process is out of file descriptors. An immediate
                // retry would fail again, in a busy loop. During the pause, other connections may
                // end and free their descriptors.
                Err(error) => {
                    self.context.edge.shared.reporter.report(ConnectionErrorKind::Accept, None, &error);
                    pause = (pause * 2).clamp(Duration::from_millis(10), Duration::from_secs(1));
                    resume = Instant::now() + pause;
                }
            }
        }
    }

    /// Accepts connections from the kernel's backlog while there are free slots, because their
    /// clients already consider these connections established. Then closes the listener, so that
    /// new connections are refused.
    fn accept_backlog(&mut self, listener: TcpListener) {
        while let Some(slot) = self.context.edge.shared.limit.try_acquire() {
            if self.waiting.is_none() && !self.context.edge.settings.load().successor.is_set() {
                self.waiting = listener.accept().now_or_never().and_then(Result::ok);
            }
            let Some(accepted) = self.waiting.take() else { return };
            self.open(accepted, slot);
        }
    }

    /// Waits until all connections have ended, for at most [`EdgeLimits::drain`]. Then aborts the
    /// remaining connections.
    async fn drain(mut self) {
        let _ = self.stop.send(true);
        let limit = self.context.edge.settings.load().limits.drain;
        let ended = timeout(limit, async {
            // The waiting connection was already accepted, so no other process can serve it. The
            // connection is served when a draining connection frees a slot.
            if self.waiting.is_some() {
                self.open_waiting().await;
            }
            while self.connections.join_next().await.is_some() {}
        });
        if ended.await.is_err() {
            let (left, reporter) = (self.connections.len(), &self.context.edge.shared.reporter);
            reporter.report(
                ConnectionErrorKind::Aborted,
                None,
                &format_args!("{left} connections were closed although their requests were still in progress"),
            );
            self.connections.shutdown().await;
        }
    }

    async fn open_waiting(&mut self) {
        let slot = self.slot().await;
        if let Some(accepted) = self.waiting.take() {
            self.open(accepted, slot);
        }
    }

    /// Waits for a slot, and removes finished tasks while it waits.
    async fn slot(&mut self) -> OwnedSemaphorePermit {
        let SharedConnections { limit, reporter, .. } = &*self.context.edge.shared;
        let mut acquiring = pin!(limit.acquire(&self.worker, reporter));
        loop {
            tokio::select! {
                biased;
                Some(_) = self.connections.join_next() => {}
                slot = &mut acquiring => return slot,
            }
        }
    }

    /// Starts to serve an accepted connection, which holds `slot` until it ends.
    fn open(&mut self, (socket, peer): Accepted, slot: OwnedSemaphorePermit) {
        // Without TCP_NODELAY, small responses may wait for an acknowledgement. An error is
        // ignored, because it occurs only if the socket is already broken.
        let _ = socket.set_nodelay(true);
        let ListenerContext { edge, .. } = &*self.context;
        let settings = edge.settings.load_full();
        let number = edge.shared.opened.fetch_add(1, Ordering::Relaxed);
        let mut state = ConnectionState::new(&settings.limits);
        state.counts = Arc::clone(&self.counts);
        let state = Arc::new(state);
        let open = (slot, self.worker.add(&state), Arc::clone(&self.counts).open());
        let connection = NewConnection { context: Arc::clone(&self.context), settings, state, peer, number };
        self.connections.spawn(connection.serve(socket, self.service.clone(), open));
    }
}

async fn accept(listener: &TcpListener, resume: Instant) -> io::Result<Accepted> {
    if Instant::now() < resume {
        sleep_until(resume).await;
    }
    listener.accept().await
}

/// Reports whether an error of `accept` concerns only the connection that would have been accepted.
fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

struct ListenerContext {
    edge: Edge,
    settings: ListenerSettings,
    clock: Arc<DateClock>,
    local: Option<SocketAddr>,
    stopped: watch::Receiver<bool>,
}

struct NewConnection {
    context: Arc<ListenerContext>,
    settings: Arc<ConnectionSettings>,
    state: Arc<ConnectionState>,
    peer: SocketAddr,
    number: u64,
}

impl NewConnection {
    /// Serves the connection until it ends. If an error ended the connection, reports the error.
    /// The elements of the tuple `_open` are dropped in order. The slot must be first: if the
    /// registration were dropped before the slot is free, a waiter that has claimed the slot could
    /// claim a second slot.
    async fn serve(
        self,
        socket: TcpStream,
        service: impl EdgeService,
        _open: (OwnedSemaphorePermit, RegisteredConnection, impl Send),
    ) {
        self.state.enter_task().await;
        let mut announced = None;
        let Err((kind, error)) = self.serve_announced(socket, service, &mut announced).await else { return };
        let client = self.client(announced);
        // The connection may be a health check of the proxy. In PROXY version 1, the header of a
        // health check contains no client, or the proxy itself as the client.
        let may_be_check = announced.is_some() && client == self.peer;
        // A health check resets the connection once it has its result, which is not an error.
        if !may_be_check || kind != ConnectionErrorKind::Broken || self.state.has_served() {
            self.context.edge.shared.reporter.report(kind, Some(client), &error);
        }
    }

    async fn serve_announced(
        &self,
        mut socket: TcpStream,
        service: impl EdgeService,
        announced: &mut Option<AnnouncedClient>,
    ) -> Result<(), ConnectionFailure> {
        if self.context.settings.proxy_protocol {
            *announced = self.receive_header(&mut socket).await?;
            if announced.is_none() {
                return Ok(());
            }
        }
        let Some((socket, info)) = self.secure(socket, *announced).await? else { return Ok(()) };
        let (settings, state, context) = (Arc::clone(&self.settings), Arc::clone(&self.state), &self.context);
        let service = RequestService::new(service, Arc::clone(&settings), state, info, self.number).into();
        let (clock, stop) = (Arc::clone(&context.clock), context.stopped.clone());
        connection::serve(socket, service, settings, clock, stop, context.settings.messages).await
    }

    /// Returns the client's address from the PROXY header. If there is no PROXY header, returns the
    /// address of the peer.
    fn client(&self, announced: Option<AnnouncedClient>) -> SocketAddr {
        match announced {
            Some(AnnouncedClient::Address(address)) => address,
            _ => self.peer,
        }
    }

    /// Receives the PROXY header. Returns `None` if the connection ended first, or if its slot was
    /// claimed.
    async fn receive_header(&self, socket: &mut TcpStream) -> Result<Option<AnnouncedClient>, ConnectionFailure> {
        if !self.context.settings.trusted.trusts(self.peer.ip()) {
            let message = "the client's address is not in trusted_proxies, which proxy_protocol = true requires";
            return Err((ConnectionErrorKind::Untrusted, message.into()));
        }
        // During a shutdown, a client that connected earlier may still be sending its header.
        let stopping = async {
            stopped(self.context.stopped.clone()).await;
            sleep(self.settings.idle_drain_time(false)).await;
        };
        // The future is boxed, so that connections to listeners without PROXY headers do not
        // reserve memory for this future.
        let receiving = Box::pin(proxy_protocol::receive(socket, &self.settings.limits, stopping, &self.state));
        self.state.before_request(receiving).await
    }

    /// Performs the TLS handshake if the listener has TLS, and returns the socket for requests.
    /// Returns `None` if the client has disconnected.
    async fn secure(
        &self,
        socket: TcpStream,
        announced: Option<AnnouncedClient>,
    ) -> Result<Option<(Socket, ConnectionInfo)>, ConnectionFailure> {
        let ListenerContext { edge, settings: listener, local, .. } = &*self.context;
        let client = self.client(announced);
        let forwarded = |scheme| {
            let fields = ForwardedFields::new(Peer::at(client, *local), scheme, Arc::clone(&listener.trusted));
            match announced {
                None => fields,
                Some(AnnouncedClient::Unknown) => fields.announced().untrusted(),
                Some(_) => fields.announced(),
            }
        };
        let Some(tls) = &listener.tls else {
            let info = ConnectionInfo { forwarded: forwarded("http"), secured: None };
            return Ok(Some((Socket::Tcp(socket), info)));
        };
        let stopping = async {
            stopped(self.context.stopped.clone()).await;
            // If no other process accepts connections, this connection is closed immediately,
            // because its client has not sent anything yet.
            if self.settings.successor.is_set() {
                sleep(self.settings.idle_drain_time(false)).await;
            }
        };
        let reporter = &edge.shared.reporter;
        let full = || {
            reporter.report(
                ConnectionErrorKind::Full,
                Some(client),
                &"the limit of concurrent TLS handshakes is reached: the connection waits",
            )
        };
        // The future is boxed, so that connections to listeners without TLS do not reserve memory
        // for this future.
        let secured = Box::pin(tls.secure(socket, stopping, &self.state, full)).await?;
        Ok(secured.map(|(stream, secured)| {
            let info = ConnectionInfo { forwarded: forwarded("https"), secured: Some(secured) };
            (Socket::Tls(Box::new(stream.into())), info)
        }))
    }
}
