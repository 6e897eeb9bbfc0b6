//! The sockets of a listener: one for every worker.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;

/// As many connections as may wait to be accepted; the kernel's own bound is often lower.
#[cfg(target_os = "linux")]
const BACKLOG: i32 = 4096;

/// Listens on an address with one socket for each worker, so that the kernel spreads connections over them.
///
/// With port 0 all of them get the port the first one got.
#[cfg(target_os = "linux")]
pub(super) fn bind(address: SocketAddr, workers: NonZeroUsize) -> io::Result<Vec<TcpListener>> {
    if workers.get() == 1 {
        return Ok(vec![listen(address, Sharing::Alone)?]);
    }
    // Sockets that share a port would also share it with another process of this user: two proxies started by mistake
    // would each get half of the connections. So the port is first bound alone.
    if address.port() != 0 {
        drop(listen(address, Sharing::Alone)?);
    }
    let first = listen(address, Sharing::Shared)?;
    let address = first.local_addr()?;
    let mut sockets = vec![first];
    for _ in 1..workers.get() {
        sockets.push(listen(address, Sharing::Shared)?);
    }
    Ok(sockets)
}

/// Listens on an address with one socket that the workers share: elsewhere the kernel does not spread connections over
/// several.
#[cfg(not(target_os = "linux"))]
pub(super) fn bind(address: SocketAddr, workers: NonZeroUsize) -> io::Result<Vec<TcpListener>> {
    share(TcpListener::bind(address)?, workers)
}

/// Whether an address can be listened on: it is bound, and let go of at once.
pub(super) fn try_bind(address: SocketAddr) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return listen(address, Sharing::Alone).map(drop);
    #[cfg(not(target_os = "linux"))]
    return TcpListener::bind(address).map(drop);
}

/// One socket for all workers, such as one that was passed to the process. Whichever worker is free accepts.
pub(super) fn share(socket: TcpListener, workers: NonZeroUsize) -> io::Result<Vec<TcpListener>> {
    let mut sockets = (1..workers.get()).map(|_| socket.try_clone()).collect::<io::Result<Vec<_>>>()?;
    sockets.push(socket);
    Ok(sockets)
}

#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sharing {
    Alone,
    Shared,
}

#[cfg(target_os = "linux")]
fn listen(address: SocketAddr, sharing: Sharing) -> io::Result<TcpListener> {
    use socket2::{Domain, Protocol, Socket, Type};
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // Connections of a process before this one may still be closing.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(sharing == Sharing::Shared)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();

    fn any_port() -> SocketAddr {
        ([127, 0, 0, 1], 0).into()
    }

    #[test]
    fn every_worker_gets_a_socket_of_one_address() {
        let sockets = bind(any_port(), TWO).unwrap();
        let addresses: Vec<_> = sockets.iter().map(|socket| socket.local_addr().unwrap()).collect();
        assert_eq!(addresses.len(), 2);
        assert_eq!(addresses[0], addresses[1]);
    }

    #[test]
    fn a_port_is_not_shared_with_another_process() {
        let sockets = bind(any_port(), TWO).unwrap();
        let address = sockets[0].local_addr().unwrap();
        for workers in [NonZeroUsize::MIN, TWO] {
            assert_eq!(bind(address, workers).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        }
        drop(sockets);
        bind(address, TWO).unwrap();
    }

    #[test]
    fn a_shared_socket_accepts_on_either_side() {
        let sockets = share(TcpListener::bind(any_port()).unwrap(), TWO).unwrap();
        for socket in &sockets {
            let client = std::net::TcpStream::connect(sockets[0].local_addr().unwrap()).unwrap();
            let (_, peer) = socket.accept().unwrap();
            assert_eq!(peer, client.local_addr().unwrap());
        }
    }
}
