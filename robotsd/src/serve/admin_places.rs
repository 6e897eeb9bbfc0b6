//! The places where the admin interface listens, over all configs.
//!
//! Commands ask where the config says. One that names another place has that opened too, and every open place stays open until
//! the process ends: neither a command that began before nor one that reads the new config is cut off. Further listeners are no
//! place where commands ask, so they come and go with the config; a request that is being answered is answered. An address that
//! the config gives another use has that use and its access at once: no listener allows more than the config that names it.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::task::AbortOnDropHandle;

use super::socket_activation::InheritedSockets;
use super::upgrade::{HandedSockets, SocketPlace};
use crate::admin::{self, AddressSocket, CommandPlace, CommandSocket, ConnectionSlots, OpenListener, ServerState};
use crate::config::{AdminAccess, AdminListenerConfig, AdminSettings, ListenerConfig};
use crate::edge::LiveCertificates;
use crate::log::{Log, LogEvent, LogLevel};

/// Every place that is open. Dropping it closes them.
#[derive(Debug)]
pub(super) struct AdminPlaces {
    state: Arc<ServerState>,
    log: Log,
    sockets: Vec<SocketFilePlace>,
    addresses: Vec<AddressPlace>,
    /// Sockets of a process before, by the addresses of the config that they are for.
    inherited: Vec<(SocketAddr, TcpListener)>,
    /// Connections that were accepted before nothing was any more.
    left: Vec<Arc<ConnectionSlots>>,
    /// The names by which addresses may be called.
    hosts: Vec<String>,
    /// The places that were last logged as not open.
    logged: Vec<String>,
}

/// The changes by another config, for people.
#[derive(Debug, Default)]
pub(super) struct PlaceChanges {
    pub(super) changes: Vec<String>,
    /// The places that could not be opened: to be tried again.
    pub(super) failures: Vec<String>,
    /// Whether the failures are others than before.
    pub(super) is_news: bool,
}

/// A Unix socket.
#[derive(Debug)]
struct SocketFilePlace {
    path: PathBuf,
    socket: CommandSocket,
    /// None while another process may be about to accept.
    accepting: Option<Accepting>,
}

/// An address, with what it is for.
#[derive(Debug)]
struct AddressPlace {
    config: AdminListenerConfig,
    role: PlaceRole,
    socket: AddressSocket,
    /// None while another process may be about to accept.
    accepting: Option<Accepting>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlaceRole {
    /// Commands ask there: it stays open.
    Commands,
    /// It comes and goes with the config.
    Further,
}

/// Accepts on a listener until it is dropped. Connections that have not sent a whole request then are closed.
#[derive(Debug)]
struct Accepting {
    slots: Arc<ConnectionSlots>,
    _task: AbortOnDropHandle<()>,
}

impl AdminPlaces {
    /// None is open yet.
    pub(super) fn new(state: &Arc<ServerState>, log: &Log) -> Self {
        let (sockets, addresses, inherited, left, hosts, logged) = Default::default();
        Self { state: Arc::clone(state), log: log.clone(), sockets, addresses, inherited, left, hosts, logged }
    }

    /// Opens the places of these settings where commands ask.
    pub(super) fn open(&mut self, settings: &AdminSettings, inherited: &mut InheritedSockets) -> Result<(), String> {
        self.hosts.clone_from(&settings.hosts);
        let CommandPlace { address: opened, socket } = CommandPlace::open(settings, inherited.for_admin(settings))?;
        self.inherited.extend(inherited.for_admin_listeners(settings));
        self.state.rights.store(Arc::clone(&settings.rights));
        if let (Some(config), Some(opened)) = (settings.command_listener(), opened) {
            let listening = self.begin(config, PlaceRole::Commands, opened)?;
            self.log.say(LogEvent::AdminListening, listening);
        }
        if let (Some(path), Some(socket)) = (settings.socket.clone(), socket) {
            socket.share(settings.rights.has_local_users());
            let listener = socket.listen()?;
            self.log.say(LogEvent::AdminListening, &*listener.address);
            let accepting = Some(Accepting::begin(listener, &self.state));
            self.sockets.push(SocketFilePlace { path, socket, accepting });
        }
        Ok(())
    }

    /// Opens the places of another config that are not open yet, and closes further listeners that it does not have.
    pub(super) fn follow(&mut self, settings: Option<&AdminSettings>) -> PlaceChanges {
        let rights = settings.map(|settings| Arc::clone(&settings.rights)).unwrap_or_default();
        self.sockets.iter().for_each(|place| place.socket.share(rights.has_local_users()));
        self.state.rights.store(rights);
        let mut made = self.follow_addresses(settings);
        if let Some(settings) = settings {
            let socket = settings.socket.clone().filter(|path| self.sockets.iter().all(|open| open.path != *path));
            if socket.is_some() {
                let added = AdminSettings { address: None, socket, ..settings.clone() };
                match self.open(&added, &mut InheritedSockets::default()) {
                    Ok(()) => made.changes.push(
                        "the admin interface listens where [admin] says, and where it did until the process ends"
                            .to_owned(),
                    ),
                    Err(error) => made.failures.push(error),
                }
            }
        }
        made.is_news = made.failures != self.logged;
        if made.is_news {
            for failure in &made.failures {
                self.log.say_at(LogLevel::Warn, LogEvent::AdminListening, failure);
            }
            self.logged.clone_from(&made.failures);
        }
        made
    }

    /// As [`follow`](Self::follow), for addresses alone.
    pub(super) fn follow_addresses(&mut self, settings: Option<&AdminSettings>) -> PlaceChanges {
        let mut made = PlaceChanges::default();
        let hosts = settings.map(|settings| settings.hosts.clone()).unwrap_or_default();
        let has_other_hosts = std::mem::replace(&mut self.hosts, hosts) != self.hosts;
        let mut before = std::mem::take(&mut self.addresses);
        let mut new = Vec::new();
        for (config, role) in settings.map(wanted).unwrap_or_default() {
            // The address alone tells them apart, so that what one is for changes without its port being closed.
            let is_it = |place: &AddressPlace| {
                place.config.address == config.address && (place.role == role || config.address.port() != 0)
            };
            let Some(at) = before.iter().position(is_it) else {
                new.push((config, role));
                continue;
            };
            let place = before.remove(at);
            let is_same = place.config == config && !has_other_hosts;
            self.keep(AddressPlace { role, ..place }, config, is_same, &mut made);
        }
        for (config, role) in new {
            self.replace(config, role, &mut before, &mut made);
        }
        let is_open = made.failures.is_empty();
        let has_tokens = settings.is_some_and(|settings| !settings.rights.tokens.is_empty());
        for place in before {
            if place.role == PlaceRole::Further && is_open {
                made.changes.push(place.close());
                continue;
            }
            let mut config = place.config.clone();
            if place.role == PlaceRole::Commands && config.access == AdminAccess::Full && has_tokens {
                config.access = AdminAccess::Token;
            }
            if place.role == PlaceRole::Further {
                let address = place.config.address;
                made.failures.push(format!("the admin interface goes on on {address} until the others can be opened"));
            }
            let is_same = place.config == config && !has_other_hosts;
            self.keep(place, config, is_same, &mut made);
        }
        if has_other_hosts && !self.addresses.is_empty() {
            made.changes.push("the admin interface takes other names in Host".to_owned());
        }
        made
    }

    /// The certificates of these listeners, and those of the addresses here.
    pub(super) fn certificates_beside(&self, listeners: &[ListenerConfig]) -> Vec<LiveCertificates> {
        let own = self.addresses.iter().map(|place| &place.config.certificates);
        listeners.iter().map(|listener| &listener.certificates).chain(own).flatten().cloned().collect()
    }

    /// Accepts no more; requests that have come are answered. The sockets stay open, so that connections wait for this process or
    /// for another that has the sockets.
    pub(super) fn pause(&mut self) {
        let of_sockets = self.sockets.iter_mut().map(|place| &mut place.accepting);
        let paused = of_sockets.chain(self.addresses.iter_mut().map(|place| &mut place.accepting));
        let paused: Vec<_> = paused.filter_map(Option::take).collect();
        self.left.extend(paused.iter().map(|accepting| Arc::clone(&accepting.slots)));
    }

    /// Accepts again.
    pub(super) fn resume(&mut self) {
        let (hosts, state) = (&self.hosts, &self.state);
        let of_sockets = self.sockets.iter_mut().filter(|place| place.accepting.is_none());
        let of_sockets = of_sockets.map(|place| (&mut place.accepting, place.socket.listen()));
        let of_addresses = self.addresses.iter_mut().filter(|place| place.accepting.is_none());
        let of_addresses = of_addresses.map(|place| {
            let listener = place.socket.listen(hosts, &place.config);
            (&mut place.accepting, listener)
        });
        for (accepting, listener) in of_sockets.chain(of_addresses) {
            match listener {
                Ok(listener) => *accepting = Some(Accepting::begin(listener, state)),
                // Only a process without descriptors gets here.
                Err(error) => self.log.say_at(LogLevel::Warn, LogEvent::AdminListening, error),
            }
        }
        self.left.clear();
    }

    /// Waits until those that were answered last have their answers.
    pub(super) async fn answered(&self) {
        while !self.left.iter().all(|slots| slots.is_empty()) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }

    /// The process before does not listen there any more: files of sockets that it made are this one's.
    pub(super) fn own(&mut self) {
        self.sockets.iter_mut().for_each(|place| place.socket.own_file());
    }

    /// Another process listens there by now.
    pub(super) fn leave(&mut self) {
        self.sockets.iter_mut().for_each(|place| place.socket.leave_file());
    }

    /// Listens nowhere any more; requests that have come are answered.
    pub(super) fn let_go(&mut self) {
        self.pause();
        self.sockets.clear();
        self.addresses.clear();
    }

    /// Every socket once more, with what it is for.
    pub(super) fn sockets(&self) -> std::io::Result<HandedSockets> {
        let mut sockets = Vec::new();
        for SocketFilePlace { path, socket, .. } in &self.sockets {
            let (socket, is_made) = socket.socket()?;
            sockets.push((SocketPlace::AdminSocket { path: path.clone(), is_made }, socket.into()));
        }
        for AddressPlace { config, socket, .. } in &self.addresses {
            sockets.push((SocketPlace::Admin(config.address), socket.socket()?.into()));
        }
        Ok(sockets)
    }

    /// Keeps a socket, for what the config says now.
    fn keep(&mut self, place: AddressPlace, wanted: AdminListenerConfig, is_same: bool, made: &mut PlaceChanges) {
        if is_same {
            return self.addresses.push(place);
        }
        let AddressPlace { config, role, socket, accepting } = place;
        // First: nothing that it accepted goes on with the access it had.
        drop(accepting);
        let is_other = config != wanted;
        match self.begin(wanted, role, socket) {
            Ok(listening) if is_other => {
                self.log.say(LogEvent::AdminListening, &listening);
                made.changes.push(format!("the admin interface listens on {listening}"));
            }
            Ok(_) => {}
            // Only a process without descriptors gets here.
            Err(error) => made.failures.push(error),
        }
    }

    /// Opens an address. If a place that the config has no more is in its way, that is closed first, and opened again if the
    /// new one cannot be.
    fn replace(
        &mut self,
        config: AdminListenerConfig,
        role: PlaceRole,
        before: &mut Vec<AddressPlace>,
        made: &mut PlaceChanges,
    ) {
        let is_in_the_way = |place: &mut AddressPlace| overlap(place.config.address, config.address);
        let closed: Vec<_> = before
            .extract_if(.., is_in_the_way)
            .map(|place| (place.config.clone(), place.role, place.close()))
            .collect();
        match self.add(config.clone(), role) {
            Ok(listening) => {
                self.log.say(LogEvent::AdminListening, &listening);
                made.changes.push(format!("the admin interface listens on {listening}"));
                made.changes.extend(closed.into_iter().map(|(_, _, message)| message));
            }
            Err(error) => {
                made.failures.push(error);
                for (before, role, _) in closed {
                    // With no more access than the config has for it.
                    let of = if config.access == AdminAccess::Full { &before } else { &config };
                    made.failures.push(
                        match self.add(AdminListenerConfig { address: before.address, ..of.clone() }, role) {
                            Ok(listening) => format!("the admin interface goes on on {listening}"),
                            Err(error) => error,
                        },
                    );
                }
            }
        }
    }

    /// Opens an address; where that is, for people.
    fn add(&mut self, config: AdminListenerConfig, role: PlaceRole) -> Result<String, String> {
        let passed = self.inherited.iter().position(|(address, _)| *address == config.address);
        let passed = passed.map(|at| self.inherited.swap_remove(at).1);
        let socket = AddressSocket::open(config.address, passed)?;
        self.begin(config, role, socket)
    }

    /// Accepts connections on a socket; where that is, for people.
    fn begin(&mut self, config: AdminListenerConfig, role: PlaceRole, socket: AddressSocket) -> Result<String, String> {
        let listener = socket.listen(&self.hosts, &config)?;
        let listening = listener.address.clone();
        let accepting = Some(Accepting::begin(listener, &self.state));
        self.addresses.push(AddressPlace { config, role, socket, accepting });
        Ok(listening)
    }
}

impl AddressPlace {
    /// Listens no more; what to say of it.
    fn close(self) -> String {
        self.socket.close();
        format!("the admin interface does not listen on {} any more", self.config.address)
    }
}

impl Accepting {
    fn begin(listener: OpenListener, state: &Arc<ServerState>) -> Self {
        let slots = Arc::clone(&listener.slots);
        let task = tokio::spawn(admin::serve(listener, Arc::clone(state)));
        Self { slots, _task: AbortOnDropHandle::new(task) }
    }
}

impl Drop for Accepting {
    fn drop(&mut self) {
        self.slots.close();
    }
}

/// The addresses that settings have.
fn wanted(settings: &AdminSettings) -> Vec<(AdminListenerConfig, PlaceRole)> {
    let further = settings.listeners.iter().map(|config| (config.clone(), PlaceRole::Further));
    settings.command_listener().map(|config| (config, PlaceRole::Commands)).into_iter().chain(further).collect()
}

/// Whether only one of them can be bound, because one is every address.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let is_any = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() == other.port() && one.port() != 0 && is_any
}
