//! Servers on loopback that answer in every way that servers do.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::harness::PATIENCE;
pub(super) use crate::harness::response;

/// A request, as far as an answer depends on it.
pub(super) struct Asked {
    pub(super) host: String,
    pub(super) target: String,
    /// The whole head, in lower case.
    head: String,
}

/// What a server does.
pub(super) enum Reply {
    /// Sends these octets and closes.
    Octets(Vec<u8>),
    /// Sends these octets and resets the connection.
    Reset(Vec<u8>),
    /// Sends these octets and then nothing, for longer than any client waits.
    Silence(Vec<u8>),
}

/// A server; it runs for as long as the test process.
pub(super) struct Zoo {
    pub(super) address: SocketAddr,
}

impl Asked {
    pub(super) fn accepts(&self, coding: &str) -> bool {
        self.head.lines().any(|line| line.starts_with("accept-encoding:") && line.contains(coding))
    }

    fn read(stream: &mut dyn Read) -> Option<Self> {
        let mut head = Vec::new();
        let mut octet = [0];
        // A TLS client says hello, and waits.
        while !head.ends_with(b"\r\n\r\n") && head.first() != Some(&0x16) {
            match stream.read(&mut octet) {
                Ok(1) => head.push(octet[0]),
                _ => return None,
            }
        }
        let text = String::from_utf8(head).ok()?;
        let target = text.split(' ').nth(1)?.to_owned();
        let head = text.to_ascii_lowercase();
        let host = head.lines().find_map(|line| line.strip_prefix("host: "))?.to_owned();
        Some(Self { host, target, head })
    }
}

impl Zoo {
    /// A server without TLS at an address of loopback.
    pub(super) fn at(address: &str, reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::serve(address, None, reply)
    }

    pub(super) fn start(reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::at("127.0.0.1:0", reply)
    }

    pub(super) fn tls(config: ServerConfig, reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::serve("127.0.0.1:0", Some(Arc::new(config)), reply)
    }

    fn serve(
        address: &str,
        tls: Option<Arc<ServerConfig>>,
        reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let reply = Arc::new(reply);
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let (reply, tls) = (reply.clone(), tls.clone());
                std::thread::spawn(move || match tls {
                    None => answer(socket, |stream| stream, &*reply),
                    Some(config) => {
                        let connection = ServerConnection::new(config).unwrap();
                        answer(socket, |stream| StreamOwned::new(connection, stream), &*reply);
                    }
                });
            }
        });
        Self { address }
    }

    /// The rule that has a client come here for a host and a port.
    pub(super) fn rule(&self, host: &str, port: u16) -> String {
        format!("{host}:{port}:{}:{}", bracketed(self.address), self.address.port())
    }
}

fn bracketed(address: SocketAddr) -> String {
    if address.is_ipv6() { format!("[{}]", address.ip()) } else { address.ip().to_string() }
}

fn answer<S: Read + Write>(socket: TcpStream, wrap: impl FnOnce(TcpStream) -> S, reply: &dyn Fn(&Asked) -> Reply) {
    let raw = socket.try_clone().unwrap();
    let mut stream = wrap(socket);
    let Some(asked) = Asked::read(&mut stream) else {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        return;
    };
    let reply = reply(&asked);
    let (Reply::Octets(octets) | Reply::Reset(octets) | Reply::Silence(octets)) = &reply;
    // A client that has read enough closes.
    let _ = stream.write_all(octets).and_then(|()| stream.flush());
    match reply {
        Reply::Octets(_) => drop(raw.shutdown(std::net::Shutdown::Write)),
        Reply::Reset(_) => {
            // The client reads what was sent before the reset drops it.
            std::thread::sleep(Duration::from_millis(50));
            let _ = socket2::SockRef::from(&raw).set_linger(Some(Duration::ZERO));
        }
        Reply::Silence(_) => std::thread::sleep(PATIENCE),
    }
}

pub(super) fn redirect(status: &str, location: &str) -> Vec<u8> {
    response(status, &[&format!("Location: {location}")], "")
}

/// Brotli without compression: one stored block for a window of 16 bits, and the empty last one (RFC 7932, section 9).
pub(super) fn brotli(octets: &[u8]) -> Vec<u8> {
    let head = ((u32::try_from(octets.len()).unwrap() - 1) << 4 | 1 << 20).to_le_bytes();
    [&head[..3], octets, &[0x03]].concat()
}

pub(super) fn gzip(octets: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(octets).unwrap();
    encoder.finish().unwrap()
}
