//! A crawler's connection: requests as octets, one after the other, and whole answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::harness::PATIENCE;

/// A connection to robotsd that is opened again whenever it was closed.
pub(super) struct Client<'c> {
    address: SocketAddr,
    host: &'c str,
    /// What a connection begins with.
    greeting: Greeting,
    stream: Option<BufReader<TcpStream>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Greeting {
    None,
    /// A request that robotsd does not serve on its code path for plain requests leaves the whole connection to its other
    /// one.
    Options,
}

#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Reply {
    pub(super) fn contains(&self, text: &str) -> bool {
        self.body.windows(text.len()).any(|window| window == text.as_bytes())
    }

    /// The rule that robotsd quotes, where this is its refusal.
    pub(super) fn refusal(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.body);
        let line = text.lines().find(|line| line.contains("Disallow: ") && line.contains("(line "))?;
        Some(line.trim().to_owned())
    }
}

impl<'c> Client<'c> {
    pub(super) fn new(address: SocketAddr, host: &'c str, greeting: Greeting) -> Self {
        Self { address, host, greeting, stream: None }
    }

    pub(super) fn get(&mut self, target: &[u8], agent: &str) -> Reply {
        self.ask("GET", target, agent)
    }

    pub(super) fn ask(&mut self, method: &str, target: &[u8], agent: &str) -> Reply {
        let fields = format!(" HTTP/1.1\r\nHost: {}\r\nUser-Agent: {agent}\r\n\r\n", self.host);
        let request = [method.as_bytes(), b" ", target, fields.as_bytes()].concat();
        for _ in 0..3 {
            let kept = self.stream.is_some();
            if let Some(reply) = self.exchange(&request, method) {
                return reply;
            }
            self.stream = None;
            // Only a connection that was kept may have been closed meanwhile.
            assert!(kept, "{}: no answer to {:?}", self.host, String::from_utf8_lossy(&request));
        }
        panic!("{}: no answer to {:?}", self.host, String::from_utf8_lossy(&request));
    }

    fn exchange(&mut self, request: &[u8], method: &str) -> Option<Reply> {
        if self.stream.is_none() {
            let stream = TcpStream::connect(self.address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.set_nodelay(true).unwrap();
            let mut stream = BufReader::new(stream);
            if self.greeting == Greeting::Options {
                let greeting = format!("OPTIONS /nothing HTTP/1.1\r\nHost: {}\r\n\r\n", self.host);
                stream.get_mut().write_all(greeting.as_bytes()).ok()?;
                let (_, is_open) = read(&mut stream, "OPTIONS")?;
                assert!(is_open, "{}: closed after OPTIONS", self.host);
            }
            self.stream = Some(stream);
        }
        let stream = self.stream.as_mut()?;
        stream.get_mut().write_all(request).ok()?;
        let (reply, is_open) = read(stream, method)?;
        if !is_open {
            self.stream = None;
        }
        Some(reply)
    }
}

/// One answer, and whether the connection can take another request.
fn read(reader: &mut BufReader<TcpStream>, method: &str) -> Option<(Reply, bool)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if reader.read_until(b'\n', &mut head).ok()? == 0 {
            return None;
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let status: u16 = head.get(9..12)?.parse().ok()?;
    let lower = head.to_ascii_lowercase();
    let field = |name: &str| lower.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let mut is_open = field("connection:") != Some("close");
    let mut body = Vec::new();
    if method == "HEAD" || status == 204 || status == 304 {
        // Nothing follows.
    } else if field("transfer-encoding:").is_some() {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size).ok()?;
            let size = usize::from_str_radix(size.trim(), 16).ok()?;
            let from = body.len();
            body.resize(from + size + 2, 0);
            reader.read_exact(&mut body[from..]).ok()?;
            body.truncate(from + size);
            if size == 0 {
                break;
            }
        }
    } else if let Some(length) = field("content-length:") {
        body.resize(length.parse().ok()?, 0);
        reader.read_exact(&mut body).ok()?;
    } else {
        is_open = false;
        reader.read_to_end(&mut body).ok()?;
    }
    Some((Reply { status, body }, is_open))
}
