//! Tests upstreams as an operator configures them: several of them, by name, on Unix sockets, and
//! over TLS.

use crate::harness::*;

const ROBOTS: &str = "User-agent: GPTBot\nDisallow: /drafts/\n";

fn config(upstreams: &[String], more: &str) -> Config {
    let config = Config::refusing().keys("workers = 2").robots(ROBOTS);
    config.site("shop", format!("upstreams = {upstreams:?}\n[site.robots]\npath = \"robots.txt\"\n{more}"))
}

/// Returns an address that is in use, but at which no server listens.
fn closed() -> (socket2::Socket, SocketAddr) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    (socket, address)
}

#[test]
fn a_dead_upstream_fails_no_request_and_is_ejected_once_for_all_workers() {
    let origin = Origin::start();
    let (_taken, dead) = closed();
    let more = "[site.upstream]\neject = \"10m\"\neject_max = \"10m\"\n";
    let (_folder, running) = config(&[format!("http://{dead}"), format!("http://{origin}")], more).start();
    for _ in 0..40 {
        assert_eq!(running.get("/", FIREFOX).status, 200);
    }
    let line = running.wait_for_event("upstream", |line| line["reason"] == "ejected");
    assert_eq!(line["site"], "shop");
    let message = message(&line);
    let want = format!("{dead} will get no requests for about 10m: 3 failures in a row: ");
    assert!(message.starts_with(&want), "{message}");
    assert_eq!(running.events("upstream"), 1);
}

#[test]
fn robotsd_starts_even_if_the_name_of_an_upstream_does_not_resolve() {
    let (_folder, running) = config(&["http://nowhere.invalid".to_owned()], "[limits]\nconnect = \"200ms\"\n").start();
    assert_eq!(running.get("/", FIREFOX).status, 502);
    assert_eq!(running.get("/robots.txt", GPTBOT).status, 200);
    assert_eq!(running.get("/drafts/x", GPTBOT).status, 403);
    running.wait_for_event("upstream", |line| line["reason"] == "no-address");
}

#[test]
fn the_path_of_a_unix_socket_is_relative_to_the_config() {
    let (folder, running) = config(&["unix:app.sock".to_owned()], "").start();
    assert_eq!(running.get("/", FIREFOX).status, 502);
    let _origin = Origin::on_socket(&folder.at("app.sock"), |_| response("200 OK", &[], "over a socket"));
    running.get("/", FIREFOX).comes_with(200, "over a socket");
}

#[test]
fn an_https_upstream_is_used_only_if_its_certificate_matches_its_name() {
    let (origin, ca) = secure_origin("app.internal", "over TLS");
    let address = origin.address;
    let start = |name: &str| {
        let more = format!("[site.upstream]\nca = \"ca.pem\"\nserver_name = \"{name}\"\n");
        config(&[format!("https://{address}")], &more).file("ca.pem", &ca).start()
    };
    let (_folder, running) = start("app.internal");
    running.get("/", FIREFOX).comes_with(200, "over TLS");
    let (_folder, running) = start("else.internal");
    running.get("/", FIREFOX).comes_with(502, "502 the site is not available\n");
    let line = running.wait_for_event("upstream", |line| line["reason"] == "tls");
    let message = message(&line);
    let said = format!("{address}: the certificate is for \"app.internal\" and not for \"else.internal\"");
    assert!(message.starts_with(&said), "{message}");
}

#[test]
fn requests_beyond_the_upstream_connection_limit_get_503_with_retry_after() {
    let (taken, address) = closed();
    taken.listen(16).unwrap();
    // The accepted request gets no response and keeps the only slot.
    let more = "[limits]\nupstream_connections = 1\nconnect = \"1s\"\nresponse = \"10m\"\n";
    let (_folder, running) = config(&[format!("http://{address}")], more).start();
    let _first = sent(running.address, b"GET / HTTP/1.1\r\nHost: site.test\r\n\r\n");
    let (mut upstream, _) = taken.accept().unwrap();
    upstream.read_exact(&mut [0; 3]).unwrap();
    let answer = running.get("/", FIREFOX);
    assert_eq!((answer.status, answer.field("retry-after")), (503, Some("1")));
    running.wait_for_event("upstream", |line| line["reason"] == "busy");
}

#[test]
fn clients_that_do_not_read_do_not_block_upstream_connections() {
    // Pages of the first size are read ahead completely. The second size is too large.
    for size in [40 * 1024, 4 * 1024 * 1024] {
        let more = "[limits]\nupstream_connections = 16\nconnect = \"60s\"\n";
        let (folder, running) = config(&[format!("http://{}", origin_of(size))], more).start();
        let greedy: Vec<_> = (0..4).map(|_| ask_and_do_not_read(running.address, 100)).collect();
        let serves = || assert_eq!(running.get("/small", FIREFOX).status, 200, "{size}");
        if size > 1024 * 1024 {
            let start = Instant::now();
            while running.events("upstream") == 0 {
                assert!(start.elapsed() < PATIENCE, "nothing is given up");
                serves();
            }
            let line = running.wait_for_event("upstream", |line| line["reason"] == "gave-up");
            assert!(message(&line).contains("stalled for"), "{line}");
        }
        (0..100).for_each(|_| serves());
        if size < 1024 * 1024 {
            assert_eq!(running.events("upstream"), 0);
        }
        drop((greedy, running, folder));
    }
}

/// Opens an HTTP/2 connection, and requests this many pages. The connection's flow-control window
/// is zero, so no body can be sent.
fn ask_and_do_not_read(address: SocketAddr, streams: u32) -> TcpStream {
    let mut said = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // SETTINGS_INITIAL_WINDOW_SIZE is 0.
    said.extend_from_slice(&[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0]);
    let fields = b"\x82\x86\x04\x06/large\x01\x09site.test";
    for stream in 0..streams {
        said.extend_from_slice(&[0, 0, fields.len() as u8, 1, 5]);
        said.extend_from_slice(&(2 * stream + 1).to_be_bytes());
        said.extend_from_slice(fields);
    }
    let socket = sent(address, &said);
    let mut reader = socket.try_clone().unwrap();
    // All frames except bodies are read, as every client does.
    thread::spawn(move || while matches!(reader.read(&mut [0; 4096]), Ok(1..)) {});
    socket
}

/// Starts a server. All of its pages have this size, except `/small`.
fn origin_of(size: usize) -> SocketAddr {
    let page = move |asked: &Asked| vec![b'x'; if asked.head.starts_with(b"GET /small ") { 2 } else { size }];
    Origin::answering(move |asked| response("200 OK", &[], page(asked))).address
}

/// Starts a server with a certificate for this name, which responds with this text. Also returns
/// the certificate of its authority.
pub(super) fn secure_origin(name: &str, text: &str) -> (Origin, String) {
    let authority = Authority::new();
    let tls = server_config(&authority.sign(&certificate_for(&[name])));
    (Origin::showing_over_tls(tls, 200, text), authority.pem())
}
