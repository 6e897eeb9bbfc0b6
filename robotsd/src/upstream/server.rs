//! One server behind a site: an address, how it does, and how many connections to it are open.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::atomic::AtomicUsize;

use http::uri::Scheme;
use tokio::net::TcpStream;

use super::endpoint::{HttpVersions, ServerAddress};
use super::health::Health;
use super::tls::{TlsClient, Unreachable};
use crate::socket::Socket;

/// A server, as all workers know it.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) address: ServerAddress,
    tls: Option<TlsClient>,
    pub(super) versions: HttpVersions,
    pub(super) health: Health,
    /// Connections to it that are open; [`Permit`](super::connection_limit::Permit) counts them.
    pub(super) open: AtomicUsize,
}

impl Server {
    /// Spoken to in `versions`; without TLS nothing is negotiated.
    pub(super) fn new(address: ServerAddress, tls: Option<TlsClient>, versions: HttpVersions, health: Health) -> Self {
        let versions = match versions {
            HttpVersions::Negotiated if tls.is_none() => HttpVersions::Http1,
            versions => versions,
        };
        Self { address, tls, versions, health, open: AtomicUsize::new(0) }
    }

    pub(super) fn scheme(&self) -> Scheme {
        if self.tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP }
    }

    /// Connects, and shakes hands where that is due, in which `versions` are offered.
    pub(super) async fn connect(&self, versions: HttpVersions) -> Result<Socket, Unreachable> {
        let socket = match &self.address {
            ServerAddress::Tcp(address) => TcpStream::connect(address).await,
            ServerAddress::Loopback(port) => match TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).await {
                Ok(socket) => Ok(socket),
                // Of the two errors the first is the one an operator expects.
                Err(error) => TcpStream::connect((Ipv6Addr::LOCALHOST, *port)).await.map_err(|_| error),
            },
            #[cfg(unix)]
            ServerAddress::Unix(path) => {
                return tokio::net::UnixStream::connect(path).await.map(Socket::Unix).map_err(Unreachable::Connect);
            }
            #[cfg(not(unix))]
            ServerAddress::Unix(_) => Err(std::io::ErrorKind::Unsupported.into()),
        };
        let socket = socket.map_err(Unreachable::Connect)?;
        // Without it, a request with a small body may wait for an acknowledgement.
        socket.set_nodelay(true).map_err(Unreachable::Connect)?;
        match &self.tls {
            None => Ok(Socket::Tcp(socket)),
            Some(tls) => Ok(Socket::Tls(Box::new(tls.connect(socket, versions).await?.into()))),
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}
