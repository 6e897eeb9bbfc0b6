//! Upstreams whose responses a test specifies.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::client::{PATIENCE, chunks, head};

/// A request as the upstream received it.
pub(crate) struct Asked {
    pub(crate) head: Vec<u8>,
    /// The body, read by its `Content-Length` or its chunks.
    pub(crate) body: Vec<u8>,
    pub(crate) target: String,
}

/// What a server does after a request.
pub(crate) enum Reply {
    /// Sends these bytes and keeps the connection open. Without bytes, there is no response.
    Bytes(Vec<u8>),
    /// Sends these bytes and closes the connection.
    Last(Vec<u8>),
    /// Sends these bytes and resets the connection.
    Reset(Vec<u8>),
    /// Sends these bytes, and then sends nothing for longer than any client waits.
    Silence(Vec<u8>),
    /// Sends these bytes, and then endlessly sends a space from time to time.
    Drip(Vec<u8>),
    /// Sends these bytes, switches to another protocol, and echoes one line.
    Echo(Vec<u8>),
}

impl From<Vec<u8>> for Reply {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

/// An upstream that serves until the test process ends.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
    shown: Shown,
}

/// Status and text that the upstream currently sends.
type Shown = Arc<Mutex<(u16, String)>>;

impl Asked {
    /// Reads the next request on a connection; `None` if there is none.
    fn read(reader: &mut impl BufRead) -> Option<Self> {
        let head = head(reader);
        let text = head.ends_with(b"\r\n\r\n").then(|| String::from_utf8_lossy(&head).into_owned())?;
        let target = text.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut asked = Self { head, body: Vec::new(), target };
        if asked.field("transfer-encoding").is_some() {
            asked.body = chunks(reader)?;
        } else {
            asked.body.resize(asked.field("content-length").map_or(Some(0), |length| length.parse().ok())?, 0);
            reader.read_exact(&mut asked.body).ok()?;
        }
        Some(asked)
    }

    /// Returns the value of a field, in lower case.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let head = String::from_utf8_lossy(&self.head).to_lowercase();
        head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(|value| value.trim().to_owned())
    }

    pub(crate) fn accepts(&self, coding: &str) -> bool {
        self.field("accept-encoding").is_some_and(|codings| codings.contains(coding))
    }
}

/// Returns a whole response, made from status and reason, fields, and body.
pub(crate) fn response(status: &str, fields: &[&str], body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    let head = format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

pub(crate) fn redirect(status: &str, location: &str) -> Vec<u8> {
    response(status, &[&format!("Location: {location}")], "")
}

pub(crate) fn gzip(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes.as_ref()).unwrap();
    encoder.finish().unwrap()
}

/// Formats the address for use in a URL.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

impl Origin {
    /// Creates an upstream that responds with 200. The body is the head of the request.
    pub(crate) fn start() -> Self {
        Self::answering(|asked| response("200 OK", &[], &asked.head))
    }

    /// Creates an upstream that serves documents by path, and records the heads of requests.
    pub(crate) fn of<B: Into<Arc<[u8]>>>(documents: impl IntoIterator<Item = (impl Into<String>, B)>) -> Self {
        let documents: HashMap<String, Arc<[u8]>> =
            documents.into_iter().map(|(path, body)| (path.into(), body.into())).collect();
        Self::answering(move |asked| match documents.get(&asked.target) {
            Some(body) => response("200 OK", &[], body),
            None => response("404 Not Found", &[], ""),
        })
    }

    /// Creates an upstream that responds to every request with this status and text, until a test
    /// changes them. With status 0, it does not respond.
    pub(crate) fn showing(status: u16, text: &str) -> Self {
        Self::with_shown(TcpListener::bind("127.0.0.1:0").unwrap(), None, (status, text), |shown, _| shown)
    }

    pub(crate) fn showing_over_tls(tls: ServerConfig, status: u16, text: &str) -> Self {
        Self::with_shown(TcpListener::bind("127.0.0.1:0").unwrap(), Some(tls), (status, text), |shown, _| shown)
    }

    /// Creates an upstream that serves this robots.txt with this status, and responds to all other
    /// requests with 200.
    pub(crate) fn publishing(status: u16, robots: &str) -> Self {
        Self::publishing_on(TcpListener::bind("127.0.0.1:0").unwrap(), status, robots)
    }

    pub(crate) fn publishing_on(listener: TcpListener, status: u16, robots: &str) -> Self {
        Self::with_shown(listener, None, (status, robots), |shown, asked| {
            if asked.head.starts_with(b"GET /robots.txt ") { shown } else { (200, "hello".to_owned()) }
        })
    }

    fn with_shown(
        listener: TcpListener,
        tls: Option<ServerConfig>,
        shown: (u16, &str),
        said: fn((u16, String), &Asked) -> (u16, String),
    ) -> Self {
        let shown = Arc::new(Mutex::new((shown.0, shown.1.to_owned())));
        let now = shown.clone();
        let answer = move |asked: &Asked| match said(now.lock().unwrap().clone(), asked) {
            (0, _) => Vec::new(),
            (status, text) => response(&format!("{status} Said"), &[], text),
        };
        Self { shown, ..Self::on(listener, tls, answer) }
    }

    pub(crate) fn show(&self, status: u16, text: &str) {
        *self.shown.lock().unwrap() = (status, text.to_owned());
    }

    pub(crate) fn answering<R: Into<Reply>>(reply: impl Fn(&Asked) -> R + Send + Sync + 'static) -> Self {
        Self::at("127.0.0.1:0", reply)
    }

    pub(crate) fn at<R: Into<Reply>>(address: &str, reply: impl Fn(&Asked) -> R + Send + Sync + 'static) -> Self {
        Self::on(TcpListener::bind(address).unwrap(), None, reply)
    }

    pub(crate) fn over_tls<R: Into<Reply>>(
        tls: ServerConfig,
        reply: impl Fn(&Asked) -> R + Send + Sync + 'static,
    ) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap(), Some(tls), reply)
    }

    fn on<R: Into<Reply>>(
        listener: TcpListener,
        tls: Option<ServerConfig>,
        reply: impl Fn(&Asked) -> R + Send + Sync + 'static,
    ) -> Self {
        let origin = Self { address: listener.local_addr().unwrap(), ..Self::down() };
        let (script, tls) = (origin.script(reply), tls.map(Arc::new));
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let (script, raw) = (script.clone(), socket.try_clone().unwrap());
                let connection = tls.clone().map(|tls| ServerConnection::new(tls).unwrap());
                std::thread::spawn(move || match connection {
                    None => script.serve(socket, Some(&raw)),
                    Some(connection) => script.serve(StreamOwned::new(connection, socket), Some(&raw)),
                });
            }
        });
        origin
    }

    pub(crate) fn on_socket<R: Into<Reply>>(
        path: &std::path::Path,
        reply: impl Fn(&Asked) -> R + Send + Sync + 'static,
    ) -> Self {
        let listener = std::os::unix::net::UnixListener::bind(path).unwrap();
        let origin = Self::down();
        let script = origin.script(reply);
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let script = script.clone();
                std::thread::spawn(move || script.serve(socket, None));
            }
        });
        origin
    }

    fn script<R: Into<Reply>>(&self, reply: impl Fn(&Asked) -> R + Send + Sync + 'static) -> Script {
        let reply = Arc::new(move |asked: &Asked| reply(asked).into());
        Script { reply, connections: self.connections.clone(), requests: self.requests.clone() }
    }

    /// Returns an upstream at whose address no server listens.
    pub(crate) fn down() -> Self {
        Self { address: free(), connections: Arc::default(), requests: Arc::default(), shown: Arc::default() }
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Returns the heads and bodies of the requests so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// What an upstream does on each connection, and what it records.
#[derive(Clone)]
struct Script {
    reply: Arc<dyn Fn(&Asked) -> Reply + Send + Sync>,
    connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Script {
    fn serve(&self, stream: impl Read + Write, raw: Option<&TcpStream>) {
        self.connections.fetch_add(1, Ordering::Relaxed);
        let mut reader = BufReader::new(stream);
        // A TLS client sends its hello first, and then waits.
        if reader.fill_buf().is_ok_and(|bytes| bytes.first() == Some(&0x16)) {
            let _ = reader.get_mut().write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            return;
        }
        while let Some(asked) = Asked::read(&mut reader) {
            let bytes = [&asked.head[..], &asked.body].concat();
            self.requests.lock().unwrap().push(String::from_utf8_lossy(&bytes).into_owned());
            let reply = (self.reply)(&asked);
            let (Reply::Bytes(bytes)
            | Reply::Last(bytes)
            | Reply::Reset(bytes)
            | Reply::Silence(bytes)
            | Reply::Drip(bytes)
            | Reply::Echo(bytes)) = &reply;
            let stream = reader.get_mut();
            // A client that has read enough may close the connection.
            let is_sent = stream.write_all(bytes).and_then(|()| stream.flush()).is_ok();
            match reply {
                Reply::Bytes(_) if is_sent => continue,
                Reply::Bytes(_) => {}
                Reply::Last(_) => drop(raw.map(|raw| raw.shutdown(Shutdown::Write))),
                Reply::Reset(_) => {
                    // Without this delay, the reset could discard bytes that the client has not
                    // received yet.
                    std::thread::sleep(Duration::from_millis(50));
                    let _ = raw.map(|raw| socket2::SockRef::from(raw).set_linger(Some(Duration::ZERO)));
                }
                Reply::Silence(_) => std::thread::sleep(PATIENCE),
                Reply::Drip(_) => {
                    while stream.write_all(b" ").is_ok() {
                        std::thread::sleep(Duration::from_millis(50));
                    }
                }
                Reply::Echo(_) => {
                    let mut line = Vec::new();
                    let _ = reader.read_until(b'\n', &mut line).and_then(|_| reader.get_mut().write_all(&line));
                }
            }
            return;
        }
    }
}

/// Returns a loopback address for a server that starts later. Linux never assigns the port to a
/// socket that is bound to port 0. Until this process ends, a locked file reserves the port, so
/// that no other test gets it.
pub(crate) fn free() -> SocketAddr {
    static RESERVED: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let folder = std::env::temp_dir().join("robotsd-test-ports");
    fs::create_dir_all(&folder).unwrap();
    let mut reserved = RESERVED.lock().unwrap();
    for port in 10_000..30_000 {
        let lock = File::create(folder.join(port.to_string())).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if lock.try_lock().is_ok() && TcpListener::bind(address).is_ok() {
            reserved.push(lock);
            return address;
        }
    }
    panic!("no free port");
}
