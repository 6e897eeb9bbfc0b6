//! The PROXY protocol, versions 1 and 2: a header before everything else on a connection, in which the proxy in front says who its
//! client is.
//!
//! A listener requires it on every connection or never looks for it: were it optional, any client could write one. So only trusted
//! proxies may connect where it is required.
//!
//! Read by hand rather than with `ppp` 2.3, which wants all of a header in one buffer: version 2 may have 64 KiB of extensions, which
//! are skipped here as they come. It also refuses what the specification ignores (the family of `LOCAL`, text behind `UNKNOWN` that is
//! not UTF-8), and takes a port with a sign. Checksums (`PP2_TYPE_CRC32C`) are skipped: TCP has one already, and the sender is trusted.
//!
//! The header is taken from an accepted socket, and not an octet more. Octets are looked at before they are read, so
//! that those after the header stay in the kernel: neither TLS nor the fast path has to know of any that came before. A
//! header in part is a head in part. Until it is whole the connection keeps its slot like any other that has sent
//! nothing or not all, and no permit for a handshake.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::connection::settings::EdgeLimits;
use super::connection_error::{ConnectionErrorKind, ConnectionFailure};
use super::connection_state::ConnectionState;

/// The longest header of version 1, its line end included (`proxy-protocol.txt`, section 2.1).
const MOST_VERSION_1: usize = 107;

/// With what a header of version 1 begins.
const VERSION_1: &[u8] = b"PROXY ";

/// With what a header of version 2 begins. No request and no record of TLS begins so.
const VERSION_2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Signature, version and command, family and transport, and the length of what follows.
const FIXED: usize = 16;

/// The client of a connection, as the proxy in front names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnnouncedClient {
    Address(SocketAddr),
    /// The proxy itself: a health check (`LOCAL`).
    Proxy,
    /// Someone without an address of the internet (`UNKNOWN`, a Unix socket, a datagram).
    Unknown,
}

/// How much of a header has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderProgress {
    /// All octets belong to the header, and more of it has to come.
    Partial,
    /// Everything that counts is there. The header has so many octets; extensions at its end may still have to come.
    Known { client: AnnouncedClient, length: usize },
}

/// The fault of octets that are no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HeaderError {
    /// They begin otherwise.
    #[error(
        "the connection does not begin with a PROXY header, which proxy_protocol = true requires: have the proxy in front send one \
         (send-proxy-v2 in HAProxy, proxy_protocol on in nginx)"
    )]
    Missing,
    #[error("a PROXY header of version 1 without an end after {MOST_VERSION_1} octets")]
    TooLong,
    /// A line of version 1 that says something else.
    #[error("a PROXY header of version 1 that names neither two addresses and ports nor UNKNOWN")]
    Line,
    #[error("a PROXY header of version {0}: 1 and 2 are known")]
    Version(u8),
    #[error("a PROXY header with the command {0}: 0 and 1 are known")]
    Command(u8),
    /// Family and transport, in one octet.
    #[error("a PROXY header with the address family and transport 0x{0:02x}")]
    Family(u8),
    /// Too short for the addresses that it says to have.
    #[error("a PROXY header whose addresses do not fit into its {0} octets")]
    Length(u16),
}

/// Looks at all octets since the first one of the connection.
pub(crate) fn parse(octets: &[u8]) -> Result<HeaderProgress, HeaderError> {
    let begins = |signature: &[u8]| {
        let common = octets.len().min(signature.len());
        octets[..common] == signature[..common]
    };
    if begins(VERSION_2) {
        version_2(octets)
    } else if begins(VERSION_1) {
        version_1(octets)
    } else {
        Err(HeaderError::Missing)
    }
}

fn version_1(octets: &[u8]) -> Result<HeaderProgress, HeaderError> {
    let most = &octets[..octets.len().min(MOST_VERSION_1)];
    let Some(end) = memchr::memmem::find(most, b"\r\n") else {
        return if octets.len() < MOST_VERSION_1 { Ok(HeaderProgress::Partial) } else { Err(HeaderError::TooLong) };
    };
    let line = most.get(VERSION_1.len()..end).ok_or(HeaderError::Line)?;
    let client = match line.strip_prefix(b"UNKNOWN") {
        // The rest is to be ignored.
        Some([] | [b' ', ..]) => AnnouncedClient::Unknown,
        _ => std::str::from_utf8(line).ok().and_then(tcp).map(AnnouncedClient::Address).ok_or(HeaderError::Line)?,
    };
    Ok(HeaderProgress::Known { client, length: end + 2 })
}

/// The client of a line that names addresses: both, then both ports.
fn tcp(line: &str) -> Option<SocketAddr> {
    let mut parts = line.split(' ');
    let mut next = || parts.next();
    let (family, source, destination, source_port, destination_port) = (next()?, next()?, next()?, next()?, next()?);
    if next().is_some() {
        return None;
    }
    port(destination_port)?;
    let source = match family {
        "TCP4" => {
            destination.parse::<Ipv4Addr>().ok()?;
            source.parse::<Ipv4Addr>().ok()?.into()
        }
        "TCP6" => {
            destination.parse::<Ipv6Addr>().ok()?;
            source.parse::<Ipv6Addr>().ok()?.into()
        }
        _ => return None,
    };
    Some(SocketAddr::new(source, port(source_port)?))
}

/// A port in decimal, without a sign or leading zeros.
fn port(text: &str) -> Option<u16> {
    let is_plain = text.bytes().all(|octet| octet.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if is_plain { text.parse().ok() } else { None }
}

fn version_2(octets: &[u8]) -> Result<HeaderProgress, HeaderError> {
    let Some((head, block)) = octets.split_first_chunk::<FIXED>() else { return Ok(HeaderProgress::Partial) };
    let [.., version_and_command, family_and_transport, high, low] = *head;
    let given = u16::from_be_bytes([high, low]);
    let known = |client| Ok(HeaderProgress::Known { client, length: FIXED + usize::from(given) });
    match (version_and_command >> 4, version_and_command & 0xf) {
        // The family that it names is to be ignored.
        (2, 0) => return known(AnnouncedClient::Proxy),
        (2, 1) => {}
        (2, command) => return Err(HeaderError::Command(command)),
        (version, _) => return Err(HeaderError::Version(version)),
    }
    let least = match (family_and_transport >> 4, family_and_transport & 0xf) {
        (0, 0..=2) => 0,
        (1, 0..=2) => 12,
        (2, 0..=2) => 36,
        (3, 0..=2) => 216,
        _ => return Err(HeaderError::Family(family_and_transport)),
    };
    if given < least {
        return Err(HeaderError::Length(given));
    }
    let (source, port): (std::net::IpAddr, u16) = match (family_and_transport, block) {
        // Source, destination, and the port of each.
        (0x11, &[a, b, c, d, _, _, _, _, high, low, ..]) => {
            (Ipv4Addr::new(a, b, c, d).into(), u16::from_be_bytes([high, low]))
        }
        (0x21, block) if let (Some(source), Some(port)) = (block.first_chunk::<16>(), block.get(32..34)) => {
            (Ipv6Addr::from(*source).into(), port.iter().fold(0, |port, octet| port << 8 | u16::from(*octet)))
        }
        (0x11 | 0x21, _) => return Ok(HeaderProgress::Partial),
        _ => return known(AnnouncedClient::Unknown),
    };
    known(AnnouncedClient::Address(SocketAddr::new(source, port)))
}

/// Reads the header; none where the connection ended before its first octet, or has sent nothing when `stop` completes.
pub(crate) async fn receive(
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
        let progress = parse(&octets[..seen]);
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

#[cfg(test)]
mod tests;
