//! A server for a list, and a resolver, both on the loopback, so that nothing leaves the machine.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An address whose host name resolves back to it.
pub(crate) const NAMED: &str = "9.8.7.6";

/// Serves a list of 1,058 prefixes, one of which is 66.249.64.0/19. Returns its URL.
pub(crate) fn serve_list() -> String {
    let prefixes: Vec<String> = (0..1_057_u32)
        .map(|number| format!(r#"{{"ipv4Prefix":"{}/27"}}"#, Ipv4Addr::from(0x1000_0000 + number * 64)))
        .collect();
    let body = format!(r#"{{"prefixes":[{},{{"ipv4Prefix":"66.249.64.0/19"}}]}}"#, prefixes.join(","));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/list.json", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 4096]);
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    url
}

/// Starts a resolver that counts questions. Only [`NAMED`] has a host name.
pub(crate) fn serve_names(asked: Arc<AtomicUsize>) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("an address");
    std::thread::spawn(move || {
        let mut question = [0; 512];
        while let Ok((length, peer)) = socket.recv_from(&mut question) {
            asked.fetch_add(1, Ordering::Relaxed);
            // A query has a header and one question. The answer refers to the name in the question,
            // at offset 12.
            let end = question[12..length].iter().position(|byte| *byte == 0).expect("a name") + 12 + 5;
            let mut answer = question[..end].to_vec();
            let kind = answer[end - 3];
            let is_ptr = kind == 12;
            let is_named = !is_ptr || answer[12..].starts_with(b"\x016\x017\x018\x019");
            answer[2] = 0x81;
            answer[3] = if is_named { 0x80 } else { 0x83 };
            answer[4..12].copy_from_slice(&[0, 1, 0, u8::from(is_named), 0, 0, 0, 0]);
            if is_named {
                let data: &[u8] = if is_ptr { b"\x05crawl\x04play\x04test\0" } else { &[9, 8, 7, 6] };
                answer.extend([0xC0, 12, 0, kind, 0, 1, 0, 0, 14, 16, 0, data.len() as u8]);
                answer.extend(data);
            }
            let _ = socket.send_to(&answer, peer);
        }
    });
    address
}
