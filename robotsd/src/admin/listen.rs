//! The admin listeners: TCP addresses and a Unix socket, opened by this process or passed by a
//! supervisor or by the previous process.

use std::fs::{self, DirBuilder};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::access_rule::AddressTerms;
use super::connection_slots::ConnectionSlots;
use crate::config::{
    AdminAccess, AdminListenerConfig, AdminPlace, AdminRights, AdminSettings, UNKNOWN_ID, connect_now, staging_socket,
};

/// Maximum number of connections that wait to be accepted. The kernel's limit may be lower.
const BACKLOG: i32 = 4096;

#[derive(Debug)]
pub(crate) enum InheritedSocket {
    Tcp(TcpListener),
    Unix {
        listener: UnixListener,
        /// Whether a previous robotsd process created the socket file. If `false`, a supervisor
        /// created it.
        is_made: bool,
    },
}

#[derive(Debug)]
pub(crate) struct OpenListener {
    pub(super) listener: AdminListener,
    pub(crate) address: String,
    pub(crate) slots: Arc<ConnectionSlots>,
}

#[derive(Debug)]
pub(super) enum AdminListener {
    Address(tokio::net::TcpListener, Arc<AddressTerms>),
    Socket(tokio::net::UnixListener, SocketOrigin),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SocketOrigin {
    pub(super) owner: Option<u32>,
    pub(super) is_supervisor_socket: bool,
}

/// The open sockets that commands connect to.
#[derive(Debug)]
pub(crate) struct CommandPlace {
    pub(crate) address: Option<AddressSocket>,
    pub(crate) socket: Option<CommandSocket>,
}

impl CommandPlace {
    /// Opens the configured sockets. If `passed` contains a socket for an address or path, uses
    /// this socket instead of opening a new one. Must be called in a Tokio runtime.
    pub(crate) fn open(settings: &AdminSettings, passed: Vec<InheritedSocket>) -> Result<Self, String> {
        let (mut tcp, mut unix) = (None, None);
        for socket in passed {
            match socket {
                InheritedSocket::Tcp(socket) => tcp = Some(socket),
                InheritedSocket::Unix { listener, is_made } => unix = Some((listener, is_made)),
            }
        }
        if settings.address.is_none() && tcp.is_some() {
            return Err(
                "the supervisor passed a TCP socket for the admin interface, but [admin] has no \"address\"".to_owned()
            );
        }
        if settings.socket.is_none() && unix.is_some() {
            return Err(
                "the supervisor passed a Unix socket for the admin interface, but [admin] has no \"socket\"".to_owned()
            );
        }
        let address = settings.address.map(|address| AddressSocket::open(address, tcp)).transpose()?;
        let on_socket = |path: &PathBuf| -> io::Result<CommandSocket> {
            let (listener, made, is_supervisor_socket) = match unix {
                Some((listener, true)) => (listener, identity(path).ok(), false),
                Some((listener, false)) => (listener, None, true),
                None => {
                    if let Some(folder) = path.parent().filter(|_| settings.is_default_socket) {
                        prepare_runtime_folder(folder)?;
                    }
                    let (listener, made) = bind_file(path)?;
                    (listener, Some(made), false)
                }
            };
            Ok(CommandSocket { listener, path: path.clone(), made, is_supervisor_socket })
        };
        let cannot = |path: &Path, error: io::Error| format!("{}: cannot listen here: {error}", path.display());
        let socket = settings.socket.as_ref().map(|path| on_socket(path).map_err(|error| cannot(path, error)));
        Ok(Self { address, socket: socket.transpose()? })
    }

    /// Returns the address that commands use. Prefers the Unix socket, because no other user can
    /// listen on its path.
    pub(crate) fn place(&self) -> Option<AdminPlace> {
        let socket = self.socket.as_ref().map(|socket| AdminPlace::Socket(socket.path.clone()));
        socket.or_else(|| self.address.as_ref().map(|address| AdminPlace::Address(address.local)))
    }
}

fn cannot_listen(address: SocketAddr, error: &io::Error) -> String {
    format!("{address}: cannot listen here for [admin]: {error}")
}

fn bind_listener(address: SocketAddr) -> Result<TcpListener, String> {
    let cannot = |error| cannot_listen(address, &error);
    let listener = TcpListener::bind(address).map_err(cannot)?;
    // The standard library uses a backlog of 128 connections. If a burst of connections filled the
    // backlog, the kernel would drop the SYN of an operator's client, and the client would send it
    // again only after a second or more.
    socket2::SockRef::from(&listener).listen(BACKLOG).map_err(cannot)?;
    Ok(listener)
}

/// The socket of a bound TCP address. A reload keeps the socket and creates a new listener on it.
#[derive(Debug)]
pub(crate) struct AddressSocket {
    socket: TcpListener,
    local: SocketAddr,
}

impl AddressSocket {
    pub(crate) fn open(address: SocketAddr, passed: Option<TcpListener>) -> Result<Self, String> {
        let cannot = |error| cannot_listen(address, &error);
        let is_passed = passed.is_some();
        let socket = passed.map_or_else(|| bind_listener(address), Ok)?;
        let local = socket.local_addr().map_err(cannot)?;
        if is_passed && local != address && address.port() != 0 {
            return Err(format!(
                "the socket that the supervisor passed for [admin] listens on {local}, but [admin] has address = \
                 \"{address}\""
            ));
        }
        Ok(Self { socket, local })
    }

    /// Creates a listener that accepts `names` in the `Host` field. Must be called in a Tokio
    /// runtime.
    pub(crate) fn listen(
        &self,
        names: &[String],
        config: &AdminListenerConfig,
        rights: &AdminRights,
    ) -> Result<OpenListener, String> {
        let cannot = |error| cannot_listen(self.local, &error);
        let socket = self.socket.try_clone().map_err(cannot)?;
        socket.set_nonblocking(true).map_err(cannot)?;
        let listener = tokio::net::TcpListener::from_std(socket).map_err(cannot)?;
        let scheme = if config.certificates.is_some() { "https" } else { "http" };
        let purpose = match (config.access(rights), rights.local_token()) {
            (AdminAccess::Full, _) => "",
            (AdminAccess::Read, _) => " (read-only)",
            (AdminAccess::TokenForChanges, Some(local)) => {
                &*format!(" (changes require the token in {file})", file = local.file.display())
            }
            (AdminAccess::TokenForChanges, None) => " (changes require a token)",
            (AdminAccess::Token, _) => " (requires a token)",
            (AdminAccess::Proxy, _) => " (only for a proxy)",
        };
        let terms = AddressTerms { names: names.to_vec(), config: config.clone() };
        Ok(OpenListener {
            listener: AdminListener::Address(listener, Arc::new(terms)),
            address: format!("{scheme}://{}{purpose}", self.local),
            slots: Arc::default(),
        })
    }

    /// Returns the bound address. If the config has port 0, this address contains the port that the
    /// system chose.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.local
    }

    pub(crate) fn socket(&self) -> io::Result<TcpListener> {
        self.socket.try_clone()
    }
}

/// The open Unix socket for commands. A reload keeps the socket and creates a new listener on it.
#[derive(Debug)]
pub(crate) struct CommandSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the socket file, to detect that another process has replaced it. `None`
    /// if a supervisor created the file.
    made: Option<(u64, u64)>,
    is_supervisor_socket: bool,
}

impl CommandSocket {
    /// Creates a listener on the socket. Must be called in a Tokio runtime.
    pub(crate) fn listen(&self) -> Result<OpenListener, String> {
        let cannot = |error| format!("{}: cannot listen here: {error}", self.path.display());
        let listener = self.listener.try_clone().map_err(cannot)?;
        listener.set_nonblocking(true).map_err(cannot)?;
        let owner = fs::metadata(&self.path).ok().map(|found| std::os::unix::fs::MetadataExt::uid(&found));
        // The kernel reports this ID for every user that it cannot identify, so the ID does not
        // identify the owner.
        let owner = owner.filter(|owner| *owner != UNKNOWN_ID);
        let listener = tokio::net::UnixListener::from_std(listener).map_err(cannot)?;
        Ok(OpenListener {
            listener: AdminListener::Socket(
                listener,
                SocketOrigin { owner, is_supervisor_socket: self.is_supervisor_socket },
            ),
            address: self.path.display().to_string(),
            slots: Arc::default(),
        })
    }

    /// Lets all users of the machine connect if `with_others` is true, and only the owner if it is
    /// false. `with_others` must be true only if the config lists the rights of local users. Does
    /// not change the mode of a file that a supervisor created.
    pub(crate) fn share(&self, with_others: bool) {
        use std::os::unix::fs::PermissionsExt;
        if self.owns_file() {
            let mode = if with_others { 0o666 } else { 0o600 };
            // If the mode cannot be changed, more users than intended may connect, but each of them
            // still needs rights in the config.
            let _ = fs::set_permissions(&self.path, fs::Permissions::from_mode(mode));
        }
    }

    /// Returns a duplicate of the socket, its path, and whether robotsd created its file.
    pub(crate) fn socket(&self) -> io::Result<(UnixListener, PathBuf, bool)> {
        Ok((self.listener.try_clone()?, self.path.clone(), !self.is_supervisor_socket))
    }

    /// Removes the socket file, unless a supervisor or another process created it.
    pub(crate) fn remove_file(&self) {
        if self.owns_file() {
            // If the file cannot be removed, the next start replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }

    fn owns_file(&self) -> bool {
        self.made.is_some() && identity(&self.path).ok() == self.made
    }
}

/// Creates a socket file that only its owner can open. The file is created in a private folder and
/// then moved to its path, because no other user may open it before its mode is set. Replaces a
/// socket file that a killed process has left behind. Returns an error if another process still
/// accepts connections on the existing socket file.
fn bind_file(path: &Path) -> io::Result<(UnixListener, (u64, u64))> {
    use io::{Error, ErrorKind};
    use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            return Err(Error::new(ErrorKind::AlreadyExists, "this path exists and is not a socket"));
        }
        Ok(_) if connect_now(path).is_ok() => {
            return Err(Error::new(ErrorKind::AddrInUse, "another process already listens there"));
        }
        _ => {}
    }
    let inside = staging_socket(path);
    let aside = inside.parent().unwrap_or(path);
    // A killed process that had the same process ID may have left this folder behind.
    let _ = fs::remove_dir_all(aside);
    DirBuilder::new().mode(0o700).create(aside)?;
    let made = (|| {
        let listener = UnixListener::bind(&inside)?;
        fs::set_permissions(&inside, fs::Permissions::from_mode(0o600))?;
        let identity = identity(&inside)?;
        fs::rename(&inside, path)?;
        Ok((listener, identity))
    })();
    let _ = fs::remove_dir_all(aside);
    made
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

/// Creates the runtime folder. If the folder exists, checks that other users cannot write to it and
/// replace files in it.
pub(super) fn prepare_runtime_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // Symbolic links are followed: with `DynamicUser=`, systemd creates the runtime folder as a
    // link in a folder that only root can write to.
    let found = fs::metadata(folder)?;
    let refused =
        |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{}: {why}", folder.display())));
    if !found.is_dir() {
        return refused("the path of the runtime folder is not a folder");
    }
    if found.uid() != 0 && found.uid() != rustix::process::geteuid().as_raw() {
        return refused("the runtime folder belongs to another user");
    }
    if found.mode() & 0o022 != 0 {
        return refused("the runtime folder is writable by other users");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::net::UnixStream;

    fn made(path: &Path) -> io::Result<CommandSocket> {
        let (listener, made) = bind_file(path)?;
        Ok(CommandSocket { listener, path: path.to_owned(), made: Some(made), is_supervisor_socket: false })
    }

    #[test]
    fn a_socket_is_private_to_its_owner_replaces_a_stale_one_and_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.sock");
        // A socket file that a killed process has left behind.
        drop(UnixListener::bind(&path).unwrap());
        let socket = made(&path).unwrap();
        assert_eq!(fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        UnixStream::connect(&path).unwrap();
        assert_eq!(made(&path).unwrap_err().to_string(), "another process already listens there");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        socket.remove_file();
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_socket_of_an_unknown_user_has_no_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.sock");
        let socket = made(&path).unwrap();
        let owner = || match socket.listen().unwrap().listener {
            AdminListener::Socket(_, origin) => origin.owner,
            AdminListener::Address(..) => panic!("an address"),
        };
        assert_eq!(owner(), Some(rustix::process::geteuid().as_raw()));
        // Only root can change the owner of a file, so other users skip this check.
        if std::os::unix::fs::chown(&path, Some(UNKNOWN_ID), None).is_ok() {
            assert_eq!(owner(), None);
        }
    }

    #[test]
    fn a_regular_file_and_the_socket_of_another_process_are_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.sock");
        fs::write(&path, "precious").unwrap();
        assert!(made(&path).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
        fs::remove_file(&path).unwrap();
        let first = made(&path).unwrap();
        socket2::SockRef::from(&first.listener).shutdown(std::net::Shutdown::Both).unwrap();
        let _second = made(&path).unwrap();
        first.remove_file();
        assert!(path.exists(), "the socket of another was removed");
    }

    #[test]
    fn a_runtime_folder_that_other_users_can_write_to_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("robotsd");
        prepare_runtime_folder(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        prepare_runtime_folder(&folder).unwrap();
        for (mode, is_refused) in [(0o750, false), (0o770, true), (0o707, true)] {
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(prepare_runtime_folder(&folder).is_err(), is_refused, "{mode:o}");
        }
        let file = parent.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(prepare_runtime_folder(&file).is_err());
        assert!(prepare_runtime_folder(&parent.path().join("no/such")).is_err());
    }
}
