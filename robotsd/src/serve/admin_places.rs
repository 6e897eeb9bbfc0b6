//! The places where the admin interface listens, over all configs.
//!
//! Commands ask where the config says. One that names another place has that opened too, and what is open stays open until the
//! process ends: neither a command that began before nor one that reads the new config is cut off.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::task::JoinSet;

use crate::admin::{self, AdminListeners, InheritedSocket, ServerState};
use crate::config::AdminSettings;
use crate::log::{Log, LogEvent, LogLevel};

/// Every place that is open. Dropping it closes them.
#[derive(Debug, Default)]
pub(super) struct AdminPlaces {
    addresses: Vec<SocketAddr>,
    sockets: Vec<PathBuf>,
    serving: JoinSet<()>,
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

    /// Opens the further listeners of these settings.
    pub(super) fn open_further(
        &mut self,
        settings: &AdminSettings,
        state: &Arc<ServerState>,
        log: &Log,
    ) -> Result<(), String> {
        if settings.listeners.is_empty() {
            return Ok(());
        }
        let listeners = AdminListeners::open_further(settings)?;
        listeners.addresses().iter().for_each(|address| log.say(LogEvent::AdminListening, address));
        self.serving.spawn(admin::serve(listeners, Arc::clone(state)));
        Ok(())
    }

    /// Opens the places of another config that are not open yet. Returns what is different, for people.
    pub(super) fn follow(
        &mut self,
        settings: Option<&AdminSettings>,
        state: &Arc<ServerState>,
        log: &Log,
    ) -> Option<String> {
        let settings = settings?;
        let added = AdminSettings {
            address: settings.address.filter(|address| !self.addresses.contains(address)),
            socket: settings.socket.clone().filter(|socket| !self.sockets.contains(socket)),
            ..settings.clone()
        };
        if added.address.is_none() && added.socket.is_none() {
            return None;
        }
        Some(match self.open(&added, Vec::new(), state, log) {
            Ok(()) => {
                "the admin interface listens where [admin] says, and where it did until the process ends".to_owned()
            }
            Err(error) => {
                let message = format!("{error}; the admin interface goes on where it listens");
                log.say_at(LogLevel::Warn, LogEvent::AdminListening, &message);
                message
            }
        })
    }
}
