//! Sends gRPC calls through robotsd, between clients and servers of third parties.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes};
use http::uri::PathAndQuery;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::NamedService;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Server};
use tonic::{Code, Status, Streaming};
use tower::{Service, service_fn};

use super::programs::python_with;
use crate::harness::*;

const SCRIPT: &str = "robotsd/tests/cases/grpc_calls.py";

/// A gRPC server that uses grpcio. It is killed when this is dropped.
struct GrpcServer {
    _process: KillOnDrop,
    port: u16,
}

impl GrpcServer {
    fn start(mut python: Command) -> Self {
        python.arg(project(SCRIPT)).arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = python.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { _process: KillOnDrop(process), port: line.trim().parse().unwrap() }
    }
}

/// Returns Python with grpcio; `None` if it is not installed.
fn python() -> Option<Command> {
    python_with("grpc", "grpcio")
}

fn calls(port: u16) -> Value {
    run(python().unwrap().arg(project(SCRIPT)).args(["call", &port.to_string()])).ends_with(0).json()
}

/// Makes a call with this `User-Agent`. The call must be refused. Returns its code, message and
/// fields.
fn refused(port: u16, agent: &str) -> Option<Value> {
    Some(run(python()?.arg(project(SCRIPT)).args(["refused", &port.to_string(), agent])).ends_with(0).json())
}

/// Creates a config. Its site has an upstream at this port that speaks HTTP/2.
fn config(port: u16) -> Config {
    let robots = "robots = { source = \"inline\", text = \"User-agent: *\\nDisallow: /private/\" }";
    let site = format!("upstreams = [\"http://127.0.0.1:{port}\"]\nupstream.http2 = true\n{robots}");
    Config::refusing().site("calls", site)
}

#[test]
fn grpcio_gets_the_same_results_through_robotsd() {
    let Some(python) = python() else { return };
    let (alone, server) = (GrpcServer::start(python), GrpcServer::start(self::python().unwrap()));
    let (_folder, proxy) = config(server.port).start();
    // The direct calls and the calls through robotsd run at the same time, because they mostly
    // wait.
    let (direct, through) = thread::scope(|scope| {
        let direct = scope.spawn(|| calls(alone.port));
        let through = calls(proxy.address.port());
        (direct.join().unwrap(), through)
    });
    assert_eq!(through, direct);
    // The results must also be the expected ones.
    for (call, want) in [
        ("unary", json!(["hi", "OK", "1", "kept", "00ff"])),
        ("status", json!(["NOT_FOUND", "no such thing: 100 % \u{e9}"])),
        ("unimplemented", json!("UNIMPLEMENTED")),
        ("large", json!(true)),
        ("deadline", json!("DEADLINE_EXCEEDED")),
        ("client streaming", json!("a,b,c")),
        ("server streaming", json!([["0", "1", "2"], ["RESOURCE_EXHAUSTED", "that is all"]])),
        ("both streaming", json!([["you said one", "you said two", "you said three"], [], "OK"])),
        ("cancelled", json!("CANCELLED")),
        ("the server saw both end", json!(true)),
        ("goodbye in between", json!(["first", ["last"], "OK"])),
        ("gone", json!(true)),
    ] {
        assert_eq!(through[call], want, "{call}");
    }
}

/// A codec that does not change messages.
#[derive(Clone, Copy, Default)]
pub(super) struct RawBytes;

impl Codec for RawBytes {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for RawBytes {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put(message);
        Ok(())
    }
}

impl Decoder for RawBytes {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        let length = bytes.remaining();
        Ok(Some(bytes.copy_to_bytes(length)))
    }
}

/// A tonic service that echoes what it receives.
#[derive(Clone)]
struct Echo;

impl NamedService for Echo {
    const NAME: &'static str = "test.Echo";
}

impl Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let mut grpc = tonic::server::Grpc::new(RawBytes).max_decoding_message_size(usize::MAX);
        Box::pin(async move {
            Ok(match request.uri().path() {
                "/test.Echo/Unary" => {
                    let echo = |request: tonic::Request<Bytes>| async move {
                        Ok::<_, Status>(tonic::Response::new(request.into_inner()))
                    };
                    grpc.unary(service_fn(echo), request).await
                }
                "/test.Echo/Streams" => {
                    let echo = |request: tonic::Request<Streaming<Bytes>>| async move {
                        Ok::<_, Status>(tonic::Response::new(request.into_inner()))
                    };
                    grpc.streaming(service_fn(echo), request).await
                }
                _ => Status::unimplemented("there is no such call").into_http(),
            })
        })
    }
}

#[tokio::test]
async fn robotsd_forwards_unary_and_streaming_calls_between_tonic_client_and_server() {
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = incoming.local_addr().unwrap().port();
    tokio::spawn(Server::builder().add_service(Echo).serve_with_incoming(incoming));
    let (_folder, proxy) = config(port).start();
    let channel = Channel::from_shared(format!("http://{}", proxy.address)).unwrap().connect().await.unwrap();
    let mut client = tonic::client::Grpc::new(channel).max_decoding_message_size(usize::MAX);

    let large = Bytes::from(vec![7; 8 << 20]);
    for message in [Bytes::from_static(b"hi"), Bytes::new(), large] {
        client.ready().await.unwrap();
        let path = PathAndQuery::from_static("/test.Echo/Unary");
        let answer = client.unary(tonic::Request::new(message.clone()), path, RawBytes).await.unwrap();
        assert!(answer.into_inner() == message);
    }

    client.ready().await.unwrap();
    let path = PathAndQuery::from_static("/test.Echo/None");
    let status = client.unary(tonic::Request::new(Bytes::new()), path, RawBytes).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unimplemented, "there is no such call"));

    let (say, said) = mpsc::unbounded_channel();
    client.ready().await.unwrap();
    let request = tonic::Request::new(UnboundedReceiverStream::new(said));
    let path = PathAndQuery::from_static("/test.Echo/Streams");
    let mut heard = client.streaming(request, path, RawBytes).await.unwrap().into_inner();
    for message in ["one", "two", "three"] {
        // The next message is sent only when the last one has come back.
        say.send(Bytes::from_static(message.as_bytes())).unwrap();
        assert_eq!(heard.message().await.unwrap().unwrap(), message);
    }
    drop(say);
    assert!(heard.message().await.unwrap().is_none());
}

/// Creates a config whose site has no backend. A refused request must not need one.
fn refusing() -> Config {
    let robots = "User-agent: GPTBot\\nDisallow: /test.Calls/\\nUser-agent: CCBot\\nCrawl-delay: 30";
    let site = format!(
        "upstreams = [\"http://127.0.0.1:1\"]\nupstream.http2 = true\nrobots = {{ source = \"inline\", text = \"{robots}\" }}\n\
         rate = {{ mode = \"refuse\", burst = 1 }}\nrefusal.status = 451"
    );
    Config::refusing().listener("name = \"web\"").log_requests().admin().site("calls", site)
}

#[test]
fn grpcio_gets_a_specific_grpc_status_for_a_refused_and_a_rate_limited_call() {
    let (_folder, proxy) = refusing().start();
    let Some(answer) = refused(proxy.address.port(), "GPTBot/1.2") else { return };
    assert_eq!(answer[0], "PERMISSION_DENIED", "{answer}");
    let message = answer[1].as_str().unwrap();
    assert_has(message, &["does not let GPTBot fetch this path. Disallow: /test.Calls/ (line 2)"]);
    let line = proxy.wait_for_event("refused", |line| line["path"] == "/test.Calls/Echo");
    assert_eq!((&line["status"], &line["grpc_status"]), (&json!(200), &json!(7)));
    assert!(message.contains(line["request_id"].as_str().unwrap()), "{message}");
    let line = proxy.wait_for_event("request", |line| line["path"] == "/test.Calls/Echo");
    assert_eq!((&line["status"], &line["grpc_status"], &line["action"]), (&json!(200), &json!(7), &json!("refused")));
    assert_eq!((&line["octets"], &line["whole"]), (&json!(0), &json!(true)));

    // Requests that robotsd does not refuse get this status, because the site has no backend.
    assert_eq!(refused(proxy.address.port(), "caller/1.0").unwrap()[0], "UNAVAILABLE");
    assert_eq!(refused(proxy.address.port(), "CCBot/2.0").unwrap()[0], "UNAVAILABLE");
    let answer = refused(proxy.address.port(), "CCBot/2.0").unwrap();
    assert_eq!(answer[0], "RESOURCE_EXHAUSTED", "{answer}");
    let fields = answer[2].as_object().unwrap();
    let number = |name: &str| fields[name].as_str().unwrap().parse::<u64>().unwrap();
    // This is the crawl delay, minus the time since the previous request.
    assert!((1..=33).contains(&number("retry-after")), "{answer}");
    assert!((1..=33_000).contains(&number("grpc-retry-pushback-ms")), "{answer}");
    proxy.wait_for_event("limited", |line| line["grpc_status"] == 8);

    // The metrics must contain the real HTTP status and the real action.
    let series = [
        "\nrobotsd_decisions_total{site=\"calls\",outcome=\"refused\"} 1\n",
        "\nrobotsd_decisions_total{site=\"calls\",outcome=\"limited\"} 1\n",
        "\nrobotsd_http_requests_total{listener=\"web\",site=\"calls\",code=\"200\",method=\"POST\"} 4\n",
    ];
    assert_has(proxy.ask_admin("GET /metrics").body, &series);
}

#[tokio::test]
async fn a_refused_call_ends_even_if_its_message_is_large_or_never_ends() {
    let (_folder, proxy) = refusing().start();
    let channel = Channel::from_shared(format!("http://{}", proxy.address)).unwrap().user_agent("GPTBot/1.2").unwrap();
    let mut client = tonic::client::Grpc::new(channel.connect().await.unwrap());
    // One message is larger than the window of its stream, and one never ends.
    client.ready().await.unwrap();
    let path = PathAndQuery::from_static("/test.Calls/Echo");
    let large = tonic::Request::new(Bytes::from(vec![7; 8 << 20]));
    let status = client.unary(large, path.clone(), RawBytes).await.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied, "{status:?}");
    let (say, said) = mpsc::unbounded_channel();
    client.ready().await.unwrap();
    let status = client.streaming(tonic::Request::new(UnboundedReceiverStream::new(said)), path, RawBytes).await;
    assert_eq!(status.unwrap_err().code(), Code::PermissionDenied);
    drop(say);
}

#[test]
fn an_http_1_1_request_with_the_grpc_content_type_gets_a_normal_refusal() {
    let (_folder, proxy) = refusing().start();
    for method in ["GET", "POST"] {
        let fields = [("User-Agent", "GPTBot/1.2"), ("Content-Type", "application/grpc")];
        let answer = proxy.request(method, "/test.Calls/Echo", &fields);
        assert_eq!((answer.status, answer.field("grpc-status")), (451, None), "{method}");
        assert_has(&answer.body, &["Disallow: /test.Calls/"]);
    }
}
