//! An HTTP/1 client that sends the octets a test gives it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Far more than anything here takes; a machine may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

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

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        fields.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// A connection that waits no longer than a test has patience.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// A connection on which something has been sent.
pub(crate) fn sent(address: SocketAddr, octets: impl AsRef<[u8]>) -> TcpStream {
    let mut stream = connect(address);
    stream.write_all(octets.as_ref()).expect("an open connection");
    stream
}

/// What comes until the end of a connection.
pub(crate) fn rest(mut stream: impl Read) -> Vec<u8> {
    let mut octets = Vec::new();
    stream.read_to_end(&mut octets).expect("a connection that is not reset");
    octets
}

/// The answer to a request that ends its connection.
pub(crate) fn exchange(address: SocketAddr, request: impl AsRef<[u8]>) -> Answer {
    Answer::parse(&rest(sent(address, request)))
}

/// The octets up to the end of a head; less where the connection ends before.
pub(crate) fn head(reader: &mut impl BufRead) -> Vec<u8> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && reader.read_until(b'\n', &mut head).is_ok_and(|read| read > 0) {}
    head
}

/// A connection that is kept open for one request after another.
#[derive(Debug)]
pub(crate) struct Kept {
    reader: BufReader<TcpStream>,
    host: String,
}

impl Kept {
    pub(crate) fn open(address: SocketAddr, host: &str) -> Self {
        Self { reader: BufReader::new(connect(address)), host: host.to_owned() }
    }

    pub(crate) fn send(&mut self, octets: impl AsRef<[u8]>) {
        self.reader.get_mut().write_all(octets.as_ref()).expect("an open connection");
    }

    /// The next answer; its body must have a length.
    pub(crate) fn receive(&mut self) -> Answer {
        let head = head(&mut self.reader);
        assert!(head.ends_with(b"\r\n\r\n"), "closed after {:?}", String::from_utf8_lossy(&head));
        let answer = Answer::parse(&head);
        let mut body = vec![0; answer.field("content-length").unwrap().parse().unwrap()];
        self.reader.read_exact(&mut body).unwrap();
        Answer { body: String::from_utf8(body).unwrap(), ..answer }
    }

    /// Status and body of the answer to one request.
    pub(crate) fn get(&mut self, path: &str, agent: &str) -> (u16, String) {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {agent}\r\n\r\n", self.host));
        let answer = self.receive();
        (answer.status, answer.body)
    }
}
