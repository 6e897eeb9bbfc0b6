//! An upstream that answers with the request it got.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// Answers every request with 200 and the request's head as the body, for as long as the test process lives.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) address: SocketAddr,
}

impl Origin {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                std::thread::spawn(move || answer(&stream));
            }
        });
        Self { address }
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
