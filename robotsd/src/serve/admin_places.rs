//! The places where the admin interface listens, over all configs.
//!
//! Commands ask where the config says. One that names another place has that opened too, and what is open stays open until the
//! process ends: neither a command that began before nor one that reads the new config is cut off. Further listeners are no place
//! where commands ask, so they come and go with the config; a request that is being answered is answered.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::task::{AbortHandle, JoinSet};

use crate::admin::{self, AdminListeners, FurtherSocket, InheritedSocket, ServerState};
use crate::config::{AdminAccess, AdminListenerConfig, AdminSettings};
use crate::log::{Log, LogEvent, LogLevel};

/// Every place that is open. Dropping it closes them.
#[derive(Debug, Default)]
pub(super) struct AdminPlaces {
    addresses: Vec<SocketAddr>,
    sockets: Vec<PathBuf>,
    further: Vec<FurtherPlace>,
    serving: JoinSet<()>,
}

/// A further listener, with what it is for.
#[derive(Debug)]
struct FurtherPlace {
    config: AdminListenerConfig,
    socket: FurtherSocket,
    accepting: AbortHandle,
}

impl AdminPlaces {
    /// Opens the places of these settings.
    pub(super) fn open(
        &mut self,
        settings: &AdminSettings,
        inherited: Vec<InheritedSocket>,
        state: &Arc<ServerState>,
        log: &Log,
    ) -> Result<(), String> {
        let listeners = AdminListeners::open(settings, inherited)?;
        listeners.addresses().iter().for_each(|address| log.say(LogEvent::AdminListening, address));
        self.addresses.extend(settings.address);
        self.sockets.extend(settings.socket.clone());
        self.serving.spawn(admin::serve(listeners, Arc::clone(state)));
        Ok(())
    }

    /// Opens the further listeners of these settings that are not open, and closes those that are and are not in them. Returns
    /// what is different, for people, and what could not be opened.
    pub(super) fn follow_further(
        &mut self,
        settings: &AdminSettings,
        state: &Arc<ServerState>,
        log: &Log,
    ) -> (Vec<String>, Vec<String>) {
        let (mut changes, mut failures) = (Vec::new(), Vec::new());
        let mut before = std::mem::take(&mut self.further);
        let mut wanted = settings.listeners.clone();
        // The address alone tells them apart, so that what one is for changes without its port being closed.
        wanted.retain(|wanted| {
            let Some(at) = before.iter().position(|place| place.config.address == wanted.address) else { return true };
            let mut place = before.remove(at);
            if place.config.access != wanted.access {
                match self.accept(&place.socket, settings, wanted.access, state) {
                    Ok((accepting, address)) => {
                        std::mem::replace(&mut place.accepting, accepting).abort();
                        place.config = *wanted;
                        changes.push(format!("the admin interface listens on {address}"));
                    }
                    Err(error) => failures.push(error),
                }
            }
            self.further.push(place);
            false
        });
        // Closed first: one that is new may need the port.
        for FurtherPlace { config, socket, accepting } in before {
            accepting.abort();
            socket.close();
            changes.push(format!("the admin interface does not listen on {} any more", config.address));
        }
        for config in wanted {
            let opened = FurtherSocket::bind(config.address).and_then(|socket| {
                let (accepting, address) = self.accept(&socket, settings, config.access, state)?;
                Ok((FurtherPlace { config, socket, accepting }, address))
            });
            match opened {
                Ok((place, address)) => {
                    log.say(LogEvent::AdminListening, &address);
                    changes.push(format!("the admin interface listens on {address}"));
                    self.further.push(place);
                }
                Err(error) => failures.push(error),
            }
        }
        (changes, failures)
    }

    /// Accepts connections on a socket; where that is, for people.
    fn accept(
        &mut self,
        socket: &FurtherSocket,
        settings: &AdminSettings,
        access: AdminAccess,
        state: &Arc<ServerState>,
    ) -> Result<(AbortHandle, String), String> {
        let listeners = socket.listen(&settings.hosts, access)?;
        let address = listeners.addresses().concat();
        Ok((self.serving.spawn(admin::serve(listeners, Arc::clone(state))), address))
    }

    /// Opens the places of another config that are not open yet, and closes further listeners that it does not have. Returns
    /// what is different, for people.
    pub(super) fn follow(
        &mut self,
        settings: Option<&AdminSettings>,
        state: &Arc<ServerState>,
        log: &Log,
    ) -> Vec<String> {
        let Some(settings) = settings else { return Vec::new() };
        let added = AdminSettings {
            address: settings.address.filter(|address| !self.addresses.contains(address)),
            socket: settings.socket.clone().filter(|socket| !self.sockets.contains(socket)),
            ..settings.clone()
        };
        let mut changes = Vec::new();
        let mut failures = Vec::new();
        if added.address.is_some() || added.socket.is_some() {
            match self.open(&added, Vec::new(), state, log) {
                Ok(()) => changes.push(
                    "the admin interface listens where [admin] says, and where it did until the process ends"
                        .to_owned(),
                ),
                Err(error) => failures.push(error),
            }
        }
        let (further, not_open) = self.follow_further(settings, state, log);
        changes.extend(further);
        failures.extend(not_open);
        for error in failures {
            let message = format!("{error}; the admin interface goes on where it listens");
            log.say_at(LogLevel::Warn, LogEvent::AdminListening, &message);
            changes.push(message);
        }
        changes
    }
}
