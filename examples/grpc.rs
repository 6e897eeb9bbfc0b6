//! The layer around a tonic server. A crawler that finds the gRPC port can fetch robots.txt there,
//! too. Its calls are refused with a gRPC status. Calls are `POST` requests, so groups for `*`
//! apply to them only with `wildcard_methods(["GET", "HEAD", "POST"])`.
//!
//! The service is written by hand, so that the example does not need protoc. A service that protoc
//! generates can be added in the same way.
//!
//!     cargo run --example grpc
//!     curl -A GPTBot http://127.0.0.1:50051/robots.txt
//!     curl -iA GPTBot --http2-prior-knowledge -X POST -H 'Content-Type: application/grpc' http://127.0.0.1:50051/demo.Greeter/Hello

use std::convert::Infallible;
use std::task::{Context, Poll};

use http::{Request, Response};
use tokio::net::TcpListener;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::transport::Server;
use tonic::transport::server::{TcpConnectInfo, TcpIncoming};
use tower::Service;
use tower_robots::layer::RobotsLayer;
use tower_robots::live::LiveRobots;
use tower_robots::policy::Mode;

/// A service that answers every call with `UNIMPLEMENTED`.
#[derive(Clone)]
struct Greeter;

impl NamedService for Greeter {
    const NAME: &'static str = "demo.Greeter";
}

impl Service<Request<Body>> for Greeter {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        std::future::ready(Ok(tonic::Status::unimplemented("only an example").into_http()))
    }
}

async fn serve(listener: TcpListener) -> Result<(), Box<dyn std::error::Error>> {
    let live = LiveRobots::text("User-agent: GPTBot\nDisallow: /demo.Greeter/\n").mode(Mode::Refuse).open()?;
    Server::builder()
        .accept_http1(true)
        .layer(RobotsLayer::new(live).address_from(|extensions| {
            let connection = extensions.get::<TcpConnectInfo>()?;
            Some(connection.remote_addr()?.ip())
        }))
        .add_service(Greeter)
        .serve_with_incoming(TcpIncoming::from(listener))
        .await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    serve(TcpListener::bind("127.0.0.1:50051").await?).await
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use bytes::{Buf, BufMut, Bytes};
    use http::uri::PathAndQuery;
    use http_body_util::Empty;
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
    use tonic::transport::Endpoint;
    use tonic::{Code, Status};

    use super::*;

    /// A codec that does not change messages.
    #[derive(Clone, Copy, Default)]
    struct RawBytes;

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

    async fn start() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move { serve(listener).await.map_err(|error| error.to_string()) });
        address
    }

    /// Sends a call with this `User-Agent`.
    async fn call(address: SocketAddr, agent: &str) -> Status {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("a URL");
        let channel = endpoint.user_agent(agent).expect("a name").connect().await.expect("connected");
        let mut client = tonic::client::Grpc::new(channel);
        client.ready().await.expect("ready");
        let path = PathAndQuery::from_static("/demo.Greeter/Hello");
        client.unary(tonic::Request::new(Bytes::new()), path, RawBytes).await.expect_err("a status")
    }

    #[tokio::test]
    async fn a_crawler_is_refused_with_permission_denied_and_a_grpc_client_is_not() {
        let address = start().await;
        let refused = call(address, "GPTBot/1.2").await;
        assert_eq!(refused.code(), Code::PermissionDenied, "{refused:?}");
        assert!(refused.message().ends_with("Disallow: /demo.Greeter/ (line 2)"), "{refused:?}");
        assert_eq!(call(address, "greeter-client/1.0").await.code(), Code::Unimplemented);
    }

    #[tokio::test]
    async fn a_refused_crawler_can_still_fetch_robots_txt() {
        let stream = tokio::net::TcpStream::connect(start().await).await.expect("connected");
        let (mut client, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
        tokio::spawn(connection);
        let request = Request::get("http://localhost/robots.txt").header("user-agent", "GPTBot/1.2");
        let response = client.send_request(request.body(Empty::<Bytes>::new()).expect("a request")).await;
        let response = response.expect("a response");
        assert_eq!((response.status().as_u16(), response.headers().get("grpc-status")), (200, None));
    }
}
