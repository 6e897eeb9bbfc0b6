//! The admin interface, and the parts of a config file that commands read on their own.
//!
//! If a config has no `[admin]` its socket is in the runtime folder: `$RUNTIME_DIRECTORY`, which systemd sets, else
//! `$XDG_RUNTIME_DIR/robotsd`, else `/run/robotsd`. Its name is `admin.sock` for the usual config and `admin-XXXXXXXX.sock` for any other,
//! by a hash of its path, so that two instances do not meet and a command with a config asks the one that runs with it.

use std::ffi::OsStr;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use data_encoding::HEXLOWER;
use http::HeaderName;
use toml::Spanned;
use tower_robots::policy::Network;

use super::admin_rights::{self, AdminRights, RawAdminToken, RawAdminUser};
use super::listener::{RawCertificate, pairs};
use super::published::trusted;
use super::{ConfigError, Fault, Placed, USUAL_CONFIG, parsed, reader, salvage, tables, words};
use crate::edge::{ClientAuthorities, LiveCertificates};
use crate::files;
use crate::upstream::Trust;

tables! {
    /// The admin interface; on a socket in the runtime folder where the table is absent.
    RawAdmin {
        enabled: bool = true,
        address: Option<Spanned<SocketAddr>>,
        socket: Option<Spanned<PathBuf>>,
        hosts: Vec<Spanned<String>>,
        reach: Reach,
        /// Where who changed what is written; below the state directory by default.
        audit: Option<PathBuf>,
        token: Vec<RawAdminToken>,
        user: Vec<RawAdminUser>,
        listener: Vec<RawAdminListener>,
    }

    /// A further address of the admin interface.
    RawAdminListener {
        address: Spanned<SocketAddr>,
        /// Default: `read` where other machines can reach it; else `token` where there are tokens, and `full` where there are none.
        access: Option<Spanned<AdminAccess>>,
        certificate: Vec<RawCertificate>,
        /// The authorities of which each client needs a certificate.
        client_ca: Option<Spanned<PathBuf>>,
        /// The addresses of the proxy.
        from: Vec<Spanned<String>>,
        /// The field in which the proxy names its user.
        user_header: Option<Spanned<String>>,
    }
}

words! {
    /// From where the admin address can be reached.
    Reach {
        /// This machine.
        #[default]
        Loopback = "loopback",
        /// Every machine that the network lets through.
        Network = "network",
    }

    /// What clients of an admin listener may do, and how they say who they are.
    AdminAccess {
        /// Anyone may look, and nothing is changed.
        #[default]
        Read = "read",
        /// Anyone may do anything; a token says who it is, and what they may do.
        Full = "full",
        /// Nothing but probes is answered without a token.
        Token = "token",
        /// A proxy says who its users are.
        Proxy = "proxy",
    }
}

impl RawAdmin {
    /// The addresses of the interface, as they are written.
    pub(super) fn addresses(&self) -> impl Iterator<Item = &Spanned<SocketAddr>> {
        self.address.iter().chain(self.listener.iter().map(|listener| &listener.address))
    }
}

/// The default port.
pub(super) const PORT: u16 = 9145;

/// The places at which the admin interface listens: an address, a socket, or both.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AdminSettings {
    pub(crate) address: Option<SocketAddr>,
    pub(crate) socket: Option<PathBuf>,
    /// Names accepted in `Host`, besides those of the loopback; in lower case.
    pub(crate) hosts: Vec<String>,
    /// Whether the config has no `[admin]`: serving does without the interface where its socket cannot be opened.
    pub(crate) is_usual: bool,
    /// Further addresses.
    pub(crate) listeners: Vec<AdminListenerConfig>,
    pub(crate) rights: Arc<AdminRights>,
    /// Where the audit is written, if the config says so.
    pub(crate) audit: Option<PathBuf>,
}

/// An address of the admin interface, and what its clients may do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AdminListenerConfig {
    pub(crate) address: SocketAddr,
    pub(crate) access: AdminAccess,
    /// None without TLS.
    pub(crate) certificates: Option<LiveCertificates>,
    /// Of a proxy; none where none may forward.
    pub(crate) proxy: Option<AdminProxy>,
}

/// The proxy that says who its users are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AdminProxy {
    pub(crate) from: Vec<Network>,
    pub(crate) user_header: HeaderName,
}

impl AdminSettings {
    /// Reads the table alone: a command must reach a running robotsd after its config was broken elsewhere, and in the table
    /// itself as far as the place can still be read.
    pub(crate) fn load(path: &Path) -> Result<Option<Self>, ConfigError> {
        tables! {
            Part {
                admin: Option<RawAdmin>,
            }
        }
        let running = || served_socket(path).or_else(|| usual_socket(path));
        let text = match reader::read_text(path) {
            Ok(text) => text,
            Err(error) => {
                return served_socket(path).map(|found| Some(Self::on_usual_socket(found))).ok_or(error);
            }
        };
        let salvaged = salvage::read::<Part>(&text);
        let (Part { admin }, mut faults) = salvaged.unwrap_or_else(|fault| (Part { admin: None }, vec![fault]));
        let folder = path.parent().unwrap_or(Path::new(""));
        let found = match &admin {
            None if faults.is_empty() => return Ok(running().map(Self::on_usual_socket)),
            // The table may be there, and be what cannot be read.
            None => None,
            Some(admin) => match resolve(admin, folder) {
                // As for a config without the table: see `on_usual_place`.
                Ok(Some(settings)) if faults.is_empty() && settings.has_no_place() => {
                    return Ok(running().map(Self::on_usual_socket));
                }
                Ok(settings) => {
                    // The default address stands for a table without faults only: another process may be there.
                    let is_certain = faults.is_empty() || admin.socket.is_some() || admin.address.is_some();
                    Some(settings).filter(|settings| is_certain || settings.is_none())
                }
                Err(fault) => {
                    faults.insert(0, fault);
                    let socket = admin.socket.as_ref().map(|socket| folder.join(socket.get_ref()));
                    let on_socket = |socket| Self { is_usual: false, ..Self::on_usual_socket(socket) };
                    socket.map(|socket| Some(on_socket(socket)))
                }
            },
        };
        // The path of the config alone names this socket, so a process behind it runs with this config, whatever the table says now.
        let found = found.or_else(|| served_socket(path).map(|found| Some(Self::on_usual_socket(found))));
        let first = || faults.into_iter().next().unwrap_or_else(|| Fault::new(0..0, "[admin] cannot be read"));
        found.ok_or_else(|| first().at(path, &text))
    }

    /// The places if a config has no `[admin]`; none on systems without Unix sockets.
    pub(crate) fn usual(path: &Path) -> Option<Self> {
        usual_socket(path).map(Self::on_usual_socket)
    }

    /// If `[admin]` names further listeners only, commands ask at the place that holds without the table.
    pub(super) fn on_usual_place(self, path: &Path) -> Self {
        if !self.has_no_place() {
            return self;
        }
        match Self::usual(path) {
            Some(Self { socket, is_usual, .. }) => Self { socket, is_usual, ..self },
            None => Self { address: Some(Self::usual_address()), ..self },
        }
    }

    const fn has_no_place(&self) -> bool {
        self.address.is_none() && self.socket.is_none()
    }

    /// The sockets of all servers whose configs have no `[admin]` and that run: a process that was killed leaves its socket behind.
    pub(crate) fn usual_sockets() -> Vec<PathBuf> {
        let entries = folders().into_iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
        let is_ours = |name: &OsStr| {
            name.to_str()
                .is_some_and(|name| name.starts_with("admin") && Path::new(name).extension() == Some("sock".as_ref()))
        };
        let sockets = entries.filter(|entry| is_ours(&entry.file_name())).map(|entry| entry.path());
        let mut found: Vec<_> = sockets.filter(|socket| is_served(socket)).collect();
        found.sort();
        found.dedup();
        found
    }

    fn on_usual_socket(socket: PathBuf) -> Self {
        Self { socket: Some(socket), is_usual: true, ..Self::default() }
    }

    /// The address at which commands ask, as a listener.
    pub(crate) fn command_listener(&self) -> Option<AdminListenerConfig> {
        let access = if self.rights.tokens.is_empty() { AdminAccess::Full } else { AdminAccess::Token };
        self.address.map(|address| AdminListenerConfig { address, access, certificates: None, proxy: None })
    }

    /// The default address.
    pub(crate) fn usual_address() -> SocketAddr {
        (Ipv4Addr::LOCALHOST, PORT).into()
    }
}

/// The settings of a table; `None` if it turns the interface off.
fn resolve(admin: &RawAdmin, folder: &Path) -> Result<Option<AdminSettings>, Fault> {
    if !admin.enabled {
        return Ok(None);
    }
    let socket = admin.socket.as_ref().map(|socket| folder.join(socket.get_ref()));
    let address = match &admin.address {
        Some(address) => {
            if is_open(*address.get_ref()) && admin.reach == Reach::Loopback {
                let message = format!(
                    "{} can be reached from other machines, and any client of the admin interface can change what is \
                     served: write a loopback address such as \"127.0.0.1:{PORT}\", or reach = \"network\" if that is meant",
                    address.get_ref()
                );
                return Err(address.fault(message));
            }
            Some(*address.get_ref())
        }
        None if socket.is_some() || !admin.listener.is_empty() => None,
        None => Some(AdminSettings::usual_address()),
    };
    let mut hosts = Vec::new();
    for host in &admin.hosts {
        let name = host.get_ref().to_ascii_lowercase();
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'));
        if name.is_empty() || !is_name {
            let message = format!("{:?} is not a host name: write one such as \"admin.internal\"", host.get_ref());
            return Err(host.fault(message));
        }
        hosts.push(name);
    }
    let rights = Arc::new(admin_rights::resolve(&admin.token, &admin.user)?);
    if let Some(open) =
        admin.address.as_ref().filter(|address| is_open(*address.get_ref()) && !rights.tokens.is_empty())
    {
        return Err(open.fault(in_the_clear(*open.get_ref())));
    }
    let listeners = admin.listener.iter().map(|listener| further(listener, &rights)).collect::<Result<_, _>>()?;
    let audit = admin.audit.as_ref().map(|audit| folder.join(audit));
    Ok(Some(AdminSettings { address, socket, hosts, is_usual: false, listeners, rights, audit }))
}

/// Whether other machines can reach an address.
pub(crate) fn is_open(address: SocketAddr) -> bool {
    !address.ip().to_canonical().is_loopback()
}

fn in_the_clear(address: SocketAddr) -> String {
    format!(
        "{address} can be reached from other machines, and a token would be sent in the clear: write an [[admin.listener]] with an \
         [[admin.listener.certificate]], or a loopback address"
    )
}

/// A listener that other machines can reach changes nothing, unless the config says otherwise.
fn further(listener: &RawAdminListener, rights: &AdminRights) -> Result<AdminListenerConfig, Fault> {
    let address = *listener.address.get_ref();
    let usual = match (is_open(address), &*rights.tokens) {
        (true, _) => AdminAccess::Read,
        (false, []) => AdminAccess::Full,
        (false, _) => AdminAccess::Token,
    };
    let access = listener.access.as_ref().map_or(usual, |access| *access.get_ref());
    let written = listener.access.as_ref().map_or_else(|| listener.address.span(), Spanned::span);
    if access == AdminAccess::Token && is_open(address) && listener.certificate.is_empty() {
        return Err(Fault::new(written, in_the_clear(address)));
    }
    let proxy = match (access, &*listener.from, &listener.user_header) {
        (AdminAccess::Proxy, [_, ..], Some(header)) => {
            let from = listener.from.iter().map(parsed).collect::<Result<_, _>>()?;
            Some(AdminProxy { from, user_header: parsed(header)? })
        }
        (AdminAccess::Proxy, ..) => {
            let message = "access = \"proxy\" needs from = [\"10.0.0.5\"], the addresses of the proxy, and user_header = \
                           \"X-Forwarded-User\", the field in which it names its user";
            return Err(Fault::new(written, message));
        }
        (_, [], None) => None,
        (_, [first, ..], _) => return Err(first.fault(FOR_PROXIES)),
        (_, _, Some(header)) => return Err(header.fault(FOR_PROXIES)),
    };
    match &listener.client_ca {
        Some(file) if listener.certificate.is_empty() => {
            Err(file.fault("client_ca goes with TLS: write an [[admin.listener.certificate]] too"))
        }
        _ => Ok(AdminListenerConfig { address, access, certificates: None, proxy }),
    }
}

const FOR_PROXIES: &str = "from and user_header go with access = \"proxy\"";

/// The settings of a process that serves, which alone has to read the certificates of the listeners, and may.
pub(super) fn served(admin: &RawAdmin, folder: &Path) -> Result<Option<AdminSettings>, Fault> {
    let Some(mut settings) = resolve(admin, folder)? else { return Ok(None) };
    for (raw, listener) in admin.listener.iter().zip(&mut settings.listeners) {
        let clients = match raw.client_ca.as_ref().map(|file| trusted(file, folder)).transpose()? {
            Some(Trust::File(path, roots)) => Some(ClientAuthorities { path, roots }),
            Some(Trust::System) | None => None,
        };
        let pairs = pairs(&raw.certificate, folder)?;
        if let Some(first) = raw.certificate.first() {
            let made = LiveCertificates::for_operators(pairs, clients);
            listener.certificates = Some(made.map_err(|error| first.chain.fault(error.to_string()))?);
        }
    }
    Ok(Some(settings))
}

/// The socket that a server with this config opens.
fn usual_socket(path: &Path) -> Option<PathBuf> {
    folders().into_iter().next().map(|folder| folder.join(socket_name(path)))
}

/// The socket of a server that runs with this config and answers; a command may lack the environment that the server has. A
/// socket that a killed process left behind is passed over.
fn served_socket(path: &Path) -> Option<PathBuf> {
    let name = socket_name(path);
    folders().into_iter().map(|folder| folder.join(&name)).find(|place| is_served(place))
}

fn is_served(socket: &Path) -> bool {
    // Without the permission to connect it is left to the command to say so.
    connect_now(socket).map_or_else(|error| error.kind() == std::io::ErrorKind::PermissionDenied, |()| true)
}

/// The place at which a socket is made before it is moved: in a folder of its own beside it. The folder's name has one length
/// for every process, so that a path that is too long for one is too long for all.
pub(crate) fn staging_socket(socket: &Path) -> PathBuf {
    socket.with_extension(format!("{:07}.new", std::process::id())).join("s")
}

/// Whether a process listens on a socket, without waiting: one whose queue is full, because it is stopped, would block.
pub(crate) fn connect_now(socket: &Path) -> std::io::Result<()> {
    let stream = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
    stream.set_nonblocking(true)?;
    match stream.connect(&socket2::SockAddr::unix(socket)?) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(()),
        connected => connected,
    }
}

/// The runtime folders, the server's first.
fn folders() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| value.starts_with('/'));
    // systemd separates several by colons.
    let systemd = variable("RUNTIME_DIRECTORY").and_then(|folders| folders.split(':').next().map(PathBuf::from));
    let session = variable("XDG_RUNTIME_DIR").map(|folder| Path::new(&folder).join("robotsd"));
    let mut folders: Vec<_> = systemd.into_iter().chain(session).chain([PathBuf::from("/run/robotsd")]).collect();
    folders.dedup();
    folders
}

fn socket_name(path: &Path) -> String {
    let path = absolute(path);
    if path == Path::new(USUAL_CONFIG) {
        return "admin.sock".to_owned();
    }
    let hash = hmac_sha256::Hash::hash(path.as_os_str().as_encoded_bytes());
    format!("admin-{}.sock", HEXLOWER.encode(&hash[..4]))
}

/// The path from the root. Links of its folder are followed; one that is the file itself may lead elsewhere tomorrow.
fn absolute(path: &Path) -> PathBuf {
    match (files::folder_of(path).canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) if path != Path::new(USUAL_CONFIG) => folder.join(name),
        _ => path.to_path_buf(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_accepts_nothing_is_found_without_waiting() {
        use std::os::unix::net::UnixListener;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("admin.sock");
        assert!(connect_now(&path).is_err() && !is_served(&path));
        let listener = UnixListener::bind(&path).expect("a socket");
        // A queue of one, which is full after two connections.
        socket2::SockRef::from(&listener).listen(0).expect("it listens");
        let address = socket2::SockAddr::unix(&path).expect("a path");
        let mut queued = Vec::new();
        let is_full = std::iter::repeat_with(|| {
            let stream = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).expect("a socket");
            stream.set_nonblocking(true).expect("set");
            let is_refused = stream.connect(&address).is_err();
            queued.push(stream);
            is_refused
        });
        assert!(is_full.take(64).any(|is_refused| is_refused), "the queue is never full");
        assert!(is_served(&path));
        drop(listener);
        assert!(!is_served(&path));
    }

    #[test]
    fn a_config_has_one_name_however_its_path_is_written() {
        assert_eq!(socket_name(Path::new(USUAL_CONFIG)), "admin.sock");
        let folder = tempfile::tempdir().expect("a folder");
        let (path, other) = (folder.path().join("a.toml"), folder.path().join("b.toml"));
        assert_eq!(socket_name(&path), socket_name(&folder.path().join(".").join("a.toml")));
        assert_ne!(socket_name(&path), socket_name(&other));
        assert!(
            socket_name(&path).starts_with("admin-") && socket_name(&path).len() == "admin-01234567.sock".len(),
            "{}",
            socket_name(&path)
        );
    }
}
