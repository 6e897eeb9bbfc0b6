//! The cost of HTTP/2 over TLS without robotsd:
//! `cargo bench -p robotsd --bench floor -- LISTEN CHAIN KEY [ORIGIN]`.
//!
//! This is a minimal server on `h2`, `tokio` and `rustls`, with one thread and the settings of
//! robotsd's edge. It has no checks, deadlines or limits, so a comparison with it shows the cost of
//! robotsd's own work. Without an origin, it responds to every request with 1 KiB and the ten
//! fields that nginx sends for a file. With an origin, it forwards requests unchanged with hyper,
//! over one kept HTTP/1.1 connection per active stream. `proxy/instructions.py --floors` counts its
//! instructions.

#![expect(clippy::print_stdout, reason = "a bench prints what it measures")]

use std::cell::RefCell;
use std::error::Error;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{RecvStream, server};
use http::header::{CONNECTION, HOST};
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

type Failure = Box<dyn Error + Send + Sync>;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let [listen, chain, key, origin @ ..] = &arguments[..] else {
        // `cargo test --benches` passes no arguments, to check only that the program starts.
        println!("usage: floor LISTEN CHAIN KEY [ORIGIN]");
        return Ok(());
    };
    let chain = CertificateDer::pem_file_iter(chain)?.collect::<Result<_, _>>()?;
    let mut config =
        ServerConfig::builder().with_no_client_auth().with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    let origin = origin.first().map(|origin| origin.parse()).transpose()?.map(Origin::new);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, listen_on(listen.parse()?, TlsAcceptor::from(Arc::new(config)), origin))
}

async fn listen_on(address: SocketAddr, tls: TlsAcceptor, origin: Option<Origin>) -> Result<(), Failure> {
    let listener = TcpListener::bind(address).await?;
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let (tls, origin) = (tls.clone(), origin.clone());
        spawn_local(async move {
            if let Err(error) = serve(socket, tls, origin).await {
                println!("{error}");
            }
        });
    }
}

async fn serve(socket: TcpStream, tls: TlsAcceptor, origin: Option<Origin>) -> Result<(), Failure> {
    let mut connection = server::Builder::new()
        .max_concurrent_streams(100)
        .initial_window_size(65_535)
        .initial_connection_window_size(6_553_500)
        .handshake(tls.accept(socket).await?)
        .await?;
    while let Some(accepted) = connection.accept().await {
        let (request, respond) = accepted?;
        let origin = origin.clone();
        spawn_local(async move {
            let answered = match origin {
                Some(origin) => forward(&origin, request, respond).await,
                None => answer(respond),
            };
            if let Err(error) = answered {
                println!("{error}");
            }
        });
    }
    Ok(())
}

/// Responds with a file of 1 KiB, and with the fields that nginx sends for it.
fn answer(mut respond: SendResponse<Bytes>) -> Result<(), Failure> {
    static CONTENT: [u8; 1024] = [b'x'; 1024];
    let fields = [
        ("server", "nginx/1.22.1"),
        ("date", "Thu, 26 Nov 2026 10:00:00 GMT"),
        ("content-type", "application/octet-stream"),
        ("content-length", "1024"),
        ("last-modified", "Thu, 26 Nov 2026 09:00:00 GMT"),
        ("etag", "\"6926cbd0-400\""),
        ("accept-ranges", "bytes"),
    ];
    let mut response = Response::new(());
    for (name, value) in fields {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    respond.send_response(response, false)?.send_data(Bytes::from_static(&CONTENT), true)?;
    Ok(())
}

/// The origin for forwarded requests, with its idle connections.
#[derive(Clone)]
struct Origin {
    address: SocketAddr,
    idle: Rc<RefCell<Vec<SendRequest<Empty<Bytes>>>>>,
}

impl Origin {
    fn new(address: SocketAddr) -> Self {
        Self { address, idle: Rc::default() }
    }

    async fn connection(&self) -> Result<SendRequest<Empty<Bytes>>, Failure> {
        let idle = self.idle.borrow_mut().pop();
        if let Some(sender) = idle {
            return Ok(sender);
        }
        let socket = TcpStream::connect(self.address).await?;
        socket.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(socket)).await?;
        spawn_local(connection);
        Ok(sender)
    }
}

async fn forward(
    origin: &Origin,
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
) -> Result<(), Failure> {
    let (head, _) = request.into_parts();
    let mut forwarded = Request::new(Empty::new());
    *forwarded.method_mut() = head.method;
    *forwarded.headers_mut() = head.headers;
    if let Some(authority) = head.uri.authority() {
        forwarded.headers_mut().insert(HOST, HeaderValue::from_str(authority.as_str())?);
    }
    *forwarded.uri_mut() = head.uri.path_and_query().map_or("/", |target| target.as_str()).parse()?;

    let mut sender = origin.connection().await?;
    sender.ready().await?;
    let (mut head, mut body) = sender.send_request(forwarded).await?.into_parts();
    head.headers.remove(CONNECTION);
    let mut stream = respond.send_response(Response::from_parts(head, ()), false)?;
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            stream.send_data(data, false)?;
        }
    }
    stream.send_data(Bytes::new(), true)?;
    origin.idle.borrow_mut().push(sender);
    Ok(())
}
