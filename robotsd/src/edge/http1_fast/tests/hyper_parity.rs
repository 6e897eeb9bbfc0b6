//! Sends the same bytes to the fast path and to hyper alone, and compares the responses. The
//! responses must be the same, even if the fast path hands the connection over to hyper.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http_body::{Body, SizeHint};
use parking_lot::Mutex;

use super::*;
use crate::edge::test_sequences::Server;
use crate::socket::Socket;

/// The service's response to any request.
#[derive(Clone, Debug)]
struct Script {
    status: u16,
    length: Length,
    fields: Vec<(&'static str, &'static str)>,
    pieces: Vec<&'static str>,
    fails: bool,
    /// Whether the body reports its size.
    is_exact: bool,
}

/// The `Content-Length` that the service sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Absent,
    Right,
    /// The body ends before the declared length.
    TooLong,
}

impl Script {
    fn size(&self) -> usize {
        self.pieces.iter().map(|piece| piece.len()).sum()
    }

    /// Reports whether the client can never receive the whole response.
    fn is_broken(&self) -> bool {
        self.fails || self.length == Length::TooLong
    }

    fn response(&self) -> Response<ScriptedBody> {
        let mut response = Response::builder().status(self.status);
        for (name, value) in &self.fields {
            response = response.header(*name, *value);
        }
        let length = match self.length {
            Length::Absent => None,
            Length::Right => Some(self.size().to_string()),
            Length::TooLong => Some((self.size() + 3).to_string()),
        };
        if let Some(length) = length {
            response = response.header("content-length", length);
        }
        let pieces = self.pieces.iter().copied().collect();
        response.body(ScriptedBody { pieces, fails: self.fails, is_exact: self.is_exact }).unwrap()
    }
}

struct ScriptedBody {
    pieces: VecDeque<&'static str>,
    fails: bool,
    is_exact: bool,
}

impl Body for ScriptedBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(match self.pieces.pop_front() {
            Some(piece) => Some(Ok(Frame::data(Bytes::from_static(piece.as_bytes())))),
            None if std::mem::take(&mut self.fails) => Some(Err(std::io::Error::other("broken"))),
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && !self.fails
    }

    fn size_hint(&self) -> SizeHint {
        let left = self.pieces.iter().map(|piece| piece.len() as u64).sum();
        if self.is_exact { SizeHint::with_exact(left) } else { SizeHint::default() }
    }
}

type Scripted = Arc<Mutex<Script>>;

/// Returns a service that answers with the response of the script. The field `x-arrived` of each
/// response describes the request that the service received.
fn scripted(script: Scripted) -> impl EdgeService {
    service_fn(move |request: Request<RequestBody>| {
        let script = script.lock().clone();
        async move {
            let mut response = script.response();
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_or_else(|_| "broken".into(), |body| body.to_bytes());
            let mut arrived = format!("{} {} {:?} {}", head.method, head.uri, head.version, body.escape_ascii());
            for (name, value) in head.headers.iter().filter(|(name, _)| *name != "x-request-id") {
                arrived.push_str(&format!(" {name}={}", value.as_bytes().escape_ascii()));
            }
            response.headers_mut().insert("x-arrived", arrived.parse().unwrap());
            Ok(response)
        }
    })
}

/// Starts a server that passes connections to hyper from the first byte.
fn by_hyper(script: Scripted) -> SocketAddr {
    accepting(move |_, socket| {
        Server::Hyper.serve(Socket::Tcp(socket), scripted(Arc::clone(&script)), EdgeLimits::default())
    })
}

/// A response as a client understands it.
#[derive(Debug, PartialEq, Eq)]
struct Received {
    status: u16,
    /// The header fields, sorted by name. Fields that differ in every response are left out.
    fields: Vec<(String, String)>,
    body: String,
    is_whole: bool,
    /// Whether the body ends only when the connection ends.
    is_until_close: bool,
}

struct Reader(Raw);

impl Reader {
    async fn response(&mut self, is_head: bool) -> Option<Received> {
        let head = soon(self.0.up_to(b"\r\n\r\n")).await?;
        let mut fields = [httparse::EMPTY_HEADER; 32];
        let mut parsed = httparse::Response::new(&mut fields);
        assert!(parsed.parse(&head).unwrap().is_complete());
        let status = parsed.code.unwrap();
        let mut fields: Vec<_> = parsed
            .headers
            .iter()
            .map(|field| (field.name.to_ascii_lowercase(), field.value.escape_ascii().to_string()))
            .collect();
        fields.sort();
        let field = |name: &str| fields.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone());
        let (mut body, mut is_whole, mut is_until_close) = (Vec::new(), true, false);
        if is_head || matches!(status, 204 | 304) {
        } else if field("transfer-encoding").is_some() {
            is_whole = self.chunks(&mut body).await;
        } else if let Some(length) = field("content-length") {
            let length = length.parse().unwrap();
            body = soon(self.0.at_most(length)).await;
            is_whole = body.len() == length;
        } else {
            body = soon(self.0.at_most(usize::MAX)).await;
            is_until_close = true;
        }
        assert!(field("date").is_some());
        // The `Content-Length` of a response without a body is not compared, because hyper may
        // write one.
        let has_none = matches!(status, 204 | 304);
        fields.retain(|(name, _)| match name.as_str() {
            "date" | "x-request-id" => false,
            "content-length" => !has_none,
            _ => true,
        });
        let body = body.escape_ascii().to_string();
        Some(Received { status, fields, body, is_whole, is_until_close })
    }

    async fn chunks(&mut self, body: &mut Vec<u8>) -> bool {
        loop {
            let Some(size) = soon(self.0.up_to(b"\r\n")).await else { return false };
            let size = usize::from_str_radix(std::str::from_utf8(&size).unwrap().trim(), 16).unwrap();
            let chunk = soon(self.0.at_most(size + 2)).await;
            if chunk.len() < size + 2 {
                return false;
            }
            body.extend_from_slice(&chunk[..size]);
            if size == 0 {
                return true;
            }
        }
    }
}

/// Sends `bytes` in one write, and then another request, to see whether the connection was kept
/// open. Returns the responses.
async fn exchanged(address: SocketAddr, bytes: &[u8], heads: &[bool]) -> Vec<Option<Received>> {
    let mut reader = Reader(Raw::connect(address).await);
    reader.0.send(bytes).await;
    let mut responses = Vec::new();
    for is_head in heads {
        responses.push(reader.response(*is_head).await);
    }
    // Sending fails if the connection is already closed.
    let last = b"GET /last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    reader.0.try_send(last).await;
    responses.push(reader.response(false).await);
    responses
}

/// The bytes of a request, the same bytes with the target escaped as the edge escapes it, and
/// whether the request is a HEAD request.
type TwiceWritten = (Vec<u8>, Vec<u8>, bool);

fn requests() -> impl Strategy<Value = TwiceWritten> {
    let method = prop::sample::select(&["GET", "GET", "GET", "HEAD", "HEAD", "POST", "OPTIONS"][..]);
    let version = prop::sample::select(&["1.1", "1.1", "1.1", "1.1", "1.0"][..]);
    let more = prop::sample::select(
        &[
            "",
            "",
            "",
            "Connection: keep-alive\r\n",
            "Connection: close\r\n",
            "Connection: x-a\r\nX-A: 1\r\n",
            "TE: trailers\r\n",
            "Content-Length: 3\r\n\r\nabc",
            "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            "Expect: 100-continuation\r\n",
            "Upgrade: h2c\r\nConnection: upgrade\r\n",
            "X: \u{e9}\r\n",
        ][..],
    );
    (method, targets(), version, extra_fields(), more).prop_map(|(method, target, version, fields, more)| {
        let end = if more.contains("\r\n\r\n") { "" } else { "\r\n" };
        let bytes = |target: &[u8]| {
            let line = [method.as_bytes(), b" ", target, b" HTTP/", version.as_bytes(), b"\r\nHost: h\r\n"].concat();
            [&line[..], &fields, more.as_bytes(), end.as_bytes()].concat()
        };
        (bytes(&target), bytes(&as_escaped(&target)), method == "HEAD")
    })
}

fn scripts() -> impl Strategy<Value = Script> {
    let length = prop::sample::select(&[Length::Absent, Length::Absent, Length::Right, Length::TooLong][..]);
    let field = prop::sample::select(
        &[("x-a", "1"), ("date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("connection", "close"), ("set-cookie", "a=b")][..],
    );
    (
        prop::sample::select(&[200, 200, 200, 201, 204, 206, 301, 304, 404, 500, 599][..]),
        length,
        prop::collection::vec(field, 0..3),
        prop::collection::vec(prop::sample::select(&["", "a", "bc\r\n", "0\r\n\r\n"][..]), 0..4),
        prop::bool::weighted(0.1),
        any::<bool>(),
    )
        .prop_map(|(status, length, fields, pieces, fails, is_exact)| {
            // A body must not report a wrong size, because hyper relies on the reported size. hyper
            // also treats a size of zero as `Content-Length: 0`.
            let is_exact = is_exact && !fails && length != Length::TooLong;
            let length = if pieces.is_empty() && length == Length::TooLong { Length::Absent } else { length };
            Script { status, length, fields, pieces, fails, is_exact }
        })
}

#[test]
fn the_edge_and_hyper_answer_the_same_bytes_equally() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let script = Scripted::new(Mutex::new(Script {
        status: 200,
        length: Length::Absent,
        fields: Vec::new(),
        pieces: Vec::new(),
        fails: false,
        is_exact: false,
    }));
    let _entered = runtime.enter();
    let edge = ServedEdge::start(EdgeLimits::default(), scripted(Arc::clone(&script))).address;
    let hyper = by_hyper(Arc::clone(&script));
    let escaped_ones = Cell::new(0);
    let mut runner = TestRunner::new(Config { cases: 600, failure_persistence: None, ..Config::default() });
    // Sends one request, or two requests in a single write.
    let sent = (prop::collection::vec(requests(), 1..3), scripts());
    let agree = |(requests, scripted): (Vec<TwiceWritten>, Script)| {
        *script.lock() = scripted.clone();
        let escaped = requests.iter().map(|(_, escaped, _)| &escaped[..]).collect::<Vec<_>>().concat();
        // The edge escapes the first target itself; hyper gets the escaped target.
        let (first, first_escaped, _) = &requests[0];
        let bytes = [first, &escaped[first_escaped.len()..]].concat();
        let heads: Vec<bool> = requests.iter().map(|(.., is_head)| *is_head).collect();
        let by_edge = runtime.block_on(exchanged(edge, &bytes, &heads));
        let by_hyper = runtime.block_on(exchanged(hyper, &escaped, &heads));
        let is_answered = by_edge[0].as_ref().is_some_and(|response| response.status != 400);
        escaped_ones.set(escaped_ones.get() + usize::from(is_answered && first != first_escaped));
        // If a response is broken, the paths may send different parts, but both end the connection.
        let whole = |response: Option<Received>| {
            response.filter(|response| response.is_whole && !(response.is_until_close && scripted.is_broken()))
        };
        let by_edge: Vec<_> = by_edge.into_iter().map(whole).collect();
        let by_hyper: Vec<_> = by_hyper.into_iter().map(whole).collect();
        prop_assert_eq!(&by_edge, &by_hyper, "{}", bytes.escape_ascii());
        Ok(())
    };
    runner.run(&sent, agree).unwrap();
    assert!(escaped_ones.get() > 30, "{} targets were escaped", escaped_ones.get());
}
