//! Upstreams that answer as a test says.

use std::collections::HashMap;
use std::fmt;
use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::client::head;

/// A request, as octets.
pub(crate) struct Asked {
    pub(crate) head: Vec<u8>,
    /// As long as `Content-Length` says.
    pub(crate) body: Vec<u8>,
}

/// An upstream that serves for as long as the test process lives.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
    shown: Shown,
}

/// The status and the text that are shown now.
type Shown = Arc<Mutex<(u16, String)>>;

impl Asked {
    /// The next request of a connection.
    pub(crate) fn read(reader: &mut BufReader<impl Read>) -> Option<Self> {
        let head = head(reader);
        let fields = head.ends_with(b"\r\n\r\n").then(|| String::from_utf8_lossy(&head).to_lowercase())?;
        let length = fields.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body).ok()?;
        Some(Self { head, body })
    }

    pub(crate) fn target(&self) -> String {
        String::from_utf8_lossy(&self.head).split(' ').nth(1).unwrap_or_default().to_owned()
    }
}

/// A whole response: status and reason, fields, body.
pub(crate) fn response(status: &str, fields: &[&str], body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    let head = format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Its address, as a URL has it.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

impl Origin {
    /// Answers every request with 200 and the request's head as the body.
    pub(crate) fn start() -> Self {
        Self::answering(|asked| response("200 OK", &[], &asked.head))
    }

    /// Has documents by path, and notes the heads of requests.
    pub(crate) fn of<B: Into<Arc<[u8]>>>(documents: impl IntoIterator<Item = (impl Into<String>, B)>) -> Self {
        let documents: HashMap<String, Arc<[u8]>> =
            documents.into_iter().map(|(path, body)| (path.into(), body.into())).collect();
        Self::answering(move |asked| match documents.get(&asked.target()) {
            Some(body) => response("200 OK", &[], body),
            None => response("404 Not Found", &[], ""),
        })
    }

    /// Answers every request with what is shown: 0 is no answer at all.
    pub(crate) fn showing(status: u16, text: &str) -> Self {
        Self::with_shown(TcpListener::bind("127.0.0.1:0").unwrap(), (status, text), |shown, _| shown)
    }

    /// Shows this as its robots.txt, and answers everything else with 200.
    pub(crate) fn publishing(status: u16, robots: &str) -> Self {
        Self::publishing_on(TcpListener::bind("127.0.0.1:0").unwrap(), status, robots)
    }

    pub(crate) fn publishing_on(listener: TcpListener, status: u16, robots: &str) -> Self {
        Self::with_shown(listener, (status, robots), |shown, asked| {
            if asked.head.starts_with(b"GET /robots.txt ") { shown } else { (200, "hello".to_owned()) }
        })
    }

    fn with_shown(listener: TcpListener, shown: (u16, &str), said: fn((u16, String), &Asked) -> (u16, String)) -> Self {
        let shown = Arc::new(Mutex::new((shown.0, shown.1.to_owned())));
        let now = shown.clone();
        let answer = move |asked: &Asked| match said(now.lock().unwrap().clone(), asked) {
            (0, _) => Vec::new(),
            (status, text) => response(&format!("{status} Said"), &[], text),
        };
        Self { shown, ..Self::on(listener, answer) }
    }

    pub(crate) fn show(&self, status: u16, text: &str) {
        *self.shown.lock().unwrap() = (status, text.to_owned());
    }

    /// Answers each request with these octets; where there are none, the connection stays open without an answer.
    pub(crate) fn answering(answer: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap(), answer)
    }

    fn on(listener: TcpListener, answer: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let origin = Self { address: listener.local_addr().unwrap(), ..Self::down() };
        let (answer, count, noted) = (Arc::new(answer), origin.connections.clone(), origin.requests.clone());
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                count.fetch_add(1, Ordering::Relaxed);
                let (answer, noted) = (answer.clone(), noted.clone());
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    while let Some(asked) = Asked::read(&mut reader) {
                        let octets = [&asked.head[..], &asked.body].concat();
                        noted.lock().unwrap().push(String::from_utf8_lossy(&octets).into_owned());
                        if stream.write_all(&answer(&asked)).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        origin
    }

    /// A place where no server answers.
    pub(crate) fn down() -> Self {
        Self { address: free(), connections: Arc::default(), requests: Arc::default(), shown: Arc::default() }
    }

    /// How many connections it has taken.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// The heads and bodies that it has read.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// An address of loopback that was free a moment ago.
pub(crate) fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
