//! The servers behind a site. All workers share this state.
//!
//! The shared state is the list of servers, their health, and the number of open connections.
//! Workers read the shared state for each request, and write it only when something changes. The
//! connections themselves belong to the workers: each worker has an [`Upstream`](super::Upstream).

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwap;
use http::HeaderValue;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::connection_limit::ConnectionLimit;
use super::endpoint::{Endpoint, EndpointAddress, HttpVersions, ServerAddress, UpstreamLimits};
use super::failure::{UpstreamEvent, UpstreamEventKind, UpstreamFailure, UpstreamReporter};
use super::failure_kind::FailureKind;
use super::read_ahead::BufferBudget;
use super::resolver::{LookupPermit, LookupSchedule, Resolver};
use super::server::{Health, HealthPolicy, Outage, Server, ServerStatus, Ticket};
use super::tls::{SystemTrust, TlsClient, TlsSettings};
use crate::metrics::Counter;

#[derive(Clone, Debug)]
pub(crate) struct SharedResources {
    resolver: Resolver,
    trust: Arc<SystemTrust>,
    buffers: Arc<BufferBudget>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OriginsSettings {
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) versions: HttpVersions,
    pub(crate) health: HealthPolicy,
    pub(crate) tls: TlsSettings,
}

/// The servers behind a site. Clones share the servers.
#[derive(Clone, Debug)]
pub(crate) struct Origins(pub(super) Arc<OriginsState>);

#[derive(Debug)]
pub(super) struct OriginsState {
    entries: Vec<OriginEntry>,
    pub(super) has_names: bool,
    /// The current servers; empty if no name could be resolved.
    pub(super) servers: ArcSwap<Vec<Arc<Server>>>,
    health: HealthPolicy,
    versions: HttpVersions,
    pub(super) connection_limit: Arc<ConnectionLimit>,
    resolver: Resolver,
    /// Notified when a lookup has ended, successfully or not.
    pub(super) answered: Notify,
    pub(super) reporter: UpstreamReporter,
    /// The counters of answered requests. Each worker adds a counter, and no counter is removed, so
    /// the total never decreases.
    answered_requests: Mutex<Vec<Arc<Counter>>>,
    start: Instant,
    pub(super) authority: HeaderValue,
    pub(super) limits: UpstreamLimits,
    pub(super) buffers: Arc<BufferBudget>,
}

#[derive(Debug)]
enum OriginEntry {
    Fixed(Arc<Server>),
    Named(NamedOrigin),
}

/// A host name, and the servers at its addresses.
#[derive(Debug)]
struct NamedOrigin {
    host: String,
    port: u16,
    tls: Option<TlsClient>,
    schedule: Arc<LookupSchedule>,
    known: Mutex<ResolvedServers>,
}

#[derive(Debug, Default)]
struct ResolvedServers {
    servers: Vec<Arc<Server>>,
    /// Time and error of the first failed lookup since the last successful lookup.
    failing: Option<(SystemTime, String)>,
}

impl SharedResources {
    pub(crate) fn system() -> Self {
        Self { buffers: BufferBudget::of_process(), ..Self::with(Resolver::system()) }
    }

    pub(super) fn with(resolver: Resolver) -> Self {
        Self { resolver, trust: Arc::default(), buffers: Arc::default() }
    }
}

impl Origins {
    /// Creates the servers of a site. Does not connect or resolve names.
    ///
    /// The function `on_event` is called for each [`UpstreamEvent`], and must not block.
    ///
    /// # Errors
    ///
    /// Returns an error if TLS cannot be set up.
    pub(crate) fn new(
        settings: &OriginsSettings,
        limits: UpstreamLimits,
        resources: &SharedResources,
        on_event: impl Fn(&UpstreamEvent) + Send + Sync + 'static,
    ) -> Result<Self, String> {
        let start = Instant::now();
        let entry = |endpoint: &Endpoint| {
            let tls = if endpoint.is_tls() {
                let name = settings.tls.server_name.clone().unwrap_or_else(|| endpoint.host());
                Some(TlsClient::new(settings.tls.client(&resources.trust)?, &name, settings.versions)?)
            } else {
                None
            };
            Ok(match &endpoint.address {
                EndpointAddress::Server(address) => {
                    let health = Health::new(settings.health.clone(), start);
                    OriginEntry::Fixed(Arc::new(Server::new(address.clone(), tls, settings.versions, health)))
                }
                EndpointAddress::Name(host, port) => {
                    let schedule = Arc::new(LookupSchedule::new(start));
                    let (host, port, known) = (host.clone(), *port, Mutex::default());
                    OriginEntry::Named(NamedOrigin { host, port, tls, schedule, known })
                }
            })
        };
        let entries = settings.endpoints.iter().map(entry).collect::<Result<Vec<_>, String>>()?;
        let authority = settings.endpoints.first().map(Endpoint::authority);
        let authority = authority.and_then(|authority| HeaderValue::try_from(authority).ok());
        let shared = OriginsState {
            has_names: entries.iter().any(|entry| matches!(entry, OriginEntry::Named(_))),
            entries,
            servers: ArcSwap::default(),
            health: settings.health.clone(),
            versions: settings.versions,
            connection_limit: Arc::new(ConnectionLimit::new(limits.connections, limits.address_connections)),
            resolver: resources.resolver.clone(),
            answered: Notify::new(),
            reporter: UpstreamReporter::new(on_event),
            answered_requests: Mutex::default(),
            start,
            authority: authority.unwrap_or(HeaderValue::from_static("localhost")),
            limits,
            buffers: Arc::clone(&resources.buffers),
        };
        shared.publish_servers();
        Ok(Self(Arc::new(shared)))
    }

    /// Reports whether both values are clones of each other.
    pub(crate) fn is_clone_of(&self, others: &Self) -> bool {
        Arc::ptr_eq(&self.0, &others.0)
    }

    /// Returns the status of every server, and of every name that cannot be resolved. If all
    /// servers are out of service, [`Outage::again`](super::server::Outage) is zero, because the
    /// next request tries them anyway.
    pub(crate) fn status(&self) -> Vec<ServerStatus> {
        let of_entries = self.0.entries.iter().flat_map(|entry| entry.status(&self.0.connection_limit));
        let mut all: Vec<_> = of_entries.collect();
        let are_all_out = all.iter().all(|server| server.outage.is_some());
        let outages = all.iter_mut().filter(|_| are_all_out).flat_map(|server| &mut server.outage);
        outages.for_each(|outage| outage.again = Duration::ZERO);
        all
    }

    pub(crate) fn failures(&self) -> Vec<(FailureKind, u64)> {
        self.0.reporter.failures()
    }

    pub(crate) fn answered_requests(&self) -> u64 {
        self.0.answered_requests()
    }

    /// Returns the number of requests that have failed in a row, and the last failure; `None` if a
    /// request has been answered since.
    pub(crate) fn unanswered(&self) -> Option<(u64, UpstreamFailure)> {
        self.0.reporter.unanswered(self.answered_requests())
    }

    /// Starts to resolve the names, so that errors are reported at start-up and not at the first
    /// request. Must be called within a Tokio runtime.
    pub(crate) fn look_up(&self) {
        self.0.refresh();
    }
}

impl OriginEntry {
    fn status(&self, limit: &ConnectionLimit) -> Vec<ServerStatus> {
        let of = |server: &Arc<Server>| ServerStatus {
            server: server.to_string(),
            connections: limit.shares.lock().uses(server),
            outage: server.health.outage(Instant::now()),
        };
        let named = match self {
            Self::Fixed(server) => return vec![of(server)],
            Self::Named(named) => named,
        };
        let known = named.known.lock();
        let unresolved = known.failing.clone().map(|(since, why)| ServerStatus {
            server: format!("{}:{}", named.host, named.port),
            connections: Vec::new(),
            outage: Some(Outage { since, check: FailureKind::Unresolved, why, again: Duration::ZERO }),
        });
        unresolved.into_iter().chain(known.servers.iter().map(of)).collect()
    }
}

impl OriginsState {
    pub(super) fn count_answered(&self) -> Arc<Counter> {
        let counter = Arc::<Counter>::default();
        self.answered_requests.lock().push(Arc::clone(&counter));
        counter
    }

    pub(super) fn answered_requests(&self) -> u64 {
        self.answered_requests.lock().iter().map(|counter| counter.total()).sum()
    }

    /// Starts lookups of all names whose addresses are too old. Does not wait for the results.
    pub(super) fn refresh(self: &Arc<Self>) {
        if !self.has_names {
            return;
        }
        let now = Instant::now();
        for (at, entry) in self.entries.iter().enumerate() {
            let OriginEntry::Named(named) = entry else { continue };
            let Some(mut permit) = named.schedule.begin(now) else { continue };
            let shared = Arc::clone(self);
            tokio::spawn(async move {
                shared.look_up(at, &mut permit).await;
                drop(permit);
                shared.answered.notify_waiters();
            });
        }
    }

    pub(super) fn is_looking_up(&self) -> bool {
        let is_under_way =
            |entry: &OriginEntry| matches!(entry, OriginEntry::Named(named) if named.schedule.is_under_way());
        self.entries.iter().any(is_under_way)
    }

    pub(super) fn succeeded(&self, server: &Server, ticket: Ticket) {
        if server.health.succeeded(ticket, Instant::now) {
            self.reporter.tell(UpstreamEventKind::Returned, format!("{server}: answers again"));
        }
    }

    /// Records that a server could not be reached, or that a connection to it broke before a
    /// response arrived.
    pub(super) fn failed(&self, server: &Server, ticket: Ticket, check: FailureKind, error: &dyn fmt::Display) {
        let change = server.health.failed(ticket, Instant::now());
        server.health.note(check, error);
        let Some(span) = change else { return };
        let are_all_out = self.servers.load().iter().all(|server| !server.health.is_in_service());
        let fails = self.health.max_fails;
        let why = format!("{fails} {} in a row: {error}", if fails == 1 { "failure" } else { "failures" });
        self.reporter.ejected(server, span, &why, are_all_out);
    }

    async fn look_up(&self, at: usize, permit: &mut LookupPermit) {
        let OriginEntry::Named(named) = &self.entries[at] else { return };
        let found = self.resolver.resolve(&named.host).await;
        let mut known = named.known.lock();
        let report = match found {
            Ok(addresses) => {
                permit.succeeded(self.resolver.fresh());
                let server = |address| {
                    let address = ServerAddress::Tcp(SocketAddr::new(address, named.port));
                    let same = known.servers.iter().find(|server| server.address == address);
                    // A server whose address is still in the list keeps its health and its
                    // connections.
                    same.cloned().unwrap_or_else(|| {
                        let health = Health::new(self.health.clone(), self.start);
                        Arc::new(Server::new(address, named.tls.clone(), self.versions, health))
                    })
                };
                known.servers = addresses.into_iter().map(server).collect();
                let shown: Vec<_> = known.servers.iter().map(|server| server.to_string()).collect();
                let was_failing = known.failing.take().is_some();
                was_failing
                    .then(|| (UpstreamEventKind::Resolved, format!("{} resolves to {}", named.host, shown.join(", "))))
            }
            Err(error) => {
                let rest = if known.servers.is_empty() {
                    "so its requests get 502"
                } else {
                    "so its last known addresses are used"
                };
                let report =
                    (UpstreamEventKind::Unresolved, format!("{} cannot be resolved, {rest}: {error}", named.host));
                let since = known.failing.take();
                let is_news = since.is_none();
                known.failing = Some((since.map_or_else(SystemTime::now, |(since, _)| since), error.to_string()));
                is_news.then_some(report)
            }
        };
        drop(known);
        self.publish_servers();
        if let Some((kind, detail)) = report {
            self.reporter.tell(kind, detail);
        }
    }

    /// Publishes one list of all servers, in the order of the configuration.
    fn publish_servers(&self) {
        // If several tasks publish at the same time, the closure runs again and reads all lists
        // again, so the last published list includes the results of all tasks.
        self.servers.rcu(|before| {
            let mut servers = Vec::new();
            for entry in &self.entries {
                match entry {
                    OriginEntry::Fixed(server) => servers.push(Arc::clone(server)),
                    OriginEntry::Named(named) => {
                        servers.extend(named.known.lock().servers.iter().cloned());
                    }
                }
            }
            // Workers detect a change by the pointer of the list, so an unchanged list is not
            // replaced.
            let is_same = before.len() == servers.len() && before.iter().zip(&servers).all(|(a, b)| Arc::ptr_eq(a, b));
            if is_same { Arc::clone(before) } else { Arc::new(servers) }
        });
    }
}
