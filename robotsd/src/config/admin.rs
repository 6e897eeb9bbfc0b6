//! The admin interface, and the parts of a config file that commands read on their own.
//!
//! If a config has no `[admin]` its socket is in the runtime folder: `$RUNTIME_DIRECTORY`, which systemd sets, else
//! `$XDG_RUNTIME_DIR/robotsd`, else `/run/robotsd`. Its name is `admin.sock` for the usual config and `admin-XXXXXXXX.sock` for any other,
//! by a hash of its path, so that two instances do not meet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use data_encoding::HEXLOWER;
use http::HeaderName;
use toml::Spanned;
use tower_robots::policy::Network;

use super::admin_rights::{self, AdminRights, LocalToken, RawAdminToken, RawAdminUser};
use super::listener::{RawCertificate, pairs};
use super::published::authorities;
use super::{Fault, Placed, USUAL_CONFIG, parsed, tables, words};
use crate::edge::LiveCertificates;
use crate::files;

tables! {
    /// The admin interface; on a socket in the runtime folder where the table is absent.
    RawAdmin {
        enabled: bool = true,
        address: Option<Spanned<SocketAddr>>,
        socket: Option<Spanned<PathBuf>>,
        hosts: Vec<Spanned<String>>,
        reach: Reach,
        /// Where who changed what is written; below the state directory by default.
        audit: Option<Spanned<PathBuf>>,
        token: Vec<RawAdminToken>,
        user: Vec<RawAdminUser>,
        listener: Vec<RawAdminListener>,
    }

    /// A further address of the admin interface.
    RawAdminListener {
        address: Spanned<SocketAddr>,
        /// Default: `read` if other machines can reach it; else `token` if there are tokens, and `token-for-changes` if there are none.
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
        /// Anyone may look, and a change takes a token.
        TokenForChanges = "token-for-changes",
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
    /// `None` if it depends on whether there are tokens: see [`AdminListenerConfig::access`].
    pub(crate) access: Option<AdminAccess>,
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

impl AdminListenerConfig {
    /// Access of this listener. If the config does not set it, it depends on whether there are tokens, which may change meanwhile.
    pub(crate) fn access(&self, rights: &AdminRights) -> AdminAccess {
        match self.access {
            Some(access) => access,
            None if rights.asks_for_token => AdminAccess::Token,
            // The config says reach = "network".
            None if is_open(self.address) => AdminAccess::Full,
            None => AdminAccess::TokenForChanges,
        }
    }

    /// Whether it takes a connection of this process for one of the proxy.
    pub(super) fn trusts_itself(&self) -> bool {
        let asks_clients = self.certificates.as_ref().is_some_and(LiveCertificates::ask_clients);
        let own: [IpAddr; 3] = [self.address.ip(), Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        let mut networks = self.proxy.iter().flat_map(|proxy| &proxy.from);
        !asks_clients && networks.any(|network| own.iter().any(|own| network.contains(*own)))
    }

    /// Whether changes over it take the local token if the config has no tokens.
    fn takes_local_token(&self) -> bool {
        self.access(&AdminRights::default()) == AdminAccess::TokenForChanges
    }

    /// How changes are made over it, for people.
    fn way(&self, rights: &AdminRights) -> String {
        let address = self.address;
        match (self.access(rights), rights.local_token().map(|local| local.file.display())) {
            (AdminAccess::Full, _) => format!("over {address} by anyone who can connect, without a token"),
            (AdminAccess::Read, _) => format!("none over {address}, which is for reading"),
            (AdminAccess::Proxy, _) => format!("over {address} by each [[admin.user]] whom the proxy names"),
            (AdminAccess::TokenForChanges | AdminAccess::Token, Some(file)) => {
                format!("over {address} with the token in {file}")
            }
            (AdminAccess::TokenForChanges | AdminAccess::Token, None) => {
                format!("over {address} with an [[admin.token]]")
            }
        }
    }
}

impl AdminSettings {
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

    fn on_usual_socket(socket: PathBuf) -> Self {
        Self { socket: Some(socket), is_usual: true, ..Self::default() }
    }

    /// The address at which commands ask, as a listener.
    pub(crate) fn command_listener(&self) -> Option<AdminListenerConfig> {
        self.address.map(|address| AdminListenerConfig { address, access: None, certificates: None, proxy: None })
    }

    /// Every address.
    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.all_listeners().map(|listener| listener.address)
    }

    /// Every address, as a listener.
    pub(crate) fn all_listeners(&self) -> impl Iterator<Item = AdminListenerConfig> {
        self.command_listener().into_iter().chain(self.listeners.iter().cloned())
    }

    /// The local token if an address takes it, not read yet. Its file is the first of these, if that can have it.
    pub(crate) fn local_token(&self, files: &[PathBuf]) -> Option<LocalToken> {
        let is_taken = self.all_listeners().any(|listener| listener.takes_local_token());
        let file = files.first().filter(|_| is_taken)?;
        Some(LocalToken::missing(file.clone(), "robotsd is starting"))
    }

    /// The ways in which changes are made, one line per place.
    pub(crate) fn ways_to_change(&self, token_files: &[PathBuf]) -> Vec<String> {
        let rights = self.rights.with_local(self.local_token(token_files));
        let socket = self.socket.as_ref().map(|socket| format!("over the socket {}", socket.display()));
        socket.into_iter().chain(self.all_listeners().map(|listener| listener.way(&rights))).collect()
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
    let listeners = admin.listener.iter().map(further).collect::<Result<_, _>>()?;
    let audit = admin.audit.as_ref().map(|audit| folder.join(audit.get_ref()));
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
fn further(listener: &RawAdminListener) -> Result<AdminListenerConfig, Fault> {
    let address = *listener.address.get_ref();
    let usual = is_open(address).then_some(AdminAccess::Read);
    let access = listener.access.as_ref().map(|access| *access.get_ref()).or(usual);
    let written = listener.access.as_ref().map_or_else(|| listener.address.span(), Spanned::span);
    let takes_token = matches!(access, Some(AdminAccess::Token | AdminAccess::TokenForChanges));
    if takes_token && is_open(address) && listener.certificate.is_empty() {
        return Err(Fault::new(written, in_the_clear(address)));
    }
    let proxy = match (access, &*listener.from, &listener.user_header) {
        (Some(AdminAccess::Proxy), [_, ..], Some(header)) => {
            let from = listener.from.iter().map(parsed).collect::<Result<_, _>>()?;
            Some(AdminProxy { from, user_header: parsed(header)? })
        }
        (Some(AdminAccess::Proxy), ..) => {
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
        let clients = raw.client_ca.as_ref().map(|file| authorities(file, folder)).transpose()?;
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
    runtime_folders().into_iter().next().map(|folder| folder.join(format!("{}.sock", instance_name(path))))
}

/// The files in which the local token may be, the preferred one first: in the state directory, or in the runtime folder.
pub(crate) fn local_token_files(path: &Path, state: Option<&Path>) -> Vec<PathBuf> {
    let of_state = state.map(|folder| folder.join("admin.token"));
    let of_runtime = runtime_folders().into_iter().next();
    let of_runtime = of_runtime.map(|folder| folder.join(format!("{}.token", instance_name(path))));
    // Commands may run in another folder.
    let from_root = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    of_state.into_iter().chain(of_runtime).map(from_root).collect()
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
pub(crate) fn runtime_folders() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| value.starts_with('/'));
    // systemd separates several by colons.
    let systemd = variable("RUNTIME_DIRECTORY").and_then(|folders| folders.split(':').next().map(PathBuf::from));
    // `su` keeps the variable, so it may name a folder of another user, who could write there what root's commands read.
    let is_own = |folder: &String| {
        std::fs::metadata(folder).is_ok_and(|found| found.uid() == rustix::process::geteuid().as_raw())
    };
    let session = variable("XDG_RUNTIME_DIR").filter(is_own).map(|folder| Path::new(&folder).join("robotsd"));
    let mut folders: Vec<_> = systemd.into_iter().chain(session).chain([PathBuf::from("/run/robotsd")]).collect();
    folders.dedup();
    folders
}

/// The name of a server in its runtime folder, by the path of its config alone.
pub(crate) fn instance_name(path: &Path) -> String {
    let path = absolute(path);
    if path == Path::new(USUAL_CONFIG) {
        return "admin".to_owned();
    }
    let hash = hmac_sha256::Hash::hash(path.as_os_str().as_encoded_bytes());
    format!("admin-{}", HEXLOWER.encode(&hash[..4]))
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
    fn a_config_has_one_name_however_its_path_is_written() {
        assert_eq!(instance_name(Path::new(USUAL_CONFIG)), "admin");
        let folder = tempfile::tempdir().expect("a folder");
        let (path, other) = (folder.path().join("a.toml"), folder.path().join("b.toml"));
        assert_eq!(instance_name(&path), instance_name(&folder.path().join(".").join("a.toml")));
        assert_ne!(instance_name(&path), instance_name(&other));
        assert_eq!(instance_name(&path).len(), "admin-01234567".len());
    }
}
