//! The PROXY protocol, versions 1 and 2: at the start of each connection, the proxy in front sends
//! a header that identifies the client.
//!
//! A listener either requires the header on every connection, or never looks for it. If the header
//! were optional, any client could send a forged header. To prevent forged headers, only trusted
//! proxies may connect to a listener that requires the header.
//!
//! The header is not parsed with the crate `ppp` 2.3, which needs the whole header in one buffer. A
//! version 2 header may contain 64 KiB of extensions, which this parser skips as they arrive. `ppp`
//! also accepts a port with a sign, and rejects content that receivers must ignore according to the
//! specification (the family of `LOCAL`, non-UTF-8 bytes after `UNKNOWN`). Checksums
//! (`PP2_TYPE_CRC32C`) are not verified, because TCP has its own checksum and the sender is
//! trusted.
//!
//! The parser first peeks at the bytes in the socket, and then reads only the header. The bytes
//! after the header stay in the kernel for TLS or the fast path. An incomplete header is treated
//! like an incomplete request head: after a while, the connection may be closed to make room for a
//! new connection. A connection that waits for its header does not count towards the limit of TLS
//! handshakes.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::connection::settings::EdgeLimits;
use super::connection_error::{ConnectionErrorKind, ConnectionFailure};
use super::connection_state::ConnectionState;

/// Maximum size of a version 1 header including its line end, in bytes (`proxy-protocol.txt`,
/// section 2.1).
const MAX_VERSION_1_BYTES: usize = 107;

const VERSION_1: &[u8] = b"PROXY ";

/// First bytes of a version 2 header. No HTTP request and no TLS record begins with these bytes.
const VERSION_2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Size of the fixed part of a version 2 header, in bytes. This part contains the signature,
/// version and command, family and transport, and the length of the payload.
const FIXED: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnnouncedClient {
    Address(SocketAddr),
    /// The proxy itself, which checks the health of the listener (`LOCAL`).
    Proxy,
    /// A client without an IP address (`UNKNOWN` or a Unix socket), or with a protocol other than
    /// TCP.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderProgress {
    /// More bytes of the header must arrive before the client is known.
    Partial,
    /// The client is known. The header has `length` bytes, but extensions at its end may not have
    /// arrived yet.
    Known { client: AnnouncedClient, length: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HeaderError {
    #[error(
        "the connection does not begin with a PROXY header, which proxy_protocol = true requires: configure the proxy in front to send it \
         (send-proxy-v2 in HAProxy, proxy_protocol on in nginx)"
    )]
    Missing,
    #[error("the PROXY header of version 1 does not end within {MAX_VERSION_1_BYTES} bytes")]
    TooLong,
    #[error("the PROXY header of version 1 contains neither UNKNOWN nor two addresses with their ports")]
    Line,
    #[error("the PROXY header has the unsupported version {0}: use 1 or 2")]
    Version(u8),
    #[error("the PROXY header has the unknown command {0}: use 0 (LOCAL) or 1 (PROXY)")]
    Command(u8),
    #[error("the PROXY header has the unknown address family and transport 0x{0:02x}")]
    Family(u8),
    #[error("the PROXY header declares {0} bytes, which are too few for its addresses")]
    Length(u16),
}

/// Parses a header. `bytes` are all bytes received since the start of the connection.
pub(crate) fn parse(bytes: &[u8]) -> Result<HeaderProgress, HeaderError> {
    let begins = |signature: &[u8]| {
        let common = bytes.len().min(signature.len());
        bytes[..common] == signature[..common]
    };
    if begins(VERSION_2) {
        version_2(bytes)
    } else if begins(VERSION_1) {
        version_1(bytes)
    } else {
        Err(HeaderError::Missing)
    }
}

fn version_1(bytes: &[u8]) -> Result<HeaderProgress, HeaderError> {
    let most = &bytes[..bytes.len().min(MAX_VERSION_1_BYTES)];
    let Some(end) = memchr::memmem::find(most, b"\r\n") else {
        return if bytes.len() < MAX_VERSION_1_BYTES { Ok(HeaderProgress::Partial) } else { Err(HeaderError::TooLong) };
    };
    let line = most.get(VERSION_1.len()..end).ok_or(HeaderError::Line)?;
    let client = match line.strip_prefix(b"UNKNOWN") {
        // The specification requires receivers to ignore the rest of the line after `UNKNOWN`.
        Some([] | [b' ', ..]) => AnnouncedClient::Unknown,
        _ => std::str::from_utf8(line).ok().and_then(tcp).map(AnnouncedClient::Address).ok_or(HeaderError::Line)?,
    };
    Ok(HeaderProgress::Known { client, length: end + 2 })
}

/// Parses a version 1 line after the word `PROXY`, and returns the client's address. The line
/// contains the family, both addresses, and both ports.
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
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if is_plain { text.parse().ok() } else { None }
}

fn version_2(bytes: &[u8]) -> Result<HeaderProgress, HeaderError> {
    let Some((head, block)) = bytes.split_first_chunk::<FIXED>() else { return Ok(HeaderProgress::Partial) };
    let [.., version_and_command, family_and_transport, high, low] = *head;
    let given = u16::from_be_bytes([high, low]);
    let known = |client| Ok(HeaderProgress::Known { client, length: FIXED + usize::from(given) });
    match (version_and_command >> 4, version_and_command & 0xf) {
        // The specification requires receivers to ignore the address family of a `LOCAL` header.
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
        // The payload contains the source address, the destination address, the source port and the
        // destination port.
        (0x11, &[a, b, c, d, _, _, _, _, high, low, ..]) => {
            (Ipv4Addr::new(a, b, c, d).into(), u16::from_be_bytes([high, low]))
        }
        (0x21, block) if let (Some(source), Some(port)) = (block.first_chunk::<16>(), block.get(32..34)) => {
            (Ipv6Addr::from(*source).into(), port.iter().fold(0, |port, byte| port << 8 | u16::from(*byte)))
        }
        (0x11 | 0x21, _) => return Ok(HeaderProgress::Partial),
        _ => return known(AnnouncedClient::Unknown),
    };
    known(AnnouncedClient::Address(SocketAddr::new(source, port)))
}

/// Reads the header. Returns `None` if the connection ends before the first byte of its header, or
/// if no byte has arrived when `stop` completes.
pub(crate) async fn receive(
    socket: &mut TcpStream,
    limits: &EdgeLimits,
    stop: impl Future<Output = ()>,
    connection: &ConnectionState,
) -> Result<Option<AnnouncedClient>, ConnectionFailure> {
    let late = || (ConnectionErrorKind::Slow, "the PROXY header did not arrive in time".into());
    let mut first = [0];
    let begun = tokio::select! {
        biased;
        begun = socket.peek(&mut first) => begun,
        () = stop => return Ok(None),
        () = sleep(limits.first_byte) => return Err(late()),
    };
    // Some health checks connect and immediately disconnect, or reset the connection.
    if !matches!(begun, Ok(1..)) {
        return Ok(None);
    }
    connection.bytes_read();
    timeout(limits.header_read, receive_rest(socket)).await.unwrap_or_else(|_| Err(late())).map(Some)
}

/// Reads the rest of a header after its first byte has arrived. Does not read any byte after the
/// header.
async fn receive_rest(socket: &mut TcpStream) -> Result<AnnouncedClient, ConnectionFailure> {
    let broken = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => incomplete_header(),
        _ => (ConnectionErrorKind::Broken, error.into()),
    };
    let mut bytes = [0; MAX_VERSION_1_BYTES];
    let mut taken = 0;
    loop {
        let more = socket.peek(&mut bytes[taken..]).await.map_err(broken)?;
        if more == 0 {
            return Err(incomplete_header());
        }
        let seen = taken + more;
        let progress = parse(&bytes[..seen]);
        let progress = progress.map_err(|error| (ConnectionErrorKind::ProxyHeader, error.into()))?;
        let of_header = match progress {
            HeaderProgress::Partial => seen,
            HeaderProgress::Known { length, .. } => length.min(seen),
        };
        socket.read_exact(&mut bytes[taken..of_header]).await.map_err(broken)?;
        taken = of_header;
        if let HeaderProgress::Known { client, length } = progress {
            let mut left = length - taken;
            while left > 0 {
                let some = left.min(bytes.len());
                left -= socket.read_exact(&mut bytes[..some]).await.map_err(broken)?;
            }
            return Ok(client);
        }
    }
}

fn incomplete_header() -> ConnectionFailure {
    (ConnectionErrorKind::ProxyHeader, "the connection ended before its PROXY header was complete".into())
}

#[cfg(test)]
mod tests;
