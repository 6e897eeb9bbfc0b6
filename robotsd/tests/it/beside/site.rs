//! The site behind: answers with the request it got, body and all.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

pub(super) const OWN_ROBOTS_TXT: &str = "# the site's own\n";

/// Serves for as long as the test process lives.
pub(super) fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || serve(&stream));
        }
    });
    address
}

fn serve(stream: &TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if reader.read_until(b'\n', &mut head).ok()? == 0 {
                return None;
            }
        }
        // Of another protocol from here on, such as a websocket: what comes is sent back.
        if String::from_utf8_lossy(&head).to_lowercase().contains("\r\nupgrade: ") {
            writer
                .write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")
                .ok()?;
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            return writer.write_all(line.as_bytes()).ok();
        }
        let body = body(&mut reader, &String::from_utf8_lossy(&head).to_lowercase())?;
        let answer =
            if head.starts_with(b"GET /robots.txt ") { OWN_ROBOTS_TXT.into() } else { [&head[..], &body].concat() };
        let length = answer.len();
        let fields = format!("HTTP/1.1 200 OK\r\nServed-By: site\r\nContent-Length: {length}\r\n\r\n");
        let answer = if head.starts_with(b"HEAD ") { Vec::new() } else { answer };
        writer.write_all(&[fields.as_bytes(), &answer].concat()).ok()?;
    }
}

fn body(reader: &mut impl BufRead, head: &str) -> Option<Vec<u8>> {
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    if field("transfer-encoding:").is_some() {
        let mut body = Vec::new();
        loop {
            let mut size = String::new();
            reader.read_line(&mut size).ok()?;
            let mut chunk = vec![0; usize::from_str_radix(size.trim(), 16).ok()? + 2];
            reader.read_exact(&mut chunk).ok()?;
            if chunk.len() == 2 {
                return Some(body);
            }
            body.extend_from_slice(&chunk[..chunk.len() - 2]);
        }
    }
    let mut body = vec![0; field("content-length:").map_or(Some(0), |length| length.parse().ok())?];
    reader.read_exact(&mut body).ok()?;
    Some(body)
}
