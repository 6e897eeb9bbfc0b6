//! The settings of the admin interface, and the default paths of its socket and its local token.
//!
//! If a config has no `[admin]` table, the socket of the admin interface is in the runtime folder:
//! `$RUNTIME_DIRECTORY` (set by systemd), else `$XDG_RUNTIME_DIR/robotsd`, else `/run/robotsd`. The
//! socket is called `admin.sock` for the default config, and `admin-XXXXXXXX.sock` for any other
//! config. XXXXXXXX is a hash of the path of the config, so two instances with different configs
//! have different sockets.

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
use super::{DEFAULT_CONFIG, Fault, Placed, parsed, tables, words};
use crate::edge::LiveCertificates;
use crate::files;

tables! {
    /// The admin interface. If this table is absent, the interface listens on a socket in the
    /// runtime folder.
    RawAdmin {
        enabled: bool = true,
        address: Option<Spanned<SocketAddr>>,
        socket: Option<Spanned<PathBuf>>,
        hosts: Vec<Spanned<String>>,
        reach: Reach,
        /// File that records each change and who made it. Default: `audit.jsonl` in `state_dir`.
        audit: Option<Spanned<PathBuf>>,
        token: Vec<RawAdminToken>,
        user: Vec<RawAdminUser>,
        listener: Vec<RawAdminListener>,
    }

    /// An additional address of the admin interface.
    RawAdminListener {
        address: Spanned<SocketAddr>,
        /// Default: `read` if other machines can reach the address; else `token` if the config has
        /// tokens, and `token-for-changes` if it has none.
        access: Option<Spanned<AdminAccess>>,
        certificate: Vec<RawCertificate>,
        /// File with certificate authorities. Only clients with a certificate from one of them may
        /// connect.
        client_ca: Option<Spanned<PathBuf>>,
        /// Addresses that the proxy connects from. Only for `access = "proxy"`.
        from: Vec<Spanned<String>>,
        /// Header field with the name of the proxy's user. Only for `access = "proxy"`.
        user_header: Option<Spanned<String>>,
    }
}

words! {
    /// The machines that may reach the admin address.
    Reach {
        /// Only this machine.
        #[default]
        Loopback = "loopback",
        /// Every machine that can reach the address over the network.
        Network = "network",
    }

    /// What clients of an admin listener may do, and how they authenticate.
    AdminAccess {
        /// Anyone may read; changes are refused.
        #[default]
        Read = "read",
        /// Anyone may read and change everything. A client that sends a token has the permissions
        /// of that token instead.
        Full = "full",
        /// Anyone may read; changes require a token.
        TokenForChanges = "token-for-changes",
        /// Everything except probes requires a token.
        Token = "token",
        /// A proxy authenticates the users, and sends the name of each user in a header field.
        Proxy = "proxy",
    }
}

impl RawAdmin {
    pub(super) fn addresses(&self) -> impl Iterator<Item = &Spanned<SocketAddr>> {
        self.address.iter().chain(self.listener.iter().map(|listener| &listener.address))
    }
}

pub(super) const PORT: u16 = 9145;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AdminSettings {
    pub(crate) address: Option<SocketAddr>,
    pub(crate) socket: Option<PathBuf>,
    /// Values accepted in `Host` in addition to `localhost` and addresses, in lower case.
    pub(crate) hosts: Vec<String>,
    /// Whether the config sets neither an address nor a socket, so `socket` is the default socket.
    /// If the default socket cannot be opened, robotsd serves without it.
    pub(crate) is_default_socket: bool,
    pub(crate) listeners: Vec<AdminListenerConfig>,
    pub(crate) rights: Arc<AdminRights>,
    pub(crate) audit: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AdminListenerConfig {
    pub(crate) address: SocketAddr,
    /// `None` if the config does not set `access`. Without `access`, the tokens in the config
    /// determine the access: see [`AdminListenerConfig::access`].
    pub(crate) access: Option<AdminAccess>,
    pub(crate) certificates: Option<LiveCertificates>,
    pub(crate) proxy: Option<AdminProxy>,
}

/// The proxy in front of an admin listener, which authenticates users and sends their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AdminProxy {
    pub(crate) from: Vec<Network>,
    pub(crate) user_header: HeaderName,
}

impl AdminListenerConfig {
    /// Returns the access that this listener grants. If the config does not set `access`, the
    /// result depends on whether the config has tokens, so it may change after a reload.
    pub(crate) fn access(&self, rights: &AdminRights) -> AdminAccess {
        match self.access {
            Some(access) => access,
            None if rights.asks_for_token => AdminAccess::Token,
            // Additional listeners that other machines can reach always have `access`, so this is
            // the address of `[admin]`. Such an address requires `reach = "network"`, which permits
            // everything.
            None if is_open(self.address) => AdminAccess::Full,
            None => AdminAccess::TokenForChanges,
        }
    }

    /// Reports whether this listener would treat a connection from this process as a connection
    /// from the configured proxy.
    pub(super) fn trusts_itself(&self) -> bool {
        let asks_clients = self.certificates.as_ref().is_some_and(LiveCertificates::require_client_certificates);
        let own: [IpAddr; 3] = [self.address.ip(), Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        let mut networks = self.proxy.iter().flat_map(|proxy| &proxy.from);
        !asks_clients && networks.any(|network| own.iter().any(|own| network.contains(*own)))
    }

    /// Reports whether changes over this listener require the local token. The result is valid only
    /// if the config has no tokens.
    fn takes_local_token(&self) -> bool {
        self.access(&AdminRights::default()) == AdminAccess::TokenForChanges
    }

    /// Describes how clients can make changes through this listener.
    fn describe_changes(&self, rights: &AdminRights) -> String {
        let address = self.address;
        match (self.access(rights), rights.local_token().map(|local| local.file.display())) {
            (AdminAccess::Full, _) => format!("through {address}, by anyone who can connect, without a token"),
            (AdminAccess::Read, _) => format!("not through {address}, which is read-only"),
            (AdminAccess::Proxy, _) => format!("through {address}, by an [[admin.user]] whose name the proxy sends"),
            (AdminAccess::TokenForChanges | AdminAccess::Token, Some(file)) => {
                format!("through {address} with the token in {file}")
            }
            (AdminAccess::TokenForChanges | AdminAccess::Token, None) => {
                format!("through {address} with an [[admin.token]]")
            }
        }
    }
}

impl AdminSettings {
    /// Returns the settings for a config without `[admin]`; `None` if there is no runtime folder
    /// for the socket.
    pub(crate) fn usual(path: &Path) -> Option<Self> {
        default_socket(path).map(Self::with_default_socket)
    }

    /// Adds the default socket if the settings have neither an address nor a socket, so that
    /// commands can connect. If there is no runtime folder, adds the default address instead.
    pub(super) fn with_default_place(self, path: &Path) -> Self {
        if !self.has_no_place() {
            return self;
        }
        match Self::usual(path) {
            Some(Self { socket, is_default_socket, .. }) => Self { socket, is_default_socket, ..self },
            None => Self { address: Some(Self::default_address()), ..self },
        }
    }

    const fn has_no_place(&self) -> bool {
        self.address.is_none() && self.socket.is_none()
    }

    fn with_default_socket(socket: PathBuf) -> Self {
        Self { socket: Some(socket), is_default_socket: true, ..Self::default() }
    }

    /// Returns a listener for the address of `[admin]`, which commands connect to; `None` if there
    /// is no such address.
    pub(crate) fn command_listener(&self) -> Option<AdminListenerConfig> {
        self.address.map(|address| AdminListenerConfig { address, access: None, certificates: None, proxy: None })
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.all_listeners().map(|listener| listener.address)
    }

    pub(crate) fn all_listeners(&self) -> impl Iterator<Item = AdminListenerConfig> {
        self.command_listener().into_iter().chain(self.listeners.iter().cloned())
    }

    /// Returns the local token if a listener accepts one. The token's file is the first of `files`;
    /// this function does not read it.
    pub(crate) fn local_token(&self, files: &[PathBuf]) -> Option<LocalToken> {
        let is_taken = self.all_listeners().any(|listener| listener.takes_local_token());
        let file = files.first().filter(|_| is_taken)?;
        Some(LocalToken::missing(file.clone(), "robotsd is starting, so try again"))
    }

    pub(crate) fn ways_to_change(&self, token_files: &[PathBuf]) -> Vec<String> {
        let rights = self.rights.with_local(self.local_token(token_files));
        let socket = self.socket.as_ref().map(|socket| format!("through the socket {}", socket.display()));
        socket.into_iter().chain(self.all_listeners().map(|listener| listener.describe_changes(&rights))).collect()
    }

    pub(crate) fn default_address() -> SocketAddr {
        (Ipv4Addr::LOCALHOST, PORT).into()
    }
}

fn resolve(admin: &RawAdmin, folder: &Path) -> Result<Option<AdminSettings>, Fault> {
    if !admin.enabled {
        return Ok(None);
    }
    let socket = admin.socket.as_ref().map(|socket| folder.join(socket.get_ref()));
    let address = match &admin.address {
        Some(address) => {
            if is_open(*address.get_ref()) && admin.reach == Reach::Loopback {
                let message = format!(
                    "other machines can reach {address}, so they could change what robotsd serves: write a loopback \
                     address such as \"127.0.0.1:{PORT}\", or reach = \"network\" if other machines are meant to use \
                     the admin interface",
                    address = address.get_ref()
                );
                return Err(address.fault(message));
            }
            Some(*address.get_ref())
        }
        None if socket.is_some() || !admin.listener.is_empty() => None,
        None => Some(AdminSettings::default_address()),
    };
    let mut hosts = Vec::new();
    for host in &admin.hosts {
        let name = host.get_ref().to_ascii_lowercase();
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'));
        if name.is_empty() || !is_name {
            let message =
                format!("{host:?} is not a host name: write one such as \"admin.internal\"", host = host.get_ref());
            return Err(host.fault(message));
        }
        hosts.push(name);
    }
    let rights = Arc::new(admin_rights::resolve(&admin.token, &admin.user)?);
    if let Some(open) =
        admin.address.as_ref().filter(|address| is_open(*address.get_ref()) && !rights.tokens.is_empty())
    {
        return Err(open.fault(unencrypted_message(*open.get_ref())));
    }
    let listeners = admin.listener.iter().map(resolve_listener).collect::<Result<_, _>>()?;
    let audit = admin.audit.as_ref().map(|audit| folder.join(audit.get_ref()));
    Ok(Some(AdminSettings { address, socket, hosts, is_default_socket: false, listeners, rights, audit }))
}

pub(crate) fn is_open(address: SocketAddr) -> bool {
    !address.ip().to_canonical().is_loopback()
}

fn unencrypted_message(address: SocketAddr) -> String {
    format!(
        "other machines can reach {address} without TLS, so tokens would be sent unencrypted: write an \
         [[admin.listener]] with an [[admin.listener.certificate]], or a loopback address"
    )
}

/// Resolves a listener of `[[admin.listener]]`. A listener that other machines can reach is
/// read-only unless configured otherwise.
fn resolve_listener(listener: &RawAdminListener) -> Result<AdminListenerConfig, Fault> {
    let address = *listener.address.get_ref();
    let usual = is_open(address).then_some(AdminAccess::Read);
    let access = listener.access.as_ref().map(|access| *access.get_ref()).or(usual);
    let written = listener.access.as_ref().map_or_else(|| listener.address.span(), Spanned::span);
    let takes_token = matches!(access, Some(AdminAccess::Token | AdminAccess::TokenForChanges));
    if takes_token && is_open(address) && listener.certificate.is_empty() {
        return Err(Fault::new(written, unencrypted_message(address)));
    }
    let proxy = match (access, &*listener.from, &listener.user_header) {
        (Some(AdminAccess::Proxy), [_, ..], Some(header)) => {
            let from = listener.from.iter().map(parsed).collect::<Result<_, _>>()?;
            Some(AdminProxy { from, user_header: parsed(header)? })
        }
        (Some(AdminAccess::Proxy), ..) => {
            let message = "access = \"proxy\" requires \"from\" (the addresses of the proxy, such as [\"10.0.0.5\"]) \
                and \"user_header\" (the header field with the user name, such as \"X-Forwarded-User\")";
            return Err(Fault::new(written, message));
        }
        (_, [], None) => None,
        (_, [first, ..], _) => return Err(first.fault(FOR_PROXIES)),
        (_, _, Some(header)) => return Err(header.fault(FOR_PROXIES)),
    };
    match &listener.client_ca {
        Some(file) if listener.certificate.is_empty() => {
            Err(file.fault("\"client_ca\" has an effect only with TLS: write an [[admin.listener.certificate]], too"))
        }
        _ => Ok(AdminListenerConfig { address, access, certificates: None, proxy }),
    }
}

const FOR_PROXIES: &str = "\"from\" and \"user_header\" require access = \"proxy\"";

/// Resolves `[admin]`, and reads the certificates of its listeners. Returns `None` if the admin
/// interface is disabled.
pub(super) fn resolve_with_certificates(admin: &RawAdmin, folder: &Path) -> Result<Option<AdminSettings>, Fault> {
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

fn default_socket(path: &Path) -> Option<PathBuf> {
    runtime_folders().into_iter().next().map(|folder| folder.join(format!("{}.sock", instance_name(path))))
}

/// Returns the paths where the local token may be saved: in the state directory, which is
/// preferred, and in the runtime folder.
pub(crate) fn local_token_files(path: &Path, state: Option<&Path>) -> Vec<PathBuf> {
    let of_state = state.map(|folder| folder.join("admin.token"));
    let of_runtime = runtime_folders().into_iter().next();
    let of_runtime = of_runtime.map(|folder| folder.join(format!("{}.token", instance_name(path))));
    // The paths are absolute, because commands may run in another folder.
    let from_root = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    of_state.into_iter().chain(of_runtime).map(from_root).collect()
}

/// Returns the temporary path of a new socket. The path has the same length in every process, so
/// `config check` can detect a path that is too long for a socket.
pub(crate) fn staging_socket(socket: &Path) -> PathBuf {
    socket.with_extension(format!("{:07}.new", std::process::id())).join("s")
}

/// Connects to a socket without waiting, to find out whether a process listens on it. A blocking
/// call would hang if the process were stopped and its accept queue were full.
pub(crate) fn connect_now(socket: &Path) -> std::io::Result<()> {
    let stream = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
    stream.set_nonblocking(true)?;
    match stream.connect(&socket2::SockAddr::unix(socket)?) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(()),
        connected => connected,
    }
}

/// Returns the folders that may be the runtime folder of a server. Servers use the first folder.
pub(crate) fn runtime_folders() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| value.starts_with('/'));
    // If there are several folders, systemd separates them with colons.
    let systemd = variable("RUNTIME_DIRECTORY").and_then(|folders| folders.split(':').next().map(PathBuf::from));
    // `su` keeps `XDG_RUNTIME_DIR`, so the folder may belong to another user. Commands of root must
    // not read the files of another user.
    let is_own = |folder: &String| {
        std::fs::metadata(folder).is_ok_and(|found| found.uid() == rustix::process::geteuid().as_raw())
    };
    let session = variable("XDG_RUNTIME_DIR").filter(is_own).map(|folder| Path::new(&folder).join("robotsd"));
    let mut folders: Vec<_> = systemd.into_iter().chain(session).chain([PathBuf::from("/run/robotsd")]).collect();
    folders.dedup();
    folders
}

/// Returns the name, without extension, of a server's files in the runtime folder. The name is
/// derived from the path of the server's config.
pub(crate) fn instance_name(path: &Path) -> String {
    let path = absolute(path);
    if path == Path::new(DEFAULT_CONFIG) {
        return "admin".to_owned();
    }
    let hash = hmac_sha256::Hash::hash(path.as_os_str().as_encoded_bytes());
    format!("admin-{}", HEXLOWER.encode(&hash[..4]))
}

/// Returns the absolute path, with symbolic links in its folder resolved. If the file itself is a
/// link, the link is not resolved, because it may be changed later.
fn absolute(path: &Path) -> PathBuf {
    match (files::folder_of(path).canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) if path != Path::new(DEFAULT_CONFIG) => folder.join(name),
        _ => path.to_path_buf(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_has_the_same_instance_name_for_every_spelling_of_its_path() {
        assert_eq!(instance_name(Path::new(DEFAULT_CONFIG)), "admin");
        let folder = tempfile::tempdir().expect("a folder");
        let (path, other) = (folder.path().join("a.toml"), folder.path().join("b.toml"));
        assert_eq!(instance_name(&path), instance_name(&folder.path().join(".").join("a.toml")));
        assert_ne!(instance_name(&path), instance_name(&other));
        assert_eq!(instance_name(&path).len(), "admin-01234567".len());
    }
}
