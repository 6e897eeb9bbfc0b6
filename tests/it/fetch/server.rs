//! A server that answers as a test says, octet by octet.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

type Answer = dyn Fn(&str, &mut dyn Stream) + Send + Sync;

/// A connection, with TLS or without.
pub(super) trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

/// Answers every request on a thread of its own, for as long as the test process lives.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    answer: Arc<Mutex<Arc<Answer>>>,
}

impl Server {
    /// A server that writes what `answer` writes, given the head of a request, and then closes.
    pub(super) fn start(answer: impl Fn(&str, &mut dyn Stream) + Send + Sync + 'static) -> Self {
        Self::wrapped(|socket| Some(Box::new(socket)), answer)
    }

    pub(super) fn wrapped(
        wrap: impl Fn(TcpStream) -> Option<Box<dyn Stream>> + Send + Sync + 'static,
        answer: impl Fn(&str, &mut dyn Stream) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            heads: Arc::default(),
            answer: Arc::new(Mutex::new(Arc::new(answer))),
        };
        let (wrap, serving) = (Arc::new(wrap), server.clone());
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let (wrap, serving) = (wrap.clone(), serving.clone());
                std::thread::spawn(move || {
                    if let Some(mut stream) = wrap(socket) {
                        serving.serve(&mut *stream);
                    }
                });
            }
        });
        server
    }

    /// One that always sends the same octets.
    pub(super) fn saying(octets: impl Into<Vec<u8>>) -> Self {
        let octets = octets.into();
        Self::start(move |_, stream| drop(stream.write_all(&octets)))
    }

    pub(super) fn url(&self, target: &str) -> String {
        format!("http://{}{target}", self.address)
    }

    /// From now on it answers otherwise.
    pub(super) fn now_says(&self, octets: impl Into<Vec<u8>>) {
        let octets = octets.into();
        *self.answer.lock().unwrap() =
            Arc::new(move |_: &str, stream: &mut dyn Stream| drop(stream.write_all(&octets)));
    }

    /// The heads of the requests so far.
    pub(super) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    pub(super) fn last_head(&self) -> String {
        self.heads().pop().unwrap()
    }

    fn serve(&self, stream: &mut dyn Stream) {
        let mut head = Vec::new();
        let mut octet = [0];
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read(&mut octet) {
                Ok(1) => head.push(octet[0]),
                _ => return,
            }
        }
        let head = String::from_utf8(head).unwrap();
        self.heads.lock().unwrap().push(head.clone());
        let answer = self.answer.lock().unwrap().clone();
        answer(&head, stream);
        let _ = stream.flush();
    }
}

/// A whole answer: status and reason, fields, body.
pub(super) fn response(status: &str, fields: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len())
}

pub(super) fn robots(body: &str) -> String {
    response("200 OK", "Content-Type: text/plain\r\n", body)
}

/// An address that no server listens on: the system gives its port to no listener, whichever test asks for one.
pub(super) fn nowhere() -> SocketAddr {
    ([127, 0, 0, 1], 1).into()
}
