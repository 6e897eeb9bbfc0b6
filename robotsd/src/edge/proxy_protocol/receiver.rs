//! Takes the header from an accepted socket, and not an octet more.
//!
//! What is there is looked at before it is read, so that octets after the header stay in the kernel: neither TLS nor the fast path has
//! to know of any that came before. A header in part is a head in part. Until it is whole the connection keeps its slot like any other
//! that has sent nothing or not all, and no permit for a handshake.

use std::future::Future;
use std::io;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::edge::connection_error::{ConnectionErrorKind, ConnectionFailure};
use crate::edge::connection_state::state::ConnectionState;
use crate::edge::limits::EdgeLimits;
use crate::edge::proxy_protocol::header::{self, AnnouncedClient, HeaderProgress, MOST_VERSION_1};

/// Reads the header; none where the connection ended before its first octet, gave its slot to another, or has sent nothing when
/// `stop` completes.
pub(crate) async fn receive(
    socket: &mut TcpStream,
    limits: &EdgeLimits,
    stop: impl Future<Output = ()>,
    connection: &ConnectionState,
) -> Result<Option<AnnouncedClient>, ConnectionFailure> {
    let received = tokio::select! {
        biased;
        received = within_limits(socket, limits, stop, connection) => received,
        () = connection.reclaimed() => Ok(None),
    };
    connection.begin_wait();
    received
}

async fn within_limits(
    socket: &mut TcpStream,
    limits: &EdgeLimits,
    stop: impl Future<Output = ()>,
    connection: &ConnectionState,
) -> Result<Option<AnnouncedClient>, ConnectionFailure> {
    let late = || (ConnectionErrorKind::Slow, "no PROXY header in time".into());
    let mut first = [0];
    let begun = tokio::select! {
        biased;
        begun = socket.peek(&mut first) => begun,
        () = stop => return Ok(None),
        () = sleep(limits.first_byte) => return Err(late()),
    };
    // Health checks connect and leave, some of them with a reset.
    if !matches!(begun, Ok(1..)) {
        return Ok(None);
    }
    connection.octets_read();
    timeout(limits.header_read, take(socket)).await.unwrap_or_else(|_| Err(late())).map(Some)
}

/// Takes a header whose first octet is there.
async fn take(socket: &mut TcpStream) -> Result<AnnouncedClient, ConnectionFailure> {
    let broken = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => cut_off(),
        _ => (ConnectionErrorKind::Broken, error.into()),
    };
    let mut octets = [0; MOST_VERSION_1];
    let mut taken = 0;
    loop {
        let more = socket.peek(&mut octets[taken..]).await.map_err(broken)?;
        if more == 0 {
            return Err(cut_off());
        }
        let seen = taken + more;
        let progress = header::parse(&octets[..seen]);
        let progress = progress.map_err(|error| (ConnectionErrorKind::ProxyHeader, error.into()))?;
        let of_header = match progress {
            HeaderProgress::Partial => seen,
            HeaderProgress::Known { length, .. } => length.min(seen),
        };
        socket.read_exact(&mut octets[taken..of_header]).await.map_err(broken)?;
        taken = of_header;
        if let HeaderProgress::Known { client, length } = progress {
            let mut left = length - taken;
            while left > 0 {
                let some = left.min(octets.len());
                left -= socket.read_exact(&mut octets[..some]).await.map_err(broken)?;
            }
            return Ok(client);
        }
    }
}

fn cut_off() -> ConnectionFailure {
    (ConnectionErrorKind::ProxyHeader, "the connection ended within its PROXY header".into())
}
