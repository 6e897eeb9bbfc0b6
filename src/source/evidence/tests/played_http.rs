//! A simulated HTTP server whose response the test sets.

use crate::live::Mutex;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use super::certificate::{Authority, certificate_for, server_config};
use super::closing::Closing;

/// A server with a single response, which the test can change.
#[derive(Clone)]
pub(crate) struct PlayedHttp {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
}

struct State {
    answer: Vec<u8>,
    heads: Vec<String>,
}

impl PlayedHttp {
    pub(crate) fn start(answer: impl Into<Vec<u8>>) -> Self {
        Self::listen(answer.into(), |port| format!("http://127.0.0.1:{port}/list.json"), Some)
    }

    /// Starts a server that leaves its connections open.
    pub(crate) fn start_stalling(answer: impl Into<Vec<u8>>) -> Self {
        let open = Mutex::new(Vec::new());
        Self::listen(
            answer.into(),
            |port| format!("http://127.0.0.1:{port}/list.json"),
            move |stream: TcpStream| {
                open.lock().push(stream.try_clone().ok()?);
                Some(stream)
            },
        )
    }

    /// Starts a server with TLS. Also returns the authority to trust, as PEM.
    pub(crate) fn start_tls(answer: impl Into<Vec<u8>>) -> (Self, String) {
        let authority = Authority::new();
        let config = Arc::new(server_config(&authority.sign(&certificate_for(&["localhost"]))));
        let wrap = move |socket| Closing::over(socket, config.clone());
        (Self::listen(answer.into(), |port| format!("https://localhost:{port}"), wrap), authority.pem())
    }

    fn listen<S: Read + Write>(
        answer: Vec<u8>,
        url: impl FnOnce(u16) -> String,
        wrap: impl Fn(TcpStream) -> Option<S> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = url(listener.local_addr().expect("an address").port());
        let state = Arc::new(Mutex::new(State { answer, heads: Vec::new() }));
        let shared = state.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok).filter_map(wrap) {
                let (mut head, mut byte) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                    head.push(byte[0]);
                }
                let answer = {
                    let mut state = shared.lock();
                    state.heads.push(String::from_utf8_lossy(&head).into_owned());
                    state.answer.clone()
                };
                // Errors are ignored, because the client may have closed the connection.
                let _ = stream.write_all(&answer);
            }
        });
        Self { url, state }
    }

    pub(crate) fn answers(&self, answer: impl Into<Vec<u8>>) {
        self.state.lock().answer = answer.into();
    }

    /// Returns the heads of the requests so far.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.state.lock().heads.clone()
    }
}

pub(crate) fn answer(status: &str, fields: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len())
}
