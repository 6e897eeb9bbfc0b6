//! Opens a connection and sends one request on it, with a limit for interim responses (1xx). The
//! commands and webhooks of robotsd also use the functions of this module.
//!
//! This module uses hyper's low-level connections, because a fetch must limit the time of every
//! step and select addresses by their class. A client with a connection pool would resolve names,
//! retry requests and reuse connections by itself.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::response::Parts;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::resolver::{self, Resolver};
use super::{FetchError, FetchErrorKind, FetchUrl};

#[cfg(unix)]
use std::path::Path;
#[cfg(unix)]
use tokio::net::UnixStream;

/// Maximum size of the head of a response, in bytes.
const MAX_HEAD: usize = 64 << 10;

/// Maximum number of addresses of a host that are tried.
const MAX_ADDRESSES: usize = 4;

pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// What to do with a body that exceeds the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// Keep the first bytes. Crawlers obey the part that they have read (RFC 9309, section 2.5).
    Drop,
    /// Fail with an error.
    Refuse,
}

#[cfg(unix)]
pub(super) async fn dial_unix(path: &Path, within: Duration) -> Result<Box<dyn Stream>, FetchError> {
    let failed = |error: io::Error| {
        let error = io::Error::new(error.kind(), format!("unix:{}: {error}", path.display()));
        FetchError::with_cause(FetchErrorKind::Connect, error)
    };
    match timeout(within, UnixStream::connect(path)).await {
        Ok(socket) => Ok(Box::new(socket.map_err(failed)?)),
        Err(_) => Err(failed(io::ErrorKind::TimedOut.into())),
    }
}

/// Connects to one of the addresses of a URL's host. `led_from` is the address of the server whose
/// response contained the URL, if any. If `led_from` is set, addresses that this server must not
/// redirect to are skipped. If the host has several addresses, each address gets an equal share of
/// the time `within`. The caller must limit the total time.
pub(super) async fn dial(
    url: &FetchUrl,
    network: &Resolver,
    led_from: Option<IpAddr>,
    within: Duration,
) -> Result<(TcpStream, SocketAddr), FetchError> {
    let unknown = |error| FetchError::with_cause(FetchErrorKind::Name, error);
    let (resolved, led_from) = match network.connection_target(url.host(), url.port()) {
        // The application selected this host (with `FetcherBuilder::connect_to`), so the host may
        // have any address, even a private address.
        Some((host, port)) => (network.resolve(&host, port).await, None),
        None => (network.resolve(url.host(), url.port()).await, led_from),
    };
    let resolved = resolved.map_err(unknown)?;
    let from = led_from.map(|from| network.class(from));
    let may_reach = |to: &&SocketAddr| from.is_none_or(|from| from.may_redirect_to(network.class(to.ip())));
    let addresses: Vec<&SocketAddr> = resolved.iter().filter(may_reach).take(MAX_ADDRESSES).collect();
    let mut last = match (from, resolved.first()) {
        (Some(from), Some(first)) => resolver::wrong_class(url, from, first.ip(), network.class(first.ip())),
        _ => unknown(io::Error::new(io::ErrorKind::NotFound, "no address")),
    };
    // The time is divided, because an address that does not respond must not use up the time for
    // the other addresses.
    let share = within / u32::try_from(addresses.len().max(1)).unwrap_or(1);
    for address in addresses {
        let failed = |error: io::Error| {
            FetchError::with_cause(FetchErrorKind::Connect, io::Error::new(error.kind(), format!("{address}: {error}")))
        };
        last = match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(socket)) => return Ok((socket, *address)),
            Ok(Err(error)) => failed(error),
            Err(_) => failed(io::Error::new(io::ErrorKind::TimedOut, "no answer")),
        };
    }
    Err(last)
}

/// Sends a request and reads the whole response. The body of a redirect is not read.
pub async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin,
    request: Request<Empty<Bytes>>,
    excess: Excess,
    most: u64,
) -> Result<Response<Vec<u8>>, FetchError> {
    let read = |head: Parts, body| async move {
        let bytes = if head.status.is_redirection() { Vec::new() } else { read(body, excess, most).await? };
        Ok(Response::from_parts(head, bytes))
    };
    send(stream, request, read).await
}

/// Sends a request. Calls `hand_over` with the head of the response, and then sends the parts of
/// the body to `parts` as they arrive. Waits while the channel `parts` is full, and stops if the
/// receiver of the channel was dropped.
pub(super) async fn stream(
    stream: Box<dyn Stream>,
    request: Request<Empty<Bytes>>,
    most: u64,
    hand_over: impl FnOnce(Parts),
    parts: &mpsc::Sender<Result<Bytes, FetchError>>,
) -> Result<(), FetchError> {
    let pass_on = |head: Parts, mut body: Incoming| async move {
        let is_redirect = head.status.is_redirection();
        hand_over(head);
        let mut left = if is_redirect { 0 } else { usize::try_from(most).unwrap_or(usize::MAX) };
        while left > 0
            && let Some(frame) = body.frame().await
        {
            // Trailers are ignored.
            let Ok(mut data) = frame.map_err(broken)?.into_data() else { continue };
            data.truncate(left);
            left -= data.len();
            if parts.send(Ok(data)).await.is_err() {
                break;
            }
        }
        Ok(())
    };
    send(stream, request, pass_on).await
}

/// Maximum number of interim responses to one request. Servers usually send at most two: 100
/// (Continue) and 103 (Early Hints).
const MAX_INTERIM: usize = 16;

/// Sends a request, and processes the response and the connection in the same task, so that the
/// connection is closed immediately if the future is dropped.
///
/// Any number of interim responses (1xx) may precede the final response (RFC 9110, section 15.2),
/// and hyper does not limit their number. A server that sends only interim responses could keep the
/// thread busy until the time limit. Therefore the exchange ends with an error if there are more
/// than `MAX_INTERIM`.
pub async fn send<B, T, F>(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin,
    mut request: Request<B>,
    work: impl FnOnce(Parts, Incoming) -> F,
) -> Result<T, FetchError>
where
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
    F: Future<Output = Result<T, FetchError>>,
{
    let interim = Arc::new(AtomicUsize::new(0));
    let counted = interim.clone();
    hyper::ext::on_informational(&mut request, move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let handshake = http1::Builder::new().max_buf_size(MAX_HEAD).handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(broken)?;
    let mut work = pin!(async move {
        let (head, body) = sender.send_request(request).await.map_err(broken)?.into_parts();
        work(head, body).await
    });
    let mut connection = pin!(connection);
    let mut is_open = true;
    poll_fn(|context| {
        // `connection` and `work` are polled twice, because `work` may have passed data to the
        // connection during the first poll. If the connection has ended, `work` learns the reason
        // at the second poll.
        for _ in 0..2 {
            is_open = is_open && connection.as_mut().poll(context).is_pending();
            if interim.load(Ordering::Relaxed) > MAX_INTERIM {
                let cause =
                    format!("a server may send at most {MAX_INTERIM} interim answers before the final response");
                return Poll::Ready(Err(FetchError::with_cause(FetchErrorKind::InterimAnswers, cause)));
            }
            if let Poll::Ready(output) = work.as_mut().poll(context) {
                return Poll::Ready(output);
            }
        }
        Poll::Pending
    })
    .await
}

async fn read(mut body: Incoming, excess: Excess, most: u64) -> Result<Vec<u8>, FetchError> {
    let too_large = || FetchError::new(FetchErrorKind::TooLarge);
    if excess == Excess::Refuse && body.size_hint().lower() > most {
        return Err(too_large());
    }
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        // Trailers are ignored.
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        let room = most - bytes.len();
        bytes.extend_from_slice(&data[..data.len().min(room)]);
        match excess {
            Excess::Refuse if data.len() > room => return Err(too_large()),
            Excess::Drop if data.len() >= room => break,
            _ => {}
        }
    }
    Ok(bytes)
}

fn broken(error: hyper::Error) -> FetchError {
    // hyper reports a malformed chunk header as an error of the body, not as a parse error.
    let is_body_fault = |error: &hyper::Error| {
        let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
        cause.is_some_and(|cause| matches!(cause.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData))
    };
    let is_bad = error.is_parse() || is_body_fault(&error);
    let kind = if is_bad { FetchErrorKind::BadResponse } else { FetchErrorKind::Broken };
    FetchError::with_cause(kind, error)
}
