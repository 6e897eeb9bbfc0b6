//! An upstream that answers with the request it got.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Answers every request with 200 and the request's head as the body, for as long as the test process lives.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Origin {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                count.fetch_add(1, Ordering::Relaxed);
                std::thread::spawn(move || answer(&stream));
            }
        });
        Self { address, connections }
    }

    /// A place where no server answers.
    pub(super) fn down() -> Self {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        Self { address, connections: Arc::default() }
    }

    /// How many connections it has taken.
    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

fn answer(stream: &TcpStream) {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let response = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{head}", head.len());
        if writer.write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}
