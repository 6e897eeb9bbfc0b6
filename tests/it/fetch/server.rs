//! A server that answers as a test specifies, byte by byte.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

type Answer = dyn Fn(&str, &mut dyn Stream) + Send + Sync;

/// A connection with or without TLS.
pub(super) trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

/// A server that answers every request in a thread of its own until the test process ends.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    answer: Arc<Mutex<Arc<Answer>>>,
}

impl Server {
    /// Starts a server that calls `answer` with the head of each request to write the response, and
    /// then closes the connection.
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

    /// Starts a server that always sends the same bytes.
    pub(super) fn saying(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::start(move |_, stream| drop(stream.write_all(&bytes)))
    }

    pub(super) fn url(&self, target: &str) -> String {
        format!("http://{}{target}", self.address)
    }

    /// Changes the response from now on.
    pub(super) fn now_says(&self, bytes: impl Into<Vec<u8>>) {
        let bytes = bytes.into();
        *self.answer.lock().unwrap() = Arc::new(move |_: &str, stream: &mut dyn Stream| drop(stream.write_all(&bytes)));
    }

    pub(super) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    pub(super) fn last_head(&self) -> String {
        self.heads().pop().unwrap()
    }

    fn serve(&self, stream: &mut dyn Stream) {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read(&mut byte) {
                Ok(1) => head.push(byte[0]),
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

/// Returns a whole response: status and reason, fields, body.
pub(super) fn response(status: &str, fields: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len())
}

pub(super) fn robots(body: &str) -> String {
    response("200 OK", "Content-Type: text/plain\r\n", body)
}

/// Returns an address without a server: the system never assigns this port to a listener.
pub(super) fn nowhere() -> SocketAddr {
    ([127, 0, 0, 1], 1).into()
}
