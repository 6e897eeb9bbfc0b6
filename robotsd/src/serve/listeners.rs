//! The listeners of a config, open, and how those of another config take their place without refusing a connection.
//!
//! A listener that is the same in both is not touched. One that is other on the same address is opened a second time on
//! the sockets it has, before the first stops to accept: one or the other accepts every connection in between.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::sync::Arc;

use super::socket_activation::InheritedSockets;
use super::sockets;
#[cfg(target_os = "linux")]
use super::upgrade::{HandedSockets, SocketPlace};
use super::workers::{ListenerId, Workers};
use crate::config::{self, Config, ListenerKind};
use crate::decision::{self, QuestionErrors};
use crate::edge::{Edge, EdgeLimits, ListenerSettings, LiveCertificates, TlsAcceptor};
use crate::log::{Log, LogEvent};
use crate::report::ListenerReport;

/// Every listener of the process, in the order of the config.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    open: Vec<OpenListener>,
}

/// Listeners that are to take the place of those there are; their sockets are bound.
#[derive(Debug)]
pub(super) struct ListenerPlan {
    steps: Vec<ListenerStep>,
    /// The differences, for people.
    pub(super) changes: Vec<String>,
}

#[derive(Debug)]
enum ListenerStep {
    /// The one at this place goes on.
    Keep(usize),
    Open(Box<BoundListener>),
}

/// A listener whose sockets are bound, each with one for every worker.
#[derive(Debug)]
struct BoundListener {
    settings: BindSettings,
    local: SocketAddr,
    sockets: Vec<Vec<TcpListener>>,
    report: ListenerReport,
}

/// What a listener is opened with.
#[derive(Clone, Debug)]
struct BindSettings {
    listener: config::ListenerConfig,
    handshakes: usize,
    tls_handshake: std::time::Duration,
}

#[derive(Debug)]
struct OpenListener {
    settings: BindSettings,
    local: SocketAddr,
    /// The sockets again, for a listener that takes this one's place; they keep listening until they are dropped.
    sockets: Vec<Vec<TcpListener>>,
    ids: Vec<ListenerId>,
    report: ListenerReport,
    /// Where it has limits of its own, made from those of all.
    edge: Option<Edge>,
}

impl ListenerPlan {
    /// Looks whether a process that starts can open its listeners, those apart that a supervisor opened. What is published
    /// before a start fails has begun its grace, and no crawler could read it.
    pub(super) fn rehearse(config: &Config, passed: &InheritedSockets) -> Result<(), String> {
        let bound_here = config.listeners.iter().filter(|listener| !passed.has_for(listener));
        bound_here
            .map(|listener| listener.address)
            .try_for_each(|address| sockets::try_bind(address).map_err(|error| cannot_listen(address, &error)))
    }

    /// The listeners a process starts with; sockets that were passed for them are not bound again.
    pub(super) fn first(
        config: &Config,
        passed: &mut InheritedSockets,
        workers: NonZeroUsize,
        log: &Log,
    ) -> Result<Self, String> {
        let any_passed = !passed.is_empty();
        let mut steps = Vec::new();
        for listener in &config.listeners {
            let cannot = |error| cannot_listen(listener.address, &error);
            let mut sockets = Vec::new();
            let inherited = passed.for_listener(listener);
            if are_one_a_worker(&inherited, workers) {
                // Those of a process with as many workers, over which the kernel spreads connections.
                sockets.push(inherited);
            } else {
                for socket in inherited {
                    sockets.push(sockets::share(socket, workers).map_err(cannot)?);
                }
            }
            let origin = if sockets.is_empty() { "bound" } else { "passed" };
            if sockets.is_empty() {
                if any_passed {
                    let address = listener.address;
                    let message = format!("{address}: no socket was passed for this listener: it is opened here");
                    log.say(LogEvent::Supervisor, message);
                }
                sockets.push(sockets::bind(listener.address, workers).map_err(cannot)?);
            }
            steps.push(ListenerStep::Open(
                BoundListener::new(BindSettings::of(listener, config), sockets, origin)?.into(),
            ));
        }
        Ok(Self { steps, changes: Vec::new() })
    }
}

impl Listeners {
    /// The steps to the listeners of a config. Binds those that are new.
    pub(super) fn plan(&self, config: &Config, workers: NonZeroUsize) -> Result<ListenerPlan, String> {
        let mut left: Vec<usize> = (0..self.open.len()).collect();
        // Several may be on port 0, where the address says nothing: those that are the same are found first.
        let mut take = |fits: &dyn Fn(&OpenListener) -> bool| {
            let found = left.iter().position(|place| fits(&self.open[*place]))?;
            Some(left.remove(found))
        };
        let settings: Vec<_> = config.listeners.iter().map(|listener| BindSettings::of(listener, config)).collect();
        let same: Vec<_> = settings.iter().map(|settings| take(&|opened| opened.settings.is_as(settings))).collect();
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
                    plan.changes.push(format!("listener {} has other settings", opened.local));
                    let again = opened.sockets.iter().map(|sockets| duplicates(sockets)).collect::<io::Result<_>>();
                    let again = again.map_err(|error| cannot_listen(address, &error))?;
                    BoundListener::new(settings, again, &opened.report.socket)?
                }
                None => {
                    let sockets = sockets::bind(address, workers).map_err(|error| cannot_listen(address, &error))?;
                    let bound = BoundListener::new(settings, vec![sockets], "bound")?;
                    plan.changes.push(format!("listener {} is new", bound.local));
                    bound
                }
            };
            plan.steps.push(ListenerStep::Open(bound.into()));
        }
        let gone = left.into_iter().map(|place| format!("listener {} is gone", self.open[place].local));
        plan.changes.extend(gone);
        Ok(plan)
    }

    /// Opens listeners that are new, then closes those that are gone; requests under way there are finished. Returns the new
    /// addresses.
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
                ListenerStep::Open(bound) => {
                    let place = format!("{}://{}", bound.report.scheme, bound.local);
                    match bound.open(workers, edge, log) {
                        Ok(opened) => {
                            self.open.push(opened);
                            news.push(place);
                        }
                        Err(error) => failure = Some(error),
                    }
                }
            }
        }
        for OpenListener { sockets, ids, .. } in before.into_iter().flatten() {
            // First ours, or the port would go on listening with no worker to accept.
            drop(sockets);
            ids.into_iter().for_each(|id| workers.close(id));
        }
        failure.map_or(Ok(news), Err)
    }

    /// Every socket once more, with the address that it is for.
    #[cfg(target_os = "linux")]
    pub(super) fn sockets(&self) -> io::Result<HandedSockets> {
        let mut sockets = Vec::new();
        for OpenListener { settings, sockets: open, .. } in &self.open {
            let place = SocketPlace::Listener(settings.listener.address);
            for socket in unshared(open) {
                sockets.push((place.clone(), socket.try_clone()?.into()));
            }
        }
        Ok(sockets)
    }

    /// Lets go of the sockets, so that they close when the workers close theirs.
    pub(super) fn let_go(&mut self) {
        self.open.iter_mut().for_each(|opened| opened.sockets.clear());
    }

    /// Grants other limits to connections that are yet to come, where a listener has its own.
    pub(super) fn set_limits(&self, limits: &EdgeLimits) {
        for edge in self.open.iter().filter_map(|opened| opened.edge.as_ref()) {
            edge.set_limits(decision::limits(limits.clone()));
        }
    }

    pub(super) fn reports(&self) -> Vec<ListenerReport> {
        self.open.iter().map(|opened| opened.report.clone()).collect()
    }

    pub(super) fn certificates(&self) -> Vec<LiveCertificates> {
        self.open.iter().filter_map(|opened| opened.settings.listener.certificates.clone()).collect()
    }
}

impl BindSettings {
    fn of(listener: &config::ListenerConfig, config: &Config) -> Self {
        let (handshakes, tls_handshake) = (config.edge.handshakes, config.edge.tls_handshake);
        Self { listener: listener.clone(), handshakes, tls_handshake }
    }

    /// Whether a listener that was opened with these needs no change to be what the others say. What certificates hold
    /// is followed apart.
    fn is_as(&self, other: &Self) -> bool {
        let (ours, theirs) = (&self.listener, &other.listener);
        let paths =
            |listener: &config::ListenerConfig| listener.certificates.as_ref().map(|live| live.paths().to_vec());
        let is_secured = ours.certificates.is_some();
        let handshakes = |settings: &Self| is_secured.then_some((settings.handshakes, settings.tls_handshake));
        ours.address == theirs.address
            && ours.name == theirs.name
            && ours.kind == theirs.kind
            && ours.on_error == theirs.on_error
            && ours.trusted == theirs.trusted
            && ours.proxy_protocol == theirs.proxy_protocol
            && paths(ours) == paths(theirs)
            && handshakes(self) == handshakes(other)
    }

    fn listener_settings(&self) -> ListenerSettings {
        let tls = |live| TlsAcceptor::new(live, self.handshakes, self.tls_handshake);
        let tls = self.listener.certificates.clone().map(tls);
        let config::ListenerConfig { trusted, proxy_protocol, kind, .. } = &self.listener;
        let messages = match kind {
            ListenerKind::Proxy => None,
            ListenerKind::Decision => Some(decision::MESSAGES),
        };
        ListenerSettings { tls, trusted: Arc::clone(trusted), proxy_protocol: *proxy_protocol, counts: None, messages }
    }
}

impl BoundListener {
    fn new(settings: BindSettings, sockets: Vec<Vec<TcpListener>>, origin: &str) -> Result<Self, String> {
        let listener = &settings.listener;
        let first = sockets.iter().flatten().next();
        let local = first.map_or(Ok(listener.address), TcpListener::local_addr);
        let local = local.map_err(|error| cannot_listen(listener.address, &error))?;
        let report = ListenerReport {
            name: listener.name.clone(),
            address: local.to_string(),
            kind: listener.kind.as_str().to_owned(),
            scheme: if listener.certificates.is_some() { "https" } else { "http" }.to_owned(),
            socket: origin.to_owned(),
        };
        Ok(Self { settings, local, sockets, report })
    }

    fn open(self, workers: &mut Workers, edge: &Edge, log: &Log) -> Result<OpenListener, String> {
        let Self { settings, local, sockets, report } = self;
        let label = report.name.clone().unwrap_or_else(|| local.to_string());
        let cannot = |error| cannot_listen(local, &error);
        let mut opened = OpenListener { settings, local, sockets: Vec::new(), ids: Vec::new(), report, edge: None };
        let listener_settings = opened.settings.listener_settings();
        let errors = Arc::new(QuestionErrors::new(log.clone(), opened.settings.listener.on_error));
        for sockets in sockets {
            opened.sockets.push(duplicates(&sockets).map_err(cannot)?);
            let id = match opened.settings.listener.kind {
                ListenerKind::Proxy => workers.open(sockets, edge, &label, &listener_settings),
                ListenerKind::Decision => {
                    let edge = opened.edge.get_or_insert_with(|| edge.with_limits(decision::limits));
                    workers.open_for_decisions(sockets, edge, &label, &listener_settings, &errors)
                }
            };
            opened.ids.push(id.map_err(cannot)?);
        }
        Ok(opened)
    }
}

/// Whether the kernel spreads connections over these sockets, and there is one for each worker.
fn are_one_a_worker(sockets: &[TcpListener], workers: NonZeroUsize) -> bool {
    #[cfg(target_os = "linux")]
    return sockets.len() == workers.get()
        && sockets.iter().all(|socket| socket2::SockRef::from(socket).reuse_port().unwrap_or(false));
    #[cfg(not(target_os = "linux"))]
    return sockets.len() == workers.get() && workers == NonZeroUsize::MIN;
}

/// One of every socket: those that workers share stand there once for each.
#[cfg(target_os = "linux")]
fn unshared(open: &[Vec<TcpListener>]) -> impl Iterator<Item = &TcpListener> {
    let identity = |socket: &TcpListener| rustix::fs::fstat(socket).ok().map(|found| (found.st_dev, found.st_ino));
    let mut seen = std::collections::HashSet::new();
    open.iter().flatten().filter(move |socket| identity(socket).is_none_or(|identity| seen.insert(identity)))
}

fn duplicates(sockets: &[TcpListener]) -> io::Result<Vec<TcpListener>> {
    sockets.iter().map(TcpListener::try_clone).collect()
}

fn cannot_listen(address: SocketAddr, error: &io::Error) -> String {
    format!("{address}: cannot listen here: {error}")
}
