//! The addresses of a name, and their class.

use std::io;
use std::net::{IpAddr, SocketAddr};

use crate::identity::AddressClass;

/// The system's resolver; a test can replace it, because it has only the loopback.
#[derive(Clone, Debug, Default)]
pub(super) struct Resolver {
    #[cfg(test)]
    pub(super) played: Option<std::sync::Arc<Played>>,
}

/// The addresses of a host, with a port.
#[cfg(test)]
type Resolve = dyn Fn(&str, u16) -> Vec<SocketAddr> + Send + Sync;

/// A network for a test.
#[cfg(test)]
pub(super) struct Played {
    pub(super) resolve: Box<Resolve>,
    pub(super) class: Box<dyn Fn(IpAddr) -> AddressClass + Send + Sync>,
}

impl Resolver {
    pub(super) async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        #[cfg(test)]
        if let Some(played) = &self.played {
            return Ok((played.resolve)(host, port));
        }
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }

    pub(super) fn class(&self, address: IpAddr) -> AddressClass {
        #[cfg(test)]
        if let Some(played) = &self.played {
            return (played.class)(address);
        }
        AddressClass::of(address)
    }
}

#[cfg(test)]
impl std::fmt::Debug for Played {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Played").finish_non_exhaustive()
    }
}
