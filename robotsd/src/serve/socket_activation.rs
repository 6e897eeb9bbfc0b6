//! Takes over listening sockets that were opened before the process started: by a supervisor
//! (`sd_listen_fds(3)`), or by the process that this process replaces.
//!
//! Passed sockets stay open while one process ends and the next process starts, so new connections
//! wait instead of being refused.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

use super::upgrade::{HandedSockets, SocketPlace};
use crate::admin::InheritedSocket;
use crate::config;

/// Name that a supervisor must give to the socket of the admin interface.
const ADMIN: &str = "admin";

#[derive(Debug, Default)]
pub(super) struct InheritedSockets {
    sockets: Vec<PassedSocket>,
}

#[derive(Debug)]
struct PassedSocket {
    /// Name of the socket, from `FileDescriptorName=` in its systemd unit.
    name: Option<String>,
    place: String,
    /// The address; `None` for a Unix socket.
    address: Option<SocketAddr>,
    /// Use of the socket in the previous process; `None` if a supervisor passed the socket.
    before: Option<SocketPlace>,
    socket: InheritedSocket,
}

impl InheritedSockets {
    /// Creates the list of sockets that the replaced process has handed over.
    pub(super) fn from_predecessor(passed: HandedSockets) -> Result<Self, String> {
        let mut sockets = Vec::new();
        for (before, socket) in passed {
            let (socket, place, address) = match &before {
                SocketPlace::Listener(_) | SocketPlace::Admin(_) => {
                    let socket = TcpListener::from(socket);
                    let local = socket
                        .local_addr()
                        .map_err(|error| format!("a socket of the old process cannot be used: {error}"))?;
                    (InheritedSocket::Tcp(socket), local.to_string(), Some(local))
                }
                SocketPlace::AdminSocket { path, is_made } => {
                    let socket = InheritedSocket::Unix { listener: socket.into(), is_made: *is_made };
                    (socket, path.display().to_string(), None)
                }
            };
            sockets.push(PassedSocket { name: None, place, address, before: Some(before), socket });
        }
        Ok(Self { sockets })
    }

    /// Takes the sockets that a supervisor has passed to this process. Also removes the environment
    /// variables about the sockets, because child processes could use them. Must be called before
    /// any thread starts, because it changes the environment.
    pub(super) fn take() -> Result<Self, String> {
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = names.split(':').map(str::to_owned);
        let mut passed = listenfd::ListenFd::from_env();
        let mut sockets = Vec::new();
        for number in 0..passed.len() {
            let name = names.next().filter(|name| !name.is_empty());
            let called = name.as_ref().map(|name| format!(" ({name:?})")).unwrap_or_default();
            let what = format!("the descriptor {number} that the supervisor passed{called}");
            let socket = match passed.take_tcp_listener(number) {
                Ok(Some(socket)) => InheritedSocket::Tcp(socket),
                Ok(None) => continue,
                Err(_) => match passed.take_unix_listener(number) {
                    Ok(Some(listener)) => InheritedSocket::Unix { listener, is_made: false },
                    Ok(None) => continue,
                    Err(_) => return Err(format!("{what} is not a stream socket")),
                },
            };
            let cannot = |error| format!("{what}: {error}");
            let (place, address) = match &socket {
                InheritedSocket::Tcp(socket) => {
                    if socket2::SockRef::from(socket).peer_addr().is_ok() {
                        return Err(format!(
                            "{what} is a connection, not a listening socket: set Accept=no in the .socket unit"
                        ));
                    }
                    let local = socket.local_addr().map_err(cannot)?;
                    (local.to_string(), Some(local))
                }
                InheritedSocket::Unix { listener, .. } => {
                    let local = listener.local_addr().map_err(cannot)?;
                    (
                        local.as_pathname().map_or_else(|| "a Unix socket".into(), |path| path.display().to_string()),
                        None,
                    )
                }
            };
            sockets.push(PassedSocket { name, place, address, before: None, socket });
        }
        Ok(Self { sockets })
    }

    /// Returns true if no supervisor passed a socket.
    pub(super) fn is_empty(&self) -> bool {
        self.sockets.iter().all(|socket| socket.before.is_some())
    }

    pub(super) fn has_socket_for(&self, listener: &config::ListenerConfig) -> bool {
        let is_meant = self.socket_filter(listener);
        self.sockets.iter().any(is_meant)
    }

    /// Takes the sockets for a listener: all sockets with the listener's name or, if no socket has
    /// this name, all sockets with the listener's address.
    pub(super) fn for_listener(&mut self, listener: &config::ListenerConfig) -> Vec<TcpListener> {
        let is_meant = self.socket_filter(listener);
        let taken = self.sockets.extract_if(.., |socket| is_meant(socket));
        taken.filter_map(PassedSocket::tcp).collect()
    }

    fn socket_filter(&self, listener: &config::ListenerConfig) -> impl Fn(&PassedSocket) -> bool + use<> {
        let (name, address) = (listener.name.clone(), listener.address);
        let is_named = move |socket: &PassedSocket| socket.address.is_some() && name.is_some() && socket.name == name;
        let by_name = self.sockets.iter().any(&is_named);
        move |socket| {
            if let Some(before) = &socket.before {
                return *before == SocketPlace::Listener(address);
            }
            if by_name { is_named(socket) } else { socket.address == Some(address) }
        }
    }

    /// Takes the previous process's socket for an additional address of the admin interface.
    pub(super) fn for_admin_listener(&mut self, address: SocketAddr) -> Option<TcpListener> {
        let is_meant = |socket: &PassedSocket| socket.before == Some(SocketPlace::Admin(address));
        let at = self.sockets.iter().position(is_meant)?;
        self.sockets.remove(at).tcp()
    }

    /// Takes the sockets for the admin interface: all sockets with the name `admin`, and the
    /// sockets at the configured path or address.
    pub(super) fn for_admin(&mut self, settings: &config::AdminSettings) -> Vec<InheritedSocket> {
        let path = settings.socket.as_ref().map(|path| path.display().to_string());
        let meant = |socket: &PassedSocket| match &socket.before {
            Some(SocketPlace::AdminSocket { path, .. }) => settings.socket.as_ref() == Some(path),
            Some(SocketPlace::Admin(address)) => settings.address == Some(*address),
            Some(SocketPlace::Listener(_)) => false,
            None => {
                socket.name.as_deref() == Some(ADMIN)
                    || socket.address.is_none() && path.as_ref() == Some(&socket.place)
                    || socket.address.is_some() && socket.address == settings.address
            }
        };
        self.sockets.extract_if(.., |socket| meant(socket)).map(|socket| socket.socket).collect()
    }

    /// Returns the files of Unix sockets that the previous process created and this process does
    /// not use.
    pub(super) fn unused_files(&self) -> Vec<PathBuf> {
        let file = |socket: &PassedSocket| match &socket.before {
            Some(SocketPlace::AdminSocket { path, is_made: true }) => Some(path.clone()),
            _ => None,
        };
        self.sockets.iter().filter_map(file).collect()
    }

    /// Returns an error if a supervisor passed a socket that nothing uses: the kernel would accept
    /// connections to this socket, and these connections would never be served. Closes unused
    /// sockets of a previous process.
    pub(super) fn finish(self) -> Result<(), String> {
        let Some(socket) = self.sockets.iter().find(|socket| socket.before.is_none()) else { return Ok(()) };
        let called = socket.name.as_ref().map(|name| format!(" ({name:?})")).unwrap_or_default();
        Err(format!(
            "{address}: the supervisor passed a socket for this address{called}, but no [[listener]] and no [admin] \
             address uses it: add a listener, or remove the socket from the .socket unit",
            address = socket.place
        ))
    }
}

impl PassedSocket {
    fn tcp(self) -> Option<TcpListener> {
        match self.socket {
            InheritedSocket::Tcp(socket) => Some(socket),
            InheritedSocket::Unix { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener(address: SocketAddr, name: Option<&str>) -> config::ListenerConfig {
        config::ListenerConfig {
            questions: config::QuestionSettings::default(),
            name: name.map(str::to_owned),
            address,
            kind: config::ListenerKind::Proxy,
            certificates: None,
            trusted: std::sync::Arc::default(),
            proxy_protocol: false,
        }
    }

    fn passed(names: &[Option<&str>]) -> (InheritedSockets, Vec<SocketAddr>) {
        let mut addresses = Vec::new();
        let mut sockets = Vec::new();
        for name in names {
            let socket = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = socket.local_addr().unwrap();
            addresses.push(address);
            sockets.push(PassedSocket {
                name: name.map(str::to_owned),
                place: address.to_string(),
                address: Some(address),
                before: None,
                socket: InheritedSocket::Tcp(socket),
            });
        }
        (InheritedSockets { sockets }, addresses)
    }

    fn addresses(sockets: &[TcpListener]) -> Vec<SocketAddr> {
        sockets.iter().map(|socket| socket.local_addr().unwrap()).collect()
    }

    #[test]
    fn sockets_are_matched_by_name_then_by_address() {
        let nowhere = ([127, 0, 0, 1], 1).into();
        let (mut passed, places) = passed(&[Some("web"), None, Some("robotsd.socket"), Some("web")]);
        assert_eq!(addresses(&passed.for_listener(&listener(nowhere, Some("web")))), [places[0], places[3]]);
        assert_eq!(addresses(&passed.for_listener(&listener(places[2], Some("other")))), [places[2]]);
        assert_eq!(addresses(&passed.for_listener(&listener(places[2], None))), []);
        assert_eq!(addresses(&passed.for_listener(&listener(places[1], None))), [places[1]]);
        assert!(passed.is_empty());
        passed.finish().unwrap();
    }

    #[test]
    fn the_error_for_an_unused_socket_contains_its_address_and_name() {
        let (passed, places) = passed(&[Some("web")]);
        let message = passed.finish().unwrap_err();
        let start =
            format!("{}: the supervisor passed a socket for this address (\"web\"), but no [[listener]]", places[0]);
        assert!(message.starts_with(&start), "{message}");
    }

    #[test]
    fn the_admin_interface_gets_sockets_by_name_and_by_address() {
        let (mut passed, places) = passed(&[Some("admin"), None, Some("web")]);
        let settings = config::AdminSettings { address: Some(places[1]), ..Default::default() };
        assert_eq!(passed.for_admin(&settings).len(), 2);
        assert_eq!(passed.sockets.len(), 1);
    }
}
