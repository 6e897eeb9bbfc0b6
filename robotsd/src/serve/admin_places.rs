//! Opens the TCP addresses and the Unix socket of the admin interface. They are fixed when the
//! process starts. A new config changes only who may use them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::task::AbortOnDropHandle;
use tower_robots::live::StateDir;

use super::socket_activation::InheritedSockets;
use super::upgrade::{HandedSockets, SocketPlace};
use crate::admin::{
    self, AddressSocket, CommandAccess, CommandPlace, CommandSocket, ConnectionSlots, OpenListener, PlaceFile,
    ServerState, StoredToken, ensure_local_token,
};
use crate::config::{AdminListenerConfig, AdminPlace, AdminSettings, ListenerConfig, LocalToken};
use crate::edge::LiveCertificates;
use crate::log::{Log, LogEvent, LogLevel};

/// The open sockets of the admin interface. The sockets close when this value is dropped.
#[derive(Debug)]
pub(super) struct AdminSockets {
    state: Arc<ServerState>,
    log: Log,
    socket: Option<CommandSocket>,
    addresses: Vec<AddressPlace>,
    /// One entry per socket; empty during a pause, while another process may be about to accept
    /// connections.
    accepting: Vec<Accepting>,
    /// The address that commands use. The place files contain this address, so that commands can
    /// find it (see [`write_place_files`](Self::write_place_files)).
    commands: Option<AdminPlace>,
    files: Vec<PlaceFile>,
    token_files: Vec<PathBuf>,
    /// Slots of the connections that were accepted before the process paused.
    paused_slots: Vec<Arc<ConnectionSlots>>,
    /// Host names that clients may use in requests to the addresses.
    hosts: Vec<String>,
}

#[derive(Debug)]
struct AddressPlace {
    config: AdminListenerConfig,
    socket: AddressSocket,
}

/// Accepts connections on a listener until this value is dropped. Dropping this value also closes
/// connections without a complete request.
#[derive(Debug)]
struct Accepting {
    slots: Arc<ConnectionSlots>,
    _task: AbortOnDropHandle<()>,
}

impl AdminSockets {
    pub(super) fn new(state: &Arc<ServerState>, log: &Log) -> Self {
        Self {
            state: Arc::clone(state),
            log: log.clone(),
            socket: None,
            addresses: Vec::new(),
            accepting: Vec::new(),
            commands: None,
            files: Vec::new(),
            token_files: Vec::new(),
            paused_slots: Vec::new(),
            hosts: Vec::new(),
        }
    }

    /// Opens the sockets that the settings name. If a listener accepts the local token,
    /// [`ensure_token`](Self::ensure_token) must be called later, with the same `token_files`.
    pub(super) fn open(
        &mut self,
        settings: &AdminSettings,
        token_files: &[PathBuf],
        inherited: &mut InheritedSockets,
    ) -> Result<(), String> {
        self.hosts.clone_from(&settings.hosts);
        self.state.rights.store(Arc::new(settings.rights.with_local(settings.local_token(token_files))));
        match CommandPlace::open(settings, inherited.for_admin(settings)) {
            Ok(opened) => {
                self.commands = opened.place();
                opened.socket.iter().for_each(|socket| socket.share(settings.rights.has_local_users()));
                self.socket = opened.socket;
                let address = settings.command_listener().zip(opened.address);
                self.addresses.extend(address.map(|(config, socket)| AddressPlace { config, socket }));
            }
            // If the default socket, which is not in the config, cannot be opened, sites must be
            // served nevertheless.
            Err(error) if settings.is_default_socket => {
                let message = format!(
                    "{error}; so commands such as `robotsd status` cannot reach this process: set \"socket\" in \
                     [admin], or switch the admin interface off with enabled = false"
                );
                self.log.write_message_at(LogLevel::Warn, LogEvent::AdminListening, message);
            }
            Err(error) => return Err(error),
        }
        for config in &settings.listeners {
            let socket = AddressSocket::open(config.address, inherited.for_admin_listener(config.address))?;
            self.addresses.push(AddressPlace { config: config.clone(), socket });
        }
        for listener in self.listeners() {
            let listener = listener?;
            self.log.write_message(LogEvent::AdminListening, &*listener.address);
            self.accepting.push(Accepting::begin(listener, &self.state));
        }
        Ok(())
    }

    fn listeners(&self) -> Vec<Result<OpenListener, String>> {
        let rights = self.state.rights.load();
        let of_address = |place: &AddressPlace| place.socket.listen(&self.hosts, &place.config, &rights);
        self.addresses.iter().map(of_address).chain(self.socket.iter().map(CommandSocket::listen)).collect()
    }

    /// Reads the local token from one of these files, or creates a token. Writes the token to all
    /// files that do not contain it. The state directory must be open. Blocks.
    pub(super) fn ensure_token(&mut self, files: &[PathBuf]) {
        let rights = self.state.rights.load_full();
        let (Some(_), Some(preferred)) = (&rights.local, files.first()) else { return };
        let local = match ensure_local_token(files) {
            Ok(StoredToken { token, files, replaced, failures }) => {
                let warn =
                    |message: String| self.log.write_message_at(LogLevel::Warn, LogEvent::AdminListening, message);
                replaced.into_iter().for_each(warn);
                let file = files[0].clone();
                // The first file may be unwritable, for example because there is no runtime folder.
                // In that case, commands look for the token in the state directory.
                if file != *preferred {
                    warn(format!(
                        "{failures}; therefore, the token for changes is stored in {file}",
                        failures = failures.join("; "),
                        file = file.display()
                    ));
                }
                self.token_files = files;
                LocalToken::new(file, &token)
            }
            Err(why) => LocalToken::missing(preferred.clone(), why),
        };
        let rights = rights.with_local(Some(local));
        if let Some(problem) = rights.problem() {
            self.log.write_message_at(LogLevel::Error, LogEvent::AdminListening, problem);
        }
        self.state.rights.store(Arc::new(rights));
    }

    /// Writes the place files. From these files, commands learn the address of the process that
    /// uses the config at this path.
    ///
    /// # Errors
    ///
    /// Returns an error if no place file can be written.
    pub(super) fn write_place_files(&mut self, config: &Path, state: Option<&StateDir>) -> Result<(), String> {
        if let Some(place) = &self.commands {
            let access = CommandAccess { place, tokens: &self.token_files, addresses: self.addresses() };
            let left = PlaceFile::create_all(&access, config, state.map(StateDir::path));
            // If the place is a socket, commands can also read its path from the config.
            let config = if matches!(place, AdminPlace::Socket(_)) { "--config, " } else { "" };
            let only = |why| {
                let ways = format!("{config}--admin {place} or ROBOTSD_ADMIN");
                format!("{why}; therefore, commands find this process only with {ways}")
            };
            self.files = left.map_err(only)?;
        }
        Ok(())
    }

    /// Applies the tokens and users of a new config. If the new config disables the admin
    /// interface, the interface stays open until the next start.
    pub(super) fn follow(&self, settings: Option<&AdminSettings>) {
        let Some(settings) = settings else { return };
        let mut rights = settings.rights.with_local(self.state.rights.load().local.clone());
        let is_named = |place: &AddressPlace| {
            let is_it = |listener: AdminListenerConfig| {
                (listener.address, listener.access) == (place.config.address, place.config.access)
            };
            settings.all_listeners().any(is_it)
        };
        // An open address that is no longer in the config must still require a token, even if the
        // new config has no tokens.
        rights.asks_for_token |= self.state.rights.load().asks_for_token && !self.addresses.iter().all(is_named);
        self.socket.iter().for_each(|socket| socket.share(rights.has_local_users()));
        self.state.rights.store(Arc::new(rights));
    }

    pub(super) fn certificates_including(&self, listeners: &[ListenerConfig]) -> Vec<LiveCertificates> {
        let own = self.addresses.iter().map(|place| &place.config.certificates);
        listeners.iter().map(|listener| &listener.certificates).chain(own).flatten().cloned().collect()
    }

    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.addresses.iter().map(|place| place.socket.address()).collect()
    }

    /// Stops accepting connections. Requests that were already received are still answered. The
    /// sockets stay open: new connections wait until this process, or another process with the same
    /// sockets, accepts them.
    pub(super) fn pause(&mut self) {
        self.paused_slots.extend(self.accepting.drain(..).map(|accepting| Arc::clone(&accepting.slots)));
    }

    pub(super) fn resume(&mut self) {
        if !self.accepting.is_empty() {
            return;
        }
        for listener in self.listeners() {
            match listener {
                Ok(listener) => self.accepting.push(Accepting::begin(listener, &self.state)),
                // Opening a listener fails here only if the process has no free file descriptors.
                Err(error) => self.log.write_message_at(LogLevel::Warn, LogEvent::AdminListening, error),
            }
        }
        self.paused_slots.clear();
    }

    pub(super) async fn wait_for_responses(&self) {
        while !self.paused_slots.iter().all(|slots| slots.is_empty()) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }

    /// Closes the sockets, because another process has taken over. Requests that were already
    /// received are still answered.
    pub(super) fn leave(&mut self) {
        self.pause();
        self.socket = None;
        self.addresses.clear();
        self.files.clear();
    }

    /// Removes the socket's file. Must be called only if the process ends without a successor.
    pub(super) fn remove_socket_file(&self) {
        self.socket.iter().for_each(CommandSocket::remove_file);
    }

    pub(super) fn sockets(&self) -> std::io::Result<HandedSockets> {
        let mut sockets = Vec::new();
        if let Some(socket) = &self.socket {
            let (socket, path, is_made) = socket.socket()?;
            sockets.push((SocketPlace::AdminSocket { path, is_made }, socket.into()));
        }
        for AddressPlace { config, socket } in &self.addresses {
            sockets.push((SocketPlace::Admin(config.address), socket.socket()?.into()));
        }
        Ok(sockets)
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
