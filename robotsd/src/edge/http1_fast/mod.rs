//! A connection between requests, and requests that are plain: GET or HEAD over HTTP/1.1, without a body, all of the head
//! there at once.
//!
//! Nearly all requests are, and nothing about them is delicate: where one ends is where its head ends. They are answered
//! here, with the parser hyper uses, through the same checks and the same service, without a state machine for bodies
//! around them. Everything else, from the first octets of HTTP/2 to a head that is not parsed, is handed to hyper with what
//! has been read. So framing, upgrades, expectations and every refusal of what is not HTTP are hyper's as before.
//!
//! While nothing is asked a connection is parked: it keeps its socket, and no buffer at all. What is read goes through the
//! stack.

mod request;
mod target_escape;

mod client;
mod date_clock;
mod response;

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::error::Error;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Body;
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep_until};
use tower::Service;

use self::client::FastClient;
pub(crate) use self::date_clock::DateClock;
use self::response::{AfterResponse, answer};
use crate::edge::connection::client_socket::ClientSocket;
use crate::edge::connection::hyper_driver::{ConnectionSettings, Ended};
use crate::edge::connection_error::ConnectionErrorKind;
use crate::edge::connection_state::state::ConnectionState;
use crate::edge::request::body::RequestBody;
use crate::edge::request::service::RequestService;
use crate::edge::tls::AlpnProtocol;

/// After so long without a request a connection gives up what it keeps for the next one.
///
/// In tests nearly at once, so that they meet parked connections.
const PARK: Duration = if cfg!(test) { Duration::from_millis(5) } else { Duration::from_secs(1) };

/// What becomes of a connection whose next request is not plain, or that is over.
#[expect(clippy::large_enum_variant, reason = "made once a connection, and taken apart at once")]
pub(crate) enum FastPathEnd<S> {
    /// For hyper: the socket, what has been read, and what answers.
    Handover(ClientSocket, Bytes, RequestService<S>),
    Ended(Ended),
}

/// Answers plain requests until something else comes.
pub(crate) async fn serve<S, B>(
    transport: ClientSocket,
    gate: RequestService<S>,
    terms: &ConnectionSettings,
    clock: Arc<DateClock>,
    stop: &watch::Receiver<bool>,
) -> FastPathEnd<S>
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let limits = &terms.limits;
    // Boxed, because it goes into every answer and comes back.
    let mut client = Box::new(FastClient::new(transport, limits.body_idle, clock, stop.clone()));
    let mut wait = pin!(Wait::new(limits.first_byte));
    let mut stopped = Stopped::new(stop.clone(), limits.greeting);
    // Where requests are answered: as large as an answer can become, and kept while they come.
    let mut desk = None;
    loop {
        let octets = match wait.as_mut().next(&mut client, &mut stopped, gate.activity(), &mut desk).await {
            Next::Octets(octets) if gate.agreed() == Some(AlpnProtocol::Http2) => {
                return FastPathEnd::Handover(client.into_transport(), octets, gate);
            }
            Next::Octets(octets) => octets,
            Next::Closed(Ok(())) => return FastPathEnd::Ended(Ok(())),
            // Whoever has been answered and then resets an idle connection has only left.
            Next::Closed(Err(_)) if gate.has_served() => return FastPathEnd::Ended(Ok(())),
            Next::Closed(Err(error)) => return FastPathEnd::Ended(Err((ConnectionErrorKind::Broken, error.into()))),
            Next::Overdue if gate.has_served() => return FastPathEnd::Ended(Ok(())),
            Next::Overdue => return FastPathEnd::Ended(Err((ConnectionErrorKind::Slow, "no request in time".into()))),
            Next::Stop => {
                client.close().await;
                return FastPathEnd::Ended(Ok(()));
            }
            Next::Reclaimed => {
                // A new connection waits for this one's place.
                client.close_now();
                return FastPathEnd::Ended(Ok(()));
            }
        };
        let request = match request::parse(octets, limits) {
            Ok(request) => request,
            Err(octets) => {
                // The preface of HTTP/2 comes first or not at all (RFC 9113, section 3.4), and hyper believes that this is
                // the first it hears. An empty line, which HTTP/1.1 skips (RFC 9112, section 2.2), says otherwise. Neither
                // does it come where the handshake has settled on HTTP/1.1.
                let is_http_1 = gate.has_served() || gate.agreed() == Some(AlpnProtocol::Http1);
                let octets = if is_http_1 { [b"\r\n", &*octets].concat().into() } else { octets };
                return FastPathEnd::Handover(client.into_transport(), octets, gate);
            }
        };
        let is_head = request.method() == Method::HEAD;
        let answering = gate.answer(request.map(|()| RequestBody::empty()), None);
        let desk = desk.get_or_insert_with(|| Box::pin(None));
        desk.set(Some(answer(client, answering, is_head)));
        let (back, after) = poll_fn(|cx| match desk.as_mut().as_pin_mut() {
            Some(answering) => answering.poll(cx),
            None => Poll::Pending,
        })
        .await;
        desk.set(None);
        client = back;
        match after {
            AfterResponse::Next => wait.as_mut().again(limits.keep_alive),
            AfterResponse::Close => {
                client.close().await;
                return FastPathEnd::Ended(Ok(()));
            }
            AfterResponse::Gone => return FastPathEnd::Ended(Ok(())),
            AfterResponse::Broken(error) => return FastPathEnd::Ended(Err((ConnectionErrorKind::Broken, error))),
        }
    }
}

enum Next {
    Octets(Bytes),
    Closed(io::Result<()>),
    Overdue,
    Stop,
    Reclaimed,
}

pin_project_lite::pin_project! {
    /// The wait for the next request, with one timer for the whole connection: it is set anew only when it has run out
    /// too early, about once a second, and not for each request.
    struct Wait {
        since: Instant,
        patience: Duration,
        #[pin]
        timer: Sleep,
        is_armed: bool,
        is_parked: bool,
        has_served: bool,
    }
}

impl Wait {
    fn new(patience: Duration) -> Self {
        let now = Instant::now();
        // There is nothing to give up before the first request.
        Self {
            since: now,
            patience,
            timer: sleep_until(now + patience),
            is_armed: false,
            is_parked: true,
            has_served: false,
        }
    }

    /// A request has been answered; the next one has this long.
    fn again(self: Pin<&mut Self>, patience: Duration) {
        let this = self.project();
        *this.since = Instant::now();
        *this.patience = patience;
        *this.is_parked = false;
        *this.has_served = true;
    }

    async fn next<D>(
        mut self: Pin<&mut Self>,
        client: &mut FastClient,
        stopped: &mut Stopped,
        activity: &ConnectionState,
        desk: &mut Option<D>,
    ) -> Next {
        poll_fn(|cx| {
            // What has arrived by now is served, whatever else is due.
            if let Poll::Ready(read) = client.poll_receive(cx) {
                return Poll::Ready(match read {
                    Ok(Some(octets)) => Next::Octets(octets),
                    Ok(None) => Next::Closed(Ok(())),
                    Err(error) => Next::Closed(Err(error)),
                });
            }
            if stopped.poll(cx, self.has_served).is_ready() {
                return Poll::Ready(Next::Stop);
            }
            if activity.is_reclaimed() {
                return Poll::Ready(Next::Reclaimed);
            }
            self.as_mut().poll_overdue(cx, || {
                *desk = None;
                client.park();
            })
        })
        .await
    }

    fn poll_overdue(self: Pin<&mut Self>, cx: &mut Context<'_>, mut park: impl FnMut()) -> Poll<Next> {
        let mut this = self.project();
        loop {
            let patience = if *this.is_parked { *this.patience } else { PARK.min(*this.patience) };
            let due = *this.since + patience;
            if this.timer.deadline() > due {
                this.timer.as_mut().reset(due);
            } else if *this.is_armed && !this.timer.is_elapsed() {
                return Poll::Pending;
            }
            *this.is_armed = true;
            if this.timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            let now = Instant::now();
            if now >= *this.since + *this.patience {
                return Poll::Ready(Next::Overdue);
            }
            if now >= due {
                *this.is_parked = true;
                park();
            }
            this.timer.as_mut().reset(*this.since + if *this.is_parked { *this.patience } else { patience });
        }
    }
}

/// The word to stop, listened for once a connection: under load the next request is there before it has to be again.
struct Stopped {
    stop: watch::Receiver<bool>,
    told: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_listening: bool,
    /// What a first request is given, once there is the word.
    greeting: Duration,
    greeted: Option<Pin<Box<Sleep>>>,
}

impl Stopped {
    fn new(stop: watch::Receiver<bool>, greeting: Duration) -> Self {
        let mut listening = stop.clone();
        let told = Box::pin(async move {
            // Whoever could say so is gone: that says it as well.
            let _ = listening.wait_for(|stop| *stop).await;
        });
        Self { stop, told, is_listening: false, greeting, greeted: None }
    }

    /// Ready when a connection is to end, on which nothing is asked.
    fn poll(&mut self, cx: &mut Context<'_>, has_served: bool) -> Poll<()> {
        if self.greeted.is_none() {
            if self.is_listening && !self.stop.has_changed().unwrap_or(true) {
                return Poll::Pending;
            }
            self.is_listening = true;
            ready!(self.told.as_mut().poll(cx));
        }
        if has_served {
            return Poll::Ready(());
        }
        let greeting = self.greeting;
        self.greeted.get_or_insert_with(|| Box::pin(tokio::time::sleep(greeting))).as_mut().poll(cx)
    }
}
