//! Tests that the two paths through the proxy behave alike: the fast path (on either side) and
//! hyper.
//!
//! A connection that was handed over to hyper stays with hyper. So the first bytes on a connection
//! determine the path of all later bytes, and the tests need no pauses.

use std::collections::BTreeSet;

use bytes::Bytes;
use tokio::task::JoinSet;

use http::header::CONNECTION;
use hyper::ext::ReasonPhrase;

use super::*;
use crate::http_common::test_peer::as_escaped;

/// The first use of a connection. It determines the path of everything that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Plain,
    Hyper,
}

/// A generator of random numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn pick<'a>(&mut self, of: &[&'a [u8]]) -> &'a [u8] {
        of[self.roll(of.len())]
    }
}

/// Time without data after which a side stops, so that every conversation ends.
const PATIENCE: Duration = Duration::from_secs(2);

/// Number of concurrent conversations. A large number saves time, because some conversations wait
/// for a deadline. With an even larger number, other conversations could reach a deadline, too.
const AT_ONCE: usize = 128;

/// Maximum number of attempts for a case whose outcomes differ. On a busy machine, a deadline may
/// end a conversation too early.
const ATTEMPTS: usize = 5;

/// Compares the answers of the two paths for each case. `compared` returns the answers if they
/// differ.
async fn compare<C, F>(cases: impl IntoIterator<Item = C>, mut compared: impl FnMut(C) -> F)
where
    F: Future<Output = Option<String>> + Send + 'static,
{
    let mut running = JoinSet::new();
    let mut wrong = Vec::new();
    for case in cases {
        if running.len() >= AT_ONCE {
            wrong.extend(running.join_next().await.and_then(Result::unwrap));
        }
        running.spawn(compared(case));
    }
    while let Some(done) = running.join_next().await {
        wrong.extend(done.unwrap());
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Starts an origin that answers every request with its head and its body's length.
fn mirror() -> SocketAddr {
    accepting(|_, socket| async move {
        let mut peer = Raw::new(socket);
        while let Some(head) = peer.up_to(b"\r\n\r\n").await {
            let text = String::from_utf8_lossy(&head).into_owned();
            let said = text.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length = said.map_or(0, |length| length.parse().unwrap());
            let body = if text.contains("\r\ntransfer-encoding: chunked\r\n") {
                peer.up_to(b"0\r\n\r\n").await
            } else {
                Some(peer.at_most(length).await).filter(|body| body.len() == length)
            };
            let Some(body) = body else { return };
            let echo = format!("{}|{}", text.escape_debug(), body.escape_ascii());
            let length = echo.len();
            let echo = if text.starts_with("HEAD ") { String::new() } else { echo };
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nX-A: 1\r\nx-a: 2\r\n\r\n{echo}");
            peer.try_send(answer).await;
        }
    })
}

fn front() -> SocketAddr {
    let limits = EdgeLimits {
        first_byte: PATIENCE,
        header_read: PATIENCE,
        keep_alive: PATIENCE,
        body_idle: PATIENCE,
        ..EdgeLimits::default()
    };
    proxy_with(limits, ListenerSettings::default(), upstream([mirror()], patient()))
}

/// Sends bytes and then a last request over one path. Returns everything that was received.
async fn heard(front: SocketAddr, way: Way, bytes: &[u8]) -> Vec<String> {
    let mut client = Raw::connect(front).await;
    let warming = match way {
        Way::Plain => "GET /warm HTTP/1.1\r\nHost: h.test\r\n\r\n",
        Way::Hyper => "POST /warm HTTP/1.1\r\nHost: h.test\r\nContent-Length: 0\r\n\r\n",
    };
    assert_eq!(client.ask(warming).await.status(), 200);
    client.try_send(bytes).await;
    // The bytes must arrive separately from the next request, or this would be a different case.
    settled().await;
    client.try_send("GET /last HTTP/1.1\r\nHost: h.test\r\nConnection: close\r\n\r\n").await;
    let rest = client.rest().await;
    // Request ids, times and the order of fields may differ between the paths.
    rest.split("HTTP/1.1 ")
        .map(|message| {
            let (head, body) = message.split_once("\r\n\r\n").unwrap_or((message, ""));
            let mut lines: Vec<_> = head.lines().filter(|line| !line.starts_with("date: ")).map(masked).collect();
            if let Some(fields) = lines.get_mut(1..) {
                fields.sort();
            }
            format!("{lines:?}{}", masked(body))
        })
        .collect()
}

/// Replaces ids by a fixed string.
fn masked(text: &str) -> String {
    let mut masked = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("x-request-id: ") {
        masked.push_str(before);
        masked.push_str("x-request-id: *");
        rest = after.get(32..).unwrap_or_default();
    }
    masked + rest
}

fn pieces(list: &'static [u8]) -> Vec<&'static [u8]> {
    list.split(|byte| *byte == b'~').collect()
}

/// Returns valid heads, nearly valid heads, and heads that are crafted to be misread.
fn requests() -> BTreeSet<Vec<u8>> {
    let long = [&b"X-Long: "[..], &[b'l'; 7000]].concat();
    let target = [&b"/"[..], &[b't'; 7000]].concat();
    let lines = pieces(
        b"GET / HTTP/1.1~GET /a%2Fb/../c?d=\\e HTTP/1.1~HEAD /a HTTP/1.1~GET  / HTTP/1.1~\
        GET / HTTP/1.1 ~GET / HTTP/1.0~GET / http/1.1~GET / HTTP/1.2~GET / HTTP/2.0~GET /~GET /a b HTTP/1.1~\
        GET /\x7f HTTP/1.1~GET /\\a HTTP/1.1~GET /\xc3\xa9 HTTP/1.1~GET /\xff HTTP/1.1~\
        GET /q?x=caf\xe9 HTTP/1.1~HEAD /caf\xe9/\xc3\xa9?\xff HTTP/1.1~GET /<a>`b`\"{c}|^?<d>`\"{e}|^ HTTP/1.1~\
        GET /\\<\xff HTTP/1.1~GET /\x7f<\xff HTTP/1.1~GET /<\x01\xff HTTP/1.1~GET /<#\xff> HTTP/1.1~\
        GET /< HTTP/1.0~POST /\xff HTTP/1.1~GET http://h.test/\xff HTTP/1.1~GET /a#b HTTP/1.1~\
        GET //h.test/a HTTP/1.1~GET ?a HTTP/1.1~GET * HTTP/1.1~GET h.test:80 HTTP/1.1~\
        GET http://h.test/a HTTP/1.1~GET http://user@h.test/a HTTP/1.1~GET HTTP://other.test?q HTTP/1.1~\
        GET http:///a HTTP/1.1~get / HTTP/1.1~GET\t/ HTTP/1.1~\r\n\r\nGET / HTTP/1.1~\
        \nGET / HTTP/1.1~ GET / HTTP/1.1~POST / HTTP/1.1~OPTIONS * HTTP/1.1~TRACE / HTTP/1.1~\
        CONNECT h.test:80 HTTP/1.1~\0GET / HTTP/1.1",
    );
    let hosts = pieces(
        b"Host: h.test~Host: h.test~Host: h.test~hOsT:h.test\t ~Host: h.test:8080~Host: ~\
        Host: a@h.test~Host: h.test, i.test~Host : h.test~Host: h.test\r\nHost: h.test~Host: h.test\r\n i.test~\
        Host: [::1]:80~Host: h\xe9.test~X-None: 1",
    );
    let mut fields = pieces(
        b"Accept: */*~X-A: 1\r\nx-a: 2\r\nX-a:~X-B: \xff\x80~X-C: a\tb~X-C: a\0b~X-D: a\rb~\
        X-E: a\nX-F: b~X-G: a\r\n folded~X H: 1~: nameless~nothing~X-I\x80: 1~Connection: keep-alive~\
        Connection: Keep-Alive\r\nConnection: keep-alive~Connection: close~Connection: close, X-A~\
        Connection: keep-alive, Robots-Verdict, Accept, Host~Connection: ~Content-Length: 0~Content-Length: 3~\
        Content-Length: +3~Content-Length: 3, 3~Content-Length: 3\r\nContent-Length: 4~Content_Length: 3~\
        Content-Length: 99999999999999999999999~Transfer-Encoding: chunked~Transfer-Encoding: gzip, chunked~\
        Transfer_Encoding: chunked~Transfer-Encoding:\x0bchunked~Expect: 100-continue~Expect: a miracle~\
        Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\nConnection: Upgrade, HTTP2-Settings~\
        Upgrade: websocket~TE: trailers, deflate~Trailer: X-A~Keep-Alive: timeout=1~Proxy-Connection: close~\
        Robots-Verdict: forged~robots_verdict: forged~\
        X-Forwarded-For: 192.0.2.1\r\nX_Real_IP: 192.0.2.1\r\nForwarded: for=192.0.2.1~X-Request-Id: forged~\
        Cookie: a=1\r\nCookie: b=2~User-Agent: a\r\nUser-Agent: b",
    );
    fields.push(&long);
    let behind: &[&[u8]] = &[
        b"",
        b"",
        b"",
        b"abc",
        b"0\r\n\r\n",
        b"3\r\nabc\r\n0\r\n\r\n",
        b"\r\n",
        b"GET /second HTTP/1.1\r\nHost: h.test\r\n\r\n",
        b"HEAD /second HTTP/1.1\r\nHost: h.test\r\n\r\nGET /third HTTP/1.1\r\nHost: h.test\r\n\r\n",
    ];
    let head = |line: &[u8], rest: &[&[u8]], behind: &[u8]| {
        let mut head = line.to_vec();
        for field in rest {
            head.extend_from_slice(b"\r\n");
            head.extend_from_slice(field);
        }
        head.extend_from_slice(b"\r\n\r\n");
        head.extend_from_slice(behind);
        head
    };
    let right = (b"GET / HTTP/1.1", b"Host: h.test");
    // First, each head is sent alone. Some combinations of heads follow.
    let mut all: BTreeSet<Vec<u8>> = BTreeSet::new();
    all.extend(lines.iter().map(|line| head(line, &[right.1], b"")));
    all.extend(hosts.iter().map(|host| head(right.0, &[host], b"")));
    all.extend(fields.iter().map(|field| head(right.0, &[right.1, field], b"")));
    all.extend(behind.iter().map(|behind| head(right.0, &[right.1], behind)));
    all.insert(head(&[b"GET ", &target[..], b" HTTP/1.1"].concat(), &[right.1], b""));
    for count in [63, 64, 65, 99, 100, 101] {
        all.insert(head(right.0, &[&[right.1 as &[u8]], &vec![&b"X: 1"[..]; count - 1][..]].concat(), b""));
    }
    let mut dice = Dice(9112);
    while all.len() < 400 {
        let mut rest = vec![dice.pick(&hosts)];
        for _ in 0..dice.roll(4) {
            rest.insert(dice.roll(rest.len() + 1), dice.pick(&fields));
        }
        let line = if dice.roll(3) == 0 { dice.pick(&lines) } else { right.0 };
        let mut request = head(line, &rest, dice.pick(behind));
        if dice.roll(12) == 0 {
            request.retain(|byte| *byte != b'\r');
        }
        all.insert(request);
    }
    // Targets with arbitrary bytes.
    let parts = pieces(b"/~?~#~%~%e9~<~>~`~\"~\\~\xc3\xa9~a~..~{");
    while all.len() < 700 {
        let mut line = b"GET /".to_vec();
        for _ in 0..dice.roll(8) {
            match dice.roll(3) {
                0 => line.push(dice.roll(256) as u8),
                1 => line.push(0x21 + dice.roll(0x5E) as u8),
                _ => line.extend_from_slice(dice.pick(&parts)),
            }
        }
        line.extend_from_slice(b" HTTP/1.1");
        all.insert(head(&line, &[right.1], b""));
    }
    all
}

/// Escapes the bytes in the target of a request that hyper would reject.
fn with_target_escaped(request: &[u8]) -> Vec<u8> {
    let line = memchr::memchr(b'\n', request).unwrap_or(request.len());
    let mut parts: Vec<Vec<u8>> = request[..line].split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect();
    if let [_, target, _] = &mut parts[..] {
        *target = as_escaped(target);
    }
    [&parts.join(&b' ')[..], &request[line..]].concat()
}

/// Reports whether the answer to the tested bytes is a rejection.
fn is_refused(heard: &[String]) -> bool {
    heard.get(1).is_some_and(|message| message.starts_with("[\"400 "))
}

/// The fast path escapes some bytes in targets that hyper rejects. For these targets, the fast path
/// must answer as hyper answers to the escaped form.
#[tokio::test]
async fn the_fast_path_and_hyper_handle_requests_equally() {
    let front = front();
    let escaped_ones = shared::<AtomicUsize>();
    compare(requests(), |request| async move {
        let mut differ = None;
        for _ in 0..ATTEMPTS {
            let (plain, mut hyper) =
                tokio::join!(heard(front, Way::Plain, &request), heard(front, Way::Hyper, &request));
            let escaped = with_target_escaped(&request);
            let is_escaped = plain != hyper && escaped != request && is_refused(&hyper);
            if is_escaped {
                hyper = heard(front, Way::Hyper, &escaped).await;
            }
            if plain == hyper {
                escaped_ones.fetch_add(usize::from(is_escaped), Ordering::SeqCst);
                return None;
            }
            differ = Some(format!("{}\n  plain {plain:#?}\n  hyper {hyper:#?}", request.escape_ascii()));
        }
        differ
    })
    .await;
    assert!(escaped_ones.load(Ordering::SeqCst) > 50, "{escaped_ones:?} were escaped");
}

/// RFC 9113, section 3.4, requires the preface at the start of a connection. After the start, one
/// path answers a preface with 400 and closes the connection, and the other path only closes the
/// connection.
#[tokio::test]
async fn the_http_2_preface_is_rejected_after_the_start_of_a_connection() {
    let front = front();
    for way in [Way::Plain, Way::Hyper] {
        let heard = heard(front, way, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
        // If the preface were accepted, the server would send SETTINGS, which contain zero bytes.
        assert!(!heard.iter().any(|message| message.contains("\\0")), "{way:?}: {heard:?}");
    }
}

/// Returns what the client receives of a response, and whether the upstream connection is used
/// again.
async fn outcome(way: Way, method: &'static str, answer: &'static [u8], then_closes: bool) -> String {
    let origin = Origin::start(move |number, mut peer| async move {
        if number == 0 {
            peer.until(b"\r\n\r\n").await;
            peer.send(match way {
                Way::Plain => OK,
                Way::Hyper => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            })
            .await;
            peer.until(b"\r\n\r\n").await;
            peer.try_send(answer).await;
            if then_closes {
                return;
            }
        }
        while peer.heard(b"\r\n\r\n").await {
            peer.try_send(OK).await;
        }
    });
    let upstream = origin.upstream_with(|limits| {
        limits.response_header = PATIENCE;
        limits.body_idle = PATIENCE;
    });
    let warmed = soon(upstream.forward(request("GET", "/"))).await;
    soon(warmed.into_body().collect()).await.unwrap();
    let response = soon(upstream.forward(request(method, "/"))).await;
    let (head, body) = response.into_parts();
    let body = soon(body.collect()).await.map(|body| body.to_bytes()).map_err(|_| "cut off");
    let last = soon(upstream.forward(request("POST", "/"))).await;
    let last = (last.status(), soon(last.into_body().collect()).await.unwrap().to_bytes());
    let fields = head.headers.iter().filter(|(name, _)| *name != CONNECTION);
    let mut fields: Vec<_> = fields.map(|(name, value)| format!("{name}: {value:?}")).collect();
    fields.sort();
    let body = if head.status.is_server_error() { Ok(Bytes::new()) } else { body };
    format!(
        "{} {:?} {fields:?} {body:?}, then {last:?} over {} connections",
        head.status,
        head.extensions.get::<ReasonPhrase>(),
        origin.connections()
    )
}

const ANSWERS: &[&[u8]] = &[
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: X-A, keep-alive\r\nX-A: 1\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
    b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
    b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 1\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\nevil",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nab",
    b"HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n",
    b"HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\nab",
    b"HTTP/1.1 304 Not Modified\r\nContent-Length: x\r\n\r\n",
    b"HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab",
    b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\nab",
    b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nab",
    b"HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nab",
    b"HTTP/1.1 200 All is well\r\nContent-Length: 2\r\n\r\nab",
    b"HTTP/1.1 299 \xe9\r\nContent-Length: 2\r\n\r\nab",
    b"HTTP/1.1 999 Who knows\r\nContent-Length: 2\r\n\r\nab",
    b"HTTP/1.1 099 Too low\r\nContent-Length: 2\r\n\r\nab",
    b"HTTP/1.1 20 Short\r\nContent-Length: 2\r\n\r\nab",
    b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nab",
    b"HTTP/1.0 200 OK\r\n\r\nab",
    b"HTTP/1.1 200 OK\nContent-Length: 2\n\nab",
    b"\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: a\0b\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: a\rb\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: a\r\n folded\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-B: \xff\r\nX-B:\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nUpgrade: h2c\r\nTrailer: X\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n",
    b"HTTP/2 200 OK\r\nContent-Length: 2\r\n\r\nab",
    b"SSH-2.0-x\r\n",
    b"",
];

#[tokio::test]
async fn the_fast_path_and_hyper_handle_responses_equally() {
    let ways = [("GET", false), ("GET", true), ("HEAD", false), ("HEAD", true)];
    let cases = ANSWERS.iter().flat_map(|answer| ways.map(|(method, closes)| (*answer, method, closes)));
    compare(cases, |(answer, method, then_closes)| async move {
        let mut differ = None;
        for _ in 0..ATTEMPTS {
            let of_way = |way| outcome(way, method, answer, then_closes);
            let (plain, hyper) = tokio::join!(of_way(Way::Plain), of_way(Way::Hyper));
            assert!(!plain.contains("evil"), "{plain}");
            assert!(plain.matches("content-length").count() < 2, "{plain}");
            if plain == hyper {
                return None;
            }
            let case = format!("{method} {}, then closes: {then_closes}", answer.escape_ascii());
            differ = Some(format!("{case}\n  plain {plain}\n  hyper {hyper}"));
        }
        differ
    })
    .await;
}

/// If an upstream sends a body that it must not send, the body is never interpreted as the next
/// response. This must hold even if the event loop has not yet been notified of the body's bytes.
#[tokio::test]
async fn a_body_after_a_head_response_is_not_read_as_the_next_response() {
    use std::io::{Read, Write};

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let (go, may_go) = std::sync::mpsc::channel::<()>();
    // The origin has its own thread, because this thread sleeps during the test.
    std::thread::spawn(move || {
        for (number, socket) in listener.incoming().enumerate() {
            let mut socket = socket.unwrap();
            socket.set_nodelay(true).unwrap();
            let _ = socket.read(&mut [0; 4096]);
            if number > 0 {
                socket.write_all(OK.as_bytes()).unwrap();
                let _ = socket.read(&mut [0; 1]);
                return;
            }
            socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 43\r\n\r\n").unwrap();
            may_go.recv().unwrap();
            socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil").unwrap();
            sender.send(socket).unwrap();
        }
    });
    let upstream = upstream([address], patient());
    let response = soon(upstream.forward(request("HEAD", "/"))).await;
    assert_eq!(soon(response.into_body().collect()).await.unwrap().to_bytes(), "");
    go.send(()).unwrap();
    let _open = receiver.recv_timeout(Duration::from_secs(60)).unwrap();
    let response = soon(upstream.forward(request("GET", "/"))).await;
    assert_eq!(soon(response.into_body().collect()).await.unwrap().to_bytes(), "ok");
}
