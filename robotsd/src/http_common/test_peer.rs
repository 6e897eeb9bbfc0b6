//! Test support: a peer that sends exactly the given bytes, and returns exactly the received bytes.
//!
//! Every wait in this module has a deadline.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::request::Builder;
use http::{Request, Response};
use http_body::Body;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tower::{BoxError, Service, ServiceExt};

use super::{ClientRequest, EdgeService, RequestBody};

/// Maximum time to wait for an event. It suffices even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes any Tower service usable as a service behind the edge.
impl<S, B> EdgeService for S
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Body = B;

    async fn answer(self, mut request: Box<Request<RequestBody>>) -> Response<B> {
        // The service of a test receives the same fields as an upstream.
        if let Some(mut forwarded) = ClientRequest::of(request.extensions()).and_then(|client| client.forwarded.clone())
        {
            forwarded.host = forwarded.host.or_else(|| request.headers().get(http::header::HOST).cloned());
            forwarded.insert(request.headers_mut());
        }
        let Ok(response) = self.oneshot(*request).await;
        response
    }
}

/// Waits for a future that must complete, and panics if this takes too long.
pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("this should have happened long ago")
}

pub(crate) fn listen() -> (TcpListener, SocketAddr) {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
    let listener = socket.listen(1024).expect("a listener");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

/// Returns an address that refuses connections, because its socket is bound but does not listen.
pub(crate) fn refusing() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_reuseaddr(true).expect("a socket");
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
    let address = socket.local_addr().expect("an address");
    (socket, address)
}

/// Listens on a new port and runs a script for each connection. The script gets the number of the
/// connection, from 0. Returns the address of the port.
pub(crate) fn accepting<F>(script: impl Fn(usize, TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output: Send> + Send + 'static,
{
    let (listener, address) = listen();
    tokio::spawn(async move {
        for number in 0.. {
            let Ok((socket, _)) = listener.accept().await else { return };
            let _ = socket.set_nodelay(true);
            tokio::spawn(script(number, socket));
        }
    });
    address
}

/// Returns a value that all parts of a test can share. It is never dropped.
pub(crate) fn shared<T: Default>() -> &'static T {
    Box::leak(Box::default())
}

pub(crate) async fn wait_until(is_so: impl Fn() -> bool) {
    soon(async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    [&[a, b, c, kind, flags][..], &stream.to_be_bytes(), payload].concat()
}

/// Encodes an HTTP/2 field as a literal without indexing (RFC 7541, section 6.2.2).
pub(crate) fn field(name: &str, value: &str) -> Vec<u8> {
    let length = |text: &str| u8::try_from(text.len()).ok().filter(|length| *length < 127).unwrap();
    [&[0, length(name)][..], name.as_bytes(), &[length(value)], value.as_bytes()].concat()
}

#[derive(Debug)]
pub(crate) struct RawFrame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

/// One end of a connection, with the bytes that were read ahead.
pub(crate) struct Raw<S = TcpStream> {
    pub(crate) socket: S,
    buffer: Vec<u8>,
}

impl Raw {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let socket = soon(TcpStream::connect(address)).await.expect("a connection");
        // Without this option, small frames would be delayed until earlier frames are acknowledged.
        let _ = socket.set_nodelay(true);
        Self::new(socket)
    }

    pub(crate) async fn sent(address: SocketAddr, bytes: impl AsRef<[u8]>) -> Self {
        let mut peer = Self::connect(address).await;
        peer.send(bytes).await;
        peer
    }

    /// Opens `count` connections and sends the same bytes on each.
    pub(crate) async fn many(count: usize, address: SocketAddr, bytes: impl AsRef<[u8]>) -> Vec<Self> {
        let mut peers = Vec::new();
        for _ in 0..count {
            peers.push(Self::sent(address, &bytes).await);
        }
        peers
    }

    /// Opens `count` connections and sends the request on each. Panics unless all responses are
    /// 200.
    pub(crate) async fn kept(count: usize, address: SocketAddr, request: &str) -> Vec<Self> {
        let mut peers = Vec::new();
        for _ in 0..count {
            let mut peer = Self::sent(address, request).await;
            assert_eq!(peer.message().await.status(), 200);
            peers.push(peer);
        }
        peers
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Raw<S> {
    pub(crate) fn new(socket: S) -> Self {
        Self { socket, buffer: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        soon(self.socket.write_all(bytes.as_ref())).await.expect("the other side reads");
    }

    /// Sends bytes. Ignores errors, because the other side may close the connection earlier.
    pub(crate) async fn try_send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = soon(self.socket.write_all(bytes.as_ref())).await;
    }

    pub(crate) async fn finish(&mut self) {
        soon(self.socket.shutdown()).await.expect("an open connection");
    }

    pub(crate) async fn ask(&mut self, request: &str) -> RawMessage {
        self.send(request).await;
        self.message().await
    }

    pub(crate) async fn message(&mut self) -> RawMessage {
        let head = self.until(b"\r\n\r\n").await;
        let mut message = RawMessage { head, body: String::new() };
        if message.field("transfer-encoding").is_some() {
            loop {
                let size = self.until(b"\r\n").await;
                let size = usize::from_str_radix(size.trim(), 16).expect("a chunk size");
                if size == 0 {
                    // The loop also skips the trailers.
                    while self.until(b"\r\n").await != "\r\n" {}
                    return message;
                }
                let chunk = self.exactly(size + 2).await;
                message.body.push_str(&chunk[..size]);
            }
        }
        let length = message.field("content-length").map_or(0, |length| length.parse().expect("a length"));
        message.body = self.exactly(length).await;
        message
    }

    pub(crate) async fn until(&mut self, delimiter: &[u8]) -> String {
        match soon(self.up_to(delimiter)).await {
            Some(bytes) => String::from_utf8(bytes).expect("text"),
            None => panic!("closed after {:?}", self.text()),
        }
    }

    /// Reads up to and including a delimiter, without a deadline. Returns `None` if the connection
    /// ends first.
    pub(crate) async fn up_to(&mut self, delimiter: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = memchr::memmem::find(&self.buffer, delimiter) {
                return Some(self.buffer.drain(..at + delimiter.len()).collect());
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// Reads up to and including a delimiter. Returns whether the delimiter was found.
    pub(crate) async fn heard(&mut self, delimiter: &[u8]) -> bool {
        self.up_to(delimiter).await.is_some()
    }

    /// Reads `length` bytes, or fewer bytes if the connection ends early.
    pub(crate) async fn at_most(&mut self, length: usize) -> Vec<u8> {
        while self.buffer.len() < length && self.more().await {}
        self.buffer.drain(..length.min(self.buffer.len())).collect()
    }

    /// Reads the next HTTP/2 frame, or returns `None` if the connection has ended.
    pub(crate) async fn frame(&mut self) -> Option<RawFrame> {
        loop {
            if let Some(([a, b, c, kind, flags, stream @ ..], rest)) = self.buffer.split_first_chunk::<9>() {
                let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
                if let Some(payload) = rest.get(..length).map(<[u8]>::to_vec) {
                    let frame = RawFrame { kind: *kind, flags: *flags, stream: u32::from_be_bytes(*stream), payload };
                    self.buffer.drain(..9 + length);
                    return Some(frame);
                }
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// Reads the next request, which must have no body, and returns its target. Returns `None` if
    /// the connection has ended.
    pub(crate) async fn asked(&mut self) -> Option<String> {
        let head = self.up_to(b"\r\n\r\n").await?;
        String::from_utf8_lossy(&head).split(' ').nth(1).map(str::to_owned)
    }

    /// Sends this many bytes, without a deadline for the whole transfer.
    pub(crate) async fn pour(&mut self, bytes: usize) {
        let some = [b'x'; 16 * 1024];
        let mut left = bytes;
        while left > 0 {
            match self.socket.write(&some[..left.min(some.len())]).await {
                Ok(sent @ 1..) => left -= sent,
                _ => return,
            }
        }
    }

    pub(crate) async fn exactly(&mut self, length: usize) -> String {
        String::from_utf8(self.bytes(length).await).expect("text")
    }

    pub(crate) async fn bytes(&mut self, length: usize) -> Vec<u8> {
        while self.buffer.len() < length {
            assert!(self.fill().await.expect("an open connection") > 0, "closed after {:?}", self.text());
        }
        self.buffer.drain(..length).collect()
    }

    /// Reads and discards bytes until the other side closes or resets the connection.
    pub(crate) async fn drain(&mut self) {
        while matches!(self.fill().await, Ok(1..)) {
            self.buffer.clear();
        }
    }

    /// Waits until bytes have arrived. Later calls return these bytes.
    pub(crate) async fn some(&mut self) {
        assert!(self.fill().await.expect("an open connection") > 0, "closed");
    }

    /// Reads until the other side closes or resets the connection.
    pub(crate) async fn rest(&mut self) -> String {
        while matches!(self.fill().await, Ok(1..)) {}
        self.text()
    }

    /// Reads the next bytes, without a deadline. Returns whether any bytes arrived.
    async fn more(&mut self) -> bool {
        matches!(self.socket.read_buf(&mut self.buffer).await, Ok(1..))
    }

    async fn fill(&mut self) -> io::Result<usize> {
        soon(self.socket.read_buf(&mut self.buffer)).await
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.buffer).into_owned()
    }
}

pub(crate) struct Http2Client {
    pub(crate) sender: SendRequest<Bytes>,
    /// Completes when the connection ends.
    pub(crate) connected: JoinHandle<Result<(), h2::Error>>,
}

impl Http2Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::over(Raw::connect(address).await.socket).await
    }

    pub(crate) async fn over(socket: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        let (sender, connection) = h2::client::handshake(socket).await.unwrap();
        Self { sender, connected: tokio::spawn(connection) }
    }

    pub(crate) async fn begin(&mut self, request: Builder, is_whole: bool) -> (ResponseFuture, SendStream<Bytes>) {
        poll_fn(|cx| self.sender.poll_ready(cx)).await.unwrap();
        self.sender.send_request(request.body(()).unwrap(), is_whole).unwrap()
    }

    pub(crate) async fn ask(&mut self, request: Builder) -> Result<Response<Vec<u8>>, h2::Error> {
        let (response, _) = self.begin(request, true).await;
        let (head, body) = soon(response).await?.into_parts();
        Ok(Response::from_parts(head, bytes(body).await?))
    }
}

pub(crate) async fn bytes(mut body: RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut bytes = Vec::new();
    while let Some(data) = soon(body.data()).await {
        let data = data?;
        let _ = body.flow_control().release_capacity(data.len());
        bytes.extend(data);
    }
    Ok(bytes)
}

/// Percent-encodes the bytes of a target that hyper rejects, without using the code under test.
pub(crate) fn as_escaped(target: &[u8]) -> Vec<u8> {
    let (is_text, mut in_query, mut out) = (std::str::from_utf8(target).is_ok(), false, Vec::new());
    for byte in target {
        in_query |= *byte == b'?';
        let refused = if in_query { &b"<>\""[..] } else { b"<>`" };
        match (refused.contains(byte), byte.is_ascii()) {
            (false, true) => out.push(*byte),
            (false, false) if is_text => out.push(*byte),
            _ => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    out
}

#[derive(Debug)]
pub(crate) struct RawMessage {
    /// The start line and the fields, with all line ends.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl RawMessage {
    pub(crate) fn status(&self) -> u16 {
        self.head[9..12].parse().expect("a status")
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}
