//! The PROXY protocol, versions 1 and 2: a header at the start of a connection that names the
//! client of the proxy in front.
//!
//! A listener either requires the header on every connection or never looks for it. If the header
//! were optional, any client could write one. For the same reason only trusted proxies may connect
//! to a listener that requires it.
//!
//! The header is parsed here rather than with `ppp` 2.3, which needs the whole header in one
//! buffer. Version 2 may have 64 KiB of extensions, which are skipped here as they arrive. `ppp`
//! also rejects what the specification ignores (the family of `LOCAL`, non-UTF-8 text after
//! `UNKNOWN`), and accepts a port with a sign. Checksums (`PP2_TYPE_CRC32C`) are skipped: TCP has
//! one already, and the sender is trusted.
//!
//! The header is taken from an accepted socket, and not a byte more. Bytes are peeked at before
//! they are read, so that those after the header stay in the kernel: neither TLS nor the fast path
//! has to deal with bytes read earlier. An incomplete header counts as an incomplete request head.
//! Until the header is complete, the connection keeps its slot under the same conditions as any
//! other that has sent nothing or a part of a head; it holds no permit for a handshake.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::connection::settings::EdgeLimits;
use super::connection_error::{ConnectionErrorKind, ConnectionFailure};
use super::connection_state::ConnectionState;

/// Maximum size of a version 1 header, in bytes, including its line end (`proxy-protocol.txt`,
/// section 2.1).
const MAX_VERSION_1_BYTES: usize = 107;

/// First bytes of a version 1 header.
const VERSION_1: &[u8] = b"PROXY ";

/// First bytes of a version 2 header. No request and no TLS record begins like this.
const VERSION_2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Size of the fixed part of a version 2 header, in bytes: signature, version and command, family
/// and transport, and the length of the rest.
const FIXED: usize = 16;

/// The client of a connection, as named by the proxy in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnnouncedClient {
    Address(SocketAddr),
    /// The proxy itself: a health check (`LOCAL`).
    Proxy,
    /// A client without an IP address (`UNKNOWN`, a Unix socket), or a protocol other than TCP.
    Unknown,
}

/// How much of a header has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderProgress {
    /// All bytes belong to the header, and more are missing.
    Partial,
    /// The relevant part is complete. The header is `length` bytes long; extensions at its end may
    /// still be missing.
    Known { client: AnnouncedClient, length: usize },
}

/// The reason why bytes are not a valid header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HeaderError {
    /// The bytes do not begin with a known signature.
    #[error(
        "the connection does not begin with a PROXY header, which proxy_protocol = true requires: have the proxy in front send one \
         (send-proxy-v2 in HAProxy, proxy_protocol on in nginx)"
    )]
    Missing,
    #[error("a PROXY header of version 1 that does not end within {MAX_VERSION_1_BYTES} bytes")]
    TooLong,
    /// A line of version 1 with other content.
    #[error("a PROXY header of version 1 that names neither two addresses and ports nor UNKNOWN")]
    Line,
    #[error("a PROXY header of version {0}: 1 and 2 are known")]
    Version(u8),
    #[error("a PROXY header with the command {0}: 0 and 1 are known")]
    Command(u8),
    /// Address family and transport, in one byte.
    #[error("a PROXY header with the unknown address family and transport 0x{0:02x}")]
    Family(u8),
    /// The length is too small for the addresses of this family.
    #[error("a PROXY header whose addresses do not fit into its {0} bytes")]
    Length(u16),
}

/// Parses a header from all bytes received since the start of the connection.
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
    let most = &octets[..octets.len().min(MAX_VERSION_1_BYTES)];
    let Some(end) = memchr::memmem::find(most, b"\r\n") else {
        return if octets.len() < MAX_VERSION_1_BYTES {
            Ok(HeaderProgress::Partial)
        } else {
            Err(HeaderError::TooLong)
        };
    };
    let line = most.get(VERSION_1.len()..end).ok_or(HeaderError::Line)?;
    let client = match line.strip_prefix(b"UNKNOWN") {
        // The rest of the line is to be ignored.
        Some([] | [b' ', ..]) => AnnouncedClient::Unknown,
        _ => std::str::from_utf8(line).ok().and_then(tcp).map(AnnouncedClient::Address).ok_or(HeaderError::Line)?,
    };
    Ok(HeaderProgress::Known { client, length: end + 2 })
}

/// Parses the client from a line with addresses: both addresses, then both ports.
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

/// Parses a port in decimal, without a sign or leading zeros.
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
        // The family is to be ignored.
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
        // Source and destination addresses, then the port of each.
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

/// Reads the header. `None` if the connection ended before its first byte, or if no byte has
/// arrived when `stop` completes.
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

/// Takes a header whose first byte has arrived.
async fn take(socket: &mut TcpStream) -> Result<AnnouncedClient, ConnectionFailure> {
    let broken = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => cut_off(),
        _ => (ConnectionErrorKind::Broken, error.into()),
    };
    let mut octets = [0; MAX_VERSION_1_BYTES];
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
