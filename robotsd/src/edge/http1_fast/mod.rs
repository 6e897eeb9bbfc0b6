//! The fast path of HTTP/1.1: GET or HEAD without a body, all of the head there at once.
//!
//! Nearly all requests are such, and their framing is simple: a request ends where its head ends. They are answered
//! here, with the parser hyper uses, through the same chain and the same service, without a state machine for bodies
//! around them. Everything else, from the first octets of HTTP/2 to a head that is not parsed, is handed over with the
//! octets that have been read, nearly all of it to hyper. So framing of bodies, upgrades, expectations and every
//! refusal of octets that are not HTTP are hyper's.
//!
//! Between requests a connection is parked: it keeps its socket, and no buffer at all. Reads go through the stack.
//!
//! [`request`] reads a head, [`response`] writes a response.
//!
//! **Writes are batched behind reads.** A write wakes the reader at its other end, if that sleeps, and waking it costs
//! most. So a task that has decided goes to the end of its worker's queue once before it writes the response of a fast
//! request, and once before it takes a connection to an upstream: the others read and decide first, and a client or a
//! server of many connections is woken once. Both sends for 1 KiB together took 4.2 µs instead of 5.0.

pub(crate) mod request;

pub(super) mod response;

mod socket;

#[cfg(test)]
mod tests;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http::Method;
use tokio::sync::watch;

pub(crate) use self::socket::{DateClock, FastSocket, Next};

use self::response::AfterResponse;
use self::socket::{RequestWait, StopSignal};
use crate::edge::connection::settings::ConnectionSettings;
use crate::edge::connection_error::{ConnectionErrorKind, ConnectionFailure};
use crate::edge::request::service::{RequestService, ResponseWriter};
use crate::edge::tls::SettledProtocol;
use crate::exchange::{EdgeService, RequestBody};
use crate::socket::Socket;

/// A connection for hyper or HTTP/2.
pub(crate) struct Handover<S> {
    pub(crate) socket: Socket,
    /// The octets that have been read.
    pub(crate) octets: Bytes,
    /// None where the first octets decide.
    pub(crate) protocol: Option<SettledProtocol>,
    pub(crate) service: RequestService<S>,
}

/// Answers requests until one comes that is not for the fast path, or the connection ends.
pub(crate) async fn serve<S: EdgeService>(
    socket: Socket,
    service: RequestService<S>,
    settings: &ConnectionSettings,
    clock: Arc<DateClock>,
    stop: &watch::Receiver<bool>,
) -> Result<Option<Handover<S>>, ConnectionFailure> {
    let limits = &settings.limits;
    // Boxed, because it goes into every response and comes back.
    let mut client =
        Box::new(FastSocket::new(socket, limits.body_idle, clock, stop.clone(), Arc::clone(&service.connection)));
    let mut wait = pin!(RequestWait::new(limits.first_byte));
    let mut stop_signal = StopSignal::new(stop.clone(), settings);
    // The buffer in which requests are answered: as large as a response can become, and kept while requests come.
    let mut response = None;
    loop {
        let octets = match wait.as_mut().next(&mut client, &mut stop_signal, &service.connection, &mut response).await {
            Next::Octets(octets) => octets,
            Next::Closed(Ok(())) => return Ok(None),
            // A client that has been answered and then resets an idle connection has only left.
            Next::Closed(Err(_)) | Next::Overdue if service.connection.has_served() => return Ok(None),
            Next::Closed(Err(error)) => return Err((ConnectionErrorKind::Broken, error.into())),
            Next::Overdue => return Err((ConnectionErrorKind::Slow, "no request in time".into())),
            Next::Stop | Next::Reclaimed => {
                client.close().await;
                return Ok(None);
            }
        };
        let parsed = match service.settled_protocol() {
            Some(SettledProtocol::Http2) => Err(octets),
            _ => request::parse(octets, limits),
        };
        let request = match parsed {
            Ok(request) => request,
            Err(octets) => {
                // The preface of HTTP/2 comes first or not at all (RFC 9113, section 3.4).
                let has_served = service.connection.has_served().then_some(SettledProtocol::Http1);
                let protocol = has_served.or(service.settled_protocol());
                let socket = client.into_socket();
                return Ok(Some(Handover { socket, octets, protocol, service }));
            }
        };
        let is_head = request.method() == Method::HEAD;
        let (id, answering) = service.answer(request.map(|()| RequestBody::empty()), ResponseWriter::Fast);
        let response = response.get_or_insert_with(|| Box::pin(None));
        response.set(Some(response::write(client, answering, is_head, id)));
        let (back, after) = poll_fn(|cx| match response.as_mut().as_pin_mut() {
            Some(writing) => writing.poll(cx),
            None => Poll::Pending,
        })
        .await;
        response.set(None);
        client = back;
        match after {
            AfterResponse::Next => wait.as_mut().again(limits.keep_alive),
            AfterResponse::Close => {
                client.close().await;
                return Ok(None);
            }
            AfterResponse::Gone => return Ok(None),
            AfterResponse::Broken(error) => return Err((ConnectionErrorKind::Broken, error)),
        }
    }
}
