//! The admin interface, and the parts of a config file that commands read on their own.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::Serialize;
use toml::Spanned;
use toml::de::DeValue;

use super::{ConfigError, Fault, Kind, Place, Placed, Reader, Value, admin_socket, reader, salvage, tables, words};

tables! {
    /// The admin interface; on a socket in the runtime folder where the table is absent.
    RawAdmin {
        enabled: bool = true,
        address: Option<Spanned<SocketAddr>>,
        socket: Option<Spanned<PathBuf>>,
        hosts: Vec<Spanned<String>>,
        reach: Reach,
        listener: Vec<RawAdminListener>,
    }

    /// A further address of the admin interface.
    RawAdminListener {
        address: Spanned<SocketAddr>,
        /// Default: `full` on a loopback address, `read` on any other.
        access: Option<AdminAccess>,
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

    /// What a client of an admin listener may do.
    AdminAccess {
        /// Nothing is changed.
        #[default]
        Read = "read",
        /// Versions are accepted and rolled back, enforcement is switched, files are read again.
        Full = "full",
    }
}

/// The default port.
const PORT: u16 = 9145;

/// Where the admin interface listens: an address, a socket, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AdminSettings {
    pub(crate) address: Option<SocketAddr>,
    pub(crate) socket: Option<PathBuf>,
    /// Names accepted in `Host`, besides those of the loopback; in lower case.
    pub(crate) hosts: Vec<String>,
    /// Whether the config has no `[admin]`: serving does without the interface where its socket cannot be opened.
    pub(crate) is_usual: bool,
    /// Further addresses.
    pub(crate) listeners: Vec<AdminListenerConfig>,
}

/// A further address of the admin interface, and what its clients may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AdminListenerConfig {
    pub(crate) address: SocketAddr,
    pub(crate) access: AdminAccess,
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
        let running = || admin_socket::running_with(path);
        let text = match reader::read_text(path) {
            Ok(text) => text,
            Err(error) => {
                return admin_socket::served(path).map(|found| Some(Self::on_usual_socket(found))).ok_or(error);
            }
        };
        let salvaged = salvage::read::<Part>(&text);
        let (Part { admin }, mut faults) = salvaged.unwrap_or_else(|fault| (Part { admin: None }, vec![fault]));
        let folder = path.parent().unwrap_or(Path::new(""));
        let found = match &admin {
            None if faults.is_empty() => return Ok(running().map(Self::on_usual_socket)),
            // The table may be there, and be what cannot be read.
            None => admin_socket::served(path).map(|found| Some(Self::on_usual_socket(found))),
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
        let first = || faults.into_iter().next().unwrap_or_else(|| Fault::new(0..0, "[admin] cannot be read"));
        found.ok_or_else(|| first().at(path, &text))
    }

    /// Where a config has no `[admin]`; none on systems without Unix sockets.
    pub(super) fn usual(path: &Path) -> Option<Self> {
        admin_socket::of_config(path).map(Self::on_usual_socket)
    }

    /// Where `[admin]` names further listeners only, commands ask where they do without the table.
    pub(super) fn on_usual_place(self, path: &Path) -> Self {
        if !self.has_no_place() {
            return self;
        }
        match Self::usual(path) {
            Some(usual) => Self { hosts: self.hosts, listeners: self.listeners, ..usual },
            None => Self { address: Some(Self::usual_address()), ..self },
        }
    }

    const fn has_no_place(&self) -> bool {
        self.address.is_none() && self.socket.is_none()
    }

    /// The sockets of all servers whose configs have no `[admin]`.
    pub(crate) fn usual_sockets() -> Vec<PathBuf> {
        admin_socket::all()
    }

    const fn on_usual_socket(socket: PathBuf) -> Self {
        Self { address: None, socket: Some(socket), hosts: Vec::new(), is_usual: true, listeners: Vec::new() }
    }

    /// The default address.
    pub(crate) fn usual_address() -> SocketAddr {
        (Ipv4Addr::LOCALHOST, PORT).into()
    }
}

/// The state directory and the names of the sites, read alone: the kill switch must work after the config was broken
/// elsewhere.
#[derive(Debug)]
pub(crate) struct StatePlace {
    pub(crate) folder: Option<PathBuf>,
    /// The names of the sites.
    pub(crate) sites: Vec<String>,
}

impl StatePlace {
    pub(crate) fn load(path: &Path) -> Result<Self, ConfigError> {
        tables! {
            Part {
                state_dir: Option<PathBuf>,
                site: Vec<SiteName>,
            }
        }
        let text = reader::read_text(path)?;
        let (Part { state_dir, site }, faults) = salvage::read::<Part>(&text).map_err(|fault| fault.at(path, &text))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let folder = state_dir.map(|state_dir| folder.join(state_dir));
        // It may be there, and be what cannot be read.
        if let (None, Some(fault)) = (&folder, faults.into_iter().next()) {
            return Err(fault.at(path, &text));
        }
        Ok(Self { folder, sites: site.into_iter().map(|site| site.0).collect() })
    }
}

/// The name of a site, whose other keys may be anything.
#[derive(Debug, Serialize)]
struct SiteName(String);

impl Value for SiteName {
    fn kind() -> Kind {
        Kind::Named(Box::new(Kind::Text))
    }

    fn read(reader: &mut Reader<'_>, place: Place<'_>, value: &Spanned<DeValue<'_>>) -> Option<Self> {
        match value.get_ref().get("name") {
            Some(name) => String::read(reader, Place { table: &place.path(), key: "name" }, name).map(Self),
            None => reader.fault(value, "this [[site]] has no name"),
        }
    }
}

/// What a table says; `None` where it turns the interface off.
pub(super) fn resolve(admin: &RawAdmin, folder: &Path) -> Result<Option<AdminSettings>, Fault> {
    if !admin.enabled {
        return Ok(None);
    }
    let socket = admin.socket.as_ref().map(|socket| folder.join(socket.get_ref()));
    let address = match &admin.address {
        Some(address) => {
            let open = !address.get_ref().ip().to_canonical().is_loopback();
            if open && admin.reach == Reach::Loopback {
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
    let listeners = admin.listener.iter().map(further).collect();
    Ok(Some(AdminSettings { address, socket, hosts, is_usual: false, listeners }))
}

/// What other machines can reach changes nothing, unless the config says otherwise.
fn further(listener: &RawAdminListener) -> AdminListenerConfig {
    let address = *listener.address.get_ref();
    let usual = if address.ip().to_canonical().is_loopback() { AdminAccess::Full } else { AdminAccess::Read };
    AdminListenerConfig { address, access: listener.access.unwrap_or(usual) }
}
