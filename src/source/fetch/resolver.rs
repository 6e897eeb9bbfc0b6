//! The addresses of a name, and their class.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::identity::AddressClass;

/// The system's resolver; a test can replace it, because it has only the loopback.
#[derive(Clone, Debug, Default)]
pub(super) struct Resolver {
    elsewhere: Option<Elsewhere>,
    #[cfg(test)]
    played: Option<Arc<Played>>,
}

/// Places to connect to instead of the host and port of a URL, as its user says.
#[derive(Clone)]
struct Elsewhere(Arc<PlaceOf>);

/// The host and port to connect to for a host and a port; `None` for those themselves.
type PlaceOf = dyn Fn(&str, u16) -> Option<(String, u16)> + Send + Sync;

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
    #[cfg(test)]
    pub(super) fn played(played: Played) -> Self {
        Self { played: Some(Arc::new(played)), ..Self::default() }
    }

    pub(super) fn connect_to(&mut self, place: impl Fn(&str, u16) -> Option<(String, u16)> + Send + Sync + 'static) {
        self.elsewhere = Some(Elsewhere(Arc::new(place)));
    }

    /// Where to connect for a host and a port, if its user says so.
    pub(super) fn place_of(&self, host: &str, port: u16) -> Option<(String, u16)> {
        self.elsewhere.as_ref().and_then(|Elsewhere(place)| place(host, port))
    }

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

impl fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elsewhere").finish_non_exhaustive()
    }
}

#[cfg(test)]
impl fmt::Debug for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Played").finish_non_exhaustive()
    }
}
