//! The layer around a plain hyper service.
//!
//!     cargo run --example hyper
#![expect(clippy::print_stderr, reason = "an example's log")]

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tower::{ServiceBuilder, service_fn};
use tower_robots::layer::RobotsLayer;
use tower_robots::live::LiveRobots;
use tower_robots::policy::Mode;

async fn hello<B>(_: Request<B>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from("hello\n")))
}

async fn serve(listener: TcpListener) -> Result<(), Box<dyn std::error::Error>> {
    let live = LiveRobots::file("examples/site/robots.txt").mode(Mode::Refuse).open()?;
    let robots = RobotsLayer::new(live).address_from(|extensions| Some(extensions.get::<SocketAddr>()?.ip()));
    let service = ServiceBuilder::new().layer(robots).service(service_fn(hello));
    loop {
        let (stream, peer) = listener.accept().await?;
        let with_peer = move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer);
            request
        };
        let service = TowerToHyperService::new(ServiceBuilder::new().map_request(with_peer).service(service.clone()));
        tokio::spawn(async move {
            let connection = auto::Builder::new(TokioExecutor::new());
            if let Err(error) = connection.serve_connection(TokioIo::new(stream), service).await {
                eprintln!("connection: {error}");
            }
        });
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    serve(TcpListener::bind("127.0.0.1:3000").await?).await
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn a_named_crawler_is_refused_over_a_real_socket() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move { super::serve(listener).await.map_err(|error| error.to_string()) });
        for (path, want) in [("/drafts/x", "HTTP/1.1 403"), ("/", "HTTP/1.1 200"), ("/robots.txt", "HTTP/1.1 200")] {
            let mut stream = tokio::net::TcpStream::connect(address).await.expect("connected");
            let request =
                format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: GPTBot\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.expect("written");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("read");
            assert!(answer.starts_with(want), "{path}: {answer}");
        }
    }
}
