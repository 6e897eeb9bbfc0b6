//! The layer around a tonic server: crawlers that stray onto a gRPC port read robots.txt there too.
//!
//! The service is written by hand, so that no protoc is needed; generated ones are added in the same way.
//!
//!     cargo run --example grpc

use std::convert::Infallible;
use std::task::{Context, Poll};

use http::{Request, Response};
use tokio::net::TcpListener;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tower::Service;
use tower_robots::layer::RobotsLayer;
use tower_robots::live::LiveRobots;
use tower_robots::policy::{Mode, Policy};

/// Answers every call with `UNIMPLEMENTED`.
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
    let live = LiveRobots::inline("User-agent: GPTBot\nDisallow: /demo.Greeter/\n")
        .policy(Policy::builder().mode(Mode::Refuse).build())
        .open()?;
    Server::builder()
        .accept_http1(true)
        .layer(RobotsLayer::new(live))
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
    use super::*;
    use bytes::Bytes;
    use http_body_util::Empty;
    use hyper_util::rt::{TokioExecutor, TokioIo};

    async fn ask(path: &str, agent: &str) -> (u16, Option<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move { serve(listener).await.map_err(|error| error.to_string()) });
        let stream = tokio::net::TcpStream::connect(address).await.expect("connected");
        let (mut client, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
        tokio::spawn(connection);
        let request = Request::get(format!("http://localhost{path}"))
            .header("user-agent", agent)
            .header("content-type", "application/grpc")
            .body(Empty::<Bytes>::new())
            .expect("a request");
        let response = client.send_request(request).await.expect("a response");
        let status = response.headers().get("grpc-status").map(|status| status.to_str().expect("ASCII").to_owned());
        (response.status().as_u16(), status)
    }

    #[tokio::test]
    async fn crawlers_are_refused_and_callers_are_not() {
        assert_eq!(ask("/demo.Greeter/Hello", "GPTBot/1.2").await, (403, None));
        assert_eq!(ask("/demo.Greeter/Hello", "tonic/0.14").await, (200, Some("12".to_owned())));
        assert_eq!(ask("/robots.txt", "GPTBot/1.2").await, (200, None));
    }
}
