//! The admin interface, and the parts of a config file that commands read on their own.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::error::{ConfigError, Fault};
use super::raw::{self, Reach};

/// The default port.
const PORT: u16 = 9145;

/// Where the admin interface listens: an address, a socket, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AdminSettings {
    pub(crate) address: Option<SocketAddr>,
    pub(crate) socket: Option<PathBuf>,
    /// Names accepted in `Host`, besides those of the loopback; in lower case.
    pub(crate) hosts: Vec<String>,
}

impl AdminSettings {
    /// Reads the table alone: a command must reach a running robotsd after its config was broken elsewhere.
    pub(crate) fn load(path: &Path) -> Result<Option<Self>, ConfigError> {
        #[derive(Deserialize)]
        struct Part {
            admin: Option<raw::RawAdmin>,
        }
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError::unreadable(path, &error))?;
        let Part { admin } = toml::from_str(&text).map_err(|error| ConfigError::syntax(path, &text, &error))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        admin.map(|admin| resolve(&admin, folder)).transpose().map_err(|fault| fault.at(path, &text))
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
        #[derive(Deserialize)]
        struct Part {
            state_dir: Option<PathBuf>,
            #[serde(default)]
            site: Vec<Named>,
        }
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError::unreadable(path, &error))?;
        let Part { state_dir, site } =
            toml::from_str(&text).map_err(|error| ConfigError::syntax(path, &text, &error))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let folder = state_dir.map(|state_dir| folder.join(state_dir));
        Ok(Self { folder, sites: site.into_iter().map(|site| site.name).collect() })
    }
}

pub(super) fn resolve(admin: &raw::RawAdmin, folder: &Path) -> Result<AdminSettings, Fault> {
    let socket = admin.socket.as_ref().map(|socket| folder.join(socket.get_ref()));
    let address = match &admin.address {
        Some(address) => {
            let open = !address.get_ref().0.ip().to_canonical().is_loopback();
            if open && admin.reach == Reach::Loopback {
                let message = format!(
                    "{} can be reached from other machines, and any client of the admin interface can change what is \
                     served: write a loopback address such as \"127.0.0.1:{PORT}\", or reach = \"network\" if that is meant",
                    address.get_ref().0
                );
                return Err(Fault::new(address.span(), message));
            }
            Some(address.get_ref().0)
        }
        None if socket.is_some() => None,
        None => Some(AdminSettings::usual_address()),
    };
    let mut hosts = Vec::new();
    for host in &admin.hosts {
        let name = host.get_ref().to_ascii_lowercase();
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'));
        if name.is_empty() || !is_name {
            let message = format!("{:?} is not a host name: write one such as \"admin.internal\"", host.get_ref());
            return Err(Fault::new(host.span(), message));
        }
        hosts.push(name);
    }
    Ok(AdminSettings { address, socket, hosts })
}
