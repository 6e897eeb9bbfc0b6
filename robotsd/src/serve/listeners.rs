//! Opens listeners, and replaces them at a reload without refusing connections.
//!
//! A listener that is the same in the old and the new config is not changed. If the settings of a
//! listener differ, a new listener is opened on the sockets of the old listener before the old
//! listener stops accepting. So at any time, at least one of these two listeners accepts
//! connections.
//!
//! **The control thread keeps a duplicate of every listening socket**, so that a listener with
//! other settings can be opened on the same socket before the old listener is closed. Before a
//! listener is closed permanently, the control thread drops the duplicates of the listener's
//! sockets. If the duplicates stayed open, the kernel would still accept connections on the port,
//! but no worker would serve them.
//!
//! **A listener is a task on every worker.** The control thread holds a guard for each listener.
//! When the guard is dropped, the workers accept the backlog, close the sockets and drain the
//! connections.
//!
//! **Before several sockets share a port, one socket binds the port without sharing.** This bind
//! fails if another process uses the port. Without this bind, the kernel would let two processes of
//! the same user share the port, and each process would get half of the connections.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::sync::Arc;

use tokio_util::sync::DropGuard;

use super::socket_activation::InheritedSockets;
use super::upgrade::{HandedSockets, SocketPlace};
use super::workers::Workers;
use crate::config::{self, Config, ListenerKind};
use crate::decision::{self, Decisions, QuestionErrors};
use crate::edge::{Edge, EdgeLimits, ListenerSettings, TlsAcceptor};
use crate::log::{Log, LogEvent};
use crate::report::ListenerReport;

#[derive(Debug, Default)]
pub(super) struct Listeners {
    open: Vec<OpenListener>,
}

/// A prepared change of listeners. The sockets of new listeners are already bound.
#[derive(Debug)]
pub(super) struct ListenerPlan {
    steps: Vec<ListenerStep>,
    pub(super) changes: Vec<String>,
}

#[derive(Debug)]
enum ListenerStep {
    Keep(usize),
    Open(Box<OpenListener>),
}

/// The settings that a listener was opened with.
#[derive(Clone, Debug, PartialEq)]
struct BindSettings {
    listener: config::ListenerConfig,
    /// Maximum number of concurrent TLS handshakes, and maximum duration of a handshake; `None` if
    /// the listener does not use TLS.
    handshakes: Option<(NonZeroUsize, std::time::Duration)>,
}

#[derive(Debug)]
struct OpenListener {
    settings: BindSettings,
    local: SocketAddr,
    /// Duplicates of the workers' sockets. Each inner list belongs to one address and has one
    /// socket per worker. A listener with other settings can be opened on the duplicates. A socket
    /// listens until both the socket and its duplicate have been dropped.
    sockets: Vec<Vec<TcpListener>>,
    /// Guards that keep the workers accepting connections; empty until the workers serve this
    /// listener. This field is declared after `sockets`, so that the duplicates are dropped before
    /// these guards close the listener.
    accepting: Vec<DropGuard>,
    report: ListenerReport,
    /// Counters of failed decision requests; `None` unless this is a decision listener.
    question_errors: Option<Arc<QuestionErrors>>,
    /// The settings and the connection count of this listener, if it has its own limits.
    edge: Option<Edge>,
}

impl ListenerPlan {
    /// Checks that a starting process can bind its listeners, except listeners whose sockets were
    /// passed to it. The check comes before the sites are opened. Without the check, a start could
    /// fail after a new version of a robots.txt was published, and the grace period of this version
    /// would begin although crawlers cannot fetch it.
    pub(super) fn check_bind(config: &Config, passed: &InheritedSockets) -> Result<(), String> {
        let mut bound_here = config.listeners.iter().filter(|listener| !passed.has_socket_for(listener));
        bound_here.try_for_each(|config::ListenerConfig { address, .. }| {
            listen(*address, Sharing::Alone).map(drop).map_err(|error| listen_error(*address, &error))
        })
    }

    /// Plans the listeners of a starting process. If sockets were passed for a listener, uses them
    /// instead of binding its address.
    pub(super) fn first(
        config: &Config,
        passed: &mut InheritedSockets,
        workers: NonZeroUsize,
        log: &Log,
    ) -> Result<Self, String> {
        let any_passed = !passed.is_empty();
        let mut steps = Vec::new();
        for listener in &config.listeners {
            let cannot = |error| listen_error(listener.address, &error);
            let mut sockets = Vec::new();
            let inherited = passed.for_listener(listener);
            if has_socket_per_worker(&inherited, workers) {
                // The previous process had the same number of workers, so each worker gets one of
                // the passed sockets. The kernel spreads connections over these sockets.
                sockets.push(inherited);
            } else {
                for socket in inherited {
                    sockets.push(share(socket, workers).map_err(cannot)?);
                }
            }
            let origin = if sockets.is_empty() { "bound" } else { "passed" };
            if sockets.is_empty() {
                if any_passed {
                    let address = listener.address;
                    let message =
                        format!("{address}: the supervisor passed no socket for this listener, so robotsd opens it");
                    log.write_message(LogEvent::Supervisor, message);
                }
                sockets.push(bind(listener.address, workers).map_err(cannot)?);
            }
            let bound = OpenListener::bound(BindSettings::of(listener, config), sockets, origin)?;
            steps.push(ListenerStep::Open(bound.into()));
        }
        Ok(Self { steps, changes: Vec::new() })
    }
}

impl Listeners {
    pub(super) fn plan(&self, config: &Config, workers: NonZeroUsize) -> Result<ListenerPlan, String> {
        let mut left: Vec<usize> = (0..self.open.len()).collect();
        // Several listeners may have port 0, so the address alone does not identify a listener.
        // Therefore, listeners with identical settings are matched first. The content of
        // certificate files is not compared, because these files are watched separately.
        let mut take = |fits: &dyn Fn(&OpenListener) -> bool| {
            let found = left.iter().position(|place| fits(&self.open[*place]))?;
            Some(left.remove(found))
        };
        let settings: Vec<_> = config.listeners.iter().map(|listener| BindSettings::of(listener, config)).collect();
        let same: Vec<_> = settings.iter().map(|settings| take(&|opened| opened.settings == *settings)).collect();
        let mut plan = ListenerPlan { steps: Vec::new(), changes: Vec::new() };
        for (settings, same) in settings.into_iter().zip(same) {
            let address = settings.listener.address;
            if let Some(place) = same {
                plan.steps.push(ListenerStep::Keep(place));
                continue;
            }
            let bound = match take(&|opened| opened.settings.listener.address == address) {
                Some(place) => {
                    let opened = &self.open[place];
                    plan.changes
                        .push(format!("the settings of listener {address} have changed", address = opened.local));
                    let again = opened.sockets.iter().map(|sockets| duplicates(sockets)).collect::<io::Result<_>>();
                    let again = again.map_err(|error| listen_error(address, &error))?;
                    OpenListener::bound(settings, again, &opened.report.socket)?
                }
                None => {
                    let sockets = bind(address, workers).map_err(|error| listen_error(address, &error))?;
                    let bound = OpenListener::bound(settings, vec![sockets], "bound")?;
                    plan.changes.push(format!("listener {} is new", bound.local));
                    bound
                }
            };
            plan.steps.push(ListenerStep::Open(bound.into()));
        }
        let gone = left.into_iter().map(|place| format!("listener {} is removed", self.open[place].local));
        plan.changes.extend(gone);
        Ok(plan)
    }

    /// Opens the new listeners, and then closes the removed listeners. Requests in progress may
    /// finish. Returns the newly opened addresses. If a listener cannot be opened, returns the
    /// error, and closes only listeners that another listener has replaced.
    pub(super) fn apply(
        &mut self,
        plan: ListenerPlan,
        workers: &mut Workers,
        edge: &Edge,
        log: &Log,
    ) -> Result<Vec<String>, String> {
        let mut before: Vec<Option<OpenListener>> = std::mem::take(&mut self.open).into_iter().map(Some).collect();
        let mut news = Vec::new();
        let mut failure = None;
        for step in plan.steps {
            match step {
                ListenerStep::Keep(place) => self.open.extend(before.get_mut(place).and_then(Option::take)),
                ListenerStep::Open(mut bound) => match bound.open(workers, edge, log) {
                    Ok(()) => {
                        news.push(format!("{}://{}", bound.report.scheme, bound.local));
                        self.open.push(*bound);
                    }
                    Err(error) => failure = Some(error),
                },
            }
        }
        let Some(failure) = failure else { return Ok(news) };
        // If the removed listeners were closed as well, there might be no listener left, and the
        // process would end.
        for opened in before.into_iter().flatten() {
            if self.open.iter().all(|other| other.local != opened.local) {
                self.open.push(opened);
            }
        }
        Err(failure)
    }

    pub(super) fn sockets(&self) -> io::Result<HandedSockets> {
        let mut sockets = Vec::new();
        for OpenListener { settings, sockets: open, .. } in &self.open {
            let place = SocketPlace::Listener(settings.listener.address);
            for socket in distinct_sockets(open) {
                sockets.push((place.clone(), socket.try_clone()?.into()));
            }
        }
        Ok(sockets)
    }

    /// Drops the duplicates of the sockets. Once the duplicates are dropped, a port is closed as
    /// soon as the workers close their sockets.
    pub(super) fn release_sockets(&mut self) {
        self.open.iter_mut().for_each(|opened| opened.sockets.clear());
    }

    pub(super) fn drain(&mut self) {
        self.open.iter_mut().for_each(|opened| opened.accepting.clear());
    }

    /// Updates the limits of decision listeners, which have their own limits. The new limits apply
    /// to new connections.
    pub(super) fn set_limits(&self, limits: &EdgeLimits) {
        for edge in self.open.iter().filter_map(|opened| opened.edge.as_ref()) {
            edge.set_limits(decision::limits(limits.clone()));
        }
    }

    pub(super) fn reports(&self) -> Vec<ListenerReport> {
        self.open.iter().map(|opened| opened.report.clone()).collect()
    }

    pub(super) fn question_errors(&self) -> Vec<Arc<QuestionErrors>> {
        self.open.iter().filter_map(|opened| opened.question_errors.clone()).collect()
    }

    pub(super) fn configs(&self) -> Vec<config::ListenerConfig> {
        self.open.iter().map(|opened| opened.settings.listener.clone()).collect()
    }
}

impl BindSettings {
    fn of(listener: &config::ListenerConfig, config: &Config) -> Self {
        let handshakes = (config.edge.handshakes, config.edge.tls_handshake);
        Self { listener: listener.clone(), handshakes: listener.certificates.is_some().then_some(handshakes) }
    }

    fn listener_settings(&self) -> ListenerSettings {
        let tls = self.listener.certificates.clone().zip(self.handshakes);
        let tls = tls.map(|(live, (handshakes, longest))| TlsAcceptor::new(live, handshakes, longest));
        let config::ListenerConfig { trusted, proxy_protocol, kind, .. } = &self.listener;
        let messages = match kind {
            ListenerKind::Proxy => None,
            ListenerKind::Decision => Some(decision::MESSAGES),
        };
        ListenerSettings { tls, trusted: Arc::clone(trusted), proxy_protocol: *proxy_protocol, counts: None, messages }
    }
}

impl OpenListener {
    fn bound(settings: BindSettings, sockets: Vec<Vec<TcpListener>>, origin: &str) -> Result<Self, String> {
        let listener = &settings.listener;
        let first = sockets.iter().flatten().next();
        let local = first.map_or(Ok(listener.address), TcpListener::local_addr);
        let local = local.map_err(|error| listen_error(listener.address, &error))?;
        let report = ListenerReport {
            name: listener.name.clone(),
            address: local.to_string(),
            kind: listener.kind.as_str().to_owned(),
            scheme: if listener.certificates.is_some() { "https" } else { "http" }.to_owned(),
            socket: origin.to_owned(),
        };
        Ok(Self { settings, local, sockets, accepting: Vec::new(), report, question_errors: None, edge: None })
    }

    fn open(&mut self, workers: &mut Workers, edge: &Edge, log: &Log) -> Result<(), String> {
        let label = self.report.name.clone().unwrap_or_else(|| self.local.to_string());
        let local = self.local;
        let cannot = |error| listen_error(local, &error);
        let listener_settings = self.settings.listener_settings();
        let errors = Arc::new(QuestionErrors::new(log.clone(), self.settings.listener.questions));
        for sockets in &self.sockets {
            let sockets = duplicates(sockets).map_err(cannot)?;
            let open = match self.settings.listener.kind {
                ListenerKind::Proxy => workers.open(sockets, edge, &label, &listener_settings, |worker, counts| {
                    worker.router.with_listener_counts(counts)
                }),
                ListenerKind::Decision => {
                    self.question_errors = Some(Arc::clone(&errors));
                    let edge = self.edge.get_or_insert_with(|| edge.with_limits(decision::limits));
                    workers.open(sockets, edge, &label, &listener_settings, |worker, counts| {
                        Decisions::new(worker.decision_sites.clone(), errors.clone(), counts)
                    })
                }
            };
            self.accepting.push(open.map_err(cannot)?);
        }
        Ok(())
    }
}

/// Reports whether each worker can get one of these sockets of an address. On Linux, the sockets
/// must share their port, so that the kernel spreads connections over them. On other systems, there
/// must be a single worker and a single socket.
fn has_socket_per_worker(sockets: &[TcpListener], workers: NonZeroUsize) -> bool {
    let is_shared = |socket| socket2::SockRef::from(socket).reuse_port().unwrap_or(false);
    sockets.len() == workers.get()
        && if SPREADS_CONNECTIONS { sockets.iter().all(is_shared) } else { sockets.len() == 1 }
}

/// Returns each socket once. If workers share a socket, `open` contains it once per worker.
fn distinct_sockets(open: &[Vec<TcpListener>]) -> impl Iterator<Item = &TcpListener> {
    let identity = |socket: &TcpListener| rustix::fs::fstat(socket).ok().map(|found| (found.st_dev, found.st_ino));
    let mut seen = std::collections::HashSet::new();
    open.iter().flatten().filter(move |socket| identity(socket).is_none_or(|identity| seen.insert(identity)))
}

fn duplicates(sockets: &[TcpListener]) -> io::Result<Vec<TcpListener>> {
    sockets.iter().map(TcpListener::try_clone).collect()
}

fn listen_error(address: SocketAddr, error: &io::Error) -> String {
    format!("{address}: cannot listen here: {error}")
}

/// Maximum number of connections that wait to be accepted. The kernel often has a lower limit.
const BACKLOG: i32 = 4096;

/// Whether the kernel can spread connections over several sockets with the same address.
const SPREADS_CONNECTIONS: bool = cfg!(target_os = "linux");

/// Listens on an address with one socket per worker, so that the kernel spreads connections over
/// the workers. On systems whose kernel cannot spread connections, the workers share one socket.
///
/// With port 0, all sockets get the port of the first socket.
pub(super) fn bind(address: SocketAddr, workers: NonZeroUsize) -> io::Result<Vec<TcpListener>> {
    if workers.get() == 1 || !SPREADS_CONNECTIONS {
        return share(listen(address, Sharing::Alone)?, workers);
    }
    // Binding without sharing fails if another process uses the port (see the module
    // documentation).
    if address.port() != 0 {
        drop(listen(address, Sharing::Alone)?);
    }
    let first = listen(address, Sharing::Shared)?;
    let address = first.local_addr()?;
    let mut sockets = vec![first];
    for _ in 1..workers.get() {
        sockets.push(listen(address, Sharing::Shared)?);
    }
    Ok(sockets)
}

/// Returns duplicates of one socket for all workers, so that any free worker can accept a
/// connection.
pub(super) fn share(socket: TcpListener, workers: NonZeroUsize) -> io::Result<Vec<TcpListener>> {
    let mut sockets = (1..workers.get()).map(|_| socket.try_clone()).collect::<io::Result<Vec<_>>>()?;
    sockets.push(socket);
    Ok(sockets)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sharing {
    Alone,
    Shared,
}

fn listen(address: SocketAddr, sharing: Sharing) -> io::Result<TcpListener> {
    use socket2::{Domain, Protocol, Socket, Type};
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // Without this option (`SO_REUSEADDR`), the address could not be bound while connections of an
    // earlier process are being closed.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(sharing == Sharing::Shared)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;
    use crate::http_common::test_peer::{Raw, refusing};
    use crate::sites::Sites;

    const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();

    fn any_port() -> SocketAddr {
        ([127, 0, 0, 1], 0).into()
    }

    #[test]
    fn every_worker_gets_a_socket_with_the_same_address() {
        let sockets = bind(any_port(), TWO).unwrap();
        let addresses: Vec<_> = sockets.iter().map(|socket| socket.local_addr().unwrap()).collect();
        assert_eq!(addresses.len(), 2);
        assert_eq!(addresses[0], addresses[1]);
    }

    #[test]
    fn a_port_in_use_cannot_be_bound_until_its_sockets_are_closed() {
        // `refusing` reserves the port, so that no other process can bind it after the listeners
        // are closed.
        let (_reserve, address) = refusing();
        let sockets = bind(address, TWO).unwrap();
        for workers in [NonZeroUsize::MIN, TWO] {
            assert_eq!(bind(address, workers).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        }
        drop(sockets);
        bind(address, TWO).unwrap();
    }

    #[test]
    fn every_copy_of_a_shared_socket_accepts_connections() {
        let sockets = share(TcpListener::bind(any_port()).unwrap(), TWO).unwrap();
        for socket in &sockets {
            let client = std::net::TcpStream::connect(sockets[0].local_addr().unwrap()).unwrap();
            let (_, peer) = socket.accept().unwrap();
            assert_eq!(peer, client.local_addr().unwrap());
        }
    }

    fn config(listener: &str) -> Config {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("robotsd.toml");
        let site = "[[site]]\nname = \"a\"\nroot = \".\"\nrobots.text = \"# a\"\n";
        std::fs::write(&path, format!("[[listener]]\n{listener}\n{site}")).unwrap();
        Config::load(&path).unwrap()
    }

    #[tokio::test]
    async fn the_old_listener_stays_open_if_the_new_one_cannot_be_opened() {
        let before = config("address = \"127.0.0.1:0\"");
        let log = Log::start(before.log.format);
        let mut workers = Workers::start(TWO, &Sites::open(&before, false, &log).unwrap()).unwrap();
        let edge = Edge::new(EdgeLimits::default(), |_| {}, None);
        let mut listeners = Listeners::default();
        let plan = listeners.plan(&before, TWO).unwrap();
        listeners.apply(plan, &mut workers, &edge, &log).unwrap();
        let address = listeners.open[0].local;
        for after in ["address = \"127.0.0.1:0\"\ntrusted_proxies = [\"127.0.0.1\"]", "address = \"0.0.0.0:0\""] {
            let mut plan = listeners.plan(&config(after), TWO).unwrap();
            let Some(ListenerStep::Open(new)) = plan.steps.first_mut() else { panic!("{after}") };
            // An event loop cannot wait for a regular file.
            let file = || TcpListener::from(OwnedFd::from(tempfile::tempfile().unwrap()));
            new.sockets = vec![vec![file(), file()]];
            listeners.apply(plan, &mut workers, &edge, &log).unwrap_err();
            let open: Vec<_> = listeners.open.iter().map(|opened| opened.local).collect();
            assert_eq!(open, [address], "{after}");
            let mut client = Raw::connect(address).await;
            assert_eq!(client.ask("GET /robots.txt HTTP/1.1\r\nHost: h\r\n\r\n").await.body, "# a", "{after}");
        }
    }
}
