//! Asks robotsd as Envoy does over gRPC: with tonic, and as bytes. The messages are written and
//! read by hand, with the field numbers in Envoy's files.

use bytes::Bytes;
use http::uri::PathAndQuery;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::grpc::RawBytes;
use crate::harness::*;

const CHECK: &str = "/envoy.service.auth.v3.Authorization/Check";

fn start(listener: &str, more: &str) -> (Folder, Running) {
    let site = "hosts = [\"site.test\"]\nrobots.text = '''\nUser-agent: GPTBot\nUser-agent: Googlebot\nDisallow: /drafts/\n'''";
    let config = Config::deciding().listener("name = \"ask\"").listener(listener).site("shop", site).admin();
    config.log_requests().tables("address = \"keep\"").tables(more).start()
}

fn varint(mut number: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while number > 127 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
    out
}

/// Encodes a field of type bytes.
fn bytes(number: usize, content: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(content.len()), content.to_vec()].concat()
}

/// Returns every value at this path of field numbers. A number is returned as digits.
fn at(message: &[u8], path: &[usize]) -> Vec<Vec<u8>> {
    let Some((wanted, rest)) = path.split_first() else { return vec![message.to_vec()] };
    let (mut found, mut left) = (Vec::new(), message);
    let varint = |left: &mut &[u8]| {
        let mut number = 0;
        for shift in (0..).step_by(7) {
            let (byte, more) = left.split_first().expect("a byte");
            *left = more;
            number |= usize::from(byte & 127) << shift;
            if byte & 128 == 0 {
                return number;
            }
        }
        unreachable!()
    };
    while !left.is_empty() {
        let key = varint(&mut left);
        let value = match key & 7 {
            0 => varint(&mut left).to_string().into_bytes(),
            1 => {
                let (value, more) = left.split_at(8);
                left = more;
                f64::from_le_bytes(value.try_into().unwrap()).to_string().into_bytes()
            }
            2 => {
                let length = varint(&mut left);
                let (value, more) = left.split_at(length);
                left = more;
                value.to_vec()
            }
            kind => panic!("a field of kind {kind}"),
        };
        if key >> 3 == *wanted {
            found.extend(at(&value, rest));
        }
    }
    found
}

fn text(message: &[u8], path: &[usize]) -> Vec<String> {
    at(message, path).into_iter().map(|value| String::from_utf8(value).unwrap()).collect()
}

/// The request that Envoy asks about.
#[derive(Clone)]
struct Asked<'a> {
    method: &'a str,
    path: &'a [u8],
    host: &'a str,
    address: &'a str,
    fields: Vec<(&'a str, &'a [u8])>,
    /// Header fields that Envoy sends as bytes, in a separate list.
    raw_fields: Vec<(&'a str, &'a [u8])>,
    /// Site in the context extensions.
    site: Option<&'a str>,
}

impl<'a> Asked<'a> {
    fn by(path: &'a [u8], agent: &'a str) -> Self {
        let fields = vec![(":path", path), ("user-agent", agent.as_bytes())];
        Self {
            method: "GET",
            path,
            host: "site.test",
            address: "192.0.2.1",
            fields,
            raw_fields: Vec::new(),
            site: None,
        }
    }

    fn message(&self) -> Vec<u8> {
        let address = bytes(1, &bytes(1, &[bytes(2, self.address.as_bytes()), vec![24, 80]].concat()));
        let entry = |at, (name, value): &(&str, &[u8])| [bytes(1, name.as_bytes()), bytes(at, value)].concat();
        let fields: Vec<u8> = self.fields.iter().flat_map(|field| bytes(3, &entry(2, field))).collect();
        let raw: Vec<u8> = self.raw_fields.iter().flat_map(|field| bytes(1, &entry(3, field))).collect();
        let raw = if raw.is_empty() { raw } else { bytes(13, &raw) };
        let line = [bytes(1, b"4711"), bytes(2, self.method.as_bytes()), fields, bytes(4, self.path)].concat();
        let http = [line, bytes(5, self.host.as_bytes()), bytes(6, b"https"), raw].concat();
        let request = [bytes(1, &[8, 1]), bytes(2, &http)].concat();
        let extension = |(name, value): (&str, &str)| bytes(10, &entry(2, &(name, value.as_bytes())));
        let site = self.site.map(|site| [("zone", "a"), ("site", site)].map(extension).concat()).unwrap_or_default();
        bytes(1, &[bytes(1, &address), bytes(4, &request), site, bytes(99, b"unknown")].concat())
    }
}

async fn channel(address: SocketAddr) -> Channel {
    Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap()
}

async fn call(channel: &Channel, path: &'static str, message: Vec<u8>) -> Result<Vec<u8>, Status> {
    let mut client = tonic::client::Grpc::new(channel.clone());
    client.ready().await.unwrap();
    let mut request = tonic::Request::new(Bytes::from(message));
    request.metadata_mut().insert("x-request-id", "chosen-by-envoy".parse().unwrap());
    let answer = client.unary(request, PathAndQuery::from_static(path), RawBytes).await;
    answer.map(|answer| answer.into_inner().to_vec())
}

async fn ask(channel: &Channel, asked: &Asked<'_>) -> Vec<u8> {
    call(channel, CHECK, asked.message()).await.unwrap()
}

/// Returns `allowed`, or the status of the refusal.
fn outcome(answer: &[u8]) -> String {
    let denied = text(answer, &[2, 1, 1]);
    let code = text(answer, &[1, 1]);
    match (&code[..], &denied[..], at(answer, &[3]).len()) {
        ([], [], 1) => "allowed".to_owned(),
        ([seven], [status], 0) if seven == "7" => status.clone(),
        other => panic!("{other:?}"),
    }
}

/// Returns the header fields that a response sets, for the forwarded request or the refusal.
fn set(answer: &[u8], kind: usize) -> Vec<(String, String)> {
    let field = |option: Vec<u8>| {
        assert_eq!(text(&option, &[3]), ["2"], "set in place of what is there");
        (text(&option, &[1, 1]).concat(), text(&option, &[1, 2]).concat())
    };
    at(answer, &[kind, 2]).into_iter().map(field).collect()
}

#[tokio::test]
async fn an_envoy_grpc_check_is_decided_logged_and_counted_like_other_decision_requests() {
    let (_folder, running) = start("trusted_proxies = [\"127.0.0.0/8\"]", "[exempt]\ncidrs = [\"198.51.100.0/24\"]\n");
    let channel = channel(running.address).await;

    let answer = ask(&channel, &Asked::by(b"/drafts/x", FIREFOX)).await;
    assert_eq!(outcome(&answer), "allowed");
    assert_eq!(text(&answer, &[3, 5]), ["robots_verdict", "robots-verdict"], "what a client made up");
    assert_eq!((set(&answer, 3), at(&answer, &[4, 1])), (Vec::new(), Vec::new()));

    let answer = ask(&channel, &Asked::by(b"/drafts/x?q=1", GPTBOT)).await;
    assert_eq!(outcome(&answer), "403");
    let parts = ["Disallow: /drafts/        (line 3)", "Request id: chosen-by-envoy\n"];
    assert_has(text(&answer, &[2, 3]).concat(), &parts);
    let fields = set(&answer, 2);
    for (name, value) in [
        ("content-type", "text/plain; charset=utf-8"),
        ("cache-control", "no-store"),
        ("vary", "User-Agent, Accept"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert!(fields.contains(&(name.to_owned(), value.to_owned())), "{fields:?}");
    }
    let entry = |entry: Vec<u8>| {
        (text(&entry, &[1]).concat(), [text(&entry, &[2, 2]), text(&entry, &[2, 3])].concat().concat())
    };
    let metadata: Vec<_> = at(&answer, &[4, 1]).into_iter().map(entry).collect();
    for (name, value) in [
        ("site", "shop"),
        ("agent", "GPTBot"),
        ("category", "ai-training"),
        ("identity", "claimed"),
        ("decision", "disallow"),
        ("action", "refused"),
        ("reason", "disallowed"),
        ("rule", "/drafts/"),
        ("line", "3"),
    ] {
        assert!(metadata.contains(&(name.to_owned(), value.to_owned())), "{name}: {metadata:?}");
    }
    let want = json!({"path": "/drafts/x?q=…", "address": "192.0.2.1", "request_id": "chosen-by-envoy"});
    assert_part(&running.event("refused"), &want);
    let line = running.wait_for_event("request", |line| line["action"] == "refused");
    assert_part(&line, &json!({"path": "/drafts/x?q=…", "status": 200, "site": "shop"}));

    let answer = ask(&channel, &Asked::by(b"/drafts/x", GOOGLEBOT)).await;
    assert_eq!(outcome(&answer), "allowed");
    let tag = "disallow;agent=\"Googlebot\";rule=\"/drafts/\";line=3;reason=search-engine";
    assert_eq!(set(&answer, 3), [("robots-verdict".to_owned(), tag.to_owned())]);
    assert_eq!(text(&answer, &[3, 5]), ["robots_verdict"], "what is set is not removed");

    // The response must also name crawlers that are allowed.
    let answer = ask(&channel, &Asked::by(b"/", GPTBOT)).await;
    let entries = text(&answer, &[4, 1, 2, 3]);
    assert!(entries.contains(&"allowed".to_owned()) && entries.contains(&"GPTBot".to_owned()), "{entries:?}");

    let exempt = Asked { address: "198.51.100.7", ..Asked::by(b"/drafts/x", GPTBOT) };
    assert_eq!(outcome(&ask(&channel, &exempt).await), "allowed");
    let elsewhere = Asked { host: "other.test", ..Asked::by(b"/drafts/x", GPTBOT) };
    assert_eq!(outcome(&ask(&channel, &elsewhere).await), "allowed");

    let series = [
        "robotsd_decisions_total{site=\"shop\",outcome=\"refused\"} 1\n",
        "robotsd_decisions_total{site=\"shop\",outcome=\"tagged\"} 1\n",
        "robotsd_http_requests_total{listener=\"ask\",site=\"shop\",code=\"200\",method=\"POST\"} 5\n",
        "robotsd_http_requests_total{listener=\"ask\",site=\"\",code=\"200\",method=\"POST\"} 1\n",
    ];
    assert_has(running.ask_admin("GET /metrics").body, &series);
}

#[tokio::test]
async fn raw_bytes_and_other_spellings_of_a_request_do_not_bypass_a_rule() {
    let (_folder, running) = start("", "");
    let channel = channel(running.address).await;
    for path in
        [&b"/%64rafts/x"[..], b"/a/../drafts/x", b"/a/..%2fdrafts/x", b"/drafts/\xFF", b"http://site.test/drafts/x"]
    {
        assert_eq!(outcome(&ask(&channel, &Asked::by(path, GPTBOT)).await), "403", "{}", path.escape_ascii());
    }
    let agent = [GPTBOT.as_bytes(), b" \xFF"].concat();
    for fields in [
        vec![("user-agent", &agent[..])],
        vec![("user-agent", FIREFOX.as_bytes()), ("User-Agent", GPTBOT.as_bytes())],
        vec![("user-agent", &[b"\x01", GPTBOT.as_bytes()].concat()[..])],
    ] {
        let mut asked = Asked::by(b"/drafts/x", FIREFOX);
        asked.raw_fields = fields.clone();
        assert_eq!(outcome(&ask(&channel, &asked).await), "403", "as bytes: {fields:?}");
        let asked = Asked { fields, ..Asked::by(b"/drafts/x", FIREFOX) };
        assert_eq!(outcome(&ask(&channel, &asked).await), "403", "as text");
    }
    // A gRPC call is refused in gRPC. Envoy keeps these fields, and sets the HTTP status to 200.
    let mut asked = Asked { method: "POST", ..Asked::by(b"/drafts/x", GPTBOT) };
    asked.fields.push(("content-type", b"application/grpc"));
    let answer = ask(&channel, &asked).await;
    assert_eq!((outcome(&answer), text(&answer, &[2, 3]).concat()), ("403".to_owned(), String::new()));
    let fields = set(&answer, 2);
    assert!(fields.contains(&("grpc-status".to_owned(), "7".to_owned())), "{fields:?}");
    assert!(fields.iter().any(|(name, value)| name == "grpc-message" && value.contains("(line 3)")), "{fields:?}");
}

#[tokio::test]
async fn an_incomplete_check_request_follows_on_error_and_a_malformed_one_is_judged() {
    for (listener, want) in [("", "allowed"), ("on_error = \"refuse\"", "403")] {
        let (_folder, running) = start(listener, "");
        let channel = channel(running.address).await;
        let whole = Asked::by(b"/drafts/x", GPTBOT);
        for (asked, reason, place) in [
            (Asked { path: b"", ..whole.clone() }, "missing", "path"),
            (Asked { method: "", ..whole.clone() }, "missing", "method"),
            (Asked { site: Some("none"), ..whole.clone() }, "unknown-site", "site"),
        ] {
            assert_eq!(outcome(&ask(&channel, &asked).await), want, "{place} {reason}");
        }
        assert_eq!(outcome(&call(&channel, CHECK, Vec::new()).await.unwrap()), want);
        // If a field is malformed, every site judges the request.
        for asked in [
            Asked { path: b"drafts/x", ..whole.clone() },
            Asked { path: b"ftp://h/drafts/x", ..whole.clone() },
            Asked { method: "GE T", ..whole.clone() },
            Asked { host: "site.test:,x", ..whole.clone() },
            Asked { host: "", ..whole.clone() },
            Asked { host: "other.test", site: Some("shop"), ..whole.clone() },
        ] {
            assert_eq!(outcome(&ask(&channel, &asked).await), "403", "{:?} {}", asked.path.escape_ascii(), asked.host);
            let browser = Asked { fields: vec![("user-agent", FIREFOX.as_bytes())], ..asked };
            assert_eq!(outcome(&ask(&channel, &browser).await), "allowed");
        }
        for reason in ["missing", "unreadable"] {
            let line = running.wait_for_event("undecided", |line| line["reason"] == reason);
            assert!(message(&line).starts_with("envoy-grpc: attributes.request.http."), "{line}");
        }
        let mut nobody = whole.clone();
        nobody.fields.clear();
        assert_eq!(outcome(&ask(&channel, &nobody).await), "allowed");
        assert_eq!(running.event("no-user-agent")["reason"], "envoy-grpc");
    }
}

/// Returns an HTTP/2 connection for calls whose bytes must not be changed.
async fn connected<B>(address: SocketAddr) -> hyper::client::conn::http2::SendRequest<B>
where
    B: http_body::Body<Data = Bytes, Error: std::error::Error + Send + Sync> + Send + Unpin + 'static,
{
    let stream = TokioIo::new(tokio::net::TcpStream::connect(address).await.unwrap());
    let (client, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Sends the bytes of a call. Returns status, `grpc-status` and the size of the response.
async fn send(address: SocketAddr, path: &str, content: &[u8]) -> (u16, Option<String>, usize) {
    let request = http::Request::post(format!("http://{address}{path}")).header("content-type", "application/grpc");
    let request = request.body(Full::new(Bytes::copy_from_slice(content))).unwrap();
    let response = connected(address).await.send_request(request).await.unwrap();
    let status = response.status().as_u16();
    let said = |fields: &http::HeaderMap| fields.get("grpc-status").map(|status| status.to_str().unwrap().to_owned());
    let in_head = said(response.headers());
    let body = response.into_body().collect().await.unwrap();
    let in_trailers = body.trailers().and_then(said);
    assert!(in_head.is_none() || in_trailers.is_none());
    (status, in_head.or(in_trailers), body.to_bytes().len())
}

fn framed(flag: u8, message: &[u8]) -> Vec<u8> {
    [&[flag][..], &u32::try_from(message.len()).unwrap().to_be_bytes(), message].concat()
}

#[tokio::test]
async fn an_invalid_check_request_gets_a_grpc_error_status() {
    let (_folder, running) = start("on_error = \"refuse\"", "");
    let address = running.address;
    let message = Asked::by(b"/drafts/x", GPTBOT).message();
    let good = framed(0, &message);
    assert_eq!(send(address, CHECK, &good).await.1.as_deref(), Some("0"));
    let code = |code: u16| (200, Some(code.to_string()), 0);
    for (content, want) in [
        (Vec::new(), 3),
        (good[..good.len() - 1].to_vec(), 3),
        ([&good[..], b"\0"].concat(), 3),
        (good.repeat(2), 3),
        (framed(0, b"\x0A\xFF"), 3),
        (framed(2, &message), 3),
        (framed(1, &message), 12),
        (framed(0, &vec![0; 2 << 20]), 8),
    ] {
        assert_eq!(send(address, CHECK, &content).await, code(want), "{} bytes", content.len());
    }
    for path in ["/envoy.service.auth.v3.Authorization/Other", "/envoy.service.auth.v3.Authorization/"] {
        assert_eq!(send(address, path, &good).await, code(12), "{path}");
    }
    let channel = channel(address).await;
    let status = call(&channel, "/envoy.service.auth.v3.Authorization/None", message).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented, "{status:?}");
    assert_eq!(running.request("POST", CHECK, &[("Content-Type", "application/grpc")]).status, 415);
    let line = running.event("undecided");
    assert_has(crate::harness::message(&line), &["envoy-grpc: the message is malformed"]);
}

#[tokio::test]
async fn a_check_request_whose_message_does_not_arrive_times_out() {
    let (_folder, running) = start("", "");
    let mut client = connected(running.address).await;
    let mut question = |timeout: Option<&str>| {
        let request = http::Request::post(format!("http://{}{CHECK}", running.address));
        let request = request.header("content-type", "application/grpc");
        let request = timeout.into_iter().fold(request, |request, timeout| request.header("grpc-timeout", timeout));
        let body = StreamBody::new(tokio_stream::pending::<Result<http_body::Frame<Bytes>, std::io::Error>>());
        tokio::spawn(client.send_request(request.body(body).unwrap()))
    };
    let patient = question(None);
    let response = tokio::time::timeout(PATIENCE, question(Some("100m"))).await.expect("an answer").unwrap().unwrap();
    assert_eq!((response.status().as_u16(), &response.headers()["grpc-status"]), (200, &"4".parse().unwrap()));
    assert!(!patient.is_finished(), "without a time of its caller's a question has ten seconds");
}
