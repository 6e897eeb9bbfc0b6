//! `robotsd tester`: serves the tester, a page that shows what a robots.txt means, or writes the
//! page to a file.
//!
//! Only builds for packages contain the page: they set the environment variable `ROBOTSD_TESTER`.
//! The page is the same for every visitor and contains no data. The server reads only the path in
//! the request line, and responds with 404 to any path except `/`.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use crate::exit::complain;
use crate::render::{printable_path, stdout};

/// `None` if this build does not contain the page.
#[cfg(has_tester)]
const PAGE: Option<&[u8]> = Some(include_bytes!(env!("ROBOTSD_TESTER")));
#[cfg(not(has_tester))]
const PAGE: Option<&[u8]> = None;

/// Maximum size of a request's head, in bytes.
const MAX_HEAD: usize = 16 << 10;

/// Maximum time for reading a request and writing the response.
const MAX_TIME: Duration = Duration::from_secs(30);

/// Maximum number of connections. Further connections are closed.
const MAX_CONNECTIONS: usize = 64;

/// Open the tester: a page that shows what a robots.txt means for crawlers
#[derive(Args, Debug)]
pub(crate) struct TesterArgs {
    /// Address on which the page is served; port 0 is any free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,

    /// Write the page to this file instead of serving it; a browser can open it without a server
    #[arg(long, short, value_name = "FILE", conflicts_with = "listen")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &TesterArgs) -> io::Result<ExitCode> {
    let Some(page) = PAGE else {
        return Err(io::Error::other(concat!(
            "this build does not contain the tester: it is in the packages, and the page \"The tester\" of the handbook links to it. \
             To build the page, run docs/tester/build.py in a clone of ",
            env!("CARGO_PKG_REPOSITORY")
        )));
    };
    if let Some(file) = &args.output {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", printable_path(file)));
        fs::write(file, page).map_err(named)?;
        return Ok(ExitCode::SUCCESS);
    }
    let named = |error: io::Error| io::Error::new(error.kind(), format!("--listen {}: {error}", args.listen));
    let listener = TcpListener::bind(args.listen).map_err(named)?;
    let mut out = stdout();
    writeln!(out, "the tester is at http://{}/ until you press Ctrl-C", listener.local_addr()?)?;
    out.flush()?;
    serve(&listener, page)
}

/// Responds to requests. Each connection has its own thread.
fn serve(listener: &TcpListener, page: &'static [u8]) -> io::Result<ExitCode> {
    let open = Arc::new(());
    loop {
        let answered = listener.accept().and_then(|(stream, _)| {
            if Arc::strong_count(&open) > MAX_CONNECTIONS {
                return Ok(());
            }
            let open = open.clone();
            let answered = move || {
                // The browser may close the connection at any time.
                let _ = answer(&mut Limited { stream, end: Instant::now() + MAX_TIME }, page);
                drop(open);
            };
            thread::Builder::new().spawn(answered).map(drop)
        });
        if let Err(error) = answered {
            complain(&format_args!("a connection failed: {error}"));
            thread::sleep(Duration::from_millis(100));
        }
    }
}

struct Limited {
    stream: TcpStream,
    end: Instant,
}

impl Limited {
    fn time_left(&self) -> io::Result<Option<Duration>> {
        let time_left = self.end.saturating_duration_since(Instant::now());
        if time_left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(time_left)) }
    }
}

impl Read for Limited {
    fn read(&mut self, part: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.time_left()?)?;
        self.stream.read(part)
    }
}

impl Write for Limited {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.time_left()?)?;
        self.stream.write(part)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

fn answer(stream: &mut (impl Read + Write), page: &[u8]) -> io::Result<()> {
    let head = read_head(stream)?;
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let is_page = matches!(method, b"GET" | b"HEAD") && target.split(|byte| *byte == b'?').next() == Some(b"/");
    let (status, body) = if is_page { ("200 OK", page) } else { ("404 Not Found", &b"the tester is at /\n"[..]) };
    let kind = if is_page { "text/html" } else { "text/plain" };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\nX-Content-Type-Options: nosniff\r\n\
         X-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-cache\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    if method != b"HEAD" {
        stream.write_all(body)?;
    }
    stream.flush()
}

fn read_head(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let (mut head, mut part) = (Vec::new(), [0; 1024]);
    while head.len() < MAX_HEAD && !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut part)? {
            0 => break,
            size => head.extend_from_slice(&part[..size]),
        }
    }
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(address: SocketAddr, line: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "{line}\r\nHost: localhost\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn the_tester_serves_its_page_at_the_root_and_404_elsewhere() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || serve(&listener, b"<p>a page"));
        for (line, status, body) in [
            ("GET / HTTP/1.1", "200 OK", "<p>a page"),
            ("GET /?a HTTP/1.1", "200 OK", "<p>a page"),
            ("HEAD / HTTP/1.1", "200 OK", ""),
            ("POST / HTTP/1.1", "404 Not Found", "the tester is at /\n"),
            ("GET /favicon.ico HTTP/1.1", "404 Not Found", "the tester is at /\n"),
            ("", "404 Not Found", "the tester is at /\n"),
        ] {
            let answer = ask(address, line);
            let (head, found) = answer.split_once("\r\n\r\n").expect("a head");
            assert!(head.starts_with(&format!("HTTP/1.1 {status}\r\n")) && found == body, "{line}: {answer}");
        }
    }

    #[test]
    fn connections_above_the_limit_are_closed_until_one_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || serve(&listener, b"<p>a page"));
        let mut idle: Vec<_> = (0..MAX_CONNECTIONS).map(|_| TcpStream::connect(address).unwrap()).collect();
        let mut further = TcpStream::connect(address).unwrap();
        assert!(matches!(further.read(&mut [0]), Ok(0) | Err(_)));
        idle.pop();
        let is_answered = || {
            let mut stream = TcpStream::connect(address).unwrap();
            let mut text = String::new();
            let _ = stream.write_all(b"GET / HTTP/1.1\r\n\r\n").and_then(|()| stream.read_to_string(&mut text));
            text.ends_with("<p>a page")
        };
        let begun = Instant::now();
        while !is_answered() {
            assert!(begun.elapsed() < Duration::from_secs(60), "no connection was accepted");
        }
    }

    #[test]
    fn the_time_limit_is_for_the_whole_request() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut limited = Limited { stream: listener.accept().unwrap().0, end: Instant::now() };
        assert_eq!(answer(&mut limited, b"a page").unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(limited.write(b"a page").unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
