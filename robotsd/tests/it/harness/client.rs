//! An HTTP/1 client that sends exactly the bytes that a test specifies.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Maximum time to wait for an expected state. It is long, because the machine may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// An HTTP/1.1 response that was read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Self {
            status: status.unwrap_or_else(|| panic!("no response: {text:?}")),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    /// Reads the next response on a connection, to a request with this method; `None` if the
    /// connection ends first.
    pub(crate) fn read(reader: &mut impl BufRead, method: &str) -> Option<Self> {
        let head = head(reader);
        let answer = head.ends_with(b"\r\n\r\n").then(|| Self::parse(&head))?;
        let mut body = Vec::new();
        if method == "HEAD" || matches!(answer.status, 204 | 304) {
            // This response has no body.
        } else if answer.field("transfer-encoding").is_some() {
            body = chunks(reader)?;
        } else if let Some(length) = answer.field("content-length") {
            body.resize(length.parse().ok()?, 0);
            reader.read_exact(&mut body).ok()?;
        } else {
            reader.read_to_end(&mut body).ok()?;
        }
        Some(Self { body: String::from_utf8_lossy(&body).into_owned(), ..answer })
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        // Some servers do not send a space after the colon.
        let fields = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        fields.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// Reports whether the server closes the connection after this response.
    pub(crate) fn is_last(&self) -> bool {
        self.field("connection") == Some("close")
    }

    #[track_caller]
    pub(crate) fn comes_with(&self, status: u16, body: &str) {
        assert_eq!((self.status, &*self.body), (status, body), "{self:?}");
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Opens a connection with a timeout of [`PATIENCE`].
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    patient(TcpStream::connect(address).expect("a connection"))
}

/// Opens a connection from this address of the machine; `None` if the connection is refused.
pub(crate) fn connect_from(source: [u8; 4], to: SocketAddr) -> Option<TcpStream> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((source, 0)).into()).unwrap();
    socket.connect(&to.into()).ok()?;
    Some(patient(socket.into()))
}

fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Opens a connection, and sends these bytes.
pub(crate) fn sent(address: SocketAddr, bytes: impl AsRef<[u8]>) -> TcpStream {
    let mut stream = connect(address);
    stream.write_all(bytes.as_ref()).expect("an open connection");
    stream
}

/// Returns all bytes until the connection ends.
pub(crate) fn rest(mut stream: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("a connection that is not reset");
    bytes
}

/// Sends a request on a new connection, and returns the response. The request must tell the server
/// to close the connection.
pub(crate) fn exchange(address: SocketAddr, request: impl AsRef<[u8]>) -> Answer {
    Answer::parse(&rest(sent(address, request)))
}

/// Sends a request, and returns the bytes of the response; `None` if there is no response. If the
/// server closes the connection before it has read the whole request, the connection is reset. The
/// bytes received until then are returned.
pub(crate) fn offer(mut stream: impl Read + Write, request: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    stream.write_all(request.as_ref()).ok()?;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer.starts_with(b"HTTP/1.").then_some(answer)
}

/// Sends a request to an admin interface as a program of the operator would, without a token.
pub(crate) fn admin_answer(address: SocketAddr, request: &str) -> Answer {
    admin_answer_with(address, request, "")
}

/// Like [`admin_answer`], with additional fields.
pub(crate) fn admin_answer_with(address: SocketAddr, request: &str, fields: &str) -> Answer {
    exchange(address, format!("{request} HTTP/1.1\r\nHost: {address}\r\nRobotsd-Admin: 1\r\n{fields}\r\n"))
}

/// Returns the bytes up to the end of a head. Returns fewer bytes if the connection ends first.
pub(crate) fn head(reader: &mut impl BufRead) -> Vec<u8> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && reader.read_until(b'\n', &mut head).is_ok_and(|read| read > 0) {}
    head
}

pub(super) fn chunks(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut size = String::new();
        reader.read_line(&mut size).ok()?;
        let (from, size) = (body.len(), usize::from_str_radix(size.trim(), 16).ok()?);
        body.resize(from + size + 2, 0);
        reader.read_exact(&mut body[from..]).ok()?;
        body.truncate(from + size);
        if size == 0 {
            return Some(body);
        }
    }
}

/// A connection that is kept open for several requests.
#[derive(Debug)]
pub(crate) struct Kept<S = TcpStream> {
    reader: BufReader<S>,
    host: String,
}

impl Kept {
    pub(crate) fn open(address: SocketAddr, host: &str) -> Self {
        Self::over(connect(address), host)
    }
}

impl<S: Read + Write> Kept<S> {
    pub(crate) fn over(stream: S, host: &str) -> Self {
        Self { reader: BufReader::new(stream), host: host.to_owned() }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.reader.get_mut().write_all(bytes.as_ref()).expect("an open connection");
    }

    pub(crate) fn receive(&mut self) -> Answer {
        Answer::read(&mut self.reader, "GET").expect("an answer before the connection ends")
    }

    /// Sends a request, and returns the response; `None` if the connection has ended.
    pub(crate) fn ask(&mut self, method: &str, target: &[u8], fields: &str) -> Option<Answer> {
        let fields = format!(" HTTP/1.1\r\nHost: {}\r\n{fields}\r\n", self.host);
        let request = [method.as_bytes(), b" ", target, fields.as_bytes()].concat();
        self.reader.get_mut().write_all(&request).ok()?;
        Answer::read(&mut self.reader, method)
    }

    /// Sends one request, and returns the status and the body of the response.
    pub(crate) fn get(&mut self, path: &str, agent: &str) -> (u16, String) {
        let answer = self.ask("GET", path.as_bytes(), &format!("User-Agent: {agent}\r\n"));
        let answer = answer.expect("an answer before the connection ends");
        (answer.status, answer.body)
    }
}
